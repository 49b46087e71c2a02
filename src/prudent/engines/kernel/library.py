"""The compiled kernel."""

import ctypes
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.engines.kernel.counted import Choose, Counted, Types, chosen, kind
from prudent.engines.kernel.settled import BY, Settled, Users
from prudent.storage.arrow import stream_error
from prudent.storage.run import NameColumn, Run, WholeLists

_DTYPES = {"u": "u1", "l": "<i8", "L": "<u8"}
_Address = ctypes.c_void_p


class _Types(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_char) for name in ("context", "item", "click")),
        *((f"wide_{name}", ctypes.c_bool) for name in ("context", "items", "item", "clicks")),
    )


class _View(ctypes.Structure):
    _fields_ = (
        *(
            (name, _Address)
            for name in ("contexts", "items", "context_ends", "item_ends", "pairs", "cells", "code", "n")
        ),
        ("size", ctypes.c_int64),
        ("weight", ctypes.c_uint64),
        ("places", _Address),
    )


class _Users(ctypes.Structure):
    _fields_ = (
        ("unclicked", ctypes.c_double),
        ("clicked", _Address),
        ("positions", ctypes.c_int64),
        ("by", ctypes.c_int32),
        *((name, ctypes.c_double) for name in ("start", "alpha", "beta", "tolerance")),
    )


class _Settled(ctypes.Structure):
    _fields_ = (
        *((name, _Address) for name in ("parameters", "clicks", "examined", "chance", "unread")),
        *((name, ctypes.c_int64) for name in ("tails", "lasts")),
    )


def load(path: Path) -> ctypes.CDLL:
    """The kernel in a file, or `OSError`."""
    library = ctypes.CDLL(str(path))
    letter, number, flag = ctypes.c_char, ctypes.c_int64, ctypes.c_bool
    functions: dict[str, tuple[Any, list[Any]]] = {
        "digest": (ctypes.c_char_p, []),
        "count": (_Address, [_Address, number, ctypes.POINTER(_Types), number, flag]),
        "lists": (None, [_Address, _Address]),
        "distinct": (_Address, [number, *[_Address] * 5]),
        "merge": (_Address, [ctypes.POINTER(_View), number, letter, letter]),
        "highest": (flag, [_Address, number, ctypes.POINTER(_Address), number, _Address, number, _Address, _Address]),
        "fold": (
            flag,
            [
                *(_Address, number, _Address, _Address, number, number),
                *(ctypes.POINTER(_Address), number, number, ctypes.POINTER(_Address)),
            ],
        ),
        "read_tables": (
            None,
            [ctypes.POINTER(_Address), number, number, _Address, _Address, number, ctypes.POINTER(_Address)],
        ),
        "keys": (flag, [letter, _Address, number, _Address, number, _Address, _Address]),
        "add_by_key": (
            number,
            [_Address, number, ctypes.POINTER(_Address), number, _Address, ctypes.POINTER(_Address)],
        ),
        "add_within": (
            flag,
            [_Address, number, _Address, ctypes.POINTER(_Address), number, ctypes.POINTER(_Address)],
        ),
        "find": (flag, [_Address, number, _Address, number, _Address]),
        "settle": (
            ctypes.c_int,
            [
                *(_Address, number, _Address, number, _Address, _Address, number),
                *(ctypes.POINTER(_Users), ctypes.POINTER(_Settled)),
            ],
        ),
        "free": (None, [_Address]),
        "error": (ctypes.c_char_p, [_Address]),
        "exhausted": (flag, [_Address]),
        "column": (_Address, [_Address, ctypes.c_int, ctypes.POINTER(number)]),
    }
    try:
        for name, (result, arguments) in functions.items():
            function = getattr(library, f"prudent_{name}")
            function.restype, function.argtypes = result, arguments
    except AttributeError as error:
        raise OSError(str(error)) from None
    return library


