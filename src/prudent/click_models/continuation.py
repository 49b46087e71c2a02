"""λ of the dependent-click model from counts: click rates right below a click against those without one above."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.numerics.random_effects import shrink_to_mean
from prudent.base.text import number
from prudent.counts.cells import Cells

_TINY = 1e-300


class Rates(NamedTuple):
    """Sums over pairs, for each position k = 1 … K − 1.

    A pair was clicked y times in m impressions right below a click at k, and c times in n impressions without a click
    above. Those n were examined for certain and the m with probability λₖ, so that E y/m = λₖ E c/n. The ratio of
    Mantel and Haenszel, ``λ̂ₖ = Σ yn/(m+n) / Σ cm/(m+n)``, weighs pairs by impressions alone, so that numerator and
    denominator are unbiased even where every pair was shown only a few times. On simulated logs with λ = .9 its mean
    over positions was .898 (400,000 lists, 300 contexts) and .899 (40,000 lists, 20,000 contexts). With c/n shrunken
    where n is small it was .887 and .834: what stands below a click is better than the mean it is shrunken to.
    """

    clicks: FloatArray  # Σ yn/(m+n)
    certain: FloatArray  # Σ cm/(m+n): what it would be if every user went on
    variance: FloatArray  # of the difference of the two, if every user went on (Greenland and Robins 1985)
    clustered: FloatArray  # of clicks − λ̂·certain, from how contexts differ in it
    observed: FloatArray  # of the difference, from the clicks themselves: a single unexpected click is no evidence


class Terms(NamedTuple):
    """What every pair contributes to the sums, one entry for each click position k above it."""

    k: IntArray  # from 0
    pair: IntArray
    context: IntArray
    clicks: FloatArray  # y, of
    below: FloatArray  # m impressions right below a click at k
    certain: FloatArray  # c, of
    free: FloatArray  # n impressions without a click above

    def of_ratio(self) -> tuple[FloatArray, FloatArray]:
        """yn/(m+n) and cm/(m+n)."""
        both = self.below + self.free
        return self.clicks * self.free / both, self.certain * self.below / both


def find_terms(cells: Cells, positions: int) -> Terms:
    """The terms of `cells`."""
    free = cells.prev == 0
    n, c = cells.per_pair(free), cells.per_pair(free & cells.click)
    below = np.flatnonzero((cells.position == cells.prev + 1) & ~free)
    # Cells are sorted by pair and position: those of one pair right below clicks at one position stand in a row.
    starts = np.flatnonzero(np.diff(cells.pair[below] * (positions + 1) + cells.prev[below], prepend=-1))
    pair, k = cells.pair[below][starts], cells.prev[below][starts] - 1
    m, y = np.zeros((2, 0))
    if starts.size:
        m, y = (np.add.reduceat(n, starts) for n in (cells.n[below], cells.n[below] * cells.click[below]))
    return Terms(k, pair, cells.context[pair], y, m, c[pair], n[pair])


def sum_rates(terms: Terms, positions: int) -> Rates:
    """The sums over pairs."""
    size = max(0, positions - 1)
    k, y, m, c, n = terms.k, terms.clicks, terms.below, terms.certain, terms.free
    both = m + n

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(k, values, minlength=size).astype(float, copy=False)

    clicks, certain = terms.of_ratio()
    ratio = np.divide(total(clicks), total(certain), out=np.ones(size), where=total(certain) > 0)
    contexts = int(terms.context.max(initial=-1)) + 1
    per_context = np.bincount(k * contexts + terms.context, clicks - ratio[k] * certain, minlength=size * contexts)
    return Rates(
        total(clicks),
        total(certain),
        total((y + c) * m * n / both**2 - y * c / both),
        (per_context.reshape(size, -1) ** 2).sum(axis=1) if contexts else np.zeros(size),
        total((y * n**2 + c * m**2) / both**2),
    )


def bootstrap_rates(terms: Terms, rates: Rates, replicates: int, random: np.random.Generator) -> list[Rates]:
    """The sums of bootstrapped logs, in which the terms of every pair count as often as a Poisson number with mean 1.

    Errors of the terms of different pairs are independent, so that the sums vary as those of new logs would.
    """
    size = len(rates.clicks)
    groups = min(_GROUPS, int(terms.pair.max(initial=0)) + 1)
    place = terms.pair % groups * size + terms.k
    sums = [np.bincount(place, term, minlength=groups * size).reshape(groups, size) for term in terms.of_ratio()]
    weights = random.poisson(1.0, (replicates, groups))
    return [
        rates._replace(**{name: (weight[:, None] * term).sum(axis=0) for name, term in zip(_SUMS, sums, strict=True)})
        for weight in weights
    ]


_SUMS = "clicks", "certain"
_GROUPS = 1_000
"""Of pairs that count equally often in a bootstrapped log: as good as one group for each."""


def fit_continuation(rates: Rates) -> tuple[FloatArray, FloatArray]:
    """λ of the positions 1 … K − 1: ratios, shrunken to their mean as far as their errors explain that they differ.

    Every position has one more click that could have been followed, with the mean over positions; that mean has one
    that was followed half of the time, so that without any click λ = ½. The second result are standard errors, those
    before shrinking; at most ½.
    """
    mean = min(1.0, float((rates.clicks.sum() + 0.5) / (rates.certain.sum() + 1)))
    ratio = (rates.clicks + mean) / (rates.certain + 1)
    # Where all that could be clicked was, the estimated variance is 0; half a click of a pair shown twice adds 1/8.
    spread = np.maximum(mean * rates.variance + 0.125, rates.clustered)
    variance = np.divide(spread, rates.certain**2, out=np.full_like(spread, np.inf), where=rates.certain > 0)
    # Not quite 1, which would say that no click satisfies anybody.
    most = (rates.certain + 0.5) / (rates.certain + 1)
    return np.clip(shrink_to_mean(ratio, variance, mean), 0.0, most), np.sqrt(np.minimum(variance, 0.25))


def find_doubt(rates: Rates) -> str:
    """Where λ̂ₖ is significantly above 1, which no λ explains; empty where it is not."""
    certain = rates.certain
    error = np.sqrt(np.maximum(rates.observed, rates.clustered))
    # Two standard errors where there is one position; with several, as many as keep false alarms as rare.
    limit = -ndtri(ndtr(-2.0) / max(1, len(error)))
    above = np.flatnonzero((certain > 0) & (rates.clicks - certain > limit * error))
    if not above.size:
        return ""
    ratio, spread = rates.clicks[above] / certain[above], error[above] / certain[above]
    worst = int(np.argmax((ratio - 1) / (spread + _TINY)))
    positions = f"{len(above)} of {len(error)} positions"
    return (
        f"The log contradicts dcm: right below a click at position {above[worst] + 1}, items are clicked "
        f"{number(float(ratio[worst]), 2)} ± {number(float(spread[worst]), 2)} times as often as without a click "
        f"above, where dcm allows at most 1 (so at {positions})."
    )
