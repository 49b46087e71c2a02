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
    """Those of a log: the `QUANTILES` of its estimates, rounded to four digits."""
    return tuple(float(f"{value:.{_DIGITS}g}") for value in np.quantile(estimates, QUANTILES).tolist())


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
