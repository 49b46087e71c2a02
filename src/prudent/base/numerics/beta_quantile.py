"""Quantiles of many Beta distributions at one probability."""

from functools import lru_cache

import numpy as np
from scipy.special import betainccinv, betaincinv, expit

from prudent.base.arrays import FloatArray

TABLE_FROM = 200_000
"""Pairs from which on a table of quantiles is worth its making, about as much as 50,000 quantiles."""
_STEP, _ORDER = 0.1, 5  # in log α and log β; errors stay under 1e-9
_MARGIN = 15  # nodes more on each side: they keep the ends of the spline, where it is least exact, away from the values
_REACH = (0.05, 1e6)  # of α and β, with a sum of at least 1.5: below, two peaks at 0 and 1 make it steep
_FIRST = np.floor(np.log(_REACH[0]) / _STEP) - _MARGIN


def beta_quantile(alpha: FloatArray, beta: FloatArray, probability: float) -> FloatArray:
    """The quantile of many Beta distributions at one probability, to 1e-9 of `scipy.special.betaincinv`.

    In logits the quantile is a smooth function of log α and log β. A quintic spline through a table of it on a uniform
    grid, where no search for a cell is needed, costs an eighth of inverting the incomplete beta function at each of
    millions of pairs. The table depends on the probability alone, so that a quantile does not depend on which others
    are computed.

    >>> beta_quantile(np.array([1.0]), np.array([1.0]), 0.1).round(9)
    array([0.1])
    """
    low, high = _REACH
    within = (alpha >= low) & (alpha <= high) & (beta >= low) & (beta <= high) & (alpha + beta >= 1.5)
    table = _table(probability)
    if table is None:
        return np.asarray(betaincinv(alpha, beta, probability))
    quantile = np.empty_like(alpha)
    from scipy.ndimage import map_coordinates  # slow to import, and small logs do without

    at = np.log([alpha[within], beta[within]]) / _STEP - _FIRST
    quantile[within] = expit(map_coordinates(table, at, order=_ORDER, prefilter=False))
    quantile[~within] = betaincinv(alpha[~within], beta[~within], probability)
    return quantile


@lru_cache(maxsize=16)
def _table(probability: float) -> FloatArray | None:
    """The coefficients of the spline, or None below about .002, where quantiles in its margin underflow."""
    from scipy.ndimage import spline_filter

    nodes = np.arange(_FIRST, np.ceil(np.log(_REACH[1]) / _STEP) + _MARGIN + 1) * _STEP
    alpha, beta = np.exp(nodes)[:, None], np.exp(nodes)
    # A logit in two parts: near 1 the quantile itself has lost its last digits, its complement has not.
    table = np.log(np.maximum(betaincinv(alpha, beta, probability), np.finfo(float).tiny))
    table -= np.log(betainccinv(beta, alpha, probability))
    if table.min() < -700:
        return None
    # Beyond its ends the table goes on with the same slope, or the spline would level off there.
    wide = np.pad(table, _MARGIN, mode="reflect", reflect_type="odd")
    return np.asarray(spline_filter(wide, order=_ORDER))[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN]
