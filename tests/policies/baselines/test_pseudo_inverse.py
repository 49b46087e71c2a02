import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from prudent.base.errors import LogError
from prudent.counts.lists import ListBatch as ShownArrays
from prudent.policies.baselines import PseudoInverse, fold, pseudo_inverse
from prudent.policies.baselines.pseudo_inverse import pseudo_solve, weights
from tests.policies.baselines import reference
from tests.policies.baselines.small import added, best, chosen, pairs_of
from tests.reference import LoggedList, longest
from tests.strategies import as_batch, logs


def test_one_list_shares_its_clicks_evenly() -> None:
    """Of all φ that add up to 2 the shortest; c at the second position was never shown and has 0."""
    lists: list[LoggedList] = [("x", ("a", "b"), (1, 1))]
    assert added(PseudoInverse(), lists) == {"x": pytest.approx([1, 1])}


def test_an_item_never_shown_there_beats_one_that_costs_clicks() -> None:
    """(a, b) has 2 clicks, (a, c) none: c at the second position costs what b there gains; a itself adds ⅔."""
    lists: list[LoggedList] = [("x", ("a", "b"), (1, 1)), ("x", ("a", "c"), (0, 0))]
    assert chosen(PseudoInverse(), lists) == {"x": ("a", "b")}
    assert added(PseudoInverse(), lists) == {"x": pytest.approx([2 / 3, 4 / 3])}
    assert best(PseudoInverse(), lists) == pytest.approx({("x", "a"): 2 / 3, ("x", "b"): 4 / 3, ("x", "c"): 0})


@given(logs())
def test_agrees_with_the_full_matrix(lists: list[LoggedList]) -> None:
    length, pairs = longest(lists), pairs_of(lists)
    totals = fold(as_batch(lists))
    actual, adds, scores = chosen(PseudoInverse(), lists), added(PseudoInverse(), lists), best(PseudoInverse(), lists)
    phi = {context: reference.pseudo_inverse(lists, context, length) for context in {c for c, _, _ in lists}}
    for pair, position, weight in zip(totals.placed.pair, totals.placed.position, weights(totals), strict=True):
        context, item = pairs[pair]
        assert weight == pytest.approx(phi[context][item, position + 1], abs=1e-9)
    for context, expected in phi.items():
        assert actual[context] == reference.greedy(lists, context, expected, length)
        places = enumerate(actual[context], start=1)
        assert adds[context] == pytest.approx([expected[item, k] for k, item in places], abs=1e-9)
        for item in reference.items_of(lists, context):
            most = max(expected[item, k] for k in range(1, length + 1))
            assert scores[context, item] == pytest.approx(most, abs=1e-9)


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 12))
def test_solves_what_has_no_inverse(seed: int, size: int, rank: int) -> None:
    """Also where y is not in the range of M, and where some rows weigh a million times others."""
    rng = np.random.default_rng(seed)
    root = rng.integers(-2, 3, (size, rank)) * 10.0 ** rng.integers(-1, 2, (size, 1))
    root[np.all(root == 0, axis=1), 0] = 1
    matrix, right = root @ root.T, rng.normal(size=size)
    share = np.linalg.eigvalsh(matrix) / np.trace(matrix)
    assume(not np.any((share > 1e-14) & (share < 1e-9)))  # there the two could disagree on the rank
    expected = np.linalg.pinv(matrix, rcond=1e-11, hermitian=True) @ right
    np.testing.assert_allclose(pseudo_solve(matrix, right), expected, atol=1e-6 * np.abs(expected).max(initial=1e-9))


def test_lists_shown_a_billion_times_do_not_drown_one_shown_once() -> None:
    """Interpolated whatever the weights: a then b has 1 click, b then a has 2, c then b none."""
    shown = ShownArrays(
        np.zeros(3, np.int64),
        np.array([[0, 1], [1, 0], [2, 1]]),
        np.array([[1, 0], [1, 1], [0, 0]]) > 0,
        np.array([10**9, 1, 10**9]),
    )
    totals = fold(shown)
    phi = np.zeros((3, 2))
    phi[totals.placed.pair, totals.placed.position] = weights(totals)
    assert phi[0, 0] + phi[1, 1] == pytest.approx(1)
    assert phi[1, 0] + phi[0, 1] == pytest.approx(2)
    assert phi[2, 0] + phi[1, 1] == pytest.approx(0)


def test_says_when_a_context_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pseudo_inverse, "LARGEST", 2)
    lists: list[LoggedList] = [("x", ("a",), (1,)), ("x", ("b",), (0,)), ("x", ("c",), (0,))]
    with pytest.raises(LogError, match="One context has 3 distinct lists of 3 items at positions"):
        chosen(PseudoInverse(), lists)
