"""The user browsing model against plain loops."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import NotIdentifiedError, UsageError
from prudent.bounds import Bayes
from prudent.click_models import PositionBased, UserBrowsing
from prudent.click_models.browsing_fit import RARE, group_states
from prudent.click_models.user_browsing import FittedUserBrowsing
from prudent.click_models.world import clicked, draw, make_world
from prudent.counts.lists import ListBatch
from tests import reference
from tests.reference import LoggedList
from tests.strategies import by_name, linked_logs, logs, quick_counts

BY_POSITION = np.repeat(np.arange(4)[:, None], 4, axis=1)


def with_rows(gamma: FloatArray) -> FittedUserBrowsing:
    return UserBrowsing(examination=tuple(map(tuple, gamma.tolist()))).typical(len(gamma))


def random_rows(positions: int, seed: int) -> FloatArray:
    return np.tril(np.random.default_rng(seed).random((positions, positions)))


# --- given γ ------------------------------------------------------------------------------------------------------


def test_by_hand() -> None:
    lists: list[LoggedList] = [("q", ("a", "b"), (1, 0)), ("q", ("b", "a"), (0, 0)), ("q", ("a",), (0,))]
    evidence = UserBrowsing(examination=((1,), (0.5, 0.75))).evidence(quick_counts(lists))
    assert evidence.positive.tolist() == [1, 0]
    assert evidence.negative.tolist() == [1.5, 1.75]  # a: 1 + ½ + 1 trials, b: ¾ below a click, and 1
    assert evidence.skips is not None
    assert evidence.skips.chance.tolist() == [1, 0.5, 1, 0.75]
    assert evidence.spread is None


@settings(max_examples=100, deadline=None)
@given(lists=logs(), seed=st.integers(0, 99))
def test_evidence_equals_a_plain_loop(lists: list[LoggedList], seed: int) -> None:
    rows = random_rows(6, seed)
    evidence = UserBrowsing(examination=tuple(map(tuple, rows.tolist()))).evidence(quick_counts(lists))
    actual, expected = (
        by_name(lists, evidence.positive, evidence.negative),
        reference.browsing_evidence(lists, rows.tolist()),
    )
    for pair, value in expected.items():
        assert actual[pair] == pytest.approx(value, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_value_and_likelihood_equal_plain_loops(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, theta = random_rows(6, seed), random.random((20, 6))
    clicks = random.random((20, 6)) < 0.4
    fitted = with_rows(rows)
    given_above = fitted.predict(theta, clicks)
    likelihood = np.where(clicks, given_above, 1 - given_above).prod(axis=1)
    for k in range(20):
        assert fitted.value(theta[k]) == pytest.approx(reference.expected_clicks(theta[k], rows.tolist()), abs=1e-12)
        assert likelihood[k] == pytest.approx(
            reference.browsing_likelihood(theta[k], clicks[k], rows.tolist()), abs=1e-12
        )


def test_with_the_same_examination_below_any_click_it_is_pbm() -> None:
    p = np.array([1, 0.6, 0.4, 0.3])
    ubm, pbm = with_rows(np.tril(np.repeat(p[:, None], 4, axis=1))), PositionBased(examination=tuple(p)).typical(4)
    theta = np.random.default_rng(0).random((50, 4))
    np.testing.assert_allclose(ubm.predict(theta), pbm.predict(theta), atol=1e-12)
    np.testing.assert_allclose(ubm.value(theta, "any-click"), pbm.value(theta, "any-click"), atol=1e-12)


# --- the order of a list ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_order_equals_brute_force(size: int) -> None:
    """For any γ, also where the best order is not from the top down; swaps alone miss one in a hundred."""
    for seed in range(10):
        fitted = with_rows(random_rows(size, seed))
        scores = -np.sort(-np.random.default_rng(seed).random((5, size)), axis=1)
        placed = placed_by(fitted, scores)
        best = np.max([fitted.value(scores[:, order]) for order in permutations(range(size))], axis=0)
        np.testing.assert_allclose(fitted.value(placed), best, atol=1e-10)


def test_no_swap_helps_a_longer_list() -> None:
    fitted = with_rows(random_rows(8, 3))
    scores = -np.sort(-np.random.default_rng(4).random((10, 8)), axis=1)
    placed = placed_by(fitted, scores)
    value = fitted.value(placed)
    assert (value > fitted.value(scores)).all()
    for a in range(8):
        for b in range(a):
            order = np.arange(8)
            order[[a, b]] = b, a
            assert (fitted.value(placed[:, order]) <= value + 1e-9).all()


def test_fitted_examination_does_not_reorder_lists() -> None:
    fitted = with_rows(random_rows(5, 1))
    scores = -np.sort(-np.random.default_rng(0).random((5, 5)), axis=1)
    assert (fitted.place(scores) != np.arange(5)).any()
    learned = replace(fitted, learned=True)
    assert (learned.place(scores) == np.arange(5)).all()
    assert (learned.as_truth.place(scores) == fitted.place(scores)).all()


def placed_by(fitted: FittedUserBrowsing, scores: FloatArray) -> FloatArray:
    placed = np.zeros_like(scores)
    np.put_along_axis(placed, fitted.place(scores), scores, axis=1)
    return placed


# --- fitting γ ----------------------------------------------------------------------------------------------------


def a_simulated_log(lists: int, length: int, *, contexts: int = 3, seed: int = 5) -> tuple[ListBatch, FloatArray]:
    """Lists with clicks of typical users, and the true attraction of every pair."""
    world = make_world("ubm", contexts=contexts, items=(length + 2, length + 6), length=length, zipf=0, seed=seed)
    items = np.concatenate([chunk.items for chunk in draw(world, lists, seed=seed + 1)])
    return clicked(world, items, np.random.default_rng(seed + 2)), world.attraction


def as_loops(lists: ListBatch) -> list[LoggedList]:
    return [
        (int(lists.context[items[0]]), tuple(items), tuple(map(int, clicks)))
        for items, clicks in zip(lists.items.tolist(), lists.clicks.tolist(), strict=True)
    ]


def test_fit_equals_a_plain_loop() -> None:
    """Newton's method against expectation-maximisation, both for the same groups of states."""
    lists, _ = a_simulated_log(3_000, 3)
    fitted = UserBrowsing().fit(lists.cells, 3)
    assert fitted.group is not None
    group = [row[: k + 1] for k, row in enumerate(fitted.group.tolist())]
    expected = np.array(reference.browsing_em(as_loops(lists), group, smooth=0.01))
    assert len(expected) == 6, "every state has its own γ"
    for k, row in enumerate(group):
        np.testing.assert_allclose(fitted.examination[k, : k + 1], expected[row], atol=1e-4)


