"""The pseudo-inverse estimator."""

from dataclasses import dataclass

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import LogError
from prudent.policies.baselines.base import Baseline, Choice, baselines, best_placed, first_of_best, incumbent_values
from prudent.policies.baselines.totals import Totals
from prudent.policies.list_arrays import Lists

LARGEST = 10_000
"""Most lists, or items at positions, whichever are fewer, of one context: their matrix takes 800 MB."""

_DEPENDENT = 1e-10  # remainder of a scaled row that counts as rounding: the row depends on the others
_BITS = 33  # kept of an estimate: the last ones depend on how many threads the linear algebra had


@baselines.register("pi")
@dataclass(frozen=True)
class PseudoInverse(Baseline):
    """Least squares of clicks per list on which item stands where (Sec. 8.2, after Swaminathan et al. 2017).

    ``φ̂ = (E[1_A 1_Aᵀ])† E[Y 1_A]``, where 1_A marks the items of list A at their positions, Y is the number of
    clicks on it, and expectations are means over the lists of a context. This is the minimum-norm solution: an item has
    φ = 0 where it was never shown. It is not unique where all lists have one length, since a constant can move from
    the items of one position to those of another. From the top down, each position gets the free item with the largest
    φ there; ties go to more impressions there, then anywhere, then the smaller name. A negative estimate loses to an
    item that was never shown there.
    """

    def choose(self, totals: Totals) -> Choice:
        """Positions filled from the top."""
        placed = totals.placed
        phi = weights(totals)
        logged = np.flatnonzero(totals.logged[totals.context])  # the pairs of contexts with a list
        free = np.ones(totals.pairs, bool)
        rows, ranks, adds = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
        for k in range(totals.length):
            here = placed.position == k
            estimate, n = np.zeros(totals.pairs), np.zeros(totals.pairs, np.int64)
            estimate[placed.pair[here]], n[placed.pair[here]] = phi[here], placed.n[here]
            pair = logged[free[logged]]
            row = pair[first_of_best(totals.context[pair], estimate[pair], n[pair], totals.impressions[pair])]
            free[row] = False
            rows.append(row)
            ranks.append(np.full(len(row), k + 1))
            adds.append(estimate[row])
        row, rank = np.concatenate(rows), np.concatenate(ranks)
        order = np.lexsort((rank, totals.context[row]))
        lists = Lists(row[order], totals.context[row[order]], rank[order])
        best = best_placed(placed, phi, totals.pairs)
        everywhere = np.bincount(placed.pair, minlength=totals.pairs) == totals.length
        best = np.where(everywhere, best, np.maximum(best, 0))
        return Choice(lists, np.concatenate(adds)[order], best, incumbent_values(totals, phi))


def weights(totals: Totals) -> FloatArray:
    """φ̂ of every item at every position where it was shown, in the order of `Totals.placed`."""
    placed = totals.placed
    key = placed.pair * totals.length + placed.position
    place = np.searchsorted(key, totals.items * totals.length + np.arange(totals.length))
    clicks = totals.list_clicks
    phi = np.zeros(len(key))
    contexts = np.arange(len(totals.logged) + 1)
    lists = np.searchsorted(totals.list_context, contexts)
    places = np.searchsorted(totals.context[placed.pair], contexts)
    for context in np.flatnonzero(totals.logged):
        its_lists, its_places = slice(*lists[context : context + 2]), slice(*places[context : context + 2])
        size = its_places.stop - its_places.start
        # Numbered from 1; 0 is below the end of a short list.
        stands = np.where(totals.items[its_lists] >= 0, place[its_lists] - its_places.start + 1, 0)
        solve = _from_lists if len(stands) < size else _from_places
        if min(len(stands), size) > LARGEST:
            raise LogError(
                f"One context has {len(stands):,} distinct lists of {size:,} items at positions; the pseudo-inverse "
                f"supports {LARGEST:,} of either. Set a smaller length."
            )
        phi[its_places] = _without_last_digits(solve(stands, size, totals.n[its_lists], clicks[its_lists]))
    return phi


def _from_places(stands: IntArray, size: int, n: IntArray, clicks: IntArray) -> FloatArray:
    """φ̂ as in the paper: one row and column per item and position."""
    together = stands[:, :, None] * (size + 1) + stands[:, None, :]
    gram = _sums(together, n[:, None, None], (size + 1) ** 2).reshape(size + 1, size + 1)
    return pseudo_solve(gram[1:, 1:], _sums(stands, clicks[:, None], size + 1)[1:])


def _from_lists(stands: IntArray, size: int, n: IntArray, clicks: IntArray) -> FloatArray:
    """The same where there are fewer lists: with B = √n 1_A, one row per list, (BᵀB)†Bᵀy is Bᵀ(BBᵀ)†y."""
    shared = np.zeros((len(stands), len(stands)))
    for column in stands.T:
        shared += (column[:, None] == column) & (column > 0)
    root = np.sqrt(n)
    weight = root * pseudo_solve(shared * root[:, None] * root, clicks / root)
    return _sums(stands, weight[:, None], size + 1)[1:]


def _sums(at: IntArray, weight: FloatArray | IntArray, size: int) -> FloatArray:
    return np.bincount(at.ravel(), np.broadcast_to(weight, at.shape).ravel(), size).astype(np.float64, copy=False)


def pseudo_solve(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """M†y for a positive semidefinite M with a positive diagonal, by a Cholesky factorisation with pivoting.

    M is first scaled to a unit diagonal, so that its numerical rank does not depend on how often lists were shown.
    Rows with a remainder of at most 1e-10 count as dependent. Each gives a direction in the null space; with these
    projected out of y and of the solution, any solution has minimum norm. Ten times as fast as an eigendecomposition.
    """
    from scipy.linalg import lapack  # slow to import

    scale = np.sqrt(np.diagonal(matrix))
    factor, pivot, rank, _ = lapack.dpstrf(matrix / scale[:, None] / scale, lower=1, tol=_DEPENDENT)
    pivot = pivot - 1
    scale, right = scale[pivot], right[pivot]
    top, rest = factor[:rank, :rank], factor[rank:, :rank]
    if rank < len(scale):
        onto, _ = lapack.dtrtrs(top, rest.T, lower=1, trans=1)
        null, _ = np.linalg.qr(np.vstack([-onto, np.eye(len(rest))]) / scale[:, None])
        right = right - null @ (null.T @ right)
    solution = np.zeros(len(scale))
    solution[:rank] = lapack.dpotrs(top, right[:rank] / scale[:rank], lower=1)[0] / scale[:rank]
    if rank < len(scale):
        solution -= null @ (null.T @ solution)
    unsorted = np.empty_like(solution)
    unsorted[pivot] = solution
    return unsorted


def _without_last_digits(phi: FloatArray) -> FloatArray:
    """Rounded to a binary place relative to the largest; a decimal one would have .5 on its edge."""
    largest = np.abs(phi).max()
    if largest == 0:
        return phi
    unit = 2.0 ** (np.round(np.log2(largest)) - _BITS)
    return np.asarray(np.round(phi / unit) * unit)
