"""The upper end of an interval, from what a file of scores keeps of each pair."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from prudent.bounds import Bound, Scores, bounds
from prudent.bounds.bayes import PosteriorBound
from prudent.click_models.base import Evidence
from tests.contract.test_bounds import evidence, evidences, simulated

POSTERIOR = (
    "bayes(delta=0.2)",
    "bayes(delta=0.5, alpha=0.5, beta=7)",
    "eb(delta=0.2)",
    "eb(delta=0.1, pool=context)",
    "exposure(delta=0.5)",
    "hierarchical(delta=0.6)",
)


def kept(bound: Bound, some: Evidence) -> tuple[Scores, Any, Any]:
    """Lower bound, mean, what was fitted, n₊ and n₋: all that is in a file and its manifest."""
    return bound.score(some), some.positive, some.negative


def test_every_posterior_bound_is_tried() -> None:
    assert {spec.partition("(")[0] for spec in POSTERIOR} == {
        name for name in bounds if issubclass(bounds[name], PosteriorBound)
    }


@pytest.mark.parametrize("spec", POSTERIOR)
@settings(max_examples=40)
@given(some=evidences)
def test_is_the_quantile_of_the_posterior_that_the_prior_makes(spec: str, some: Evidence) -> None:
    """1e-6: the prior is taken back from the posterior mean, which has lost digits where n is large."""
    bound: Any = bounds.parse(spec)
    prior = bound.prior(some)
    expected = beta.ppf(1 - bound.delta / 2, prior.alpha + some.positive, prior.beta + some.negative)
    np.testing.assert_allclose(bound.upper(*kept(bound, some)), expected, atol=1e-6)


@pytest.mark.parametrize("spec", POSTERIOR)
def test_is_the_same_on_a_log_of_ten_contexts(spec: str) -> None:
    bound: Any = bounds.parse(spec)
    some = simulated()
    prior = bound.prior(some)
    expected = beta.ppf(1 - bound.delta / 2, prior.alpha + some.positive, prior.beta + some.negative)
    np.testing.assert_allclose(bound.upper(*kept(bound, some)), expected, atol=1e-9)


def test_what_a_context_had_for_a_prior_shows_in_means_and_bounds() -> None:
    """Unseen items have the mean of their prior, which many priors have; their bounds tell them apart."""
    some = evidence([(0, 0, 0, 0), (0, 5, 5, 0), (1, 0, 0, 0), (1, 300, 300, 0), (1, 200, 201, 0)])
    bound: Any = bounds.parse("eb(delta=0.2, pool=context)")
    prior = bound.prior(some)
    np.testing.assert_array_equal(bound.strength(*kept(bound, some)), prior.alpha + prior.beta)


@given(some=evidences, delta=st.floats(1e-6, 1))
def test_hoeffding_is_as_far_above_as_below(some: Evidence, delta: float) -> None:
    bound = bounds.parse(f"hoeffding(delta={delta})")
    scores, *counted = kept(bound, some)
    upper = bound.upper(scores, *counted)
    assert upper is not None
    for low, mean, high in zip(scores.lower, scores.mean, upper, strict=True):
        assert high == np.inf if low == -np.inf else high - mean == pytest.approx(mean - low, abs=1e-12)


def test_an_estimate_has_no_interval() -> None:
    assert bounds.parse("mle").upper(*kept(bounds.parse("mle"), simulated())) is None
