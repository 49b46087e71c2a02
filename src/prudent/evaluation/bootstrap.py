"""Intervals by the bootstrap over lists.

A replicate weighs every list anew, with a Poisson number for each time that it was shown: like drawing as many lists
with replacement, but each list for itself, so that lists stream by in blocks. A block has its own random numbers, and
sums are exact, so that neither the size of memory nor the number of threads shows in a digit.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import pdtr, stdtrit

from prudent.base.arrays import BoolArray, FloatArray, IntArray

_BLOCK = 8_192  # lists with random numbers of their own: another size makes other replicates


def replicate(columns: Sequence[FloatArray | BoolArray], n: IntArray, replicates: int, seed: int) -> FloatArray:
    """Totals of columns, which have one entry per list: one row per replicate.

    >>> replicate([np.ones(4)], np.full(4, 250), replicates=3, seed=0).shape
    (3, 1)
    """
    units = [_unit(column, n) for column in columns]
    totals = np.zeros((replicates, len(columns)))
    for block, first in enumerate(range(0, len(n), _BLOCK)):
        some = slice(first, first + _BLOCK)
        times = _times(n[some], replicates, np.random.default_rng([seed, block]))
        entries = [np.round(column[some] / unit) * unit for column, unit in zip(columns, units, strict=True)]
        totals += times.T @ np.column_stack(entries)
    return totals


# Poisson(1) of 16 random bits, to within 2⁻¹⁷ of its probabilities: most lists were shown once, and there are many.
_ONCE = np.searchsorted(np.round(65_536 * pdtr(np.arange(12), 1.0)), np.arange(65_536), side="right").astype(np.float64)


def _times(n: IntArray, replicates: int, random: np.random.Generator) -> FloatArray:
    """How often each list is in each replicate."""
    times = _ONCE[random.integers(0, 65_536, (len(n), replicates), dtype=np.uint16)]
    often = np.flatnonzero(n > 1)
    times[often] = random.poisson(n[often, None], (len(often), replicates))
    return times


def _unit(column: FloatArray | BoolArray, n: IntArray) -> float:
    """The binary place at which sums of a rounded column lose nothing, in whatever order they are made."""
    largest = float(np.sum(n * np.abs(column)))
    return float(2.0 ** (np.ceil(np.log2(largest)) - 48)) if largest else 1.0  # no total exceeds 2⁴ times the sum


class Interval(NamedTuple):
    """The limits of an estimate."""

    low: float
    high: float


def interval(value: float, variance: float, lists: float, confidence: float) -> Interval:
    """Student's interval around a value, with as many degrees of freedom as there are effective lists less one.

    Not the quantiles of the replicates: with 200 of them, the 2.5 % quantile is the fifth value from the end.
    """
    reach = quantile(lists, (1 + confidence) / 2) * np.sqrt(variance)
    return Interval(float(value - reach), float(value + reach))


def quantile(lists: float, probability: float) -> float:
    """Of Student's distribution."""
    return float(stdtrit(max(1.0, lists - 1), probability))
