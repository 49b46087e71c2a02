"""Distinct values are numbered as NumPy numbers them."""

import numpy as np
import pytest

from prudent.base.numerics.numbering import number_distinct


@pytest.mark.parametrize(("keys", "below"), [(0, 1), (1, 5), (1_000, 700), (1_000, 10**9)])
def test_numbers_are_those_of_a_sort(keys: int, below: int) -> None:
    """By a table, and by the sort itself where a table would be long."""
    found = np.random.default_rng(1).integers(0, below, keys)
    for one, other in zip(number_distinct(found, below), np.unique(found, return_inverse=True), strict=True):
        assert np.array_equal(one, other)
