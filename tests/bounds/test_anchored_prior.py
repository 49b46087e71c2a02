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
