"""Lists that hold under several click models: the best worst case."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from prudent.base.arrays import IntArray
from prudent.bounds import Scores
from prudent.click_models.evidence import Evidence
from prudent.policies.best_lists import list_values
from prudent.policies.list_arrays import Lists, only
from prudent.policies.list_bound import list_lower_bounds


class View(NamedTuple):
    """What one click model and one bound make of some contexts."""

    evidence: Evidence
    scores: Scores


def robust_lists(
    views: Sequence[View], candidates: Sequence[Lists], incumbent: Lists, length: int, contexts: int
) -> Lists:
    """The candidate with the best worst case of each context; of equally good ones, the first.

    The incumbent list is a candidate too, so that no list has a worse worst case than it.
    """
    lists = [*candidates, incumbent]
    return pick(lists, best_worst_case(views, lists, incumbent, length, contexts))


def best_worst_case(
    views: Sequence[View], lists: Sequence[Lists], incumbent: Lists, length: int, contexts: int
) -> IntArray:
    """For each context, the number of the list with the best worst case; of equally good ones, the first.

    The values of click models count different things, such as clicks and satisfying clicks, and models disagree most
    about how many there are, which no list changes. So the lower bound on the value of a list is taken as a multiple of
    the value that the same model estimates for the incumbent list: under each model, what a list is sure to gain or
    lose.
    """
    worst = np.full((len(lists), contexts), np.inf)
    for view in views:
        scale = list_values(view.evidence, incumbent, view.scores.mean, length, contexts)
        for number, one in enumerate(lists):
            lower = list_lower_bounds(view.evidence, one, view.scores, length, contexts)
            gain = np.divide(lower, scale, out=np.zeros(contexts), where=scale > 0)
            worst[number] = np.minimum(worst[number], gain)
    return np.asarray(np.argmax(worst >= worst.max(axis=0) * (1 - _TIE), axis=0))


_TIE = 1e-9  # of the worst case: what rounding may take


def pick(lists: Sequence[Lists], chosen: IntArray) -> Lists:
    """The list of each context that is chosen for it."""
    parts = [only(one, chosen == number) for number, one in enumerate(lists)]
    row, context, rank = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort([rank, context])
    return Lists(row[order], context[order], rank[order])
