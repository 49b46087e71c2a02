"""Rewards of clicks: the lower bound of what an examination of an item is worth, from those of a rate and of a mean.

An examination is worth ``v = θ m``: the attraction times the mean reward of a click. Clicks and skips tell θ, under any
bound that has a posterior; the rewards of its clicks tell m. Given a click model, the two are independent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from scipy.special import betaincinv, gammaincinv, polygamma

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import LogError, UsageError
from prudent.bounds.base import Anchor, Bound, PriorRule, Scores
from prudent.click_models.evidence import Evidence


@dataclass(frozen=True)
class MeanReward:
    """The distribution of m over items, and what its posterior is after the rewards of some clicks.

    ``m ~ Gamma`` with mean M and the strength of s clicks, and n clicks that earned S in total have a mean of nm and a
    variance of nφm: exactly so where each earns 0 or φ and few earn φ, as with purchases, and about so otherwise. Then
    m has a posterior mean of ``(sM + S) / (s + n)`` and a variance of φ/(s + n) times that, to which the error of M is
    added as far as the prior counts. All four numbers are fitted by moments:

    - M = Σw S/n / Σw, each item weighted by the inverse w of the variance of its S/n, which is φM/n + τ²; its own
      variance is Σw²(S/n − M)² / (Σw)², whatever the items are;
    - φ = Σ(Q − S²/n) / Σ(n − 1)S/n over items with two clicks or more, with Q the sum of squares;
    - s = φM/τ², with τ² the variance of m between items, ``Σ[(S − nM)² − nφM] / Σn²``, and one standard error more:
      where the log hardly tells how much items differ, they are taken to differ more.
    """

    mean: float  # M
    dispersion: float  # φ
    between: float  # τ²
    variance: float  # of M

    @property
    def strength(self) -> float:
        """Of the prior (s), in clicks; infinite where items do not differ."""
        return self.dispersion * self.mean / self.between if self.between else inf

    def posterior(self, rewards: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of m for `Evidence.rewards`."""
        clicks, total, _ = rewards.T
        strength = self.strength
        if strength == inf:
            return np.full(len(clicks), self.mean), np.full(len(clicks), self.variance)
        mean = (strength * self.mean + total) / (strength + clicks)
        prior = strength / (strength + clicks)
        return mean, self.dispersion * mean / (strength + clicks) + prior**2 * self.variance

    @property
    def fitted(self) -> dict[str, float]:
        """As a manifest has it."""
        return {
            "reward_mean": self.mean,
            "reward_dispersion": self.dispersion,
            "reward_between": self.between,
            "reward_variance": self.variance,
        }


def fit_mean_reward(rewards: FloatArray) -> MeanReward:
    """The distribution of m over items, from `Evidence.rewards`."""
    n, total, squares = rewards[rewards[:, 0] > 0].T
    if not total.sum():
        raise LogError("Not one click of the log has a reward above 0: there is nothing to rank by. Name its column.")
    many = n > 1
    within = np.sum(squares[many] - total[many] ** 2 / n[many])
    expected = np.sum((n[many] - 1) * total[many] / n[many])
    if not expected:  # no item has two clicks and a reward
        within, expected = squares.sum() - total.sum() ** 2 / n.sum(), total.sum()
    mean, weight, between = total.sum() / n.sum(), n, 0.0
    # Where the clicks of an item all earn the same, a single one tells its m.
    dispersion = max(within / expected, 1e-9 * mean)
    for _ in range(_ROUNDS):
        excess = (total - n * mean) ** 2 - n * dispersion * mean
        between = max((excess.sum() + np.sqrt(np.sum(excess**2))) / np.sum(n**2), 0.0)
        weight = n / (dispersion * mean + n * between)
        mean = np.sum(weight * total / n) / weight.sum()
    variance = np.sum((weight * (total / n - mean)) ** 2) / weight.sum() ** 2
    return MeanReward(float(mean), float(dispersion), float(between), float(variance))


_ROUNDS = 20  # of weights and variances: the last ones change nothing in six digits


