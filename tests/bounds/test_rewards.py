"""Bounds on what an examination earns: against draws of both posteriors, and their coverage of a known truth."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import betaincinv

from prudent.base.arrays import FloatArray
from prudent.base.errors import LogError, UsageError
from prudent.bounds import Bayes, Hoeffding
from prudent.bounds.rewards import MeanReward, Product, RewardBound, fit_mean_reward
from tests.bounds.small import evidence

SHAPES = [(0.5, 20.0), (2.0, 50.0), (20.0, 300.0), (30.0, 20.0)]


@pytest.mark.parametrize(("alpha", "beta"), SHAPES)
@pytest.mark.parametrize("shape", [0.3, 1.0, 4.0, 40.0])
def test_quantiles_of_the_product_are_those_of_draws(alpha: float, beta: float, shape: float) -> None:
    """Below the median within .01, above it within .06 where both are skewed; 200,000 draws have an error of .001."""
    rng = np.random.default_rng(1)
    draws = rng.beta(alpha, beta, 200_000) * rng.gamma(shape, 7 / shape, 200_000)
    rate = alpha / (alpha + beta)
    deviation = np.sqrt(rate * (1 - rate) / (alpha + beta + 1))
    product = Product(*(np.array([one]) for one in (rate, deviation, 7.0, 49 / shape)))
    assert product.deviation[0] == pytest.approx(draws.std(), rel=0.02)
    for level in (0.025, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9, 0.975):
        (quantile,) = product.quantile(np.array([0]), np.array([betaincinv(alpha, beta, level)]), level)
        assert np.mean(draws <= quantile) == pytest.approx(level, abs=0.01 if level < 0.5 else 0.06)


def test_a_certain_mean_leaves_the_bound_of_the_rate() -> None:
    """Where every click earns 3, the bound is three times that on attraction."""
    given = evidence([3, 0, 40], [9, 5, 200])
    given = replace(given, rewards=np.array([[3.0, 9.0, 27.0], [0, 0, 0], [40, 120, 360]]))
    assert given.rewards is not None
    rewards = MeanReward(3.0, 0.0, 0.0, 0.0)
    plain, ours = Bayes().score(given), RewardBound(Bayes(), rewards, "bayes").score(given)
    assert ours.lower == pytest.approx(3 * plain.lower, rel=1e-12)
    assert ours.mean == pytest.approx(3 * plain.mean, rel=1e-12)
    every = np.arange(3)
    assert plain.upper is not None
    assert ours.upper is not None
    assert ours.upper(every) == pytest.approx(3 * plain.upper(every), rel=1e-12)


def earnings(kind: str, clicks: FloatArray, mean: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Clicks, sum and sum of squares of items whose clicks earn so much on average."""
    item = np.repeat(np.arange(len(clicks)), clicks.astype(int))
    if kind == "purchase":
        earned = (rng.random(len(item)) < mean[item]).astype(float)
    else:  # a dwell time: the largest of 1,000 is 40 times the mean
        earned = mean[item] * rng.lognormal(-0.72, 1.2, len(item))
    totals = (np.bincount(item, values, minlength=len(clicks)) for values in (earned, earned**2))
    return np.column_stack([clicks, *totals])


def items(kind: str, seed: int, examined: int) -> tuple[Any, FloatArray]:
    """Evidence on 4,000 items, of which a click earns other amounts, and what an examination of each earns."""
    rng = np.random.default_rng(seed)
    attraction = rng.beta(1.0, 19.0, 4000)  # .05 on average
    mean = rng.gamma(4, 0.02 / 4, 4000) if kind == "purchase" else 30 * rng.lognormal(-0.08, 0.4, 4000)
    n = rng.poisson(examined, 4000)
    clicks = rng.binomial(n, attraction).astype(float)
    found = replace(evidence(clicks, n - clicks), rewards=earnings(kind, clicks, mean, rng))
    return found, attraction * mean


@pytest.mark.parametrize("kind", ["purchase", "dwell"])
@pytest.mark.parametrize("examined", [30, 300])
@pytest.mark.parametrize("delta", [0.2, 0.5])
def test_coverage(kind: str, examined: int, delta: float) -> None:
    """Purchases at 1 in 1,000 examinations, and heavy-tailed dwell times: the share of items above their lower bound.

    The prior of attraction is right. All items of a log share one fitted mean and spread, whose errors move the bounds
    of all of them: as these errors are allowed for, no log of 8 misses its promise by more than .04, and on average
    over logs coverage is above it, the more so the less the log tells about rewards (120 purchases in all at 30
    examinations per item).
    """
    covered = []
    for seed in range(8):
        found, truth = items(kind, seed, examined)
        bound = RewardBound(Bayes(delta, 1.0, 19.0), fit_mean_reward(found.rewards), "bayes")
        covered.append(np.mean(bound.score(found).lower <= truth))
    assert min(covered) >= 1 - delta / 2 - 0.04
    assert 0 <= np.mean(covered) - (1 - delta / 2) <= (0.17 if examined == 30 else 0.05)


def test_the_fit_recovers_the_truth() -> None:
    """Mean and dispersion within a tenth; the standard deviation between items at most half more, and not less."""
    found, _ = items("purchase", 3, 3000)
    fit = fit_mean_reward(found.rewards)
    assert fit.mean == pytest.approx(0.02, rel=0.1)
    assert fit.dispersion == pytest.approx(0.98, rel=0.1)
    assert 0.01 * 0.9 <= np.sqrt(fit.between) <= 0.015
    found, _ = items("dwell", 3, 3000)
    fit = fit_mean_reward(found.rewards)
    assert fit.mean == pytest.approx(30, rel=0.1)
    assert 12.5 * 0.9 <= np.sqrt(fit.between) <= 1.5 * 12.5


def test_items_with_much_evidence_have_their_own_mean() -> None:
    """10,000 clicks that earn 5 each, among items whose clicks earn 1."""
    rng = np.random.default_rng(2)
    clicks = np.full(200, 50.0)
    found = earnings("dwell", clicks, np.ones(200), rng)
    found = np.vstack([found, [10_000, 50_000, 260_000]])
    mean, variance = fit_mean_reward(found).posterior(found)
    assert mean[-1] == pytest.approx(5, rel=0.01)
    assert mean[:-1].mean() == pytest.approx(found[:-1, 1].sum() / clicks.sum(), rel=0.1)
    assert (variance > 0).all()


def test_clicks_that_all_earn_the_same() -> None:
    found = np.array([[3.0, 6.0, 12.0], [1, 2, 4], [0, 0, 0]])
    fit = fit_mean_reward(found)
    mean, variance = fit.posterior(found)
    assert mean == pytest.approx(2)
    assert variance == pytest.approx(0, abs=1e-6)


def test_a_log_that_earns_nothing_and_bounds_without_a_posterior() -> None:
    with pytest.raises(LogError, match="reward above 0"):
        fit_mean_reward(np.array([[3.0, 0, 0]]))
    given = replace(evidence([3], [9]), rewards=np.array([[3.0, 9.0, 27.0]]))
    with pytest.raises(UsageError, match="has no posterior"):
        RewardBound(Hoeffding(), MeanReward(3.0, 1.0, 1.0, 0.1), "hoeffding").score(given)
