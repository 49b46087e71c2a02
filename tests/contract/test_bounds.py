"""What every bound must satisfy; a new one is covered the day it registers."""

import json
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent.base.errors import UsageError
from prudent.bounds import bounds
from prudent.click_models import click_models
from prudent.click_models.evidence import Evidence
from tests.contract.test_spelling import values

every_bound = pytest.mark.parametrize("name", list(bounds))
pessimistic = [name for name in bounds if any(field.name == "delta" for field in fields(bounds[name]))]  # type: ignore[arg-type]
every_pessimistic_bound = pytest.mark.parametrize("name", pessimistic)


def evidence(rows: list[tuple[int, int, float, int]]) -> Evidence:
    """From (context, n₊, n₋, impressions never examined)."""
    rows = sorted(rows, key=lambda row: row[0])
    context, positive, negative, more = np.array(rows, dtype=float).reshape(-1, 4).T
    shown = np.ceil(positive + negative) + more
    return Evidence(
        context=context.astype(np.int64),
        item=np.arange(len(rows)),
        positive=positive,
        negative=negative,
        impressions=shown.astype(np.int64),
        fitted=click_models.parse("cm").typical(4),
        expected=positive + negative,
        squares=positive + negative,
        discounted=shown,
        hazard=shown,
    )


row = st.tuples(st.integers(0, 7), st.integers(0, 50), st.integers(0, 200) | st.floats(1e-9, 200), st.integers(0, 9))
evidences = st.lists(row, max_size=30).map(evidence)


def simulated() -> Evidence:
    """Ten contexts whose better items were shown more often; some items never."""
    rng = np.random.default_rng(0)
    theta = rng.beta(1, 4, 200)
    shown = rng.poisson(np.exp(rng.normal(1, 1, 200)) * theta * 20)
    clicks = rng.binomial(shown, theta)
    rows = zip(np.repeat(np.arange(10), 20), clicks, shown - clicks, np.zeros(200), strict=True)
    return evidence([(int(c), int(p), float(n), int(m)) for c, p, n, m in rows])


@every_bound
@settings(max_examples=60, deadline=None)
@given(some=evidences, data=st.data())
def test_never_nan_and_never_above_the_range_of_a_probability(name: str, some: Evidence, data: st.DataObject) -> None:
    scores = data.draw(values(bounds, name)).score(some)
    assert scores.lower.shape == scores.mean.shape == some.positive.shape
    assert not np.isnan(scores.lower).any()
    assert (scores.lower <= 1).all()
    assert ((scores.mean >= 0) & (scores.mean <= 1)).all()
    json.dumps(dict(scores.fitted), allow_nan=False)


@every_bound
def test_lower_is_the_lower_of_score(name: str) -> None:
    bound, some = bounds.parse(name), simulated()
    np.testing.assert_array_equal(bound.lower(some), bound.score(some).lower)


@every_bound
def test_it_says_whether_it_has_a_posterior(name: str) -> None:
    assert bounds[name].posterior == (bounds.parse(name).score(simulated()).deviation is not None)


@every_pessimistic_bound
@settings(max_examples=40, deadline=None)
@given(some=evidences, data=st.data())
def test_a_smaller_delta_never_raises_a_bound(name: str, some: Evidence, data: st.DataObject) -> None:
    bound: Any = data.draw(values(bounds, name))
    careful = replace(bound, delta=data.draw(st.floats(1e-12, bound.delta)))
    # Both are rounded: of quantiles closer than 1e-12 either may come out above.
    assert (careful.lower(some) <= bound.lower(some) + 1e-12).all()


@every_pessimistic_bound
def test_prefers_the_well_observed_item(name: str) -> None:
    """Sec. 4: one click in one view loses to 500 clicks in 1000."""
    rare, popular = bounds.parse(name).lower(evidence([(0, 1, 0, 0), (0, 500, 500, 0)]))
    assert popular > rare


@every_bound
def test_the_order_of_rows_and_contexts_does_not_matter(name: str) -> None:
    """Only sums of floats see it: 1e-7 is far below what any ranking turns on, far above their rounding."""
    some = simulated()
    rng = np.random.default_rng(1)
    order, renumber = rng.permutation(some.context.size), rng.permutation(10)
    shuffled = replace(
        some,
        context=renumber[some.context][order],
        item=some.item[order],
        positive=some.positive[order],
        negative=some.negative[order],
        impressions=some.impressions[order],
        expected=some.expected[order],
        squares=some.squares[order],
        discounted=some.discounted[order],
        hazard=some.hazard[order],
    )
    straight, mixed = bounds.parse(name).score(some), bounds.parse(name).score(shuffled)
    np.testing.assert_allclose(mixed.lower, straight.lower[order], atol=1e-7)
    np.testing.assert_allclose(mixed.mean, straight.mean[order], atol=1e-7)


@every_bound
def test_an_item_with_the_same_evidence_gets_the_same_score(name: str) -> None:
    lower = bounds.parse(name).lower(evidence([(0, 3, 7, 0), (0, 3, 7, 0), (0, 0, 0, 0), (0, 0, 0, 0)]))
    assert lower[0] == lower[1]
    assert lower[2] == lower[3]


@every_bound
def test_an_unseen_item_stays_below_a_good_one(name: str) -> None:
    good, unseen = bounds.parse(name).lower(evidence([(0, 90, 10, 0), (0, 0, 0, 0), (0, 2, 50, 0), (0, 5, 60, 0)]))[:2]
    assert unseen < good


@every_pessimistic_bound
@pytest.mark.parametrize("delta", ["0", "-0.1", "1.5", "nan", "inf", "low", "[0.1, 0.2]"])
def test_refuses_a_delta_that_is_no_probability(name: str, delta: str) -> None:
    with pytest.raises(UsageError, match=r"delta is .*; it must be a number above 0 and not above 1"):
        bounds.parse(f"{name}(delta={delta})")


@every_pessimistic_bound
def test_refuses_a_delta_too_small_to_compute_with(name: str) -> None:
    """scipy's quantiles are sound down to 1e-15 and some are NaN at 1e-20."""
    with pytest.raises(UsageError, match="delta is 1e-13; below 1e-12"):
        bounds.parse(f"{name}(delta=1e-13)")
