"""Lists of any number of contexts as arrays, and the pairs of each context that are highest by some keys."""

from typing import NamedTuple

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray


class Lists(NamedTuple):
    """Lists of all contexts, sorted by context and rank: one entry per listed item."""

    row: IntArray  # which pair
    context: IntArray
    rank: IntArray  # position in the list, from 1


def as_table(lists: Lists, contexts: int, length: int) -> IntArray:
    """The pairs of each context's list, one row each, with −1 where it has no item."""
    table = np.full((contexts, length), -1)
    table[lists.context, lists.rank - 1] = lists.row
    return table


def highest(context: IntArray, keys: tuple[FloatArray, ...], length: int, eligible: BoolArray | None = None) -> Lists:
    """The pairs of each context with the highest first key, as many as a list has; ties go to the next keys.

    Then to the smaller name: pairs are sorted by context and name.
    """
    eligible = np.ones(len(context), bool) if eligible is None else eligible
    if not eligible.any():
        return Lists(*(np.zeros(0, np.int64) for _ in Lists._fields))
    within_reach = _may_be_listed(context, np.where(eligible, keys[0], -np.inf), length)
    row = np.flatnonzero(within_reach & eligible)
    row = row[np.lexsort([*(-key[row] for key in reversed(keys)), context[row]])]  # stable
    starts = np.flatnonzero(np.diff(context[row], prepend=-1))
    place = np.arange(len(row)) - np.repeat(starts, np.diff(starts, append=len(row)))
    chosen = place < length
    return Lists(row[chosen], context[row[chosen]], place[chosen] + 1)


def _may_be_listed(context: IntArray, lower: FloatArray, length: int) -> BoolArray:
    """Whether a pair reaches the K-th highest score of its context: no other needs sorting."""
    keep = np.ones(len(context), bool)
    size = np.bincount(context)
    start = np.cumsum(size) - size
    # Contexts of similar size share one padded table, so that the padding is less than the data.
    width = 1 << np.ceil(np.log2(np.maximum(size, 1))).astype(int)
    for w in np.unique(width[size > length]):
        crowded = np.flatnonzero((width == w) & (size > length))
        row = start[crowded, None] + np.arange(w)
        inside = np.arange(w) < size[crowded, None]
        table = np.where(inside, lower[np.minimum(row, len(lower) - 1)], -np.inf)
        least = np.partition(table, w - length, axis=1)[:, w - length]
        keep[row[inside]] = (table >= least[:, None])[inside]
    return keep
