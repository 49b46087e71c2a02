"""A test for hidden confounding: whether an item's click rate depends on the list that it came in.

If production chooses lists without regard to the user, a click on an item, given its context, its position and that
nothing above it was clicked, has one probability, whichever other items are in the list. That holds under pbm, cm, dcm
and ubm alike, so that the test needs no parameters. If production shows an item to users who like it, the rest of the
list says who they are, and the click rate depends on it.

Impressions without a click above are put into cells of the same item at the same position. Within a cell, a residual is
a click less the click rate of the cell. The statistic is the sum of squares of residual sums over impressions of a cell
that also have the same item at another position,

    T = Σ_cells Σ_j Σ_item (Σ residuals of impressions with this item at position j)²,

the score statistic of a variance of click rates between such lists. Without confounding the clicks of a cell may be
permuted, which gives the p-value; cells, their click rates and all lists stay as they are.

The size of what is found is the standard deviation of an item's click rate between whole lists, relative to the rate:
the excess of the same sum over pairs of impressions of one cell in equal lists.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.text import percent
from prudent.counts.lists import ListBatch

LEVEL = 0.05
"""The p-value up to which there is evidence of confounding."""
PERMUTATIONS = 199
MOST_IMPRESSIONS = 100_000
"""Impressions to test, of a sample of contexts with all of their lists."""
SEED = 20_260_612


@dataclass(frozen=True)
class Confounding:
    """The outcome of the test."""

    statistic: float  # T, in standard deviations above its mean without confounding
    p_value: float
    bias: float  # standard deviation of an item's click rate between lists, relative to the rate
    bias_high: float  # its upper limit, with confidence 95 %
    impressions: int  # in cells with clicks and skips

    @property
    def found(self) -> bool:
        """Whether there is evidence of confounding."""
        return self.p_value <= LEVEL

    def __str__(self) -> str:
        return (
            f"click rates of an item at a position differ between lists by {percent(self.bias, 0)} beyond chance "
            f"(p = {self.p_value:.3g})"
        )


class Impressions(NamedTuple):
    """Impressions without a click above, of cells with clicks and skips, sorted by cell."""

    row: IntArray  # of the list
    position: IntArray
    cell: IntArray  # the number of item and position
    residual: FloatArray
    rate: float  # clicks per impression

    def permuted(self, rng: np.random.Generator) -> FloatArray:
        """The residuals in any order within each cell."""
        return self.residual[np.argsort(self.cell + rng.random(len(self.cell)))]


def detect_confounding(lists: ListBatch, permutations: int = PERMUTATIONS, seed: int = SEED) -> Confounding | None:
    """The test on a log; None where no item has clicks and skips at a position."""
    rng = np.random.default_rng(seed)
    impressions = without_clicks_above(lists, rng)
    if not len(impressions.cell):
        return None
    equal = by_list(lists, impressions)
    pairs = max(1.0, float(np.sum(np.bincount(equal) ** 2.0)) - len(equal))
    return permutation_test(
        impressions,
        by_other_items(lists, impressions),
        lambda residual: sum_of_squares(residual, [equal]) / pairs,
        permutations,
        rng,
    )


def without_clicks_above(lists: ListBatch, rng: np.random.Generator) -> Impressions:
    """The impressions to test, of all contexts or of any sample of them."""
    above: IntArray = np.cumsum(lists.clicks, axis=1) - lists.clicks
    row, position = np.nonzero((lists.items >= 0) & (above == 0))
    times = lists.n[row]
    row, position = np.repeat(row, times), np.repeat(position, times)
    if len(row) > MOST_IMPRESSIONS:
        priority = rng.permutation(int(lists.context[-1]) + 1)[lists.list_context[row]]
        kept = np.sort(np.argsort(priority, kind="stable")[:MOST_IMPRESSIONS])
        row, position = row[kept], position[kept]
    clicked = lists.clicks[row, position].astype(np.float64)
    cell = number_keys(lists.items[row, position].astype(np.int64) * lists.length + position)
    size, hits = np.bincount(cell), np.bincount(cell, clicked)
    kept = np.flatnonzero(((hits > 0) & (hits < size))[cell])
    kept = kept[np.argsort(cell[kept], kind="stable")]
    residual = clicked - np.divide(hits, size, out=np.zeros(len(size)), where=size > 0)[cell]
    rate = float(clicked[kept].mean()) if len(kept) else 0.0
    return Impressions(row[kept], position[kept], number_keys(cell[kept]), residual[kept], rate)


def number_keys(keys: IntArray) -> IntArray:
    """Equal keys as equal numbers from 0."""
    return np.asarray(np.unique(keys, return_inverse=True)[1]).reshape(-1)


def by_other_items(lists: ListBatch, impressions: Impressions) -> list[IntArray]:
    """For each position, groups of impressions of one cell with the same item there."""
    groups = []
    for j in range(lists.length):
        other = lists.items[impressions.row, j].astype(np.int64)
        other = np.where(impressions.position == j, -1, other)  # its own position says nothing
        groups.append(number_keys(impressions.cell * (len(lists.context) + 1) + other + 1))
    return groups


def by_list(lists: ListBatch, impressions: Impressions) -> IntArray:
    """Groups of impressions of one cell in equal lists."""
    _, equal = np.unique(lists.items, axis=0, return_inverse=True)
    equal = np.asarray(equal).reshape(-1)
    return number_keys(impressions.cell * (int(equal.max()) + 1) + equal[impressions.row])


def sum_of_squares(residual: FloatArray, groups: Sequence[IntArray]) -> float:
    """Σ over groups of the square of the sum of residuals."""
    return float(sum(np.sum(np.bincount(group, residual) ** 2) for group in groups))


def permutation_test(
    impressions: Impressions,
    groups: Sequence[IntArray],
    variance: Callable[[FloatArray], float],
    permutations: int,
    rng: np.random.Generator,
) -> Confounding:
    """The sum over these groups against sums with permuted clicks, and the excess of this variance of residuals."""
    actual = sum_of_squares(impressions.residual, groups), variance(impressions.residual)
    drawn = np.zeros((permutations, 2))
    for row in drawn:
        residual = impressions.permuted(rng)
        row[:] = sum_of_squares(residual, groups), variance(residual)
    mean, spread = drawn.mean(axis=0), drawn.std(axis=0, ddof=1)
    # Sums over a whole cell are 0, up to the last digits, whatever the order of its clicks.
    rounding = 1e-9 * float(np.sum(impressions.residual**2))
    exceed = np.sum(drawn[:, 0] >= actual[0] - rounding)
    varies = spread[0] > rounding
    excess = actual[1] - mean[1]
    bias, high = (max(0.0, excess + z * spread[1]) ** 0.5 / impressions.rate for z in (0.0, 1.645))
    return Confounding(
        _digits((actual[0] - mean[0]) / spread[0] if varies else 0.0),
        _digits((1 + exceed) / (permutations + 1)),
        _digits(bias),
        _digits(high),
        len(impressions.cell),
    )


def _digits(value: float) -> float:
    """Nine digits, which are the same on every machine."""
    return float(f"{value:.9g}")
