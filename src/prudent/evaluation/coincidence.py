"""Whether two logs share lists: not equal ones, which any two logs of one production have, but the same ones.

A list occurs n times in the one log and m times in the other, s = n + m. If the logs are different lists, drawn in
whatever way, m is binomial given s, and its variance between lists of the same s is ``s p (1 − p)``, or more where the
two differ: where days, users or items change between them. If lists of the one are copied into the other, m follows n,
and the variance is smaller. So the statistic is that of underdispersion,

    Σ ((m − p s)²/(s p (1 − p)) − 1),

over lists that occur at least twice, with p estimated from all lists of the same s; from 20 on, together. With p
estimated, a term has the variance ``2 (1 − 1/s)``. Of lists that occur twice it is the excess of heterozygotes in the
Hardy-Weinberg test: those that occur once in each log.

Few lists that occur often have no normal sum. From s = 20 on, terms are squares of normal numbers, and the sum is
compared with χ² as well.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import chdtr

from prudent.base.arrays import IntArray

MOST_ERRORS = 3.0
"""Standard errors by which the statistic may be below 0."""
LEVEL = 0.00135
"""The same as a probability."""
OFTEN = 20
"""From here on m is normal."""


class Coincidence(NamedTuple):
    """What two logs have in common."""

    errors: float  # standard errors of the statistic; negative where m follows n
    probability: float  # of as few differences, among lists that occur often, by chance

    @property
    def shared(self) -> bool:
        """Whether the logs share lists."""
        return self.errors < -MOST_ERRORS or self.probability < LEVEL


def coincidence(n: IntArray, m: IntArray) -> Coincidence:
    """The test on how often each list occurs in two logs."""
    s = n + m
    group = np.minimum(s, OFTEN)
    total, variance, probability = 0.0, 0.0, 1.0
    for size in np.unique(group[s > 1]):
        inside = group == size
        both, of_m = s[inside], m[inside]
        p = of_m.sum() / both.sum()
        if p in (0.0, 1.0):
            continue
        off = np.abs(of_m - p * both)
        scale = both * p * (1 - p)
        total += float(np.sum(off**2 / scale - 1)) + 1  # one degree of freedom is that of p
        variance += float(np.sum(2 - 2 / both))
        if size == OFTEN and len(both) > 1:
            # m is a whole number: half a unit further, chance is not underestimated.
            probability = float(chdtr(len(both) - 1, np.sum((off + 0.5) ** 2 / scale)))
    return Coincidence(total / variance**0.5 if variance else 0.0, probability)
