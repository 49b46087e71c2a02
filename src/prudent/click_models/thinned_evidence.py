"""Evidence of models under which an impression is examined with a known probability x, whether it is clicked or not."""

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.numerics.thinned import Skips
from prudent.click_models.base import Evidence, FittedModel, make_evidence
from prudent.counts.cells import Cells

_IGNORED = 0.02  # share of the variance of an attraction that may be left out


def thinned_evidence(
    fitted: FittedModel, cells: Cells, state: IntArray, examination: FloatArray, covariance: FloatArray | None
) -> Evidence:
    """Clicks against expected examinations without a click, and the skips that make the posterior exact.

    ``state`` numbers, for every cell, the examination probability that its impressions have; `covariance` is that of
    the logarithms of these probabilities, None where they are taken as known.
    """
    chance = examination[state]
    clicks = cells.per_pair(cells.click)
    expected, squares = expected_examinations(cells, chance)
    skip = np.flatnonzero(~cells.click)
    spread = None
    if covariance is not None:
        spread = _spread(cells, state, cells.n * chance, clicks=clicks, expected=expected, covariance=covariance)
    return make_evidence(
        fitted,
        cells,
        clicks,
        np.maximum(0.0, expected - clicks),
        expected=expected,
        squares=squares,
        tries=cells.per_pair(),
        skips=Skips(cells.pair[skip], chance[skip], cells.n[skip]),
        spread=spread,
    )


def expected_examinations(cells: Cells, chance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Σx and Σx² of every pair."""
    expected = np.bincount(cells.pair, cells.n * chance, minlength=cells.pairs).astype(float, copy=False)
    squares = np.bincount(cells.pair, cells.n * chance**2, minlength=cells.pairs).astype(float, copy=False)
    return expected, squares


def _spread(
    cells: Cells,
    state: IntArray,
    examined: FloatArray,
    *,
    clicks: FloatArray,
    expected: FloatArray,
    covariance: FloatArray,
) -> FloatArray:
    """Variance of log Σx, of pairs with so many clicks that it matters beside 1/clicks, the variance of log θ."""
    spread = np.zeros(cells.pairs)
    rows = np.flatnonzero(clicks * covariance.diagonal().max() > _IGNORED)
    if not rows.size:
        return spread
    number = np.full(cells.pairs, -1)
    number[rows] = np.arange(rows.size)
    there = np.flatnonzero(number[cells.pair] >= 0)
    states = len(covariance)
    at = number[cells.pair[there]] * states + state[there]
    spent = np.bincount(at, examined[there], minlength=rows.size * states)
    share = spent.reshape(rows.size, -1) / expected[rows, None]
    values, vectors = np.linalg.eigh(covariance)
    for value, vector in zip(values, vectors.T, strict=True):
        spread[rows] += max(0.0, value) * np.sum(share * vector, axis=1) ** 2
    return spread
