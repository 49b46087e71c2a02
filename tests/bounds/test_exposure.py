import json
from collections.abc import Sequence
from dataclasses import asdict
from math import exp, lgamma, log

import numpy as np
import pytest
from scipy.optimize import minimize

from prudent.base.numerics import beta_binomial
from prudent.bounds import Bayes, Exposure, ExposurePrior, exposure
from prudent.click_models.evidence import Evidence
from tests.bounds.small import evidence


def logged(
    slope: float, contexts: int = 8, items: int = 15, seed: int = 0, disagree: float = 0.0, strength: float = 8.0
) -> Evidence:
    """Items whose attraction follows exposure with the given slope, give or take `disagree` in each context."""
    rng = np.random.default_rng(seed)
    context = np.repeat(np.arange(contexts), items)
    impressions = np.floor(np.exp(rng.normal(2.5, 1.2, context.size))).astype(int)
    x = np.log1p(impressions)
    x -= (np.bincount(context, x) / items)[context]
    slopes = (slope + disagree * rng.normal(size=contexts))[context]
    mean = 1 / (1 + np.exp(1.5 - slopes * x))
    theta = rng.beta(mean * strength, (1 - mean) * strength)
    examined = rng.binomial(impressions, 0.7)
    positive = rng.binomial(examined, theta)
    return evidence(positive, examined - positive, context, impressions)


class Slow:
    """The four steps again: loops, `math.lgamma`, scipy's optimisers and finite differences."""

    def __init__(self, some: Evidence) -> None:
        pairs = list(zip(some.context, some.positive, some.negative, some.impressions, strict=True))
        of_context: dict[int, list[float]] = {}
        for context, _, _, shown in pairs:
            of_context.setdefault(context, []).append(log(1 + shown))
        self.x = [log(1 + shown) - sum(of_context[c]) / len(of_context[c]) for c, _, _, shown in pairs]
        self.pairs = [(c, p, n, x) for (c, p, n, _), x in zip(pairs, self.x, strict=True) if p + n > 0]
        self.contexts = sorted({c for c, *_ in self.pairs})
        self.q = 2 if len(self.contexts) >= 5 else 1 if len(self.contexts) >= 3 else 0

    def curve(self, slopes: list[float], x: float) -> float:
        return sum(b * z for b, z in zip(slopes, (x, x * x / 4), strict=False))

    def likelihood(self, parameters: Sequence[float] | np.ndarray, only: int | None = None) -> float:
        b0, *slopes, log_s = (float(p) for p in parameters)
        s, total = exp(log_s), 0.0
        for c, p, n, x in self.pairs:
            if only is None or c == only:
                eta = b0 + self.curve(slopes, x)
                a, b = s / (1 + exp(-eta)), s / (1 + exp(eta))
                total += lgamma(s) - lgamma(s + p + n) + lgamma(a + p) - lgamma(a) + lgamma(b + n) - lgamma(b)
        return total

    def fit(self, slopes: list[float] | None = None) -> np.ndarray:
        """Maximum likelihood of (b₀, b, log s), or of (b₀, log s) with the given slopes."""
        fixed = [] if slopes is None else slopes
        free = self.q if slopes is None else 0

        def loss(p: np.ndarray) -> float:
            return -self.likelihood([p[0], *p[1:-1], *fixed, p[-1]])

        limits = [(-15, 15)] * (1 + free) + [(-2, 7)]
        start = np.array([-1.0, *[0.0] * free, 1.0])
        rough = minimize(loss, start, method="L-BFGS-B", bounds=limits)
        options = {"xatol": 1e-7, "fatol": 1e-10, "maxiter": 4000, "maxfev": 4000}
        best = minimize(loss, rough.x, method="Nelder-Mead", bounds=limits, options=options)
        return np.array([best.x[0], *best.x[1:-1], *fixed, best.x[-1]])

    def wald(self, at: np.ndarray, h: float = 1e-4) -> float:
        k = len(at)
        steps = h * np.eye(k)

        def gradient(of: int) -> np.ndarray:
            return np.array([(self.likelihood(at + e, of) - self.likelihood(at - e, of)) / (2 * h) for e in steps])

        hessian = np.array(
            [
                [
                    self.likelihood(at + e + f)
                    - self.likelihood(at + e - f)
                    - self.likelihood(at - e + f)
                    + self.likelihood(at - e - f)
                    for f in 10 * steps
                ]
                for e in 10 * steps
            ]
        ) / (400 * h * h)
        inverse = np.linalg.inv(-hessian)
        meat = sum(np.outer(g, g) for g in map(gradient, self.contexts))
        b = at[1:-1]
        return min(
            float(b @ np.linalg.inv(covariance[1:-1, 1:-1]) @ b) for covariance in (inverse, inverse @ meat @ inverse)
        )


