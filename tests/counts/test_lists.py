"""Lists in memory become the same cells as lists in a file."""

from dataclasses import astuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from prudent.counts.lists import ListBatch, sorted_histogram
from tests import reference
from tests.strategies import as_batch, logs, quick_counts


@given(logs())
def test_cells_are_those_of_the_counts(lists: list[reference.LoggedList]) -> None:
    for actual, expected in zip(astuple(as_batch(lists).cells), astuple(quick_counts(lists).cells), strict=True):
        np.testing.assert_array_equal(actual, expected)


@given(logs())
def test_equal_lists_may_share_a_row(lists: list[reference.LoggedList]) -> None:
    shown = as_batch(lists)
    rows, which = np.unique(np.hstack([shown.items, shown.clicks]), axis=0, return_inverse=True)
    items, clicks = np.hsplit(rows, 2)
    folded = ListBatch(shown.context, items, clicks > 0, np.bincount(which.ravel()))
    for actual, expected in zip(astuple(folded.cells), astuple(shown.cells), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_many_items_and_few_lists_go_the_same_way() -> None:
    lists: list[reference.LoggedList] = [("x", ("a", "b"), (0, 1)), ("x", ("b", "a"), (1, 1))]
    few = as_batch(lists)
    # 10,000 more pairs, none of them shown: too many for a table of all possible cells.
    many = ListBatch(np.concatenate([few.context, np.ones(10_000, int)]), few.items, few.clicks, few.n)
    for name in ("pair", "code", "n"):
        np.testing.assert_array_equal(getattr(many.cells, name), getattr(few.cells, name))


@given(st.lists(st.tuples(st.integers(-3, 9), st.integers(1, 3)), max_size=30))
def test_a_histogram_of_keys(rows: list[tuple[int, int]]) -> None:
    keys, weight = np.array(rows, np.int64).reshape(-1, 2).T
    for times in (weight, np.minimum(weight, 1)):
        found, n = sorted_histogram(keys, times)
        assert found.tolist() == sorted({key for key, _ in rows})
        assert n.tolist() == [int(times[keys == key].sum()) for key in found]


@given(logs(), st.integers(0, 2))
def test_cells_without_a_context_are_those_of_the_other_lists(lists: list[reference.LoggedList], number: int) -> None:
    shown = as_batch(lists)
    left = np.arange(3) == number
    rows = shown.list_context != number
    other = ListBatch(shown.context, shown.items[rows], shown.clicks[rows], shown.n[rows])
    for actual, expected in zip(astuple(shown.cells.without(left)), astuple(other.cells), strict=True):
        np.testing.assert_array_equal(actual, expected)
