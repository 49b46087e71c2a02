"""Explanations: sentences that the numbers bear out, and numbers that a plain loop over the log finds too."""

import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.errors import PolicyError, PrudentError, UnknownContextError
from prudent.policies.explain import Candidate, Explanation, explain
from prudent.policies.explain.sentences import Known, in_words
from tests import reference
from tests.footers import remove_manifest
from tests.reference import LoggedList
from tests.strategies import count, linked_logs, table

BOUNDED = Known("lower bound", anchored=False, all_scored=True)


def one(item: str, **known: Any) -> Candidate:
    """A candidate that was looked at whenever it was shown, if nothing else is said."""
    if "positive" not in known and known.get("clicks") is not None:
        known |= {"positive": known["clicks"], "negative": known["impressions"] - known["clicks"]}
    return Candidate(item, **known)


def why(candidates: Sequence[Candidate], known: Known = BOUNDED) -> dict[Any, str]:
    return {told.item: told.why for told in in_words(candidates, known)}


GOOD = one("good", incumbent=1, rank=1, impressions=1000, clicks=500, lower=0.48, mean=0.5, upper=0.52)


# --- one test for each kind of sentence -------------------------------------------------------------------------------


def test_stays() -> None:
    assert why([GOOD])["good"] == "stays: 500 clicks in 1,000 views"


def test_clicked_once_in_one_view() -> None:
    rare = one("rare", impressions=1, clicks=1, lower=0.1, mean=0.6, upper=0.9)
    assert why([GOOD, rare])["rare"] == "not listed: clicked 1 of 1: too little to trust"


def test_left_because_there_was_too_little_to_trust() -> None:
    rare = one("rare", incumbent=2, impressions=3, clicks=2, lower=0.1, mean=0.6, upper=0.9)
    assert why([GOOD, rare])["rare"] == "left the list: clicked 2 of 3: too little to trust"


def test_down_because_there_was_too_little_to_trust() -> None:
    rare = one("rare", incumbent=1, rank=2, impressions=3, clicks=2, lower=0.1, mean=0.6, upper=0.9)
    told = why([replace(GOOD, incumbent=2), rare])
    assert told["rare"] == "down 1: clicked 2 of 3: too little to trust"
    assert told["good"] == "up 1: 500 clicks in 1,000 views; lower bound 0.480, against 0.100 of the item it passes"


def test_up_and_clear_of_what_it_passes() -> None:
    poor = one("poor", incumbent=1, rank=2, impressions=1000, clicks=100, lower=0.08, mean=0.1, upper=0.12)
    told = why([replace(GOOD, incumbent=2), poor])
    assert told["good"] == "up 1: 500 clicks in 1,000 views, clearly above the item it passes"
    assert told["poor"] == "down 1: 100 clicks in 1,000 views, clearly below the item that passed it"


def test_one_view_makes_nothing_clear() -> None:
    """By the prior its interval ends below those in the list, but one view without a click says next to nothing."""
    listed = [
        one(f"i{k}", incumbent=k, rank=k, impressions=500, clicks=200, lower=0.35, mean=0.4, upper=0.45)
        for k in range(1, 11)
    ]
    rare = one("rare", impressions=1, clicks=0, lower=0.01, mean=0.02, upper=0.03)
    expected = "not listed: no click in 1 view; lower bound 0.010, against 0.350 of the lowest of 10 items in the list"
    assert why([*listed, rare])["rare"] == expected
    often = replace(rare, impressions=500, negative=500.0)
    assert why([*listed, often])["rare"] == "not listed: no click in 500 views, clearly below all 10 items in the list"


def test_overlapping_intervals_are_not_clear() -> None:
    poor = one("poor", impressions=1000, clicks=400, lower=0.38, mean=0.4, upper=0.49)
    assert "clearly" not in why([GOOD, poor])["poor"]


def test_a_click_rate_that_the_position_explains() -> None:
    """Clicked more often per view than the other, but less often per look."""
    flattered = one(
        "high", incumbent=1, rank=2, impressions=1000, clicks=300, positive=300, negative=700, lower=0.28, mean=0.3
    )
    hidden = one(
        "low", incumbent=2, rank=1, impressions=1000, clicks=200, positive=200, negative=200, lower=0.45, mean=0.5
    )
    assert (
        why([flattered, hidden])["high"] == "down 1: 300 clicks in 1,000 views, but at positions with more examinations"
    )


