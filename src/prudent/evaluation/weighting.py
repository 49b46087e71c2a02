"""What lists that agree with the policy earned, weighted to stand for all lists of their contexts.

Every estimator by weights is made of this: of whole lists, of their first k items, or of one item at its position.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray
from prudent.evaluation.holdout import HeldOut


class Matched(NamedTuple):
    """A reward, estimated from the lists that agree with the policy."""

    value: FloatArray  # per context: the reward to expect; 0 where nothing agrees
    gain: FloatArray  # per list: its part in the sum of values, which replicates weigh anew
    weight: FloatArray  # per list: 0 where it does not agree
    found: BoolArray  # per context: whether any list agrees


def by_frequency(held: HeldOut, match: BoolArray, reward: FloatArray, clip: float) -> Matched:
    """Weights N/m, where m of the N lists of a context agree: the mean reward of those that do, if nothing is clipped.

    A list moves the estimate by its distance from that mean, times its weight. Where few lists agree, those distances
    are mostly too short: one list is its own mean, and three that were not clicked have none between them. So the
    variance within a context is taken to be that of all contexts, as if `_PRIOR` more lists had shown it, and that of
    all contexts to be no less than among all lists, whether they agree or not.
    """
    agree = held.per_context(held.n * match)
    earned = held.per_context(held.n * match * reward)
    found = agree > 0
    mean = np.divide(earned, agree, out=np.zeros(held.contexts), where=found)
    weight = np.divide(held.logged, agree, out=np.zeros(held.contexts), where=found)
    clipped = weight > clip
    weight = np.minimum(weight, clip)
    value = np.where(clipped, weight * earned / np.maximum(held.logged, 1), mean)
    far = scatter(held, match, reward, mean, agree)
    own = match * np.where(clipped[held.context], reward, far)
    gain = weight[held.context] * own + np.where(clipped, 0.0, mean)[held.context]
    return Matched(value, gain, weight[held.context] * match, found)


_PRIOR = 4.0  # lists


def scatter(held: HeldOut, match: BoolArray, reward: FloatArray, mean: FloatArray, agree: FloatArray) -> FloatArray:
    """How far each list that agrees is from the mean of its context, with a variance that few lists cannot hide."""
    usual = np.sum(held.logged * mean) / max(1, held.logged[agree > 0].sum())
    within = held.per_context(held.n * match * (reward - mean[held.context]) ** 2)
    several = agree > 1
    if several.any():
        pooled = float(np.average(within[several] / (agree[several] - 1), weights=held.logged[several]))
    else:  # no context knows a variance: that of all lists together is rather too large
        pooled = float(np.sum(held.n * match * (reward - usual) ** 2) / max(1, agree.sum()))
    pooled = max(pooled, among_all(held, reward))
    variance = (within + _PRIOR * pooled) / np.maximum(agree - 1 + _PRIOR, 1)
    # Their squares are to sum up to m times the variance; where all are alike, each has the same part of it.
    longer = np.sqrt(np.divide(agree * variance, within, out=np.zeros(held.contexts), where=within > 0))
    alike = np.where(reward >= usual, 1.0, -1.0) * np.sqrt(variance)[held.context]
    return np.asarray(np.where((within > 0)[held.context], longer[held.context] * (reward - mean[held.context]), alike))


def among_all(held: HeldOut, reward: FloatArray) -> float:
    """The variance of the reward within contexts, of all lists, whether they agree or not."""
    mean = held.per_context(held.n * reward) / np.maximum(held.logged, 1)
    squares = np.sum(held.n * (reward - mean[held.context]) ** 2)
    return float(squares / max(1, held.n.sum() - (held.logged > 0).sum()))


def widen(held: HeldOut, far: FloatArray, inside: BoolArray, reward: FloatArray) -> FloatArray:
    """Distances of lists from what they were expected to earn, with a variance that few lists cannot hide.

    As in `scatter`: that within a context is as if `_PRIOR` more lists had shown what all contexts together show.
    """
    lists, squares = held.per_context(held.n * inside), held.per_context(held.n * inside * far**2)
    pooled = max(squares.sum() / max(1, lists.sum()), among_all(held, reward))
    variance = (squares + _PRIOR * pooled) / (lists + _PRIOR)
    longer = np.sqrt(np.divide(lists * variance, squares, out=np.zeros(held.contexts), where=squares > 0))
    alike = np.where(reward > 0, 1.0, -1.0) * np.sqrt(variance)[held.context]
    return np.asarray(np.where((squares > 0)[held.context], longer[held.context] * far, alike))


def by_propensity(held: HeldOut, match: BoolArray, reward: FloatArray, propensity: FloatArray, clip: float) -> Matched:
    """Weights 1/P, where P is the probability that was logged with each list."""
    weight = np.where(match, np.minimum(clip, 1 / np.where(match, propensity, 1.0)), 0.0)
    gain = weight * reward
    value = held.per_context(held.n * gain) / np.maximum(held.logged, 1)
    return Matched(value, gain, weight, held.per_context(held.n * match) > 0)


def sum_positions(held: HeldOut, position: Callable[[int], Matched]) -> Matched:
    """The sum over the positions of the policy's lists; the weight of a list is the mean of its positions' weights."""
    value, gain, weight = np.zeros(held.contexts), np.zeros(len(held.n)), np.zeros(len(held.n))
    found = held.known.copy()
    share = 1 / np.maximum(held.size, 1)[held.context]
    for k in range(held.length):
        part = position(k)
        value += part.value
        gain += part.gain
        weight += part.weight * share
        found &= part.found | (held.size <= k)
    return Matched(value, gain, weight, found)


def whole_propensity(held: HeldOut) -> FloatArray | None:
    """Of each list that agrees with the policy's, the propensity of what agrees; None unless all are known."""
    if held.propensity is None:
        return None
    last = np.maximum(held.size[held.context] - 1, 0)
    known = held.propensity[np.arange(len(held.n)), last]
    return None if np.isnan(known[held.whole]).any() else known


def prefix_propensities(held: HeldOut) -> FloatArray | None:
    """The propensity of the first k items of each list, for each k; None unless all are known that are needed."""
    if held.propensity is None:
        return None
    needed = np.arange(held.length) < held.depth[:, None]
    return None if np.isnan(held.propensity[needed]).any() else held.propensity
