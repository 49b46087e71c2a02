"""A test for hidden confounding: whether an item's click rate depends on the list that it came in.

If production chooses lists without regard to the user, a click on an item, given its context, its position and that
nothing above it was clicked, has one probability, whichever other items are in the list. That holds under pbm, cm, dcm
and ubm alike, so that the test needs no parameters. If production shows an item to users who like it, the rest of the
list says who they are, and the click rate depends on it.

Impressions without a click above are put into cells of the same item at the same position. Within a cell, a residual
is a click less the click rate of the cell. The statistic is a sum over pairs of items a and b of one context,

    T = Σ_ab (Σ_i rᵢ gᵢ)²,

over the impressions i of a, at any position, with b in the list: gᵢ is 1 where b is at the top and 1/2 where it is at
the bottom. It is the score statistic of a variance between lists of click rates whose log-odds depend on which other
items are there and how high. Without confounding the clicks of a cell may be permuted, which gives the p-value; cells,
their click rates and all lists stay as they are.

The size of what is found is the standard deviation of an item's click rate between lists, relative to the rate, by the
excess of T. Items are shown to users who like them about as much more as their click rates differ between lists, so
that clicks at places that a policy changes are overstated by about as much. A log with few clicks can hide such a bias.
What it may hide is the upper limit of that standard deviation with a one-sided confidence of 80 %, from the excess as
it is, also below 0: a log in which lists differ less than by chance hides less. A lift whose lower limit has to exceed
that much, at places that change, passes falsely in at most about 5 % of logs however strongly production is
personalised: weakly enough to be missed, strongly enough to matter, or in between (`docs/gate_worlds.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.text import percent
from prudent.counts.lists import ListBatch

LEVEL = 0.05
"""The p-value up to which there is evidence of confounding."""
HIDDEN = 0.8416
"""Standard errors of the variance between lists that a log may hide: the normal quantile of 80 %."""
UNTESTED = 1.0
"""The bias that a log may hide in which lists vary, but no impression of an item can be compared with another one, as
where every context has two lists without an item at the same position: clicks twice as high as those of other users.
"""
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
    # What the log may hide of it, whether or not it is found: the upper limit, with confidence 80 %; `UNTESTED` where
    # nothing can be compared.
    hidden: float
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
    neighbours = find_neighbours(lists, impressions)
    scale = neighbours.scale(impressions.cell)

    def measure(residual: FloatArray) -> tuple[float, float]:
        total = neighbours.sum_of_squares(residual)
        return total, total * scale

    test = permutation_test(impressions, measure, permutations, rng)
    return replace(test, hidden=UNTESTED) if not scale and lists_vary(lists) else test


def lists_vary(lists: ListBatch) -> bool:
    """Whether some context shows other items, or in another order, at times; else nothing is chosen by the user."""
    _, first, number = np.unique(lists.list_context, return_index=True, return_inverse=True)
    return bool(np.any(lists.items != lists.items[first[number.reshape(-1)]]))


def without_clicks_above(lists: ListBatch, rng: np.random.Generator) -> Impressions:
    """The impressions to test, of all contexts or of any sample of them."""
    last = np.where(lists.clicks.any(axis=1), lists.clicks.argmax(axis=1), lists.length)  # from which on it is above
    times = lists.n * np.minimum(last + 1, (lists.items >= 0).sum(axis=1))
    priority, some = np.zeros(len(times), np.int64), np.arange(len(times))
    if times.sum() > MOST_IMPRESSIONS:
        priority = rng.permutation(int(lists.context[-1]) + 1)[lists.list_context]
        order = np.argsort(priority, kind="stable")
        upto = np.cumsum(times[order])
        some = np.sort(order[: np.searchsorted(upto, MOST_IMPRESSIONS) + 1])
    here = (lists.items[some] >= 0) & (np.arange(lists.length) <= last[some, None])
    row, position = np.nonzero(here)
    row = some[row]
    row, position = np.repeat(row, lists.n[row]), np.repeat(position, lists.n[row])
    kept = np.sort(np.argsort(priority[row], kind="stable")[:MOST_IMPRESSIONS])
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


class Neighbours(NamedTuple):
    """The other items of the lists that impressions came in: one entry for each of both."""

    impression: IntArray
    pair: IntArray  # the number of item and other item
    height: FloatArray  # g: how high the other item is

    def sum_of_squares(self, residual: FloatArray) -> float:
        """T."""
        return float(np.sum(np.bincount(self.pair, residual[self.impression] * self.height) ** 2))

    def scale(self, cell: IntArray) -> float:
        """What T is multiplied with to be a variance of click rates between lists: Σv / nΣv².

        The v of a pair is the sum of squares of g, centred in each cell, where it is 0 for lists without the other
        item. If click rates have the slope s on g, T is about s²Σv², and their variance is s²Σv/n.
        """
        cells = cell[self.impression]
        keys, both = np.unique(self.pair * (int(cell.max()) + 1) + cells, return_inverse=True)
        sums, squares = (np.bincount(both.reshape(-1), self.height**power) for power in (1, 2))
        size = np.bincount(cell)
        centred = squares - sums**2 / size[keys % (int(cell.max()) + 1)]
        v = np.bincount(keys // (int(cell.max()) + 1), centred)
        return float(v.sum() / (len(cell) * np.sum(v**2))) if v.sum() > 1e-9 * len(cell) else 0.0


def find_neighbours(lists: ListBatch, impressions: Impressions) -> Neighbours:
    """Every other item of the list of every impression."""
    height = 1 - np.arange(lists.length) / max(1, 2 * (lists.length - 1))
    item = lists.items[impressions.row, impressions.position].astype(np.int64)
    parts = []
    for j in range(lists.length):
        other = lists.items[impressions.row, j].astype(np.int64)
        there = np.flatnonzero((impressions.position != j) & (other >= 0))
        parts.append((there, item[there] * len(lists.context) + other[there], np.full(len(there), height[j])))
    impression, pair, heights = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Neighbours(impression, number_keys(pair), heights)


def sum_of_squares(residual: FloatArray, group: IntArray) -> float:
    """Σ over groups of the square of the sum of residuals."""
    return float(np.sum(np.bincount(group, residual) ** 2))


def permutation_test(
    impressions: Impressions,
    measure: Callable[[FloatArray], tuple[float, float]],
    permutations: int,
    rng: np.random.Generator,
) -> Confounding:
    """A statistic and a variance of click rates, measured on residuals, against those of permuted clicks."""
    actual = measure(impressions.residual)
    drawn = np.array([measure(impressions.permuted(rng)) for _ in range(permutations)])
    mean, spread = drawn.mean(axis=0), drawn.std(axis=0, ddof=1)
    # Sums over a whole cell are 0, up to the last digits, whatever the order of its clicks.
    rounding = 1e-9 * float(np.sum(impressions.residual**2))
    exceed = np.sum(drawn[:, 0] >= actual[0] - rounding)
    varies = spread[0] > rounding
    excess = actual[1] - mean[1]
    variances = (excess, max(0.0, excess) + 1.645 * spread[1], excess + HIDDEN * spread[1])
    bias, high, hidden = (max(0.0, variance) ** 0.5 / impressions.rate for variance in variances)
    return Confounding(
        _digits((actual[0] - mean[0]) / spread[0] if varies else 0.0),
        _digits((1 + exceed) / (permutations + 1)),
        _digits(bias),
        _digits(high),
        _digits(hidden),
        len(impressions.cell),
    )


def _digits(value: float) -> float:
    """Nine digits, which are the same on every machine."""
    return float(f"{value:.9g}")
