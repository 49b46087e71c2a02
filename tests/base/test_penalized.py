"""A binomial likelihood with normal priors, beside plain loops and scipy's optimiser."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.numerics.penalized import Design, fit_penalized, inverted


def design(rows: int, seed: int) -> tuple[Design, FloatArray]:
    """Two numbers in one block, then levels, then levels: and the same as one matrix."""
    rng = np.random.default_rng(seed)
    numbers = rng.standard_normal((2, rows)) * [[3.0], [0.1]]
    some, more = rng.integers(0, 3, rows), rng.integers(0, 4, rows)
    some[:3], more[:4] = range(3), range(4)
    made = Design([list(numbers), some, more])
    columns = [np.ones(rows), *(column / column.std() for column in numbers)]
    columns += [(some == level).astype(float) for level in range(3)] + [
        (more == level).astype(float) for level in range(4)
    ]
    return made, np.column_stack(columns)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_sums_and_products_are_those_of_the_matrix(seed: int) -> None:
    made, matrix = design(40, seed)
    rng = np.random.default_rng(seed + 1)
    weight = rng.random(40)
    slopes = rng.standard_normal((matrix.shape[1],))
    np.testing.assert_allclose(made.times(slopes), matrix @ slopes, rtol=1e-10)
    np.testing.assert_allclose(made.sums(weight), matrix.T @ weight, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(made.gram(weight), matrix.T * weight @ matrix, rtol=1e-10, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(size=st.integers(1, 12), seed=st.integers(0, 1000))
def test_the_inverse_is_one(size: int, seed: int) -> None:
    root = np.random.default_rng(seed).standard_normal((size + 3, size))
    matrix = root.T @ root + 0.1 * np.eye(size)
    np.testing.assert_allclose(inverted(matrix) @ matrix, np.eye(size), atol=1e-8)


def drawn(seed: int, rows: int = 4_000) -> tuple[FloatArray, FloatArray, FloatArray, list[FloatArray], IntArray]:
    rng = np.random.default_rng(seed)
    columns = [rng.standard_normal(rows), 20 * rng.standard_normal(rows)]
    level = rng.integers(0, 10, rows)
    offset = rng.normal(-1.5, 0.5, rows)
    eta = offset + 0.2 + 0.6 * columns[0] + 0.4 * rng.standard_normal(10)[level]
    examined = rng.integers(1, 6, rows).astype(float)
    clicks = rng.binomial(examined.astype(int), 1 / (1 + np.exp(-eta))).astype(float)
    return clicks, examined, offset, columns, level


@pytest.mark.parametrize("seed", range(3))
def test_the_slopes_are_those_of_the_greatest_posterior_density(seed: int) -> None:
    """Plain loops under the variances that were fitted, which the slopes tell: γ/Σβ² at the fixed point."""
    clicks, examined, offset, columns, level = drawn(seed, rows=300)
    slopes = fit_penalized(Design([[columns[0]], [columns[1]], level]), clicks, examined, offset)
    scales = [np.std(columns[0]), np.std(columns[1])]
    own = [slopes[0] * scales[0], slopes[1] * scales[1], slopes[2]]

    def loss(parameters: FloatArray, penalties: list[float]) -> float:
        total = 0.0
        for row in range(len(clicks)):
            eta = offset[row] + parameters[0]
            eta += parameters[1] * columns[0][row] / scales[0] + parameters[2] * columns[1][row] / scales[1]
            eta += parameters[3 + level[row]]
            total -= clicks[row] * eta - examined[row] * log(1 + exp(eta))
        blocks = (parameters[1:2], parameters[2:3], parameters[3:])
        return total + sum(p * float(np.sum(block**2)) / 2 for p, block in zip(penalties, blocks, strict=True))

    # At the maximum the gradient of the likelihood is penalty times slope: the penalties from the slopes themselves.
    constant = fitted_constant(clicks, examined, offset, columns, level, slopes)
    here = np.concatenate([[constant], *own])
    steps = 1e-5 * np.eye(len(here))
    gradient = np.array([(loss(here + step, [0, 0, 0]) - loss(here - step, [0, 0, 0])) / 2e-5 for step in steps])
    penalties = [
        float(-gradient[at] @ here[at] / (here[at] @ here[at])) for at in (slice(1, 2), slice(2, 3), slice(3, 13))
    ]
    found = minimize(loss, np.zeros(13), args=(penalties,), method="BFGS", options={"gtol": 1e-6}).x
    np.testing.assert_allclose(found[1:], here[1:], atol=2e-4)


def fitted_constant(
    clicks: FloatArray,
    examined: FloatArray,
    offset: FloatArray,
    columns: list[FloatArray],
    level: IntArray,
    slopes: list[FloatArray],
) -> float:
    """The constant of the greatest likelihood under these slopes, which has no prior."""
    eta = offset + slopes[0] * columns[0] + slopes[1] * columns[1] + slopes[2][level]
    constant = 0.0
    for _ in range(30):
        mean = 1 / (1 + np.exp(-eta - constant))
        constant += float(np.sum(clicks - examined * mean) / np.sum(examined * mean * (1 - mean)))
    return constant


def test_slopes_are_recovered_and_what_says_nothing_is_shrunk() -> None:
    """4,000 rows of 3 examinations: the standard error of a slope of a number is about .03."""
    clicks, examined, offset, columns, level = drawn(5)
    number, noise, levels = fit_penalized(Design([[columns[0]], [columns[1]], level]), clicks, examined, offset)
    assert number[0] == pytest.approx(0.6, abs=0.1)
    assert abs(noise[0] * 20) < 0.03
    assert 0.2 < np.std(levels) < 0.6


@pytest.mark.parametrize("clicks", [0.0, 2.0])
def test_without_clicks_or_skips_nothing_is_learned(clicks: float) -> None:
    rows, rng = 50, np.random.default_rng(1)
    block: list[FloatArray] = [rng.standard_normal(rows)]
    (slopes,) = fit_penalized(Design([block]), np.full(rows, clicks), np.full(rows, 2.0), np.zeros(rows))
    assert abs(slopes[0]) < 1e-3
