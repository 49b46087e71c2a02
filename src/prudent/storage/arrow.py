"""Arrow's C data interface for the few types that cross it here, without a library for it.

https://arrow.apache.org/docs/format/CDataInterface.html
"""

import ctypes
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

_FORMATS = {
    **{"g": "<f8", "l": "<i8", "L": "<u8", "i": "<i4", "I": "<u4"},
    **{"c": "i1", "C": "u1", "s": "<i2", "S": "<u2", "b": "bit"},
}


class Schema(ctypes.Structure):
    """An ``ArrowSchema``."""


class Array(ctypes.Structure):
    """An ``ArrowArray``."""


class Stream(ctypes.Structure):
    """An ``ArrowArrayStream``."""


RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))
RELEASE_ARRAY = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))
RELEASE_STREAM = ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))
GET_SCHEMA = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))
GET_NEXT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))
LAST_ERROR = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))

Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.c_void_p),
    ("release", RELEASE_SCHEMA),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.c_void_p),
    ("release", RELEASE_ARRAY),
    ("private_data", ctypes.c_void_p),
]
Stream._fields_ = [
    ("get_schema", GET_SCHEMA),
    ("get_next", GET_NEXT),
    ("get_last_error", LAST_ERROR),
    ("release", RELEASE_STREAM),
    ("private_data", ctypes.c_void_p),
]

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
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


def numbers(values: NDArray[Any]) -> Column:
    """A column of numbers or booleans without nulls."""
    return Column(_LETTERS[values.dtype.str[1:]], np.ones(len(values), bool), values)


_LETTERS = {"b1": "b", "i4": "i", "u4": "I", "i8": "l", "u8": "L", "f8": "g"}


def listed(sizes: NDArray[Any], child: Column, valid: NDArray[np.bool_] | None = None) -> Column:
    """A column of lists of these sizes; a list that is not valid is null."""
    offsets = np.append(0, np.cumsum(sizes, dtype=np.int64))
    return Column("+l", np.ones(len(sizes), bool) if valid is None else valid, np.empty(0), offsets, child)


class StreamError(Exception):
    """What a stream says when it fails."""


def formats(stream: Any) -> list[str]:
    """Arrow's letters for the type of each column of a stream; after a dot, those of the elements of a list."""
    with _open_schema(stream) as schema:
        if schema.format != b"+s":
            raise StreamError(f"a stream of {schema.format.decode()} has no columns")
        return [_format(schema.children[i].contents) for i in range(schema.n_children)]


def _format(schema: Schema) -> str:
    below = [_format(schema.children[i].contents) for i in range(schema.n_children)]
    kind = "dictionary" if schema.dictionary else schema.format.decode()
    return ".".join([kind, *below])


@contextmanager
def _open_schema(stream: Any) -> Iterator[Schema]:
    schema = Schema()
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
            batch = Array()
            if stream.contents.get_next(stream, ctypes.byref(batch)):
                raise _failure(stream)
            if not batch.release:
                return
            try:
                yield _columns(schema, batch)
            finally:
                batch.release(ctypes.byref(batch))


def _columns(schema: Schema, batch: Array) -> list[Column]:
    if batch.n_children != schema.n_children or (batch.null_count and batch.n_buffers and batch.buffers[0]):
        raise _malformed()
    return [
        _column(schema.children[i].contents, batch.children[i].contents, batch.offset, batch.length)
        for i in range(batch.n_children)
    ]


def _malformed() -> StreamError:
    return StreamError("malformed Arrow data")


def _column(schema: Schema, array: Array, skip: int = 0, rows: int | None = None) -> Column:
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