class _Result:
    """What the kernel returned; freed when no array of it is left."""

    def __init__(self, library: ctypes.CDLL, address: int | None) -> None:
        if not address:
            raise MemoryError
        self._library, self.address = library, address
        weakref.finalize(self, library.prudent_free, address).atexit = False
        self.check()

    def check(self) -> None:
        if error := self._library.prudent_error(self.address):
            raise MemoryError if error == b"out of memory" else stream_error(error.decode(errors="replace"))

    def column(self, number: int, dtype: str) -> NDArray[Any]:
        """A column in place."""
        size = ctypes.c_int64()
        address = self._library.prudent_column(self.address, number, ctypes.byref(size))
        if not size.value:
            return np.zeros(0, dtype)
        memory = (ctypes.c_char * size.value).from_address(address)
        memory.owner = self  # type: ignore[attr-defined]  # the array keeps the memory, and that keeps this
        return np.frombuffer(memoryview(memory), dtype)

    def run(self, context: str, item: str) -> Run:
        names = [
            NameColumn(self.column(at, _DTYPES[form]), self.column(at + 1, "<i8") if form == "u" else None)
            for at, form in ((0, context), (2, item))
        ]
        dtypes = ("<u4", "<u4", "<u4", "<u8")
        return Run(names[0], names[1], *(self.column(at, dtype) for at, dtype in enumerate(dtypes, start=4)))

    def lists(self) -> WholeLists:
        dtypes = ("<u4", "<u4", "<u4", "?", "<u8")
        return WholeLists(*(self.column(at, dtype) for at, dtype in enumerate(dtypes, start=10)))


def count(
    library: ctypes.CDLL,
    stream: Any,
    types: Types,
    *,
    budget: int,
    max_positions: int,
    text_files: bool,
    choose: Choose,
) -> Iterator[Counted]:
    """Count a stream, one `Counted` for each budget of bytes."""
    letters = (types.context.encode(), types.item.encode(), types.click.encode())
    given = _Types(*letters, *types.wide)
    while True:
        address = library.prudent_count(
            ctypes.cast(stream, _Address), budget, ctypes.byref(given), max_positions, text_files
        )
        result = _Result(library, address)
        run = result.run(types.context, types.item)
        contexts = chosen(choose, run, result.column(9, "<i8").copy())  # gone with the other lists
        library.prudent_lists(result.address, contexts.ctypes.data if contexts.any() else None)
        result.check()
        exhausted = library.prudent_exhausted(result.address)
        yield Counted(run, result.lists(), result.column(8, "<i8"), exhausted)
        del run, result  # before the next lists need their memory
        if exhausted:
            return


def distinct(library: ctypes.CDLL, lists: WholeLists) -> WholeLists:
    """The same lists, sorted, and equal ones as one."""
    dtypes = {"context": "<u4", "size": "<u4", "items": "<u4", "clicks": "?", "n": "<u8"}
    columns = [np.ascontiguousarray(getattr(lists, name), dtype) for name, dtype in dtypes.items()]
    address = library.prudent_distinct(len(columns[0]), *(column.ctypes.data for column in columns))
    return _Result(library, address).lists()


def highest(
    library: ctypes.CDLL, starts: IntArray, keys: Sequence[FloatArray], length: int, eligible: BoolArray
) -> tuple[IntArray, IntArray]:
    """The rows of each group that are highest by some keys, and how many."""
    sizes = np.zeros(len(starts) - 1, np.int64)
    rows = np.zeros(int(np.minimum(np.diff(starts), length).sum()), np.int64)
    given = (starts.ctypes.data, len(sizes), _addresses(keys), len(keys), eligible.ctypes.data, length)
    if not library.prudent_highest(*given, rows.ctypes.data, sizes.ctypes.data):
        raise MemoryError
    return rows[: int(sizes.sum())], sizes


def fold(
    library: ctypes.CDLL,
    sizes: NDArray[np.uint32],
    code: NDArray[np.uint32],
    n: FloatArray,
    tables: Sequence[FloatArray],
    stride: int,
) -> list[FloatArray]:
    """Weighted sums of the cells of each group."""
    sums = [np.zeros(len(sizes)) for _ in tables]
    cells = (sizes.ctypes.data, len(sizes), code.ctypes.data, n.ctypes.data, len(n), stride)
    if not library.prudent_fold(*cells, _addresses(tables), len(tables), len(tables[0]), _addresses(sums)):
        raise ValueError("sizes, or codes, that go too far")
    return sums


def read_tables(
    library: ctypes.CDLL, tables: Sequence[FloatArray], row: FloatArray, column: FloatArray
) -> list[FloatArray]:
    """The values of several tables of one shape between their nodes."""
    values = [np.empty(len(row)) for _ in tables]
    columns = tables[0].shape[1]
    places = (row.ctypes.data, column.ctypes.data, len(row))
    library.prudent_read_tables(_addresses(tables), len(tables), columns, *places, _addresses(values))
    return values


