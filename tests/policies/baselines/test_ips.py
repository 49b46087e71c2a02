import pytest
from hypothesis import given
from hypothesis import strategies as st

from prudent.policies.baselines import Ips
from tests.policies.baselines import reference
from tests.policies.baselines.small import added, best, chosen
from tests.reference import LoggedList
from tests.strategies import logs

clips = st.sampled_from([0.5, 1, 2, 5, 10, 50, float("inf")])

LISTS: list[LoggedList] = [
    *[("x", ("a", "b"), (1, 0))] * 4,
    *[("x", ("a", "b"), (0, 0))] * 4,
    ("x", ("b", "c"), (1, 1)),
    ("x", ("c", "a"), (0, 1)),
]


@pytest.mark.parametrize(
    ("clip", "best_list", "adds"),
    [
        (float("inf"), ("b", "c"), [1, 1]),  # two clicks in its only showing
        (6, ("b", "c"), [0.6, 0.6]),  # counted as if shown 10/6 times
        (2, ("a", "b"), [0.5, 0]),  # 4 clicks in 8 showings; the other 2 · 2/10 = .4
        (1, ("a", "b"), [0.4, 0]),  # as clicks: 4 of 10 lists, 2 of 10
    ],
)
def test_a_clip_takes_the_weight_off_rare_lists(clip: float, best_list: tuple[str, ...], adds: list[float]) -> None:
    assert chosen(Ips(clip), LISTS) == {"x": best_list}
    assert added(Ips(clip), LISTS)["x"] == pytest.approx(adds)


def test_equal_lists_go_by_showings_and_then_by_name() -> None:
    lists: list[LoggedList] = [("x", ("b", "c"), (1, 0)), ("x", ("a", "c"), (1, 0)), ("x", ("a",), (1,))]
    assert chosen(Ips(), lists) == {"x": ("a",)}
    assert chosen(Ips(), [*lists, lists[0]]) == {"x": ("b", "c")}


@given(logs(), clips)
def test_agrees_with_the_plain_loop(lists: list[LoggedList], clip: float) -> None:
    actual, adds, scores = chosen(Ips(clip), lists), added(Ips(clip), lists), best(Ips(clip), lists)
    for context in {context for context, _, _ in lists}:
        value = reference.ips(lists, context, clip)
        assert actual[context] == reference.best_ips(lists, context, clip)
        assert sum(adds[context]) == pytest.approx(float(max(value.values())), abs=1e-9)
        for item in reference.items_of(lists, context):
            expected = max(v for items, v in value.items() if item in items)
            assert scores[context, item] == pytest.approx(float(expected), abs=1e-9)
