"""Arrow's C data interface for the few types that cross it here, without a library for it.

https://arrow.apache.org/docs/format/CDataInterface.html
"""

import ctypes
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple, cast

import duckdb
import numpy as np
from numpy.typing import NDArray

_FORMATS = {
    **{"g": "<f8", "l": "<i8", "L": "<u8", "i": "<i4", "I": "<u4"},
    **{"c": "i1", "C": "u1", "s": "<i2", "S": "<u2", "b": "bit"},
}


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    """An ``ArrowArrayStream``."""


_RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))
_RELEASE_ARRAY = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))
_RELEASE_STREAM = ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))
_GET_SCHEMA = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(_Schema))
_GET_NEXT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(_Array))
_LAST_ERROR = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))

_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.c_void_p),
    ("release", _RELEASE_SCHEMA),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.c_void_p),
    ("release", _RELEASE_ARRAY),
    ("private_data", ctypes.c_void_p),
]
Stream._fields_ = [
    ("get_schema", _GET_SCHEMA),
    ("get_next", _GET_NEXT),
    ("get_last_error", _LAST_ERROR),
    ("release", _RELEASE_STREAM),
    ("private_data", ctypes.c_void_p),
]

_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def stream_of(capsule: object) -> Any:
    """A pointer to the stream in a capsule, as ``__arrow_c_stream__`` returns it; the capsule has to outlive it."""
    return ctypes.cast(_pointer(capsule, b"arrow_array_stream"), ctypes.POINTER(Stream))


@dataclass(frozen=True)
class Column:
    """A column of a batch: values, or the ends of text or lists in the values below them."""

    format: str  # Arrow's letters for the type: u is text, +l a list, others are numbers
    valid: NDArray[np.bool_]
    values: NDArray[Any]  # numbers, or the bytes of all texts
    offsets: NDArray[np.int64] | None = None  # of text and lists: one more than rows
    child: "Column | None" = None  # of a list


class StreamError(Exception):
    """What a stream says when it fails."""


def formats(stream: Any) -> list[str]:
    """Arrow's letters for the type of each column of a stream; after a dot, those of the elements of a list."""
    with _open_schema(stream) as schema:
        if schema.format != b"+s":
            raise StreamError(f"a stream of {schema.format.decode()} has no columns")
        return [_format(schema.children[i].contents) for i in range(schema.n_children)]


def _format(schema: _Schema) -> str:
    below = [_format(schema.children[i].contents) for i in range(schema.n_children)]
    kind = "dictionary" if schema.dictionary else schema.format.decode()
    return ".".join([kind, *below])


@contextmanager
def _open_schema(stream: Any) -> Iterator[_Schema]:
    schema = _Schema()
    if stream.contents.get_schema(stream, ctypes.byref(schema)):
        raise _failure(stream)
    try:
        yield schema
    finally:
        schema.release(ctypes.byref(schema))


def _failure(stream: Any) -> Exception:
    message = stream.contents.get_last_error(stream) or b"the stream failed"
    return stream_error(message.decode(errors="replace"))


def stream_error(message: str) -> Exception:
    """What a stream says as an exception: that of DuckDB, where it has made the stream."""
    kinds = {
        "Out of Memory": duckdb.OutOfMemoryException,
        "IO": duckdb.IOException,
        "Invalid Input": duckdb.InvalidInputException,
        "Conversion": duckdb.ConversionException,
    }
    kind, colon, _ = message.partition(" Error:")
    return kinds.get(kind, duckdb.Error)(message) if colon else StreamError(message)


def read(stream: Any) -> Generator[list[Column]]:
    """The batches of a stream, as the columns of each; a batch is gone when the next one is asked for."""
    with _open_schema(stream) as schema:
        while True:
            batch = _Array()
            if stream.contents.get_next(stream, ctypes.byref(batch)):
                raise _failure(stream)
            if not batch.release:
                return
            try:
                yield _columns(schema, batch)
            finally:
                batch.release(ctypes.byref(batch))


def _columns(schema: _Schema, batch: _Array) -> list[Column]:
    if batch.n_children != schema.n_children or (batch.null_count and batch.n_buffers and batch.buffers[0]):
        raise _malformed()
    return [
        _column(schema.children[i].contents, batch.children[i].contents, batch.offset, batch.length)
        for i in range(batch.n_children)
    ]


def _malformed() -> StreamError:
    return StreamError("malformed Arrow data")


