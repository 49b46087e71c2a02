"""How high production places an item, and how readily it shows it, from the cells alone."""

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.counts.cells import Cells
from prudent.engines import kernel

_SCALE = 1 << 20  # of discounts that are whole numbers, so that equal sums are equal to the last bit


def discounted_impressions(cells: Cells) -> FloatArray:
    """D = Σ n / log₂(1 + position) of every pair, in units of 2⁻²⁰: production's order is by D, descending."""
    (discounted,) = cells.fold(np.rint(_SCALE / np.log2(1.0 + cells.codes.position)))
    return discounted


def hazard(cells: Cells) -> FloatArray:
    """H = K·N / Σₖ (Rₖ/nₖ) of every pair: impressions per opportunity to be shown; 0 for a pair that never was.

    N are its impressions, K the longest list of its context, nₖ the lists of the context that reach position k, and Rₖ
    those in which the item was not placed above k, so that it could have been shown there. An item always shown first
    has one opportunity per list, and one always shown last has K.

    Of single impressions it is not known how many lists there were. Whether position k is seen is taken to be
    independent of the items above: Rₖ/nₖ is then 1 − Σⱼ Nⱼ/nⱼ over the positions j above k, with nⱼ the impressions at
    j, and Nⱼ those of the item. K counts the positions that have impressions: gaps offer no opportunity.
    """
    longest = np.zeros(cells.contexts, np.int64)
    size = np.bincount(cells.context, cells.size, minlength=cells.contexts).astype(np.int64)
    some = size > 0
    if some.any():
        starts = (np.cumsum(size) - size)[some]
        longest[some] = np.maximum.reduceat(cells.code, starts) >> 16
    # One slot for each position of each context, the contexts one after the other.
    first = np.cumsum(longest) - longest
    slot = np.repeat(first.astype(np.uint32), size) + (cells.code >> 16) - np.uint32(1)
    lists = np.bincount(slot, cells.n, minlength=int(longest.sum()))
    per_list = np.divide(1.0, lists, out=np.zeros(lists.size), where=lists > 0)
    below = np.zeros_like(per_list)  # Σ 1/nₖ over the positions below
    reached = np.minimum(lists, 1.0) if cells.single else per_list
    for position in range(cells.positions - 1, 0, -1):
        here = first[longest > position] + position - 1
        below[here] = below[here + 1] + reached[here + 1]
    if cells.single:
        below *= per_list
        longest = np.bincount(np.repeat(np.arange(cells.contexts), longest), reached, minlength=cells.contexts)
    (impressions,) = cells.fold(np.ones(len(cells.codes.position)))
    taken, own = kernel.fold(cells.size, slot, cells.n, [below, per_list])
    length = longest[cells.context].astype(np.float64)
    # Where lists differ in length, an item may be above k in lists that do not reach k: its own places remain.
    opportunities = np.maximum(length - taken, own)
    return np.divide(length * impressions, opportunities, out=np.zeros(cells.pairs), where=impressions > 0)
