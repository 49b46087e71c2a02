"""Intervals that hold for every number of lists: the empirical Bernstein bound (Maurer and Pontil 2009).

For n independent numbers within a range of width b, with a variance of v in the sample, the mean is off by more than
``√(2v ln(2/δ)/n) + 7b ln(2/δ)/(3(n − 1))`` to one side with a probability of δ at most.
"""

from collections.abc import Callable

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.evaluation.bootstrap import Interval


def bernstein(column: FloatArray, n: IntArray, width: float, confidence: float) -> Interval:
    """An interval for the mean of a column whose entries were met n times, two-sided."""
    mean, reach = _reach(column, n, width, (1 - confidence) / 2)
    return Interval(mean - reach, mean + reach)


def bernstein_lift(
    gain: FloatArray, logged: FloatArray, n: IntArray, most: float, confidence: float, highest: float
) -> Interval:
    """An interval for the ratio of two means, less 1: all l for which no test tells gain − (1 + l)·logged from 0.

    The columns come in pairs, so that what they have in common cancels; entries of `gain` are between 0 and `most`,
    of `logged` between 0 and `highest`.
    """

    def off(lift: float) -> tuple[float, float]:
        width = most + (1 + lift) * highest
        mean, reach = _reach(gain - (1 + lift) * logged, n, width, (1 - confidence) / 2)
        return mean - reach, mean + reach

    # Both ends fall as the lift grows; below −1 it cannot be, and beyond the last no list would matter.
    top = 1.0
    while off(top)[1] > 0 and top < 1e12:
        top *= 2
    return Interval(_zero(lambda lift: off(lift)[0], top), _zero(lambda lift: off(lift)[1], top))


def _reach(column: FloatArray, n: IntArray, width: float, delta: float) -> tuple[float, float]:
    lists = float(n.sum())
    mean = float(np.sum(n * column) / lists)
    if lists < 2:
        return mean, np.inf
    variance = float(np.sum(n * (column - mean) ** 2) / (lists - 1))
    log = np.log(2 / delta)
    return mean, float(np.sqrt(2 * variance * log / lists) + 7 * width * log / (3 * (lists - 1)))


def _zero(falling: Callable[[float], float], top: float) -> float:
    """Where a falling function of the lift crosses 0; −1 where it is below from the start."""
    low, high = -1.0, top
    if falling(low) <= 0:
        return low
    if falling(high) > 0:
        return float("inf")
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return low
