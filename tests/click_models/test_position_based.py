"""The position-based model against plain loops."""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from prudent.base.arrays import FloatArray
from prudent.base.errors import LogError, NotIdentifiedError, PrudentWarning, UsageError
from prudent.click_models import Auto, DependentClick, PositionBased, examination
from prudent.click_models.examination import LINK, MIN_IMPRESSIONS, per_position, separate_positions
from tests import reference
from tests.reference import LoggedList
from tests.strategies import by_name, linked_logs, logs, quick_counts

ONE: list[LoggedList] = [("q", ("a",), (1,))]
NO_CLICK: list[LoggedList] = [*[("q", ("a", "b"), (0, 0))] * 30, *[("q", ("b", "a"), (0, 0))] * 30]
TOP_ONLY: list[LoggedList] = [*[("q", ("a", "b"), (1, 0))] * 30, *[("q", ("b", "a"), (1, 0))] * 30]

examinations = st.lists(st.sampled_from([0.05, 0.5, 1.0]) | st.floats(0.01, 1), min_size=5, max_size=6)


# --- evidence for given p -----------------------------------------------------------------------------------------


def test_by_hand() -> None:
    lists: list[LoggedList] = [("q", ("a", "b"), (1, 0)), ("q", ("b", "a"), (0, 0)), ("q", ("a",), (0,))]
    examined = PositionBased(examination=(1, 0.5)).evidence(quick_counts(lists))
    assert examined.positive.tolist() == [1, 0]
    assert examined.negative.tolist() == [1.5, 1.5]  # a: 1 + ½ + 1 trials, b: ½ + 1
    weighted = PositionBased(counts="weighted", examination=(1, 0.5)).evidence(quick_counts(lists))
    assert weighted.positive.tolist() == [1, 0]
    assert weighted.negative.tolist() == [3, 3]  # a: one miss at position 2 counts double, one at 1; b likewise


def test_more_clicks_than_trials_leave_no_negative_one() -> None:
    evidence = PositionBased(examination=(0.1,)).evidence(quick_counts(ONE))
    assert (evidence.positive.tolist(), evidence.negative.tolist()) == ([1], [0])


@settings(max_examples=150, deadline=None)
@given(lists=logs(), examination=examinations)
def test_given_examination_equals_a_plain_loop(lists: list[LoggedList], examination: list[float]) -> None:
    counts = quick_counts(lists)
    for kind, loop in (("examined", reference.examined), ("weighted", reference.weighted)):
        model = PositionBased(counts=kind, examination=tuple(examination))  # type: ignore[arg-type]
        fitted = model.fit(counts.cells, counts.cells.positions)
        evidence = fitted.evidence(counts.cells)
        actual, expected = by_name(lists, evidence.positive, evidence.negative), loop(lists, examination)
        for pair in expected:
            assert actual[pair] == pytest.approx(expected[pair], rel=1e-9, abs=1e-9)
        assert fitted.examination.tolist() == examination[: reference.longest(lists)]
        assert fitted.parameters == {}


@settings(max_examples=100, deadline=None)
@given(lists=logs())
def test_per_position_equals_a_plain_loop(lists: list[LoggedList]) -> None:
    pairs = sorted(reference.impressions(lists))
    columns = per_position(quick_counts(lists).cells)
    actual = {(pairs[pair], k): (n, clicks) for pair, k, n, clicks in zip(*columns, strict=True)}
    expected = reference.per_position(lists)
    assert actual == {(pair, k): cell for pair, cells in expected.items() for k, cell in cells.items()}


def fitted_examination(model: PositionBased, lists: list[LoggedList]) -> FloatArray:
    cells = quick_counts(lists).cells
    return model.fit(cells, cells.positions).examination


# --- fitting p ----------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@example(NO_CLICK, 0.01)
@example(ONE, 0.01)
@given(lists=linked_logs(), smooth=st.sampled_from([0.1, 1.0, 3.0]))
def test_em_equals_a_plain_loop(lists: list[LoggedList], smooth: float) -> None:
    """Newton's method against expectation-maximisation: other ways to the one maximum.

    Both stop short of it, by less than 1e-4. EM needs thousands of rounds for a small `smooth`; see the next test.
    """
    evidence = PositionBased(smooth=smooth).evidence(quick_counts(lists))
    examination = evidence.fitted.parameters["examination"]
    np.testing.assert_allclose(examination, reference.examination_em(lists, smooth), atol=1e-4)
    actual = by_name(lists, evidence.positive, evidence.negative)
    for pair, value in reference.examined(lists, examination.tolist()).items():
        assert actual[pair] == pytest.approx(value, abs=1e-9)


def a_simulated_log(lists: int = 4_000, seed: int = 3) -> list[LoggedList]:
    rng = np.random.default_rng(seed)
    theta, p = rng.beta(1.2, 5, 20), np.arange(1, 7) ** -0.7
    shown: list[LoggedList] = []
    for _ in range(lists):
        items = np.argsort(-np.log(theta) - rng.gumbel(size=20))[: rng.integers(4, 7)]
        clicks = rng.random(len(items)) < theta[items] * p[: len(items)]
        shown.append(("q", tuple(items.tolist()), tuple(clicks.astype(int).tolist())))
    return shown


