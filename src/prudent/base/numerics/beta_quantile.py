"""Quantiles of many Beta distributions at one probability."""

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import betainccinv, betaincinv, expit

from prudent.base.arrays import FloatArray

TABLE_FROM = 200_000
"""Pairs from which on a table of quantiles is worth its making, about as much as 50,000 quantiles."""
_STEP = 0.1  # in log α and log β; errors stay under 3e-10
_REACH = (0.05, 1e6)  # of α and β, with a sum of at least 1.5: below, two peaks at 0 and 1 make it steep


def beta_quantile(alpha: FloatArray, beta: FloatArray, probability: float) -> FloatArray:
    """The quantile of many Beta distributions at one probability, to 1e-9 of `scipy.special.betaincinv`.

    In logits the quantile is a smooth function of log α and log β. A quintic spline through a table of it costs
    a quarter of inverting the incomplete beta function at each of millions of pairs. The table depends on the
    probability alone, so that a quantile does not depend on which others are computed.

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
