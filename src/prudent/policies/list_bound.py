"""A lower bound on the value of a whole list, at the level of the bounds of its items."""

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.bounds import Scores
from prudent.click_models.base import Evidence
from prudent.policies.list_arrays import Lists


def list_lower_bounds(evidence: Evidence, lists: Lists, scores: Scores, length: int, contexts: int) -> FloatArray:
    """``V(m) − √Σ gₖ² (mₖ − Lₖ)²`` of each context's list, with the estimates m and lower bounds L of its items.

    gₖ is the derivative of V by the attraction at k, which is exact because V is linear in each. The posteriors of
    items are independent given the prior, so their deviations add up in squares, and V deviates from its mean as a
    normal variable does: where P(θ ≤ L) is δ/2 for the items, so is P(V ≤ this) for the list, about. V of the lower
    bounds instead adds deviations up as if all items were bad at once, and lies below.

    Choosing K of M items needs no correction where the prior is right: a posterior is conditional on all data that the
    choice was made from. Bounds that hold at every θ, such as `hoeffding`, have no such list bound: they would have to
    hold for all items at once.
    """
    mean, gap = np.zeros((2, contexts, length))
    mean[lists.context, lists.rank - 1] = np.clip(scores.mean[lists.row], 0, 1)
    lower = np.clip(scores.lower[lists.row], 0, 1)
    gap[lists.context, lists.rank - 1] = mean[lists.context, lists.rank - 1] - lower
    value = evidence.fitted.value
    squares = np.zeros(contexts)
    for k in range(length):
        with_item, without = mean.copy(), mean.copy()
        with_item[:, k], without[:, k] = 1, 0
        squares += ((value(with_item) - value(without)) * gap[:, k]) ** 2
    return np.asarray(value(mean) - np.sqrt(squares))
