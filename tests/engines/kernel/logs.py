"""Logs that are hard to count, as Arrow streams, and a plain loop that counts them."""

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from prudent.engines.kernel import Counted
from prudent.logs.log import CODE, REASONS
from prudent.storage import arrow
from prudent.storage.run import NameColumn

Name = bytes | int


class Row(NamedTuple):
    context: Name | None
    items: list[Any] | None
    clicks: list[Any] | None
    fault: int | None = 0
    copies: int | None = 1


# --- rows -------------------------------------------------------------------------------------------------------------

WORDS = [
    *(b"", b"a", b"b", b"ab", b"a\0", b"a\0\0", b"ab\0", b"\0", b"\xff", b"\xc3", "ü".encode(), "𝒳".encode()),
    *(b"abcdefg", b"abcdefgh", b"abcdefgh\0", b"abcdefghi", b"abcdefghij", b"item-1", b"item-12"),
    *(b"x" * size for size in (39, 40, 41)),
    *(b"x" * 40 + end for end in (b"y", b"z\0", b"\xff")),
]
INTEGERS = {
    "l": [-(2**63), -(2**63) + 1, -1, 0, 1, 255, 256, 2**31, 2**63 - 1],
    "L": [0, 1, 255, 256, 2**32, 2**63 - 1, 2**63, 2**64 - 1],
}
RANGES = {"b": (0, 1), "c": (-1, 2), "C": (0, 255), "s": (-1, 256), "S": (0, 256), "i": (-1, 65536), "I": (0, 65536)}
RANGES |= {"l": (-(2**63), 2**32), "L": (0, 2**64 - 1)}


def hostile(random: Random, types: str, rows: int) -> list[Row]:
    """Rows with every fault, in few contexts."""
    contexts, items = (INTEGERS.get(letter, WORDS) for letter in types[:2])
    return [_row(random, contexts, items, types[2]) for _ in range(rows)]


def _row(random: Random, contexts: Sequence[Any], items: Sequence[Any], click: str) -> Row:
    def rare(percent: float = 4) -> bool:
        return random.random() < percent / 100

    among = items[: random.choice([4, 6, len(items)])]
    size = random.randint(0 if rare() else 1, min(6, len(among)))
    shown = random.choices(among, k=size) if rare(10) else random.sample(among, k=size)
    clicks: list[Any] = [int(random.random() < 0.4) for _ in range(size + rare())]
    for values, odd in ((shown, [None]), (clicks, [None, *RANGES[click]])):
        if values and rare():
            values[random.randrange(len(values))] = random.choice(odd)
    fault = random.choice([1, 13, len(REASONS)]) if rare() else random.choice([0, 0, 0, None, -1])
    return Row(
        None if rare() else random.choice(contexts[: random.choice([3, len(contexts)])]),
        None if rare() else shown,
        None if rare() else clicks,
        fault,
        None if rare(1) else random.choice([1, 1, 3]),
    )


# --- the plain loop ---------------------------------------------------------------------------------------------------


class Plain(NamedTuple):
    """Counts as Python objects."""

    cells: Counter[tuple[Name, Name, int]]
    lists: Counter[tuple[Name, tuple[Name, ...], tuple[int, ...]]]
    tally: list[int]


def plain(rows: Sequence[Row], max_positions: int, text_files: bool) -> Plain:
    result = Plain(Counter(), Counter(), [0] * (len(REASONS) + 1))
    for row in rows:
        code = reason(row, max_positions, text_files)
        result.tally[code] += row.copies or 0
        if code == 0 and row.context is not None:
            items, clicks = tuple(row.items or ()), tuple(row.clicks or ())
            result.lists[row.context, items, clicks] += 1
            prev = 0
            for position, (item, click) in enumerate(zip(items, clicks, strict=True), start=1):
                more = any(clicks[position:])
                result.cells[row.context, item, position << 16 | prev << 2 | click << 1 | more] += 1
                prev = position if click else prev
    return result


def reason(row: Row, max_positions: int, text_files: bool) -> int:
    if (row.fault or 0) > 0:
        return row.fault or 0
    if row.context is None:
        return CODE["context missing"]
    if not row.items:
        return CODE["empty list"]
    if row.clicks is None or len(row.clicks) != len(row.items):
        return CODE["items and clicks differ in length"]
    if len(row.items) > max_positions:
        return CODE["too many positions"]
    if None in row.items:
        return CODE["item missing"]
    if any(click not in (0, 1) for click in row.clicks):
        return CODE["click other than 0 or 1"]
    if len(set(row.items)) < len(row.items):
        return CODE["duplicate item in a list"]
    if text_files and any(isinstance(name, bytes) and b"\0" in name for name in (row.context, *row.items)):
        return CODE["NUL byte in a name"]
    return 0