def test_enters_in_the_place_of_what_left() -> None:
    poor = one("poor", incumbent=1, impressions=1000, clicks=100, lower=0.08, mean=0.1, upper=0.12)
    told = why([replace(GOOD, incumbent=None), poor])
    assert told["good"] == "enters at 1: 500 clicks in 1,000 views, clearly above the item that left"
    assert told["poor"] == "left the list: 100 clicks in 1,000 views, clearly below the item in the list"


def test_bounds_below_zero_have_a_minus_as_in_the_columns() -> None:
    far = one("far", impressions=20, clicks=2, lower=-0.15, mean=0.1, upper=0.49)
    told = why([GOOD, far])["far"]
    assert told == "not listed: 2 clicks in 20 views; lower bound −0.150, against 0.480 of the item in the list"


def test_not_listed_by_a_hair() -> None:
    """As many digits as it takes to see a difference."""
    near = one("near", impressions=1000, clicks=500, lower=0.4799, mean=0.5, upper=0.52)
    told = why([GOOD, near])["near"]
    assert told == "not listed: 500 clicks in 1,000 views; lower bound 0.4799, against 0.4800 of the item in the list"


def test_of_several_the_least_in_the_list_counts_and_the_best_that_passed() -> None:
    second = one("second", incumbent=3, rank=2, impressions=1000, clicks=400, lower=0.38, mean=0.4, upper=0.42)
    third = one("third", incumbent=2, rank=3, impressions=90, clicks=35, lower=0.3, mean=0.39, upper=0.45)
    out = one("out", impressions=90, clicks=30, lower=0.29, mean=0.3, upper=0.31)
    told = why([GOOD, second, third, out])
    assert (
        told["out"]
        == "not listed: 30 clicks in 90 views; lower bound 0.290, against 0.300 of the lowest of 3 items in the list"
    )
    assert told["third"] == "down 1: 35 clicks in 90 views; lower bound 0.300, against 0.380 of the item that passed it"


def test_new_and_never_shown() -> None:
    new = one("new", rank=2, impressions=0, clicks=0, lower=0.05, mean=0.1, upper=0.2)
    assert why([GOOD, new])["new"] == "new: never shown, scored by the prior alone"
    assert why([GOOD, replace(new, mean=0.0)])["new"] == "new: never shown"


def test_never_shown_and_not_listed() -> None:
    new = one("new", impressions=0, clicks=0, lower=0.05, mean=0.1, upper=0.2)
    assert why([GOOD, new])["new"] == "not listed: never shown, and the prior alone is not enough"
    assert why([GOOD, replace(new, mean=0.0)])["new"] == "not listed: never shown"


def test_what_was_shown_long_ago_was_shown() -> None:
    """Of old days that weigh less, less than half a view may be left."""
    old = one(
        "old", incumbent=2, impressions=0, clicks=0.0, positive=0.0, negative=0.3, lower=0.01, mean=0.1, upper=0.2
    )
    assert (
        why([GOOD, old])["old"]
        == "left the list: shown long ago; lower bound 0.010, against 0.480 of the item in the list"
    )


def test_no_longer_offered() -> None:
    assert why([GOOD, one("old", incumbent=2)])["old"] == "left the list: no longer among the candidates"


def test_without_scores_it_says_what_it_saw() -> None:
    old = one("old", incumbent=2, impressions=4, clicks=1)
    assert why([GOOD, old], replace(BOUNDED, all_scored=False))["old"] == "left the list: 1 click in 4 views"


def test_without_a_usual_list_it_says_where_it_stands() -> None:
    assert why([replace(GOOD, incumbent=None)])["good"] == "at 1: 500 clicks in 1,000 views"
    assert why([replace(GOOD, incumbent=None, clicks=None)])["good"] == "at 1: 1,000 views"


