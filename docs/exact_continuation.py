# ruff: noqa: T201 (printing is what it is for)
"""`dcm` by its exact likelihood, against what the product does: `python docs/exact_continuation.py` prints two tables.

The first is about λ: the ratio of click rates against expectation-maximisation on whole lists, with the stopping
position summed out and attraction under its fitted Beta prior. The second is about examinations below the last click at
the true λ: the other items of a tail by their mean over lists, from cells, against the very items of each list.
"""

import warnings
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import PrudentWarning
from prudent.base.numerics.random_effects import shrink_to_mean
from prudent.base.numerics.squarem import fixed_point
from prudent.bounds import bounds
from prudent.click_models import DependentClick, whole_lists
from prudent.click_models.dependent_click import FittedDependentClick
from prudent.click_models.evidence import make_evidence
from prudent.click_models.reading import Onward
from prudent.click_models.whole_lists import Nuisance, Stops, WholeLists, beta_variance, prior_of, standard_errors
from prudent.click_models.world import World, clicked, draw, make_world
from prudent.counts.lists import ListBatch

LENGTH = 10
SAME = f"dcm(continuation=[{', '.join(['0.9'] * LENGTH)}])"
LONG_TAIL = {"contexts": 20_000, "items": (15, 20), "zipf": 0.0}
WORLDS: dict[str, tuple[str, int, int, dict[str, Any]]] = {  # users, lists, logs and settings
    "300 contexts": (SAME, 40_000, 10, {"contexts": 300}),
    "300 contexts, λ from .65 to .90": ("dcm", 40_000, 10, {"contexts": 300}),
    "300 contexts, 400,000 lists": (SAME, 400_000, 4, {"contexts": 300}),
    "3,000 contexts": (SAME, 40_000, 10, {**LONG_TAIL, "contexts": 3_000}),
    "20,000 contexts": (SAME, 40_000, 10, LONG_TAIL),
    "20,000 contexts, items in random order": (SAME, 40_000, 10, {**LONG_TAIL, "quality": 0.0}),
    "5,000 contexts, mean θ .024": (SAME, 40_000, 10, {"contexts": 5_000, "items": (15, 30), "attraction": (0.5, 20)}),
}
BOUND, OFTEN = "exposure(delta=0.1)", 20


def simulate(users: str, lists: int, seed: int, **settings: Any) -> tuple[World, ListBatch]:
    world = make_world(users, length=LENGTH, seed=seed, **settings)
    items = np.concatenate([chunk.items for chunk in draw(world, lists, seed=seed + 1_000)])
    return world, clicked(world, items, np.random.default_rng(seed))


# --- the exact likelihood ---------------------------------------------------------------------------------------------


