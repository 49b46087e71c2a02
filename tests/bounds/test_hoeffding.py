import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from prudent.bounds import Hoeffding, Mle
from tests.bounds.small import evidence, pbm_evidence

counts = st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1e6)), max_size=20)


@given(pairs=counts, delta=st.floats(1e-6, 1, exclude_max=True))
def test_agrees_with_eq_7_item_by_item(pairs: list[tuple[int, float]], delta: float) -> None:
    scores = Hoeffding(delta).score(evidence([p for p, _ in pairs], [n for _, n in pairs]))
    for i, (positive, negative) in enumerate(pairs):
        n = positive + negative
        if n == 0:
            assert scores.mean[i] == 0
            assert scores.lower[i] == -math.inf
        else:
            assert scores.mean[i] == pytest.approx(positive / n, abs=1e-9)
            expected = positive / n - math.sqrt(-math.log(delta) / (2 * n))  # log(1/δ) loses all digits near δ = 1
            assert scores.lower[i] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_vanishing_number_of_examinations_is_none() -> None:
    """The width overflows to infinity, without a warning."""
    assert Hoeffding(0.5).lower(evidence([0], [5e-324])).tolist() == [-math.inf]


def test_at_delta_1_is_the_mle_unseen_items_included() -> None:
    some = evidence(positive=[1, 0, 0], negative=[3, 2, 0])
    np.testing.assert_array_equal(Hoeffding(delta=1).lower(some), Mle().lower(some))


def test_is_not_clipped_at_0() -> None:
    """Otherwise one view without a click and ten of them would tie."""
    rare, rarer = Hoeffding().lower(evidence(positive=[0, 0], negative=[10, 1]))
    assert rarer < rare < 0


@pytest.mark.parametrize("n", [1, 2, 5, 20, 100, 500])
@pytest.mark.parametrize("delta", [0.05, 0.2, 0.5])
def test_holds_at_every_attraction(n: int, delta: float) -> None:
    """P(L > θ) ≤ δ, by exact binomial sums: no simulation, no tolerance."""
    clicks = np.arange(n + 1)
    lower = Hoeffding(delta).lower(evidence(clicks, n - clicks))
    for theta in np.linspace(0, 1, 101):
        assert binom.pmf(clicks[lower > theta], n, theta).sum() <= delta


def test_uncertain_examinations_widen_it() -> None:
    """(Σp)²/N in place of Σp: at θ = .9 and p = .1 the latter was above the truth for 9.6 % at δ = .05."""
    p = [0.1] * 40
    clicks = np.arange(41)
    lower = Hoeffding(0.05).lower(pbm_evidence(np.arange(40) < clicks[:, None], p))
    n, trials = 4.0, 4.0**2 / 40
    expected = np.minimum(1, clicks / n) - np.sqrt(np.log(20) / (2 * trials))
    np.testing.assert_allclose(lower, expected)
    assert binom.pmf(clicks[lower > 0.9], 40, 0.1 * 0.9).sum() <= 0.05
    narrow = clicks / n - np.sqrt(np.log(20) / (2 * n))
    assert binom.pmf(clicks[narrow > 0.9], 40, 0.1 * 0.9).sum() > 0.05
