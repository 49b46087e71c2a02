# ruff: noqa: T201 (printing is what it is for)
"""How well priors foresee clicks in contexts that the log does not have: `python docs/tail_likelihood.py`.

Half of the lists of the logs of docs/tail_worlds.py train; the others are predicted by the click model that made them,
with its true parameters, from the posterior means of θ under each prior. What is printed is the log-likelihood per
held-out list minus that of `eb`, by how often the training half has the context, with its standard error over worlds.
"""

import tempfile
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tail_worlds import CORRELATIONS, KINDS, draw

import prudent
from prudent.base.arrays import FloatArray
from prudent.counts.groups import Keys
from prudent.counts.lists import ListBatch

BOUNDS = {"eb": ("eb", False), "anchored": ("anchored", False), "anchored, groups": ("anchored", True)}
CLASSES = {
    "unseen": (0, 0),
    "once": (1, 1),
    "2–4 times": (2, 4),
    "5–19 times": (5, 19),
    "20 times and more": (20, 10**9),
}
PARAMETERS = {"pbm": "examination", "dcm": "continuation"}
SEEDS = 2


def write(shown: ListBatch, keys: Keys, train: FloatArray, folder: Path) -> None:
    """The training half, all pairs as candidates, and the hosts of items."""
    item, host = keys.values.T
    names = np.array([f"item {one}" for one in item])
    rows = [items[items >= 0] for items in shown.items]
    table: dict[str, Any] = {
        "context": [f"query {context}" for context in shown.list_context],
        "items": [names[row].tolist() for row in rows],
        "clicks": [clicks[: len(row)].astype(int).tolist() for clicks, row in zip(shown.clicks, rows, strict=True)],
    }
    pq.write_table(pa.table(table).filter(pa.array(train)), folder / "train.parquet")
    pairs = {"context": [f"query {context}" for context in shown.context], "item": names}
    pq.write_table(pa.table(pairs), folder / "pairs.parquet")
    some = np.unique(item, return_index=True)[1]
    pq.write_table(pa.table({"item": names[some], "host": [f"h{one}" for one in host[some]]}), folder / "hosts.parquet")


def means(folder: Path, model: str, bound: str, grouped: bool) -> FloatArray:
    """The posterior mean of every pair, in the order of pairs."""
    groups: dict[str, Any] = {"groups": "item", "item_groups": folder / "hosts.parquet"} if grouped else {}
    files: dict[str, Any] = {"to": folder / "policy.parquet", "scores": folder / "scores.parquet"}
    candidates = folder / "pairs.parquet"
    prudent.rank(folder / "train.parquet", model, bound=bound, candidates=candidates, unseen=True, **groups, **files)
    found = duckdb.execute(
        "select mean from (select *, row_number() over () as number from read_parquet($pairs)) "
        "join read_parquet($scores) using (context, item) order by number",
        {"pairs": str(candidates), "scores": str(files["scores"])},
    ).fetchnumpy()["mean"]
    return np.asarray(found, float)


def measure(kind: str, users: str, correlation: float, seed: int) -> dict[tuple[str, str], float]:
    """The log-likelihood per held-out list minus that of `eb`, by prior and class of contexts."""
    world, shown, keys, seen = draw(kind, users, correlation, seed)
    train = np.random.default_rng(seed).random(len(shown.items)) < 0.5
    times = np.bincount(shown.list_context[train], minlength=len(seen))[shown.list_context[~train]]
    items, clicks = shown.items[~train], shown.clicks[~train]
    parameters = PARAMETERS[users]
    model = f"{users}({parameters}={getattr(world.users, parameters).tolist()})"
    likelihood = {}
    with tempfile.TemporaryDirectory() as folder:
        write(shown, keys, train, Path(folder))
        for name, (bound, grouped) in BOUNDS.items():
            theta = np.append(means(Path(folder), model, bound, grouped), 0.0)[items]
            click = np.clip(world.users.predict(theta, clicks), 1e-12, 1 - 1e-12)
            likelihood[name] = np.where(items >= 0, np.log(np.where(clicks, click, 1 - click)), 0.0).sum(axis=1)
    return {
        (name, label): float((likelihood[name] - likelihood["eb"])[(times >= least) & (times <= most)].mean())
        for name, (label, (least, most)) in product(BOUNDS, CLASSES.items())
    }


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"| worlds | prior | {' | '.join(CLASSES)} |\n{'|---' * (2 + len(CLASSES))}|")
    for kind in KINDS:
        found = [measure(kind, *world) for world in product(("pbm", "dcm"), CORRELATIONS, range(SEEDS))]
        for name in list(BOUNDS)[1:]:
            cells = [np.array([one[name, label] for one in found]) for label in CLASSES]
            shown = [f"{c.mean():+.3f} ± {c.std(ddof=1) / np.sqrt(len(c)):.3f}".replace("-", "−") for c in cells]
            print(f"| {kind} | `{name}` | {' | '.join(shown)} |".replace(", groups`", "` with groups"))


if __name__ == "__main__":
    main()
