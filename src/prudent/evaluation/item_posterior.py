"""Attraction of the items of the policy's lists: counts in the holdout, and the posterior under a fitted prior."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.click_models.base import FittedModel
from prudent.counts.cells import Cells
from prudent.evaluation.holdout import Holdout

_CHUNK = 40_000  # lists that become cells at a time


def context_mask(numbers: IntArray, size: int) -> BoolArray:
    """The contexts of these numbers, as a mask."""
    mask = np.zeros(size, bool)
    mask[numbers] = True
    return mask


class ItemCounts(NamedTuple):
    """What held-out lists say about the items of the policy's lists, one row per context."""

    clicks: FloatArray
    examined: FloatArray  # Σx, with x the chance that an impression was examined
    squares: FloatArray  # Σx²
    exposure: FloatArray  # log of the share of a context's lists that showed the item
    position: FloatArray  # mean log of the positions that it was logged at
    logged: IntArray  # lists of each context
    there: BoolArray  # whether there is an item

    @property
    def covariates(self) -> FloatArray:
        """What a prior may depend on: exposure, position, rank, frequency of the context; along the last axis.

        The position is bent, and its slope depends on the rank: of what production put below, a policy takes up the
        items that are better than their position.
        """
        rank = np.log(np.arange(1, self.clicks.shape[1] + 1))
        lists = np.log(np.maximum(self.logged, 1))[:, None]
        one = np.ones(self.clicks.shape)
        place = self.position
        columns = [one, self.exposure, place, rank * one, lists * one, place**2, place * rank]
        return np.stack(columns, axis=-1)


class Prior(NamedTuple):
    """Beta(μs, (1−μ)s), where logit μ is a sum of covariates."""

    coefficients: FloatArray
    strength: float

    def mean(self, counts: ItemCounts) -> FloatArray:
        """The mean μ of every item."""
        return np.asarray(expit(_dot(counts.covariates, self.coefficients)))


class Posterior(NamedTuple):
    """The posterior of the items of the policy's lists, one row per context."""

    theta: FloatArray  # 0 where there is no item
    strength: FloatArray  # s + n, of the prior and of the lists
    shrinking: FloatArray  # the variance of θ that comes from shrinking it


def count_items(held: Holdout, fitted: FittedModel) -> ItemCounts:
    """Clicks and examinations of the items of the policy's lists, contexts in chunks."""
    clicks, examined, squares, impressions, positions = (np.zeros(held.target.shape) for _ in range(5))
    lists = np.cumsum(np.bincount(held.context, minlength=held.contexts))
    first = 0
    while first < held.contexts:
        done = lists[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(lists, done + _CHUNK, side="right")))
        chunk = held.chunk(first, last)
        there = chunk.target >= 0
        columns = _count_pairs(fitted, chunk.cells)
        for table, column in zip((clicks, examined, squares, impressions, positions), columns, strict=True):
            table[first:last][there] = column[chunk.target[there]]
        first = last
    exposure = np.log((impressions + 0.5) / (held.logged[:, None] + 1))
    below = np.log(held.length + 1)  # what was never shown
    position = np.divide(positions, impressions, out=np.full(positions.shape, below), where=impressions > 0)
    return ItemCounts(clicks, examined, squares, exposure, position, held.logged, held.target != -1)


def _count_pairs(fitted: FittedModel, cells: Cells) -> tuple[FloatArray, ...]:
    """Clicks, Σx, Σx², impressions and the sum of the logs of their positions, of every pair."""
    # Not n₊ + n₋, which serves bounds: where examinations are expectations, n₋ = max(0, Σx − ΣY) makes a whole trial of
    # an item that was shown once, and clicked, and its θ comes out too small.
    trials = fitted.trials(cells)
    logs = cells.n * np.log(cells.position)
    positions = np.bincount(cells.pair, logs, minlength=cells.pairs).astype(np.float64, copy=False)
    return trials.clicks, trials.expected, trials.squares, cells.per_pair(), positions


_STRENGTH = 0.5, 1_000.0  # limits of s
_ROUNDS = 30


def fit_prior(counts: ItemCounts, contexts: BoolArray) -> Prior:
    """The prior of the items that the policy chose in these contexts.

    Its mean follows exposure, position, rank and frequency: a ranker that is any good shows better items more and
    higher, a policy does better where there is more to learn from, and shrinking what was rarely shown to the mean of
    all would be wrong both times. It solves Σ v(Y − μn)z = 0 with v = s/(s + n), so that what is shrunk most has most
    to say in where to; and s fits the spread, ``E(Y − μn)² = μn − μ²q + (n² − q) μ(1 − μ)/(s + 1)`` with q = Σx².
    """
    seen = contexts[:, None] & counts.there & (counts.examined > 0)
    y, n, q, z = counts.clicks[seen], counts.examined[seen], counts.squares[seen], counts.covariates[seen]
    coefficients, strength = np.zeros(z.shape[1]), 5.0
    if not y.size:
        return Prior(coefficients, strength)
    rate = (y.sum() + 0.5) / (n.sum() + 1)
    coefficients[0] = logit(min(rate, 0.99))
    centre = z[:, 1:].mean(axis=0)
    z = np.hstack([z[:, :1], z[:, 1:] - centre])
    for _ in range(_ROUNDS):
        mean = expit(_dot(z, coefficients))
        weight = strength / (strength + n)
        slope = np.array([np.sum(column * weight * (y - mean * n)) for column in z.T])
        bend = weight * n * mean * (1 - mean)
        information = np.array([[np.sum(one * two * bend) for two in z.T] for one in z.T])
        # A unit of evidence for 0 holds what the log is silent about, such as ranks where all lists have one item.
        step = np.linalg.solve(information + np.eye(len(slope)), slope - np.append(0.0, coefficients[1:]))
        coefficients = np.clip(coefficients + step / max(1.0, float(np.abs(step).max())), -15.0, 15.0)
        more = np.sum(weight**2 * ((y - mean * n) ** 2 - mean * n + mean**2 * q))
        most = np.sum(weight**2 * (n * n - q) * mean * (1 - mean))
        # Items that were tried once say nothing about the spread; then s stays as it is.
        correlation = more / most if most > 1e-9 else 1 / (strength + 1)
        before, strength = strength, float(np.clip(1 / max(correlation, 1e-9) - 1, *_STRENGTH))
        if np.abs(step).max() < 1e-10 and abs(strength - before) < 1e-10 * before:
            break
    coefficients[0] -= np.sum(centre * coefficients[1:])
    return Prior(coefficients, strength)


def _dot(table: FloatArray, vector: FloatArray) -> FloatArray:
    """By numpy's own sums: products of matrices go to as many threads as there are, and show it in the last digits."""
    return np.asarray(np.sum(table * vector, axis=-1))


def posterior_of(counts: ItemCounts, prior: Prior) -> Posterior:
    """The posterior of every item of the policy's lists."""
    mean, strength = prior.mean(counts), prior.strength
    total = counts.examined + strength
    # Items with more clicks than expected examinations have a θ above 1 where s is small.
    theta = np.where(counts.there, np.minimum((counts.clicks + mean * strength) / total, 0.999), 0.0)
    shrinking = np.where(counts.there, (strength / total) ** 2 * mean * (1 - mean) / (strength + 1), 0.0)
    return Posterior(theta, total, shrinking)
