"""Which contexts to learn from: a handful of position parameters and priors need no billion rows."""

from typing import TYPE_CHECKING

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.storage.sketch import FEWEST_CONTEXTS

if TYPE_CHECKING:
    from prudent.counts.index import Index, Part

MOST_PAIRS = 200_000
"""Pairs to learn from."""
MOST_CELLS = 2_000_000
"""Cells to learn from: a pair that was shown often has many."""


def enough(pairs: IntArray, cells: IntArray, share: float = 1.0) -> int:
    """How many contexts, with these numbers of pairs and cells and in this order, are enough to learn from."""
    limits = ((pairs, share * MOST_PAIRS), (cells, share * MOST_CELLS))
    few = [np.searchsorted(np.cumsum(sizes), most, side="right") for sizes, most in limits]
    return max(int(min(few)), min(FEWEST_CONTEXTS, len(pairs)))


def heaviest(order: IntArray, pairs: IntArray, cells: IntArray, lists: FloatArray, longest: IntArray) -> BoolArray:
    """Which contexts to learn position parameters from: those with most lists; among equals, the first in `order`.

    Half of them have a list of full length, or the last positions might be missing.
    """
    order = order[np.argsort(-lists[order], kind="stable")]
    full = order[longest[order] == longest.max(initial=0)]
    full = full[: enough(pairs[full], cells[full], 0.5)]
    order = np.concatenate([full, order[~np.isin(order, full)]])
    chosen = np.zeros(len(pairs), bool)
    chosen[order[: enough(pairs[order], cells[order])]] = True
    return chosen


def samples(index: "Index") -> "tuple[Part, Part]":
    """The contexts with most lists, for position parameters, and contexts in random order, as many as are enough.

    A prior describes how contexts and their items differ, and is learned from contexts that represent all of them.
    """
    if enough(index.pairs_of, index.cells_of) == index.contexts:
        whole = index.whole()
        return whole, whole
    order = index.in_random_order()
    fair = np.zeros(index.contexts, bool)
    fair[order[: enough(index.pairs_of[order], index.cells_of[order])]] = True
    first, second = index.only(_heaviest(index, order), fair)
    return first, second


def heavy_sample(index: "Index") -> "Part":
    """The first of these samples alone."""
    if enough(index.pairs_of, index.cells_of) == index.contexts:
        return index.whole()
    return index.only(_heaviest(index, index.in_random_order()))[0]


def _heaviest(index: "Index", order: IntArray) -> BoolArray:
    return heaviest(order, index.pairs_of, index.cells_of, index.lists_of, index.longest_of)
