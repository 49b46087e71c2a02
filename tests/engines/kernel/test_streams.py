"""Streams that fail, and Arrow data that is not as it should be: an error, no crash and nothing left behind."""

from collections.abc import Callable
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from prudent.engines import kernel
from prudent.engines.sql import rules
from prudent.logs.log import REASONS
from prudent.storage.arrow import StreamError

from .counting import count, everything, raw
from .logs import Row, Stream, as_plain, batch, hostile, plain, sliced

pytestmark = pytest.mark.usefixtures("engine")

ROWS = [Row(b"a", [b"x", b"y"], [0, 1]), Row(b"b", [b"z", b"x"], [1, 0]), Row(b"b", [b"z"], [0])]


def fails(stream: Stream, types: str = "uuC") -> str:
    with pytest.raises(StreamError) as error:
        list(kernel.count(stream.capsule, types, budget=1 << 40, max_positions=9, text_files=False, choose=everything))
    assert stream.alive == 0
    return str(error.value)


def test_what_a_stream_says_when_it_fails() -> None:
    batches = [batch(ROWS, "uuC")] * 3
    assert fails(Stream(batches, error="the disk is gone")) == "the disk is gone"
    assert fails(Stream(batches, error="")) == "the stream failed"


def test_a_failure_after_the_first_budget() -> None:
    stream = Stream([batch(ROWS, "uuC")] * 3, error="later")
    counts = kernel.count(stream.capsule, "uuC", budget=1, max_positions=9, text_files=False, choose=everything)
    assert [len(next(counts).run.pairs) for _ in range(3)] == [2, 2, 2]
    with pytest.raises(StreamError, match="later"):
        next(counts)
    assert stream.alive == 0


def test_counting_may_stop_early() -> None:
    stream = Stream([batch(ROWS, "uuC")] * 3)
    counts = kernel.count(stream.capsule, "uuC", budget=1, max_positions=9, text_files=False, choose=everything)
    first = next(counts)
    del counts
    assert stream.alive == 0
    assert as_plain(first) == plain(ROWS, 9, False)  # the arrays outlive all else


def test_no_batch_is_left_where_choosing_fails() -> None:
    def choose(run: Any, lists: Any) -> Any:
        raise KeyError("choice")

    stream = Stream([batch(ROWS, "uuC")])
    with pytest.raises(KeyError, match="choice") as error:
        count(stream, "uuC", choose=choose)
    del error
    assert stream.alive == 0


def test_columns_of_other_types() -> None:
    good = batch(ROWS, "uuC")
    others: dict[int, pa.Array] = {
        0: pa.array(["a", "b", "b"]).dictionary_encode(),
        1: pa.array([["a"], ["b"], ["c"]], pa.list_(pa.string_view())),
        2: pa.array([[0.0], [1.0], [0.5]]),
        3: pa.array([0, 0, 0], pa.int64()),
        4: pa.array([1, 1, 1], pa.int32()),
    }
    for number, column in others.items():
        assert "types" in fails(Stream([good.set_column(number, good.schema.names[number], column)]))
    assert "types" in fails(Stream([good.select([0, 1, 2])]))
    assert "types" in fails(Stream([good]), "luC")
    with pytest.raises(ValueError, match="uuf"):
        count(Stream([good]), "uuf")


def test_a_fault_that_has_no_name() -> None:
    assert "fault" in fails(Stream([batch([ROWS[0]._replace(fault=len(REASONS) + 1)], "uuC")]))


@pytest.mark.parametrize(
    "offsets",
    [(0, 2, 1, 3), (-1, 0, 1, 2), (0, 2, 4, 6), (3, 2, 1, 0), (0, 2**31 - 1, 2**31 - 1, 2**31 - 1), (-9, -6, -3, 0)],
)
def test_offsets_that_point_elsewhere(offsets: tuple[int, ...]) -> None:
    values = np.array(offsets, np.int32)
    columns = [(1,), (2,)]
    if offsets[0] < 0 or offsets[2] < offsets[1]:  # how many bytes names have is not known
        columns += [(0,)]
    for path in columns:
        assert "malformed" in fails(Stream([batch(ROWS, "uuC")], change=_set(path, "buffer1", values.ctypes.data)))


