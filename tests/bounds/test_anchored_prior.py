"""The prior of `anchored`: its covariates by plain loops, and that it finds how attraction falls with context size."""

from dataclasses import replace
from math import exp, log1p

import numpy as np
import pytest

from prudent.bounds.anchored import Anchored, LearnedAnchored, fit_anchored_prior
from prudent.bounds.quantiles import TABLE_FROM
from prudent.click_models.evidence import Evidence
from tests.bounds.small import evidence


def logged(by_size: float, contexts: int, *, alike: bool = False, items: int = 20) -> Evidence:
    """Contexts of 20 to 20,000 impressions an item, or all of about 200; attraction follows exposure and size."""
    rng = np.random.default_rng(5)
    context = np.repeat(np.arange(contexts), items)
    usual = np.full(contexts, 200.0) if alike else np.exp(rng.uniform(3, 10, contexts))
    shown = np.rint(usual[context] * np.tile(np.exp(np.linspace(-1, 1, items)), contexts)).astype(int)
    x = np.log1p(shown) - (np.bincount(context, np.log1p(shown)) / items)[context]
    size = np.log1p(np.bincount(context, shown))[context]
    mean = 1 / (1 + np.exp(1 - 0.5 * x - by_size * (size - size.mean())))
    strength = 8 / np.sqrt(mean)
    positive = rng.binomial(shown, rng.beta(mean * strength, (1 - mean) * strength))
    return evidence(positive, shown - positive, context, shown)


@pytest.mark.parametrize("by_size", [-0.25, 0.25])
def test_finds_how_attraction_depends_on_the_size_of_a_context(by_size: float) -> None:
    """1,200 items with a standard deviation of θ of .15: the slope has a standard error of about .02."""
    some = logged(by_size, contexts=60)
    prior = fit_anchored_prior(some)
    assert prior.curve.by_size == pytest.approx(by_size, abs=0.08)
    assert prior.curve.dimension == 3
    alpha, beta, _ = prior.of(some)
    for row in range(0, len(some.context), 97):
        same = [float(some.impressions[i]) for i in range(len(some.context)) if some.context[i] == some.context[row]]
        x = log1p(some.hazard[row]) - sum(map(log1p, same)) / len(same)
        z = (x, max(0.0, x - prior.curve.knot) ** 2 / 4, log1p(sum(same)))
        slopes = (*prior.curve.slopes, prior.curve.by_size)
        mean = 1 / (1 + exp(-prior.curve.intercept - sum(b * one for b, one in zip(slopes, z, strict=True))))
        assert np.broadcast_to(alpha, some.context.shape)[row] == pytest.approx(
            mean * prior.curve.strength / mean**0.5, rel=1e-9
        )
        assert np.broadcast_to(beta, some.context.shape)[row] == pytest.approx(
            (1 - mean) * prior.curve.strength / mean**0.5, rel=1e-9
        )


@pytest.mark.parametrize(("contexts", "alike"), [(60, True), (19, False)])
def test_few_contexts_or_contexts_alike_have_no_such_slope(contexts: int, alike: bool) -> None:
    curve = fit_anchored_prior(logged(0, contexts, alike=alike)).curve
    assert (curve.by_size, curve.dimension) == (0, 2)


@pytest.mark.parametrize("opposed", [False, True])
def test_scores_of_lists_are_those_of_all_pairs(opposed: bool) -> None:
    """Bit for bit, and as far as a list may take them; most pairs are neither in one nor may pass those in it."""
    seen = logged(0.3, 40)
    learned = Anchored().learn(seen, pairs=TABLE_FROM)
    assert isinstance(learned, LearnedAnchored)
    learned = replace(learned, prior=replace(learned.prior, opposed=opposed))
    incumbent = np.arange(len(seen.context)) % 20 < 4
    every, some = learned.score(seen), learned.score_lists(seen, incumbent)
    assert every.anchor is not None
    assert some.anchor is not None
    assert np.array_equal(some.anchor.leads, every.anchor.leads)
    known = ~np.isnan(some.lower)
    assert np.array_equal(known, incumbent | every.anchor.leads)
    assert known.all() == opposed
    rows = np.flatnonzero(known)
    for one, other in (
        (some.lower[rows], every.lower[rows]),
        (some.mean[rows], every.mean[rows]),
        (some.anchor.stay(rows), every.anchor.stay(rows)),
    ):
        assert np.array_equal(one, other)
    for name in ("upper", "deviation"):
        assert np.array_equal(getattr(some, name)(rows), getattr(every, name)(rows))


