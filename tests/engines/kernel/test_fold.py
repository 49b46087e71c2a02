"""Weighted sums of cells are those of a plain loop, to the last bit."""

from random import Random

import numpy as np
import pytest

from prudent.engines import kernel

pytestmark = pytest.mark.usefixtures("engine")


def test_sums_are_those_of_a_plain_loop() -> None:
    """Also of groups without cells, and of no group at all; one order of cells, so one result."""
    for seed in range(40):
        random = Random(seed)
        sizes = random.choices([0, 1, 2, 30], k=random.choice([0, 1, 12]))
        cells, stride = sum(sizes), random.choice([6, 1 << 16])
        code = [random.randrange(2) << 16 | random.randrange(6) for _ in range(cells)]
        n = [random.choice([1.0, 3.0, 0.1, 2.0**-20]) for _ in range(cells)]
        tables = [[random.random() for _ in range(stride + 6)] for _ in range(random.choice([1, 3]))]
        arrays = np.array(sizes, np.uint32), np.array(code, np.uint32), np.array(n)
        found = kernel.fold(*arrays, [np.array(table) for table in tables], stride)
        first = 0
        expected: list[list[float]] = [[] for _ in tables]
        for size in sizes:
            for table, sums in zip(tables, expected, strict=True):
                total = 0.0
                for cell in range(first, first + size):
                    total += table[(code[cell] >> 16) * stride + (code[cell] & 65535)] * n[cell]
                sums.append(total)
            first += size
        assert [sums.tolist() for sums in found] == expected


def test_what_goes_too_far_is_refused() -> None:
    sizes, code, n, table = np.array([2], np.uint32), np.array([1, 2], np.uint32), np.ones(2), np.ones(3)
    for wrong in ((sizes + 1, code, n, [table]), (sizes - 1, code, n, [table]), (sizes, code, n, [table[:2]])):
        with pytest.raises(ValueError, match="go too far"):
            kernel.fold(*wrong)
    with pytest.raises(ValueError, match="go too far"):
        kernel.fold(sizes, code + np.uint32(1 << 16), n, [table])
    for wrong in ((sizes, code, n[:1], [table]), (sizes, code, n, []), (sizes, code, n, [table, table[:2]])):
        with pytest.raises(ValueError, match="fit together"):
            kernel.fold(*wrong)