def _set(path: tuple[int, ...], field: str, value: Any) -> Callable[[Any], None]:
    def change(array: Any) -> None:
        for child in path:
            array = array.children[child].contents
        if field.startswith("buffer"):
            array.buffers[int(field[-1])] = value
        else:
            setattr(array, field, value)

    return change


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        *(((), field, value) for field, value in (("n_children", 4), ("length", 4), ("length", -1), ("offset", 1))),
        *(((column,), "length", 2) for column in range(5)),
        *(((column,), "offset", -1) for column in range(5)),
        *(((column,), "buffer1", None) for column in range(5)),
        *(((column,), "n_buffers", 1) for column in range(5)),
        *(((column,), "n_children", 0) for column in (1, 2)),
        *(((column, 0), "length", 1) for column in (1, 2)),
        *(((column, 0), "buffer1", None) for column in (1, 2)),
        *((path, "buffer2", None) for path in ((0,), (1, 0))),
    ],
)
def test_structures_that_do_not_fit_together(path: tuple[int, ...], field: str, value: Any) -> None:
    assert "malformed" in fails(Stream([batch(ROWS, "uuC")] * 2, change=_set(path, field, value)))


def test_a_batch_that_begins_later() -> None:
    """The rows of the batch itself may be a part of those of its columns."""
    rows = hostile(Random(4), "uuC", 60)

    def change(array: Any) -> None:
        array.offset, array.length = 11, 40

    for batches in ([batch(rows, "uuC")], [sliced(Random(5), rows, "uuC")]):
        [counted] = count(Stream(batches, change=change), "uuC")
        assert as_plain(counted) == plain(rows[11:51], 5, False)


def test_unknown_numbers_of_nulls_and_missing_buffers() -> None:
    rows = hostile(Random(6), "uuC", 80)
    expected = raw(*count(Stream([batch(rows, "uuC")]), "uuC"))

    def unknown(array: Any) -> None:
        for number in range(array.n_children):
            child = array.children[number].contents
            child.null_count = -1
            unknown(child)

    assert raw(*count(Stream([batch(rows, "uuC")], change=unknown), "uuC")) == expected
    # Names that are all empty may have no bytes at all, and columns without rows no buffers.
    empty = [Row(b"", [b""], [1])] * 3
    [counted] = count(Stream([batch(empty, "uuC")], change=_set((1, 0), "buffer2", None)), "uuC")
    assert as_plain(counted) == plain(empty, 5, False)

    def bare(array: Any) -> None:
        for path in ((0,), (1,), (1, 0), (2,), (2, 0), (3,), (4,)):
            for buffer in range(3 if path in ((0,), (1, 0)) else 2):
                _set(path, f"buffer{buffer}", None)(array)

    [counted] = count(Stream([batch([], "uuC")], change=bare), "uuC")
    assert not counted.tally.any()


@pytest.mark.parametrize("large", [False, True])
def test_streams_and_rejections_of_duckdb(large: bool) -> None:
    rows = [row for row in hostile(Random(7), "uuC", 300) if _is_text(row)]
    with duckdb.connect() as connection:
        connection.execute(f"set arrow_large_buffer_size = {large}")
        lists = pa.table({name: batch(rows, "uuC").column(name) for name in Row._fields})
        connection.register("lists", lists)
        stream = connection.sql("select * from lists").__arrow_c_stream__()
        options: dict[str, Any] = {"max_positions": 5, "text_files": True, "choose": everything}
        [counted] = kernel.count(stream, "uuC", budget=1 << 40, **options)
        reason = rules.rejection(5, text=["context", "items"])
        tally = dict(connection.execute(f"select {reason}, sum(copies)::bigint from lists group by all").fetchall())
    assert as_plain(counted) == plain(rows, 5, True)
    assert {code: n for code, n in enumerate(counted.tally.tolist()) if n} == {
        code: n for code, n in tally.items() if n
    }


def _is_text(row: Row) -> bool:
    try:
        for name in (row.context, *(row.items or ())):
            if isinstance(name, bytes):
                name.decode()
    except UnicodeDecodeError:
        return False
    return True
