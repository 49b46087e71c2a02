"""Cells: the counts as arrays, from which click models fold their evidence, and the one code of a cell as a number."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.counts import sampling
from prudent.engines import kernel
from prudent.storage.run import LONGEST, is_single


class Codes(NamedTuple):
    """Ways of being shown, one entry each: what a click model weighs."""

    position: IntArray
    prev: IntArray
    click: BoolArray
    more: BoolArray


@dataclass(frozen=True)
class Cells:
    """The counts as arrays: one entry per cell, sorted by pair, position, prev, click and more.

    A pair is one item of one context; pairs are numbered in the order of their names, and ``context`` has the number
    of the context of each pair, ascending. A pair that was never shown has no cell. The order is part of the
    contract: sums of floats over cells then come out the same to the last bit, however the log was shuffled.
    """

    context: IntArray  # one entry per pair
    size: NDArray[np.uint32]  # of each pair: its cells
    code: NDArray[np.uint32]  # of each cell, as in `prudent.storage.run`
    n: FloatArray  # of each cell: impressions, whole numbers unless old days weigh less
    rewards: FloatArray | None = None  # of each pair: Σ of the rewards of its clicks, and of their squares

    @classmethod
    def of_columns(
        cls,
        context: IntArray,
        pair: IntArray,
        position: IntArray,
        prev: IntArray,
        click: BoolArray,
        more: BoolArray,
        n: FloatArray,
    ) -> "Cells":
        """From the context of each pair, and an array for each property of cells."""
        size = np.bincount(pair, minlength=len(context)).astype(np.uint32)
        code = position.astype(np.uint32) << 16 | prev.astype(np.uint32) << 2 | click.astype(np.uint32) << 1 | more
        return cls(context, size, code.astype(np.uint32, copy=False), n)

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return len(self.context)

    @property
    def contexts(self) -> int:
        """How many contexts there are."""
        return int(self.context[-1]) + 1 if self.pairs else 0

    @cached_property
    def positions(self) -> int:
        """Length of the longest list."""
        return int(self.code.max(initial=0)) >> 16

    @cached_property
    def single(self) -> bool:
        """Whether these are single impressions, of which it is not known what was shown and clicked above."""
        return bool(is_single(self.code[:1]).any())  # counts of both cannot be added

    @cached_property
    def pair(self) -> IntArray:
        """The pair of each cell."""
        return np.repeat(np.arange(self.pairs), self.size)

    @cached_property
    def position(self) -> IntArray:
        """The position of each cell."""
        return (self.code >> 16).astype(np.int64)

    @cached_property
    def prev(self) -> IntArray:
        """The position of the last click above, or 0."""
        return (self.code >> 2 & LONGEST).astype(np.int64)

    @cached_property
    def click(self) -> BoolArray:
        """Whether the item was clicked."""
        return (self.code & 2) > 0

    @cached_property
    def more(self) -> BoolArray:
        """Whether there is a click below."""
        return (self.code & 1) > 0

    @cached_property
    def codes(self) -> Codes:
        """The ways of being shown that weights are for: all those that occur, and possibly others."""
        code = self._weighed[1]
        return Codes((code >> 16), code >> 2 & LONGEST, (code & 2) > 0, (code & 1) > 0)

    @cached_property
    def _weighed(self) -> tuple[NDArray[np.uint32], IntArray, int]:
        """For `kernel.fold`, the codes of cells, what stands at each place of a table, and its stride."""
        stride = 4 * (self.positions + 1)
        if self.positions <= _LONGEST_TABLE:
            position, rest = np.divmod(np.arange((self.positions + 1) * stride), stride)
            # The last click is above. Of single impressions, `prev` is the position.
            possible = (position == rest >> 2) & (position > 0) if self.single else position > rest >> 2
            return self.code, np.where(possible, position << 16 | rest, 1 << 16), stride
        codes, number = np.unique(self.code, return_inverse=True)
        return number.astype(np.uint32), codes.astype(np.int64), 1 << 16

    def fold(self, *weights: FloatArray | BoolArray) -> list[FloatArray]:
        """Σ weight · n of each pair, in the order of its cells; each of the weights has one for each of `codes`."""
        code, _, stride = self._weighed
        return kernel.fold(self.size, code, self.n, weights, stride)

    def per_context(self, *weights: FloatArray | BoolArray) -> list[FloatArray]:
        """The same of each context."""
        code, _, stride = self._weighed
        size = np.bincount(self.context, self.size, minlength=self.contexts).astype(np.uint32)
        return kernel.fold(size, code, self.n, weights, stride)

    def by_code(self, values: NDArray[Any], cells: IntArray) -> NDArray[Any]:
        """Of some cells, the value that their code has; the values are those of `codes`."""
        code, _, stride = self._weighed
        some = code[cells]
        return np.asarray(values[(some >> 16) * np.uint32(stride) + (some & 65535)])

    def only(self, contexts: BoolArray) -> "Cells":
        """The cells of these contexts, which are numbered anew."""
        kept = contexts[self.context]
        cell = np.repeat(kept, self.size)
        rewards = None if self.rewards is None else self.rewards[kept]
        context = (np.cumsum(contexts) - 1)[self.context[kept]]
        return Cells(context, self.size[kept], self.code[cell], self.n[cell], rewards)

    def parts(self, pairs: int) -> Iterator["Cells"]:
        """The cells of consecutive contexts, about so many pairs at a time; contexts are numbered anew."""
        if not self.pairs:
            yield self
            return
        starts = np.flatnonzero(np.diff(self.context, prepend=-1))
        some = np.searchsorted(starts, np.arange(0, int(starts[-1]) + 1, pairs))
        starts = np.append(starts[np.unique(some)], self.pairs)
        ends = np.append(0, np.cumsum(self.size, dtype=np.int64))[starts]
        for pair, cell in zip(map(slice, starts[:-1], starts[1:]), map(slice, ends[:-1], ends[1:]), strict=True):
            context = self.context[pair]
            rewards = None if self.rewards is None else self.rewards[pair]
            yield Cells(context - context[0], self.size[pair], self.code[cell], self.n[cell], rewards)

    def bootstrapped(self, random: np.random.Generator, size: float = 1.0) -> "Cells":
        """The cells of a bootstrapped log of this relative size: each count is drawn from a Poisson distribution."""
        n = random.poisson(size * self.n)
        kept = n > 0
        cells = np.bincount(self.pair[kept], minlength=self.pairs).astype(np.uint32)
        return Cells(self.context, cells, self.code[kept], n[kept].astype(np.float64))

    def without(self, contexts: BoolArray) -> "Cells":
        """The same without the cells of these contexts, whose pairs stay, as ones that were never shown."""
        left = ~contexts[self.context]
        cell = np.repeat(left, self.size)
        return Cells(self.context, np.where(left, self.size, np.uint32(0)), self.code[cell], self.n[cell])

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
        """Logged lists of each context: every list has exactly one first position, and single impressions are many."""
        codes = self.codes
        return self.per_context((codes.position == 1) | (codes.position == codes.prev))[0]


_LONGEST_TABLE = 500
"""Positions up to which weights are in a table of all possible codes, of 8 MB."""


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
        return Cells.of_columns(
            context=context,
            pair=cell >> (2 * self.bits + 2),
            position=(cell >> (self.bits + 2)) & (size - 1),
            prev=(cell >> 2) & (size - 1),
            click=(cell & 2) > 0,
            more=(cell & 1) > 0,
            n=n,
        )
