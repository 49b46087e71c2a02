# ruff: noqa: T201 (printing is what it is for)
"""How often the 95 % interval of `Judgments.ndcg` covers the true nDCG, in simulated worlds.

    python docs/ndcg_coverage.py [LOGS [WORLD [MODEL]]]

Every log is drawn from a world of its own, judged and ranked under the click model of its users, in memory. The true
nDCG of the lists has grades from true attraction. Width is the mean of intervals; bias is that of the estimate.
"""

import sys
import warnings
from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import PrudentWarning
from prudent.bounds import bounds
from prudent.click_models import Evidence, click_models
from prudent.click_models.world import draw, make_world, pairs_of
from prudent.counts.lists import ListBatch
from prudent.policies.best_lists import best_lists
from prudent.policies.judgments.grades import log_thresholds
from prudent.policies.judgments.judge import JUDGING_BOUND
from prudent.policies.judgments.ndcg import Judged, gains, mean_ndcg, ndcg_interval

K, DRAWS = 5, 500
WORLDS: Mapping[str, Mapping[str, Any]] = {
    "small": {"contexts": 15, "items": (6, 12), "length": 5, "lists": 4_000},
    "large": {"contexts": 40, "items": (8, 20), "length": 6, "lists": 10_000},
    "good": {"contexts": 30, "items": (6, 15), "length": 5, "lists": 6_000, "quality": 2.0},
    "uninformative": {"contexts": 15, "items": (6, 12), "length": 5, "lists": 4_000, "quality": 0.0},
}
MODELS = ("cm", "pbm")
BOUNDS = ("anchored(delta=0.05)", JUDGING_BOUND)


class Interval(NamedTuple):
    """The interval of one log, and the truth."""

    estimate: float
    lower: float
    upper: float
    truth: float


def intervals(world: str, model: str, seed: int) -> dict[str, Interval]:
    """By each bound."""
    settings = dict(WORLDS[world])
    lists = settings.pop("lists")
    truth = make_world(model, **settings, seed=seed)
    drawn = next(draw(truth, lists, seed, lists))
    log = ListBatch(pairs_of(truth), drawn.items, drawn.clicks.astype(bool), np.ones(lists, np.int64))
    shown = log.impressions > 0
    log = log.made_of(shown)
    evidence = click_models.parse(model).fit(log.cells, truth.length, log).evidence(log.cells).ranked
    rank = ranks(evidence, truth.length)
    return {bound: interval(evidence, rank, bound, truth.attraction[shown]) for bound in BOUNDS}


def ranks(evidence: Evidence, length: int) -> IntArray:
    """The rank of each item in the list of the policy; 0 for none."""
    lists = best_lists(evidence, bounds.parse("anchored").score(evidence), length)
    rank = np.zeros(len(evidence.context), np.int64)
    rank[lists.row] = lists.rank
    return rank


def interval(evidence: Evidence, rank: IntArray, bound: str, attraction: FloatArray) -> Interval:
    """As `judge` and `Judgments.ndcg` have it, and the nDCG by true attraction."""
    scores = bounds.parse(bound).score(evidence)
    rows = np.arange(len(rank))
    thresholds = log_thresholds(scores.mean[evidence.examined > 0])
    assert scores.deviation is not None
    shared = np.zeros((len(rows), 0)) if scores.shared is None else scores.shared(rows)
    judged = Judged(evidence.context, rank, scores.mean, scores.deviation(rows), shared)
    found = ndcg_interval(judged, 0, thresholds, K, 0.95, DRAWS, 0)
    truth = mean_ndcg(evidence.context, rank, gains(attraction, thresholds), K)
    return Interval(found.estimate, found.lower, found.upper, truth)


def row(world: str, model: str, bound: str, intervals: list[Interval]) -> str:
    """One row of the table."""
    estimate, lower, upper, truth = np.array(intervals).T
    covered = np.mean((lower <= truth) & (truth <= upper))
    error = np.sqrt(covered * (1 - covered) / len(intervals))
    return (
        f"| {world} | `{model}` | `{bound}` | {100 * covered:.1f} ± {100 * error:.1f} % | {np.sum(truth > upper)} | "
        f"{np.sum(truth < lower)} | {np.mean(upper - lower):.4f} | {np.mean(estimate - truth):+.4f} |"
    )


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore", PrudentWarning)
    logs = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    print(f"{logs} logs each, nDCG@{K}\n")
    print("| world | clicks | bound | covered | truth above | truth below | width | bias |")
    print("|---|---|---|---|---|---|---|---|")
    for world, model in product(sys.argv[2:3] or WORLDS, sys.argv[3:4] or MODELS):
        each = [intervals(world, model, seed) for seed in range(logs)]
        for bound in BOUNDS:
            print(row(world, model, bound, [one[bound] for one in each]), flush=True)


if __name__ == "__main__":
    main()