class Exact:
    """Expectation-maximisation of the exact likelihood."""

    def __init__(self, lists: ListBatch) -> None:
        self.lists = whole = WholeLists(lists)
        self.positions = whole.clicks.shape[1]
        self.place = whole.last[whole.end_rows]
        self.followed = (whole.n[:, None] * whole.followed).sum(axis=0)
        self.could = self.followed + self.at_last(whole.end_n * whole.end_more)

    def at_last(self, values: FloatArray) -> FloatArray:
        """Sums over last clicks, by position."""
        return np.bincount(self.place, values, minlength=self.positions).astype(float)

    def expect(self, theta: FloatArray, continuation: FloatArray) -> tuple[Stops, FloatArray]:
        """Where users stopped, and P(they went on after the last click)."""
        onward = Onward(np.ones(self.positions), continuation)
        stops = self.lists.stops(self.lists.places(theta), onward)
        rows = self.lists.end_rows
        return stops, continuation[self.place] * stops.below[rows] / stops.silent[rows]

    def attraction(self, stops: Stops, prior: tuple[FloatArray, FloatArray]) -> FloatArray:
        """Clicks over examinations, with pseudo-counts."""
        lists = self.lists
        examined = lists.surely_of + lists.read_of(stops)
        return np.asarray((lists.clicks_of + prior[0]) / (examined + prior[0] + prior[1]))

    def fit(self) -> FloatArray:
        """λ of all positions but the last, shrunken to their mean as those of the product are."""
        theta, continuation, prior = self.solve()
        return shrink_to_mean(continuation[:-1], self.errors(theta, continuation, prior) ** 2, 0.5)

    def solve(self) -> tuple[FloatArray, FloatArray, tuple[float, float]]:
        """θ, λ and the prior of θ; half a click of either kind at each position keeps λ off 0 and 1."""
        lists, pairs = self.lists, self.lists.pairs
        prior = prior_of(lists.clicks_of, lists.surely_of - lists.clicks_of)
        start = (lists.clicks_of + prior[0]) / (lists.surely_of + sum(prior))
        at = np.concatenate([start, np.full(self.positions, 0.8)])
        for tolerance in whole_lists.TOLERANCES:

            def step(flat: FloatArray, prior: tuple[float, float] = prior) -> FloatArray:
                stops, went_on = self.expect(flat[:pairs], flat[pairs:])
                on = self.followed + self.at_last(lists.end_n * lists.end_more * went_on)
                theta = self.attraction(stops, (np.array(prior[0]), np.array(prior[1])))
                return np.concatenate([theta, (on + 0.5) / (self.could + 1)])

            used = prior
            at, _ = fixed_point(step, at, tolerance, np.zeros(1, np.int64), 400)
            stops, _ = self.expect(at[:pairs], at[pairs:])
            prior = prior_of(lists.clicks_of, lists.surely_of - lists.clicks_of + lists.read_of(stops))
        return at[:pairs], at[pairs:], used

    def errors(self, theta: FloatArray, continuation: FloatArray, prior: tuple[float, float]) -> FloatArray:
        """Standard errors of λ, from the observed information."""
        lists = self.lists
        stops, went_on = self.expect(theta, continuation)
        of_place = lists.places(theta)
        skipped = (lists.above & ~lists.clicks) | lists.tail
        read = np.where(lists.tail, stops.read, 1.0)
        by_theta = np.where(
            lists.clicks, 1 / np.maximum(of_place, 1e-9), np.where(skipped, -read / (1 - of_place), 0.0)
        )
        scores = []
        for k, chance in enumerate(continuation[:-1].clip(1e-6, 1 - 1e-6)):
            slope = lists.followed[:, k] / chance
            here = (self.place == k) & lists.end_more
            slope[lists.end_rows[here]] = went_on[here] / chance - (1 - went_on[here]) / (1 - chance)
            scores.append(slope)
        return standard_errors(lists, scores, [Nuisance(by_theta, beta_variance(*prior))])

    def examined(self, continuation: FloatArray, context: IntArray) -> FloatArray:
        """Examinations of every pair at this λ, with the pseudo-examinations of `Tails.smoothed`."""
        lists = self.lists
        clicks = np.bincount(context, lists.clicks_of) + 1

        def smoothed(examined: FloatArray) -> tuple[FloatArray, FloatArray]:
            rate = (clicks / (np.bincount(context, examined) + 2))[context]
            return 2 * rate, 2 * (1 - rate)

        def step(theta: FloatArray) -> FloatArray:
            stops, _ = self.expect(theta, continuation)
            return self.attraction(stops, smoothed(lists.surely_of + lists.read_of(stops)))

        start = self.lists.clicks_of / (lists.surely_of + 2)
        theta, _ = fixed_point(step, start, 1e-7, np.zeros(1, np.int64), 400)
        return lists.surely_of + lists.read_of(self.expect(theta, continuation)[0])


# --- λ ----------------------------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """λ̂ − λ of every position but the last, and CPU seconds."""

    error: FloatArray
    seconds: float


def by_ratio(lists: ListBatch) -> FloatArray:
    return DependentClick().fit(lists.cells, LENGTH).continuation[:-1]


def by_likelihood(lists: ListBatch) -> FloatArray:
    return Exact(lists).fit()


