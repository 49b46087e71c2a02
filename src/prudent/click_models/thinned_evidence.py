"""Evidence of models under which an impression is examined with a known probability x, whether it is clicked or not."""

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.numerics.thinned import Skips
from prudent.click_models.base import FittedModel
from prudent.click_models.evidence import Evidence, make_evidence
from prudent.counts.cells import Cells

_IGNORED = 0.02  # share of the variance of an attraction that may be left out
_PLACES = 1_000_000  # pairs times states at a time: arrays of 8 MB


def thinned_evidence(
    fitted: FittedModel, cells: Cells, state: IntArray, examination: FloatArray, covariance: FloatArray | None
) -> Evidence:
    """Clicks against expected examinations without a click, and the skips that make the posterior exact.

    ``state`` numbers, for each of the codes of cells, the examination probability that such impressions have;
    `covariance` is that of the logarithms of these probabilities, None where they are taken as known.
    """
    chance = examination[state]
    clicks, expected, squares, shown = cells.fold(cells.codes.click, chance, chance**2, np.ones_like(chance))
    skip = np.flatnonzero(cells.code & 2 == 0)
    spread = None
    if covariance is not None:
        spread = _spread(cells, state, chance, clicks=clicks, expected=expected, covariance=covariance)
    return make_evidence(
        fitted,
        cells,
        clicks,
        np.maximum(0.0, expected - clicks),
        expected=expected,
        squares=squares,
        tries=shown,
        skips=Skips(cells.pair[skip], cells.by_code(chance, skip), cells.n[skip]),
        spread=spread,
    )


def estimate(cells: Cells, chance: FloatArray) -> FloatArray:
    """(ΣY + ½) / (Σx + 1) of every pair, with x the chance of each cell: `FittedModel.estimate`."""
    expected = np.bincount(cells.pair, cells.n * chance, minlength=cells.pairs)
    return np.asarray((cells.per_pair(cells.click) + 0.5) / (expected + 1))


def _spread(
    cells: Cells,
    state: IntArray,
    chance: FloatArray,
    *,
    clicks: FloatArray,
    expected: FloatArray,
    covariance: FloatArray,
) -> FloatArray:
    """Variance of log Σx, of pairs with so many clicks that it matters beside 1/clicks, the variance of log θ."""
    from scipy.sparse import csr_array

    spread = np.zeros(cells.pairs)
    rows = np.flatnonzero(clicks * covariance.diagonal().max() > _IGNORED)
    number = np.full(cells.pairs, -1)
    number[rows] = np.arange(rows.size)
    there = np.flatnonzero(number[cells.pair] >= 0)
    row, states = number[cells.pair[there]], len(covariance)
    own, examined = cells.by_code(state, there), cells.n[there] * cells.by_code(chance, there)
    chunk = max(1, _PLACES // states)
    for start in range(0, rows.size, chunk):
        some = rows[start : start + chunk]
        of_some = slice(*np.searchsorted(row, [start, start + some.size]))
        at = (row[of_some] - start) * states + own[of_some]
        spent = np.bincount(at, examined[of_some], minlength=some.size * states).reshape(some.size, -1)
        share = csr_array(spent / expected[some, None])  # sparse: dense products go to as many threads as there are
        spread[some] = np.maximum(0.0, (share * (share @ covariance)).sum(axis=1))
    return spread