@dataclass(frozen=True)
class RewardBound(Bound):
    """A learned bound on attraction, made one on what an examination is worth.

    With the medians v₀ of θm and the quantiles of θ and of m at one level, the quantile of θm at that level is about
    ``v₀ exp(∓√(d² + e²))``, with d and e the distances of their logarithms from those of the medians (Zou and Donner
    2008). The logarithm of the product of two skewed posteriors has a lower median than the sum of theirs: below it,
    v₀ is moved by what a Cornish-Fisher expansion of third order says. Where m is certain, the bound is that of θ times
    m.
    """

    inner: Bound
    rewards: MeanReward
    spelling: str  # of the bound that was learned

    @property
    def promise(self) -> str:
        """On average over items, as that of the inner bound."""
        return reward_promise(self.spelling)

    @property
    def ungrouped(self) -> PriorRule | None:
        """That of the inner bound."""
        return self.inner.ungrouped

    def preference(self, evidence: Evidence) -> FloatArray | None:
        """That of the inner bound."""
        return self.inner.preference(evidence)

    def fitted(self, evidence: Evidence) -> Mapping[str, Any]:
        """Those of both priors."""
        return {**self.inner.fitted(evidence), **self.rewards.fitted}

    def score(self, evidence: Evidence) -> Scores:
        """Lower bound and mean of what an examination of every pair earns."""
        return self._valued(self.inner.score(evidence), evidence)

    def score_lists(self, evidence: Evidence, incumbent: BoolArray) -> Scores:
        """The same, with NaN where the inner bound has it."""
        return self._valued(self.inner.score_lists(evidence, incumbent), evidence)

    def _valued(self, scores: Scores, evidence: Evidence) -> Scores:
        deviation_of, level = scores.deviation, scores.list_level
        if deviation_of is None or level is None or evidence.rewards is None:
            raise UsageError(
                f"{self.spelling} has no posterior. Without one, a bound on rewards would need the largest possible "
                "reward, and be wide. Use anchored, bayes, eb, exposure or hierarchical."
            )
        clicked, spread = self.rewards.posterior(evidence.rewards)
        rows = np.flatnonzero(~np.isnan(scores.mean))
        found = np.full(len(scores.mean), -1)
        found[rows] = np.arange(len(rows))
        product = Product(scores.mean[rows], deviation_of(rows), clicked[rows], spread[rows])
        lower, mean = scores.lower.copy(), scores.mean * clicked
        lower[rows] = product.quantile(np.arange(len(rows)), scores.lower[rows], level)
        upper, anchor = scores.upper, scores.anchor

        def upper_of(some: IntArray) -> FloatArray:
            return product.quantile(found[some], upper(some), 1 - level)  # type: ignore[misc]

        def stay_of(some: IntArray) -> FloatArray:
            return product.quantile(found[some], anchor.stay(some), anchor.level)  # type: ignore[union-attr]

        return replace(
            scores,
            lower=lower,
            mean=mean,
            fitted={**scores.fitted, **self.rewards.fitted},
            upper=None if upper is None else upper_of,
            anchor=None if anchor is None else Anchor(stay_of, anchor.leads, anchor.preference, anchor.level),
            deviation=lambda some: product.deviation[found[some]],
        )


def reward_promise(spelling: str) -> str:
    """What the bound of this spelling means on rewards."""
    return (
        f"The lower bound of {spelling} on what an examination earns holds for about as many items as its "
        "bound on attraction does, on average over items and if the click model and both priors are right."
    )


class Product:
    """θm of some pairs, with θ about a Beta distribution and m a Gamma distribution of given moments."""

    def __init__(self, rate: FloatArray, deviation: FloatArray, mean: FloatArray, variance: FloatArray) -> None:
        self._mean, self._certain = mean, variance <= (1e-9 * mean) ** 2
        squares = deviation**2
        self.deviation = np.sqrt((squares + rate**2) * (variance + mean**2) - (rate * mean) ** 2)
        total = np.maximum(rate * (1 - rate) / np.maximum(squares, 1e-300) - 1, 1e-9)
        alpha, beta = rate * total, (1 - rate) * total
        self._shape = np.where(self._certain, 1.0, mean**2 / np.where(self._certain, 1.0, variance))
        self._rate_median, self._median = betaincinv(alpha, beta, 0.5), _gamma_quantile(self._shape, 0.5)
        seconds = polygamma(1, alpha) - polygamma(1, alpha + beta), polygamma(1, self._shape)
        thirds = polygamma(2, alpha) - polygamma(2, alpha + beta), polygamma(2, self._shape)
        apart = thirds[0] / seconds[0] + thirds[1] / seconds[1]
        self._shift = (apart - (thirds[0] + thirds[1]) / (seconds[0] + seconds[1])) / 6

    def quantile(self, rows: IntArray, rate: FloatArray, level: float) -> FloatArray:
        """Of some pairs, the quantile at a level, from that of θ."""
        with np.errstate(divide="ignore"):
            one = np.log(self._rate_median[rows] / rate)
            two = np.log(self._median[rows] / _gamma_quantile(self._shape[rows], level))
        signed = one * np.abs(one) + two * np.abs(two)
        away = np.sign(signed) * np.sqrt(np.abs(signed)) - (self._shift[rows] if level < 0.5 else 0.0)
        value = self._rate_median[rows] * self._median[rows] * np.exp(-away)
        return np.asarray(self._mean[rows] * np.where(self._certain[rows], rate, value))


def _gamma_quantile(shape: FloatArray, level: float) -> FloatArray:
    """Of a Gamma distribution with mean 1."""
    return np.asarray(gammaincinv(shape, level) / shape)