def _column(schema: _Schema, array: _Array, skip: int = 0, rows: int | None = None) -> Column:
    """A view of some rows of a column, or of all: nothing is copied but bits."""
    form = "dictionary" if schema.dictionary else schema.format.decode()
    first, rows = array.offset + skip, array.length - skip if rows is None else rows
    texts, lists = form in ("u", "U"), form in ("+l", "+L")
    if not (texts or lists or form in _FORMATS):
        raise StreamError(f"columns of type {form} are not read here")
    if min(skip, rows, array.offset) < 0 or skip + rows > array.length or array.n_buffers != (3 if texts else 2):
        raise _malformed()
    if array.length and not array.buffers[1]:
        raise _malformed()
    valid = np.ones(rows, bool)
    if array.null_count and array.buffers[0]:
        valid = _bits(array.buffers[0], first, rows)
    if form == "b":
        return Column(form, valid, _bits(array.buffers[1], first, rows).view(np.uint8))
    if form in _FORMATS:
        return Column(form, valid, _view(array.buffers[1], _FORMATS[form], first, rows))
    offsets = np.zeros(1, np.int64)  # where there are no rows, there may be no offsets either
    if rows:
        offsets = _view(array.buffers[1], "<i8" if form in ("U", "+L") else "<i4", first, rows + 1).astype(np.int64)
    if offsets[0] < 0 or np.any(offsets[1:] < offsets[:-1]):
        raise _malformed()
    if texts:
        if offsets[-1] and not array.buffers[2]:
            raise _malformed()
        return Column("u", valid, _view(array.buffers[2], "u1", 0, int(offsets[-1])), offsets)
    if array.n_children != 1 or offsets[-1] > array.children[0].contents.length:
        raise _malformed()
    child = _column(schema.children[0].contents, array.children[0].contents)
    return Column("+l", valid, np.empty(0), offsets, child)


def _view(address: int | None, dtype: str, first: int, number: int) -> NDArray[Any]:
    kind = np.dtype(dtype)
    if not address or not number:
        return np.zeros(number, kind)
    size = kind.itemsize
    return np.frombuffer(memoryview((ctypes.c_char * (number * size)).from_address(address + first * size)), kind)


