"""The mean reward of a click on each item of the policy's lists, from a holdout: what a click model does not know."""

from dataclasses import dataclass

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.base.errors import LogError
from prudent.bounds.rewards import fit_mean_reward
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
    totals = np.zeros((len(held.pair_context), 3))
    for k in range(held.length):
        row = np.flatnonzero(held.clicks[:, k])
        item, n, reward = held.items[row, k], held.n[row], held.rewards[row, k]
        for column, values in enumerate((n, n * reward, n * reward**2)):
            totals[:, column] += np.bincount(item, values, minlength=len(totals))
    there = held.target >= 0
    own = np.zeros((*held.target.shape, 3))
    own[there] = totals[held.target[there]]
    try:
        prior = fit_mean_reward(own[there])
    except LogError as error:
        raise CannotTellError("No click on an item of the policy has a reward above 0.") from error
    strength = prior.strength
    share = 1.0 if np.isinf(strength) else strength / (strength + own[..., 0])
    mean = prior.posterior(own.reshape(-1, 3))[0].reshape(held.target.shape)
    return ClickRewards(
        mean,
        np.zeros_like(mean) if np.isinf(strength) else 1 / (strength + own[..., 0]),
        np.broadcast_to(share**2 * prior.between, mean.shape),
        np.broadcast_to(share * np.sqrt(prior.variance), mean.shape),
    )