@settings(max_examples=25, deadline=None)
@given(lists=linked_logs())
def test_fit_of_any_log_gives_probabilities(lists: list[LoggedList]) -> None:
    cells = quick_counts(lists).cells
    fitted = UserBrowsing().fit(cells, cells.positions)
    assert fitted.examination.max() == 1
    assert ((fitted.examination >= 0) & (fitted.examination <= 1)).all()
    assert (fitted.examination[np.triu_indices(cells.positions, 1)] == 0).all()


@pytest.mark.parametrize("length", [4, 10])
def test_recovers_examination(length: int) -> None:
    """30,000 lists: errors of log γ in standard errors have a spread of about one, and none is above four."""
    lists, _ = a_simulated_log(30_000, length)
    fitted = UserBrowsing().fit(lists.cells, length)
    true = UserBrowsing().typical(length).examination
    assert fitted.group is not None
    assert fitted.covariance is not None
    own = np.bincount(fitted.group[np.tri(length, dtype=bool)])[fitted.group] == 1
    own &= np.tri(length, dtype=bool)
    scale = np.argmax(fitted.examination.ravel())
    error = np.log(fitted.examination[own] / true[own] * true.ravel()[scale])
    z = error / np.maximum(1e-3, np.sqrt(fitted.covariance.diagonal()[fitted.group[own]]))
    assert own.sum() >= 10
    assert np.abs(z).max() < 4
    assert 0.4 < np.sqrt(np.mean(z**2)) < 1.6


