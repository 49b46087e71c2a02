"""Swaps for examination probabilities: the information by plain loops, and searches by brute force."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from prudent.click_models.examination import fit_em, per_position
from prudent.click_models.position_information import (
    by_position,
    covariance,
    information,
    linked_positions,
    overall_error,
    standard_errors,
)
from prudent.click_models.world import draw, make_world, pairs_of
from prudent.counts.lists import ListBatch
from prudent.policies.exploration.positions import (
    LINKING,
    MOST_SWAPS,
    STEPS,
    Positions,
    Swap,
    _best_step,
    link,
    sharpen,
    swapped,
)

P = np.array([1.0, 0.7, 0.5, 0.4])


def plain_information(shown: Any, theta: Any, p: Any) -> Any:
    """The Hessian of the expected log-likelihood in log p and log θ, with θ eliminated."""
    pairs, length = shown.shape
    whole = np.zeros((length + pairs, length + pairs))
    for a in range(pairs):
        for k in range(length):
            x = p[k] * theta[a]
            b = shown[a, k] * x / (1 - x)
            for i, j in product((k, length + a), repeat=2):
                whole[i, j] += b
    inside, outside = whole[:length, :length], whole[length:, length:]
    mixed = whole[:length, length:]
    return inside - mixed @ np.linalg.pinv(outside) @ mixed.T


@pytest.mark.parametrize("seed", range(5))
def test_information_by_a_plain_loop(seed: int) -> None:
    random = np.random.default_rng(seed)
    shown, theta = random.integers(5, 60, (7, 4)) * (random.random((7, 4)) < 0.7), random.uniform(0.05, 0.6, 7)
    shown = shown[shown.sum(axis=1) >= 10]
    theta = theta[: len(shown)]
    assert information(shown.astype(float), theta, P) == pytest.approx(plain_information(shown, theta, P))


def test_covariance_is_that_of_the_fit() -> None:
    """Observed and expected information differ by chance: 5 % here, with 60,000 lists."""
    world = make_world("pbm", contexts=60, items=(8, 20), length=5, zipf=0.7, seed=2)
    lists = next(draw(world, 60_000, 2, 60_000))
    batch = ListBatch(pairs_of(world), lists.items, lists.clicks.astype(bool), np.ones(60_000, np.int64))
    table = per_position(batch.cells)
    p, fitted = fit_em(*table, 5, 0.01)
    shown = by_position(table[0], table[1], table[2], batch.cells.pairs, 5)
    expected = covariance(information(shown, world.attraction, p), int(np.argmax(p)))
    assert standard_errors(expected, p)[1:] == pytest.approx(standard_errors(fitted, p)[1:], rel=0.05)


def test_positions_that_no_item_links() -> None:
    shown = np.array([[50.0, 50, 0, 0], [0, 0, 50, 50]])
    assert linked_positions(information(shown, np.array([0.3, 0.3]), P)) == [[1, 2], [3, 4]]


def space(seed: int, contexts: int = 3, length: int = 4, lists: float = 400.0) -> Positions:
    random = np.random.default_rng(seed)
    coming = random.uniform(0.5, 2, contexts) * lists
    cost = random.uniform(0.001, 0.01, (contexts, length, length))
    return Positions(
        P[:length],
        0,
        -np.sort(-random.uniform(0.05, 0.6, (contexts, length)), axis=1),
        coming[:, None, None] * np.eye(length),
        coming,
        (cost + cost.transpose(0, 2, 1)) / 2,
    )


def all_swaps(positions: Positions) -> list[tuple[int, int, int]]:
    contexts, length = positions.attraction.shape
    return [(c, i, j) for c in range(contexts) for i, j in combinations(range(length), 2)]


@pytest.mark.parametrize("seed", range(12))
def test_fewest_and_cheapest_links_by_brute_force(seed: int) -> None:
    """Of all sets of three swaps that link four positions; no set of two does."""
    positions = space(seed)
    chosen, groups = link(positions)
    assert groups == [[1, 2, 3, 4]]
    probability = np.ceil(1e4 * LINKING / positions.coming) / 1e4

    def cost(swaps: Any) -> float:
        return float(sum(probability[c] * positions.cost[c, i, j] for c, i, j in swaps))

    def links(swaps: Any) -> bool:
        joined = {0}
        for _ in range(4):
            joined |= {k for _, i, j in swaps if {i, j} & joined for k in (i, j)}
        return len(joined) == 4

    every = all_swaps(positions)
    assert not any(links(swaps) for swaps in combinations(every, 2))
    best = min(cost(swaps) for swaps in combinations(every, 3) if links(swaps))
    assert cost([swap[:3] for swap in chosen]) == pytest.approx(best)


def test_positions_without_lists_enough_stay_apart() -> None:
    positions = space(0, lists=20.0)
    chosen, groups = link(positions)
    assert not chosen
    assert groups == [[1], [2], [3], [4]]


def variance(positions: Positions, swaps: list[Swap]) -> float:
    """Σ var(p), from the whole information."""
    shown = positions.shown
    for swap in swaps:
        shown = swapped(positions, shown, swap)
    left = covariance(positions.information(shown), positions.reference)
    return float(overall_error(left, positions.examination)) ** 2 * (len(positions.examination) - 1)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("least", [0.0, 0.001])
def test_the_best_step_by_brute_force(seed: int, least: float) -> None:
    positions = space(seed)
    linking, _ = link(positions)
    shown, used = positions.shown, np.zeros(3)
    for swap in linking:
        shown = swapped(positions, shown, swap)
        used[swap.context] += swap.probability
    found = positions.information(shown)
    step = _best_step(positions, shown, found, covariance(found, 0), used, (1.0, least))
    before = variance(positions, linking)

    def ratio(swap: Swap) -> float:
        price = max(least, swap.probability * positions.cost[swap[:3]])
        return float((before - variance(positions, [*linking, swap])) / price)

    possible = [Swap(*swap, step) for swap in all_swaps(positions) for step in STEPS if used[swap[0]] + step <= 0.5]
    assert step is not None
    assert ratio(step) == pytest.approx(max(map(ratio, possible)))


@pytest.mark.parametrize("seed", range(6))
def test_swaps_by_brute_force(seed: int) -> None:
    """Of all designs of the same cost with up to three swaps besides the links, at any of the probabilities.

    The greedy search may miss the best one: its variance is at most 10 % above, where it may have more swaps.
    """
    positions = space(seed, contexts=2, length=3)
    linking, _ = link(positions)
    money = sum(swap.probability * positions.cost[swap[:3]] for swap in linking) + 0.002
    chosen, error = sharpen(positions, linking, 0.0, money)
    assert sum(swap.probability * positions.cost[swap[:3]] for swap in chosen) <= money + 1e-9
    assert error == pytest.approx(np.sqrt(variance(positions, chosen) / 2), rel=1e-4)
    best = np.inf
    for swaps in combinations(all_swaps(positions), 3):
        for shares in product((0.0, *STEPS), repeat=3):
            design = [*linking, *(Swap(*one, share) for one, share in zip(swaps, shares, strict=True))]
            used = np.bincount([swap.context for swap in design], [swap.probability for swap in design], minlength=2)
            price = sum(swap.probability * positions.cost[swap[:3]] for swap in design)
            if price <= money and used.max() <= 0.5:
                best = min(best, variance(positions, design))
    assert variance(positions, chosen) <= 1.1 * best


def test_it_stops_at_the_target() -> None:
    positions = space(1)
    linking, _ = link(positions)
    start = np.sqrt(variance(positions, linking) / 3)
    few, error = sharpen(positions, linking, 0.8 * start, 1.0)
    more, _ = sharpen(positions, linking, 0.0, 1.0)
    assert error <= 0.8 * start
    assert sum(swap.probability for swap in few) < sum(swap.probability for swap in more)
    assert len(more) <= MOST_SWAPS + len(linking)
