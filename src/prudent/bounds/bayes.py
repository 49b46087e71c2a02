"""The quantile of a posterior under a given prior."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betainccinv, betaincinv, expit

from prudent.arrays import FloatArray
from prudent.bounds.base import Bound, Scores, bounds, check_delta, check_positive
from prudent.click_models.base import Evidence


class Prior(NamedTuple):
    """Beta(α, β), one for all pairs or one for each."""

    alpha: FloatArray | float
    beta: FloatArray | float
    fitted: Mapping[str, Any] = MappingProxyType({})  # what was learned to get there; fits JSON


class PosteriorBound(Bound):
    """A quantile of the posterior under some prior. The prior does not depend on δ: fit once, then sweep δ."""

    @property
    @abstractmethod
    def delta(self) -> float:
        """P(θ ≤ L(a)) is δ/2."""

    @abstractmethod
    def prior(self, evidence: Evidence) -> Prior:
        """What is believed of every pair before its own clicks are looked at."""

    def score(self, evidence: Evidence) -> Scores:
        """Quantile and mean of the posterior."""
        return posterior_scores(evidence, self.prior(evidence), self.delta)


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

    def prior(self, evidence: Evidence) -> Prior:
        """The given one."""
        return Prior(self.alpha, self.beta)


def posterior_scores(evidence: Evidence, prior: Prior, delta: float) -> Scores:
    """The δ/2 quantile and the mean of Beta(α + n₊, β + n₋)."""
    alpha, beta = prior.alpha + evidence.positive, prior.beta + evidence.negative
    return Scores(beta_quantile(alpha, beta, delta / 2), alpha / (alpha + beta), prior.fitted)


_TABLE_FROM = 200_000  # below, building the table costs more than it saves
_TABLE_STEP = 0.1  # in log α and log β; errors stay under 3e-10
_TABLE_REACH = (0.05, 1e9)  # of α and β, with a sum of at least 1.5: below, two peaks at 0 and 1 make it steep


def beta_quantile(alpha: FloatArray, beta: FloatArray, probability: float) -> FloatArray:
    """The quantile of many Beta distributions at one probability, to 1e-9 of `scipy.special.betaincinv`.

    In logits the quantile is a smooth function of log α and log β. A quintic spline through a table of it costs
    a quarter of inverting the incomplete beta function at each of millions of pairs.

    >>> beta_quantile(np.array([1.0]), np.array([1.0]), 0.1)
    array([0.1])
    """
    if alpha.size < _TABLE_FROM:
        return np.asarray(betaincinv(alpha, beta, probability))
    from scipy.interpolate import RectBivariateSpline  # slow to import, and small logs do without

    low, high = _TABLE_REACH
    within = (alpha >= low) & (alpha <= high) & (beta >= low) & (beta <= high) & (alpha + beta >= 1.5)
    rows, columns = np.log(alpha[within]), np.log(beta[within])
    if rows.size < _TABLE_FROM:
        return np.asarray(betaincinv(alpha, beta, probability))
    row_nodes, column_nodes = _nodes(rows), _nodes(columns)
    node_alpha, node_beta = np.exp(row_nodes)[:, None], np.exp(column_nodes)
    # A logit in two parts: near 1 the quantile itself has lost its last digits, its complement has not.
    table = np.log(np.maximum(betaincinv(node_alpha, node_beta, probability), np.finfo(float).tiny))
    table -= np.log(betainccinv(node_beta, node_alpha, probability))
    if table.min() < -700:  # a minute probability: the quantile underflows
        return np.asarray(betaincinv(alpha, beta, probability))
    quantile = np.empty_like(alpha)
    quantile[within] = expit(RectBivariateSpline(row_nodes, column_nodes, table, kx=5, ky=5).ev(rows, columns))
    quantile[~within] = betaincinv(alpha[~within], beta[~within], probability)
    return quantile


def _nodes(values: FloatArray) -> FloatArray:
    # Three more on each side keep the ends of the spline, where it is least exact, away from the values.
    first, last = np.floor(values.min() / _TABLE_STEP) - 3, np.ceil(values.max() / _TABLE_STEP) + 3
    return np.arange(first, last + 1) * _TABLE_STEP