def test_without_clicks_views_have_to_do() -> None:
    rare = one("rare", incumbent=2, impressions=3, positive=2, negative=1, lower=0.1, mean=0.6, upper=0.9)
    assert why([GOOD, rare])["rare"] == "left the list: 3 views: too little to trust"


def test_without_bounds_nothing_is_compared() -> None:
    """Of a method without bounds."""
    poor = one("poor", incumbent=1, rank=2, impressions=10, clicks=1)
    best = one("best", incumbent=2, rank=1, impressions=10, clicks=0)
    assert why([poor, best], Known("", anchored=False, all_scored=False)) == {
        "best": "up 1: no click in 10 views",
        "poor": "down 1: 1 click in 10 views",
    }


def test_an_estimate_is_not_called_a_bound() -> None:
    poor = one("poor", impressions=10, clicks=1, lower=0.1, mean=0.1)
    told = why([GOOD, poor], replace(BOUNDED, order="estimate"))["poor"]
    assert told == "not listed: 1 click in 10 views; estimate 0.100, against 0.480 of the item in the list"


def test_an_infinite_bound_is_not_printed() -> None:
    poor = one("poor", rank=2, incumbent=1, impressions=10, clicks=1, lower=-inf, mean=0.1)
    assert why([replace(GOOD, incumbent=2), poor])["poor"] == "down 1: 1 click in 10 views"


def test_they_stand_in_the_order_they_are_read_in() -> None:
    left, rest = one("left", incumbent=2, lower=0.1), [one("a", lower=0.2), one("b", lower=0.3), one("c")]
    assert [told.item for told in in_words([*rest, left, GOOD], BOUNDED)] == ["good", "left", "b", "a", "c"]


# --- no sentence contradicts the numbers ------------------------------------------------------------------------------


@st.composite
def contexts(draw: st.DrawFn) -> list[Candidate]:
    """Candidates whose new list is made of the best bounds, and whose usual list is anything."""
    size = draw(st.integers(1, 7))
    candidates = []
    for i in range(size):
        views = draw(st.integers(0, 6) | st.integers(0, 2000))
        clicks = draw(st.integers(0, views))
        looks = clicks + draw(st.floats(0, 1)) * (views - clicks)
        lower = draw(st.sampled_from([0.1, 0.2]) | st.floats(0, 0.9))
        mean = lower + draw(st.floats(0, 1)) * (1 - lower)
        upper = draw(st.none() | st.floats(mean, 1))
        counted = {"impressions": views, "clicks": float(clicks), "positive": float(clicks), "negative": looks - clicks}
        candidates.append(Candidate("abcdefg"[i], lower=lower, mean=mean, upper=upper, **counted))  # type: ignore[arg-type]
    length = draw(st.integers(1, size))
    best = sorted(candidates, key=lambda one: (-(one.lower or 0), -(one.mean or 0)))[:length]
    if draw(st.booleans()):  # the best item goes to the heaviest position, and that need not be the first
        best = draw(st.permutations(best))
    ranks = {one.item: rank for rank, one in enumerate(best, 1)}
    shown = draw(st.permutations([one.item for one in candidates]))[:length]
    usual = {item: place for place, item in enumerate(shown, 1)}
    return [replace(one, rank=ranks.get(one.item), incumbent=usual.get(one.item)) for one in candidates]


def rate(one: Candidate) -> float:
    looks = (one.positive or 0) + (one.negative or 0)
    return (one.positive or 0) / looks if looks else 0.0


