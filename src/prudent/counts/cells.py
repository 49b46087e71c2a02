"""Cells: the counts as arrays, from which click models fold their evidence, and the one code of a cell as a number."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.counts import sampling


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
        """The cells of these contexts, which are numbered anew."""
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

    def bootstrapped(self, random: np.random.Generator, size: float = 1.0) -> "Cells":
        """The cells of a bootstrapped log of this relative size: each count is drawn from a Poisson distribution."""
        n = random.poisson(size * self.n)
        kept = np.flatnonzero(n)
        return replace(
            self,
            pair=self.pair[kept],
            position=self.position[kept],
            prev=self.prev[kept],
            click=self.click[kept],
            more=self.more[kept],
            n=n[kept].astype(np.float64),
        )

    def without(self, contexts: BoolArray) -> "Cells":
        """The same without the cells of these contexts, whose pairs stay, as ones that were never shown."""
        left = ~contexts[self.context[self.pair]]
        return replace(
            self,
            pair=self.pair[left],
            position=self.position[left],
            prev=self.prev[left],
            click=self.click[left],
            more=self.more[left],
            n=self.n[left],
        )

    def heaviest(self) -> "Cells":
        """The cells of enough contexts to learn position parameters from."""
        if self.pairs <= sampling.MOST_PAIRS and len(self.n) <= sampling.MOST_CELLS:
            return self
        context = self.context[self.pair]
        longest = np.zeros(self.contexts, np.int64)
        np.maximum.at(longest, context, self.position)
        pairs, cells = (np.bincount(numbers, minlength=self.contexts) for numbers in (self.context, context))
        return self.only(sampling.heaviest(np.arange(self.contexts), pairs, cells, self.lists_per_context(), longest))

    def per_pair(self, where: BoolArray | slice = slice(None)) -> FloatArray:
        """Impressions of each pair in the cells that `where` keeps."""
        return np.bincount(self.pair[where], self.n[where], minlength=self.pairs).astype(np.float64, copy=False)

    def lists_per_context(self) -> FloatArray:
        """Logged lists of each context: every list has exactly one first position."""
        top = self.position == 1
        lists = np.bincount(self.context[self.pair[top]], self.n[top], minlength=self.contexts)
        return lists.astype(np.float64, copy=False)


class CellCodec(NamedTuple):
    """A cell as one number: pair, position, prev, click and more, from the highest bits to the lowest.

    So numbers in ascending order are cells in their order.
    """

    bits: int  # that a position takes

    @classmethod
    def up_to(cls, positions: int) -> "CellCodec":
        """The codec for lists of at most so many positions."""
        return cls(int(positions).bit_length())

    @property
    def span(self) -> int:
        """How many numbers one pair takes."""
        return 1 << (2 * self.bits + 2)

    def encode(self, pair: IntArray, position: IntArray, prev: IntArray, click: BoolArray, more: BoolArray) -> IntArray:
        """Arrays to numbers; the arrays are broadcast against each other."""
        return np.asarray(((((pair << self.bits) + position) << self.bits) + prev) * 4 + click * 2 + more)

    def decode(self, cell: IntArray, n: FloatArray, context: IntArray) -> Cells:
        """Cells from their sorted numbers, how often each occurred, and the context of each pair."""
        size = 1 << self.bits
        return Cells(
            context=context,
            pair=cell >> (2 * self.bits + 2),
            position=(cell >> (self.bits + 2)) & (size - 1),
            prev=(cell >> 2) & (size - 1),
            click=(cell & 2) > 0,
            more=(cell & 1) > 0,
            n=n,
        )
