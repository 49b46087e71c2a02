"""The best lists for scores and position weights, for any number of contexts at once."""

from functools import partial

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.bounds.base import Anchor, OfRows, Scores
from prudent.click_models.base import FittedModel
from prudent.click_models.evidence import Evidence
from prudent.policies.incumbent import in_production_order
from prudent.policies.list_arrays import Lists, as_table, highest


def best_lists(
    evidence: Evidence,
    scores: Scores,
    length: int,
    eligible: BoolArray | None = None,
    max_moves: int | None = None,
    incumbent: Lists | None = None,
) -> Lists:
    """For each context the list with the highest value of lower bounds (Algorithm 1), of `eligible` pairs or of all.

    The value grows with every item's score, so that the K best are chosen; the click model places them. Ties go to the
    higher mean, then more impressions, then the smaller name, so that the result is reproducible to the byte. Scores
    with an anchor keep the incumbent's order instead, except where they beat it; `incumbent` are the incumbent lists of
    the eligible pairs where they are known already.
    """
    if scores.anchor is not None:
        return anchored_lists(evidence, scores, scores.anchor, length, eligible, max_moves, incumbent)
    keys = scores.lower, scores.mean, evidence.impressions
    best = highest(evidence.context, keys, length, eligible)
    return _place(evidence.fitted, best, scores.lower[best.row], length)


def anchored_lists(
    evidence: Evidence,
    scores: Scores,
    anchor: Anchor,
    length: int,
    eligible: BoolArray | None = None,
    max_moves: int | None = None,
    incumbent: Lists | None = None,
) -> Lists:
    """The incumbent list of each context, in which items rise that beat the ones they pass.

    At each rank stands the next item i of the incumbent's order, unless the remaining item j that leads with the
    highest lower bound has ``lower[j] > stay[i]``; then j does. An item may rise by at most `max_moves` positions.
    Position parameters that were fitted do not reorder the list; those that a user set do.
    """
    shown = evidence.discounted, evidence.impressions
    production = partial(in_production_order, evidence.context, *shown, unseen=anchor.preference)
    incumbent = production(length, eligible) if incumbent is None else incumbent
    leads = anchor.leads if eligible is None else anchor.leads & eligible
    moving = np.zeros(int(evidence.context.max(initial=-1)) + 1, bool)
    moving[evidence.context[leads]] = True
    lists, kept = incumbent, ~moving[incumbent.context]
    if not kept.all():
        number = np.cumsum(moving) - 1  # of the contexts that have a leader
        by_bound = scores.lower, scores.mean, evidence.impressions
        leaders = highest(evidence.context, by_bound, len(leads), leads)
        earliest = np.ones(len(leads), np.int64)
        if max_moves is not None:
            every = production(len(leads), eligible)
            earliest[every.row] = every.rank - max_moves
        table = as_table(
            Lists(incumbent.row[~kept], number[incumbent.context[~kept]], incumbent.rank[~kept]), moving.sum(), length
        )
        merged = _merge(
            table, anchor.stay, leaders.row, number[leaders.context], scores.lower[leaders.row], earliest[leaders.row]
        )
        context, place = np.nonzero(merged >= 0)
        moved = Lists(merged[context, place], np.flatnonzero(moving)[context], place + 1)
        row, context, rank = (np.concatenate([old[kept], new]) for old, new in zip(incumbent, moved, strict=True))
        order = np.argsort(context * (length + 1) + rank)
        lists = Lists(row[order], context[order], rank[order])
    # Zeros: the order is settled, and only positions that a user weighted differ.
    return lists if evidence.fitted.parameters else _place(evidence.fitted, lists, np.zeros(len(lists.row)), length)


def _merge(
    incumbent: IntArray, stay: OfRows, leader: IntArray, of: IntArray, lower: FloatArray, earliest: IntArray
) -> IntArray:
    """The pairs of each list, as a table like that of the incumbent lists.

    Leaders come list by list, the highest lower bound first, with the first rank that they may take.
    """
    lists, length = incumbent.shape
    there = incumbent >= 0
    threshold = np.full(incumbent.shape, -np.inf)
    threshold[there] = stay(incumbent[there])
    merged, taken, free = np.full(incumbent.shape, -1), ~there, np.ones(len(leader), bool)
    slot, index = (np.full(1 + max(incumbent.max(initial=0), leader.max(initial=0)), -1) for _ in range(2))
    slot[incumbent[there]] = np.flatnonzero(there)  # where a pair stands in the incumbent lists
    index[leader] = np.arange(len(leader))  # and among the leaders
    starts = np.searchsorted(of, np.arange(lists))
    every, none = np.arange(lists), len(leader)
    for rank in range(1, length + 1):
        following = np.argmin(taken, axis=1)
        exhausted = taken[every, following]
        best = np.minimum.reduceat(np.where(free & (earliest <= rank), np.arange(none), none), starts)
        first = np.minimum(best, none - 1)
        beats = np.where(exhausted, -np.inf, threshold[every, following])
        rises = (best < none) & (lower[first] > beats)
        chosen = np.where(rises, leader[first], np.where(exhausted, -1, incumbent[every, following]))
        merged[:, rank - 1] = chosen
        chosen = chosen[chosen >= 0]
        taken.flat[slot[chosen][slot[chosen] >= 0]] = True
        free[index[chosen][index[chosen] >= 0]] = False
    return merged


def _place(fitted: FittedModel, lists: Lists, scores: FloatArray, length: int) -> Lists:
    """The lists with their items, which are sorted by score, where the click model places them."""
    if not len(lists.row):
        return lists
    size = np.bincount(lists.context)[lists.context]
    place = _places(fitted, scores, size, lists.rank - 1)
    order = np.argsort(lists.context * length + place)
    return Lists(lists.row[order], lists.context[order], place[order] + 1)


def _places(fitted: FittedModel, scores: FloatArray, size: IntArray, place: IntArray) -> IntArray:
    """Where the items of every list stand; they come sorted by score, with their rank and the size of their list."""
    places = place.copy()
    for items in np.unique(size):
        rows = np.flatnonzero(size == items)
        places[rows] = fitted.place(scores[rows].reshape(-1, items)).ravel()
    return places


def list_values(evidence: Evidence, lists: Lists, attraction: FloatArray, length: int, contexts: int) -> FloatArray:
    """Value of each context's list under the click model, for this attraction of its items.

    Or for what an examination of them earns, under a click model of which the value is linear in that.
    """
    table = np.zeros((contexts, length))
    # θ is never negative: where a bound is, 0 is the better one.
    table[lists.context, lists.rank - 1] = np.clip(attraction[lists.row] / evidence.most, 0, 1)
    return np.asarray(evidence.most * evidence.fitted.value(table))