def check(one: Candidate, everything: list[Candidate]) -> None:
    """Read the sentence, and hold each of its words against the numbers."""
    others = [other for other in everything if other.item != one.item]
    listed = [other for other in others if other.rank]
    low = one.lower or 0
    words = one.why.partition(":")[0]
    if one.rank is None:
        assert words == ("left the list" if one.incumbent else "not listed")
        against = listed
    elif one.incumbent is None:
        assert words == ("new" if not one.impressions else f"enters at {one.rank}")
        against = [other for other in others if other.incumbent and not other.rank]
    elif one.incumbent == one.rank:
        assert one.why == f"stays: {one.why.partition(': ')[2]}"
        against = []
    else:
        moved = one.incumbent - one.rank
        assert words == (f"up {moved}" if moved > 0 else f"down {-moved}")
        now_above = {other.item for other in listed if other.rank and other.rank < one.rank}
        then_above = {other.item for other in others if other.incumbent and other.incumbent < one.incumbent}
        turned = then_above - now_above if moved > 0 else now_above - then_above
        against = [other for other in others if other.item in turned]
        assert against  # nothing moves without another that does
    if counts := re.search(r"(no|[\d,]+) clicks? in ([\d,]+) view|clicked ([\d,]+) of ([\d,]+)", one.why):
        clicks, views, clicked, of = counts.groups()
        assert int((clicks or clicked).replace("no", "0").replace(",", "")) == one.clicks
        assert int((views or of).replace(",", "")) == one.impressions
    assert ("never shown" in one.why) == (one.impressions == 0)
    if "too little to trust" in one.why:
        # It would stand above one of them by what was clicked per look, and its bound puts it below.
        assert any(rate(other) < rate(one) and (other.lower or 0) > low for other in against)
    if "more people look" in one.why:
        assert one.impressions
        ctr = (one.clicks or 0) / one.impressions
        worse = [o for o in against if o.impressions and (o.clicks or 0) / o.impressions < ctr and (o.lower or 0) > low]
        assert any(rate(other) >= rate(one) for other in worse)
    if "clearly above" in one.why:
        assert all(other.upper is not None and low > other.upper for other in against)
        assert {1: "the item", 2: "both items"}.get(len(against), f"all {len(against)} items") in one.why
    if "clearly below" in one.why:
        assert one.upper is not None
        assert all(one.upper < (other.lower or 0) for other in against)
    if bounds := re.search(r"lower bound ([\d.]+), and ([\d.]+) of", one.why):
        mine, theirs = map(float, bounds.groups())
        ahead = words.startswith(("up", "enters"))
        assert mine > theirs if ahead else mine < theirs
        assert mine == pytest.approx(low, abs=6e-4)
        pick = min if one.rank is None else max
        assert theirs == pytest.approx(pick(other.lower or 0 for other in against), abs=6e-4)
        assert len(against) == 1 or f"{'least' if one.rank is None else 'best'} of {len(against)} items" in one.why


@settings(max_examples=400)
@given(candidates=contexts())
def test_no_sentence_contradicts_the_numbers(candidates: list[Candidate]) -> None:
    told = list(in_words(candidates, BOUNDED))
    assert Counter(one.item for one in told) == Counter(one.item for one in candidates)
    for one in told:
        check(one, told)


@settings(max_examples=400)
@given(candidates=contexts())
def test_the_items_that_click_rate_falls_for_are_its_top_items_that_are_not_listed(candidates: list[Candidate]) -> None:
    explanation = Explanation("q", in_words(candidates, BOUNDED))
    length = len(explanation.prudent)
    for one in explanation.fallen_for:
        assert one.rank is None
        assert one.clicks
        better = [o for o in candidates if o.impressions and (o.clicks or 0) / o.impressions > one.ctr]
        assert len(better) < length
    others = [
        one
        for one in candidates
        if one.rank is None and one.clicks and one.item not in {fallen.item for fallen in explanation.fallen_for}
    ]
    for other in others:  # at least as many are clicked as often as there are places
        assert sum(o.ctr >= other.ctr for o in candidates if o.item != other.item) >= length


# --- lists that start from the incumbent ------------------------------------------------------------------------------

ANCHORED = Known("lower bound", anchored=True, all_scored=True)


def seen(item: str, lower: float, stay: float, clicks: int, views: int, **places: int) -> Candidate:
    counted = {"impressions": views, "clicks": clicks, "positive": clicks, "negative": views - clicks}
    return one(item, lower=lower, mean=lower + 0.1, upper=lower + 0.2, stay=stay, **counted, **places)


