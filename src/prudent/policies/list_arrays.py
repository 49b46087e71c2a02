"""Lists of any number of contexts as arrays, and the pairs of each context that are highest by some keys."""

from typing import NamedTuple

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.engines import kernel


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
    starts = np.append(np.flatnonzero(np.diff(context, prepend=-1)), len(context))
    row, size = kernel.highest(starts, keys, length, eligible)
    place = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)
    return Lists(row, context[row], place + 1)


def only(lists: Lists, kept: BoolArray) -> Lists:
    """The lists of the kept contexts."""
    return Lists(*(column[kept[lists.context]] for column in lists))
