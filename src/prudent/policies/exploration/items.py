"""Under-shown items: which of them to try in place of the worst listed one, and how often.

A candidate that is known exactly and put where it belongs adds ``Σₖ (gₖ − gₖ₊₁)·max(0, θ − m₍ₖ₎)`` to the value of its
list, with m₍ₖ₎ the k-th largest estimate in the list and gₖ what an item is worth at position k. By how much the
expectation of that exceeds its value at the present estimate is the value of perfect information about it. Of that, n
examinations gain the part ``n/(n + s)``, where s is the strength of the item's posterior: the share of its variance
that they resolve. The gain is that part times the traffic of the context; the cost is the expected loss where the
candidate is worse than the item that it replaces.

One night decides little about an item, and many nights follow. So the gain is concave in n, where what one night alone
is expected to change (the knowledge gradient) is convex at first: by that, few items are tried, often and at the first
position, where exploring costs most. For the same reason a candidate is tried only at the position of the worst listed
item, where an examination costs least: what is not learned tonight is learned later.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import betainc

from prudent.base.arrays import FloatArray, IntArray
from prudent.policies.exploration.price import PURPOSES, Variants, expected_excess
from prudent.policies.exploration.situation import Situation, spare

PROBABILITIES = (0.01, 0.02, 0.05, 0.1, 0.2)
"""That a variant may have."""
MOST_ITEMS = 3
"""Variants of a context that try items."""
MOST_EXPLORED = 0.8
"""Probability of all variants of a context together."""
MOST_CONTEXTS = 20_000
"""Contexts with most lists, which are searched."""
_PRESELECTED = 8  # items of a context, by how far their estimate may exceed the worst of the list
_CHUNK = 100_000  # items at a time
_NOTHING = 1e-15


class Steps(NamedTuple):
    """Steps from one probability of an item, or from none, to the next, the best first."""

    pair: IntArray
    probability: FloatArray
    ratio: FloatArray  # of gain to cost


def steps_of(situation: Situation, coming: FloatArray, swapped: FloatArray) -> Steps:
    """The steps of all items that are worth trying, where so many lists are coming in each context.

    swapped
        The probability of each context that a swap is shown, which leaves less for items.
    """
    pair = _preselected(situation, coming)
    context = situation.context[pair]
    weight = situation.lists / situation.lists.sum()
    gain, price = np.zeros((len(pair), len(PROBABILITIES))), np.zeros(len(pair))
    for start in range(0, len(pair), _CHUNK):
        some = slice(start, start + _CHUNK)
        gain[some], price[some] = gains_and_price(situation, pair[some], coming)
    more = np.diff(gain * weight[context, None], prepend=0.0)
    cost = np.maximum(np.diff(PROBABILITIES, prepend=0.0) * (price * weight[context])[:, None], _NOTHING)
    ratio = more / cost
    # In each context the items with the best first steps.
    order = np.lexsort((pair, -ratio[:, 0], context))
    place = np.arange(len(order)) - np.searchsorted(context[order], context[order])
    kept = np.zeros(len(pair), bool)
    kept[order[place < MOST_ITEMS]] = True
    room = (MOST_EXPLORED - swapped) / MOST_ITEMS
    possible = np.array(PROBABILITIES) <= room[context, None] + 1e-9
    row, level = np.nonzero(kept[:, None] & possible & (more > _NOTHING))
    order = np.lexsort((level, pair[row], -ratio[row, level]))
    row, level = row[order], level[order]
    return Steps(pair[row], np.array(PROBABILITIES)[level], ratio[row, level])


def variants_of(situation: Situation, steps: Steps, taken: int) -> Variants:
    """The variants after so many steps: the last one of each item counts."""
    last = {pair: at for at, pair in enumerate(steps.pair[:taken].tolist())}
    at = np.array(sorted(last.values()), np.int64)
    pair = steps.pair[at]
    context = situation.context[pair]
    lists = situation.table[context]
    lists[np.arange(len(at)), _worst(situation)[context]] = pair
    purpose = np.full(len(at), PURPOSES.index("items"))
    order = np.lexsort((pair, context))
    return Variants(context, lists, steps.probability[at], purpose).only(order)


def gains_and_price(situation: Situation, pair: IntArray, coming: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The gain of each item by its probability, and what a list with it is expected to lose."""
    context, rows = situation.context[pair], np.arange(len(pair))
    mean, strength, deviation = situation.mean[pair], situation.strength[pair], situation.deviation[pair]
    place = _worst(situation)[context]
    worst = situation.table[context, place]
    examined = (coming[context] * situation.examination[context, place])[:, None] * np.array(PROBABILITIES)
    information = _perfect_information(situation, pair)
    gain = information[:, None] * examined / (examined + strength[:, None])
    doubt = np.sqrt(deviation**2 + situation.deviation[worst] ** 2)
    price = situation.slopes[context][rows, place] * expected_excess(situation.mean[worst] - mean, doubt)
    return gain, price


def _perfect_information(situation: Situation, pair: IntArray) -> FloatArray:
    """By how much the list of each item would gain if the item's attraction were known."""
    listed = situation.table[situation.context[pair]]
    attraction = -np.sort(-situation.attraction(listed), axis=1)
    worth = -np.sort(-np.where(listed >= 0, situation.slopes[situation.context[pair]], 0.0), axis=1)
    steps = worth - np.pad(worth[:, 1:], ((0, 0), (0, 1)))
    mean, strength = situation.mean[pair][:, None], situation.strength[pair][:, None]
    gain = beta_excess(mean, strength, attraction) - np.maximum(mean - attraction, 0.0)
    return np.asarray(np.sum(steps * np.maximum(gain, 0.0), axis=1))


def beta_excess(mean: FloatArray, strength: FloatArray, least: FloatArray) -> FloatArray:
    """E[max(θ − least, 0)] of a Beta posterior: that of a rarely examined item is too skewed for a normal one."""
    a, b = mean * strength, (1 - mean) * strength
    return np.asarray(mean * (1 - betainc(a + 1, b, least)) - least * (1 - betainc(a, b, least)))


def _worst(situation: Situation) -> IntArray:
    """The position in each list, from 0, of the item with the lowest estimate."""
    there = situation.table >= 0
    return np.asarray(np.argmin(np.where(there, situation.attraction(situation.table), np.inf), axis=1))


def _preselected(situation: Situation, coming: FloatArray) -> IntArray:
    """Items of the contexts with most lists that may be better than the worst of their list."""
    order = np.argsort(-coming, kind="stable")[:MOST_CONTEXTS]
    searched = np.zeros(situation.contexts, bool)
    searched[order] = coming[order] > 0
    pair = np.flatnonzero(spare(situation) & searched[situation.context])
    context = situation.context[pair]
    worst = situation.table[context, _worst(situation)[context]]
    reach = (situation.mean[pair] - situation.mean[worst]) / situation.deviation[pair]
    order = np.lexsort((pair, -reach, context))
    place = np.arange(len(order)) - np.searchsorted(context[order], context[order])
    return np.sort(pair[order[place < _PRESELECTED]])
