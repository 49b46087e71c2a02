"""Features as a signal of the prior: cross-fitted, shrunk where they say nothing, refused where they know clicks."""

from dataclasses import replace

import numpy as np
import pytest

from prudent.base.arrays import FloatArray, IntArray
from prudent.bounds import parse
from prudent.bounds.feature_models import feature_models
from prudent.bounds.features import ALL, SIGNAL, CrossFitted, cross_fit, knows_clicks, target_of
from prudent.click_models.evidence import Evidence
from prudent.counts.feature_columns import Categorical, Feature, Numeric
from prudent.counts.groups import Signals
from tests.bounds.small import evidence

FOLDS = 5
RIDGE = feature_models.parse("ridge")


def logged(
    tells: float, seed: int, contexts: int = 500, strength: float = 0
) -> tuple[Evidence, list[Feature], IntArray, FloatArray]:
    """Ten items of each context, most of which were shown up to three times; the fold of each pair, and θ."""
    rng = np.random.default_rng(seed)
    pairs = 10 * contexts
    context = np.repeat(np.arange(contexts), 10)
    price, kind = rng.lognormal(1, 1, pairs), rng.integers(0, 6, pairs)
    effect = np.log(price) - 1 + rng.standard_normal(6)[kind]
    theta = 1 / (1 + np.exp(1.5 - tells * effect - 0.5 * rng.standard_normal(pairs) * (not strength)))
    if strength:  # the family of the fitted prior
        size = strength / np.sqrt(theta)
        theta = rng.beta(theta * size, (1 - theta) * size)
    shown = np.minimum(rng.geometric(0.5, pairs), 20)
    positive = rng.binomial(shown, theta)
    features: list[Feature] = [Numeric("price", price), Categorical("kind", kind, tuple("abcdef"))]
    return (
        evidence(positive, shown - positive, context, shown),
        features,
        rng.integers(0, FOLDS, contexts)[context],
        theta,
    )


def fitted(some: Evidence, features: list[Feature], fold: IntArray) -> CrossFitted:
    prior = parse("anchored").learn(some, len(some.context)).ungrouped
    assert prior is not None
    found = cross_fit(RIDGE, features, target_of(some, prior.of(some), fold), FOLDS)
    assert found is not None
    return found


def with_signal(some: Evidence, features: list[Feature], fold: IntArray) -> Evidence:
    signal = fitted(some, features, fold).signal(features, fold)
    return replace(some, signals=Signals((SIGNAL,), signal[:, None]))


def mean_after(some: Evidence) -> FloatArray:
    prior = parse("anchored").learn(some, len(some.context)).ungrouped
    assert prior is not None
    alpha, beta, _ = prior.of(some)
    return np.asarray(alpha / (alpha + beta))


def test_the_target_equals_plain_loops() -> None:
    some, _, fold, _ = logged(0.5, seed=1, contexts=20)
    prior = parse("anchored").learn(some, len(some.context)).ungrouped
    assert prior is not None
    after = prior.of(some)
    alpha, beta = (np.broadcast_to(np.asarray(one), fold.shape) for one in (after.alpha, after.beta))
    target = target_of(some, prior.of(some), fold)
    for row in range(len(fold)):
        strength, n = alpha[row] + beta[row], some.examined[row]
        weight = (strength + 1) / (strength + max(n, 1))
        assert target.clicks[row] == pytest.approx(weight * some.positive[row])
        assert target.examined[row] == pytest.approx(weight * n)
        assert 1 / (1 + np.exp(-target.offset[row])) == pytest.approx(alpha[row] / strength)


def test_no_pair_sees_a_model_of_the_clicks_of_its_own_context() -> None:
    """Whatever is clicked in the contexts of a fold, its pairs have the same signals."""
    some, features, fold, _ = logged(0.5, seed=2)
    prior = parse("anchored").learn(some, len(some.context)).ungrouped
    assert prior is not None
    target = target_of(some, prior.of(some), fold)
    own = fold == 3
    other = target._replace(clicks=np.where(own, target.examined - target.clicks, target.clicks))
    before, after = (cross_fit(RIDGE, features, one, FOLDS) for one in (target, other))
    assert before is not None
    assert after is not None
    np.testing.assert_array_equal(before.signal(features, fold)[own], after.signal(features, fold)[own])
    assert np.abs(before.signal(features, fold) - after.signal(features, fold))[~own].max() > 0.1
    new = np.full(len(fold), ALL)
    assert np.abs(before.signal(features, new) - after.signal(features, new)).max() > 0.1


