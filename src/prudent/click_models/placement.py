"""Placement: the order in which the items of a list are worth most."""

from collections.abc import Callable
from itertools import combinations, permutations

import numpy as np

from prudent.base.arrays import FloatArray, IntArray

Value = Callable[[FloatArray], FloatArray]
"""The value of lists with this attraction at each position, lists along the first axis."""


def best_order(scores: FloatArray, value_of: Value) -> IntArray:
    """The position, from 0, of each item of a list with these scores, in the order of the highest value.

    Lists of up to 6 items are tried in every order; longer ones start as they are, and pairs are swapped until no swap
    helps.
    """
    attraction = np.clip(scores, 0, 1)
    if scores.shape[1] <= _EXHAUSTIVE:
        return _try_every_order(attraction, value_of)
    return _swap_pairs(attraction, value_of)


def _try_every_order(attraction: FloatArray, value_of: Value) -> IntArray:
    """The position of each item in the best order of its list; of equally good ones, in the first."""
    lists, size = attraction.shape
    orders = np.array(list(permutations(range(size))))
    best = np.zeros((lists, size), np.int64)
    chunk = max(1, _PLACES // orders.size)
    for start in range(0, lists, chunk):
        some = slice(start, start + chunk)
        value = value_of(attraction[some][:, orders])
        best[some] = orders[np.argmax(value >= value.max(axis=1, keepdims=True) - _TINY, axis=1)]
    return np.argsort(best, axis=1)


def _swap_pairs(attraction: FloatArray, value_of: Value) -> IntArray:
    """The position of each item in an order that no swap of two items improves; the best swap is made first."""
    lists, size = attraction.shape
    order = np.tile(np.arange(size), (lists, 1))  # the item at each position
    value = value_of(attraction)
    while True:
        best, swap = value + _TINY, np.zeros((lists, 2), np.int64)
        for pair in combinations(range(size), 2):
            swapped = _swap(order, np.tile(pair, (lists, 1)))
            other = value_of(np.take_along_axis(attraction, swapped, axis=1))
            better = other > best
            best, swap = np.where(better, other, best), np.where(better[:, None], pair, swap)
        moves = swap[:, 0] != swap[:, 1]
        if not moves.any():
            return np.argsort(order, axis=1)
        order, value = _swap(order, swap), np.where(moves, best, value)


def _swap(order: IntArray, pair: IntArray) -> IntArray:
    """The orders, with the items at two positions swapped in each."""
    swapped = order.copy()
    rows = np.arange(len(order))
    swapped[rows, pair[:, 0]], swapped[rows, pair[:, 1]] = order[rows, pair[:, 1]], order[rows, pair[:, 0]]
    return swapped


_EXHAUSTIVE = 6
"""Items of the longest list of which every order is tried; swaps miss the best of one in a hundred."""
_PLACES = 200_000  # in lists of all orders at a time: arrays of 1 MB stay in the cache
_TINY = 1e-12  # by which a swap has to raise the value: below it is rounding
