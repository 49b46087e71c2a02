"""Lists are sorted, and equal ones add up."""

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from prudent.engines import kernel
from prudent.storage.run import WholeLists

pytestmark = pytest.mark.usefixtures("engine")

List = tuple[int, tuple[int, ...], tuple[bool, ...]]


def columns(lists: list[List], n: list[int]) -> WholeLists:
    def flat(number: int, dtype: Any) -> Any:
        return np.array([one for row in lists for one in row[number]], dtype)  # type: ignore[union-attr]

    context, size = np.array([row[0] for row in lists], np.uint32), np.array([len(row[1]) for row in lists], np.uint32)
    return WholeLists(context, size, flat(1, np.uint32), flat(2, bool), np.array(n, np.uint64))


def test_lists_add_up() -> None:
    for seed in range(30):
        random = Random(seed)
        lists: list[List] = []
        for _ in range(random.choice([0, 1, 200])):
            size = random.choice([1, 1, 2, 3, 70])
            items = tuple(random.choices([0, 1, 255, 256, 2**32 - 2], k=size))
            lists.append((random.choice([0, 3, 2**32 - 1]), items, tuple(random.choices([False, True], k=size))))
        n = [random.choice([1, 2**40]) for _ in lists]
        total: Counter[List] = Counter()
        for one, times in zip(lists, n, strict=True):
            total[one] += times
        found, expected = (
            kernel.distinct(columns(lists, n)),
            columns(sorted(total), [total[one] for one in sorted(total)]),
        )
        for name in ("context", "size", "items", "clicks", "n"):
            assert getattr(found, name).dtype == getattr(expected, name).dtype
            assert np.array_equal(getattr(found, name), getattr(expected, name))


def test_columns_that_do_not_fit_together() -> None:
    good = columns([(0, (1, 2), (False, True))], [1])
    with pytest.raises(ValueError, match="fit together"):
        kernel.distinct(WholeLists(good.context, good.size, good.items[:1], good.clicks, good.n))
    with pytest.raises(ValueError, match="empty list"):
        kernel.distinct(columns([(0, (), ())], [1]))
