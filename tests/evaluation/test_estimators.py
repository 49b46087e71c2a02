"""Every estimator against a plain loop, on logs with known and with estimated propensities."""

from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent.click_models.rewards import OBSERVED_REWARDS, ObservedReward
from prudent.evaluation.direct import direct
from prudent.evaluation.estimators import parse
from prudent.evaluation.holdout import CannotTellError, Holdout
from prudent.evaluation.intervals import Settings, estimate
from tests.evaluation import reference
from tests.evaluation.reference import Estimate, Logged
from tests.evaluation.small import arrays, cases

NEAR = 1e-9
Case = tuple[list[Logged], dict[Any, tuple[Any, ...]]]


def check(held: Holdout, spelling: str, reward: ObservedReward, said: Estimate | None) -> None:
    (one,) = estimate(held, [parse(spelling)], Settings(reward=reward, replicates=20))
    if said is None:
        assert one.value is None
        assert one.why
        assert one.support == 0
        return
    assert one.value == pytest.approx(said.value, rel=NEAR, abs=NEAR)
    assert one.logged == pytest.approx(said.logged, rel=NEAR, abs=NEAR)
    assert one.support == pytest.approx(said.support, rel=NEAR)
    if said.effective is not None:
        assert one.effective_sample_size == pytest.approx(said.effective, rel=1e-7)
        assert one.largest_weight == pytest.approx(said.largest, rel=1e-7)
    if said.logged:
        assert one.lift == pytest.approx(said.value / said.logged - 1, rel=NEAR, abs=NEAR)


@given(cases(), st.sampled_from(OBSERVED_REWARDS), st.booleans(), st.sampled_from([inf, 1.5, 3.0]))
@settings(max_examples=100, deadline=None)
def test_whole_lists(case: Case, reward: ObservedReward, known: bool, clip: float) -> None:
    lists, policy = case
    held = arrays(lists, policy, known)
    spelling = "ips" if clip == inf else f"ips(clip={clip})"
    check(held, spelling, reward, reference.ips(lists, policy, reward, known, clip))
    check(held, "snips", reward, reference.ips(lists, policy, reward, known, normalize=known))


@given(cases(), st.sampled_from(OBSERVED_REWARDS), st.booleans(), st.sampled_from([inf, 1.5, 3.0]))
@settings(max_examples=100, deadline=None)
def test_the_items_down_to_a_position(case: Case, reward: ObservedReward, known: bool, clip: float) -> None:
    lists, policy = case
    spelling = "prefix-ips" if clip == inf else f"prefix-ips(clip={clip})"
    said = reference.prefix_ips(lists, policy, reward, known, clip)
    check(arrays(lists, policy, known), spelling, reward, said)


@given(cases(), st.booleans(), st.sampled_from([inf, 1.5, 3.0]))
@settings(max_examples=100, deadline=None)
def test_items_at_positions(case: Case, known: bool, clip: float) -> None:
    """Known propensities of lists change nothing: they do not tell those of an item at a position."""
    lists, policy = case
    spelling = "ip-ips" if clip == inf else f"ip-ips(clip={clip})"
    check(arrays(lists, policy, known), spelling, "clicks", reference.item_position_ips(lists, policy, clip))


@given(cases(), st.sampled_from([inf, 1.5]))
@settings(max_examples=30, deadline=None)
def test_clicks_by_their_probabilities(case: Case, clip: float) -> None:
    lists, policy = case
    examination = (1.0, 0.6, 0.5, 0.3)
    spelling = "cips(" + f"model=pbm(examination={list(examination)})" + ("" if clip == inf else f", clip={clip}") + ")"
    held = arrays(lists, policy)
    check(held, spelling, "clicks", reference.click_ips(lists, policy, examination, clip))


@given(cases(), st.sampled_from(OBSERVED_REWARDS))
@settings(max_examples=100, deadline=None)
def test_the_pseudo_inverse(case: Case, reward: ObservedReward) -> None:
    lists, policy = case
    check(arrays(lists, policy), "pi", reward, reference.pseudo_inverse(lists, policy, reward))


@given(cases(), st.sampled_from(OBSERVED_REWARDS), st.booleans(), st.sampled_from(["cm", "dcm"]))
@settings(max_examples=12, deadline=None)
def test_the_click_model_and_the_doubly_robust(case: Case, reward: ObservedReward, known: bool, model: str) -> None:
    """Given what the model expects of each position, which `test_direct` is about."""
    lists, policy = case
    held = arrays(lists, policy, known)
    contexts = sorted({one.context for one in lists})
    expected = dict(zip(contexts, direct(held, model, reward).expected.tolist(), strict=True))
    check(held, f"dm(model={model})", reward, reference.direct(lists, policy, reward, expected))
    check(held, f"dr(model={model})", reward, reference.doubly_robust(lists, policy, reward, expected, known))
    clipped = reference.doubly_robust(lists, policy, reward, expected, known, clip=1.5)
    check(held, f"dr(model={model}, clip=1.5)", reward, clipped)


@given(cases(), st.sampled_from(OBSERVED_REWARDS))
@settings(max_examples=25, deadline=None)
def test_propensities_of_whole_lists_serve_whole_lists_only(case: Case, reward: ObservedReward) -> None:
    """Those that match to the end have one; where only a part of a longer list matches, frequencies stand in."""
    lists, policy = case
    held = arrays(lists, policy, known=True, whole=True)
    short, lists_of = reference.cut(lists, policy)[0], reference.cut(lists, policy)[1]
    exact = all(
        len(full.items) == len(lists_of[full.context])
        for full, one in zip(lists, short, strict=True)
        if full.context in policy and one.items[: len(lists_of[one.context])] == lists_of[one.context]
    )
    check(held, "ips", reward, reference.ips(lists, policy, reward, known=exact))
    single = max(len(items) for items in lists_of.values()) == 1
    if not single and any(
        reference.agrees(one, lists_of.get(one.context, ()), 0) and len(one.items) > 1 for one in lists
    ):
        check(held, "prefix-ips", reward, reference.prefix_ips(lists, policy, reward, known=False))


def test_any_click_is_no_sum_over_items_and_positions() -> None:
    lists = [Logged("q", ("a", "b"), (1, 0), (1.0, 1.0))] * 3
    with pytest.raises(CannotTellError, match="not a sum"):
        parse("ip-ips").contributions(arrays(lists, {"q": ("a", "b")}), "any-click")
