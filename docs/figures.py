# ruff: noqa: T201 (printing is what it is for)
"""The figures of docs/reading.md: `python docs/figures.py` prints its tables, from fixed seeds, in a few minutes.

The table on real clicks is printed when PRUDENT_DATA names the folder with yandex/train.tsv.gz.
"""

import gzip
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import prudent
from prudent.click_models.simulate import write_log, write_truth
from prudent.click_models.world import World, best_value, make_world, value

SEEDS = range(10)
OFTEN = 100  # minimum impressions of a pair
LOGGINGS = {
    "good (quality 1)": {"quality": 1.0},
    "blind and uneven (quality 0)": {"quality": 0.0},
    "uniform at random": {"quality": 0.0, "exploration": 1000.0},
    "opposed (quality −1)": {"quality": -1.0},
}
BOUNDS = ["mle", "hoeffding(delta=0.2)", "bayes(delta=0.2)", "eb(delta=0.2)", "exposure(delta=0.5)"]


def logged(world: World, lists: int, seed: int, folder: Path) -> prudent.Counts:
    """Counts of a simulated log, whose ground truth is written beside it."""
    write_truth(world, folder / "truth.parquet")
    return prudent.count(prudent.Log(write_log(world, lists, folder / "clicks.parquet", seed=seed)))


def pair_numbers(world: World) -> dict[tuple[int, int], int]:
    """The number of each (context, item) in the world."""
    contexts = np.repeat(world.contexts, np.diff(world.offsets)).tolist()
    return {pair: number for number, pair in enumerate(zip(contexts, world.items.tolist(), strict=True))}


def coverage(kind: str, models: list[str]) -> Iterator[str]:
    """Bias of θ̂, and how often the 5 % quantile is above θ."""
    bias: dict[str, list[float]] = {model: [] for model in models}
    above: dict[str, list[float]] = {model: [] for model in models}
    for seed in SEEDS:
        world = make_world(kind, contexts=100, seed=seed)
        numbers = pair_numbers(world)
        with TemporaryDirectory() as folder:
            counts = logged(world, 100_000, seed, Path(folder))
            for model in models:
                scores = prudent.rank(counts, model=model, bound="bayes(delta=0.1)").scores().fetchnumpy()
                pairs = zip(scores["context"].tolist(), scores["item"].tolist(), strict=True)
                truth = world.attraction[[numbers[pair] for pair in pairs]]
                often = scores["impressions"] >= OFTEN
                rate = scores["positive"] / np.maximum(scores["positive"] + scores["negative"], 1e-12)
                bias[model].append(float((rate - truth)[often].mean()))
                above[model].append(float((scores["lower"] > truth)[often].mean()))
    for model in models:
        spread = f"{100 * min(above[model]):.1f}–{100 * max(above[model]):.1f} %"
        yield f"| `{model}` | {np.mean(bias[model]):+.3f} | {100 * np.mean(above[model]):.1f} % | {spread} |"


def errors(kind: str, lists: int) -> Iterator[str]:
    """Error of the chosen lists, relative to that of the MLE."""
    for logging, settings in LOGGINGS.items():
        error = np.zeros((len(SEEDS), len(BOUNDS)))
        for row, seed in enumerate(SEEDS):
            world = make_world(kind, contexts=50, length=5, zipf=0, seed=seed, **settings)  # type: ignore[arg-type]
            numbers = pair_numbers(world)
            with TemporaryDirectory() as folder:
                counts = logged(world, lists, seed, Path(folder))
                for column, bound in enumerate(BOUNDS):
                    policy = prudent.rank(counts, kind, bound=bound, candidates=Path(folder) / "truth.parquet")
                    chosen = np.full((50, 5), -1)
                    for context, rank, item in policy.lists().select("context, rank, item").fetchall():
                        chosen[context, rank - 1] = numbers[context, item]
                    error[row, column] = best_value(world) - world.share @ value(world, chosen)
        mean = error.mean(axis=0)
        ratios = " | ".join(f"{ratio:.2f}" for ratio in mean[1:] / mean[0])
        yield f"| {logging} | {mean[0]:.4f} | {ratios} |"


def real(path: Path) -> Iterator[str]:
    """Position parameters fitted to real clicks."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "clicks.jsonl"
        log.write_text("".join(json.dumps(row) + "\n" for row in sessions(path)), encoding="utf-8")
        counts = prudent.count(prudent.Log(log))
    for model, parameter in (
        ("pbm", "examination"),
        ("pbm(smooth=1)", "examination"),
        ("dcm", "continuation"),
        ("dcm(tail=truncate)", "continuation"),
    ):
        fitted = prudent.rank(counts, model=model).manifest.results["fitted"][parameter]
        yield f"| `{model}` | {parameter} | {' '.join(f'{value:.2f}' for value in fitted)} |"


def sessions(path: Path) -> Iterator[dict[str, object]]:
    """The lists of the relevance-prediction log: a query line, then its clicks."""
    row: dict[str, object] = {}
    with gzip.open(path, "rt") as lines:
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            if fields[2] == "Q":
                if row:
                    yield row
                row = {"context": f"{fields[3]}/{fields[4]}", "items": fields[5:], "clicks": [0] * len(fields[5:])}
            elif fields[3] in row["items"]:  # type: ignore[operator]
                row["clicks"][row["items"].index(fields[3])] = 1  # type: ignore[attr-defined,index]
    yield row


def main() -> None:
    """Print all tables."""
    for kind, models in (("dcm", ["dcm(tail=truncate)", "dcm"]), ("pbm", ["pbm(counts=weighted)", "pbm"])):
        print(f"\nSimulated, users of {kind}:\n", *coverage(kind, models), sep="\n", flush=True)
    for kind in ("pbm", "dcm"):
        print(f"\nSimulated, {kind}, {' | '.join(BOUNDS)}:\n", *errors(kind, 50_000), sep="\n", flush=True)
    data = os.environ.get("PRUDENT_DATA")
    if data is None:
        sys.exit("\nPRUDENT_DATA is not set: no table on real clicks.")
    print("\nReal clicks:\n", *real(Path(data) / "yandex" / "train.tsv.gz"), sep="\n")


if __name__ == "__main__":
    main()
