"""Posteriors with uncertain skips against a plain integration, and their coverage."""

from itertools import product
from math import exp, inf, log1p

import numpy as np
import pytest
from scipy.special import betaincinv

from prudent.base.numerics.thinned import BENT, Skips, collapse, thinned_quantile, thinned_sample, thinned_scores
from prudent.bounds import Bayes
from prudent.click_models import PositionBased
from prudent.counts.lists import ListBatch

LEVELS = (0.025, 0.1, 0.25, 0.4)
PRIORS = ((0.3, 5.0), (1.0, 1.0), (1.0, 8.0), (2.0, 30.0), (0.05, 2.0))
CHANCES = ((0.05,), (0.5,), (1.0, 0.5, 0.3), (1.0, 0.05), (0.6, 0.1))
Posterior = tuple[float, float, tuple[float, ...], tuple[float, ...]]  # a, b, chances, skips of each


def plain(a: float, b: float, chances: tuple[float, ...], skips: tuple[float, ...]) -> tuple[list[float], float, float]:
    """Quantiles, mean and standard deviation: 4,000 steps in logits, where the density is not negligible."""

    def log_density(u: float) -> float:
        theta = 1 / (1 + exp(-u))
        total = a * -log1p(exp(-u)) + b * (-u - log1p(exp(-u)) if u > -700 else 0.0)
        return total + sum(
            m * (log1p(-p * theta) if p < 1 else -u - log1p(exp(-u))) for p, m in zip(chances, skips, strict=True)
        )

    coarse = [-40 / min(1.0, a) + k * (40 / min(1.0, a) + 40 / min(1.0, b)) / 20_000 for k in range(20_001)]
    coarse = [u for u in coarse if u > -600]
    heights = [log_density(u) for u in coarse]
    top = max(heights)
    near = [u for u, height in zip(coarse, heights, strict=True) if height > top - 40]
    step = (near[-1] - near[0] + 2 * (coarse[1] - coarse[0])) / 4_000
    nodes = [near[0] - (coarse[1] - coarse[0]) + k * step for k in range(4_001)]
    weights = [exp(log_density(u) - top) for u in nodes]
    total = sum(weights)
    theta = [1 / (1 + exp(-u)) for u in nodes]
    mean = sum(w * t for w, t in zip(weights, theta, strict=True)) / total
    variance = sum(w * (t - mean) ** 2 for w, t in zip(weights, theta, strict=True)) / total
    quantiles, below, previous = [], 0.0, -inf
    pending = list(LEVELS)
    for u, w in zip(nodes, weights, strict=True):
        after = below + w / total
        while pending and after - w / total / 2 >= pending[0]:  # half a step below and above a node
            share = (pending[0] - previous) / (after - w / total / 2 - previous)
            quantiles.append(1 / (1 + exp(-(u - step + share * step))))
            pending.pop(0)
        previous = after - w / total / 2
        below = after
    return quantiles, mean, variance**0.5


def posteriors() -> list[Posterior]:
    made: list[Posterior] = []
    for (alpha, beta), chances, n, theta in product(PRIORS, CHANCES, (1, 10, 1_000, 1_000_000), (0.0, 0.1, 0.5)):
        each = n / len(chances)
        clicks = round(sum(each * p * theta for p in chances))
        if clicks or not theta:
            skips = tuple(each - clicks * p / sum(chances) for p in chances)
            if min(skips) >= 0:
                made.append((alpha + clicks, beta, chances, skips))
    return made[::3]