def keys(library: ctypes.CDLL, names: NameColumn, what: str) -> tuple[IntArray, BoolArray]:
    """The keys of names, or of what is made of them, and where that is known."""
    ends = np.ascontiguousarray(names.ends, np.int64)
    values = np.ascontiguousarray(names.values)
    found, known = np.empty(len(ends), np.int64), np.empty(len(ends), bool)
    texts = (what[:1].encode(), values.ctypes.data, len(values), ends.ctypes.data, len(ends))
    if not library.prudent_keys(*texts, found.ctypes.data, known.ctypes.data):
        raise ValueError("names whose ends go too far")
    return found, known


def add_by_key(library: ctypes.CDLL, keys: IntArray, columns: Sequence[IntArray]) -> tuple[IntArray, list[IntArray]]:
    """The distinct keys, in any order, and the sums of their rows."""
    distinct, sums = np.empty_like(keys), [np.empty_like(keys) for _ in columns]  # no memory where nothing is written
    rows = (keys.ctypes.data, len(keys), _addresses(columns), len(columns))
    number = library.prudent_add_by_key(*rows, distinct.ctypes.data, _addresses(sums))
    if number < 0:
        raise MemoryError
    return distinct[:number], [column[:number] for column in sums]


def add_within(library: ctypes.CDLL, starts: IntArray, keys: IntArray, columns: Sequence[IntArray]) -> list[IntArray]:
    """Of each row, the sums of the rows of its group that have its key."""
    sums = [np.empty_like(keys) for _ in columns]
    rows = (starts.ctypes.data, len(starts) - 1, keys.ctypes.data, _addresses(columns), len(columns))
    if not library.prudent_add_within(*rows, _addresses(sums)):
        raise MemoryError
    return sums


def find(library: ctypes.CDLL, known: IntArray, wanted: IntArray) -> IntArray:
    """The place of each key, or −1."""
    places = np.empty(len(wanted), np.int64)
    if not library.prudent_find(known.ctypes.data, len(known), wanted.ctypes.data, len(wanted), places.ctypes.data):
        raise MemoryError
    return places


def settle(library: ctypes.CDLL, counts: Sequence[NDArray[Any]], users: Users, places: Sequence[int]) -> Settled:
    """What users read below last clicks; counts are pairs of each context, cells of each pair, their codes and n."""
    pairs, sizes, code, n = counts
    rows, (tails, lasts) = len(sizes), places
    clicked = np.ascontiguousarray(users.clicked, np.float64)
    width = 2 if users.by == "item" else 1
    parameters, clicks, examined, chance, unread = arrays = [
        np.empty((rows, width)),
        *(np.empty(size) for size in (rows, rows, tails, lasts)),
    ]
    who = _Users(
        users.unclicked,
        clicked.ctypes.data,
        len(clicked),
        BY.index(users.by),
        *(users.start, *users.prior, users.tolerance),
    )
    found = _Settled(*(array.ctypes.data for array in arrays), tails, lasts)
    cells = (pairs.ctypes.data, len(pairs), sizes.ctypes.data, rows, code.ctypes.data, n.ctypes.data, len(n))
    state = library.prudent_settle(*cells, ctypes.byref(who), ctypes.byref(found))
    if state < 0:
        raise MemoryError if state == -2 else ValueError("sizes, or tables, that do not fit")
    return Settled(parameters, clicks, examined, chance, unread, rest=state == 0)


def _addresses(arrays: Sequence[NDArray[Any]]) -> Any:
    return (_Address * len(arrays))(*(array.ctypes.data for array in arrays))


def merge(library: ctypes.CDLL, runs: Sequence[Run], weights: Sequence[int]) -> tuple[Run, list[NDArray[np.uint32]]]:
    """The sum of runs whose names are of one kind, and where the pairs of each are in it."""
    kept, places = [], [np.zeros(len(run.cells), np.uint32) for run in runs]  # arrays that the views point to
    views = (_View * len(runs))()
    for view, run, weight in zip(views, runs, weights, strict=True):
        columns = {
            "contexts": run.contexts.values,
            "items": run.items.values,
            "context_ends": run.contexts.ends,
            "item_ends": run.items.ends,
            **{name: getattr(run, name) for name in ("pairs", "cells", "code", "n")},
        }
        for name, column in columns.items():
            if column is not None:
                kept.append(np.ascontiguousarray(column))
                setattr(view, name, kept[-1].ctypes.data)
        view.size, view.weight = len(run.pairs), weight
    for view, place in zip(views, places, strict=True):
        view.places = place.ctypes.data
    context, item = kind(runs[0].contexts), kind(runs[0].items)
    address = library.prudent_merge(views, len(runs), context.encode(), item.encode())
    del kept
    return _Result(library, address).run(context, item), places
