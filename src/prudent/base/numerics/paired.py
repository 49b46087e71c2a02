"""Means of repeated measurements, compared pair by pair."""

from math import nan

import numpy as np
from scipy.special import ndtr, stdtrit

from prudent.base.arrays import FloatArray

TINY = 1e-12
"""A difference of errors below it is rounding."""


def standard_error(values: FloatArray) -> float:
    """Of a mean; NaN for a single value, which has no spread."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else nan


def paired_difference(values: FloatArray, others: FloatArray) -> tuple[float, float]:
    """The mean difference of measurements on the same logs, and its standard error."""
    difference = values - others
    difference = np.where(np.abs(difference) < TINY, 0.0, difference)  # the same lists, added up in another order
    return float(difference.mean()), standard_error(difference)


def two_sigma(repetitions: int) -> float:
    """The standard errors, by Student's t, that are as significant as two of many repetitions.

    >>> [round(two_sigma(n), 1) for n in (3, 5, 20, 500)]
    [4.5, 2.9, 2.1, 2.0]
    """
    return float(stdtrit(repetitions - 1, ndtr(2.0))) if repetitions > 1 else nan
