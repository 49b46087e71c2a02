# ruff: noqa: T201 (printing is what it is for)
"""How often lower bounds are above the truth, with and without an ensemble: `python docs/ensemble_coverage.py`.

Logs are simulated from each registered click model, and the model is fitted to its own logs. The bound is the 5 %
quantile, and pairs have at least 100 impressions. The last columns are CPU times of the ensemble against the model.
"""

import sys
import warnings
from collections.abc import Iterator, Sequence
from time import process_time
from typing import NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.base.errors import PrudentWarning
from prudent.bounds import bounds
from prudent.click_models import Evidence, click_models
from prudent.click_models.ensemble import Ensemble
from prudent.click_models.selection import names
from prudent.click_models.world import clicked, draw, make_world

LOGS, LISTS = 10, 100_000
IMPRESSIONS = 100
BOUND = "exposure(delta=0.1)"
WORLDS = {"many contexts": {"contexts": 300, "items": (15, 30)}, "few contexts": {"contexts": 10, "items": (15, 20)}}


class Covered(NamedTuple):
    """One log: which lower bounds are above the truth, with the exposure of each pair, and CPU seconds."""

    model: FloatArray
    ensemble: FloatArray
    exposure: FloatArray
    seconds: tuple[float, float]


def measure(name: str, length: int, world: str, lists: int = LISTS, seed: int = 0, **settings: int) -> Covered:
    """Fit a model and its ensemble to one log of its own."""
    truth = make_world(name, length=length, seed=seed, **WORLDS[world])  # type: ignore[arg-type]
    items = np.concatenate([chunk.items for chunk in draw(truth, lists, seed=seed + 1_000)])
    log = clicked(truth, items, np.random.default_rng(seed))
    cells = log.cells
    model = click_models.parse(name)
    found: list[FloatArray] = []
    seconds: list[float] = []
    exposure = np.zeros(0)
    for one in (model, Ensemble(model, **settings)):
        started = process_time()
        evidence: Evidence = one.fit(cells, length, log).evidence(cells).ranked
        seconds.append(process_time() - started)
        often = evidence.impressions >= IMPRESSIONS
        if one is model:
            exposure = evidence.expected[often]
        found.append((bounds.parse(BOUND).score(evidence).lower > truth.attraction)[often].astype(float))
    return Covered(*found, exposure, (seconds[0], seconds[1]))


def by_decile(logs: Sequence[Covered]) -> FloatArray:
    """The share above the truth in each tenth of the pairs, from those with least exposure to those with most."""
    above, exposure = (np.concatenate([getattr(one, name) for one in logs]) for name in ("ensemble", "exposure"))
    order = np.argsort(exposure, kind="stable")
    return np.array([part.mean() for part in np.array_split(above[order], 10)])


def rows(models: Sequence[str], logs: int) -> Iterator[str]:
    """A row of the table for each model, length and kind of world."""
    for name in models:
        for length in (4, 10):
            for world in WORLDS:
                found = [measure(name, length, world, seed=seed) for seed in range(logs)]
                own, ours = (np.array([getattr(one, kind).mean() for one in found]) for kind in ("model", "ensemble"))
                seconds = np.array([one.seconds for one in found]).sum(axis=0)
                deciles = " ".join(f"{100 * share:.0f}" for share in by_decile(found))
                error = ours.std(ddof=1) / logs**0.5
                yield (
                    f"| `{name}` | {length} | {world} | {100 * own.mean():.1f} | {100 * ours.mean():.1f} ± "
                    f"{100 * error:.1f} | {deciles} | {seconds[1] / seconds[0]:.1f} |"
                )


def main() -> None:
    """Print the table, for the models that are named or all."""
    warnings.simplefilter("ignore", PrudentWarning)
    print("| clicks by | positions | world | model | ensemble | by exposure | times |\n|---|---|---|---|---|---|---|")
    for row in rows(sys.argv[1:] or names(), LOGS):
        print(row, flush=True)


if __name__ == "__main__":
    main()
