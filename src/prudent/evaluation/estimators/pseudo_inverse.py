"""The pseudo-inverse estimator."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.click_models.rewards import EarnedReward
from prudent.evaluation.estimators.base import (
    FREQUENCIES,
    Contributions,
    Estimator,
    check_support,
    estimators,
    where_supported,
)
from prudent.evaluation.holdout import Holdout
from prudent.evaluation.weighting import Matched, widen

LARGEST = 2_000
"""Items at positions; a context with more has no support, as its matrix would be too large."""
_DEPENDENT = 1e-10  # a smaller pivot is rounding
_TOLERANCE = 1e-6  # of the combination of lists that equals the policy's


@estimators.register("pi")
@dataclass(frozen=True)
class PseudoInverse(Estimator):
    """``1_Bᵀ (E[1_A 1_Aᵀ])† E[R 1_A]``, in each context (Swaminathan et al. 2017).

    Assumes that a list's reward is a sum over its items at their positions. The policy's list itself need not be in
    the holdout: a linear combination of others is enough. 1_A marks the items of list A at their positions. Its
    expectations are always frequencies in the holdout.
    """

    words: ClassVar[str] = "pseudo-inverse"

    def contributions(self, held: Holdout, reward: EarnedReward) -> Contributions:
        """Lists, weighted by their coefficients in the combination."""
        earned = held.reward(reward)
        value, supported = np.zeros(held.contexts), np.zeros(held.contexts, bool)
        residual, weight, alone = np.zeros(len(held.n)), np.zeros(len(held.n)), np.zeros(len(held.n), bool)
        possible = held.known.copy()
        for k in range(held.length):
            possible &= (held.size <= k) | (held.per_context(held.n * held.at(k)) > 0)
        starts = [*np.flatnonzero(np.diff(held.context, prepend=-1)), len(held.n)]
        for first, last in pairwise(starts):
            context = held.context[first]
            if not possible[context]:
                continue
            its, n = earned[first:last], held.n[first:last]
            items = np.where(held.within[first:last], held.items[first:last], -1).astype(np.int64)
            fit = _fit(items, held.target[context, : held.size[context]], n, its)
            if fit is None:
                continue
            supported[context] = True
            value[context] = np.sum(n * fit.weight * its) / n.sum()
            # Residuals of a fit are too small: divided by the square root of 1 − leverage (HC2).
            free = np.maximum(1 - fit.leverage, _TOLERANCE)
            residual[first:last] = (its - fit.reward) / np.sqrt(free)
            weight[first:last], alone[first:last] = fit.weight, fit.leverage > 1 - _TOLERANCE
        # A list that alone determines its fit has no residual: it gets the standard deviation of all lists.
        inside = supported[held.context]
        mean = np.sum((held.n * earned)[inside]) / max(1, held.n[inside].sum())
        spread = np.sqrt(np.sum((held.n * (earned - mean) ** 2)[inside]) / max(1, held.n[inside].sum()))
        residual = np.where(alone, np.where(earned >= mean, spread, -spread), residual)
        gain = np.where(inside, value[held.context] + weight * widen(held, residual, inside, earned), 0.0)
        check_support(held, supported, "items at positions that add up to the policy's list")
        part = where_supported(held, reward, Matched(value, gain, weight, supported))
        return replace(part, note="" if held.propensity is None else FREQUENCIES)


class _Fit(NamedTuple):
    """Least squares in one context; one entry per list."""

    weight: FloatArray  # the value of the policy's list is the mean of weight × reward
    reward: FloatArray  # fitted
    leverage: FloatArray  # of one impression list on its own fit


def _fit(items: IntArray, target: IntArray, n: IntArray, reward: FloatArray) -> _Fit | None:
    """The fit, or None where the policy's list is not in the span of the logged ones.

    Where it is, every solution of the normal equations gives it the same value, not only the shortest. The cheapest
    has the pivots of a Cholesky factorisation, and 0 elsewhere.
    """
    from scipy.linalg import lapack  # loads scipy.linalg on first use

    length = items.shape[1]
    inside = items >= 0
    places, at = np.unique((items * length + np.arange(length))[inside], return_inverse=True)
    size = len(places)
    if size > LARGEST:
        return None
    stands = np.zeros((len(items), size))
    stands[np.nonzero(inside)[0], at] = 1.0
    target_row = np.zeros(size)
    target_row[np.searchsorted(places, target * length + np.arange(len(target)))] = 1.0
    gram = (stands.T * n) @ stands
    scale = np.sqrt(np.diagonal(gram))
    factor, pivot, rank, _ = lapack.dpstrf(gram / scale[:, None] / scale, lower=1, tol=_DEPENDENT)
    chosen = pivot[:rank] - 1
    top, scale = factor[:rank, :rank], scale[chosen]
    solution = lapack.dpotrs(top, target_row[chosen] / scale, lower=1)[0] / scale
    if np.abs(gram[:, chosen] @ solution - target_row).max() > _TOLERANCE:
        return None
    own = stands[:, chosen]
    phi = lapack.dpotrs(top, (own.T @ (n * reward)) / scale, lower=1)[0] / scale
    root = lapack.dtrtrs(top, (own / scale).T, lower=1)[0]
    return _Fit(own @ solution * n.sum(), own @ phi, np.sum(root**2, axis=0))
