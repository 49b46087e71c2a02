"""Quantiles of many Beta distributions, from tables where there are many."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.special import betainccinv, betaincinv

from prudent.base.arrays import BoolArray, FloatArray
from prudent.engines import kernel

TABLE_FROM = 200_000
"""Pairs from which on tables of quantiles are worth their making, about as much as 50,000 quantiles."""
_STEP = 0.1  # in log α and log β; errors stay under 1e-9
_BEFORE, _BEHIND = 3, 4  # nodes on either side of a place that its value comes from
_REACH = (0.01, 1e6)  # of α and β, with a sum of at least 1.5: below, two peaks at 0 and 1 make it steep
_FIRST = np.floor(np.log(_REACH[0]) / _STEP) - _BEFORE
_NODES = int(np.ceil(np.log(_REACH[1]) / _STEP) + _BEHIND - _FIRST) + 2
_LEAST = -700.0  # logits below it underflow


def beta_quantiles(alpha: FloatArray, beta: FloatArray, levels: Sequence[float]) -> list[FloatArray]:
    """The quantiles of many Beta distributions at some levels, to 1e-9 of `scipy.special.betaincinv`.

    In logits a quantile is a smooth function of log α and log β. A polynomial between the nodes of a table of it costs
    a fiftieth of inverting the incomplete beta function at each of millions of pairs. A node depends on its level
    alone, and is computed when it is first needed, so that no quantile depends on which others are computed.

    >>> beta_quantiles(np.array([1.0]), np.array([1.0]), [0.1])[0].round(9)
    array([0.1])
    """
    low, high = _REACH
    within = (alpha >= low) & (alpha <= high) & (beta >= low) & (beta <= high) & (alpha + beta >= 1.5)
    row, column = (np.log(of[within]) / _STEP - _FIRST for of in (alpha, beta))
    tables = [_table(level, row, column) for level in levels]
    results = []
    for level, logits in zip(levels, kernel.read_tables(tables, row, column) if tables else [], strict=True):
        quantile = np.empty_like(alpha)
        with np.errstate(over="ignore"):
            quantile[within] = 1 / (1 + np.exp(-logits))
        exactly = ~within
        exactly[within] = np.isnan(logits)  # a node near it underflows
        quantile[exactly] = betaincinv(alpha[exactly], beta[exactly], level)
        results.append(quantile)
    return results


def _table(level: float, row: FloatArray, column: FloatArray) -> FloatArray:
    """The logits of a quantile, with those nodes at least that these places need; NaN where they underflow."""
    if level > 0.5:  # the same table from the other end
        return np.asarray(-_table(round(1 - level, 15), column, row).T)
    table, known = _known(level)
    needed = np.zeros_like(known)
    at = np.zeros_like(known)
    at[row.astype(np.int64), column.astype(np.int64)] = True
    for k in range(-_BEFORE, _BEHIND + 1):
        for j in range(-_BEFORE, _BEHIND + 1):
            needed |= np.roll(at, (k, j), axis=(0, 1))
    new = np.nonzero(needed & ~known)
    alpha, beta = (np.exp((nodes + _FIRST) * _STEP) for nodes in new)
    # A logit in two parts: near 1 the quantile itself has lost its last digits, its complement has not.
    logits = np.log(np.maximum(betaincinv(alpha, beta, level), np.finfo(float).tiny))
    logits -= np.log(betainccinv(beta, alpha, level))
    table[new] = np.where(logits < _LEAST, np.nan, logits)
    known[new] = True
    return table


@lru_cache(maxsize=16)
def _known(level: float) -> tuple[FloatArray, BoolArray]:
    """The table of a level, which is filled as nodes are needed, and which of them are known."""
    return np.zeros((_NODES, _NODES)), np.zeros((_NODES, _NODES), bool)