def test_signals_are_around_0() -> None:
    """So that 0 says nothing: what is not known is neither good nor bad."""
    some, features, fold, _ = logged(0.7, seed=3)
    signal = fitted(some, features, fold).signal(features, fold)
    assert abs(signal.mean()) < 0.05
    assert 0.3 < np.mean(signal > 0) < 0.7


def test_features_that_tell_are_followed_and_the_rest_is_paid_for_in_strength() -> None:
    """Slope about 1; θ given features spreads by 0.5 in logit instead of about 0.9."""
    some, features, fold, theta = logged(0.5, seed=4)
    known = with_signal(some, features, fold)
    scores, alone = parse("anchored").score(known), parse("anchored").score(some)
    term = scores.fitted["by_group"][SIGNAL]
    assert 0.85 < term["slope"] < 1.15
    assert term["shrinkage"] > 0.95
    assert scores.fitted["strength"] > 1.5 * alone.fitted["strength"]
    assert np.mean((scores.mean - theta) ** 2) < 0.75 * np.mean((alone.mean - theta) ** 2)


@pytest.mark.parametrize("delta", [0.2, 0.5])
def test_the_bound_stays_a_quantile_of_the_posterior(delta: float) -> None:
    """θ is below L in δ/2 of 5,000 pairs: 4 standard errors of that are .017 and .024."""
    some, features, fold, theta = logged(0.5, seed=5, strength=6.0)
    scores = parse(f"anchored(delta={delta})").score(with_signal(some, features, fold))
    assert np.mean(theta < scores.lower) == pytest.approx(delta / 2, abs=0.025)


@pytest.mark.parametrize("seed", range(6))
def test_features_that_say_nothing_change_nothing(seed: int) -> None:
    """Slopes above 0 are kept from two standard errors on, in 2 % of worlds without a difference: here in none of 6."""
    some, features, fold, _ = logged(0.0, seed=10 + seed)
    grouped, alone = parse("anchored").score(with_signal(some, features, fold)), parse("anchored").score(some)
    assert grouped.fitted["by_group"][SIGNAL]["slope"] == 0
    np.testing.assert_array_equal(grouped.lower, alone.lower)
    np.testing.assert_array_equal(grouped.mean, alone.mean)


@pytest.mark.parametrize("tells", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_what_was_known_before_is_no_leak(seed: int, tells: float) -> None:
    some, features, fold, _ = logged(tells, seed=20 + seed)
    known = with_signal(some, features, fold)
    assert not knows_clicks(known, mean_after(known))


def test_the_attraction_itself_is_no_leak() -> None:
    """The best feature that there can be."""
    some, features, fold, theta = logged(0.5, seed=30)
    known = with_signal(some, [*features, Numeric("logit", np.log(theta / (1 - theta)))], fold)
    assert not knows_clicks(known, mean_after(known))


@pytest.mark.parametrize("leak", ["number", "rate", "whether", "first"])
def test_a_feature_that_was_made_from_the_clicks_is_found(leak: str) -> None:
    some, features, fold, _ = logged(0.5, seed=31)
    first = np.random.default_rng(1).random(len(fold)) < some.positive / np.maximum(some.examined, 1)
    made = {
        "number": some.positive,
        "rate": some.positive / some.examined,
        "whether": some.positive > 0,
        "first": first,  # in the first of its lists
    }[leak]
    known = with_signal(some, [*features, Numeric("clicks", np.asarray(made, float))], fold)
    assert knows_clicks(known, mean_after(known))


def test_weights_of_days_are_no_leak() -> None:
    """Where impressions are not whole, nothing is said."""
    some, features, fold, _ = logged(0.5, seed=32)
    known = with_signal(some, [*features, Numeric("clicks", some.positive)], fold)
    assert not knows_clicks(replace(known, impressions=known.impressions * 0.5), mean_after(known))


def test_too_few_clicks_are_not_learned_from() -> None:
    some, features, fold, _ = logged(0.5, seed=33, contexts=8)
    prior = parse("anchored").learn(some, len(some.context)).ungrouped
    assert prior is not None
    assert cross_fit(RIDGE, features, target_of(some, prior.of(some), fold), FOLDS) is None
