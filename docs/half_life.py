# ruff: noqa: T201 (printing is what it is for)
"""What a half-life does to a bound: `python docs/half_life.py` prints the tables of docs/daily.md, from fixed seeds.

Pairs of a context and an item are examined every day, some more often than others, and each examination is a click
with probability θ. θ is constant, or drifts: logit θ is a random walk. After the last day each bound is compared with
the θ of that day.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.base.numerics.numbering import number_within
from prudent.bounds import bounds
from prudent.click_models import Evidence, click_models
from prudent.counts.days import UNIT, weight

SEEDS = range(5)
DAYS, CONTEXTS, ITEMS = 180, 100, 20
HALF_LIFE = 14.0  # days
PRIOR = (1.2, 5.0)  # a and b of θ ~ Beta(a, b) on the first day
EXAMINATIONS = 2.0  # per day and average pair
DRIFTS = {  # the standard deviation of the daily step of logit θ
    "constant": 0.0,
    "drifts": 0.05,  # 0.19 in a half-life, 0.67 in 180 days
    "drifts fast": 0.15,  # 0.56 in a half-life, 2.0 in 180 days
}
BOUNDS = {  # and the nominal coverage of each
    f"bayes(delta=0.2, alpha={PRIOR[0]:g}, beta={PRIOR[1]:g})": "0.90",
    "hoeffding(delta=0.2)": "≥ 0.80",
    "exposure(delta=0.5)": "0.75",
}


class World(NamedTuple):
    """A simulated history: examinations and clicks of each day and pair, and θ on the last day."""

    examinations: FloatArray  # days × pairs, the newest day last
    clicks: FloatArray
    theta: FloatArray


class Measured(NamedTuple):
    """Measurements of a bound, as means over pairs and seeds."""

    covered: float  # share of the pairs whose bound is not above θ
    gap: float  # θ − bound
    error: float  # root of the mean squared error of the estimate, θ̂ − θ


def make(drift: float, seed: int) -> World:
    """A history of all pairs."""
    rng = np.random.default_rng(seed)
    pairs = CONTEXTS * ITEMS
    first = rng.beta(*PRIOR, pairs)
    steps = rng.normal(0, drift, (DAYS - 1, pairs)) if drift else np.zeros((DAYS - 1, pairs))
    walk = np.log(first / (1 - first)) + np.concatenate([np.zeros((1, pairs)), np.cumsum(steps, axis=0)])
    theta = 1 / (1 + np.exp(-walk))
    shown = np.exp(rng.normal(0, 1, pairs))  # unevenly, but independently of θ
    examinations = rng.poisson(EXAMINATIONS * shown / shown.mean(), (DAYS, pairs))
    return World(examinations.astype(float), rng.binomial(examinations, theta).astype(float), theta[-1])


def weights(half_life: float | None) -> FloatArray:
    """The weight of each day, as in `Counts.read`."""
    ages = range(DAYS - 1, -1, -1)
    return np.array([1.0 if half_life is None else weight(age, half_life) / UNIT for age in ages])


def evidence(world: World, half_life: float | None) -> Evidence:
    """n₊ = Σ w · click and n₋ = Σ w · (examination − click)."""
    each = weights(half_life)
    examinations, clicks = each @ world.examinations, each @ world.clicks
    context = np.repeat(np.arange(CONTEXTS), ITEMS)
    fitted = click_models.parse("cm").typical(1)
    return Evidence(
        context=context,
        item=number_within(context),
        positive=clicks,
        negative=examinations - clicks,
        impressions=examinations,
        fitted=fitted,
        expected=examinations,
        squares=examinations,
        discounted=examinations,
        hazard=examinations,
    )


def measure(bound: str, drift: float, half_life: float | None) -> Measured:
    """Coverage, gap and error of a bound."""
    of_seed = []
    for seed in SEEDS:
        world = make(drift, seed)
        scores = bounds.parse(bound).score(evidence(world, half_life))
        seen = world.examinations.sum(axis=0) > 0
        gap, error = (world.theta - scores.lower)[seen], (scores.mean - world.theta)[seen]
        of_seed.append((np.mean(gap >= 0), np.mean(gap), np.mean(error**2)))
    covered, gap, squared = np.mean(of_seed, axis=0)
    return Measured(float(covered), float(gap), float(np.sqrt(squared)))


def spread(half_life: float | None) -> float:
    """Variance of n₊/n for a constant θ, as a share of the θ(1 − θ)/n that a bound assumes."""
    shares = []
    for seed in SEEDS:
        world = make(0, seed)
        own = evidence(world, half_life)
        n = own.examined
        often = n > 20
        theta = world.theta[often]
        shares.append(np.mean((own.positive[often] / n[often] - theta) ** 2 / (theta * (1 - theta) / n[often])))
    return float(np.mean(shares))


def rows() -> Iterator[tuple[str, str, str, Measured, Measured]]:
    """Drift, bound, nominal coverage, and the measurements with equal weights and with a half-life."""
    for name, drift in DRIFTS.items():
        for bound, promised in BOUNDS.items():
            yield name, bound, promised, measure(bound, drift, None), measure(bound, drift, HALF_LIFE)


def table() -> str:
    """The table of docs/daily.md."""
    lines = [
        "| θ | bound | nominal | covered, all days | half-life | θ − bound, all days | half-life "
        "| error of θ̂, all days | half-life |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, bound, promised, full, decayed in rows():
        lines.append(
            f"| {name} | `{bound}` | {promised} | {full.covered:.2f} | {decayed.covered:.2f} "
            f"| {full.gap:.3f} | {decayed.gap:.3f} | {full.error:.3f} | {decayed.error:.3f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
    print(f"\nvariance as a share of what a bound assumes: {spread(None):.2f}, half-life: {spread(HALF_LIFE):.2f}")
