import math
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from prudent.base.arrays import FloatArray
from prudent.base.errors import UsageError
from prudent.click_models import click_models
from prudent.click_models.evidence import Evidence
from prudent.research import theory

counts = st.integers(0, 10**6) | st.floats(1e-9, 1e6)
deltas = st.floats(1e-6, 1)


def width(n: float, delta: float, pairs: int) -> float:
    return math.sqrt(math.log(2 * pairs / delta) / (2 * n)) if n > 0 else math.inf


def evidence(examined: list[list[float]]) -> Evidence:
    """One list of examinations per context."""
    n = np.array([x for row in examined for x in row], dtype=float)
    context = np.repeat(np.arange(len(examined)), [len(row) for row in examined])
    fitted = click_models.parse("cm").typical(4)
    return Evidence(context, np.arange(n.size), 0 * n, n, np.ceil(n), fitted, n, n, n, n)


@given(lists=st.lists(st.tuples(counts, counts, counts), min_size=1), delta=deltas, pairs=st.integers(1, 10**6))
def test_widths_agree_with_the_formulas(lists: list[tuple[float, float, float]], delta: float, pairs: int) -> None:
    items = theory.item_width(lists, delta)
    of_lists, errors = theory.list_width(lists, delta, pairs), theory.error_bound(lists, delta, pairs)
    for i, one in enumerate(lists):
        assert list(items[i]) == pytest.approx([width(n, delta, 1) for n in one], rel=1e-9)
        assert of_lists[i] == pytest.approx(sum(width(n, delta, pairs) for n in one), rel=1e-9)
        assert errors[i] == pytest.approx(2 * sum(width(n, delta, pairs) for n in one), rel=1e-9)


@given(
    examined=st.lists(st.lists(counts, min_size=1, max_size=5), min_size=1, max_size=4),
    length=st.integers(1, 4),
    delta=deltas,
)
def test_the_worst_case_is_the_widest_of_all_lists(examined: list[list[float]], length: int, delta: float) -> None:
    pairs = sum(map(len, examined))
    worst = theory.worst_error_bound(evidence(examined), length, delta)
    for context, row in enumerate(examined):
        widest = max(2 * sum(width(n, delta, pairs) for n in one) for one in combinations(row, min(length, len(row))))
        assert worst[context] == pytest.approx(widest, rel=1e-9)


@pytest.mark.parametrize("n", [1, 10, 100, 1000])
@pytest.mark.parametrize("delta", [0.05, 0.5, 1])
def test_lemma_1_holds_at_every_attraction(n: int, delta: float) -> None:
    """By exact binomial sums, so without tolerance but for their rounding."""
    clicks = np.arange(n + 1)
    for theta in np.linspace(0, 1, 51):
        missed = np.abs(clicks / n - theta) > theory.item_width(n, delta)
        assert binom.pmf(clicks[missed], n, theta).sum() <= delta + 1e-12


def test_lemma_1_as_printed_does_not_hold() -> None:
    """One examination at θ = 1/2 is off by 1/2, always; the printed width of δ = .7 is less than that."""
    assert math.sqrt(math.log(1 / 0.7) / 2) < 1 / 2 <= theory.item_width(1, 0.7)


@pytest.mark.parametrize("rule", ["theorem", "algorithm 1"])
def test_the_theorem_holds_for_all_contexts_at_once(rule: str) -> None:
    """In at least 1 − δ = .8 of 300 logs; Hoeffding is loose, so in fact in nearly all. Cascade model, K = 2."""
    rng = np.random.default_rng(0)
    contexts, items, delta = 2, 5, 0.2
    pairs = contexts * items
    lists = np.array(list(permutations(range(items), 2)))

    def value(attraction: FloatArray) -> FloatArray:
        return np.asarray(1 - np.prod(1 - attraction[lists], axis=1))

    held = 0
    for _ in range(300):
        theta = rng.beta(1, 3, (contexts, items))
        examined = rng.integers(1, 400, (contexts, items))
        estimate = rng.binomial(examined, theta) / examined
        good = True
        for x in range(contexts):
            if rule == "theorem":
                score = value(estimate[x]) - theory.list_width(examined[x][lists], delta, pairs)
            else:
                width_of_items = theory.list_width(examined[x][:, None], delta, pairs)
                score = value(np.maximum(0, estimate[x] - width_of_items))
            truth = value(theta[x])
            bound = theory.error_bound(examined[x][lists[np.argmax(truth)]], delta, pairs)
            good &= bool(truth.max() - truth[np.argmax(score)] <= bound)
        held += good
    assert held / 300 >= 0.8


def test_near_optimal_logging_gains_the_square_root() -> None:
    """Sec. 7: with n_X/K instead of n_X/|𝓔| examinations the bound falls by √(|𝓔|/K), not by |𝓔|/K."""
    items, length, lists = 50, 4, 10_000
    uniform = theory.error_bound([lists / items] * length, 0.1, items)
    optimal = theory.error_bound([lists / length] * length, 0.1, items)
    assert uniform / optimal == pytest.approx(math.sqrt(items / length))


def test_refuses_what_is_no_level_and_no_list() -> None:
    with pytest.raises(UsageError, match="delta is 0"):
        theory.item_width([1], 0)
    with pytest.raises(UsageError, match="pairs is 0"):
        theory.list_width([1], 0.1, 0)
    with pytest.raises(UsageError, match="length is 0"):
        theory.worst_error_bound(evidence([[1]]), 0, 0.1)
