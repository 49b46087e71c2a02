"""Under-shown items: which of them to try in place of a listed one, and how often.

What n examinations of an item teach is how far its estimate may move: of a Beta posterior of mean m and strength s, the
estimate after them has the variance ``m(1 − m)/(s + 1) · n/(n + s)`` before they are made. An item of the estimate m̃
that is put into a list by its estimate adds ``Σₖ (gₖ − gₖ₊₁)·max(0, m̃ − m₍ₖ₎)`` to its value, with m₍ₖ₎ the k-th
largest estimate in the list and gₖ what an item is worth at position k. The gain of a variant is by how much the
expectation of that exceeds its value at the present estimate (the knowledge gradient), times the traffic of its
context; its cost is the expected loss where it is worse than the list. Variants are taken by gain per cost until the
budget is spent: for one item, a larger probability and a higher position are one more step on its concave hull.
"""

from typing import NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.policies.exploration.price import PURPOSES, Variants, expected_excess
from prudent.policies.exploration.situation import Situation, spare

PROBABILITIES = (0.01, 0.02, 0.05, 0.1)
"""That a variant may have."""
MOST_ITEMS = 3
"""Variants of a context that try items."""
MOST_CONTEXTS = 20_000
"""Contexts with most lists, which are searched."""
_PRESELECTED = 8  # items of a context, by how far their estimate may exceed the worst of the list
_CHUNK = 200_000  # points at a time


class Steps(NamedTuple):
    """Steps from one variant of an item, or from none, to one that costs more, the best first."""

    pair: IntArray
    place: IntArray  # from 0
    probability: FloatArray
    ratio: FloatArray  # of gain to cost
    cost: FloatArray


def steps_of(situation: Situation, coming: FloatArray) -> Steps:
    """The steps of all items that are worth trying, where so many lists are coming in each context."""
    pair = _preselected(situation, coming)
    context = situation.context[pair]
    weight = situation.lists / situation.lists.sum()
    points = len(PROBABILITIES) * situation.length
    gain, cost = np.zeros((2, len(pair), points))
    for start in range(0, len(pair), max(1, _CHUNK // points)):
        some = slice(start, start + max(1, _CHUNK // points))
        gain[some], cost[some] = _points(situation, pair[some], coming)
    steps = _hull(gain * weight[context, None], cost * weight[context, None])
    row, point, ratio, price = steps
    # In each context the items with the best first steps.
    first = np.full(len(pair), -1.0)
    np.maximum.at(first, row, ratio)
    order = np.lexsort((pair, -first, context))
    place = np.arange(len(order)) - np.searchsorted(context[order], context[order])
    kept = np.zeros(len(pair), bool)
    kept[order[place < MOST_ITEMS]] = True
    inside = kept[row]
    row, point, ratio, price = row[inside], point[inside], ratio[inside], price[inside]
    order = np.lexsort((point, pair[row], -ratio))
    row, point = row[order], point[order]
    place, level = np.divmod(point, len(PROBABILITIES))
    return Steps(pair[row], place, np.array(PROBABILITIES)[level], ratio[order], price[order])


def variants_of(situation: Situation, steps: Steps, taken: int) -> Variants:
    """The variants after so many steps: the last one of each item counts."""
    last = {pair: at for at, pair in enumerate(steps.pair[:taken].tolist())}
    at = np.array(sorted(last.values()), np.int64)
    pair, place = steps.pair[at], steps.place[at]
    context = situation.context[pair]
    lists = situation.table[context]
    lists[np.arange(len(at)), place] = pair
    purpose = np.full(len(at), PURPOSES.index("items"))
    order = np.lexsort((pair, context))
    return Variants(context, lists, steps.probability[at], purpose).only(order)


def _preselected(situation: Situation, coming: FloatArray) -> IntArray:
    """Items of the contexts with most lists that may be better than the worst of their list."""
    order = np.argsort(-coming, kind="stable")[:MOST_CONTEXTS]
    searched = np.zeros(situation.contexts, bool)
    searched[order] = coming[order] > 0
    pair = np.flatnonzero(spare(situation) & searched[situation.context])
    worst = np.where(situation.table >= 0, situation.attraction(situation.table), np.inf).min(axis=1)
    reach = (situation.mean[pair] - worst[situation.context[pair]]) / situation.deviation[pair]
    context = situation.context[pair]
    order = np.lexsort((pair, -reach, context))
    place = np.arange(len(order)) - np.searchsorted(context[order], context[order])
    return np.sort(pair[order[place < _PRESELECTED]])


def _points(situation: Situation, pair: IntArray, coming: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gain and cost of each item at each position with each probability."""
    context = situation.context[pair]
    listed = situation.table[context]
    there = listed >= 0
    attraction, slopes = situation.attraction(listed), situation.slopes[context]
    best = -np.sort(-np.where(there, attraction, 0.0), axis=1)
    worth = -np.sort(-np.where(there, slopes, 0.0), axis=1)
    steps = worth - np.concatenate([worth[:, 1:], np.zeros((len(worth), 1))], axis=1)
    mean, strength = situation.mean[pair], situation.strength[pair]
    deviation = situation.deviation[pair]
    gains, costs = [], []
    for k in range(listed.shape[1]):
        replaced = listed[:, k]
        doubt = np.sqrt(deviation**2 + np.where(there[:, k], np.append(situation.deviation, 0.0)[replaced], 0.0) ** 2)
        loss = slopes[:, k] * expected_excess(attraction[:, k] - mean, doubt)
        for probability in PROBABILITIES:
            examined = probability * coming[context] * situation.examination[context, k]
            moves = deviation * np.sqrt(examined / (examined + strength))
            ahead = mean[:, None] - best
            gain = expected_excess(ahead, np.broadcast_to(moves[:, None], ahead.shape)) - np.maximum(ahead, 0)
            gains.append(np.where(there[:, k], np.sum(steps * gain, axis=1), 0.0))
            costs.append(np.where(there[:, k], probability * loss, np.inf))
    return np.stack(gains, axis=1), np.stack(costs, axis=1)


def _hull(gain: FloatArray, cost: FloatArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Steps along the upper concave hull of each row's points, from no gain at no cost.

    Row, point, gain per cost and cost of each step; the ratios of a row descend.
    """
    rows = np.arange(len(gain))
    reached, spent = np.zeros((2, len(gain), 1))
    found: list[tuple[IntArray, IntArray, FloatArray, FloatArray]] = []
    while len(rows):
        more, dearer = gain[rows] - reached, cost[rows] - spent
        possible = (more > 1e-15) & (dearer > 1e-15) & np.isfinite(dearer)
        ratio = np.where(possible, more / np.where(possible, dearer, 1.0), -np.inf)
        point = np.argmax(ratio, axis=1)
        at = np.arange(len(rows)), point
        on = ratio[at] > 0
        found.append((rows[on], point[on], ratio[at][on], dearer[at][on]))
        rows, point = rows[on], point[on]
        reached, spent = gain[rows, point][:, None], cost[rows, point][:, None]
    columns = [np.concatenate(column) for column in zip(*found, strict=True)] if found else [np.zeros(0)] * 4
    return columns[0].astype(np.int64), columns[1].astype(np.int64), columns[2], columns[3]
