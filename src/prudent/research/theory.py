"""Widths of confidence intervals and the theorem's bound on the regret (Sec. 7; there: error).

Three corrections to the paper. Lemmas 1 and 2 bound the *absolute* deviation, so both tails count: they need
log(2/δ), not log(1/δ). Near-optimal logging improves the theorem's bound by a factor of √(|𝓔|/K), not |𝓔|/K. And the
theorem is about the list that maximises V̂(A) − c(A), which is not always the list of Algorithm 1; see `error_bound`.

All of it is frequentist, about the estimates n₊/n of items examined n times, n fixed in advance. It is exact for
the cascade and the dependent-click model with known position parameters, approximate for the position-based one,
and does not apply to Bayesian bounds, which hold on average over their prior.
"""

import numpy as np
from numpy.typing import ArrayLike

from prudent.base.arrays import FloatArray
from prudent.base.errors import UsageError
from prudent.bounds.base import check_delta
from prudent.click_models.evidence import Evidence


def item_width(examined: ArrayLike, delta: float) -> FloatArray:
    """c(a, X) of Lemma 1, ``√(log(2/δ) / 2n)``: ``|n₊/n − θ| ≤ c(a, X)`` with probability at least 1 − δ.

    It holds for each item separately, not for all at once; infinite for an item that was never examined.

    >>> item_width([0, 100, 400], delta=0.05).round(3)
    array([  inf, 0.136, 0.068])
    """
    return _width(examined, delta, 1)


def list_width(examined: ArrayLike, delta: float, pairs: int) -> FloatArray:
    """c(A, X) of Lemma 2, ``Σ_{a∈A} √(log(2m/δ) / 2n_a)``, one entry per list.

    `examined` has the items of a list along its last axis; `pairs` is m, the number of (context, item) pairs that
    the union bound runs over: |𝓔||𝓧| where all contexts share their items. With probability at least 1 − δ the
    value of *every* list in *every* context is within c(A, X) of its estimate. Sums of widths are loose: a
    c(A, X) above the largest possible value (1 for the cascade and dependent-click model) is vacuous.

    >>> list_width([[100, 400], [0, 400]], delta=0.05, pairs=10).round(3)
    array([0.26,  inf])
    """
    return np.asarray(_width(examined, delta, pairs).sum(axis=-1))


def error_bound(examined: ArrayLike, delta: float, pairs: int) -> FloatArray:
    """The theorem's bound ``V(A*, X) − V(Â, X) ≤ 2 c(A*, X)``, from how often the items of A* were examined.

    It holds for all contexts at once with probability at least 1 − δ, for the list Â that maximises
    ``V̂(A) − c(A)``. The same steps prove it for Algorithm 1, which maximises ``V(L(a₁), …, L(a_K))``, when L is
    Hoeffding's bound of width √(log(2m/δ)/2n) clipped at 0; not for the larger δ that rank well in practice.

    A* is known in simulations only. With the chosen list in its place the result is an indication, not a bound;
    `worst_error_bound` holds for any list.

    >>> error_bound([[100, 400]], delta=0.05, pairs=10).round(3)
    array([0.519])
    """
    return 2 * list_width(examined, delta, pairs)


def worst_error_bound(evidence: Evidence, length: int, delta: float) -> FloatArray:
    """The theorem's bound for an unknown A*: ``2 max_A c(A, X)``, one entry per context number.

    The widest list has the `length` least examined candidates of the context (all of them, if there are fewer),
    and the union bound runs over all pairs of the evidence. With one unseen candidate this is infinite: the log
    cannot exclude that the unseen item is the best. A context number without candidates gets 0.
    """
    if length < 1:
        raise UsageError(f"length is {length}; a list has at least one item.")
    order = np.lexsort((evidence.examined, evidence.context))
    context = evidence.context[order]
    size = np.bincount(context)
    rank = np.arange(context.size) - (np.cumsum(size) - size)[context]
    least = rank < length
    width = _width(evidence.examined[order][least], delta, max(context.size, 1))
    return np.asarray(2 * np.bincount(context[least], weights=width, minlength=size.size), dtype=float)


def _width(examined: ArrayLike, delta: float, pairs: int) -> FloatArray:
    check_delta(delta)
    if pairs < 1:
        raise UsageError(f"pairs is {pairs}; the union bound runs over at least one pair.")
    n = np.asarray(examined, dtype=float)
    square = np.divide(np.log(2 * pairs / delta), 2 * n, out=np.full_like(n, np.inf), where=n > 0)
    return np.asarray(np.sqrt(square))
