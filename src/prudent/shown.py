"""Shown: whole lists as arrays, for what counts have forgotten: propensities of lists, and simulations in memory."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prudent.arrays import BoolArray, IntArray
from prudent.cells import Cells


@dataclass(frozen=True, eq=False)
class Shown:
    """Lists as they were shown and clicked, one row each; equal lists may share one row with a larger ``n``.

    An item is the number of its pair (one item of one context), so it also says which context it belongs to.
    """

    context: IntArray  # one entry per pair, ascending: the number of its context
    items: IntArray  # this and the rest: one row per list; pairs from the top down, −1 below the end of a short list
    clicks: BoolArray
    n: IntArray  # how often that list was shown and clicked in that way

    @property
    def length(self) -> int:
        """K: positions of the longest list there may be."""
        return int(self.items.shape[1])

    @property
    def list_context(self) -> IntArray:
        """The context of each list."""
        return self.context[self.items[:, 0]]

    @property
    def impressions(self) -> IntArray:
        """How often each pair was shown."""
        inside = self.items >= 0
        weight = np.broadcast_to(self.n[:, None], self.items.shape)[inside]
        return np.bincount(self.items[inside], weight, minlength=len(self.context)).astype(np.int64)

    def made_of(self, kept: BoolArray) -> "Shown":
        """The lists made of these pairs alone; pairs and contexts are numbered anew."""
        rows = np.append(kept, True)[self.items].all(axis=1)
        number = np.append(np.cumsum(kept) - 1, -1)  # −1, below the end of a short list, stays −1
        _, context = np.unique(self.context[kept], return_inverse=True)
        return Shown(context, number[self.items[rows]], self.clicks[rows], self.n[rows])

    @cached_property
    def cells(self) -> Cells:
        """The histogram that an engine would make of these lists, cell for cell."""
        place = np.arange(1, self.length + 1)
        clicked_at = np.where(self.clicks, place, 0)
        upto = np.maximum.accumulate(clicked_at, axis=1)
        prev = np.zeros_like(upto)
        prev[:, 1:] = upto[:, :-1]
        more = upto[:, -1:] > place
        inside = self.items >= 0
        size = self.length + 1
        # A cell as one number, pair first and more last: sorting it sorts the cells.
        cell = ((self.items * size + place) * size + prev) * 4 + self.clicks * 2 + more
        cell, weight = cell[inside], np.broadcast_to(self.n[:, None], cell.shape)[inside]
        span = len(self.context) * size * size * 4
        if span <= 16 * cell.size:  # few possible cells: a table of them is cheaper than sorting what occurs
            table = np.bincount(cell, weight, minlength=span)
            found = np.flatnonzero(table)
            n = table[found].astype(np.float64, copy=False)
        else:
            found, which = np.unique(cell, return_inverse=True)
            n = np.bincount(which, weight).astype(np.float64, copy=False)
        return Cells(
            context=self.context,
            pair=found // (4 * size * size),
            position=found // (4 * size) % size,
            prev=found // 4 % size,
            click=(found & 2) > 0,
            more=(found & 1) > 0,
            n=n,
        )
