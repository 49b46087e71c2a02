"""Fisher information about the examination probabilities of the position-based model, and the variance that it leaves.

Of n impressions of an item at position k, each clicked with probability ``x = pₖθ``, the expected information about
log pₖ and about log θ is ``b = n·x/(1 − x)``. With θ eliminated, the impressions of one item at several positions add
``diag(b) − b bᵀ/Σb``: the Laplacian of a graph in which the item links its positions, i and j by ``bᵢbⱼ/Σb``. Only
ratios of p are seen, so that variances are those of log pₖ relative to one position, whose p is 1.
"""

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.click_models.examination import MIN_IMPRESSIONS, position_groups

_LINKED = 1e-6
"""Information about a ratio of two p below which the log says nothing about it: a variance of a million."""
_MOST_CLICKED = 0.99  # of impressions: information grows without limit towards 1


def curvature(shown: FloatArray, clicked: FloatArray) -> FloatArray:
    """B of impressions that are clicked with this probability."""
    rate = np.clip(clicked, 0.0, _MOST_CLICKED)
    return np.asarray(shown * rate / (1 - rate))


def laplacians_of(b: FloatArray) -> FloatArray:
    """What each item adds to the information about log p: items along the first axes, then twice the positions."""
    total = b.sum(axis=-1)[..., None, None]
    shares = np.divide(b[..., :, None] * b[..., None, :], total, out=np.zeros((*b.shape, b.shape[-1])), where=total > 0)
    return np.asarray(b[..., None] * np.eye(b.shape[-1]) - shares)


def information(shown: FloatArray, attraction: FloatArray, examination: FloatArray) -> FloatArray:
    """The information of all items about log p; one with too few impressions takes no part in a fit.

    ``shown`` has a row for each item and a column for each position.
    """
    fitted = shown.sum(axis=1) >= MIN_IMPRESSIONS
    shown, attraction = shown[fitted], attraction[fitted]
    b = curvature(shown, attraction[:, None] * examination)
    total = b.sum(axis=1)
    scaled = np.divide(b, np.sqrt(total)[:, None], out=np.zeros_like(b), where=total[:, None] > 0)
    return np.asarray(np.diag(b.sum(axis=0)) - np.einsum("ij,ik->jk", scaled, scaled))


def linked_positions(information: FloatArray) -> list[list[int]]:
    """Groups of positions, from 1, whose ratios this information determines."""
    positions = len(information)
    first, second = np.nonzero(np.triu(-information, 1) > _LINKED)
    return position_groups((first + 1) * (positions + 1) + second + 1, positions)


def covariance(information: FloatArray, reference: int) -> FloatArray:
    """The covariance of log p relative to that of the position `reference`, from 0; stacks of matrices along."""
    rest = np.delete(np.arange(information.shape[-1]), reference)
    found = np.zeros_like(information)
    found[..., rest[:, None], rest] = np.linalg.inv(information[..., rest[:, None], rest])
    return found


def standard_errors(covariance: FloatArray, examination: FloatArray) -> FloatArray:
    """The standard error of each p; 0 for the one that the others are relative to."""
    return np.asarray(examination * np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1)))


def overall_error(covariance: FloatArray, examination: FloatArray) -> FloatArray:
    """The root mean square of the standard errors of p, but for the one that the others are relative to."""
    variances = standard_errors(covariance, examination) ** 2
    return np.asarray(np.sqrt(variances.sum(axis=-1) / max(1, len(examination) - 1)))


def by_position(
    pair: IntArray, position: IntArray, shown: FloatArray, pairs: int, positions: int, kept: BoolArray | None = None
) -> FloatArray:
    """Impressions of each pair as a row with a column for each position."""
    inside = position <= positions if kept is None else kept & (position <= positions)
    table = np.zeros((pairs, positions))
    np.add.at(table, (pair[inside], position[inside] - 1), shown[inside])
    return table
