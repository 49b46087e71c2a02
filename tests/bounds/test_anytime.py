"""The bound that holds at all times, against plain integration and over 60 looks."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent.bounds import Anytime, ClopperPearson
from tests.bounds.small import evidence, pbm_evidence


def plain(clicks: int, chances: list[float], alpha: float, beta: float, delta: float) -> tuple[float, float]:
    """The first and the last θ of a fine grid with ∫ lik π / lik(θ) ≤ 1/δ; the chances are those of skips."""
    thetas = [(k + 0.5) / 8_000 for k in range(8_000)]
    logs = [clicks * log(t) + sum(log(1 - p * t) for p in chances) for t in thetas]
    prior = [t ** (alpha - 1) * (1 - t) ** (beta - 1) for t in thetas]
    top = max(logs)
    mean = sum(exp(one - top) * weight for one, weight in zip(logs, prior, strict=True)) / sum(prior)
    inside = [t for t, one in zip(thetas, logs, strict=True) if mean / exp(one - top) <= 1 / delta]
    return inside[0], inside[-1]


@settings(max_examples=30, deadline=None)
@given(
    clicks=st.integers(0, 6),
    skips=st.lists(st.sampled_from([0.05, 0.3, 0.6, 1.0]), max_size=14),
    prior=st.sampled_from([(1.0, 1.0), (1.0, 8.0), (2.0, 4.0)]),
    delta=st.sampled_from([0.05, 0.2, 0.5]),
)
def test_equals_a_plain_integration(clicks: int, skips: list[float], prior: tuple[float, float], delta: float) -> None:
    p = [1.0] * clicks + skips
    if not p:
        return
    scores = Anytime(delta, *prior).score(pbm_evidence([[1] * clicks + [0] * len(skips)], p))
    low, high = plain(clicks, skips, *prior, delta)
    assert scores.lower[0] == pytest.approx(low if clicks else 0, abs=2e-3)
    assert scores.upper is not None
    assert scores.upper(np.array([0]))[0] == pytest.approx(high, abs=2e-3)


def test_certain_examinations_and_those_of_probability_1_are_the_same() -> None:
    certain = Anytime(0.1).lower(evidence([3], [9]))
    np.testing.assert_allclose(Anytime(0.1).lower(pbm_evidence([[1] * 3 + [0] * 9], [1.0] * 12)), certain, rtol=1e-9)


def test_holds_over_sixty_looks() -> None:
    """4,000 items, looked at after each of 60 days of 20 examinations, at δ = .1.

    A fixed-n bound is above the truth on some day for a third of them; this one for at most a tenth, and four standard
    errors are 1.9 points.
    """
    rng = np.random.default_rng(2)
    theta = rng.beta(1, 8, 4_000)
    clicks = np.cumsum(rng.binomial(20, theta, (60, 4_000)), axis=0)
    shown = 20.0 * np.arange(1, 61)[:, None]

    def ever_above(bound: Anytime | ClopperPearson) -> float:
        days = (bound.lower(evidence(y, n - y)) > theta for y, n in zip(clicks, shown, strict=True))
        return float(np.mean(np.any(list(days), axis=0)))

    assert ever_above(ClopperPearson(0.1)) > 0.25
    assert ever_above(Anytime(0.1, 1.0, 8.0)) < 0.1
    assert ever_above(Anytime(0.1, 5.0, 5.0)) < 0.1, "a wrong prior makes it wider, not wrong"


def test_holds_over_sixty_looks_under_pbm() -> None:
    """The same with impressions at five positions, in each of 60 days one at each."""
    rng = np.random.default_rng(3)
    p = np.array([1, 0.6, 0.4, 0.3, 0.2])
    theta = rng.beta(1.2, 5, 1_000)
    clicked = rng.random((1_000, 60, 5)) < theta[:, None, None] * p
    above = np.zeros(1_000, bool)
    for day in range(1, 61, 4):
        lower = Anytime(0.1).lower(pbm_evidence(clicked[:, :day].reshape(1_000, -1).astype(int), [*np.tile(p, day)]))
        above |= lower > theta
    assert above.mean() < 0.1