def _bits(address: int, first: int, number: int) -> NDArray[np.bool_]:
    bytes_ = _view(address, "u1", 0, (first + number + 7) // 8)
    return np.unpackbits(bytes_, bitorder="little", count=first + number)[first:].astype(bool)


class ListColumn(NamedTuple):
    """A column of lists: how long each is, and all that is in them."""

    size: NDArray[np.int64]
    child: Column

    @classmethod
    def of(cls, column: Column) -> "ListColumn":
        """From a column that was read; no value in the lists may be missing."""
        if column.child is None or column.offsets is None:
            raise StreamError(f"a column of type {column.format} holds no lists")
        first, last, child = int(column.offsets[0]), int(column.offsets[-1]), column.child
        offsets = None if child.offsets is None else child.offsets[first : last + 1]
        values = child.values[first:last] if offsets is None else child.values
        inside = Column(child.format, child.valid[first:last], values, offsets)
        if not inside.valid.all():
            raise StreamError("a value is missing")
        return cls(np.diff(column.offsets), inside)

    @property
    def values(self) -> NDArray[Any]:
        """All that is in the lists."""
        return self.child.values

    def sums(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """The sum of the values of each list, of which there is one for each of its elements."""
        upto = np.append(0, np.cumsum(values, dtype=np.int64))
        return np.asarray(np.diff(upto[np.append(0, np.cumsum(self.size))]))


# --- tables for others to read ----------------------------------------------------------------------------------------


def numbers(values: NDArray[Any]) -> Column:
    """A column of numbers or booleans without nulls."""
    return Column(_LETTERS[values.dtype.str[1:]], np.ones(len(values), bool), values)


_LETTERS = {"b1": "b", "i4": "i", "u4": "I", "i8": "l", "u8": "L", "f8": "g"}


def listed(sizes: NDArray[Any], child: Column, valid: NDArray[np.bool_] | None = None) -> Column:
    """A column of lists of these sizes; a list that is not valid is null."""
    offsets = np.append(0, np.cumsum(sizes, dtype=np.int64))
    return Column("+l", np.ones(len(sizes), bool) if valid is None else valid, np.empty(0), offsets, child)


class Table:
    """Batches of columns for DuckDB and others to read in place, once: they are not copied, and must not change.

    All batches have the columns of the first, and there is at least one.
    """

    def __init__(self, batches: Iterable[Mapping[str, Column]]) -> None:
        self._batches = iter(batches)
        self._first = [next(self._batches)]
        self.failure: BaseException | None = None  # of the batches, while they were read
        self._shapes = {name: _shape(column) for name, column in self._first[0].items()}

    def __arrow_c_schema__(self) -> object:
        """The names and types of the columns; without it DuckDB would open the stream to ask, and once more to read."""
        schema = self._schema()
        return _new(ctypes.addressof(schema), b"arrow_schema", None)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A stream of the batches."""
        failure: list[Any] = []

        def get_schema(_: Any, out: Any) -> int:
            _fill(out.contents, self._schema())
            return 0

        def get_next(_: Any, out: Any) -> int:
            try:
                batch = self._first.pop() if self._first else next(self._batches, None)
                if batch is None:
                    out.contents.release = _RELEASE_ARRAY()
                    return 0
                columns, kept = list(batch.values()), list[Any]()
                array = _array(len(columns[0].valid), 0, [None], [_data(column, kept) for column in columns], kept)
                _fill(out.contents, _owned(array, kept))
            except BaseException as error:  # it goes through C; `registered` raises it again
                self.failure = error
                failure.append(ctypes.create_string_buffer(str(error).encode()))
                return 5  # EIO
            return 0

        def last_error(_: Any) -> int | None:
            return ctypes.addressof(failure[-1]) if failure else None

        message = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(last_error)  # as an address: text would be freed
        callbacks = _GET_SCHEMA(get_schema), _GET_NEXT(get_next), ctypes.cast(message, _LAST_ERROR)
        stream = _owned(Stream(*callbacks, _released_stream), [callbacks, message])
        return _new(ctypes.addressof(stream), b"arrow_array_stream", None)

    def _schema(self) -> _Schema:
        kept: list[Any] = []
        fields = [_schema_of(name, shape, kept) for name, shape in self._shapes.items()]
        return cast(_Schema, _owned(_schema(b"+s", b"", fields, kept), kept))


@contextmanager
def registered(
    connection: duckdb.DuckDBPyConnection, name: str, batches: Iterable[Mapping[str, Column]]
) -> Generator[None]:
    """A block in which DuckDB knows batches under a name, to be read once; what they raise is raised."""
    table = Table(batches)
    connection.register(name, table)
    try:
        yield
    except duckdb.Error as error:
        if table.failure is None:
            raise error
        raise table.failure  # noqa: B904 (it has a cause of its own)
    finally:
        connection.unregister(name)


_alive: dict[int, Any] = {}
"""What structures that were handed out point to, until they are released."""
_keys = count(1)


def _owned(structure: Any, kept: list[Any]) -> Any:
    """A structure that is released by whoever got it."""
    structure.private_data = next(_keys)
    _alive[structure.private_data] = [kept, structure]
    return structure


def _shape(column: Column) -> list[str]:
    """The types of a column and of what is in it; offsets have 64 bits."""
    inside = [] if column.child is None else _shape(column.child)
    return [{"u": "U", "+l": "+L"}.get(column.format, column.format), *inside]


def _schema_of(name: str, shape: list[str], kept: list[Any]) -> _Schema:
    children = [_schema_of("item", shape[1:], kept)] if shape[1:] else []
    return _schema(shape[0].encode(), name.encode(), children, kept)


def _schema(form: bytes, name: bytes, children: list[_Schema], kept: list[Any]) -> _Schema:
    pointers = (ctypes.POINTER(_Schema) * len(children))(*map(ctypes.pointer, children))
    kept += [form, name, children, pointers]
    return _Schema(form, name, None, _NULLABLE, len(children), pointers, None, _released_schema, None)


_NULLABLE = 2


def _data(column: Column, kept: list[Any]) -> _Array:
    rows = len(column.valid)
    nulls = rows - int(np.count_nonzero(column.valid))
    valid = np.packbits(column.valid, bitorder="little") if nulls else None
    if column.child is not None:
        return _array(rows, nulls, [valid, column.offsets], [_data(column.child, kept)], kept)
    values = np.packbits(column.values, bitorder="little") if column.format == "b" else column.values
    return _array(rows, nulls, [valid, values] if column.offsets is None else [valid, column.offsets, values], [], kept)


def _array(rows: int, nulls: int, buffers: list[Any], children: list[_Array], kept: list[Any]) -> _Array:
    own = [None if buffer is None else np.ascontiguousarray(buffer) for buffer in buffers]
    addresses = (ctypes.c_void_p * len(own))(*(None if one is None else one.ctypes.data for one in own))
    pointers = (ctypes.POINTER(_Array) * len(children))(*map(ctypes.pointer, children))
    kept += [own, addresses, children, pointers]
    return _Array(rows, nulls, 0, len(own), len(children), addresses, pointers, None, _released_array, None)


def _releasing(kind: Any) -> Any:
    """A callback that lets go of what a structure points to."""

    def release(structure: Any) -> None:
        structure.contents.release = kind()
        _alive.pop(structure.contents.private_data or 0, None)

    return kind(release)


# These stay: a callback that was made for one structure would be gone while it still runs.
_released_schema, _released_array, _released_stream = map(
    _releasing, (_RELEASE_SCHEMA, _RELEASE_ARRAY, _RELEASE_STREAM)
)


def _fill(target: ctypes.Structure, source: ctypes.Structure) -> None:
    ctypes.memmove(ctypes.addressof(target), ctypes.addressof(source), ctypes.sizeof(source))