CASES = {
    "aligned": logged(0.8),
    "opposed": logged(-0.8, seed=1),
    "uniform": logged(0, seed=2),
    "contexts disagree": logged(0.8, seed=3, disagree=0.4),
    "four contexts": logged(0.8, contexts=4, items=25, seed=4),
    "two contexts": logged(0.8, contexts=2, items=40, seed=5),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_a_plain_reading_of_the_four_steps(name: str) -> None:
    """Differences of h = 1e-3 leave the reference's W right to about 1e-5, and its optimum to about 1e-5."""
    some, slow = CASES[name], Slow(CASES[name])
    scores = Exposure().score(some)
    fitted = scores.fitted
    np.testing.assert_allclose(exposure.centred_exposure(some), slow.x, atol=1e-12)
    assert fitted["dimension"] == slow.q
    slopes = []
    if slow.q:
        best = slow.fit()
        wald = slow.wald(best)
        shrinkage = max(0, 1 - 4 * slow.q / wald)
        assert fitted["wald"] == pytest.approx(wald, rel=1e-3)
        assert fitted["shrinkage"] == pytest.approx(shrinkage, abs=1e-3)
        slopes = [float(shrinkage * b) for b in best[1:-1]]
        assert fitted["slopes"] == pytest.approx(slopes, abs=1e-3)
    refitted = slow.fit(slopes)
    assert fitted["intercept"] == pytest.approx(refitted[0], abs=2e-3)
    assert log(fitted["strength"]) == pytest.approx(refitted[-1], abs=2e-3)
    for i, x in enumerate(slow.x):
        mu = 1 / (1 + exp(-fitted["intercept"] - slow.curve(fitted["slopes"], x)))
        a, b = mu * fitted["strength"], (1 - mu) * fitted["strength"]
        one = Bayes(0.5, a, b).score(evidence(some.positive[i : i + 1], some.negative[i : i + 1]))
        assert scores.lower[i] == pytest.approx(one.lower[0], abs=1e-9)
        assert scores.mean[i] == pytest.approx(one.mean[0], abs=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_no_optimiser_finds_a_greater_likelihood(name: str) -> None:
    slow, some = Slow(CASES[name]), CASES[name]
    columns = exposure._columns(np.array(slow.x), slow.q)
    best, terms = beta_binomial.BetaBinomial(some.positive, some.negative, columns).maximum(
        np.array([0.0] * (slow.q + 2))
    )
    assert terms.value == pytest.approx(slow.likelihood(best), rel=1e-9)
    assert slow.likelihood(best) >= slow.likelihood(slow.fit()) - 1e-6


def test_the_cases_reach_every_branch() -> None:
    """Full trust, no trust and some; support limited by the model and by disagreement."""
    shrinkage = {name: Exposure().score(some).fitted["shrinkage"] for name, some in CASES.items()}
    assert shrinkage["aligned"] > 0.8
    assert shrinkage["uniform"] == 0 == shrinkage["two contexts"]
    assert 0 < shrinkage["contexts disagree"] < 0.95


def test_a_maximum_at_the_limits_is_found() -> None:
    """Attraction that never varies wants an infinite strength, one that is 0 or 1 none."""
    same = evidence([20] * 12, [20] * 12, [i // 2 for i in range(12)], list(range(40, 52)))
    assert Exposure().score(same).fitted["strength"] == pytest.approx(exp(7))
    either = evidence([20, 0] * 6, [0, 20] * 6, [i // 2 for i in range(12)], list(range(40, 52)))
    assert Exposure().score(either).fitted["strength"] == pytest.approx(exp(-2))


def test_recovers_a_known_curve() -> None:
    """From 9,000 pairs the slope has a standard error of about .012."""
    fitted = Exposure().score(logged(0.5, contexts=300, items=30, seed=6)).fitted
    assert fitted["slopes"] == pytest.approx([0.5, 0], abs=0.06)
    assert fitted["intercept"] == pytest.approx(-1.5, abs=0.06)
    assert fitted["strength"] == pytest.approx(8, rel=0.1)
    assert fitted["shrinkage"] > 0.99


@pytest.mark.parametrize("delta", [0.2, 0.5, 1])
def test_covers_on_average_when_the_prior_is_right(delta: float) -> None:
    """θ ≥ L in a share 1 − δ/2: of 9,000 items, give or take .005; .02 leaves room for the fitted prior."""
    rng = np.random.default_rng(0)
    context = np.repeat(np.arange(300), 30)
    impressions = np.floor(np.exp(rng.normal(2.5, 1.2, context.size))).astype(int)
    x = exposure.centred_exposure(evidence(impressions, impressions, context, impressions))
    mean = ExposurePrior(-1.5, (0.6, 0.2), 8).mean(x)
    theta = rng.beta(8 * mean, 8 * (1 - mean))
    positive = rng.binomial(impressions, theta)
    lower = Exposure(delta).lower(evidence(positive, impressions - positive, context, impressions))
    assert np.mean(theta >= lower) == pytest.approx(1 - delta / 2, abs=0.02)


DEGENERATE = {
    "nothing at all": evidence([], []),
    "nothing examined": evidence([0] * 12, [0] * 12, np.arange(12) // 2),
    "one pair": evidence([1], [3]),
    "no clicks": evidence([0] * 12, range(12), np.arange(12) // 2),
    "all clicked": evidence(range(12), [0] * 12, np.arange(12) // 2),
    "everything examined once": evidence([1, 0, 0] * 6, [0, 1, 1] * 6, np.arange(18) // 3, np.arange(18)),
    "equal impressions": evidence([1, 2, 3] * 6, [9, 8, 7] * 6, np.arange(18) // 3, [10] * 18),
    "two levels of exposure": evidence([1, 6] * 6, [9, 14] * 6, np.arange(12) // 2, [10, 20] * 6),
    "separated": evidence([0, 9] * 6, [9, 0] * 6, np.arange(12) // 2, [9, 9 * 2] * 5 + [9, 9 * 3]),
    "separated and examined once": evidence([0, 1] * 6, [1, 0] * 6, np.arange(12) // 2, [1, 99] * 5 + [1, 50]),
    "equal contexts": evidence([1, 3, 9] * 6, [9, 17, 30] * 6, np.arange(18) // 3, [10, 20, 39] * 6),
    "huge counts": evidence([1e9, 5e8, 1e7] * 6, [1e9, 5e9, 1e10] * 6, np.arange(18) // 3),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_evidence_still_gets_finite_bounds(name: str) -> None:
    scores = Exposure().score(DEGENERATE[name])
    assert np.isfinite(scores.lower).all()
    assert np.isfinite(scores.mean).all()
    assert scores.mean.shape == scores.lower.shape == DEGENERATE[name].positive.shape
    assert 0 <= scores.fitted["shrinkage"] <= 1
    json.dumps(scores.fitted, allow_nan=False)


@pytest.mark.parametrize(
    "name",
    [
        "nothing examined",
        "one pair",
        "no clicks",
        "all clicked",
        "equal impressions",
        "two levels of exposure",
        "separated and examined once",
    ],
)
def test_without_a_curve_to_fit_the_prior_is_flat(name: str) -> None:
    fitted = Exposure().score(DEGENERATE[name]).fitted
    assert fitted["wald"] is None
    assert fitted["shrinkage"] == 0
    assert not any(fitted["slopes"])


def test_unseen_candidates_centre_the_exposure_and_get_the_prior() -> None:
    """They say nothing about the curve, but an item shown at all is then shown more than average."""
    some = logged(0.8)
    extra = np.arange(8)
    more = evidence(
        np.append(some.positive, 0 * extra),
        np.append(some.negative, 0 * extra),
        np.append(some.context, extra),
        np.append(some.impressions, 0 * extra),
    )
    scores = Exposure().score(more)
    assert scores.fitted["pairs"] == np.count_nonzero(some.examined)
    assert exposure.centred_exposure(more)[0] > exposure.centred_exposure(some)[0]
    prior = ExposurePrior(**scores.fitted)
    np.testing.assert_allclose(scores.mean[-8:], prior.mean(exposure.centred_exposure(more)[-8:]))


def test_the_fitted_prior_survives_json() -> None:
    fitted = Exposure().score(CASES["aligned"]).fitted
    again = ExposurePrior(**json.loads(json.dumps(fitted)))
    low, middle, high = again.mean([-2.0, 0.0, 2.0])
    assert low < middle < high
    assert middle == pytest.approx(1 / (1 + exp(-fitted["intercept"])))
    assert asdict(again)["strength"] == fitted["strength"]


def test_a_sample_has_whole_contexts_and_at_least_five(monkeypatch: pytest.MonkeyPatch) -> None:
    some = logged(0.8, contexts=40)
    everything = Exposure().score(some)
    assert everything.fitted["contexts"] == 40
    monkeypatch.setattr(exposure, "MOST_PAIRS", 200)
    rows = exposure.sample_pairs(some)
    assert 150 < rows.size <= 200
    examined = np.bincount(some.context[some.examined > 0])
    sampled = np.bincount(some.context[rows], minlength=40)
    assert set(sampled[sampled > 0]) <= set(examined)
    np.testing.assert_array_equal(sampled[sampled > 0], examined[sampled > 0])
    sample = Exposure().score(some)
    assert sample.fitted["pairs"] == rows.size
    assert sample.lower.shape == everything.lower.shape
    monkeypatch.setattr(exposure, "MOST_PAIRS", 10)
    assert np.unique(some.context[exposure.sample_pairs(some)]).size == 5


def test_many_rows_start_from_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortcut changes the way, not the maximum."""
    some = logged(0.5, contexts=100, seed=8)
    straight = Exposure().score(some)
    monkeypatch.setattr(beta_binomial, "_CHEAP_ROWS", 200)
    np.testing.assert_allclose(Exposure().score(some).lower, straight.lower, atol=1e-6)


def test_log_gamma_and_its_derivatives_agree_with_scipy() -> None:
    from scipy.special import gammaln, polygamma, psi

    x = np.logspace(-8, 6, 200)
    value, first, second = beta_binomial._log_gamma(x)
    np.testing.assert_allclose(value, gammaln(x), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(first, psi(x), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(second, polygamma(1, x), rtol=1e-12)