def test_why_items_of_an_anchored_list_stand_where_they_stand() -> None:
    candidates = [
        seen("top", 0.30, 0.35, 90, 200, incumbent=1, rank=1),
        seen("star", 0.20, 0.25, 40, 150, incumbent=4, rank=2),
        seen("new", 0.15, 0.20, 20, 110, rank=3),
        seen("old", 0.09, 0.10, 20, 190, incumbent=2, rank=4),
        seen("mid", 0.05, 0.06, 2, 180, incumbent=3),
        seen("rare", 0.08, 0.30, 1, 2),
        seen("blank", 0.02, 0.03, 0, 9),
    ]
    assert why(candidates, ANCHORED) == {
        "top": "stays: 90 clicks in 200 views; nothing below beats it",
        "star": "up 2, past old: 40 clicks in 150 views; lower bound 0.200, above the 0.100 at which old stays",
        "new": "enters at 3, past old: 20 clicks in 110 views; lower bound 0.150, above the 0.100 at which old stays",
        "old": "down 2: 20 clicks in 190 views; 2 items rose past it",
        "mid": "left the list: 2 clicks in 180 views; pushed out by the items that rose",
        "rare": "not listed: 1 click in 2 views, too little to trust; lower bound 0.080, not above the 0.100 at which "
        "old stays",
        "blank": "not listed: no click in 9 views; only a clicked item rises",
    }


def test_an_item_may_rise_past_one_and_be_passed_by_others() -> None:
    candidates = [
        seen("c", 0.5, 0.6, 50, 90, incumbent=3, rank=1),
        seen("d", 0.4, 0.5, 40, 90, incumbent=4, rank=2),
        seen("b", 0.3, 0.4, 30, 90, incumbent=2, rank=3),
        seen("a", 0.1, 0.2, 10, 90, incumbent=1, rank=4),
    ]
    told = why(candidates, ANCHORED)
    assert told["b"] == "down 1: 30 clicks in 90 views; it rose past a; 2 items rose past it"
    assert told["a"] == "down 3: 10 clicks in 90 views; 3 items rose past it"


# --- from a policy and its counts -------------------------------------------------------------------------------------


@settings(max_examples=12)
@given(lists=linked_logs())
def test_its_numbers_are_those_of_a_plain_loop_over_the_log(lists: list[LoggedList]) -> None:
    if not any(any(clicks) for _, _, clicks in lists):
        return
    policy = prudent.rank(count(lists), model="pbm")
    for context in policy:
        explanation = policy.explain(context)
        assert explanation.prudent == policy[context]
        order = reference.production_order(lists, context)
        assert explanation.incumbent == order[: policy.manifest.settings["length"]]
        shown: Counter[object] = Counter()
        clicked: Counter[object] = Counter()
        for of, items, clicks in lists:
            if of == context:
                shown.update(items)
                clicked.update(dict(zip(items, clicks, strict=True)))
        assert {one.item: one.impressions for one in explanation.candidates} == dict(shown)
        assert {one.item: one.clicks for one in explanation.candidates} == {item: clicked[item] for item in shown}
        for one in explanation.candidates:
            assert one.lower is not None
            assert one.upper is not None
            assert one.lower <= one.upper


# Everywhere b is clicked most, but a stands above it most of the time; d was shown once, and clicked.
LISTS: list[LoggedList] = [
    *[("shoes", ("a", "b", "c"), clicks) for clicks in [(1, 1, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1)] * 15],
    *[("shoes", ("b", "a", "c"), clicks) for clicks in [(1, 1, 0), (1, 0, 0), (1, 0, 0)] * 10],
    *[("shoes", ("c", "b", "a"), clicks) for clicks in [(0, 1, 0), (0, 1, 1), (0, 1, 0)] * 10],
    ("shoes", ("a", "d", "c"), (0, 1, 0)),
    *[("boots", ("x", "y"), (1, 0))] * 5,
]
BOUND = "bayes(delta=0.2)"


@pytest.fixture(scope="module")
def counts() -> prudent.Counts:
    return count(LISTS)


@pytest.fixture(scope="module")
def policy(counts: prudent.Counts) -> prudent.Policy:
    return prudent.rank(counts, model="pbm", bound=BOUND, length=2)


def test_explains_a_list(policy: prudent.Policy) -> None:
    explanation = policy.explain("shoes")
    assert explanation.prudent == ["b", "a"]
    assert explanation.incumbent == ["a", "b"]
    assert [one.item for one in explanation.fallen_for] == ["d"]
    assert explanation.fallen_for[0].why.endswith(": clicked 1 of 1: too little to trust")
    assert explanation.notes == ()
    assert explanation.made_by == {"model": "pbm", "bound": BOUND}


