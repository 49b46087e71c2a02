"""The quantile of a posterior under a fixed prior."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from scipy.special import betainccinv

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.numerics.thinned import (
    Quantiles,
    Shape,
    Thinned,
    collapse,
    exact_quantiles,
    thinned_quantile,
    thinned_sample,
    thinned_scores,
)
from prudent.base.text import percent
from prudent.bounds.base import Bound, Prior, PriorRule, Scores, bounds, check_delta, check_positive
from prudent.bounds.quantiles import TABLE_FROM, beta_quantiles
from prudent.click_models.evidence import Evidence


class PosteriorBound(Bound):
    """A quantile of the posterior under some prior. The prior does not depend on δ: fit once, then sweep δ."""

    posterior: ClassVar[bool] = True

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
        """The prior fitted to all contexts together."""

    def prior(self, evidence: Evidence) -> Prior:
        """The prior of every pair."""
        return self.learn_prior(evidence).of(evidence)

    def score(self, evidence: Evidence) -> Scores:
        """Quantile and mean of the posterior."""
        return posterior_scores(evidence, self.prior(evidence), self.delta)

    def learn(self, evidence: Evidence, pairs: int) -> Bound:
        """The quantile under the prior fitted to this evidence."""
        return LearnedQuantile(self.delta, self.learn_prior(evidence), tabulated=pairs >= TABLE_FROM)


@dataclass(frozen=True)
class LearnedQuantile(Bound):
    """A quantile of the posterior under a fitted prior."""

    delta: float
    rule: PriorRule
    tabulated: bool  # whether quantiles come from a table: see `beta_quantiles`

    def score(self, evidence: Evidence) -> Scores:
        """Quantile and mean of the posterior."""
        return posterior_scores(evidence, self.rule.of(evidence), self.delta, self.tabulated)

    def fitted(self, evidence: Evidence) -> Mapping[str, Any]:
        """Those of the prior."""
        return self.rule.of(evidence).fitted


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

    Where a click model says of each impression with which probability x it was examined, as ``pbm`` does, the posterior
    is ``∝ θ^(α+n₊−1) (1−θ)^(β−1) ∏ (1 − xθ)`` over the skips instead: Σx examinations of unknown impressions tell less
    than as many known ones. An uncertain x widens it.

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
        """The fixed prior."""
        return GivenPrior(self.alpha, self.beta)


class Posterior(Protocol):
    """The posterior of every pair."""

    def scores(self, *levels: float) -> tuple[list[FloatArray], FloatArray]:
        """The quantiles at these levels, and the mean, of every pair."""
        ...

    def quantile(self, rows: IntArray, level: float) -> FloatArray:
        """The quantiles of some pairs."""
        ...

    def upper(self, rows: IntArray, level: float) -> FloatArray:
        """The values that some pairs exceed with a probability of `level`."""
        ...

    def deviation(self, rows: IntArray) -> FloatArray:
        """The standard deviations of some pairs."""
        ...

    def sample(self, random: np.random.Generator) -> FloatArray:
        """A draw of every pair."""
        ...


class BetaPosterior(NamedTuple):
    """Beta(α + n₊, β + n₋), where examinations are certain."""

    alpha: FloatArray
    beta: FloatArray
    tabulated: bool  # whether quantiles come from a table: see `beta_quantiles`

    def scores(self, *levels: float) -> tuple[list[FloatArray], FloatArray]:
        """The quantiles at these levels, and the mean, of every pair."""
        values = _quantiles(self.tabulated)(self.alpha, self.beta, levels)
        return list(values), self.alpha / (self.alpha + self.beta)

    def quantile(self, rows: IntArray, level: float) -> FloatArray:
        """The quantiles of some pairs."""
        (value,) = _quantiles(self.tabulated)(self.alpha[rows], self.beta[rows], [level])
        return value

    def upper(self, rows: IntArray, level: float) -> FloatArray:
        """The values that some pairs exceed with a probability of `level`."""
        if self.tabulated:
            return self.quantile(rows, 1 - level)
        return np.asarray(betainccinv(self.alpha[rows], self.beta[rows], level))

    def deviation(self, rows: IntArray) -> FloatArray:
        """The standard deviations of some pairs."""
        return _beta_deviation(self.alpha[rows], self.beta[rows])

    def sample(self, random: np.random.Generator) -> FloatArray:
        """A draw of every pair."""
        return random.beta(self.alpha, self.beta)


class ThinnedPosterior(NamedTuple):
    """∝ θ^(α+n₊−1) (1−θ)^(β−1) ∏ (1 − xθ), over skips that were examined with probability x."""

    thinned: Thinned
    shape: Shape
    tabulated: bool

    def scores(self, *levels: float) -> tuple[list[FloatArray], FloatArray]:
        """The quantiles at these levels, and the mean, of every pair."""
        return thinned_scores(self.thinned, self.shape, levels, _quantiles(self.tabulated))

    def quantile(self, rows: IntArray, level: float) -> FloatArray:
        """The quantiles of some pairs."""
        return thinned_quantile(self.thinned.only(rows), self.shape.only(rows), level, _quantiles(self.tabulated))

    def upper(self, rows: IntArray, level: float) -> FloatArray:
        """The values that some pairs exceed with a probability of `level`."""
        return self.quantile(rows, 1 - level)

    def deviation(self, rows: IntArray) -> FloatArray:
        """The standard deviations of some pairs: those of the Beta distributions with their mode and curvature."""
        shape = self.shape.only(rows)
        return _beta_deviation(shape.alpha, shape.beta)

    def sample(self, random: np.random.Generator) -> FloatArray:
        """A draw of every pair."""
        return thinned_sample(self.thinned, self.shape, random)


def _quantiles(tabulated: bool) -> Quantiles:
    return beta_quantiles if tabulated else exact_quantiles


def _beta_deviation(alpha: FloatArray, beta: FloatArray) -> FloatArray:
    total = alpha + beta
    return np.asarray(np.sqrt(alpha * beta / (total + 1)) / total)


def posterior(evidence: Evidence, prior: Prior, tabulated: bool | None = None) -> Posterior:
    """The posterior of every pair; by default with quantiles from a table where there are many."""
    alpha = prior.alpha + evidence.positive
    many = alpha.size >= TABLE_FROM if tabulated is None else tabulated
    if evidence.skips is None:
        return BetaPosterior(alpha, prior.beta + evidence.negative, many)
    thinned = collapse(alpha, np.broadcast_to(prior.beta, alpha.shape), evidence.skips)
    shape = thinned.shape()
    if evidence.spread is None or not evidence.spread.any():
        return ThinnedPosterior(thinned, shape, many)
    # An error of log x moves log θ by as much the other way, and logit θ by 1 / (1 − θ) times that, as far as the
    # evidence outweighs the prior. Its variance adds to that of the posterior, of which the curvature is the inverse.
    size = shape.alpha + shape.beta
    mode = shape.alpha / size
    moves = evidence.expected / (evidence.expected + prior.alpha + prior.beta) / (1 - mode)
    power = 1 / (1 + size * mode * (1 - mode) * moves**2 * evidence.spread)
    return ThinnedPosterior(thinned.tempered(power), shape.tempered(power), many)


def posterior_scores(evidence: Evidence, prior: Prior, delta: float, tabulated: bool | None = None) -> Scores:
    """The δ/2 quantile and the mean of the posterior; with the upper end, the interval holds all but δ of it."""
    after = posterior(evidence, prior, tabulated)
    upper = partial(after.upper, level=delta / 2)
    (lower,), mean = after.scores(delta / 2)
    return Scores(lower, mean, prior.fitted, upper=upper, list_level=delta / 2, deviation=after.deviation)
