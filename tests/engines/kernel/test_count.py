"""The kernel and its twin count what a plain loop counts."""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from prudent.engines import kernel
from prudent.logs.log import CODE
from prudent.storage.run import Run

from .counting import TYPES, count, raw
from .logs import Row, Stream, as_plain, batch, cut, hostile, plain, sliced

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize("types", TYPES)
def test_counts_as_a_plain_loop(types: str) -> None:
    for seed in range(12):
        random = Random(f"{types}{seed}")
        rows, text_files = hostile(random, types, random.choice([0, 1, 20, 150])), bool(seed % 2)
        wide = seed % 3 == 0
        batches = [random.choice([sliced, _whole])(random, part, types, wide) for part in cut(random, rows)]
        [counted] = count(Stream(batches), types, text_files=text_files)
        assert as_plain(counted) == plain(rows, 5, text_files)
        assert counted.tally.sum() == sum(row.copies or 0 for row in rows)


def _whole(random: Random, rows: Sequence[Row], types: str, wide: bool) -> Any:
    return batch(rows, types, wide)


def test_neither_order_nor_batches_matter() -> None:
    rows = hostile(Random(1), "uuC", 200)
    expected = raw(*count(Stream([batch(rows, "uuC")]), "uuC"))
    for seed in range(5):
        random = Random(seed)
        shuffled = random.sample(rows, len(rows))
        batches = [sliced(random, part, "uuC") for part in cut(random, shuffled)]
        assert raw(*count(Stream(batches), "uuC")) == expected


def test_parts_within_a_budget_add_up_to_the_whole() -> None:
    rows = hostile(Random(2), "uuC", 300)
    batches = [batch(rows[first : first + 7], "uuC") for first in range(0, len(rows), 7)]
    [whole] = count(Stream(batches), "uuC")
    for budget, parts in ((0, len(batches)), (10_000, None), (1 << 40, 1)):
        counted = count(Stream(batches), "uuC", budget=budget)
        assert len(counted) == parts or (parts is None and 1 < len(counted) < len(batches))
        assert raw(kernel.merge([one.run for one in counted], [1] * len(counted))[0]) == raw(whole.run)
        assert np.array_equal(sum(one.tally for one in counted), whole.tally)


def test_one_context_with_many_lists() -> None:
    random = Random(3)
    items = [b"item-%d" % number for number in range(3_000)]
    rows = [Row(b"one", random.sample(items, 3), [0, 1, 0]) for _ in range(1_500)]
    rows += [Row(b"one", items[:3], [1, 0, int(random.random() < 0.5)]) for _ in range(1_500)]
    [counted] = count(Stream([batch(rows[:1], "uuC"), batch(rows[1:], "uuC")]), "uuC")
    assert as_plain(counted) == plain(rows, 5, False)


def test_the_longest_list() -> None:
    rows = [Row(1, list(range(9_000)), [1] * 9_000), Row(1, list(range(9_001)), [1] * 9_001)]
    [counted] = count(Stream([batch(rows, "llb")]), "llb", max_positions=9_000)
    assert as_plain(counted) == plain(rows, 9_000, False)
    assert counted.tally[CODE["too many positions"]] == 1
    with pytest.raises(ValueError, match="positions"):
        count(Stream([batch(rows, "llb")]), "llb", max_positions=1 << 15)


@pytest.mark.parametrize("types", ["uuC", "lLb", "Luc"])
def test_an_empty_stream_gives_one_empty_run(types: str) -> None:
    none = batch([], types)
    for batches in ([], [none], [none, none]):
        [counted] = count(Stream(batches, schema=none.schema), types)
        assert as_plain(counted) == plain([], 5, False)
        kinds = [counted.run.contexts.values.dtype, counted.run.items.values.dtype]
        assert kinds == [{"u": "u1", "l": "i8", "L": "u8"}[letter] for letter in types[:2]]


def test_reasons_in_their_order() -> None:
    faults = {
        "context missing": Row(None, None, None),
        "empty list": Row(b"\0", [], None),
        "items and clicks differ in length": Row(b"\0", [None] * 9, None),
        "too many positions": Row(b"\0", [None] * 9, [None] * 9),
        "item missing": Row(b"\0", [b"a", b"a", None], [2, 0, 0]),
        "click other than 0 or 1": Row(b"\0", [b"a", b"a"], [2, 0]),
        "duplicate item in a list": Row(b"\0", [b"a", b"a"], [1, 0]),
        "NUL byte in a name": Row(b"a", [b"a", b"a\0"], [1, 0]),
    }
    for reason, row in faults.items():
        [counted] = count(Stream([batch([row._replace(copies=3)], "uuC")]), "uuC", text_files=True)
        assert np.flatnonzero(counted.tally).tolist() == [CODE[reason]]
        assert counted.tally.sum() == 3
    for code in CODE.values():
        [counted] = count(Stream([batch([Row(None, None, None, code)], "uuC")]), "uuC")
        assert np.flatnonzero(counted.tally).tolist() == [code]


def test_whole_lists_only_where_they_are_chosen() -> None:
    rows = [Row(b"a", [b"x", b"y"], [0, 1]), Row(b"b", [b"z", b"x"], [1, 0]), Row(b"b", [b"z"], [0])]
    asked = []

    def choose(run: Run, lists: Any) -> Any:
        asked.append((run.contexts.to_list(), lists.tolist()))
        return np.array([False, True])

    [counted] = count(Stream([batch(rows, "uuC")]), "uuC", choose=choose)
    assert asked == [(["a", "b"], [1, 2])]
    assert counted.lists.context.tolist() == [1, 1]
    assert counted.lists.items.tolist() == [1, 1, 0]
    with pytest.raises(ValueError, match="chosen"):
        count(Stream([batch(rows, "uuC")]), "uuC", choose=lambda run, lists: np.ones(1, bool))
