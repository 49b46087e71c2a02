"""Inverse propensity scoring of items at positions."""

from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.numerics.numbering import number_within
from prudent.base.spec import check_clip
from prudent.policies.baselines.base import (
    Baseline,
    Choice,
    baselines,
    best_placed,
    clipped_rate,
    incumbent_values,
)
from prudent.policies.baselines.totals import Totals
from prudent.policies.list_arrays import Lists

_TIE = 1e-9  # relative to the largest estimate of a context: lists closer than this are ordered by impressions


@baselines.register("ip-ips")
@dataclass(frozen=True)
class ItemPositionIps(Baseline):
    """Click-through rates of items at positions, clipped, and the assignment with the largest sum (Sec. 8.2).

    ``V̂(a, k) = (1/N) · min(M, N/n_{a,k}) · clicks_{a,k}``, where a stood n_{a,k} times at position k among the N lists
    of its context; 0 where it never stood. The paper takes the best item of each position, which can repeat an item;
    this is the best list without repeats, exactly. A context with fewer items than positions fills the first of them.
    Ties, to within a billionth, go to the list whose items have more impressions at their position, then anywhere,
    then the smaller name; upper positions count slightly more.
    """

    clip: float = inf

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def choose(self, totals: Totals) -> Choice:
        """The best assignment of items to positions."""
        from scipy.optimize import linear_sum_assignment  # slow to import

        placed = totals.placed
        context = totals.context[placed.pair]
        estimate = clipped_rate(placed.clicks, placed.n, totals.logged[context], self.clip)
        pair = _within_reach(totals, estimate)
        value = np.zeros((len(pair), totals.length))
        n = np.zeros((len(pair), totals.length), np.int64)
        at = np.searchsorted(pair, placed.pair)
        at[at == len(pair)] = 0
        there = pair[at] == placed.pair
        value[at[there], placed.position[there]] = estimate[there]
        n[at[there], placed.position[there]] = placed.n[there]
        gain = value + _preference(totals, pair, value, n)
        rows, ranks = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        starts = np.flatnonzero(np.diff(totals.context[pair], prepend=-1))
        for first, last in pairwise([*starts, len(pair)]):
            position, item = linear_sum_assignment(gain[first:last, : last - first].T, maximize=True)
            rows.append(first + item)
            ranks.append(position)
        row, rank = np.concatenate(rows), np.concatenate(ranks)
        lists = Lists(pair[row], totals.context[pair[row]], rank + 1)
        best = np.maximum(best_placed(placed, estimate, totals.pairs), 0)
        return Choice(lists, value[row, rank], best, incumbent_values(totals, estimate))


def _within_reach(totals: Totals, estimate: FloatArray) -> IntArray:
    """The pairs that a best list can need, ascending: no more than K of any position.

    If a list has any other item at a position, one of the K best there is free to take its place. Where fewer than K
    items were ever shown at a position, all others are equal there, and the K most shown are enough.
    """
    row, group, first = totals.by_place
    ranked = row[np.lexsort((-estimate[row], group))]  # stable: equals stay in the order of their impressions
    return np.union1d(totals.placed.pair[ranked[first]], totals.most_shown)


def _preference(totals: Totals, pair: IntArray, value: FloatArray, n: IntArray) -> FloatArray:
    """A small bonus by impressions, so that ties are broken the same way every time."""
    context = totals.context[pair]
    start = np.flatnonzero(np.diff(context, prepend=-1))
    size = np.diff(start, append=len(pair))
    size, most = (np.repeat(column, size) for column in (size, np.maximum.reduceat(value.max(axis=1), start)))
    group = context[:, None] * totals.length + np.arange(totals.length)
    anywhere = np.broadcast_to(totals.impressions[pair, None], n.shape)
    order = np.lexsort((-anywhere.ravel(), -n.ravel(), group.ravel()))  # stable: then by pair
    place = np.empty(n.size, np.int64)
    place[order] = number_within(group.ravel()[order])
    beats = 1 - place.reshape(n.shape) / size[:, None]
    from_top = 1 - np.arange(totals.length) / (2 * totals.length)
    little = np.where(most > 0, most, 1.0) * _TIE / (2 * totals.length)
    return np.asarray(little[:, None] * from_top * ((n > 0) + beats))
