from math import lgamma

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent.base.errors import UsageError
from prudent.bounds import Bayes, EmpiricalBayes, bounds, empirical_bayes
from tests.bounds.small import evidence

GRID = EmpiricalBayes().grid
pairs = st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(0, 300) | st.floats(0, 300))  # context, n₊, n₋
some_pairs = st.lists(pairs, min_size=1, max_size=25)


def likelihood(positive: list[float], negative: list[float], alpha: float, beta: float) -> float:
    """Eq. (8) as printed, item by item."""
    return sum(
        lgamma(alpha + beta)
        - lgamma(alpha)
        - lgamma(beta)
        + lgamma(alpha + p)
        + lgamma(beta + n)
        - lgamma(alpha + beta + p + n)
        for p, n in zip(positive, negative, strict=True)
    )


def brute_force(positive: list[float], negative: list[float]) -> tuple[float, dict[tuple[float, float], float]]:
    all_of_them = {(a, b): likelihood(positive, negative, a, b) for a in GRID for b in GRID}
    return max(all_of_them.values()), all_of_them


@settings(max_examples=25)
@given(some=some_pairs)
def test_histograms_give_the_likelihood_of_the_loop(some: list[tuple[int, int, float]]) -> None:
    _, positive, negative = (list(map(float, column)) for column in zip(*some, strict=True))
    fast = empirical_bayes.grid_likelihood(np.array(positive), np.array(negative), GRID)
    _, slow = brute_force(positive, negative)
    for i, alpha in enumerate(GRID):
        for j, beta in enumerate(GRID):
            assert fast[i, j] == pytest.approx(slow[alpha, beta], rel=1e-9, abs=1e-8)


@settings(max_examples=25)
@given(some=some_pairs)
def test_the_prior_is_that_of_brute_force(some: list[tuple[int, int, float]]) -> None:
    context, positive, negative = map(list, zip(*sorted(some), strict=True))
    scores = EmpiricalBayes().score(evidence(positive, negative, context))
    best, slow = brute_force(positive, negative)
    prior = (scores.fitted["alpha"], scores.fitted["beta"])
    assert slow[prior] == pytest.approx(best, rel=1e-12, abs=1e-9)
    expected = Bayes(0.2, *prior).score(evidence(positive, negative, context))
    np.testing.assert_array_equal(scores.lower, expected.lower)
    np.testing.assert_array_equal(scores.mean, expected.mean)


@settings(max_examples=25)
@given(some=some_pairs)
def test_pooling_by_context_is_one_fit_per_context(some: list[tuple[int, int, float]]) -> None:
    context, positive, negative = map(np.array, zip(*sorted(some), strict=True))
    together = EmpiricalBayes(pool="context").score(evidence(positive, negative, context))
    assert sum(prior["contexts"] for prior in together.fitted["priors"]) == len(set(context))
    for one in set(context):
        here = context == one
        best, slow = brute_force(list(positive[here]), list(negative[here]))
        # Priors of equal likelihood may be told apart by rounding only; then either will do.
        priors = [prior for prior, value in slow.items() if value >= best - 1e-9 * (1 + abs(best))]
        lowers = [Bayes(0.2, *prior).lower(evidence(positive[here], negative[here])) for prior in priors]
        assert any(np.allclose(together.lower[here], lower, rtol=0, atol=1e-9) for lower in lowers)


def test_of_equal_priors_the_first_in_the_grid_wins() -> None:
    """Without evidence all are equal; with one click of two, (1, 512) and (512, 1) would be."""
    nothing = evidence(positive=[0, 0], negative=[0, 0], context=[0, 1])
    assert EmpiricalBayes().score(nothing).fitted == {"alpha": 1, "beta": 1, "pairs": 0}
    assert EmpiricalBayes(pool="context").score(nothing).fitted == {
        "priors": [{"alpha": 1.0, "beta": 1.0, "contexts": 2}]
    }
    half = evidence(positive=[3, 0], negative=[0, 3])
    assert EmpiricalBayes(grid=(2.0, 1.0)).score(half).fitted["alpha"] == 1
    lopsided = EmpiricalBayes(grid=(1.0, 4.0)).score(evidence(positive=[3, 0, 3, 0], negative=[3, 0, 3, 0])).fitted
    assert (lopsided["alpha"], lopsided["beta"]) == (4, 4)


