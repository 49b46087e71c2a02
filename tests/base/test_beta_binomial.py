"""The prior of greatest beta-binomial likelihood, against scipy's optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import betaln

from prudent.base.arrays import FloatArray
from prudent.base.numerics.beta_binomial import LOG_STRENGTH, fit_beta


def log_likelihood(alpha: float, beta: float, positive: FloatArray, negative: FloatArray) -> float:
    """Σ log B(α + n₊, β + n₋)/B(α, β)."""
    return float(np.sum(betaln(alpha + positive, beta + negative) - betaln(alpha, beta)))


def by_scipy(positive: FloatArray, negative: FloatArray) -> tuple[float, float]:
    """In log α and log β, from several starts: the likelihood is not concave."""
    best = min(
        (
            minimize(
                lambda at: -log_likelihood(float(np.exp(at[0])), float(np.exp(at[1])), positive, negative),
                np.log(start),
                method="Nelder-Mead",
                options={"xatol": 1e-6, "fatol": 1e-8, "maxiter": 10_000},
            )
            for start in ((1.0, 10.0), (5.0, 5.0))
        ),
        key=lambda actual: actual.fun,
    )
    alpha, beta = np.exp(best.x)
    return float(alpha), float(beta)


@pytest.mark.parametrize(("alpha", "beta", "pairs"), [(1, 8, 600), (1.2, 5, 300), (0.3, 20, 600), (6, 2, 300)])
@pytest.mark.parametrize("whole", [True, False], ids=["whole counts", "expected examinations"])
def test_fit_beta_equals_scipy(alpha: float, beta: float, pairs: int, whole: bool) -> None:
    rng = np.random.default_rng(pairs + int(whole))
    n = rng.geometric(0.05, pairs) - 1  # some are never examined
    positive = rng.binomial(n, rng.beta(alpha, beta, pairs)).astype(float)
    negative = (n - positive) * (1.0 if whole else rng.random(pairs))
    assert fit_beta(positive, negative) == pytest.approx(by_scipy(positive, negative), rel=1e-3)


def test_fit_beta_recovers_the_prior() -> None:
    """20,000 pairs of 30 examinations: the mean has a standard error of .0008, the strength one of about .2."""
    rng = np.random.default_rng(5)
    positive = rng.binomial(30, rng.beta(1, 8, 20_000)).astype(float)
    alpha, beta = fit_beta(positive, 30 - positive)
    assert alpha / (alpha + beta) == pytest.approx(1 / 9, abs=0.0032)
    assert alpha + beta == pytest.approx(9, abs=0.8)


@pytest.mark.parametrize(
    ("positive", "negative"),
    [([], []), ([0, 0], [0, 0]), ([0, 0], [5, 9]), ([4, 2], [0, 0]), ([1], [0]), ([2, 0], [0, 2])],
)
def test_fit_beta_is_a_prior_whatever_was_counted(positive: list[float], negative: list[float]) -> None:
    """Also where the likelihood has no maximum: the strength stays within its limits."""
    alpha, beta = fit_beta(np.array(positive, float), np.array(negative, float))
    assert alpha > 0
    assert beta > 0
    assert np.exp(LOG_STRENGTH[0]) - 1e-9 <= alpha + beta <= np.exp(LOG_STRENGTH[1]) + 1e-9
