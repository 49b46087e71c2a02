"""Examination probabilities of the position-based model from counts: which positions can be compared, and their fit."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.numerics.squarem import fixed_point
from prudent.click_models.base import warn_unsettled
from prudent.counts.cells import Cells
from prudent.counts.sampling import MOST_PAIRS

LINK = 20
"""Impressions that an item needs at each of two positions before it links them.

With fewer, the ratio of the two examination probabilities would depend on a click or two.
"""
MIN_IMPRESSIONS = 10
"""Impressions that an item needs at all positions together to take part in fitting p."""
FEW = 32
"""Positions up to which products with dense tables are faster than with sparse ones; the digits are the same."""
_SEED = 20_240_611  # of the sample; any fixed number does
_TINY = 1e-300  # keeps 0/0, of a pair without clicks, at 0


def per_position(cells: Cells) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Impressions and clicks of each (pair, position) that occurs."""
    starts = np.flatnonzero(np.diff(cells.pair, prepend=-1) | np.diff(cells.position, prepend=-1))
    shown = np.add.reduceat(cells.n, starts)
    clicked = np.add.reduceat(cells.n * cells.click, starts)
    return cells.pair[starts], cells.position[starts], shown, clicked


def separate_positions(pair: IntArray, position: IntArray, shown: FloatArray, positions: int) -> list[list[int]]:
    """Groups of positions linked by an item with enough impressions at both; one group means identified."""
    return position_groups(position_links(pair, position, shown, positions), positions)


def position_links(pair: IntArray, position: IntArray, shown: FloatArray, positions: int) -> IntArray:
    """Pairs of positions, a·(positions + 1) + b each, that some item links."""
    often = shown >= LINK
    pair, position = pair[often], position[often]
    # Positions of one pair stand in a row, so linking neighbours links them all.
    same = pair[1:] == pair[:-1]
    return np.flatnonzero(np.bincount(position[:-1][same] * (positions + 1) + position[1:][same], minlength=1))


def position_groups(links: IntArray, positions: int) -> list[list[int]]:
    """The positions that hang together by these links."""
    group = np.arange(positions + 1)
    for a, b in zip(*np.divmod(links, positions + 1), strict=True):
        group[group == group[b]] = group[a]
    return [(np.flatnonzero(group[1:] == g) + 1).tolist() for g in dict.fromkeys(group[1:].tolist())]


def not_compared(groups: Sequence[Sequence[int]]) -> str:
    """Why positions in different groups cannot be compared.

    >>> not_compared([[1], [2]])
    'no two positions can be compared: no item has 20 impressions at each of two'
    >>> not_compared([[1, 2], [3]])
    'positions {1, 2} and {3} cannot be compared: no item has 20 impressions at a position of each'
    """
    if all(len(group) == 1 for group in groups):
        return f"no two positions can be compared: no item has {LINK} impressions at each of two"
    return f"positions {name_groups(groups)} cannot be compared: no item has {LINK} impressions at a position of each"


def name_groups(groups: Sequence[Sequence[int]]) -> str:
    """Groups of positions as text: {1, 2} and {3}."""
    return " and ".join("{" + ", ".join(map(str, group)) + "}" for group in groups)


