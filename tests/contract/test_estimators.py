"""What every estimator must satisfy; a new one is covered the day it registers.

Spellings are in `test_spelling`, twins in plain loops in `tests.evaluation.test_estimators`.
"""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent.base.errors import UsageError
from prudent.click_models.rewards import OBSERVED_REWARDS, ObservedReward
from prudent.evaluation.estimators import Estimator, estimators, parse
from prudent.evaluation.holdout import Holdout
from prudent.evaluation.intervals import Estimate, Settings, estimate
from tests.evaluation.reference import Logged
from tests.evaluation.small import arrays, cases

every_estimator = pytest.mark.parametrize("name", list(estimators))
Case = tuple[list[Logged], dict[Any, tuple[Any, ...]]]
# Linear combinations of rewards with weights that are negative or sum to more than 1; all others average rewards.
# (`dr` adds weighted errors of a model to its prediction: a click more than predicted can lead above 1.)
EXTRAPOLATES = {"cips", "dr", "pi"}


def setting_names(name: str) -> list[str]:
    return [field.name for field in fields(estimators[name])]  # type: ignore[arg-type]


def make(name: str) -> Estimator:
    """With a click model that needs no items that move."""
    return parse(f"{name}(model=dcm)" if "model" in setting_names(name) else name)


def run(name: str, held: Holdout, reward: ObservedReward = "clicks") -> Estimate:
    (one,) = estimate(held, [make(name)], Settings(reward, replicates=20))
    return one


@every_estimator
def test_has_a_twin_in_plain_loops(name: str) -> None:
    tests = (Path(__file__).parents[1] / "evaluation" / "test_estimators.py").read_text(encoding="utf-8")
    assert re.search(f'"{name}["(]', tests), "compare it with a plain loop there"


@every_estimator
@pytest.mark.parametrize("reward", OBSERVED_REWARDS)
def test_cannot_tell_without_support(name: str, reward: ObservedReward) -> None:
    """All contexts keep their lists, and the lift would be 0: but not because of the policy."""
    held = arrays([Logged("q", ("a", "b"), (1, 0), (1.0, 1.0))] * 3, {"r": ("a", "b")})
    one = run(name, held, reward)
    assert (one.value, one.lift, one.support, one.known) == (None, None, 0, False)
    assert one.why


@every_estimator
def test_an_item_that_was_never_shown_has_no_value(name: str) -> None:
    one = run(name, arrays([Logged("q", ("a", "b"), (1, 0), (1.0, 1.0))] * 30, {"q": ("z", "b")}))
    assert one.value is None
    assert one.why


@every_estimator
def test_the_logged_lists_have_no_lift(name: str) -> None:
    lists = [Logged("q", ("a", "b"), (i % 2, 0), (1.0, 1.0)) for i in range(40)]
    lists += [Logged("r", ("c", "b"), (0, i % 2), (1.0, 1.0)) for i in range(40)]
    one = run(name, arrays(lists, {"q": ("a", "b"), "r": ("c", "b")}))
    assert one.support == 1
    assert one.lift is not None
    # A click model alone shrinks attraction and does not predict every position exactly; weights do.
    assert abs(one.lift) < (0.05 if setting_names(name) == ["model"] else 1e-9)


@every_estimator
@given(case=cases(), reward=st.sampled_from(OBSERVED_REWARDS))
@settings(max_examples=15, deadline=None)
def test_values_are_rewards(name: str, case: Case, reward: ObservedReward) -> None:
    """With frequencies as propensities; logged ones and few lists can estimate anything."""
    held = arrays(*case)
    one = run(name, held, reward)
    assert 0 <= one.support <= 1
    if one.value is None or one.low is None:
        assert one.why
        return
    assert one.low <= one.value
    assert one.high is None or one.value <= one.high
    if name not in EXTRAPOLATES:
        assert -1e-9 <= one.value <= (held.length if reward == "clicks" else 1) + 1e-9


@every_estimator
@given(case=cases(), known=st.booleans())
@settings(max_examples=8, deadline=None)
def test_the_order_of_the_log_does_not_matter(name: str, case: Case, known: bool) -> None:
    lists, policy = case
    assert run(name, arrays(lists, policy, known)) == run(name, arrays(lists[::-1], policy, known))


@every_estimator
def test_settings_are_checked(name: str) -> None:
    bad = {"clip": ("0", "-1", "nan", "much", "[1, 2]"), "model": ("bpm", "pbm(size=2)", "7")}
    for setting in setting_names(name):
        for value in bad.get(setting, ()):
            with pytest.raises(UsageError):
                parse(f"{name}({setting}={value})")
    with pytest.raises(UsageError, match=f"{name} has no setting 'colour'"):
        parse(f"{name}(colour=red)")


@every_estimator
def test_has_a_name_in_plain_words(name: str) -> None:
    assert len(estimators[name].words) > 5
