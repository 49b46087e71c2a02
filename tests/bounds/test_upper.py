"""The upper end of an interval."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from prudent.bounds import Bound, bounds
from prudent.bounds.bayes import PosteriorBound
from prudent.click_models.evidence import Evidence
from tests.contract.test_bounds import evidences, simulated

POSTERIOR = (
    "bayes(delta=0.2)",
    "bayes(delta=0.5, alpha=0.5, beta=7)",
    "eb(delta=0.2)",
    "eb(delta=0.1, pool=context)",
    "exposure(delta=0.5)",
    "hierarchical(delta=0.6)",
)


def upper(bound: Bound, some: Evidence) -> Any:
    """Of every pair."""
    scores = bound.score(some)
    return None if scores.upper is None else scores.upper(np.arange(len(some.context)))


def test_every_posterior_bound_is_tried() -> None:
    assert {spec.partition("(")[0] for spec in POSTERIOR} == {
        name for name in bounds if issubclass(bounds[name], PosteriorBound)
    }


@pytest.mark.parametrize("spec", POSTERIOR)
@settings(max_examples=40)
@given(some=evidences)
def test_is_the_quantile_of_the_posterior_that_the_prior_makes(spec: str, some: Evidence) -> None:
    bound: Any = bounds.parse(spec)
    prior = bound.prior(some)
    expected = beta.ppf(1 - bound.delta / 2, prior.alpha + some.positive, prior.beta + some.negative)
    np.testing.assert_allclose(upper(bound, some), expected, atol=1e-9)


@pytest.mark.parametrize("spec", POSTERIOR)
def test_is_the_same_on_a_log_of_ten_contexts(spec: str) -> None:
    bound: Any = bounds.parse(spec)
    some = simulated()
    prior = bound.prior(some)
    expected = beta.ppf(1 - bound.delta / 2, prior.alpha + some.positive, prior.beta + some.negative)
    np.testing.assert_allclose(upper(bound, some), expected, atol=1e-9)


@given(some=evidences, delta=st.floats(1e-6, 1))
def test_hoeffding_is_as_far_above_as_below(some: Evidence, delta: float) -> None:
    bound = bounds.parse(f"hoeffding(delta={delta})")
    scores = bound.score(some)
    for low, mean, high in zip(scores.lower, scores.mean, upper(bound, some), strict=True):
        assert high == np.inf if low == -np.inf else high - mean == pytest.approx(mean - low, abs=1e-12)


def test_an_estimate_has_no_interval() -> None:
    assert upper(bounds.parse("mle"), simulated()) is None
