"""Lists in memory become the same cells as lists in a file."""

from dataclasses import astuple

import numpy as np
from hypothesis import given

from prudent.counts.lists import ListBatch
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
    for actual, expected in zip(astuple(many.cells)[1:], astuple(few.cells)[1:], strict=True):
        np.testing.assert_array_equal(actual, expected)
