"""The quantile of a posterior under a given prior."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import betainccinv, betaincinv, expit

from prudent.base.arrays import FloatArray
from prudent.base.text import percent
from prudent.bounds.base import Bound, Scores, bounds, check_delta, check_positive
from prudent.click_models.base import Evidence


class Prior(NamedTuple):
    """Beta(α, β), one for all pairs or one for each."""

    alpha: FloatArray | float
    beta: FloatArray | float
    fitted: Mapping[str, Any] = MappingProxyType({})  # what was learned to get there; fits JSON


class PriorRule(Protocol):
    """What is believed of a pair before its own clicks are looked at; the same whichever contexts are asked about."""

    def of(self, evidence: Evidence) -> Prior:
        """The prior of every pair."""
        ...


class PosteriorBound(Bound):
    """A quantile of the posterior under some prior. The prior does not depend on δ: fit once, then sweep δ."""

    @property
    @abstractmethod
    def delta(self) -> float:
        """P(θ ≤ L(a)) is δ/2."""

    @property
    def promise(self) -> str:
        """It holds on average over items."""
        share = percent(1 - self.delta / 2, 0)
        return (
            f"The lower bound of {self} is below the attraction of about {share} of the items, on average over "
            "items and if the click model and the prior are right. It is no guarantee for a single item, nor for all."
        )

    @abstractmethod
    def learn_prior(self, evidence: Evidence) -> PriorRule:
        """What all contexts together say of any pair."""

    def prior(self, evidence: Evidence) -> Prior:
        """What is believed of every pair before its own clicks are looked at."""
        return self.learn_prior(evidence).of(evidence)

    def score(self, evidence: Evidence) -> Scores:
        """Quantile and mean of the posterior."""
        return posterior_scores(evidence, self.prior(evidence), self.delta)

    def upper(self, scores: Scores, positive: FloatArray, negative: FloatArray) -> FloatArray | None:
        """The 1 − δ/2 quantile: with the bound, it holds all but δ of the posterior."""
        total = self.strength(scores, positive, negative) + positive + negative
        return np.asarray(betainccinv(scores.mean * total, (1 - scores.mean) * total, self.delta / 2))

    @abstractmethod
    def strength(self, scores: Scores, positive: FloatArray, negative: FloatArray) -> FloatArray:
        """α + β of the prior that every pair had."""

    def learn(self, evidence: Evidence, pairs: int) -> Bound:
        """The quantile under the prior that this evidence suggests."""
        return Posterior(self.delta, self.learn_prior(evidence), tabulated=pairs >= TABLE_FROM)


@dataclass(frozen=True)
class Posterior(Bound):
    """A quantile of the posterior under a prior that is no longer learned."""

    delta: float
    rule: PriorRule
    tabulated: bool  # whether quantiles come from a table: see `beta_quantile`

    def score(self, evidence: Evidence) -> Scores:
        """Quantile and mean of the posterior."""
        return posterior_scores(evidence, self.rule.of(evidence), self.delta, self.tabulated)


@dataclass(frozen=True)
class GivenPrior(PriorRule):
    """One Beta(α, β) for all pairs."""

    alpha: float
    beta: float
    fitted: Mapping[str, Any] = field(default_factory=dict)

    def of(self, evidence: Evidence) -> Prior:
        """The same for every pair."""
        return Prior(self.alpha, self.beta, self.fitted)


@bounds.register("bayes")
@dataclass(frozen=True)
class Bayes(PosteriorBound):
    """Posterior quantile under a Beta prior, Eq. (6): ``P(θ ≤ L(a)) = δ/2`` where ``θ ~ Beta(α + n₊, β + n₋)``.

    Where θ really is drawn from Beta(α, β), the bound holds for a share 1 − δ/2 of the items: *averaged over the
    prior*, not at every θ. Under a wrong prior it promises nothing until n is large.
    At ``delta=1`` this is the posterior median, not the MLE; that is ``mle``. An unseen item gets the quantile
    of the prior.
    """

    delta: float = 0.2
    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_positive("alpha", self.alpha)
        check_positive("beta", self.beta)

    def learn_prior(self, evidence: Evidence) -> PriorRule:
        """The given one."""
        return GivenPrior(self.alpha, self.beta)

    def strength(self, scores: Scores, positive: FloatArray, negative: FloatArray) -> FloatArray:
        """That of the given one."""
        return np.full_like(scores.mean, self.alpha + self.beta)


def posterior_scores(evidence: Evidence, prior: Prior, delta: float, tabulated: bool | None = None) -> Scores:
    """The δ/2 quantile and the mean of Beta(α + n₊, β + n₋); from a table where there are many, if nothing is said."""
    alpha, beta = prior.alpha + evidence.positive, prior.beta + evidence.negative
    many = alpha.size >= TABLE_FROM if tabulated is None else tabulated
    quantile = beta_quantile(alpha, beta, delta / 2) if many else np.asarray(betaincinv(alpha, beta, delta / 2))
    return Scores(quantile, alpha / (alpha + beta), prior.fitted)


TABLE_FROM = 200_000
"""Pairs from which on a table of quantiles is worth its making, about as much as 50,000 quantiles."""
_STEP = 0.1  # in log α and log β; errors stay under 3e-10
_REACH = (0.05, 1e6)  # of α and β, with a sum of at least 1.5: below, two peaks at 0 and 1 make it steep


def beta_quantile(alpha: FloatArray, beta: FloatArray, probability: float) -> FloatArray:
    """The quantile of many Beta distributions at one probability, to 1e-9 of `scipy.special.betaincinv`.

    In logits the quantile is a smooth function of log α and log β. A quintic spline through a table of it costs
    a quarter of inverting the incomplete beta function at each of millions of pairs. The table is the same whoever
    asks, so that a quantile does not depend on what else is asked for.

    >>> beta_quantile(np.array([1.0]), np.array([1.0]), 0.1).round(9)
    array([0.1])
    """
    low, high = _REACH
    within = (alpha >= low) & (alpha <= high) & (beta >= low) & (beta <= high) & (alpha + beta >= 1.5)
    spline = _table(probability)
    if spline is None:
        return np.asarray(betaincinv(alpha, beta, probability))
    quantile = np.empty_like(alpha)
    quantile[within] = expit(spline.ev(np.log(alpha[within]), np.log(beta[within])))
    quantile[~within] = betaincinv(alpha[~within], beta[~within], probability)
    return quantile


@lru_cache(maxsize=16)
def _table(probability: float) -> Any:
    """The spline, or None for a minute probability, at which quantiles underflow."""
    from scipy.interpolate import RectBivariateSpline  # slow to import, and small logs do without

    # Three nodes more on each side keep the ends of the spline, where it is least exact, away from the values.
    first, last = np.floor(np.log(_REACH[0]) / _STEP) - 3, np.ceil(np.log(_REACH[1]) / _STEP) + 3
    nodes = np.arange(first, last + 1) * _STEP
    alpha, beta = np.exp(nodes)[:, None], np.exp(nodes)
    # A logit in two parts: near 1 the quantile itself has lost its last digits, its complement has not.
    table = np.log(np.maximum(betaincinv(alpha, beta, probability), np.finfo(float).tiny))
    table -= np.log(betainccinv(beta, alpha, probability))
    return None if table.min() < -700 else RectBivariateSpline(nodes, nodes, table, kx=5, ky=5)
