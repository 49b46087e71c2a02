"""Counting lists and choosing items: a compiled kernel, and its twin in NumPy that gives the same bytes.

The kernel is compiled when prudent is installed. Without it, or with ``PRUDENT_KERNEL=numpy``, the twin counts.
"""

import ctypes
import os
from collections.abc import Iterator, Sequence
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.engines.kernel import build, library, numpy_keys, numpy_twin
from prudent.engines.kernel.counted import Choose, Counted, Types, kind
from prudent.engines.kernel.settled import Settled, Users
from prudent.storage.arrow import StreamError, formats, stream_of
from prudent.storage.run import LONGEST, NameColumn, Run, WholeLists

__all__ = [
    "Counted",
    "Settled",
    "Users",
    "add_by_key",
    "add_within",
    "compiled",
    "count",
    "derived_keys",
    "distinct",
    "find",
    "fold",
    "highest",
    "keys_of",
    "merge",
    "read_tables",
    "settle",
]

_CLICKS = "cCsSiIlLb"


def count(
    stream: object, types: str, *, budget: int, max_positions: int, text_files: bool, choose: Choose
) -> Iterator[Counted]:
    """Count an Arrow stream of (context, items, clicks, fault, copies), one `Counted` for each budget of bytes.

    `stream` is the capsule of ``__arrow_c_stream__``. `types` are Arrow's letters of contexts, items and clicks: ``u``
    is text. `fault` (32 bits) is the number of a reason to reject a list that is known already, or 0; `copies` (64
    bits) is how often the list counts in the tally. `text_files` rejects names with a NUL byte. An empty stream gives
    one empty `Counted`.
    """
    if not 0 < max_positions <= LONGEST:
        raise ValueError(f"at most {LONGEST} positions, not {max_positions}")
    pointer = stream_of(stream)
    checked = _types(formats(pointer), types)
    kernel = _kernel()
    counting = partial(library.count, kernel) if kernel else numpy_twin.count
    counts = counting(
        pointer,
        checked,
        budget=max(budget, 1),
        max_positions=max_positions,
        text_files=text_files,
        choose=choose,
    )
    for number, counted in enumerate(counts):
        if not number or counted.tally.any():  # the budget may have been full where the stream ended
            yield counted
        del counted  # its memory is needed for the next one


def merge(runs: Sequence[Run], weights: Sequence[int]) -> tuple[Run, list[NDArray[np.uint32]]]:
    """The sum of runs, each of whose lists counts `weights` times, and where the pairs of each are in it."""
    kinds = {(kind(run.contexts), kind(run.items)) for run in runs}
    if len(kinds) != 1 or min(weights) < 0:
        raise ValueError("runs to merge must have names of one type, and weights of at least 0")
    kernel = _kernel()
    return library.merge(kernel, runs, weights) if kernel else numpy_twin.merge(runs, weights)


def distinct(lists: WholeLists) -> WholeLists:
    """The same lists, sorted, and equal ones as one; no list is empty, and `items` has one place for each position."""
    positions = int(np.sum(lists.size, dtype=np.int64))
    if (
        not len(lists.context) == len(lists.size) == len(lists.n)
        or not len(lists.items) == len(lists.clicks) == positions
    ):
        raise ValueError("lists whose columns do not fit together")
    if not np.all(lists.size):
        raise ValueError("an empty list")
    kernel = _kernel()
    return library.distinct(kernel, lists) if kernel else numpy_twin.distinct(lists)


def highest(
    starts: IntArray, keys: Sequence[FloatArray], length: int, eligible: BoolArray
) -> tuple[IntArray, IntArray]:
    """The rows of each group with the highest first key, at most `length` of the eligible ones, and how many.

    Groups are consecutive rows, from each of the `starts` up to the next; the last one is the number of rows. Ties go
    to the next key, then to the first row. No key is NaN.
    """
    rows = int(starts[-1])
    if len(eligible) != rows or any(len(key) != rows for key in keys) or starts[0] or np.any(np.diff(starts) < 0):
        raise ValueError("groups, keys and eligible rows that do not fit together")
    if length < 1:
        raise ValueError(f"lists of {length} rows")
    starts, eligible = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(eligible, bool)
    keys = [np.ascontiguousarray(key, np.float64) for key in keys]
    kernel = _kernel()
    choosing = partial(library.highest, kernel) if kernel else numpy_twin.highest
    return choosing(starts, keys, length, eligible)


def fold(
    sizes: NDArray[np.uint32],
    code: NDArray[np.uint32],
    n: FloatArray,
    tables: Sequence[FloatArray | BoolArray],
    stride: int = 1 << 16,
) -> list[FloatArray]:
    """Σ weight · n over the cells of each group, for each of some tables of weights, in the order of cells.

    Groups are so many cells each, one after the other. The weight of a cell is at ``(code >> 16) * stride + (code &
    65535)`` in a table: at its code, unless a shorter stride leaves out codes that do not occur.
    """
    weights = [np.ascontiguousarray(table, np.float64) for table in tables]
    if len(code) != len(n) or len({len(table) for table in weights}) != 1:
        raise ValueError("cells and tables that do not fit together")
    sizes, code = np.ascontiguousarray(sizes, np.uint32), np.ascontiguousarray(code, np.uint32)
    n = np.ascontiguousarray(n, np.float64)
    kernel = _kernel()
    folding = partial(library.fold, kernel) if kernel else numpy_twin.fold
    return folding(sizes, code, n, weights, stride)


