"""Swaps of two items of a list, for the examination probabilities of the position-based model.

`link` finds the fewest swaps that make positions comparable, and `sharpen` those that reduce the standard error of p
most per expected loss. Positions count from 0 here; a swap is of positions i < j of the list of a context.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.click_models.examination import LINK, name_groups
from prudent.click_models.position_information import covariance, curvature, laplacians_of, overall_error

STEPS = (0.05, 0.1, 0.2)
"""By which the probability of a swap may grow at once."""
MOST_SWAPPED = 0.5
"""Probability of all swaps of a context together."""
MOST_SWAPS = 100
"""Steps of the search. Each is charged this part of the cost at least, or the first hundred would be those that cost
nothing and teach next to nothing."""
LINKING = LINK + 3 * LINK**0.5
"""Impressions to expect where LINK are needed: fewer than LINK then come with a probability of 1 in 4,000."""
MOST_NUMBERS = 2_000_000  # of one step of the search: fewer contexts of longer lists are searched
_EXACT = 64  # swaps at a time whose gain is computed exactly
_WHOLE = 1e-9


class Swap(NamedTuple):
    """Two positions of the list of a context that are swapped with this probability."""

    context: int
    first: int
    second: int
    probability: float


@dataclass(frozen=True)
class Positions:
    """What is known about p, and how lists of some contexts, in the order of their traffic, can add to it."""

    examination: FloatArray
    reference: int  # the position that p is relative to
    attraction: FloatArray  # of the item at each position of each list; 0 where there is none
    shown: FloatArray  # context, place, position: impressions of the item at a place, without swaps
    coming: FloatArray  # lists of each context
    cost: FloatArray  # context, i, j: share of the policy's value that a swap loses if it is always shown

    def information(self, shown: FloatArray) -> FloatArray:
        """Of all items, with these impressions of the listed ones."""
        b = curvature(shown, self.attraction[..., None] * self.examination)
        return np.asarray(laplacians_of(b).sum(axis=(0, 1)))


def swapped(positions: Positions, shown: FloatArray, swap: Swap) -> FloatArray:
    """Impressions of the listed items with one more swap."""
    context, first, second, probability = swap
    moved, shown = probability * positions.coming[context], shown.copy()
    for place, other in ((first, second), (second, first)):
        shown[context, place, place] -= moved
        shown[context, place, other] += moved
    return shown


def link(positions: Positions) -> tuple[list[Swap], list[list[int]]]:
    """One swap fewer than there are positions, of the least total cost, and the groups of positions that these link.

    Without swaps, every item has one position. A swap links i and j where its items then have impressions enough at
    both: minimum spanning tree, by Kruskal.
    """
    length = positions.attraction.shape[1]
    context, first, second = _swaps_of(positions)
    coming = positions.coming[context]
    probability = np.ceil(1e4 * LINKING / np.maximum(coming, _WHOLE)) / 1e4
    total = probability * positions.cost[context, first, second]
    order = np.lexsort((second, first, context, total))
    chosen, used, group = [], np.zeros(len(positions.coming)), np.arange(length)
    for at in order[probability[order] <= MOST_SWAPPED].tolist():
        swap = Swap(int(context[at]), int(first[at]), int(second[at]), float(probability[at]))
        one, other = group[swap.first], group[swap.second]
        if one == other or used[swap.context] + swap.probability > MOST_SWAPPED + _WHOLE:
            continue
        group[group == other] = one
        used[swap.context] += swap.probability
        chosen.append(swap)
    return chosen, [(np.flatnonzero(group == number) + 1).tolist() for number in np.unique(group).tolist()]


def _swaps_of(positions: Positions) -> tuple[IntArray, IntArray, IntArray]:
    """Context, i and j of all swaps that there are."""
    there = positions.attraction > 0
    places = np.arange(there.shape[1])
    context, first, second = np.nonzero(there[:, :, None] & there[:, None, :] & (places[:, None] < places))
    return context, first, second


def sharpen(positions: Positions, swaps: list[Swap], target: float, most_cost: float) -> tuple[list[Swap], float]:
    """More swaps, until the overall standard error of p is at most `target` or the cost is reached; and that error.

    Each step takes the growth of a swap's probability with the largest fall of Σ var(p) per cost, by the exact
    information matrix. Σ var(p) is convex in the matrix: its derivative bounds every fall from above, and the exact
    fall is computed for the swaps with the largest bounds until no other can exceed the best.
    """
    probabilities = {swap[:3]: swap.probability for swap in swaps}
    shown, spent, used = positions.shown, 0.0, np.zeros(len(positions.coming))
    for swap in swaps:
        shown = swapped(positions, shown, swap)
        used[swap.context] += swap.probability
        spent += swap.probability * float(positions.cost[swap[:3]])
    for remaining in reversed(range(MOST_SWAPS + 1)):
        information = positions.information(shown)
        left = covariance(information, positions.reference)
        error = float(overall_error(left, positions.examination))
        if error <= target or not remaining:
            break
        step = _best_step(positions, shown, information, left, used, (most_cost - spent, most_cost / MOST_SWAPS))
        if step is None:
            break
        shown = swapped(positions, shown, step)
        used[step.context] += step.probability
        spent += step.probability * float(positions.cost[step[:3]])
        probabilities[step[:3]] = probabilities.get(step[:3], 0.0) + step.probability
    return [Swap(*key, round(probability, 6)) for key, probability in sorted(probabilities.items())], error


def _best_step(
    positions: Positions,
    shown: FloatArray,
    information: FloatArray,
    left: FloatArray,
    used: FloatArray,
    money: tuple[float, float],
) -> Swap | None:
    """The step with the largest fall of Σ var(p) per cost; `money` is what is left, and the least cost to charge."""
    weight = positions.examination**2
    derivative = left @ (weight[:, None] * left)
    total = float(weight @ np.diag(left))
    every = _swaps_of(positions)
    context, first, second = (np.repeat(column, len(STEPS)) for column in every)
    probability = np.tile(STEPS, len(every[0]))
    cost = probability * positions.cost[context, first, second]
    kept = (used[context] + probability <= MOST_SWAPPED + _WHOLE) & (cost <= money[0])
    context, first, second, probability, cost = (column[kept] for column in (context, first, second, probability, cost))
    if not len(context):
        return None
    moves = _moves(positions, shown, context, first, second, probability)
    cost = np.maximum(cost, money[1])
    bound = sum(_inner(derivative, after) - _inner(derivative, before) for before, after in moves) / cost
    order = np.lexsort((second, first, context, -bound))
    best, found = 0.0, None
    for start in range(0, len(order), _EXACT):
        some = order[start : start + _EXACT]
        if bound[some[0]] <= best:
            break
        change = sum(laplacians_of(after[some]) - laplacians_of(before[some]) for before, after in moves)
        variances = np.diagonal(covariance(information + change, positions.reference), axis1=1, axis2=2)
        fall = (total - variances @ weight) / cost[some]
        at = int(np.argmax(fall))
        if fall[at] > best * (1 + 1e-12):
            best, found = float(fall[at]), int(some[at])
    if found is None or best <= 0:
        return None
    return Swap(int(context[found]), int(first[found]), int(second[found]), float(probability[found]))


def _moves(
    positions: Positions,
    shown: FloatArray,
    context: IntArray,
    first: IntArray,
    second: IntArray,
    probability: FloatArray,
) -> list[tuple[FloatArray, FloatArray]]:
    """For both items of each swap, the information of its impressions at every position, before and after."""
    rows, moved = np.arange(len(context)), probability * positions.coming[context]
    found = []
    for place, other in ((first, second), (second, first)):
        before = shown[context, place]
        after = before.copy()
        after[rows, place] -= moved
        after[rows, other] += moved
        rate = positions.attraction[context, place][:, None] * positions.examination
        found.append((curvature(before, rate), curvature(after, rate)))
    return found


def _inner(weight: FloatArray, b: FloatArray) -> FloatArray:
    """The product of each item's information about p with a matrix, summed over its entries."""
    total = b.sum(axis=1)
    shared = np.divide(np.einsum("ni,ij,nj->n", b, weight, b), total, out=np.zeros(len(b)), where=total > 0)
    return np.asarray(b @ np.diag(weight) - shared)


def unlinked(groups: list[list[int]]) -> str:
    """What is left where positions cannot be linked."""
    return (
        f"No swaps: the positions {name_groups(groups)} cannot be linked, since no context with a list of both has "
        "enough lists. Explore for more lists (lists=, --lists)."
    )
