"""The mean reward of a click on each item of the policy's lists, from a holdout: what a click model does not know."""

from dataclasses import dataclass

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import LogError
from prudent.bounds.rewards import MeanReward, fit_mean_reward
from prudent.evaluation.holdout import CannotTellError, Holdout


@dataclass(frozen=True, eq=False)
class ClickRewards:
    """Posterior means, one row per context, and what is uncertain about them.

    As with attractions, the prior is learned from the items that the policy chose, and the rewards of held-out clicks
    move the mean of their item.
    """

    mean: FloatArray
    moving: FloatArray  # by how much a click that earns one more than this moves it
    shrinking: FloatArray  # the variance of the mean that comes from shrinking it
    common: FloatArray  # by how much it moves with the mean of the prior, in standard errors of that

    @classmethod
    def alike(cls, held: Holdout) -> "ClickRewards":
        """Clicks that all earn 1."""
        none = np.zeros(held.target.shape)
        return cls(np.ones(held.target.shape), none, none, none)

    def moves(self, held: Holdout, slope: FloatArray) -> FloatArray:
        """How far the rewards of each list move a sum with these slopes by the means."""
        moved = np.zeros(len(held.n))
        if not self.moving.any():
            return moved
        there = held.target >= 0
        mean, step = np.zeros((2, len(held.pair_context) + 2))  # the last two are no items: −2 and −1
        mean[held.target[there]], step[held.target[there]] = self.mean[there], (slope * self.moving)[there]
        for k in range(held.length):
            item = held.items[:, k]
            moved += np.where(held.clicks[:, k], step[item] * (held.rewards[:, k] - mean[item]), 0.0)
        return moved


def learn_click_rewards(held: Holdout) -> ClickRewards:
    """The means of the items of the policy's lists."""
    totals, there = _earned(held), held.target >= 0
    own = np.zeros((*held.target.shape, 3))
    own[there] = totals[held.target[there]]
    prior = _fit_prior(own[there])
    strength = prior.strength
    share = 1.0 if np.isinf(strength) else strength / (strength + own[..., 0])
    mean = prior.posterior(own.reshape(-1, 3))[0].reshape(held.target.shape)
    return ClickRewards(
        mean,
        np.zeros_like(mean) if np.isinf(strength) else 1 / (strength + own[..., 0]),
        np.broadcast_to(share**2 * prior.between, mean.shape),
        np.broadcast_to(share * np.sqrt(prior.variance), mean.shape),
    )


def posterior_of_lists(held: Holdout, *lists: IntArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the mean reward of a click on each pair; the prior is learned from the items of the lists.

    An item of several lists counts in each, as in the prior of attractions.
    """
    totals = _earned(held)
    return _fit_prior(totals[np.concatenate([items[items >= 0] for items in lists])]).posterior(totals)


def _earned(held: Holdout) -> FloatArray:
    """Clicks on each pair, and the sums of their rewards and of the squares of these."""
    totals = np.zeros((len(held.pair_context), 3))
    for k in range(held.length):
        row = np.flatnonzero(held.clicks[:, k])
        item, n, reward = held.items[row, k], held.n[row], held.rewards[row, k]
        for column, values in enumerate((n, n * reward, n * reward**2)):
            totals[:, column] += np.bincount(item, values, minlength=len(totals))
    return totals


def _fit_prior(earned: FloatArray) -> MeanReward:
    try:
        return fit_mean_reward(earned)
    except LogError as error:
        raise CannotTellError("No click on an item of the policy has a reward above 0.") from error