def test_a_context_without_impressions_is_taken_for_one_that_production_showed_once() -> None:
    """Its items have the mean x of examined ones, by plain loops, and its size is that of one full list."""
    some = logged(-0.25, contexts=60)
    prior = fit_anchored_prior(some)
    weighted = weights = 0.0
    for row in range(len(some.context)):
        same = [float(some.hazard[i]) for i in range(len(some.context)) if some.context[i] == some.context[row]]
        n = float(some.examined[row])
        weighted += n / (n + 10) * (log1p(some.hazard[row]) - sum(map(log1p, same)) / len(same))
        weights += n / (n + 10)
    assert prior.usual == pytest.approx(weighted / weights, rel=1e-9)
    assert prior.usual > 0.01, "examined more, since production prefers them"
    alpha, beta, _ = prior.of(evidence([0, 0, 0], [0, 0, 0], [0, 0, 1]))
    usual = prior.curve.curve([prior.usual], log1p(some.fitted.positions))
    np.testing.assert_allclose(alpha / (alpha + beta), np.repeat(1 / (1 + np.exp(-usual)), 3), rtol=1e-12)


def fitted_numbers(evidence: Evidence) -> list[float]:
    curve = fit_anchored_prior(evidence, shrunk=False).curve
    return [curve.intercept, *curve.slopes, curve.by_size, float(np.log(curve.strength))]


def test_errors_are_those_of_fits_to_other_logs() -> None:
    """Standard deviations of 60 fits have an error of 9 %: .3 is 3 of them."""
    some = logged(0.25, contexts=60)
    prior = fit_anchored_prior(some, shrunk=False)
    assert prior.curve.shrinkage == 1
    assert fit_anchored_prior(some).curve.errors == ()
    assert "errors" not in prior.fitted
    alpha, beta, _ = prior.of(some)
    rng = np.random.default_rng(1)
    fits = []
    for _ in range(60):
        positive = rng.binomial(some.examined.astype(int), rng.beta(alpha, beta)).astype(float)
        fits.append(fitted_numbers(replace(some, positive=positive, negative=some.examined - positive)))
    expected = np.sqrt(np.sum(np.array(prior.curve.errors) ** 2, axis=0))
    assert np.std(fits, axis=0, ddof=1) == pytest.approx(expected, rel=0.3)


def test_errors_that_pairs_share() -> None:
    """The logit of the mean moves as that of the prior without examinations, and next to not at all with 10⁵."""
    some = logged(0.25, contexts=30)
    learned = Anchored(0.05, slopes="fitted").learn(some, len(some.context))
    assert isinstance(learned, LearnedAnchored)
    n = np.where(np.arange(len(some.context)) % 2, 0.0, 1e5)
    scores = learned.score(replace(some, positive=n / 4, negative=3 * n / 4))
    assert scores.shared is not None
    rows = np.array([0, 1, 2, 3, 11])
    shared = scores.shared(rows)
    curve = learned.prior.curve
    assert shared.shape == (5, len(curve.errors))
    for row, moves in zip(rows.tolist(), shared, strict=True):
        impressions = some.impressions[some.context == some.context[row]]
        x = log1p(some.hazard[row]) - np.mean(np.log1p(impressions))
        z = (1, x, max(0.0, x - curve.knot) ** 2 / 4, log1p(impressions.sum()), 0)
        if row % 2:
            assert moves == pytest.approx(
                [sum(e * one for e, one in zip(error, z, strict=True)) for error in curve.errors]
            )
        else:
            assert np.abs(moves).max() < 1e-3
    assert Anchored(0.05).score(some).shared is None