def fit_em(
    pair: IntArray, position: IntArray, shown: FloatArray, clicked: FloatArray, positions: int, smooth: float
) -> tuple[FloatArray, FloatArray]:
    """The p that maximises the likelihood Σ clicks·log(pₖθ) + (impressions − clicks)·log(1 − pₖθ).

    Every θ and every p also has `smooth` pseudo-observations of either kind, so that the maximum exists and is one.
    Expectation-maximisation goes there in thousands of rounds; in log θ and log p the likelihood is concave, and
    Newton's method needs a dozen steps, each with θ eliminated so that only one equation per position is solved.
    The second result is the covariance of log p relative to the largest, from the observed information.
    """
    pair, position, shown, clicked, pairs = _informative(pair, position, shown, clicked)
    if not pairs:
        return np.ones(positions), np.zeros((positions, positions))
    place = position - 1
    # A start that is roughly right saves half of the steps: p from the click rates.
    rate = (np.bincount(place, clicked, minlength=positions) + 1) / (np.bincount(place, shown, minlength=positions) + 2)
    _, log_p, _, left = _maximize(pair, place, clicked, shown - clicked, smooth, np.log(0.8 * rate / rate.max()))
    # Further digits depend on how many threads solve the equations.
    contrast = np.eye(positions)
    contrast[:, int(np.argmax(log_p))] -= 1
    covariance: FloatArray = contrast @ np.linalg.solve(left, contrast.T)
    return np.round(np.exp(log_p - log_p.max()), 9), np.round(covariance, 9)


def bootstrap_em(
    pair: IntArray,
    position: IntArray,
    shown: FloatArray,
    clicked: FloatArray,
    smooth: float,
    examination: FloatArray,
    replicates: int,
    random: np.random.Generator,
) -> Iterator[FloatArray]:
    """Fits of `fit_em` to bootstrapped logs, whose counts are drawn from Poisson distributions.

    The counts of a pair at a position are sums over cells: to draw the sum is to draw each cell. Each p is one step of
    Newton's method away from that of the log, by the log's own information: a full fit to each bootstrapped log takes
    ten times as long, and the variance among them is the same to a few per cent.
    """
    pair, position, shown, clicked, pairs = _informative(pair, position, shown, clicked)
    if not pairs:
        yield from (examination for _ in range(replicates))
        return
    place, missed = position - 1, shown - clicked
    start = np.log(np.maximum(0.8 * examination, _TINY))
    log_theta, log_p, share, left = _maximize(pair, place, clicked, missed, smooth, start)
    odds = -1 / (1 - np.exp(-log_theta[pair] - log_p[place]))  # x/(1 − x): what a skip takes from the slope
    for _ in range(replicates):
        slope = random.poisson(clicked) - clicked - odds * (random.poisson(missed) - missed)
        slope_theta = np.bincount(pair, slope, minlength=pairs)
        slope_p = np.bincount(place, slope, minlength=len(log_p))
        moved = log_p + np.linalg.solve(left, slope_p - share.T @ slope_theta)
        yield np.round(np.exp(moved - moved.max()), 9)


