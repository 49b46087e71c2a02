"""Confounding by a column of the log: whether click rates depend on it, and by how much that could bias them.

The clicks of an item at a position, where nothing above was clicked, are one cell (`prudent.evaluation.confounding`).
The test is the same with other groups: impressions of one cell with the same value of the column. Values may be of any
number; one that occurs once weighs nothing.

Click rates that depend on the column bias no estimate unless production also shows other lists to other values. In a
cell c with the share s(v) of the value v and its click rate r(v), where the context's impressions at that position have
the share w(v), the click rate of all users is Σ w(v)r(v), and the logged one is off by

    b = Σ_v (s(v) − w(v)) r(v).

A value that the cell does not have is taken to have the cell's rate. The size is the root mean square of b over
impressions, relative to the click rate, less what permuted clicks give.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.text import percent
from prudent.counts.lists import ListBatch
from prudent.evaluation.confounding import (
    LEVEL,
    PERMUTATIONS,
    SEED,
    Confounding,
    Impressions,
    number_keys,
    permutation_test,
    sum_of_squares,
    without_clicks_above,
)

NEGLIGIBLE = 0.01
"""A bias, relative to the click rate, that decides nothing."""


class SegmentedLists(NamedTuple):
    """Lists, and the values of their segments as numbers: one row per list, one column per segment."""

    lists: ListBatch
    values: IntArray


@dataclass(frozen=True)
class SegmentTest:
    """The outcome of the test for one column."""

    segment: str  # its name
    values: int  # how many it has, a missing one included
    test: Confounding | None  # None where no item has clicks and skips at a position

    @property
    def found(self) -> bool:
        """Whether click rates depend on the column, and could be biased by more than a negligible amount."""
        return self.test is not None and self.test.p_value <= LEVEL and self.test.bias_high > NEGLIGIBLE

    def __str__(self) -> str:
        if self.test is None or self.values == 1:
            return f"nothing to compare between values of {self.segment!r}"
        if self.test.statistic == 0:
            return f"values of {self.segment!r} hardly recur, so that there is nothing to compare: group them"
        depend = "depend" if self.test.p_value <= LEVEL else "do not depend"
        return (
            f"click rates of an item at a position {depend} on {self.segment!r} (p = {self.test.p_value:.3g}), which "
            f"biases them by {percent(self.test.bias)}, at most {percent(self.test.bias_high)}"
        )


def detect_by_segments(segmented: SegmentedLists, names: Mapping[str, str]) -> tuple[SegmentTest, ...]:
    """The test for every segment; `names` are those of their columns."""
    return tuple(
        SegmentTest(name, len(np.unique(values)), detect_by_segment(segmented.lists, values))
        for name, values in zip(names.values(), segmented.values.T, strict=True)
    )


def detect_by_segment(
    lists: ListBatch, values: IntArray, permutations: int = PERMUTATIONS, seed: int = SEED
) -> Confounding | None:
    """The test for a column, whose values are numbers from 0, one per list."""
    rng = np.random.default_rng(seed)
    impressions = without_clicks_above(lists, rng)
    if not len(impressions.cell):
        return None
    size = np.bincount(impressions.cell)
    groups, excess = by_value(values, impressions), excess_share(lists, values, impressions)

    def measure(residual: FloatArray) -> tuple[float, float]:
        bias = np.bincount(impressions.cell, residual * excess)  # times the size of the cell
        return sum_of_squares(residual, groups), float(np.sum(bias**2 / size) / size.sum())

    return permutation_test(impressions, measure, permutations, rng)


def by_value(values: IntArray, impressions: Impressions) -> IntArray:
    """Groups of impressions of one cell with the same value."""
    return number_keys(impressions.cell * (int(values.max()) + 1) + values[impressions.row])


def excess_share(lists: ListBatch, values: IntArray, impressions: Impressions) -> FloatArray:
    """For every impression 1 − w(v)/s(v), so that the mean of its products with clicks in a cell is b."""
    # Σ_v (s(v) − w(v)) r(v) is the sum over impressions of y · (s(v) − w(v))/(n s(v)).
    span = int(values.max()) + 1
    above: IntArray = np.cumsum(lists.clicks, axis=1) - lists.clicks
    row, position = np.nonzero((lists.items >= 0) & (above == 0))
    place = lists.list_context[row].astype(np.int64) * lists.length + position
    own_place = lists.list_context[impressions.row].astype(np.int64) * lists.length + impressions.position
    keys, weight = np.unique(place * span + values[row], return_inverse=True)
    there = np.bincount(weight.reshape(-1), lists.n[row])
    total = np.bincount(place, lists.n[row])
    share = there[np.searchsorted(keys, own_place * span + values[impressions.row])] / total[own_place]
    group = by_value(values, impressions)
    own_share = np.bincount(group)[group] / np.bincount(impressions.cell)[impressions.cell]
    return np.asarray(1.0 - share / own_share)
