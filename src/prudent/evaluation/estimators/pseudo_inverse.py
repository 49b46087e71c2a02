"""The pseudo-inverse estimator."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.evaluation.estimators.base import (
    FREQUENCIES,
    Columns,
    Estimator,
    check_support,
    estimators,
    where_supported,
)
from prudent.evaluation.holdout import HeldOut, Reward
from prudent.evaluation.weighting import Matched, widen

LARGEST = 2_000
"""Items at positions beyond which the matrix of a context is too large, and the context has no support."""
_DEPENDENT = 1e-10  # less of a row than this is not its own, but rounding
_OFF = 1e-6  # by which a sum of lists may miss the policy's and still be it


@estimators.register("pi")
@dataclass(frozen=True)
class PseudoInverse(Estimator):
    """``1_Bᵀ (E[1_A 1_Aᵀ])† E[R 1_A]``, in each context (Swaminathan et al. 2017).

    Assumes that a list's reward is the sum of what its items add, each at its position, and needs no list that was
    shown as the policy has it: a combination of others will do. 1_A marks the items of list A at their positions. Its
    expectations are always frequencies in the held-out lists.
    """

    words: ClassVar[str] = "pseudo-inverse"

    def columns(self, held: HeldOut, reward: Reward) -> Columns:
        """Lists, weighted by what they say about the policy's."""
        earned = held.reward(reward)
        value, found = np.zeros(held.contexts), np.zeros(held.contexts, bool)
        far, weight, alone = np.zeros(len(held.n)), np.zeros(len(held.n)), np.zeros(len(held.n), bool)
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
            found[context] = True
            value[context] = np.sum(n * fit.weight * its) / n.sum()
            # Residuals are too small where lists were fitted to themselves: divided by what is not their own (HC2).
            free = np.maximum(1 - fit.leverage, _OFF)
            far[first:last] = (its - fit.reward) / np.sqrt(free)
            weight[first:last], alone[first:last] = fit.weight, fit.leverage > 1 - _OFF
        # A list that alone decides its fit has no residual: that of all lists stands in for it.
        inside = found[held.context]
        usual = np.sum((held.n * earned)[inside]) / max(1, held.n[inside].sum())
        spread = np.sqrt(np.sum((held.n * (earned - usual) ** 2)[inside]) / max(1, held.n[inside].sum()))
        far = np.where(alone, np.where(earned >= usual, spread, -spread), far)
        gain = np.where(inside, value[held.context] + weight * widen(held, far, inside, earned), 0.0)
        check_support(held, found, "items at positions that add up to the policy's list")
        columns = where_supported(held, reward, Matched(value, gain, weight, found))
        return replace(columns, note="" if held.propensity is None else FREQUENCIES)


class _Fit(NamedTuple):
    """Least squares in one context; one entry per list."""

    weight: FloatArray  # in the value of the policy's list: that is the mean of weight × reward
    reward: FloatArray  # fitted
    leverage: FloatArray  # of one showing on its own fit


def _fit(items: IntArray, target: IntArray, n: IntArray, reward: FloatArray) -> _Fit | None:
    """The fit, or None where the policy's list does not lie in the span of those that were shown.

    Where it does, every solution of the normal equations gives it the same value, not only the shortest: that of the
    pivots of a Cholesky factorisation, with 0 elsewhere, is the cheapest.
    """
    from scipy.linalg import lapack  # scipy.special is all that may load with the package

    length = items.shape[1]
    inside = items >= 0
    places, at = np.unique((items * length + np.arange(length))[inside], return_inverse=True)
    size = len(places)
    if size > LARGEST:
        return None
    stands = np.zeros((len(items), size))
    stands[np.nonzero(inside)[0], at] = 1.0
    wanted = np.zeros(size)
    wanted[np.searchsorted(places, target * length + np.arange(len(target)))] = 1.0
    gram = (stands.T * n) @ stands
    scale = np.sqrt(np.diagonal(gram))
    factor, pivot, rank, _ = lapack.dpstrf(gram / scale[:, None] / scale, lower=1, tol=_DEPENDENT)
    chosen = pivot[:rank] - 1
    top, scale = factor[:rank, :rank], scale[chosen]
    solution = lapack.dpotrs(top, wanted[chosen] / scale, lower=1)[0] / scale
    if np.abs(gram[:, chosen] @ solution - wanted).max() > _OFF:
        return None
    own = stands[:, chosen]
    phi = lapack.dpotrs(top, (own.T @ (n * reward)) / scale, lower=1)[0] / scale
    root = lapack.dtrtrs(top, (own / scale).T, lower=1)[0]
    return _Fit(own @ solution * n.sum(), own @ phi, np.sum(root**2, axis=0))
