"""Runs add up."""

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from prudent.engines import kernel
from prudent.engines.kernel import Counted
from prudent.storage.run import NameColumn, Run

from .counting import TYPES, count, raw
from .logs import Stream, as_plain, batch, cut, hostile

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize("types", TYPES[:5])
def test_the_sum_of_runs_is_the_run_of_all(types: str) -> None:
    for seed in range(4):
        random = Random(f"{types}{seed}")
        rows = hostile(random, types, 120)
        parts = [count(Stream([batch(part, types)]), types)[0] for part in cut(random, rows)]
        [whole] = count(Stream([batch(rows, types)]), types)
        assert raw(kernel.merge([part.run for part in parts], [1] * len(parts))[0]) == raw(whole.run)

        weights = [random.randint(1, 3) for _ in parts]
        merged, places = kernel.merge([part.run for part in parts], weights)
        for part, place in zip(parts, places, strict=True):
            assert raw(merged.items.take(place)) == raw(part.run.items)
        expected: Counter[Any] = Counter()
        for part, weight in zip(parts, weights, strict=True):
            for cell, n in as_plain(part).cells.items():
                expected[cell] += weight * n
        assert as_plain(Counted(merged, parts[0].lists, parts[0].tally)).cells == expected


def test_a_sum_beyond_32_bits() -> None:
    names, one = NameColumn(np.array([-1, 7])), np.ones(2, np.uint32)
    run = Run(names, names, one, one, np.array([1 << 16, 1 << 16], np.uint32), np.array([1 << 40, 1], np.uint64))
    assert kernel.merge([run, run], [1 << 22, 3])[0].n.tolist() == [(1 << 62) + 3 * (1 << 40), (1 << 22) + 3]


def test_a_slice_of_a_run_is_merged_in_place() -> None:
    [counted] = count(Stream([batch(hostile(Random(1), "uuC", 100), "uuC")]), "uuC")
    run = counted.run
    pairs, cells = int(run.pairs[0]), int(run.cells[: run.pairs[0]].sum())
    rest = Run(
        run.contexts.slice(1, len(run.contexts)),
        run.items.slice(pairs, len(run.items)),
        *(run.pairs[1:], run.cells[pairs:], run.code[cells:], run.n[cells:]),
    )
    first = Run(
        run.contexts.slice(0, 1),
        run.items.slice(0, pairs),
        *(run.pairs[:1], run.cells[:pairs], run.code[:cells], run.n[:cells]),
    )
    assert raw(kernel.merge([rest, first], [1, 1])[0]) == raw(run)


def test_runs_with_names_of_several_types_are_refused() -> None:
    runs = [count(Stream([batch([], types)]), types)[0].run for types in ("uuC", "ulC")]
    for wrong, weights in ((runs, [1, 1]), (runs[:1], [-1]), ([], [])):
        with pytest.raises(ValueError, match="runs to merge"):
            kernel.merge(wrong, weights)