def test_em_equals_a_plain_loop_at_the_default_smoothing() -> None:
    lists = a_simulated_log()
    actual = fitted_examination(PositionBased(), lists)
    np.testing.assert_allclose(actual, reference.examination_em(lists, smooth=0.01), atol=1e-4)


@settings(max_examples=40, deadline=None)
@example(NO_CLICK)
@example(ONE)
@example(TOP_ONLY)
@given(lists=linked_logs())
def test_als_equals_a_plain_loop(lists: list[LoggedList]) -> None:
    expected = reference.examination_als(lists)
    assume(expected is not None)
    assert fitted_examination(PositionBased(solver="als"), lists) == pytest.approx(expected, abs=1e-4)


def test_als_equals_a_plain_loop_on_a_longer_log() -> None:
    lists = a_simulated_log()
    actual = fitted_examination(PositionBased(solver="als"), lists)
    assert actual == pytest.approx(reference.examination_als(lists), abs=1e-4)


@pytest.mark.parametrize("solver", ["em", "als"])
def test_recovers_p(solver: str) -> None:
    """With 40,000 lists the largest error over seeds 0 to 9 is .018 (em) or .022 (als); the seed here is 3."""
    lists = a_simulated_log(40_000)
    actual = fitted_examination(PositionBased(solver=solver), lists)  # type: ignore[arg-type]
    np.testing.assert_allclose(actual, np.arange(1, 7) ** -0.7, atol=0.025)


@pytest.mark.parametrize("solver", ["em", "als"])
def test_rare_items_have_no_say_in_p(solver: str) -> None:
    """Five items shown nine times each, at the last position, and always clicked, leave p where it was."""
    assert MIN_IMPRESSIONS == 10
    lists = [(c, tuple(map(str, items)), clicks) for c, items, clicks in a_simulated_log(1_000)]
    five: list[LoggedList] = [("r", ("a", "b", "c", "d", "e", f"rare {i}"), (0, 0, 0, 0, 0, 1)) for i in range(5)]
    with_them = five * 9
    without = [(context, items[:5], clicks[:5]) for context, items, clicks in with_them]
    model = PositionBased(solver=solver)  # type: ignore[arg-type]
    actual, expected = (fitted_examination(model, lists + more) for more in (with_them, without))
    np.testing.assert_allclose(actual, expected, atol=1e-9)


def test_weighted_counts_need_a_p_above_zero() -> None:
    with pytest.raises(LogError, match=r"solver=als puts at 0 for \{2\}.* Use counts=examined"):
        PositionBased(counts="weighted", solver="als").evidence(quick_counts(TOP_ONLY))
    PositionBased(solver="als").evidence(quick_counts(TOP_ONLY))
    PositionBased(counts="weighted").evidence(quick_counts(TOP_ONLY))


def test_scaled_to_a_maximum_of_one_wherever_it_is() -> None:
    """Where users look at the second position first."""
    lists: list[LoggedList] = [
        *[("q", ("a", "b"), (0, 1))] * 40,
        *[("q", ("b", "a"), (0, 1))] * 40,
        *[("q", ("a", "b"), (1, 0))] * 20,
        *[("q", ("b", "a"), (1, 0))] * 20,
    ]
    for model in (PositionBased(solver="em"), PositionBased(solver="als")):
        assert fitted_examination(model, lists) == pytest.approx([0.5, 1], abs=1e-3)


# --- identification -----------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(lists=logs())
def test_groups_of_positions_equal_a_plain_loop(lists: list[LoggedList]) -> None:
    cells = quick_counts(lists).cells
    pair, position, shown, _ = per_position(cells)
    groups = separate_positions(pair, position, shown, cells.positions)
    expected = reference.position_groups(lists)
    assert sorted(sorted(group) for group in groups) == expected
    if len(expected) > 1:
        named = " and ".join("{" + ", ".join(map(str, group)) + "}" for group in groups)
        with pytest.raises(NotIdentifiedError, match="pbm is not identified") as refusal:
            PositionBased().evidence(quick_counts(lists))
        alone = all(len(group) == 1 for group in groups)
        assert ("no two positions can be compared" if alone else named) in str(refusal.value)
        advice = str(refusal.value).partition(". ")[2]
        assert "prudent compare" in advice
        assert "dcm" not in advice, "nothing speaks for it"
        PositionBased(examination=(0.5,) * 5).evidence(quick_counts(lists))  # known, it needs no items that move
    else:
        PositionBased().evidence(quick_counts(lists))


def swapped(times: int) -> list[LoggedList]:
    return [*[("q", ("a", "b"), (1, 0))] * 50, *[("q", ("b", "a"), (0, 1))] * times]


