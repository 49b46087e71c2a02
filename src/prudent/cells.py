"""Cells: the counts as arrays, from which click models fold their evidence."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from prudent.arrays import BoolArray, FloatArray, IntArray


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

    def per_pair(self, where: BoolArray | slice = slice(None)) -> FloatArray:
        """Impressions of each pair in the cells that `where` keeps."""
        return np.bincount(self.pair[where], self.n[where], minlength=self.pairs).astype(np.float64, copy=False)

    def lists_per_context(self) -> FloatArray:
        """Logged lists of each context: every list has exactly one first position."""
        top = self.position == 1
        lists = np.bincount(self.context[self.pair[top]], self.n[top], minlength=self.contexts)
        return lists.astype(np.float64, copy=False)


class Counted(Protocol):
    """What click models learn from: counts in files, or lists in memory."""

    @property
    def cells(self) -> Cells:
        """The histogram as arrays."""
        ...