def measure(fit: Callable[[ListBatch], FloatArray], world: World, lists: ListBatch) -> Found:
    assert isinstance(world.users, FittedDependentClick)
    _ = lists.cells
    started = process_time()
    continuation = fit(lists)
    return Found(continuation - world.users.continuation[:-1], process_time() - started)


def rows_of_continuation() -> Iterator[str]:
    for name, (users, lists, logs, settings) in WORLDS.items():
        found: dict[str, list[Found]] = {"ratio": [], "exact": []}
        for seed in range(logs):
            world, log = simulate(users, lists, seed, **settings)
            found["ratio"].append(measure(by_ratio, world, log))
            found["exact"].append(measure(by_likelihood, world, log))
        for method, fits in found.items():
            errors = np.array([one.error for one in fits])
            means = errors.mean(axis=1)
            bias, its_error = means.mean(), means.std(ddof=1) / logs**0.5
            numbers = (
                f"{bias:+.4f} ± {its_error:.4f}".replace("-", "−"),
                f"{np.mean(errors**2) ** 0.5:.4f}",
                f"{np.mean([one.seconds for one in fits]):.3f}",
            )
            yield f"| {name} | {method} | {' | '.join(numbers)} |"


# --- examinations -----------------------------------------------------------------------------------------------------


def row_of_examinations(name: str, logs: int) -> str:
    """From cells and from whole lists: errors of θ̂, 5 % quantiles above the truth, and CPU seconds."""
    users, lists, _, settings = WORLDS[name]
    found: dict[str, list[tuple[float, float, float]]] = {"cells": [], "whole lists": []}
    apart = []
    for seed in range(logs):
        world, log = simulate(users, lists, seed, **settings)
        assert isinstance(world.users, FittedDependentClick)
        cells, continuation = log.cells, world.users.continuation
        started = process_time()
        ours = world.users.evidence(cells)
        seconds = [process_time() - started]
        started = process_time()
        exact = Exact(log)
        shown = np.flatnonzero(cells.per_pair() > 0)
        _, context = np.unique(cells.context[shown], return_inverse=True)
        examined = np.zeros(cells.pairs)
        examined[shown] = exact.examined(continuation, context)
        seconds.append(process_time() - started)
        theirs = make_evidence(world.users, cells, ours.positive, examined - ours.positive, tries=cells.per_pair())
        often = ours.impressions >= OFTEN
        apart.append(np.mean(np.abs(examined / np.maximum(ours.examined, 1e-9) - 1)[often]))
        for method, evidence, took in zip(found, (ours, theirs), seconds, strict=True):
            theta = (evidence.positive + 0.5) / (evidence.examined + 1)
            above = bounds.parse(BOUND).score(evidence).lower > world.attraction
            error = float(np.mean((theta - world.attraction)[often] ** 2) ** 0.5)
            found[method].append((error, float(above[often].mean()), took))
    cells_row, exact_row = (np.mean(rows, axis=0) for rows in found.values())
    numbers = [f"{cells_row[0]:.5f} | {exact_row[0]:.5f}", f"{100 * cells_row[1]:.1f} | {100 * exact_row[1]:.1f}"]
    return (
        f"| {name} | {100 * np.mean(apart):.2f} % | {' | '.join(numbers)} | {cells_row[2]:.2f} | {exact_row[2]:.2f} |"
    )


def main() -> None:
    """Print the tables."""
    warnings.simplefilter("ignore", PrudentWarning)
    vars(whole_lists)["MOST_PLACES"] = 10_000_000  # all lists, and not a sample of them
    print("| log | λ by | bias | root mean squared error | CPU s |\n|---|---|---|---|---|")
    for row in rows_of_continuation():
        print(row, flush=True)
    print("\n| log | examinations apart | error of θ̂ | | 5 % quantiles above | | CPU s | |")
    print(f"|{'---|' * 8}")
    for name in ("300 contexts", "3,000 contexts", "5,000 contexts, mean θ .024"):
        print(row_of_examinations(name, logs=5), flush=True)


if __name__ == "__main__":
    main()
