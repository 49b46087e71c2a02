"""By how much the policy's list beats the incumbent list in each context, under a click model, and how sure that is.

Attractions of different items are independent given the counts, and the expected reward of a list is linear in each of
them, so that the variance of the difference is Σ slope² Var(θ) over the items of both lists. Where clicks earned
rewards, so is the mean reward m of a click on each item, and Σ slope² Var(m) is added.
"""

from typing import NamedTuple

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.click_models.base import FittedModel
from prudent.click_models.rewards import COLUMN, EarnedReward, by_clicks
from prudent.evaluation.click_rewards import posterior_of_lists
from prudent.evaluation.direct import rewards, slopes
from prudent.evaluation.holdout import Holdout
from prudent.evaluation.item_posterior import ItemCounts, count_items, fit_prior, posterior_of


class ListDifferences(NamedTuple):
    """Expected rewards of both lists; one row per context, one column per position."""

    policy: FloatArray
    incumbent: FloatArray  # as far down as both lists have items
    beside: IntArray  # the incumbent list so far, as in `Holdout.target`
    doubt: FloatArray  # per context: standard deviation of policy − (1 + min_lift) · incumbent
    counts: ItemCounts  # of the items of the incumbent list

    def gain(self, min_lift: float = 0.0) -> FloatArray:
        """Per context: policy − (1 + min_lift) · incumbent."""
        return np.asarray(self.policy.sum(axis=1) - (1 + min_lift) * self.incumbent.sum(axis=1))


def list_differences(
    held: Holdout,
    fitted: FittedModel,
    incumbent: IntArray,
    supported: BoolArray,
    reward: EarnedReward,
    min_lift: float = 0.0,
) -> ListDifferences:
    """Compare the policy's list of every context with the incumbent one; only `supported` contexts are meaningful."""
    other = Holdout(held.lists, incumbent, np.ones(held.contexts, bool), held.upto, held.trained)
    mine, theirs = count_items(held, fitted), count_items(other, fitted)
    both = ItemCounts(*(np.concatenate(pair) for pair in zip(mine, theirs, strict=True)))
    prior = fit_prior(both, np.concatenate([supported, np.ones(held.contexts, bool)]))
    theta, variance = np.zeros(len(held.pair_context)), np.zeros(len(held.pair_context))
    for counts, target in ((theirs, incumbent), (mine, held.target)):
        posterior, there = posterior_of(counts, prior), target >= 0
        theta[target[there]] = posterior.theta[there]
        # ΣVar(y)/(Σx)² with Var(y) = xθ(1 − xθ): what is examined half of the time says less than half as many lists.
        certain = np.divide(
            counts.squares, counts.examined, out=np.ones_like(counts.examined), where=counts.examined > 0
        )
        spread = posterior.theta * (1 - posterior.theta * certain)
        variance[target[there]] = (spread / (posterior.strength + 1))[there]
    mean, spread_of_mean = np.ones(theta.shape), np.zeros(theta.shape)
    if reward == COLUMN:
        mean, spread_of_mean = posterior_of_lists(held, held.target, incumbent)
    earned, slope, per_mean = [], np.zeros(len(held.pair_context)), np.zeros(len(held.pair_context))
    beside = np.where(np.arange(held.length) < held.upto[:, None], incumbent, -1)
    for sign, target in ((1.0, held.target), (-(1 + min_lift), beside)):
        there = target >= 0
        own, worth = np.where(there, theta[target], 0.0), np.where(there, mean[target], 0.0)
        clicks = rewards(fitted, own, by_clicks(reward))
        earned.append(clicks * worth)
        slope[target[there]] += sign * slopes(fitted, own, by_clicks(reward), worth)[there]
        per_mean[target[there]] += sign * clicks[there]
    variances = slope**2 * variance + per_mean**2 * spread_of_mean
    doubt = np.sqrt(np.bincount(held.pair_context, variances, minlength=held.contexts))
    return ListDifferences(earned[0], earned[1], beside, doubt, theirs)
