"""Grades 0 to 4 from attraction: thresholds, and how certain a grade is."""

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite

import numpy as np
from scipy.special import betainc

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import UsageError

GRADES = 5
"""Grades, from 0."""
QUANTILES = (0.5, 0.75, 0.9, 0.97)
"""Quantiles of the estimates of a log that are its thresholds: half of the items have grade 0, and 3 % grade 4."""
_DIGITS = 4  # of a threshold, so that the number that is printed is the one that is used


def check_thresholds(thresholds: object) -> tuple[float, ...]:
    """Four attractions that the grades 1 to 4 start at, as numbers or as text with commas."""
    parts = thresholds.split(",") if isinstance(thresholds, str) else thresholds
    try:
        values = tuple(float(value) for value in parts)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        values = ()
    rising = all(one < two for one, two in pairwise(values))
    if len(values) != GRADES - 1 or not rising or not all(isfinite(value) and 0 < value < 1 for value in values):
        raise UsageError(
            f"thresholds is {thresholds!r}; the grades 1 to {GRADES - 1} start at {GRADES - 1} attractions above 0 "
            "and below 1, each larger than the one before: 0.05,0.1,0.2,0.4."
        )
    return values


def log_thresholds(estimates: FloatArray) -> tuple[float, ...]:
    """Those of a log: the `QUANTILES` of its estimates, rounded to four digits.

    Where clicks are few, most estimates are equal, and get one grade: they are below a threshold or not, whichever
    leaves the number of items at or above it closer to what it should be.

    >>> log_thresholds(np.array([0.1] * 90 + [0.3] * 10))
    (0.12, 0.1667, 0.2334, 0.6502)
    """
    gaps = [_gap(estimates, quantile) for quantile in QUANTILES]
    found = []
    for number, (low, high) in enumerate(gaps):
        same = gaps.count((low, high))  # each at its own place in the gap, so that they can be given to another log
        found.append(low + (high - low) * (1 + number - gaps.index((low, high))) / (same + 1))
    return tuple(sorted(float(f"{value:.{_DIGITS}g}") for value in found))


def _gap(estimates: FloatArray, quantile: float) -> tuple[float, float]:
    """Between which numbers a threshold is: where there are no ties, the quantile and the quantile."""
    value = float(np.quantile(estimates, quantile))
    start, end = value * (1 - _EQUAL), min(value * (1 + _EQUAL), 1.0)
    wanted = (1 - quantile) * len(estimates)
    with_equal, without = np.count_nonzero(estimates >= start), np.count_nonzero(estimates > end)
    if with_equal - without <= 1 + _MOST_EQUAL * len(estimates):
        return value, value
    if with_equal - wanted < wanted - without:
        return float(estimates[estimates < start].max(initial=0.0)), start
    return end, float(estimates[estimates > end].min(initial=1.0))


_EQUAL = 1e-3  # estimates that differ by a smaller share are equal: thresholds have four digits
_MOST_EQUAL = 0.03  # of all estimates: fewer equal ones may be on either side


def grade(attraction: FloatArray, thresholds: Sequence[float]) -> IntArray:
    """How many thresholds an attraction reaches.

    >>> grade([0.01, 0.1, 0.9], [0.05, 0.1, 0.2, 0.4]).tolist()
    [0, 2, 4]
    """
    return np.searchsorted(np.asarray(thresholds), attraction, side="right")


def beta_parameters(mean: FloatArray, deviation: FloatArray) -> tuple[FloatArray, FloatArray]:
    """α and β of the Beta distribution with this mean and standard deviation, which stands for the posterior.

    >>> [round(float(value), 6) for value in beta_parameters(np.array(2 / 5), np.array(0.2))]
    [2.0, 3.0]
    """
    strength = mean * (1 - mean) / deviation**2 - 1
    return mean * strength, (1 - mean) * strength


def confidence(grades: IntArray, mean: FloatArray, deviation: FloatArray, thresholds: Sequence[float]) -> FloatArray:
    """The posterior probability that the attraction is between the thresholds of its grade."""
    alpha, beta = beta_parameters(mean, deviation)
    edges = np.array([0.0, *thresholds, 1.0])
    return np.asarray(betainc(alpha, beta, edges[grades + 1]) - betainc(alpha, beta, edges[grades]))
