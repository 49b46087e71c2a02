"""A lower bound on the value of a whole list, at a stated level."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.base.text import percent
from prudent.bounds import Scores
from prudent.click_models.evidence import Evidence
from prudent.policies.best_lists import list_values
from prudent.policies.list_arrays import Lists


def list_lower_bounds(evidence: Evidence, lists: Lists, scores: Scores, length: int, contexts: int) -> FloatArray:
    """The lower bound on the value of each context's list, which holds for a share 1 − `scores.list_level` of lists.

    For posteriors it is ``V(m) − √Σ gₖ² (mₖ − Lₖ)²``, with the estimates m and lower bounds L of the items. gₖ is the
    derivative of V by the attraction at k, which is exact where V is linear in each. The posteriors of items are
    independent given the prior, so their deviations add up in squares, and V deviates from its mean as a normal
    variable does: where P(θ ≤ L) is δ/2 for the items, so is P(V ≤ this) for the list, about. V of the lower bounds
    instead adds deviations up as if all items were bad at once, and lies below. Choosing K of M items needs no
    correction where the prior is right: a posterior is conditional on all data that the choice was made from.

    Bounds that hold at every θ, such as `hoeffding`, are made to hold for all M examined items of the context at once,
    each at δ/M: then they hold for whichever K are chosen, and so does V of them, which grows with every θ.

    Fitted parameters of the click model are at their cautious ends: `FittedModel.cautious`. Without a level, the result
    is V of the lower bounds, and a score.
    """
    level = scores.list_level
    if level is None:
        return list_values(evidence, lists, scores.lower, length, contexts)
    evidence = replace(evidence, fitted=evidence.fitted.cautious(level))
    if scores.joint is not None:
        joint = np.zeros(len(evidence.context))
        joint[lists.row] = scores.joint(lists.row)
        return list_values(evidence, lists, joint, length, contexts)
    mean, gap = np.zeros((2, contexts, length))
    mean[lists.context, lists.rank - 1] = np.clip(scores.mean[lists.row] / evidence.most, 0, 1)
    lower = np.clip(scores.lower[lists.row] / evidence.most, 0, 1)
    gap[lists.context, lists.rank - 1] = mean[lists.context, lists.rank - 1] - lower
    value = evidence.fitted.value
    return np.asarray(evidence.most * np.maximum(value(mean) - np.sqrt(squared_gap(value, mean, gap)), 0.0))


def squared_gap(value: Callable[[FloatArray], FloatArray], mean: FloatArray, gap: FloatArray) -> FloatArray:
    """Σ (gₖ × gapₖ)² of every list, with gₖ the derivative of its value by the attraction at k."""
    result, squares, rest = value(mean), np.zeros(len(mean)), mean.copy()
    for k in range(mean.shape[1]):
        # What the item adds, per θ: V is linear in it or, for ccm, bent, and then what counts is the way to the bound.
        step = np.minimum(gap[:, k], mean[:, k])
        rest[:, k] = mean[:, k] - step
        slope = np.divide(result - value(rest), step, out=np.zeros(len(mean)), where=step != 0)
        rest[:, k] = mean[:, k]
        squares += (slope * gap[:, k]) ** 2
    return np.asarray(squares)


def list_promise(level: float | None, bound: str) -> str:
    """What the lower bound on the value of lists means; `level` is that of a policy's manifest."""
    if level is None:
        return f"{bound} has no lower bound for whole lists: theirs is the value of the lower bounds of their items."
    return (
        f"About {percent(level, 0)} of lists or more are worth at least their lower bound, whichever candidates were "
        "chosen, if the click model and the assumptions of the bound are right."
    )
