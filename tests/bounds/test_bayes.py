import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc, betaincinv

from prudent.base.errors import UsageError
from prudent.bounds import Bayes, bounds
from prudent.bounds.quantiles import TABLE_FROM, beta_quantiles
from tests.bounds.small import evidence

counts = st.lists(st.tuples(st.integers(0, 10**5), st.floats(0, 1e5)), max_size=10)


@given(pairs=counts, delta=st.floats(0.001, 1), alpha=st.floats(0.3, 50), beta=st.floats(0.3, 50))
def test_the_posterior_has_half_of_delta_below_the_bound(
    pairs: list[tuple[int, float]], delta: float, alpha: float, beta: float
) -> None:
    scores = Bayes(delta, alpha, beta).score(evidence([p for p, _ in pairs], [n for _, n in pairs]))
    for i, (positive, negative) in enumerate(pairs):
        below = betainc(alpha + positive, beta + negative, scores.lower[i])
        # Where the bound rounds to a double next to 1 the distribution function jumps over several digits.
        assert below == pytest.approx(delta / 2, abs=1e-9) or 1 - scores.lower[i] < 1e-9
        assert scores.mean[i] == pytest.approx((alpha + positive) / (alpha + positive + beta + negative), abs=1e-9)


def test_known_quantiles() -> None:
    """Beta(1, 1) and Beta(2, 1) have the distribution functions x and x²."""
    unseen, clicked = Bayes(delta=0.2).lower(evidence(positive=[0, 1], negative=[0, 0]))
    assert unseen == pytest.approx(0.1)
    assert clicked == pytest.approx(0.1**0.5)


def test_at_delta_1_is_the_median_not_the_mle() -> None:
    (median,) = Bayes(delta=1).lower(evidence(positive=[1], negative=[0]))
    assert median == pytest.approx(0.5**0.5)


def prior_draws(alpha: float, beta: float, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Attraction and counts as the model has them, for items seen between 0 and 200 times."""
    rng = np.random.default_rng(7)
    theta = rng.beta(alpha, beta, size)
    n = np.minimum(rng.geometric(1 / 30, size) - 1, 200)
    positive = rng.binomial(n, theta)
    return theta, positive, n - positive


@pytest.mark.parametrize("delta", [0.05, 0.2, 1])
@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (1, 8), (0.5, 3)])
def test_covers_on_average_over_the_prior(delta: float, alpha: float, beta: float) -> None:
    """θ ≥ L in a share 1 − δ/2; of 100,000 draws the share has a standard deviation of at most .0016."""
    theta, positive, negative = prior_draws(alpha, beta, 100_000)
    lower = Bayes(delta, alpha, beta).lower(evidence(positive, negative))
    assert np.mean(theta >= lower) == pytest.approx(1 - delta / 2, abs=0.005)


def test_does_not_cover_at_every_attraction() -> None:
    """What the docstring admits: an item that is bad under the prior is overrated."""
    rng = np.random.default_rng(1)
    positive = rng.binomial(5, 0.01, 1000)
    assert np.mean(Bayes(delta=0.2).lower(evidence(positive, 5 - positive)) > 0.01) > 0.9


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (1, 8), (0.5, 3)])
def test_the_truth_falls_anywhere_in_its_posterior(alpha: float, beta: float) -> None:
    """Simulation-based calibration: θ is equally often between any two neighbouring twentieths of its posterior.

    Bounds reach up to the median; with clicks and no-clicks exchanged they cut the other half. Under uniformity
    the statistic has a chi-square distribution with 19 degrees of freedom, above 43.8 once in a thousand seeds.
    """
    theta, positive, negative = prior_draws(alpha, beta, 20_000)
    levels = np.arange(1, 11) / 10  # δ, so quantiles .05 to .5
    low = [Bayes(delta, alpha, beta).lower(evidence(positive, negative)) for delta in levels]
    high = [1 - Bayes(delta, beta, alpha).lower(evidence(negative, positive)) for delta in levels[-2::-1]]
    rank = np.sum(theta > np.array(low + high), axis=0)
    observed, expected = np.bincount(rank, minlength=20), theta.size / 20
    assert observed.size == 20
    assert np.sum((observed - expected) ** 2 / expected) < 43.8


@pytest.mark.parametrize("probability", [0.0025, 0.005, 0.025, 0.1, 0.25, 0.5])
@pytest.mark.parametrize("least", [0.005, 0.03, 0.5])
def test_the_table_for_many_pairs_agrees_with_scipy(probability: float, least: float) -> None:
    """Also where the parameters lie beyond its reach, as some do here."""
    rng = np.random.default_rng(3)
    alpha, beta = np.exp(rng.uniform(np.log(least), np.log(1e6), (2, 20_000)))
    alpha[:2], beta[:2] = [1e-7, 3e9], [3, 5]
    quantile, expected = beta_quantiles(alpha, beta, [probability])[0], betaincinv(alpha, beta, probability)
    np.testing.assert_allclose(quantile, expected, rtol=0, atol=1e-9)
    assert np.mean(quantile != expected) > 0.5, "the table was not used"


def test_the_table_says_the_same_whatever_else_is_asked() -> None:
    rng = np.random.default_rng(4)
    alpha, beta = np.exp(rng.uniform(np.log(0.006), np.log(1e7), (2, 1000)))
    together = beta_quantiles(alpha, beta, [0.25])[0]
    apart = [beta_quantiles(alpha[i : i + 7], beta[i : i + 7], [0.25])[0] for i in range(0, 1000, 7)]
    np.testing.assert_array_equal(together, np.concatenate(apart))


@pytest.mark.parametrize(("alpha", "probability"), [(0.005, 0.1), (0.0505, 1e-12)])
def test_the_table_is_left_alone_where_it_would_be_wrong(alpha: float, probability: float) -> None:
    """Beyond its reach, and where a quantile underflows at its edge."""
    quantile = beta_quantiles(np.full(10, alpha), np.full(10, 2.0), [probability])[0]
    np.testing.assert_array_equal(quantile, betaincinv(alpha, 2.0, probability))


def test_quantiles_come_from_the_table_only_where_many_are_to_be_scored() -> None:
    seen = evidence(positive=[3.0, 0.0], negative=[5.0, 1.0])
    exact, tabulated = (Bayes().learn(seen, pairs).score(seen).lower for pairs in (2, TABLE_FROM))
    np.testing.assert_array_equal(exact, Bayes().lower(seen))
    assert np.any(exact != tabulated)
    np.testing.assert_allclose(exact, tabulated, atol=1e-9)


@pytest.mark.parametrize("text", ["alpha=0", "beta=-1", "alpha=inf", "beta=nan", "alpha=one", "delta=0", "delta=2"])
def test_refuses_what_is_no_prior(text: str) -> None:
    with pytest.raises(UsageError, match="must be a number above 0"):
        bounds.parse(f"bayes({text})")
