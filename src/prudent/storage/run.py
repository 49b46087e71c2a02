"""A run: the counts of some lists, sorted by context, item and code. Counts files keep one, and runs add up.

Names are sorted byte by byte, or by number, so that they never need to be looked up: a pair's place is its number.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.storage.arrow import Column, numbers

LONGEST = (1 << 14) - 1
"""Positions that a code has room for."""
REWARD_UNITS = 1_000
"""Rewards are counted in thousandths, so that their sums are whole numbers, the same in any order."""


def starts_list(code: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Whether a cell has the first position of a list, or single impressions, each of which counts as a list.

    Of these it is not known what was clicked above: their ``prev`` is their own position, which no list has.
    """
    return np.asarray((code >> 16 == 1) | is_single(code))


def is_single(code: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Whether a cell has single impressions."""
    return np.asarray((code >> 16 > 0) & (code >> 16 == (code >> 2 & LONGEST)))


@dataclass(frozen=True)
class NameColumn:
    """Names one after the other: the bytes of texts and where each ends, or integers."""

    values: NDArray[Any]  # uint8 for texts, or else int64 or uint64
    ends: NDArray[np.int64] | None = None  # of texts

    def __len__(self) -> int:
        return len(self.values if self.ends is None else self.ends)

    def __getitem__(self, row: int) -> str | int:
        if self.ends is None:
            return int(self.values[row])
        return self.values[self._start(row) : self.ends[row]].tobytes().decode()

    @property
    def kind(self) -> str:
        """DuckDB's type of the names."""
        return "VARCHAR" if self.ends is not None else "UBIGINT" if self.values.dtype.kind == "u" else "BIGINT"

    def find(self, name: str | int) -> int | None:
        """The place of a name among sorted ones."""
        wanted: Any = name.encode() if isinstance(name, str) else name
        if isinstance(name, str) != (self.ends is not None):
            return None
        at = bisect_left(range(len(self)), wanted, key=self.raw)
        return at if at < len(self) and self.raw(at) == wanted else None

    def raw(self, row: int) -> bytes | int:
        """A name as it is sorted."""
        row = range(len(self))[row]
        return int(self.values[row]) if self.ends is None else self.values[self._start(row) : self.ends[row]].tobytes()

    def _start(self, row: int) -> int:
        return int(self.ends[row - 1]) if row and self.ends is not None else 0

    def slice(self, first: int, last: int) -> "NameColumn":
        """The names from `first` up to but not including `last`; nothing is copied but the ends."""
        if self.ends is None:
            return NameColumn(self.values[first:last])
        start = self._start(first) if first < last else 0
        ends = self.ends[first:last]
        return NameColumn(self.values[start : int(ends[-1]) if len(ends) else start], ends - start)

    def take(self, rows: NDArray[Any]) -> "NameColumn":
        """Some names, in any order."""
        if self.ends is None:
            return NameColumn(self.values[rows])
        start = np.append(0, self.ends[:-1])[rows] if len(self.ends) else np.zeros(0, np.int64)
        size = self.ends[rows] - start
        ends = np.cumsum(size)
        byte = np.arange(ends[-1] if len(ends) else 0) + np.repeat(start - ends + size, size)
        return NameColumn(self.values[byte], ends)

    def copy(self) -> "NameColumn":
        """The same in memory of its own."""
        return NameColumn(self.values.copy(), None if self.ends is None else self.ends.copy())

    @staticmethod
    def concatenated(columns: "Sequence[NameColumn]") -> "NameColumn":
        """Columns of one kind, one after the other."""
        values = np.concatenate([column.values for column in columns])
        if columns[0].ends is None:
            return NameColumn(values)
        before = np.cumsum([0, *(len(column.values) for column in columns[:-1])])
        ends = [column.ends + add for column, add in zip(columns, before, strict=True) if column.ends is not None]
        return NameColumn(values, np.concatenate(ends))

    @property
    def column(self) -> Column:
        """For a table that others read."""
        if self.ends is None:
            return numbers(self.values)
        return Column("u", np.ones(len(self.ends), bool), self.values, np.append(0, self.ends))

    @classmethod
    def of(cls, column: Column) -> "NameColumn":
        """From a column that was read; a copy, since a batch is gone when the next one is asked for."""
        if column.offsets is None:
            return cls(column.values.copy())
        first, last = int(column.offsets[0]), int(column.offsets[-1])
        return cls(column.values[first:last].copy(), column.offsets[1:] - first)

    @classmethod
    def of_names(cls, names: Sequence[str | int]) -> "NameColumn":
        """A few names, all of them text or all integers of 64 bits."""
        if not names or not isinstance(names[0], str):
            return cls(np.array(names, np.int64))
        raw = [str(name).encode() for name in names]
        return cls(np.frombuffer(b"".join(raw), np.uint8), np.cumsum([len(one) for one in raw]))

    def to_list(self) -> list[str | int]:
        """As Python objects, for people and tests."""
        return [self[row] for row in range(len(self))]


NO_NAMES = NameColumn(np.zeros(0, np.int64))


@dataclass(frozen=True)
class Run:
    """Contexts in the order of their names, the pairs of each in the order of items, and the cells of each by code.

    A code is a way of being shown: ``position << 16 | prev << 2 | click << 1 | more``.
    """

    contexts: NameColumn
    items: NameColumn  # one for each pair
    pairs: NDArray[np.uint32]  # of each context
    cells: NDArray[np.uint32]  # of each pair
    code: NDArray[np.uint32]  # of each cell
    n: NDArray[np.uint64]  # how often it occurred
    # Of each pair: the sum of the rewards of its clicks, and of their squares, in thousandths; None without rewards.
    rewards: NDArray[np.int64] | None = None

    @cached_property
    def first_pair(self) -> NDArray[np.int64]:
        """Of each context, and the number of all pairs behind them."""
        return np.append(0, np.cumsum(self.pairs, dtype=np.int64))

    @cached_property
    def first_cell(self) -> NDArray[np.int64]:
        """Of each context, and the number of all cells behind them."""
        return np.append(0, np.cumsum(self.cells, dtype=np.int64))[self.first_pair]

    @property
    def names(self) -> "Run":
        """The contexts and pairs alone, copied: the rest may then be freed."""
        items, cells = self.items.copy(), np.zeros(len(self.cells), np.uint32)
        return Run(self.contexts.copy(), items, self.pairs.copy(), cells, self.code[:0].copy(), self.n[:0].copy())

    @property
    def lists(self) -> int:
        """How many lists were counted: each has exactly one first position."""
        return int(self.n[starts_list(self.code)].sum())

    @property
    def nbytes(self) -> int:
        """Memory of its arrays."""
        names = [
            part for names in (self.contexts, self.items) for part in (names.values, names.ends) if part is not None
        ]
        rewards = () if self.rewards is None else (self.rewards,)
        return sum(array.nbytes for array in (*names, self.pairs, self.cells, self.code, self.n, *rewards))

    def slice(self, first: int, last: int) -> "Run":
        """The contexts from `first` up to but not including `last`; hardly anything is copied."""
        pairs = slice(*self.first_pair[[first, last]].tolist())
        cells = slice(*self.first_cell[[first, last]].tolist())
        return Run(
            self.contexts.slice(first, last),
            self.items.slice(pairs.start, pairs.stop),
            self.pairs[first:last],
            self.cells[pairs],
            self.code[cells],
            self.n[cells],
            None if self.rewards is None else self.rewards[pairs],
        )

    def only(self, contexts: NDArray[np.bool_]) -> "Run":
        """Some of the contexts."""
        pairs = np.repeat(contexts, self.pairs)
        cells = np.repeat(pairs, self.cells)
        return Run(
            self.contexts.take(np.flatnonzero(contexts)),
            self.items.take(np.flatnonzero(pairs)),
            self.pairs[contexts],
            self.cells[pairs],
            self.code[cells],
            self.n[cells],
            None if self.rewards is None else self.rewards[pairs],
        )

    @staticmethod
    def concatenated(runs: "Sequence[Run]") -> "Run":
        """Runs of consecutive contexts, one after the other."""
        if len(runs) == 1:
            return runs[0]
        names = ("pairs", "cells", "code", "n")
        pairs, cells, code, n = (np.concatenate([getattr(run, name) for run in runs]) for name in names)
        return Run(
            NameColumn.concatenated([run.contexts for run in runs]),
            NameColumn.concatenated([run.items for run in runs]),
            pairs,
            cells,
            code,
            n,
            joined_rewards(runs),
        )


def joined_rewards(runs: Sequence[Run]) -> NDArray[np.int64] | None:
    """Those of the pairs of several runs, one after the other; candidates that were never shown have none."""
    if all(run.rewards is None for run in runs):
        return None
    none = np.zeros((0, 2), np.int64)
    return np.concatenate(
        [none, *(np.zeros((len(r.cells), 2), np.int64) if r.rewards is None else r.rewards for r in runs)]
    )


@dataclass(frozen=True)
class WholeLists:
    """Whole lists of some contexts of a run, and how often each was shown and clicked in that way.

    They are sorted by context, then by items, then by clicks, each from the top down; a list that another one begins
    with comes first. Equal lists are one.
    """

    context: NDArray[np.uint32]  # of each list: its number in the run
    size: NDArray[np.uint32]  # of each list: its items
    items: NDArray[np.uint32]  # of each position of each list: the place of its item among those of its context
    clicks: NDArray[np.bool_]  # of each position of each list
    n: NDArray[np.uint64]  # of each list

    def where(self, lists: NDArray[np.bool_]) -> "WholeLists":
        """Some of the lists."""
        if lists.all():
            return self
        places = np.repeat(lists, self.size)
        return WholeLists(self.context[lists], self.size[lists], self.items[places], self.clicks[places], self.n[lists])

    def copy(self) -> "WholeLists":
        """The same in memory of its own."""
        return WholeLists(*(getattr(self, column.name).copy() for column in fields(self)))

    def slice(self, first: int, last: int) -> "WholeLists":
        """The lists of these contexts, which are numbered from 0."""
        lists = slice(*np.searchsorted(self.context, [first, last]).tolist())
        places = slice(*np.append(0, np.cumsum(self.size, dtype=np.int64))[[lists.start, lists.stop]].tolist())
        context = self.context[lists] - np.uint32(first)
        return WholeLists(context, self.size[lists], self.items[places], self.clicks[places], self.n[lists])

    @staticmethod
    def concatenated(parts: "Sequence[WholeLists]") -> "WholeLists":
        """The lists of several parts, one after the other."""
        columns = [column.name for column in fields(parts[0])]
        return WholeLists(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))
