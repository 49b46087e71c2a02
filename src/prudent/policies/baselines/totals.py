"""Totals: every distinct list once, with its impressions and its clicks by position."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from prudent.base.arrays import IntArray
from prudent.base.numerics.numbering import number_within
from prudent.counts.lists import ListBatch
from prudent.policies.list_arrays import Lists


class Placed(NamedTuple):
    """Every item at every position where it was shown, sorted by pair and position: one entry each."""

    pair: IntArray
    position: IntArray  # from 0
    n: IntArray  # how often it was shown there
    clicks: IntArray


class ByPlace(NamedTuple):
    """The same, sorted by context and position, then by impressions there, impressions anywhere, and pair."""

    row: IntArray  # of `Placed`
    group: IntArray  # context and position as one number, ascending
    first: IntArray  # where the first K of each group are


@dataclass(frozen=True, eq=False)
class Totals:
    """What all baselines learn from: integer sums over equal lists, in an order that does not depend on the log.

    Lists are sorted by context, the most shown first, then by the numbers of their items from the top, a list before
    its continuation. Ties are broken in this order.
    """

    context: IntArray  # one entry per pair, ascending: the number of its context
    items: IntArray  # this and the rest: one row per distinct list; pairs from the top down, −1 below its end
    clicks: IntArray  # how often each of its positions was clicked
    n: IntArray  # how often the list was shown

    @property
    def pairs(self) -> int:
        """How many pairs there are, shown or not."""
        return len(self.context)

    @property
    def length(self) -> int:
        """K: positions of the longest list there may be."""
        return int(self.items.shape[1])

    @cached_property
    def list_context(self) -> IntArray:
        """The context of each list."""
        return self.context[self.items[:, 0]]

    @cached_property
    def list_clicks(self) -> IntArray:
        """Clicks on each list, at any position."""
        return np.asarray(self.clicks.sum(axis=1))

    @cached_property
    def logged(self) -> IntArray:
        """N: lists shown in each context."""
        contexts = int(self.context[-1]) + 1 if self.pairs else 0
        return np.bincount(self.list_context, self.n, minlength=contexts).astype(np.int64)

    @cached_property
    def incumbent(self) -> IntArray:
        """The list shown most often in each logged context."""
        return np.flatnonzero(np.diff(self.list_context, prepend=-1))

    def listing(self, which: IntArray) -> Lists:
        """Some of the lists, no two of one context, as lists of a policy."""
        items = self.items[which]
        row = items[items >= 0]
        return Lists(row, self.context[row], np.nonzero(items >= 0)[1] + 1)

    @cached_property
    def placed(self) -> Placed:
        """Items at their positions."""
        inside = self.items >= 0
        place = (self.items * self.length + np.arange(self.length))[inside]
        weights = np.broadcast_to(self.n[:, None], self.items.shape)[inside], self.clicks[inside]
        place, (n, clicks) = _sum_by(place, weights, self.pairs * self.length)
        return Placed(place // self.length, place % self.length, n, clicks)

    @cached_property
    def impressions(self) -> IntArray:
        """Impressions of each pair, at any position."""
        return np.bincount(self.placed.pair, self.placed.n, minlength=self.pairs).astype(np.int64)

    @cached_property
    def by_place(self) -> "ByPlace":
        """What was shown at each position of each context."""
        pair, position, n, _ = self.placed
        row = np.lexsort((pair, -self.impressions[pair], -n, position, self.context[pair]))
        group = (self.context[pair] * self.length + position)[row]
        return ByPlace(row, group, np.flatnonzero(number_within(group) < self.length))

    @cached_property
    def most_shown(self) -> IntArray:
        """The K pairs of each logged context with the most impressions."""
        pair = np.flatnonzero(self.logged[self.context])
        pair = pair[np.lexsort((-self.impressions[pair], self.context[pair]))]
        return pair[number_within(self.context[pair]) < self.length]

    @cached_property
    def positive(self) -> IntArray:
        """Clicks on each pair, at any position."""
        return np.bincount(self.placed.pair, self.placed.clicks, minlength=self.pairs).astype(np.int64)


def fold(shown: ListBatch) -> Totals:
    """Sum up equal lists."""
    which, first = _number_rows(shown)
    n = np.bincount(which, shown.n, minlength=len(first)).astype(np.int64)
    clicks = np.empty((len(first), shown.length), np.int64)
    for k in range(shown.length):
        clicks[:, k] = np.bincount(which, shown.clicks[:, k] * shown.n, minlength=len(first))
    items = shown.items[first]
    order = np.lexsort((-n, shown.context[items[:, 0]]))  # stable: equals stay in the order of their items
    return Totals(shown.context, items[order], clicks[order], n[order])


def _number_rows(shown: ListBatch) -> tuple[IntArray, IntArray]:
    """The number of each row among the distinct ones, sorted by item from the top, and one row of each number."""
    item = number_within(shown.context)
    size = int(item.max(initial=0)) + 2
    code, span = shown.items[:, 0], len(shown.context)
    for column in shown.items.T[1:]:
        if span > (1 << 62) // size:  # codes that do not fit into 64 bits are renumbered in between
            distinct, code = np.unique(code, return_inverse=True)
            span = len(distinct)
        code, span = code * size + np.where(column >= 0, item[column] + 1, 0), span * size
    _, first, which = np.unique(code, return_index=True, return_inverse=True)
    return which, first


def _sum_by(key: IntArray, weights: tuple[IntArray, ...], span: int) -> tuple[IntArray, list[IntArray]]:
    """The distinct keys, ascending, and the sums of the weights under each; integers below 2⁵³ add up exactly."""
    if span <= 16 * len(key):  # few possible keys: a table of them is cheaper than sorting those that occur
        distinct = np.flatnonzero(np.bincount(key, minlength=span))
        return distinct, [np.bincount(key, weight, minlength=span)[distinct].astype(np.int64) for weight in weights]
    distinct, which = np.unique(key, return_inverse=True)
    return distinct, [np.bincount(which, weight, minlength=len(distinct)).astype(np.int64) for weight in weights]