def test_spread_equals_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variance of log Σγ: shares of the groups times their covariance, a few pairs at a time."""
    monkeypatch.setattr("prudent.click_models.thinned_evidence._PLACES", 40)
    lists, _ = a_simulated_log(2_000, 3)
    fitted = UserBrowsing().fit(lists.cells, 3)
    evidence = fitted.evidence(lists.cells)
    assert fitted.group is not None
    assert fitted.covariance is not None
    assert evidence.spread is not None
    assert evidence.spread.any()
    cells = lists.cells
    for pair in np.flatnonzero(evidence.spread):
        shares = [0.0] * len(fitted.covariance)
        for at in np.flatnonzero(cells.pair == pair):
            k, j = cells.position[at] - 1, cells.prev[at]
            shares[fitted.group[k, j]] += cells.n[at] * fitted.examination[k, j] / evidence.expected[pair]
        expected = sum(
            a * b * fitted.covariance[i, j] for i, a in enumerate(shares) for j, b in enumerate(shares) if a and b
        )
        assert evidence.spread[pair] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("length", [4, 10])
def test_coverage(length: int) -> None:
    """Of pairs with 100 impressions, the 5 % quantile is above the truth for 3 to 7 %.

    100,000 lists of 100 contexts, about 1,000 and 1,800 pairs: the share has a standard error of .7 and .5 %.
    """
    lists, truth = a_simulated_log(100_000, length, contexts=100)
    evidence = UserBrowsing().fit(lists.cells, length).evidence(lists.cells)
    often = evidence.impressions >= 100
    scores = Bayes(delta=0.1, alpha=1.2, beta=5.0).score(evidence)
    above = np.mean(scores.lower[often] > truth[often])
    assert often.sum() > 500
    assert 0.03 <= above <= 0.07


# --- which states share a γ ---------------------------------------------------------------------------------------


def groups(lists: list[LoggedList]) -> IntArray:
    cells = quick_counts(lists).cells
    return group_states(cells, cells.positions)


def rotated(times: int, clicks: Sequence[tuple[int, ...]]) -> list[LoggedList]:
    """Each of the items at each of the positions, with each of these clicks so many times."""
    items = ("a", "b", "c", "d")
    orders = [items[turn:] + items[:turn] for turn in range(4)]
    return [("q", order, pattern) for order in orders for pattern in clicks for _ in range(times)]


OFTEN = [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (1, 1, 1, 1)]


def test_frequent_states_have_their_own_examination() -> None:
    """(4, 1), in a third of the lists of (4, 3), has as many clicks as it takes."""
    assert groups(rotated(100, OFTEN)).tolist() == [[0, 0, 0, 0], [1, 4, 1, 1], [2, 7, 5, 2], [3, 9, 8, 6]]


@pytest.mark.parametrize("times", [12, 15, 20, 30, 60, 100])
def test_rare_states_share_one_with_their_neighbours(times: int) -> None:
    """Without a click above from the top down, below one by distance and then by position."""
    lists = rotated(times, OFTEN)
    clicks = reference.browsing_clicks(lists)
    first = [(k, 0) for k in range(1, 5)]
    second = sorted(((k, j) for k in range(2, 5) for j in range(1, k)), key=lambda state: (state[0] - state[1], state))
    group = groups(lists)
    for row, start in ((first, 0), (second, int(group[:, 0].max()) + 1)):
        assert [int(group[k - 1, j]) - start for k, j in row] == reference.pooled(
            [clicks[state] for state in row], RARE
        )


def test_without_clicks_above_positions_are_all_that_counts() -> None:
    np.testing.assert_array_equal(groups(rotated(100, [(0, 0, 0, 1), (0, 0, 0, 0)])), BY_POSITION)


def test_few_lists_are_fitted_as_by_pbm() -> None:
    lists = rotated(5, OFTEN)
    cells = quick_counts(lists).cells
    np.testing.assert_array_equal(group_states(cells, 4), BY_POSITION)
    fitted, pbm = UserBrowsing().fit(cells, 4), PositionBased().fit(cells, 4)
    np.testing.assert_allclose(fitted.examination, np.tril(np.repeat(pbm.examination[:, None], 4, axis=1)), atol=1e-9)


def test_states_that_no_item_links_join_others() -> None:
    """Below a click, each list has items of its own: 200 clicks, and no item with 20 impressions above them."""
    lists = rotated(100, [(0, 0, 0, 0), (0, 1, 0, 0), (1, 0, 0, 0)])
    lists += [("q", ("a", "b", "c", f"new {i}"), (0, 0, 1, 1)) for i in range(200)]
    linked = groups(lists)
    alone = groups([(context, items[:3], clicks[:3]) for context, items, clicks in lists])
    assert linked[3, 3] in linked[:3][np.tri(3, 4, dtype=bool)], "it shares the γ of another state"
    assert alone.max() >= 4


def test_refuses_positions_that_share_no_item() -> None:
    lists: list[LoggedList] = [("q", ("a", "b"), (1, 0)), ("q", ("a", "b"), (0, 1))] * 50
    with pytest.raises(NotIdentifiedError, match=r"ubm is not identified: no two positions can be compared") as refusal:
        UserBrowsing().evidence(quick_counts(lists))
    assert refusal.value.parameter == "examination"


# --- settings -----------------------------------------------------------------------------------------------------


def test_rows_may_be_a_square_as_in_a_manifest() -> None:
    square = prudent.click_models.parse("ubm(examination=[[1, 0], [0.6, 0.9]])")
    assert square == UserBrowsing(examination=((1.0,), (0.6, 0.9)))
    assert str(square) == "ubm(examination=[[1], [0.6, 0.9]])"
    assert square.typical(2).pinned == square


def test_curves_of_a_manifest_follow_the_distance_to_the_last_click() -> None:
    rows = [[1.0, 0.0, 0.0], [0.6, 0.9, 0.0], [0.4, 0.5, 0.8]]
    assert UserBrowsing().curves({"examination": rows, "prior": {}}) == {
        "γ, no click above": [1.0, 0.6, 0.4],
        "γ, click 1 above": [None, 0.9, 0.8],
        "γ, click 2 above": [None, None, 0.5],
    }
    assert PositionBased().curves({"examination": [1.0, 0.5], "prior": {}}) == {"examination": [1.0, 0.5]}
    with pytest.raises(UsageError, match="write a list of probabilities"):
        UserBrowsing().curves({"examination": {"a": "manifest made elsewhere"}})


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("[1, 0.5]", "row 1 at least 1 values"),
        ("[[1], [0.5]]", "row 2 at least 2 values"),
        ("[[1], [0.5, 1.5]]", "must be probabilities between 0 and 1; it is [0.5, 1.5]"),
    ],
)
def test_refuses_rows_that_do_not_fit(written: str, complaint: str) -> None:
    with pytest.raises(UsageError) as refusal:
        prudent.click_models.parse(f"ubm(examination={written})")
    assert complaint in str(refusal.value)


def test_refuses_lists_that_are_too_long_for_pairs_of_positions() -> None:
    with pytest.raises(UsageError, match="up to 1,000 positions, and these have 1,001"):
        UserBrowsing().typical(1_001)
    with pytest.raises(UsageError, match="examination has 2 values, but the log shows lists of up to 3"):
        UserBrowsing(examination=((1,), (0.5, 0.5))).evidence(quick_counts([("q", ("a", "b", "c"), (1, 0, 0))]))
