"""Cells: the counts as arrays, from which click models fold their evidence; and how many are enough to learn from."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Cells:
    """The counts as arrays: one entry per cell, sorted by pair, position, prev, click and more.

    A pair is one item of one context; pairs are numbered in the order of their names, and ``context`` has the number
    of the context of each pair, ascending. A pair that was never shown has no cell. The order is part of the
    contract: sums of floats over cells then come out the same to the last bit, however the log was shuffled.
    """

    context: IntArray  # one entry per pair
    pair: IntArray  # this and the rest: one entry per cell
    position: IntArray
    prev: IntArray
    click: BoolArray
    more: BoolArray
    n: FloatArray  # impressions: whole numbers, unless old days weigh less

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return len(self.context)

    @property
    def contexts(self) -> int:
        """How many contexts there are."""
        return int(self.context[-1]) + 1 if self.pairs else 0

    @property
    def positions(self) -> int:
        """Length of the longest list."""
        return int(self.position.max(initial=0))

    def only(self, contexts: BoolArray) -> "Cells":
        """The cells of some contexts, which are numbered anew."""
        kept = contexts[self.context]
        cell = kept[self.pair]
        return Cells(
            context=(np.cumsum(contexts) - 1)[self.context[kept]],
            pair=(np.cumsum(kept) - 1)[self.pair[cell]],
            position=self.position[cell],
            prev=self.prev[cell],
            click=self.click[cell],
            more=self.more[cell],
            n=self.n[cell],
        )

    def heaviest(self) -> "Cells":
        """The cells of enough contexts to learn position parameters from."""
        if self.pairs <= MOST and len(self.n) <= MOST_CELLS:
            return self
        context = self.context[self.pair]
        longest = np.zeros(self.contexts, np.int64)
        np.maximum.at(longest, context, self.position)
        pairs, cells = (np.bincount(of, minlength=self.contexts) for of in (self.context, context))
        return self.only(heaviest(np.arange(self.contexts), pairs, cells, self.lists_per_context(), longest))

    def per_pair(self, where: BoolArray | slice = slice(None)) -> FloatArray:
        """Impressions of each pair in the cells that `where` keeps."""
        return np.bincount(self.pair[where], self.n[where], minlength=self.pairs).astype(np.float64, copy=False)

    def lists_per_context(self) -> FloatArray:
        """Logged lists of each context: every list has exactly one first position."""
        top = self.position == 1
        lists = np.bincount(self.context[self.pair[top]], self.n[top], minlength=self.contexts)
        return lists.astype(np.float64, copy=False)


# --- how many are enough ----------------------------------------------------------------------------------------------

MOST = 200_000
"""Pairs to learn from: a handful of numbers need no billion rows."""
MOST_CELLS = 2_000_000
"""The same in cells, of which a pair that was shown often has many."""
FEWEST = 5
"""Contexts to learn from, however large they are: a few giant ones must not stand for all."""


def enough(pairs: IntArray, cells: IntArray, share: float = 1.0) -> int:
    """How many contexts, of so many pairs and cells each and in this order, are enough to learn from."""
    limits = ((pairs, share * MOST), (cells, share * MOST_CELLS))
    few = [np.searchsorted(np.cumsum(of), most, side="right") for of, most in limits]
    return max(int(min(few)), min(FEWEST, len(pairs)))


def heaviest(order: IntArray, pairs: IntArray, cells: IntArray, lists: FloatArray, longest: IntArray) -> BoolArray:
    """Which contexts to learn position parameters from; where they have equally many lists, the first in `order`.

    They are the same in all contexts, and are learned where there is most to learn from, half of it from contexts that
    have a list of full length, or the last positions might be missing.
    """
    order = order[np.argsort(-lists[order], kind="stable")]
    full = order[longest[order] == longest.max(initial=0)]
    full = full[: enough(pairs[full], cells[full], 0.5)]
    order = np.concatenate([full, order[~np.isin(order, full)]])
    chosen = np.zeros(len(pairs), bool)
    chosen[order[: enough(pairs[order], cells[order])]] = True
    return chosen


# --- who has cells ----------------------------------------------------------------------------------------------------


class Counted(Protocol):
    """What click models learn from: counts in files, or lists in memory."""

    @property
    def cells(self) -> Cells:
        """The histogram as arrays."""
        ...
