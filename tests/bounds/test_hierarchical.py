import json
from math import exp, lgamma, log, log1p, sqrt

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from prudent.bounds import Bayes, Exposure, hierarchical
from prudent.bounds.exposure import centred_exposure
from prudent.bounds.hierarchical import Hierarchical, HierarchicalPrior
from prudent.click_models.evidence import Evidence
from tests.bounds.small import evidence
from tests.bounds.test_exposure import DEGENERATE


def logged(slope: float, spread: float, contexts: int = 12, items: int = 15, seed: int = 0) -> Evidence:
    """Items whose attraction follows exposure and the level of their context."""
    rng = np.random.default_rng(seed)
    context = np.repeat(np.arange(contexts), items)
    impressions = np.floor(np.exp(rng.normal(2.5, 1.2, context.size))).astype(int)
    x = np.log1p(impressions)
    x -= (np.bincount(context, x) / items)[context]
    level = spread * rng.normal(size=contexts)
    mean = 1 / (1 + np.exp(1.5 - slope * x - level[context]))
    strength = 4 / np.sqrt(mean)
    theta = rng.beta(mean * strength, (1 - mean) * strength)
    examined = rng.binomial(impressions, 0.7)
    positive = rng.binomial(examined, theta)
    return evidence(positive, examined - positive, context, impressions)


CASES = {
    "aligned": logged(0.8, 0.5),
    "opposed": logged(-0.8, 0.5, seed=1),
    "uniform": logged(0, 0.5, seed=2),
    "no levels": logged(0.8, 0, seed=3),
    "four contexts": logged(0.8, 0.5, contexts=4, items=40, seed=4),
    "two contexts": logged(0.8, 0.5, contexts=2, items=40, seed=5),
}


def likelihood(some: Evidence, curve: list[float], levels: list[float], log_strength: float) -> float:
    """Of the counts, pair by pair: the model as the docstring states it."""
    total = 0.0
    for c, p, n, eta in zip(some.context, some.positive, some.negative, curve, strict=True):
        mu = 1 / (1 + exp(-eta - levels[c]))
        s = exp(log_strength) / sqrt(mu)
        a, b = mu * s, (1 - mu) * s
        total += lgamma(s) - lgamma(s + p + n) + lgamma(a + p) - lgamma(a) + lgamma(b + n) - lgamma(b)
    return total


def curve_of(fitted: HierarchicalPrior, some: Evidence) -> list[float]:
    shown: dict[int, list[float]] = {}
    for c, n in zip(some.context, some.impressions, strict=True):
        shown.setdefault(c, []).append(log1p(n))
    actual = []
    for c, n in zip(some.context, some.impressions, strict=True):
        x = log1p(n) - sum(shown[c]) / len(shown[c])
        z = (x, max(0.0, x - fitted.knot) ** 2 / 4)
        actual.append(fitted.intercept + sum(b * of for b, of in zip(fitted.slopes, z, strict=False)))
    return actual


@pytest.mark.parametrize("name", CASES)
def test_scores_and_levels_are_those_of_the_model_spelled_out(name: str) -> None:
    """Given the fit, each level is the most likely one, and the prior follows."""
    some = CASES[name]
    prior = Hierarchical().prior(some)
    fitted = HierarchicalPrior(**prior.fitted)
    curve = curve_of(fitted, some)
    contexts = int(some.context.max()) + 1
    levels = [0.0] * contexts
    for c in range(contexts if fitted.spread else 0):
        one = some.context == c
        of = evidence(some.positive[one], some.negative[one])
        here = [eta for eta, mine in zip(curve, one, strict=True) if mine]

        def loss(u: float, of: Evidence = of, here: list[float] = here) -> float:
            return -likelihood(of, here, [u], log(fitted.strength)) + (u / fitted.spread) ** 2 / 2

        levels[c] = float(minimize_scalar(loss, bounds=(-4, 4), method="bounded", options={"xatol": 1e-9}).x)
    scores = Hierarchical(0.5).score(some)
    for i, c in enumerate(some.context):
        mu = 1 / (1 + exp(-curve[i] - levels[c]))
        s = fitted.strength / sqrt(mu)
        one = Bayes(0.5, mu * s, (1 - mu) * s).score(evidence(some.positive[i : i + 1], some.negative[i : i + 1]))
        assert scores.lower[i] == pytest.approx(one.lower[0], abs=1e-5)
        assert scores.mean[i] == pytest.approx(one.mean[0], abs=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_no_optimiser_finds_a_greater_likelihood_at_these_levels(name: str) -> None:
    """Levels and the rest were fitted in turns until levels moved by less than .003."""
    some = CASES[name]
    prior = Hierarchical().prior(some)
    fitted = HierarchicalPrior(**prior.fitted)
    curve = curve_of(fitted, some)
    mu = np.asarray(prior.alpha) / (np.asarray(prior.alpha) + np.asarray(prior.beta))
    level_of = dict(zip(some.context.tolist(), (np.log(mu / (1 - mu)) - curve).tolist(), strict=True))
    levels = [level_of[c] for c in range(len(level_of))]

    def loss(at: np.ndarray) -> float:
        return -likelihood(some, [eta + at[0] for eta in curve], levels, log(fitted.strength) + at[1])

    best = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-7})
    assert best.x == pytest.approx([0, 0], abs=0.03)
    assert loss(np.zeros(2)) <= best.fun + 0.01