def read_tables(tables: Sequence[FloatArray], row: FloatArray, column: FloatArray) -> list[FloatArray]:
    """The values of several tables of one shape at places between their nodes, by polynomials of degree 7.

    Places count nodes from 0. Of each place, three nodes before and four behind it are read, in each direction.
    """
    shapes, places = {table.shape for table in tables}, np.shape(row)
    if len(shapes) != 1 or places != np.shape(column) or len(places) != 1:
        raise ValueError("tables and places that do not fit together")
    for place, nodes in zip((row, column), *shapes, strict=True):
        if place.size and not (place.min() >= 3 and place.max() < nodes - 4):
            raise ValueError("a place outside of the tables")
    tables = [np.ascontiguousarray(table, np.float64) for table in tables]
    row, column = np.ascontiguousarray(row, np.float64), np.ascontiguousarray(column, np.float64)
    kernel = _kernel()
    return library.read_tables(kernel, tables, row, column) if kernel else numpy_twin.read_tables(tables, row, column)


def keys_of(names: NameColumn) -> IntArray:
    """64 bits for each name, the same in every process and on every machine; never 0, which is the key of nothing."""
    kernel = _kernel()
    if kernel is None or names.ends is None:
        return numpy_keys.keys_of(names)
    return library.keys(kernel, names, "names")[0]


def derived_keys(names: NameColumn, what: str) -> tuple[IntArray, BoolArray]:
    """The key of the ``host`` or of the ``words`` of each name, and where it is known; 0 where there is none.

    Hosts are those of URLs, without ``www.`` and in lower case; words are in lower case and sorted. The kernel does not
    know the words of names that are not ASCII, and its twin knows nothing: SQL does.
    """
    kernel = _kernel()
    if kernel is None or names.ends is None:
        return np.zeros(len(names), np.int64), np.zeros(len(names), bool)
    return library.keys(kernel, names, what)


def add_by_key(keys: IntArray, columns: Sequence[IntArray]) -> tuple[IntArray, list[IntArray]]:
    """The distinct keys but 0, ascending, and the sums of each column over the rows of each of them."""
    if any(len(column) != len(keys) for column in columns):
        raise ValueError("keys and columns that do not fit together")
    kernel = _kernel()
    if kernel is None:
        return numpy_keys.add_by_key(keys, columns)
    rows = [np.ascontiguousarray(column, np.int64) for column in (keys, *columns)]
    distinct, sums = library.add_by_key(kernel, rows[0], rows[1:])
    order = np.argsort(distinct)
    return distinct[order], [column[order] for column in sums]


def add_within(starts: IntArray, keys: IntArray, columns: Sequence[IntArray]) -> list[IntArray]:
    """Of each row, the sums of the columns over the rows of the same key in its group.

    Groups are consecutive rows, from each of the `starts` up to the next; the last one is the number of rows.
    """
    if {len(column) for column in (keys, *columns)} != {int(starts[-1])} or starts[0] or np.any(np.diff(starts) < 0):
        raise ValueError("groups, keys and columns that do not fit together")
    kernel = _kernel()
    if kernel is None:
        return numpy_keys.add_within(starts, keys, columns)
    rows = [np.ascontiguousarray(column, np.int64) for column in (starts, keys, *columns)]
    return library.add_within(kernel, rows[0], rows[1], rows[2:])


def find(known: IntArray, wanted: IntArray) -> IntArray:
    """The place of each wanted key among the known ones, which ascend; −1 where it is none of them."""
    kernel = _kernel()
    if kernel is None:
        return numpy_keys.find(known, wanted)
    return library.find(kernel, np.ascontiguousarray(known, np.int64), np.ascontiguousarray(wanted, np.int64))


def settle(
    pairs: NDArray[np.uint32], sizes: NDArray[np.uint32], code: NDArray[np.uint32], n: FloatArray, users: Users
) -> Settled | None:
    """What users read below last clicks, in contexts of so many pairs of so many cells; None without a compiled kernel.

    The twin is `prudent.click_models.tails`, where the model is.
    """
    kernel = _kernel()
    if kernel is None:
        return None
    if len(code) != len(n) or (users.by != "position" and len(users.clicked) != 1 + (users.by == "attraction")):
        raise ValueError("cells and tables that do not fit together")
    kind = code & 3
    below = (kind == 0) & ((users.unclicked != 1) | ((code >> 2 & LONGEST) > 0))
    counts = [np.ascontiguousarray(one, np.uint32) for one in (pairs, sizes, code)]
    places = int(np.count_nonzero(below)), int(np.count_nonzero(kind == 2))
    return library.settle(kernel, [*counts, np.ascontiguousarray(n, np.float64)], users, places)


def compiled() -> bool:
    """Whether the compiled kernel counts, and not its twin."""
    return _kernel() is not None


def _kernel() -> ctypes.CDLL | None:
    return None if os.environ.get("PRUDENT_KERNEL") == "numpy" else _loaded()


@cache
def _loaded() -> ctypes.CDLL | None:
    try:
        kernel = library.load(build.LIBRARY)
    except OSError:
        return None
    return kernel if kernel.prudent_digest().decode() == build.digest() else None


def _types(columns: list[str], types: str) -> Types:
    """The types of a stream's columns, checked against those that are expected."""
    context, item, click = tuple(types)
    if context not in "ulL" or item not in "ulL" or click not in _CLICKS:
        raise ValueError(f"names and clicks of the types {types!r}")
    expected = [context, f"+l.{item}", f"+l.{click}", "i", "l"]
    narrow = [column.replace("+L", "+l").replace("U", "u") for column in columns]
    if narrow != expected:
        raise StreamError(f"the columns of the stream have the types {columns}, not {expected}")
    wide = ("U" in columns[0], "+L" in columns[1], "U" in columns[1], "+L" in columns[2])
    return Types(context, item, click, wide)
