"""The best lists for scores and position weights, for any number of contexts at once."""

from typing import NamedTuple

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.bounds.base import Scores
from prudent.click_models.base import Evidence, FittedModel


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


def best_lists(evidence: Evidence, scores: Scores, length: int, eligible: BoolArray | None = None) -> Lists:
    """For each context the list with the highest value of lower bounds (Algorithm 1), of `eligible` pairs or of all.

    The value grows with every item's score, so that the K best are chosen; the click model places them. Ties go to the
    higher mean, then more impressions, then the smaller name, so that the result is reproducible to the byte.
    """
    eligible = np.ones(len(evidence.context), bool) if eligible is None else eligible
    if not eligible.any():
        return Lists(*(np.zeros(0, np.int64) for _ in Lists._fields))
    within_reach = _may_be_listed(evidence.context, np.where(eligible, scores.lower, -np.inf), length)
    row = np.flatnonzero(within_reach & eligible)
    keys = evidence.item, -evidence.impressions, -scores.mean, -scores.lower, evidence.context
    row = row[np.lexsort([key[row] for key in keys])]
    context = evidence.context[row]
    starts = np.flatnonzero(np.diff(context, prepend=-1))
    size = np.diff(starts, append=len(context))
    place = np.arange(len(context)) - np.repeat(starts, size)
    chosen = place < length
    row, context, place = row[chosen], context[chosen], place[chosen]
    size = np.repeat(np.minimum(size, length), np.minimum(size, length))
    place = _places(evidence.fitted, scores.lower[row], size, place)
    order = np.argsort(context * length + place)
    return Lists(row[order], context[order], place[order] + 1)


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


def _places(fitted: FittedModel, scores: FloatArray, size: IntArray, place: IntArray) -> IntArray:
    """Where the items of every list stand; they come sorted by score, with their rank and the size of their list."""
    places = place.copy()
    for items in np.unique(size):
        rows = np.flatnonzero(size == items)
        places[rows] = fitted.place(scores[rows].reshape(-1, items)).ravel()
    return places


def list_values(evidence: Evidence, lists: Lists, attraction: FloatArray, length: int, contexts: int) -> FloatArray:
    """Value of each context's list under the click model, for this attraction of its items."""
    table = np.zeros((contexts, length))
    # θ is never negative: where a bound is, 0 is the better one.
    table[lists.context, lists.rank - 1] = np.clip(attraction[lists.row], 0, 1)
    return evidence.fitted.value(table)