def test_recovers_the_prior() -> None:
    """Of 20,000 items from Beta(1, 8), each seen up to 60 times."""
    rng = np.random.default_rng(0)
    n = rng.integers(0, 60, 20_000)
    positive = rng.binomial(n, rng.beta(1, 8, n.size))
    fitted = EmpiricalBayes().score(evidence(positive, n - positive)).fitted
    assert (fitted["alpha"], fitted["beta"]) == (1, 8)


def test_unseen_pairs_change_nothing() -> None:
    seen = EmpiricalBayes().score(evidence(positive=[1, 5], negative=[9, 20]))
    more = EmpiricalBayes().score(evidence(positive=[1, 5, 0, 0], negative=[9, 20, 0, 0]))
    assert seen.fitted == more.fitted
    np.testing.assert_array_equal(seen.lower, more.lower[:2])


@pytest.mark.parametrize("grid", [GRID, (0.05, 0.7, 3000.0)])
def test_many_distinct_values_are_binned_without_loss(grid: tuple[float, ...]) -> None:
    rng = np.random.default_rng(0)
    positive, negative = np.floor(rng.exponential(3, 60_000)), np.exp(rng.normal(0, 3, 60_000))
    assert empirical_bayes._histogram(negative, grid)[0].size < np.unique(negative).size / 2
    binned = empirical_bayes.grid_likelihood(positive, negative, grid)
    parts = np.array_split(np.arange(60_000), 3)  # small enough to be looked at one by one
    exact = sum(empirical_bayes.grid_likelihood(positive[part], negative[part], grid) for part in parts)
    np.testing.assert_allclose(binned, exact, rtol=1e-9)


def test_a_grid_too_close_to_0_is_not_binned() -> None:
    negative = np.random.default_rng(0).random(40_000)
    values, sizes = empirical_bayes._histogram(negative, (0.01, 1.0))
    assert values.size == sizes.sum() == 40_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("eb(pool=al)", "no pool al. Did you mean 'all'"),
        ("eb(pool=3)", "Known: all, context"),
        ("eb(grid=4)", r"like grid=\[1, 2, 4\]"),
        ("eb(grid=[])", r"like grid=\[1, 2, 4\]"),
        ("eb(grid=[1, 0])", "grid is 0.0; it must be a number above 0"),
        ("eb(grid=[1, many])", "grid is many"),
        ("eb(delta=0)", "delta is 0"),
    ],
)
def test_refuses_with_a_hint(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        bounds.parse(text)


@pytest.mark.parametrize("pool", ["all", "context"])
def test_of_priors_that_are_equally_likely_the_weakest_is_taken(pool: str) -> None:
    """Items examined once tell α/β and nothing else; rounding must not choose the strongest prior of that ratio."""
    even = evidence(positive=[1, 1, 1, 0, 0, 0], negative=[0, 0, 0, 1, 1, 1])
    assert EmpiricalBayes(pool=pool).lower(even) == pytest.approx(Bayes(alpha=1, beta=1).lower(even))
    third = evidence(positive=[1] * 5 + [0] * 10, negative=[0] * 5 + [1] * 10)
    assert EmpiricalBayes(pool=pool).lower(third) == pytest.approx(Bayes(alpha=1, beta=2).lower(third))


def test_a_grid_may_be_given_as_a_list_and_numbers_of_numpy_are_numbers() -> None:
    assert EmpiricalBayes(grid=[1, 2]).grid == (1, 2)  # type: ignore[arg-type]
    assert str(Bayes(delta=np.float32(0.25), alpha=np.int64(2))) == "bayes(delta=0.25, alpha=2)"  # type: ignore[arg-type]
