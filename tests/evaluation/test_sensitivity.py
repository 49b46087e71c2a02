"""What a policy leaves as it is, and the confounding that would undo its lift."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent.click_models.rewards import OBSERVED_REWARDS, ObservedReward
from prudent.evaluation.estimators import parse
from prudent.evaluation.evaluate import matching_length
from prudent.evaluation.intervals import Settings, estimate
from prudent.evaluation.sensitivity import LARGEST_GAMMA, margin, sensitivity, unchanged_places
from tests.evaluation.reference import Logged, Policy
from tests.evaluation.small import arrays, cases


def plain_places(lists: list[Logged], policy: Policy, reward: ObservedReward) -> tuple[float, float]:
    """List by list: the reward of places that stay, and how many change."""
    longest: dict[Any, int] = {}
    for one in lists:
        longest[one.context] = max(longest.get(one.context, 0), len(one.items))
    earned, changed = 0.0, 0.0
    for one in lists:
        mine = policy.get(one.context)
        upto = longest[one.context] if mine is None else min(longest[one.context], len(mine))
        stays = [mine is None or (k < len(one.items) and one.items[k] == mine[k]) for k in range(upto)]
        clicked = [k < len(one.clicks) and bool(one.clicks[k]) for k in range(upto)]
        if reward == "clicks":
            earned += sum(click for click, stay in zip(clicked, stays, strict=True) if stay)
            changed += sum(not stay for stay in stays)
        else:
            earned += any(clicked) and all(stays)
            changed += not all(stays)
    return earned / len(lists), changed / len(lists)


@settings(max_examples=80)
@given(cases(), st.sampled_from(OBSERVED_REWARDS))
def test_what_stays_list_by_list(case: Any, reward: ObservedReward) -> None:
    lists, policy = case
    held = arrays(lists, policy)
    actual = unchanged_places(held, np.ones(len(held.n), bool), reward)
    assert actual == pytest.approx(plain_places(lists, policy, reward))


chance = st.floats(0.02, 0.95)


@given(chance, chance, st.floats(0.1, 5.0), st.floats(0.0, 1.0))
def test_gamma_is_where_the_worst_value_meets_the_goal(q: float, least: float, places: float, same: float) -> None:
    """The definition, by bisection: the worst click rates of the places that change, for a lift up or down."""
    value, goal = same + places * q, same + places * least

    def worst(gamma: float) -> float:
        odds = q / (1 - q) / (gamma if value > goal else 1 / gamma)
        return same + places * odds / (1 + odds)

    low, high = 1.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        undone = worst(middle) <= goal if value > goal else worst(middle) >= goal
        low, high = (low, middle) if undone else (middle, high)
    actual = sensitivity(value, value, goal, same, places)
    if abs(value - goal) > 1e-9:
        assert actual == pytest.approx(min(high, LARGEST_GAMMA), rel=1e-6)


def test_gamma_at_the_ends() -> None:
    assert sensitivity(0.3, 0.6, 0.4, 0.0, 1.0) == 1, "the interval holds the goal: there is nothing to undo"
    assert sensitivity(0.5, 0.6, 0.4, 0.5, 0.0) == 1, "nothing changes"
    assert sensitivity(0.5, 0.6, 0.4, 0.45, 1.0) == LARGEST_GAMMA, "what stays is enough"
    assert sensitivity(0.1, 0.2, 0.4, 0.0, 1.0) == pytest.approx((0.4 / 0.6) / (0.2 / 0.8)), "a loss may be undone too"


def test_an_estimate_says_what_stays_and_what_the_rest_earns() -> None:
    """Half of the lists are the policy's and earn .8, the others .2: +60 % on all, and four times as much on those."""
    lists = [Logged("q", ("a", "b"), (int(i % 10 < 8), 0), (1.0, 1.0)) for i in range(100)]
    lists += [Logged("q", ("b", "a"), (int(i % 10 < 2), 0), (1.0, 1.0)) for i in range(100)]
    held = arrays(lists, {"q": ("a", "b")})
    (one,) = estimate(held, [parse("ips")], Settings())
    assert one.lift == pytest.approx(0.6)
    assert one.unchanged == pytest.approx(0.5)
    assert one.lift_changed == pytest.approx(3.0)
    assert one.lift_low is not None
    low = 0.5 * (1 + one.lift_low)  # two places change in half of the lists: one per list
    q, least = low - 0.4, 0.5 - 0.4
    assert one.sensitivity == pytest.approx(q / (1 - q) / (least / (1 - least)))


def test_a_length_at_which_lists_match() -> None:
    lists = [Logged("q", order, (1, 0, 0), (1.0,) * 3) for order in (("a", "b", "c"), ("a", "c", "b"))]
    assert matching_length(arrays(lists, {"q": ("a", "b", "c")})) is None
    lists = [Logged("q", ("a", "b", "c"), (1, 0, 0), (1.0,) * 3)] * 5
    assert matching_length(arrays(lists, {"q": ("a", "b", "d")})) == 2
    assert matching_length(arrays(lists, {"q": ("c", "b", "a")})) is None, "no length matches"


@given(chance, chance, st.floats(0.1, 5.0), st.floats(0.0, 1.0))
def test_the_margin_is_the_overstatement_that_meets_the_goal(
    q: float, least: float, places: float, same: float
) -> None:
    value, goal = same + places * q, same + places * least
    room = margin(value, goal, same)
    if value <= goal:
        assert room == 0
    else:
        assert same + (value - same) / (1 + room) == pytest.approx(goal)
    assert margin(value, same / 2 - 0.01, same) == LARGEST_GAMMA, "what stays is enough"