def test_unknown_contexts_are_told_from_known_ones(policy: prudent.Policy) -> None:
    with pytest.raises(UnknownContextError, match="Did you mean 'shoes'"):
        policy.explain("shoe")


def test_a_policy_from_a_file_says_what_it_does_not_know(
    policy: prudent.Policy, counts: prudent.Counts, tmp_path: Path
) -> None:
    policy.write(tmp_path / "policy.parquet", tmp_path / "scores.parquet")
    lists = prudent.Policy.read(tmp_path / "policy.parquet")
    scored = prudent.Policy.read(tmp_path / "policy.parquet", scores=tmp_path / "scores.parquet")
    poor = lists.explain("shoes")
    assert [note[:30] for note in poor.notes] == ["Only listed items have scores:", "The incumbent lists and their "]
    assert all(one.rank and one.clicks is None and one.upper is not None for one in poor.candidates)
    assert {one.item for one in lists.explain("shoes", counts=counts).candidates} == {"a", "b", "c", "d"}
    assert scored.explain("shoes", counts=counts) == replace(policy.explain("shoes"), worth="")
    assert scored.scores().fetchall() == policy.scores().fetchall()


def test_the_counts_of_another_log_tell_what_was_shown_and_no_more(policy: prudent.Policy) -> None:
    explanation = policy.explain("shoes", counts=count(LISTS[:80]))
    assert explanation.incumbent == ["a", "b"]
    assert all(one.clicks is None for one in explanation.candidates)
    assert {one.item: one.impressions for one in explanation.candidates}["d"] == 1
    assert "those of another log" in explanation.notes[0]


def test_a_method_without_bounds_has_no_intervals(counts: prudent.Counts) -> None:
    policy = prudent.rank_baseline(prudent.Log(table(LISTS)), "ips", length=2)
    explanation = policy.explain("shoes", counts=counts)
    assert all(one.lower is one.mean is one.upper is None for one in explanation.candidates)
    assert "ips has no bounds" in explanation.notes[0]
    assert explanation.prudent == policy["shoes"]


def test_an_estimate_has_no_interval(counts: prudent.Counts) -> None:
    explanation = prudent.rank(counts, model="pbm", bound="mle").explain("shoes")
    assert all(one.upper is None and one.lower == one.mean for one in explanation.candidates)
    assert "without a bound" in explanation.notes[0]


def test_a_policy_without_a_manifest_has_no_bound_to_speak_of(policy: prudent.Policy, tmp_path: Path) -> None:
    policy.write(tmp_path / "policy.parquet")
    remove_manifest(tmp_path / "policy.parquet")
    explanation = prudent.Policy.read(tmp_path / "policy.parquet").explain("shoes")
    assert explanation.prudent == policy["shoes"]
    assert "no manifest" in explanation.notes[0]


def test_withdrawn_items_and_new_ones(counts: prudent.Counts) -> None:
    eligible = {"context": ["shoes"] * 3, "item": ["b", "c", "e"]}
    policy = prudent.rank(counts, model="pbm", bound=BOUND, length=3, candidates=pa.table(eligible))
    explanation = policy.explain("shoes")
    told = {one.item: one.why for one in explanation.candidates}
    assert told["a"] == "left the list: no longer among the candidates"
    assert told["e"] == "new: never shown, scored by the prior alone"


def test_days_that_weigh_less(tmp_path: Path) -> None:
    for day, lists in (("2026-11-01", LISTS), ("2026-11-15", LISTS)):
        prudent.count(prudent.Log(table(lists)), to=tmp_path / "counts", day=day)
    policy = prudent.rank(prudent.Counts.read(tmp_path / "counts", half_life="7d"), model="pbm")
    weighed = {one.item: one for one in policy.explain("shoes").candidates}
    assert weighed["d"].clicks == pytest.approx(1.25)  # one today, one two half-lives ago
    assert weighed["a"].impressions == round(121 * 1.25)


