"""How high production places an item, and how readily it shows it, against plain loops."""

import numpy as np
from hypothesis import given, settings

from prudent.counts.production import discounted_impressions, hazard
from tests import reference
from tests.reference import LoggedList
from tests.strategies import logs, quick_counts


@settings(max_examples=150, deadline=None)
@given(lists=logs())
def test_hazard_is_impressions_per_opportunity(lists: list[LoggedList]) -> None:
    pairs = sorted(reference.impressions(lists))
    expected = [reference.hazard(lists, context, item) for context, item in pairs]
    np.testing.assert_allclose(hazard(quick_counts(lists).cells), expected, rtol=1e-12)


def test_an_item_always_first_has_one_opportunity_per_list_and_one_always_last_has_all() -> None:
    cells = quick_counts([("q", ("a", "b", "c", "d"), (0, 0, 0, 0))] * 10).cells
    np.testing.assert_allclose(hazard(cells), [40, 20, 40 / 3, 10])


def test_the_hazard_of_a_context_does_not_depend_on_others() -> None:
    """To the last bit: on Spark a context is ranked with others than on one machine."""
    rng = np.random.default_rng(7)
    lists: list[LoggedList] = [
        (f"q{rng.integers(20):02}", tuple(rng.permutation(list("abcdefgh"))[: rng.integers(1, 9)]), (0,) * 8)
        for _ in range(300)
    ]
    lists = [(context, items, (0,) * len(items)) for context, items, _ in lists]
    cells = quick_counts(lists).cells
    for chosen in (3, 11, 19):
        only = np.arange(20) == chosen
        np.testing.assert_array_equal(hazard(cells.only(only)), hazard(cells)[cells.context == chosen])


def test_equal_discounts_are_equal_however_clicks_split_the_cells() -> None:
    """3/log₂(3) in one cell and in three: a tie is decided by the name, not by rounding."""
    lists: list[LoggedList] = [("q", ("x", "b"), (0, 0))] * 3
    lists += [("q", ("x", "a"), clicks) for clicks in ((0, 1), (1, 0), (0, 0))]
    a, b, _ = discounted_impressions(quick_counts(lists).cells)
    assert a == b
