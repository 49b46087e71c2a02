# ruff: noqa: T201 (printing is what it is for)
"""Ways to make the ground truth of `prudent tune`: `python docs/tuning_truths.py` prints a table of docs/comparing.md.

Logs are simulated with a known ground truth. On the lists of each, clicks are drawn again: from that truth, and from
four estimates of it that use the log alone. Each gives a curve of errors.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.bounds import DEFAULT_BOUND, bounds
from prudent.bounds.bayes import BetaPosterior, PosteriorBound, posterior
from prudent.click_models import click_models
from prudent.click_models.world import World, draw, make_world, nameless_world, pairs_of
from prudent.counts.lists import ListBatch
from prudent.evaluation.tune import BOUNDS, DELTAS, read_arms
from prudent.evaluation.tuning_simulation import Past
from prudent.research.protocol import gather
from prudent.research.sources import YandexLike

LOGS, DRAWS = 12, 3  # logs of known worlds, and draws of clicks on the lists of each
ARMS = read_arms(BOUNDS, DELTAS)
NAMES = [name for arm in ARMS for name in arm.names]
CERTAIN = 1e9  # α + β of a posterior that is all but a point
Draw = Callable[[np.random.Generator], tuple[World, ListBatch]]


def yandex_like(kind: str, quality: float) -> Draw:
    """Ten contexts of 10 to 100 items, 200 lists each."""
    source = YandexLike(kind, quality=quality, noise=0.7 * abs(quality))
    return lambda random: source.draw(200, random)


def shop(kind: str, quality: float) -> Draw:
    """Fifty contexts, 5,000 lists in all, and their items."""

    def make(random: np.random.Generator) -> tuple[World, ListBatch]:
        seed = int(random.integers(1 << 30))
        world = make_world(kind, contexts=50, length=5, quality=quality, seed=seed)
        drawn = list(draw(world, 5_000, seed + 1))
        items, clicks = (np.concatenate([getattr(chunk, name) for chunk in drawn]) for name in ("items", "clicks"))
        lists = ListBatch(pairs_of(world), items, clicks.astype(bool), np.ones(len(items), np.int64))
        seen = lists.impressions > 0
        kept = lists.made_of(seen)
        theta = world.attraction[seen]
        return nameless_world(np.bincount(kept.context), theta, theta, world.users), kept

    return make


def settings() -> Iterator[tuple[str, Draw]]:
    """Click model, and the source of logs."""
    for kind in ("pbm", "dcm"):
        yield from ((kind, yandex_like(kind, quality)) for quality in (2.0, 0.0, -1.0))
        yield from ((kind, shop(kind, quality)) for quality in (1.0, -1.0))


def certain(past: Past, theta: FloatArray) -> Past:
    """The same with this truth in place of a posterior."""
    theta = theta.clip(1e-9, 1 - 1e-9)
    return replace(past, attraction=BetaPosterior(CERTAIN * theta, CERTAIN * (1 - theta), tabulated=False))


def means(past: Past) -> FloatArray:
    """Of the posterior."""
    return past.attraction.scores(0.5)[1]


def past_of(kind: str, world: World, lists: ListBatch, prior: str) -> Past:
    """The posterior under a log; with true position parameters where the log does not identify them."""
    evidence = gather(click_models.parse(kind), world, lists)
    bound = bounds.parse(prior)
    assert isinstance(bound, PosteriorBound)
    return Past(lists, evidence.fitted, posterior(evidence, bound.prior(evidence)))


def curves(kind: str, make: Draw) -> dict[str, FloatArray]:
    """The mean errors of all settings, under the ground truth and under each way to make one."""
    random = np.random.default_rng(1)
    errors_by_truth: dict[str, list[FloatArray]] = {}
    for _ in range(LOGS):
        world, lists = make(random)
        eb, exposure = (past_of(kind, world, lists, prior) for prior in ("eb", "exposure"))
        truths = {
            "true": certain(replace(eb, fitted=replace(world.users, model=eb.fitted.model)), world.attraction),
            "posterior means, one prior for all (`eb`)": certain(eb, means(eb)),
            "posterior draws, one prior for all (`eb`)": eb,
            "posterior means, prior by exposure": certain(exposure, means(exposure)),
            "posterior draws, prior by exposure": exposure,
        }
        for name, past in truths.items():
            errors_by_truth.setdefault(name, []).extend(past.regrets(ARMS, random) for _ in range(DRAWS))
    return {name: np.mean(errors, axis=0)[:-1] for name, errors in errors_by_truth.items()}


def main() -> None:
    """Print the table."""
    default = NAMES.index(DEFAULT_BOUND)
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for kind, make in settings():
        by = curves(kind, make)
        true = by.pop("true")
        for name, curve in by.items():
            ratios = np.log(curve / curve[default]) - np.log(true / true[default])
            best = true[np.argmin(curve)] / true[default]
            size = abs(np.log(curve[default] / true[default]))
            rows.setdefault(name, []).append((float(np.sqrt(np.mean(ratios**2))), size, best))
    for name, numbers in rows.items():
        ratio, size, best = np.array(numbers).T
        print(f"| {name} | {ratio.mean():.2f} | {size.mean():.2f} | {best.max():.2f} |")


if __name__ == "__main__":
    main()