@pytest.mark.parametrize("name", ["aligned", "opposed"])
def test_derivatives_are_those_of_finite_differences(name: str) -> None:
    some = CASES[name]
    columns = hierarchical._columns(centred_exposure(some), -0.5, 2)
    model = hierarchical._Widening(some.positive, some.negative, columns)
    at, h = np.array([-1.2, 0.5, -0.1, 1.0]), 1e-5
    terms = model.terms(at)
    steps = h * np.eye(4)
    gradient = [(model.terms(at + e).value - model.terms(at - e).value) / (2 * h) for e in steps]
    hessian = [(model.terms(at + e).gradient - model.terms(at - e).gradient) / (2 * h) for e in steps]
    np.testing.assert_allclose(terms.gradient, gradient, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(terms.hessian, hessian, rtol=1e-5, atol=1e-4)


def test_recovers_a_known_prior() -> None:
    """From 9,000 pairs; levels of 300 contexts tell their spread to .02 or so."""
    some = logged(0.6, 0.5, contexts=300, items=30, seed=6)
    prior = Hierarchical().prior(some)
    assert prior.fitted["slopes"] == pytest.approx([0.6, 0], abs=0.1)
    assert prior.fitted["spread"] == pytest.approx(0.5, abs=0.06)
    assert prior.fitted["strength"] == pytest.approx(4, rel=0.15)
    assert prior.fitted["shrinkage"] > 0.99


def test_an_unseen_item_of_a_poor_context_is_expected_to_be_poor() -> None:
    """`exposure` takes it to be as good as an unseen item of any other context."""
    poor, good = ([2, 1, 3, 0], [98, 99, 97, 0]), ([60, 50, 40, 0], [40, 50, 60, 0])
    positive = [*(poor[0] * 4), *(good[0] * 4)]
    negative = [*(poor[1] * 4), *(good[1] * 4)]
    some = evidence(positive, negative, np.arange(32) // 4, [100, 100, 100, 0] * 8)
    mine, plain = Hierarchical().score(some).mean, Exposure().score(some).mean
    assert mine[3] < 0.5 * mine[-1]
    assert plain[3] == pytest.approx(plain[-1])


@pytest.mark.parametrize("delta", [0.2, 0.5, 1])
def test_covers_on_average_when_the_prior_is_right(delta: float) -> None:
    """θ ≥ L in a share 1 − δ/2: of 9,000 items, give or take .005; .02 leaves room for the fitted prior."""
    rng = np.random.default_rng(0)
    context = np.repeat(np.arange(300), 30)
    impressions = np.floor(np.exp(rng.normal(2.5, 1.2, context.size))).astype(int)
    x = centred_exposure(evidence(impressions, impressions, context, impressions))
    prior = HierarchicalPrior(-1.5, (0.6, 0.2), -1.0, 4)
    mean = 1 / (1 + np.exp(-prior.curve(x) - 0.4 * rng.normal(size=300)[context]))
    strength = 4 / np.sqrt(mean)
    theta = rng.beta(mean * strength, (1 - mean) * strength)
    positive = rng.binomial(impressions, theta)
    lower = Hierarchical(delta).lower(evidence(positive, impressions - positive, context, impressions))
    assert np.mean(theta >= lower) == pytest.approx(1 - delta / 2, abs=0.02)


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_evidence_still_gets_finite_bounds(name: str) -> None:
    scores = Hierarchical().score(DEGENERATE[name])
    assert np.isfinite(scores.lower).all()
    assert np.isfinite(scores.mean).all()
    assert scores.mean.shape == DEGENERATE[name].positive.shape
    json.dumps(scores.fitted, allow_nan=False)
