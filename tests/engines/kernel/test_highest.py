"""The highest rows of each group are those that a plain sort finds."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from prudent.engines import kernel

pytestmark = pytest.mark.usefixtures("engine")


def test_the_highest_are_those_of_a_plain_sort() -> None:
    for seed in range(60):
        random = Random(seed)
        sizes = random.choices([0, 1, 2, 9, 40], k=random.choice([0, 1, 12]))
        starts = np.cumsum([0, *sizes])
        number, length = int(starts[-1]), random.choice([1, 3, 10, 100])
        values = [-np.inf, -0.0, 0.0, 0.5, 1.0, 2.0**60]  # few, so that there are ties
        keys = [np.array(random.choices(values, k=number), float) for _ in range(random.choice([1, 2, 3]))]
        eligible = np.array(random.choices([True, True, False], k=number), bool)
        rows, found = kernel.highest(starts, keys, length, eligible)
        expected = [
            sorted((row for row in range(first, last) if eligible[row]), key=lambda row: [-key[row] for key in keys])
            for first, last in pairwise(starts)
        ]
        assert rows.tolist() == [row for group in expected for row in group[:length]]
        assert found.tolist() == [min(len(group), length) for group in expected]


def test_what_does_not_fit_together_is_refused() -> None:
    key, every = np.zeros(3), np.ones(3, bool)
    for starts, keys, eligible in (
        ([0, 4], [key], every),
        ([0, 3], [key[:2]], every),
        ([0, 3], [key], every[:2]),
        ([1, 3], [key], every),
        ([0, 2, 1, 3], [key], every),
    ):
        with pytest.raises(ValueError, match="do not fit together"):
            kernel.highest(np.array(starts), keys, 2, eligible)
    with pytest.raises(ValueError, match="lists of 0 rows"):
        kernel.highest(np.array([0, 3]), [key], 0, every)
