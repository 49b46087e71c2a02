"""Whether lists of a log repeat improbably often, as where they are logged at least once, or a file is read twice.

Lists occur as often as chance has it, at rates that differ: the number of lists that occur n times, Fₙ, is that of a
mixture of Poisson distributions, for which ``n Fₙ² ≤ (n + 1) Fₙ₋₁ Fₙ₊₁`` (Cauchy-Schwarz). Lists that were logged k
times pile up at multiples of k. Of lists that occur often, one in k does so a multiple of k times.

An interval takes repeated lists for independent ones. Where k lists are one, variances are too small by that factor.
"""

from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import bdtrc

from prudent.base.arrays import BoolArray, FloatArray, IntArray

MOST_ERRORS = 4.0
"""Standard errors by which a number of lists may exceed what a mixture allows."""
LEVEL = 1e-6
"""Probability below which so many multiples are no chance; there are few logs, but many factors."""
LARGEST = 20
"""The largest factor that is looked for."""
NEARLY_ALL = 0.95
"""Share of lists with a factor from which on it is that of the whole log."""


class Repeats(NamedTuple):
    """How often the same lists were logged."""

    factor: int  # times that a repeated list was logged; 1 where none was
    variance: float  # factor by which variances are too small

    def __str__(self) -> str:
        return (
            f"lists repeat improbably often, as if logged {self.factor} times: intervals would be too narrow by a "
            f"factor of {self.variance**0.5:.2f}; remove repeated lists, or files that are named twice"
        )


ONCE = Repeats(1, 1.0)
"""Every list was logged once."""


class Lists(Protocol):
    """Distinct lists: how often each occurs, and its clicks by position."""

    @property
    def n(self) -> IntArray: ...  # noqa: D102

    @property
    def clicks(self) -> BoolArray: ...  # noqa: D102


def repeated_lists(held: Lists) -> Repeats:
    """How often lists were logged: all of them or, as where a click is sent again, those with a click."""
    if not held.n.size:
        return ONCE
    every, clicked = find_repeats(held.n), held.clicks.any(axis=1)
    if every.factor > 1 or not clicked.any():
        return every
    found = find_repeats(held.n[clicked])
    share = float(held.n[clicked].sum() / held.n.sum())
    return Repeats(found.factor, 1 + (found.variance - 1) * share)


def find_repeats(n: IntArray) -> Repeats:
    """How often lists were logged, where `n` is how often each distinct list occurs."""
    by_number = np.bincount(np.minimum(n, LARGEST + 2), minlength=LARGEST + 3).astype(np.float64)
    for k in range(LARGEST, 1, -1):  # all of them
        if np.mean(n % k == 0) > NEARLY_ALL and (_multiples(n, k) or _excess(by_number, k) or _most(n, k)):
            return Repeats(k, float(k))
    for k in range(2, LARGEST + 1):  # some of them
        if _multiples(n, k):
            return Repeats(k, 1 + (k - 1) * float(np.sum(n[n % k == 0]) / n.sum()))
        if repeated := _excess(by_number, k):
            return Repeats(k, 1 + (k - 1) * k * repeated / float(n.sum()))
    return ONCE


def _most(n: IntArray, k: int) -> bool:
    """Whether more of the lists occur a multiple of k times than by chance, which is at most every second one."""
    return float(bdtrc(int(np.sum(n % k == 0)) - 1, len(n), 0.5)) < LEVEL


def _multiples(n: IntArray, k: int) -> bool:
    """Whether more of the lists that occur often than by chance do so a multiple of k times."""
    often = n >= 5 * k
    found = int(np.sum(n[often] % k == 0))
    return bool(found) and float(bdtrc(found - 1, int(often.sum()), 1 / k)) < LEVEL


def _excess(by_number: FloatArray, n: int) -> float:
    """How many more lists occur n times than a mixture allows; 0 where that may be chance."""
    before, here, after = by_number[n - 1 : n + 2]
    # Square roots of Poisson numbers have a standard deviation of one half, whatever their means.
    most = [(np.sqrt(number + 1) + MOST_ERRORS / 2) ** 2 for number in (before, after)]
    least = max(0.0, np.sqrt(here) - MOST_ERRORS / 2) ** 2
    if least <= np.sqrt((n + 1) / n * most[0] * most[1]):
        return 0.0
    return float(here - np.sqrt((n + 1) / n * before * after))