def as_arrays(made: list[Posterior]) -> tuple[np.ndarray, np.ndarray, Skips]:
    rows = [(k, p, m) for k, (_, _, chances, skips) in enumerate(made) for p, m in zip(chances, skips, strict=True)]
    pair, chance, n = (np.array(column) for column in zip(*rows, strict=True))
    return np.array([one[0] for one in made]), np.array([one[1] for one in made]), Skips(pair, chance, n.astype(float))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "chances",
    [(1 - 1e-7,), (1 - 1e-8,), (1 - 1e-8, 1.0), (1e-160, 1 - 1e-8), (1e-12,), (1e-160,), (1e-300,), (1e-300, 0.5)],
)
def test_chances_next_to_0_and_1_are_as_those(chances: tuple[float, ...]) -> None:
    """Derivatives of such skips cancel or underflow."""
    made: list[Posterior] = [
        (a, b, chances, (m,) * len(chances)) for a in (0.5, 5.5, 200.0) for b in (1e-3, 1.0, 1e6) for m in (1.0, 1e6)
    ]
    rounded: list[Posterior] = [(a, b, tuple(round(p, 6) for p in chances), skips) for a, b, _, skips in made]
    found, expected = (collapse(*as_arrays(some)) for some in (made, rounded))
    for one, other in zip(found.shape(), expected.shape(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_quantiles_and_means_are_those_of_a_plain_integration() -> None:
    """Within .02 posterior standard deviations: .01 is ours, and the plain steps have as much."""
    made = posteriors()
    thinned = collapse(*as_arrays(made))
    shape = thinned.shape()
    assert 5 < np.count_nonzero(np.abs(shape.bend) > BENT) < len(made) / 2, "both ways are taken"
    found = np.array([thinned_quantile(thinned, shape, level) for level in LEVELS]).T
    _, means = thinned_scores(thinned, shape, [])
    for one, quantiles, mean in zip(made, found, means, strict=True):
        expected, centre, deviation = plain(*one)
        np.testing.assert_allclose(quantiles, expected, atol=0.02 * deviation, err_msg=str(one))
        assert mean == pytest.approx(centre, abs=0.02 * deviation), one


def test_draws_are_below_a_quantile_as_often_as_it_says() -> None:
    """1,000 draws of each posterior: within .07, which is 4.4 standard errors, on the grid and beside it."""
    made = [one for one in posteriors() for _ in range(1_000)]
    thinned = collapse(*as_arrays(made))
    shape = thinned.shape()
    drawn = thinned_sample(thinned, shape, np.random.default_rng(0))
    for level in (0.1, 0.5, 0.9):
        below = np.mean((drawn <= thinned_quantile(thinned, shape, level)).reshape(-1, 1_000), axis=1)
        np.testing.assert_allclose(below, level, atol=0.07)


def test_certain_skips_are_a_beta_distribution() -> None:
    a, b = np.array([0.3, 2.0, 7.0]), np.array([4.0, 1.0, 9.0])
    thinned = collapse(a, b, Skips(np.array([0, 1, 2]), np.ones(3), np.array([5.0, 0.0, 100.0])))
    shape = thinned.shape()
    assert shape.bend.tolist() == [0, 0, 0]
    expected = betaincinv(a, np.add(b, (5, 0, 100)), 0.1)
    np.testing.assert_allclose(thinned_quantile(thinned, shape, 0.1), expected, rtol=1e-9)


def test_the_shape_of_a_power_is_that_of_the_tempered_density() -> None:
    thinned = collapse(*as_arrays(posteriors()))
    power = np.linspace(0.1, 1, thinned.a.size)
    for direct, scaled in zip(thinned.tempered(power).shape(), thinned.shape().tempered(power), strict=True):
        np.testing.assert_allclose(scaled, direct, rtol=1e-6, atol=1e-9)


def test_no_pair_depends_on_the_others() -> None:
    made = posteriors()
    a, b, skips = as_arrays(made)
    thinned = collapse(a, b, skips)
    together, means = thinned_scores(thinned, thinned.shape(), [0.25, 0.8])
    rows = np.arange(0, len(made), 7)
    alone = collapse(a[rows], b[rows], skips.only(rows, len(made)))
    quantiles, mean = thinned_scores(alone, alone.shape(), [0.25, 0.8])
    for whole, part in zip([*together, means], [*quantiles, mean], strict=True):
        assert np.array_equal(whole[rows], part)
    assert np.array_equal(quantiles[1], thinned_quantile(alone, alone.shape(), 0.8))


def simulate(prior: tuple[float, float], p: np.ndarray, lists: int, seed: int) -> tuple[np.ndarray, ListBatch]:
    """Contexts of ten items, of which random ones are shown."""
    rng = np.random.default_rng(seed)
    contexts = 40_000 // lists
    theta = rng.beta(*prior, contexts * 10)
    context = np.repeat(np.arange(contexts), lists)
    shown = context[:, None] * 10 + np.argsort(rng.random((len(context), 10)), axis=1)[:, : len(p)]
    clicks = rng.random(shown.shape) < theta[shown] * p
    return theta, ListBatch(np.repeat(np.arange(contexts), 10), shown, clicks, np.ones(len(shown), np.int64))


@pytest.mark.parametrize("p", [(1, 0.8, 0.7, 0.6, 0.5), (1, 0.5, 0.25, 0.12, 0.06)], ids=["flat", "steep"])
@pytest.mark.parametrize("prior", [(1.2, 5.0), (5.0, 5.0)])
def test_the_bound_is_above_the_truth_as_often_as_it_says(prior: tuple[float, float], p: tuple[float, ...]) -> None:
    """5 %, of 4,000 pairs with 50 impressions each, so that four standard errors are 1.4 points.

    Beta(α + n₊, β + n₋), with Σp examinations, is above for 6.2 and 6.6 % of the pairs of Beta(5, 5).
    """
    theta, lists = simulate(prior, np.array(p), 100, seed=7)
    evidence = PositionBased(examination=p).fit(lists.cells, 5).evidence(lists.cells)
    above = np.mean(Bayes(0.1, *prior).lower(evidence) > theta)
    assert 0.036 < above < 0.064


def test_an_uncertain_examination_widens_the_posterior() -> None:
    """The standard error of log p, against the spread of fits to 30 logs, and the coverage of often shown items."""
    p = np.array([1, 0.6, 0.4, 0.3, 0.2])
    fits, errors, above = [], [], []
    for seed in range(30):
        theta, lists = simulate((2.0, 6.0), p, 2_000, seed)
        fitted = PositionBased().fit(lists.cells, 5)
        assert fitted.covariance is not None
        fits.append(np.log(fitted.examination))
        errors.append(np.sqrt(fitted.covariance.diagonal()))
        evidence = fitted.evidence(lists.cells)
        assert evidence.spread is not None
        above.append(np.mean(Bayes(0.1, 2.0, 6.0).lower(evidence) > theta))
    # A standard deviation of 30 values has a standard error of 13 %.
    ratio = np.std(fits, axis=0, ddof=1)[1:] / np.mean(errors, axis=0)[1:]
    assert ((ratio > 0.6) & (ratio < 1.4)).all()
    # The pairs of a log share its error of p: means over logs differ by about .025, and 30 of them by .005.
    assert 0.03 < np.mean(above) < 0.07
