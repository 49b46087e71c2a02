"""Tests of a promise that hold however often one looks: bets against it, which win only if it is broken.

A list earns x, at most M, and was promised m. If it earns m or more on average, given all before, then
``1 + λ(m − x)`` with 0 < λ < 1/M is positive and has a mean of at most 1, and so has the product over all lists, in any
order and after any night. It ever exceeds 1/α with probability α at most (Ville's inequality). The mean of the products
over a grid of λ has the same property, and its logarithm grows about as fast as that of the best λ: it finds small
shortfalls in many lists and large ones in few. Only sums over lists are needed, no order and no dates. See
Waudby-Smith and Ramdas, *Estimating means of bounded random variables by betting* (2024).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtri

from prudent.base.arrays import FloatArray, IntArray

BETS = 24
"""Number of λ, each 1/√2 of the one before: the smallest finds shortfalls of a ten-thousandth of M."""
_LARGEST = 0.99  # of the largest λ with which no factor is negative
_HALVINGS = 30  # of an interval of about 1: nine digits


@dataclass(frozen=True)
class Earned:
    """Lists in groups that were promised and earned the same: one entry per group."""

    promised: FloatArray
    earned: FloatArray
    lists: IntArray
    most: float  # that a list can earn

    def below(self, ratio: float) -> float:
        """Log of the evidence that lists earn less than so many times what was promised."""
        return float(logsumexp(self._wealth(ratio * self.promised - self.earned, self.most).sum(axis=1)) - np.log(BETS))

    def above(self, ratio: float) -> float:
        """Log of the evidence that they earn more."""
        most = max(ratio * float(self.promised.max(initial=0.0)), 1e-12)
        return float(logsumexp(self._wealth(self.earned - ratio * self.promised, most).sum(axis=1)) - np.log(BETS))

    def below_by(self, group: IntArray, groups: int) -> FloatArray:
        """The logs of the evidence against the promise of each group of entries, by itself."""
        wealth = self._wealth(self.promised - self.earned, self.most)
        sums = np.stack([np.bincount(group, one, minlength=groups) for one in wealth])
        return np.asarray(logsumexp(sums, axis=0) - np.log(BETS))

    def _wealth(self, gain: FloatArray, most: float) -> FloatArray:
        """The log of what each entry multiplies the wealth of each bet by."""
        bets = _LARGEST / most * 2.0 ** (-np.arange(BETS) / 2)
        return np.asarray(self.lists * np.log1p(bets[:, None] * gain))

    def interval(self, alpha: float) -> tuple[float, float]:
        """The ratio of earned to promised, two-sided at level 1 − α, valid at all times at once."""
        limit, top = np.log(2 / alpha), 1.0
        while self.below(top) < limit and top < 1e6:
            top *= 2
        lower = _root(lambda ratio: self.above(ratio) < limit, 0.0, top)
        return lower, _root(lambda ratio: self.below(ratio) >= limit, 0.0, top)


def _root(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Where a condition that holds from some ratio on begins to hold."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return (low + high) / 2


def lists_to_find(shortfall: float, deviation: float, alpha: float, power: float, uncertainty: float = 0.0) -> float:
    """About how many lists it takes to find a shortfall of so much per list with this probability.

    The log of the evidence of the best bet is about n d²/2σ², where lists earn d less than promised, and has to exceed
    log 1/α and the logarithm of the number of bets. d varies by σ/√n, and by the standard deviation of the promise.
    """
    z, needed = float(ndtri(power)), np.sqrt(2 * (np.log(1 / alpha) + np.log(BETS)))
    if shortfall <= z * uncertainty:
        return float("inf")

    def found(lists: float) -> bool:
        sampling = deviation / np.sqrt(lists)
        return bool(shortfall - z * np.hypot(sampling, uncertainty) >= needed * sampling)

    most = 1.0
    while not found(most):
        most *= 2
    return _root(found, most / 2, most)