def test_names_are_integers_where_they_were(tmp_path: Path) -> None:
    lists: list[Any] = [(7, (1, 2), (0, 1))] * 20 + [(7, (2, 1), (0, 1))] * 20
    policy = prudent.rank(count(lists), model="pbm")
    assert sorted(policy.explain(7).prudent) == [1, 2]
    with pytest.raises(PolicyError, match="contexts of the counts"):
        policy.explain(7, counts=count(LISTS))


def test_scores_must_be_scores_of_this_policy(policy: prudent.Policy, tmp_path: Path) -> None:
    policy.write(tmp_path / "policy.parquet", tmp_path / "scores.parquet")
    with pytest.raises(PolicyError, match="has no scores"):
        prudent.Policy.read(tmp_path / "policy.parquet", scores=tmp_path / "policy.parquet")
    (tmp_path / "text.parquet").write_text("no")
    with pytest.raises(PolicyError, match="Cannot read"):
        prudent.Policy.read(tmp_path / "policy.parquet", scores=tmp_path / "text.parquet")
    other = prudent.rank(count([(7, (1, 2), (0, 1))] * 20 + [(7, (2, 1), (0, 1))] * 20), model="pbm")
    other.write(tmp_path / "other.parquet", tmp_path / "other_scores.parquet")
    with pytest.raises(PolicyError, match="another type"):
        prudent.Policy.read(tmp_path / "policy.parquet", scores=tmp_path / "other_scores.parquet")


def test_looking_at_few_candidates_keeps_what_matters(policy: prudent.Policy, counts: prudent.Counts) -> None:
    (few,), (every,) = explain(policy, ["shoes"], counts, most=1), explain(policy, ["shoes"], counts)
    kept = {one.item for one in few.candidates}
    assert kept >= {*every.prudent, *every.incumbent, *(one.item for one in every.fallen_for)}
    assert few.prudent == every.prudent
    assert few.fallen_for == every.fallen_for


# --- how it shows -----------------------------------------------------------------------------------------------------

HOSTILE = "</td><script>alert(1)</script>\n\x1b[31m"


def test_prints_a_table(policy: prudent.Policy) -> None:
    printed = str(policy.explain("shoes")).splitlines()
    assert printed[0] == ("shoes by pbm and bayes(delta=0.2): expected clicks 1.347, at least 1.280 at a level of 90%")
    assert printed[1].split() == ["place", "before", "item", "lower", "mean", "upper", "clicks", "views", "why"]
    assert len(printed) == 2 + 4


def test_no_name_gets_into_the_markup_or_to_the_terminal() -> None:
    lists: list[Any] = [(HOSTILE, (HOSTILE, "b"), (0, 1))] * 20 + [(HOSTILE, ("b", HOSTILE), (0, 1))] * 20
    explanation = prudent.rank(count(lists), model="pbm").explain(HOSTILE)
    html = explanation._repr_html_()
    assert "<script" not in html
    assert "&lt;/td&gt;&lt;script&gt;" in html
    assert html.count("<svg") == 2
    assert "\x1b" not in str(explanation)
    spec = explanation.chart().to_dict()  # names are data in it, and data only
    assert HOSTILE in {row["item"] for row in next(iter(spec["datasets"].values()))}
    assert "script" not in str([layer["mark"] for layer in spec["vconcat"][0]["layer"]])


def test_a_long_table_ends_and_says_so() -> None:
    many = in_words(
        [one(str(i), rank=i, impressions=1, clicks=0, lower=1 / i, mean=1 / i) for i in range(1, 41)], BOUNDED
    )
    explanation = Explanation("q", many)
    assert "... and 20 more rows" in str(explanation)
    assert "... and 20 more rows" in explanation._repr_html_()


def test_a_chart_has_every_interval(policy: prudent.Policy) -> None:
    spec = policy.explain("shoes").chart().to_dict()
    rows = next(iter(spec["datasets"].values()))
    assert {row["item"] for row in rows} == {"a", "b", "c", "d"}
    assert all(row["lower"] <= row["upper"] for row in rows)


def test_a_chart_without_altair_says_what_to_install(policy: prudent.Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(PrudentError, match="pip install"):
        policy.explain("shoes").chart()
