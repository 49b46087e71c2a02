"""The exact bound, against sums over all outcomes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from prudent.bounds import ClopperPearson, Hoeffding
from tests.bounds.small import evidence, pbm_evidence

chances = st.lists(st.floats(0.02, 1), min_size=1, max_size=12)


def probability_of(clicks: int, means: list[float]) -> float:
    """P(S ≥ clicks) of a sum of independent trials, one after the other."""
    of_sum = [1.0]
    for mean in means:
        of_sum = [a * (1 - mean) + b * mean for a, b in zip([*of_sum, 0.0], [0.0, *of_sum], strict=True)]
    return sum(of_sum[clicks:])


def test_by_hand() -> None:
    """5 clicks of 50: .049, where Hoeffding has −.052. Without a click 0, and one of one δ."""
    some = evidence(positive=[5, 0, 1], negative=[45, 9, 0])
    np.testing.assert_allclose(ClopperPearson(0.1).lower(some), [0.0494, 0, 0.1], atol=5e-5)
    assert Hoeffding(0.1).lower(some)[0] == pytest.approx(-0.0517, abs=5e-5)


@pytest.mark.parametrize("n", [1, 2, 5, 20, 100])
@pytest.mark.parametrize("delta", [0.05, 0.2, 0.5])
def test_holds_at_every_attraction_and_is_the_highest_that_does(n: int, delta: float) -> None:
    clicks = np.arange(n + 1)
    lower = ClopperPearson(delta).lower(evidence(clicks, n - clicks))
    for theta in np.linspace(0, 1, 101):
        assert binom.pmf(clicks[lower > theta], n, theta).sum() <= delta + 1e-12
    np.testing.assert_allclose(binom.sf(clicks[1:] - 1, n, lower[1:]), delta)
    assert (lower >= Hoeffding(delta).lower(evidence(clicks, n - clicks)) - 1e-12).all()


@settings(max_examples=200, deadline=None)
@given(p=chances, delta=st.sampled_from([0.02, 0.1, 0.25, 0.5, 0.9]))
def test_uncertain_examinations(p: list[float], delta: float) -> None:
    """At the bound and below, as many clicks have a probability of δ at most, whatever the chances."""
    size = len(p)
    lower = ClopperPearson(delta).lower(pbm_evidence(np.arange(size) < np.arange(size + 1)[:, None], p))
    for clicks, theta in enumerate(lower.tolist()):
        for share in (0.3, 1.0):
            assert not clicks or probability_of(clicks, [share * theta * x for x in p]) <= delta + 1e-9


def test_uncertain_examinations_cost_little() -> None:
    """Ten clicks of 400 impressions with p = ¼: as of 100 examinations, and a little less."""
    clicks = np.arange(400)[None] < 10
    uncertain = ClopperPearson(0.1).lower(pbm_evidence(clicks, [0.25] * 400))
    certain = ClopperPearson(0.1).lower(evidence([10], [90]))
    assert 0.95 * certain < uncertain < certain


def test_the_interval_has_an_upper_end() -> None:
    upper = ClopperPearson(0.1).score(evidence([0, 5, 3], [10, 45, 0])).upper
    assert upper is not None
    np.testing.assert_allclose(upper(np.arange(3)), [1 - 0.1**0.1, binom_upper(5, 50, 0.1), 1], atol=1e-6)


def binom_upper(clicks: int, n: int, delta: float) -> float:
    """The θ at which so few clicks have a probability of δ, by halving."""
    low, high = clicks / n, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if binom.cdf(clicks, n, middle) > delta else (low, middle)
    return low
