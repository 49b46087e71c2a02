from hypothesis import given, settings

from prudent.click_models import Cascade
from tests import reference
from tests.reference import LoggedList
from tests.strategies import by_name, logs, quick_counts


def test_by_hand() -> None:
    """Read down to the first click; the second click of the first list says nothing, nor does what lies between."""
    lists: list[LoggedList] = [("q", ("a", "b", "c"), (1, 0, 1)), ("q", ("b", "a"), (0, 1)), ("q", ("c", "b"), (0, 0))]
    evidence = Cascade().evidence(quick_counts(lists))
    assert evidence.positive.tolist() == [2, 0, 0]
    assert evidence.negative.tolist() == [0, 2, 1]
    assert evidence.impressions.tolist() == [2, 3, 2]
    assert (evidence.fitted.positions, evidence.fitted.parameters) == (3, {})


@settings(max_examples=150, deadline=None)
@given(lists=logs())
def test_equals_a_plain_loop(lists: list[LoggedList]) -> None:
    evidence = Cascade().evidence(quick_counts(lists))
    assert by_name(lists, evidence.positive, evidence.negative) == reference.cascade(lists)
    assert by_name(lists, evidence.impressions) == {pair: (n,) for pair, n in reference.impressions(lists).items()}
    assert evidence.fitted.positions == reference.longest(lists)
