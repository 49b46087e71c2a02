"""Importance weighting: the rewards of lists that match the policy, weighted to represent their contexts.

Matching is of whole lists, of their first k items, or of one item at its position; the estimators choose.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray
from prudent.evaluation.holdout import Holdout


class Matched(NamedTuple):
    """A reward, estimated from the lists that match the policy."""

    value: FloatArray  # per context: the expected reward; 0 where no list matches
    gain: FloatArray  # per list: its part of the sum of values, which bootstrap replicates reweight
    weight: FloatArray  # per list: 0 where it does not match
    supported: BoolArray  # per context: whether any list matches


def by_frequency(held: Holdout, match: BoolArray, reward: FloatArray, clip: float) -> Matched:
    """Weights N/m, where m of the N lists of a context match: without a clip, the mean reward of those m lists.

    A list moves the estimate by its residual times its weight. Where few lists match, residuals are too small: one
    list is its own mean, and three without clicks do not differ. So the variance within a context is shrunk towards
    the pooled one, with the weight of `_PRIOR` lists, and the pooled one is at least the variance among all lists.
    """
    matching = held.per_context(held.n * match)
    earned = held.per_context(held.n * match * reward)
    supported = matching > 0
    mean = np.divide(earned, matching, out=np.zeros(held.contexts), where=supported)
    weight = np.divide(held.logged, matching, out=np.zeros(held.contexts), where=supported)
    clipped = weight > clip
    weight = np.minimum(weight, clip)
    value = np.where(clipped, weight * earned / np.maximum(held.logged, 1), mean)
    residual = spread_residuals(held, match, reward, mean, matching)
    own = match * np.where(clipped[held.context], reward, residual)
    gain = weight[held.context] * own + np.where(clipped, 0.0, mean)[held.context]
    return Matched(value, gain, weight[held.context] * match, supported)


_PRIOR = 4.0  # lists


def spread_residuals(
    held: Holdout, match: BoolArray, reward: FloatArray, mean: FloatArray, matching: FloatArray
) -> FloatArray:
    """The residual of each matching list from the mean of its context, scaled to the shrunk variance."""
    overall = np.sum(held.logged * mean) / max(1, held.logged[matching > 0].sum())
    within = held.per_context(held.n * match * (reward - mean[held.context]) ** 2)
    several = matching > 1
    if several.any():
        pooled = float(np.average(within[several] / (matching[several] - 1), weights=held.logged[several]))
    else:  # no context has a variance: that of all lists together is rather too large
        pooled = float(np.sum(held.n * match * (reward - overall) ** 2) / max(1, matching.sum()))
    pooled = max(pooled, variance_within(held, reward))
    variance = (within + _PRIOR * pooled) / np.maximum(matching - 1 + _PRIOR, 1)
    # Squares add up to m times the variance; where all residuals are 0, each list gets an equal part.
    longer = np.sqrt(np.divide(matching * variance, within, out=np.zeros(held.contexts), where=within > 0))
    alike = np.where(reward >= overall, 1.0, -1.0) * np.sqrt(variance)[held.context]
    return np.asarray(np.where((within > 0)[held.context], longer[held.context] * (reward - mean[held.context]), alike))


def variance_within(held: Holdout, reward: FloatArray) -> float:
    """The variance of the reward within contexts, over all lists, matching or not."""
    mean = held.per_context(held.n * reward) / np.maximum(held.logged, 1)
    squares = np.sum(held.n * (reward - mean[held.context]) ** 2)
    return float(squares / max(1, held.n.sum() - (held.logged > 0).sum()))


def widen(held: Holdout, residual: FloatArray, inside: BoolArray, reward: FloatArray) -> FloatArray:
    """Residuals of a regression, scaled to a variance within contexts that is shrunk as in `by_frequency`."""
    lists, squares = held.per_context(held.n * inside), held.per_context(held.n * inside * residual**2)
    pooled = max(squares.sum() / max(1, lists.sum()), variance_within(held, reward))
    variance = (squares + _PRIOR * pooled) / (lists + _PRIOR)
    longer = np.sqrt(np.divide(lists * variance, squares, out=np.zeros(held.contexts), where=squares > 0))
    alike = np.where(reward > 0, 1.0, -1.0) * np.sqrt(variance)[held.context]
    return np.asarray(np.where((squares > 0)[held.context], longer[held.context] * residual, alike))


def by_propensity(held: Holdout, match: BoolArray, reward: FloatArray, propensity: FloatArray, clip: float) -> Matched:
    """Weights 1/P, where P is the logged propensity of each list."""
    weight = np.where(match, np.minimum(clip, 1 / np.where(match, propensity, 1.0)), 0.0)
    gain = weight * reward
    value = held.per_context(held.n * gain) / np.maximum(held.logged, 1)
    return Matched(value, gain, weight, held.per_context(held.n * match) > 0)


def sum_positions(held: Holdout, position: Callable[[int], Matched]) -> Matched:
    """The sum over the positions of the policy's lists; a list weighs the mean of the weights at its positions."""
    value, gain, weight = np.zeros(held.contexts), np.zeros(len(held.n)), np.zeros(len(held.n))
    supported = held.known.copy()
    share = 1 / np.maximum(held.size, 1)[held.context]
    for k in range(held.length):
        part = position(k)
        value += part.value
        gain += part.gain
        weight += part.weight * share
        supported &= part.supported | (held.size <= k)
    return Matched(value, gain, weight, supported)


def whole_propensity(held: Holdout) -> FloatArray | None:
    """The propensity of the matching part of each list that matches the policy's; None unless all are known."""
    if held.propensity is None:
        return None
    last = np.maximum(held.size[held.context] - 1, 0)
    known = held.propensity[np.arange(len(held.n)), last]
    return None if np.isnan(known[held.whole]).any() else known


def prefix_propensities(held: Holdout) -> FloatArray | None:
    """The propensity of the first k items of each list, for each k; None unless all that are needed are known."""
    if held.propensity is None:
        return None
    needed = np.arange(held.length) < held.depth[:, None]
    return None if np.isnan(held.propensity[needed]).any() else held.propensity