def as_plain(counted: Counted) -> Plain:
    """What the kernel counted; it must be sorted and without repetition."""
    run, lists = counted.run, counted.lists
    contexts, items = _raw(run.contexts), _raw(run.items)
    first = np.append(0, np.cumsum(run.pairs, dtype=np.int64))
    context_of_pair = np.repeat(np.arange(len(contexts)), run.pairs).tolist()
    pair_of_cell = np.repeat(np.arange(len(items)), run.cells).tolist()
    cells = [
        (context_of_pair[pair], items[pair], code) for pair, code in zip(pair_of_cell, run.code.tolist(), strict=True)
    ]
    ends = np.cumsum(lists.size, dtype=np.int64)
    whole = [
        (context, tuple(lists.items[end - size : end].tolist()), tuple(lists.clicks[end - size : end].tolist()))
        for context, end, size in zip(lists.context.tolist(), ends, lists.size, strict=True)
    ]
    for keys in (contexts, cells, whole):
        assert keys == sorted(set(keys))
    named = [
        (contexts[context], tuple(items[first[context] + place] for place in places), tuple(map(int, clicks)))
        for context, places, clicks in whole
    ]
    return Plain(
        Counter({(contexts[c], item, code): n for (c, item, code), n in zip(cells, run.n.tolist(), strict=True)}),
        Counter(dict(zip(named, lists.n.tolist(), strict=True))),
        counted.tally.tolist(),
    )


def _raw(names: NameColumn) -> list[Any]:
    return [names.raw(row) for row in range(len(names))]


# --- streams ----------------------------------------------------------------------------------------------------------

_ARROW = {
    **{"u": pa.utf8(), "U": pa.large_utf8(), "l": pa.int64(), "L": pa.uint64(), "b": pa.bool_(), "c": pa.int8()},
    **{"C": pa.uint8(), "s": pa.int16(), "S": pa.uint16(), "i": pa.int32(), "I": pa.uint32()},
}


def batch(rows: Sequence[Row], types: str, wide: bool = False) -> pa.RecordBatch:
    """A batch of the rows; with texts and lists of 64-bit offsets where it is wide."""
    names = [letter.upper() if wide and letter == "u" else letter for letter in types[:2]]
    columns = [
        _flat([row.context for row in rows], names[0]),
        _listed([row.items for row in rows], names[1], wide),
        _listed([row.clicks for row in rows], types[2], wide),
        _flat([row.fault for row in rows], "i"),
        _flat([row.copies for row in rows], "l"),
    ]
    return pa.record_batch(columns, ["context", "items", "clicks", "fault", "copies"])


def _flat(values: list[Any], letter: str) -> pa.Array:
    if letter in "uU":  # not all of them are UTF-8
        return pa.array(values, pa.large_binary() if letter == "U" else pa.binary()).view(_ARROW[letter])
    if letter == "b":
        values = [None if value is None else bool(value) for value in values]
    return pa.array(values, _ARROW[letter])


def _listed(lists: list[Any], letter: str, wide: bool) -> pa.Array:
    offsets = np.cumsum([0, *(len(one or ()) for one in lists)])
    child = _flat([value for one in lists for value in one or ()], letter)
    bits = pa.array([one is not None for one in lists], pa.bool_()).buffers()[1]
    kind = pa.large_list if wide else pa.list_
    buffers = [bits, pa.py_buffer(offsets.astype(np.int64 if wide else np.int32))]
    return pa.Array.from_buffers(kind(child.type), len(lists), buffers, children=[child])


class Stream:
    """Batches as a stream that notes what is not released; `change` may spoil what it hands out."""

    def __init__(
        self,
        batches: Sequence[pa.RecordBatch],
        *,
        change: Callable[[Any], None] = lambda array: None,
        error: str | None = None,
        schema: pa.Schema | None = None,
    ) -> None:
        self.alive = 0
        left = list(batches)
        releases: dict[int, Any] = {}

        def release(pointer: Any) -> None:
            self.alive -= 1
            array = pointer.contents
            array.release = releases[array.private_data]
            array.release(pointer)

        def get_schema(_: Any, out: Any) -> int:
            (schema or batches[0].schema)._export_to_c(ctypes.addressof(out.contents))
            return 0

        def get_next(_: Any, out: Any) -> int:
            array = out.contents
            if not left:
                array.release = arrow.RELEASE_ARRAY()
                return 0 if error is None else 5
            left.pop(0)._export_to_c(ctypes.addressof(array))
            releases[array.private_data] = arrow.RELEASE_ARRAY(_address(array.release))
            array.release = self._release
            self.alive += 1
            change(array)
            return 0

        message = ctypes.create_string_buffer((error or "").encode())

        def last_error(_: Any) -> int | None:
            return ctypes.addressof(message) if error else None

        def release_stream(_: Any) -> None:
            pass

        functions: dict[Any, Callable[..., Any]] = {
            arrow.GET_SCHEMA: get_schema,
            arrow.GET_NEXT: get_next,
            ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p): last_error,
            arrow.RELEASE_STREAM: release_stream,
        }
        self._release = arrow.RELEASE_ARRAY(release)
        self._kept: list[Any] = [message, *(kind(function) for kind, function in functions.items())]
        get_error = ctypes.cast(self._kept[3], arrow.LAST_ERROR)  # text that is returned in any other way is lost
        self._stream = arrow.Stream(self._kept[1], self._kept[2], get_error, self._kept[4], None)
        self.capsule = arrow.new_capsule(ctypes.addressof(self._stream), b"arrow_array_stream", None)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def cut(random: Random, rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Rows in pieces, some of them empty."""
    places = sorted(random.randint(0, len(rows)) for _ in range(random.randint(0, 4)))
    for first, last in zip([0, *places], [*places, len(rows)], strict=True):
        yield rows[first:last]


def sliced(random: Random, rows: Sequence[Row], types: str, wide: bool = False) -> pa.RecordBatch:
    """A batch that is the middle of a larger one."""
    before, after = (hostile(random, types, random.randint(0, 9)) for _ in range(2))
    return batch([*before, *rows, *after], types, wide).slice(len(before), len(rows))
