"""What the kernel does with keys, with NumPy."""

from collections.abc import Sequence

import numpy as np

from prudent.base.arrays import IntArray
from prudent.engines.kernel.names import hashed, names_of
from prudent.storage.run import NameColumn


def keys_of(names: NameColumn) -> IntArray:
    """The key of each name."""
    found = hashed(names_of(names))
    return np.where(found == 0, 1, found)


def add_by_key(keys: IntArray, columns: Sequence[IntArray]) -> tuple[IntArray, list[IntArray]]:
    """Sums of the rows of each key but 0."""
    rows = np.flatnonzero(keys)
    order = rows[np.argsort(keys[rows])]
    starts = np.flatnonzero(np.diff(keys[order], prepend=0))
    added = [np.add.reduceat(column[order], starts) if len(starts) else column[:0] for column in columns]
    return keys[order][starts], added


def add_within(starts: IntArray, keys: IntArray, columns: Sequence[IntArray]) -> list[IntArray]:
    """Sums of the rows of the same group and key."""
    group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((keys, group))
    new = np.ones(len(keys), bool)
    new[1:] = (np.diff(keys[order]) != 0) | (np.diff(group[order]) != 0)
    number = np.empty(len(keys), np.int64)
    number[order] = np.cumsum(new) - 1
    first = np.flatnonzero(new)
    return [np.add.reduceat(column[order], first)[number] if len(first) else column for column in columns]


def find(known: IntArray, wanted: IntArray) -> IntArray:
    """The place of each key, or −1."""
    if not len(known):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[at] == wanted, at, -1)