def test_an_item_links_two_positions_from_twenty_impressions_at_both() -> None:
    assert LINK == 20
    PositionBased().evidence(quick_counts(swapped(20)))
    with pytest.raises(NotIdentifiedError, match="no two positions can be compared"):
        PositionBased().evidence(quick_counts(swapped(19)))


def test_the_same_item_in_another_context_links_nothing() -> None:
    """θ differs between contexts, so its clicks there compare nothing."""
    lists: list[LoggedList] = [*[("q", ("a", "b"), (1, 0))] * 50, *[("r", ("b", "a"), (0, 1))] * 50]
    with pytest.raises(NotIdentifiedError):
        PositionBased().evidence(quick_counts(lists))


def test_links_go_through_other_positions() -> None:
    lists: list[LoggedList] = [
        *[("q", ("a", "b", "c", "d"), (1, 0, 1, 0))] * 20,
        *[("q", ("b", "a", "c", "d"), (1, 0, 0, 1))] * 20,
        *[("r", ("a", "b", "c", "d"), (1, 0, 0, 0))] * 20,
        *[("r", ("a", "d", "c", "b"), (1, 0, 0, 1))] * 20,
    ]
    with pytest.raises(NotIdentifiedError, match=r"\{1, 2, 4\} and \{3\}"):
        PositionBased().evidence(quick_counts(lists))
    lists += [("r", ("a", "c", "b", "d"), (0, 1, 1, 0))] * 20
    assert len(fitted_examination(PositionBased(), lists)) == 4


def test_links_join_groups_and_not_only_positions() -> None:
    """In q item a stands at 1 and 3, in r item b at 2 and 3; everything else keeps its place."""
    lists: list[LoggedList] = [
        *[("q", ("a", "w", "x", "y"), (1, 0, 1, 0))] * 20,
        *[("q", ("v", "w", "a", "y"), (1, 0, 1, 0))] * 20,
        *[("r", ("v", "b", "x", "y"), (1, 0, 1, 0))] * 20,
        *[("r", ("v", "w", "b", "y"), (1, 0, 1, 0))] * 20,
    ]
    assert reference.position_groups(lists) == [[1, 2, 3], [4]]
    with pytest.raises(NotIdentifiedError, match=r"\{1, 2, 3\} and \{4\}"):
        PositionBased().evidence(quick_counts(lists))


# --- auto ---------------------------------------------------------------------------------------------------------


def test_auto_is_pbm_where_it_is_identified() -> None:
    counts = quick_counts(swapped(30))
    evidence, expected = Auto().evidence(counts), PositionBased().evidence(counts)
    assert evidence.fitted.model == PositionBased()
    np.testing.assert_array_equal(evidence.negative, expected.negative)


def test_auto_is_dcm_elsewhere_and_says_why() -> None:
    counts = quick_counts(swapped(0))
    with pytest.warns(PrudentWarning, match="pbm is not identified: .* Using dcm instead"):
        evidence = Auto().evidence(counts)
    assert evidence.fitted.model == DependentClick()
    np.testing.assert_array_equal(evidence.negative, DependentClick().evidence(counts).negative)


# --- settings -----------------------------------------------------------------------------------------------------


def test_too_few_examination_probabilities() -> None:
    with pytest.raises(UsageError, match="examination has 1 values, but the log shows lists of up to 2 positions"):
        PositionBased(examination=(1,)).evidence(quick_counts(NO_CLICK))


def test_dense_and_sparse_products_have_the_same_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    pair, position = np.nonzero(random.random((300, 6)) < 0.6)
    shown = random.integers(5, 40, len(pair))
    clicked = random.binomial(shown, random.beta(1.2, 5, 300)[pair] * 0.8**position).astype(float)
    found = []
    for few in (examination.FEW, 0):
        monkeypatch.setattr(examination, "FEW", few)
        found.append(examination.fit_em(pair, position + 1, shown.astype(float), clicked, 6, 0.01))
    for one, other in zip(*found, strict=True):
        assert one.tobytes() == other.tobytes()


def test_a_sample_of_the_pairs_tells_the_same_examination(monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 of 8,000 pairs, of 60 impressions each: p has a standard error of about .01, so .04 is four of them."""
    random = np.random.default_rng(3)
    true = np.array([1.0, 0.6, 0.4])
    pair, position = np.repeat(np.arange(8_000), 3), np.tile([1, 2, 3], 8_000)
    shown = np.full(len(pair), 20.0)
    attraction = random.beta(1.2, 5, 8_000)[pair]
    clicked = random.binomial(20, attraction * true[position - 1]).astype(float)
    everything = examination.fit_em(pair, position, shown, clicked, 3, 0.01)[0]
    monkeypatch.setattr(examination, "MOST_PAIRS", 2_000)
    sample = examination.fit_em(pair, position, shown, clicked, 3, 0.01)[0]
    assert sample == pytest.approx(everything, abs=0.04)
    assert not np.array_equal(sample, everything)
    assert np.array_equal(sample, examination.fit_em(pair, position, shown, clicked, 3, 0.01)[0]), "the same every time"