def _maximize(
    pair: IntArray, place: IntArray, clicked: FloatArray, missed: FloatArray, smooth: float, log_p: FloatArray
) -> tuple[FloatArray, FloatArray, Any, FloatArray]:
    """The log θ and log p of the highest likelihood, from a log p below 0.

    Then, for each pair and position, by how much log θ falls where log p rises, and the information about log p.
    """
    from scipy.sparse import csr_array

    positions, pairs = len(log_p), int(pair.max()) + 1

    def terms(log_x: FloatArray, hits: FloatArray | float, misses: FloatArray | float) -> tuple[FloatArray, ...]:
        """hits·log x + misses·log(1 − x), its slope in log x, and minus its curvature there."""
        x = np.exp(log_x)
        rest = -np.expm1(log_x)
        return hits * log_x + misses * np.log(rest), hits - misses * x / rest, misses * x / rest**2

    def all_terms(log_theta: FloatArray, log_p: FloatArray) -> tuple[float, list[tuple[FloatArray, ...]]]:
        """The likelihood, and the terms of impressions, of θ and of p."""
        found = [
            terms(log_theta[pair] + log_p[place], clicked, missed),
            terms(log_theta, smooth, smooth),
            terms(log_p, smooth, smooth),
        ]
        return float(found[0][0].sum() + found[1][0].sum() + found[2][0].sum()), found

    looked = np.bincount(pair, (clicked + missed) * np.exp(log_p)[place], minlength=pairs)
    log_theta = np.log((np.bincount(pair, clicked, minlength=pairs) + 0.2) / (looked + 1)).clip(-6.0, -0.2)
    reached, found = all_terms(log_theta, log_p)
    row = np.append(0, np.cumsum(np.bincount(pair, minlength=pairs)))  # the entries are sorted by pair and position
    for _ in range(200):
        (_, slope, bend), (_, slope_theta, bend_theta), (_, slope_p, bend_p) = found
        slope_theta = slope_theta + np.bincount(pair, slope, minlength=pairs)
        bend_theta = bend_theta + np.bincount(pair, bend, minlength=pairs)
        slope_p = slope_p + np.bincount(place, slope, minlength=positions)
        bend_p = bend_p + np.bincount(place, bend, minlength=positions)
        shared = csr_array((bend, place, row), shape=(pairs, positions))
        share = csr_array((bend / bend_theta[pair], place, row), shape=(pairs, positions))
        # Never two dense tables: their products go to as many threads as there are.
        product = shared.T @ share.toarray() if positions <= FEW else (shared.T @ share).toarray()
        left = np.diag(bend_p) - product
        move_p = np.linalg.solve(left, slope_p - share.T @ slope_theta)
        move_theta = (slope_theta - shared @ move_p) / bend_theta
        # Stay below log 1 = 0, and halve the step until it climbs, as far as rounding lets that be seen.
        step = min(1.0, 0.95 / max(1e-12, float(np.max(-move_theta / log_theta)), float(np.max(-move_p / log_p))))
        while True:
            higher, found = all_terms(log_theta + step * move_theta, log_p + step * move_p)
            if not higher < reached - 1e-12 * abs(reached):
                break
            step /= 2
        log_theta, log_p, reached = log_theta + step * move_theta, log_p + step * move_p, higher
        if np.sum(slope_theta * move_theta) + np.sum(slope_p * move_p) < 1e-9:  # twice what a full step can still gain
            break
    return log_theta, log_p, share, left


def fit_als(pair: IntArray, position: IntArray, shown: FloatArray, clicked: FloatArray, positions: int) -> FloatArray:
    """The p that minimises Σ (pₖθ − Y)², by alternating least squares (App. A)."""
    pair, position, shown, clicked, pairs = _informative(pair, position, shown, clicked)
    if not clicked.any():
        return np.ones(positions)

    def step(p: FloatArray) -> FloatArray:
        of = p[position - 1]
        below = np.bincount(pair, of * of * shown, minlength=pairs)
        theta = np.bincount(pair, of * clicked, minlength=pairs) / np.maximum(below, _TINY)
        of = theta[pair]
        below = np.bincount(position - 1, of * of * shown, minlength=positions)
        new = np.bincount(position - 1, of * clicked, minlength=positions) / np.maximum(below, _TINY)
        return np.asarray(new / new.max())

    examination, rest = fixed_point(step, np.ones(positions), 1e-8, groups=np.zeros(1, np.int64), rounds=2_000)
    if not rest.all():
        warn_unsettled()
    return examination


def _informative(
    pair: IntArray, position: IntArray, shown: FloatArray, clicked: FloatArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, int]:
    """The pairs with enough impressions to say something about p, renumbered; a fixed sample where there are many.

    An item shown once and clicked once has θ = 1 at the maximum and pulls p towards 1: on a simulated log with a
    long tail p was off by .04 with such pairs and by .005 without.
    """
    impressions = np.bincount(pair, shown)
    informative = np.flatnonzero(impressions >= MIN_IMPRESSIONS)
    if len(informative) > MOST_PAIRS:
        informative = np.random.default_rng(_SEED).choice(informative, MOST_PAIRS, replace=False)
    chosen = np.zeros(len(impressions), bool)
    chosen[informative] = True
    kept = chosen[pair]
    numbers, pair = np.unique(pair[kept], return_inverse=True)
    return pair, position[kept], shown[kept], clicked[kept], len(numbers)
