import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prudent.counts.lists import ListBatch as ShownArrays
from prudent.policies.baselines import ItemPositionIps, fold
from tests.policies.baselines import reference
from tests.policies.baselines.small import added, best, chosen
from tests.reference import LoggedList, longest
from tests.strategies import logs

clips = st.sampled_from([0.5, 1, 2, 5, 10, 50, float("inf")])


def test_the_best_items_of_two_positions_may_be_one_and_the_same() -> None:
    """The paper would show a twice; taken greedily from the top it would leave b, worth nothing, to the second."""
    lists: list[LoggedList] = [
        *[("x", ("a", "b"), (1, 0))] * 10,
        *[("x", ("b", "a"), (1, 1))] * 9,
        ("x", ("b", "a"), (0, 0)),
    ]
    assert chosen(ItemPositionIps(), lists) == {"x": ("b", "a")}
    assert added(ItemPositionIps(), lists) == {"x": pytest.approx([0.9, 0.9])}


def test_without_clicks_it_is_what_was_shown_most() -> None:
    lists: list[LoggedList] = [*[("x", ("b", "a"), (0, 0))] * 3, ("x", ("a", "b"), (0, 0)), ("x", ("c", "a"), (0, 0))]
    assert chosen(ItemPositionIps(), lists) == {"x": ("b", "a")}


def test_equal_clicks_go_by_showings() -> None:
    """At clip=1 clicks are all that counts."""
    lists: list[LoggedList] = [
        *[("x", ("b",), (0,))] * 3,
        ("x", ("b",), (1,)),
        ("x", ("a",), (1,)),
        ("x", ("c",), (0,)),
    ]
    assert chosen(ItemPositionIps(1), lists) == {"x": ("b",)}
    assert chosen(ItemPositionIps(), lists) == {"x": ("a",)}


def test_items_that_were_never_shown_fill_what_is_left() -> None:
    context = np.array([0, 0, 0, 1, 1])
    shown = ShownArrays(context, np.array([[2, -1], [2, -1]]), np.zeros((2, 2), bool), np.ones(2, np.int64))
    lists = ItemPositionIps().lists(fold(shown))
    assert lists.row.tolist() == [2, 0], "context 1 has no list, and gets none"


@given(logs(), clips)
def test_agrees_with_trying_all_assignments(lists: list[LoggedList], clip: float) -> None:
    rival, length = ItemPositionIps(clip), longest(lists)
    actual, adds, scores = chosen(rival, lists), added(rival, lists), best(rival, lists)
    for context in {context for context, _, _ in lists}:
        value = reference.item_position_ips(lists, context, clip)
        items = reference.items_of(lists, context)
        assert len(actual[context]) == min(length, len(items)) == len(set(actual[context]))
        for position, (item, estimate) in enumerate(zip(actual[context], adds[context], strict=True), start=1):
            assert estimate == pytest.approx(float(value.get((item, position), 0)), abs=1e-9)
        assert sum(adds[context]) == pytest.approx(float(reference.best_assignment(value, items, length)), abs=1e-9)
        for item in items:
            expected = max(v for (other, _), v in value.items() if other == item)
            assert scores[context, item] == pytest.approx(float(expected), abs=1e-9)
