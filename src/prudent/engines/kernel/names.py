"""Names as numbers, without a Python object for each: text by its bytes, or integers of 64 bits."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.storage.run import NameColumn, Run

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Texts:
    """Texts as pieces of one block of bytes."""

    data: NDArray[np.uint8]  # with eight more at the end, so that any text may be read a word at a time
    start: Integers
    size: Integers

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: Any) -> "Texts":
        """Some of them."""
        return Texts(self.data, self.start[rows], self.size[rows])

    def word(self, number: int, rows: Any = slice(None)) -> Words:
        """Eight bytes of each, the first of them highest, so that words sort as their bytes do; 0 below the end."""
        left = np.clip(self.size[rows] - 8 * number, 0, 8)
        every = np.ndarray(len(self.data) - 7, "<u8", self.data.data, strides=(1,))
        raw = every[np.where(left > 0, self.start[rows] + 8 * number, 0)].byteswap()
        return np.where(left > 0, raw & _HIGHEST[left], np.uint64(0))

    @property
    def words(self) -> int:
        """Words of the longest."""
        return int(-(-self.size.max(initial=0) // 8))


# Of the highest bytes of a word, so many.
_HIGHEST = np.array([0, *(((1 << 8 * kept) - 1) << 8 * (8 - kept) for kept in range(1, 9))], np.uint64)


def names_of(column: NameColumn) -> Texts | NDArray[Any]:
    """The names of a column; texts are copied, with eight bytes more."""
    if column.ends is None:
        return column.values
    start = np.append(0, column.ends[:-1])[: len(column.ends)]
    return Texts(np.append(column.values, np.zeros(8, np.uint8)), start, column.ends - start)


def group(names: Texts | NDArray[Any], within: Integers) -> tuple[Integers, Integers]:
    """Number the distinct names of each group `within`, in the order of groups and names; a row for each of them.

    Returns the number of each name, and where each number occurs first.
    """
    if not isinstance(names, Texts):
        order = np.lexsort((names, within))
        new = np.ones(len(order), bool)
        new[1:] = (names[order[1:]] != names[order[:-1]]) | (within[order[1:]] != within[order[:-1]])
        return _numbered(order, new)
    # Sorted by hash, equal names stand together, and are few beside the names to be sorted by their bytes.
    number, first = _by_hash(names, within)
    distinct = names.take(first)
    order = _sorted(distinct, within[first])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[number], first[order]


def ascending(names: Texts | NDArray[Any], first: NDArray[np.bool_]) -> bool:
    """Whether each name is above the one before it, except for the `first` of a group."""
    above = np.flatnonzero(~first[1:]) + 1
    if not isinstance(names, Texts):
        return bool(np.all(names[above] > names[above - 1]))
    for word in range(names.words):
        one, other = names.word(word, above - 1), names.word(word, above)
        if np.any(one > other):
            return False
        above = above[one == other]
    return bool(np.all(names.size[above] > names.size[above - 1]))


def is_sorted(run: Run) -> bool:
    """Whether contexts, the items of each and the codes of each pair ascend, and none of them is there twice."""
    first, first_code = np.zeros(len(run.cells), bool), np.zeros(len(run.code), bool)
    first[run.first_pair[:-1]] = True
    first_code[(np.cumsum(run.cells, dtype=np.int64) - run.cells)[run.cells > 0]] = True
    once = np.arange(len(run.pairs)) == 0
    return (
        ascending(names_of(run.contexts), once)
        and ascending(names_of(run.items), first)
        and ascending(run.code, first_code)
    )


def _numbered(order: Integers, new: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(new) - 1
    return number, order[new]


def hashed(names: Texts | NDArray[Any]) -> Integers:
    """64 bits for each name, the same in every process and on every machine."""
    if not isinstance(names, Texts):
        return _mix(names.view(np.uint64)).view(np.int64)
    return _hashed(names, np.zeros(len(names), np.uint64)).view(np.int64)


def _hashed(names: Texts, salt: Words) -> Words:
    found = _mix(salt ^ names.size.astype(np.uint64))
    for word in range(names.words):
        rows = np.flatnonzero(names.size > 8 * word)
        found[rows] = _mix(found[rows] ^ names.word(word, rows))
    return found


def _by_hash(names: Texts, within: Integers) -> tuple[Integers, Integers]:
    for seed in range(1, 100):
        hashed = _hashed(names, within.astype(np.uint64) * np.uint64(2 * seed + 1))
        order = np.argsort(hashed, kind="stable")
        new = np.ones(len(order), bool)
        new[1:] = hashed[order[1:]] != hashed[order[:-1]]
        number, first = _numbered(order, new)
        if _equal(names, within, first[number]):
            return number, first
    raise AssertionError("no seed tells the names apart")


def _equal(names: Texts, within: Integers, other: Integers) -> bool:
    """Whether each name equals that of another row."""
    if np.any(names.size != names.size[other]) or np.any(within != within[other]):
        return False
    for word in range(names.words):
        rows = np.flatnonzero(names.size > 8 * word)
        if np.any(names.word(word, rows) != names.word(word, other[rows])):
            return False
    return True


def _mix(value: Words) -> Words:
    value = value ^ value >> np.uint64(32)
    value = value * np.uint64(0x9E3779B97F4A7C15)
    value ^= value >> np.uint64(29)
    value *= np.uint64(0xBF58476D1CE4E5B9)
    return value ^ value >> np.uint64(32)


def _sorted(names: Texts, within: Integers) -> Integers:
    """The order of distinct names: by group, then byte by byte, and a text before those that it begins."""
    order = np.argsort(within, kind="stable")
    tied = np.arange(len(order))  # places whose order is not settled yet
    block = within[order].astype(np.int64)  # of each place: equal where names are tied so far
    for word in range(names.words):
        rows = order[tied]
        key = names.word(word, rows)
        by = np.lexsort((names.size[rows], key, block[tied]))
        order[tied] = rows[by]
        key, size, old = key[by], names.size[rows][by], block[tied]
        # Distinct names with one word are tied only where both go on: zeros below an end sort as NUL bytes do.
        new = np.ones(len(tied), bool)
        new[1:] = (key[1:] != key[:-1]) | (old[1:] != old[:-1])
        block[tied] = tied[np.maximum.accumulate(np.where(new, np.arange(len(tied)), 0))]
        alone = new & np.append(new[1:], True)
        ended = size <= 8 * (word + 1)
        tied = tied[~alone & ~ended]
    return order
