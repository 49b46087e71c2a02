"""Tables in memory for DuckDB and others to read, through Arrow's C data interface."""

import ctypes
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any, cast

import duckdb
import numpy as np

from prudent.storage.arrow import (
    GET_NEXT,
    GET_SCHEMA,
    LAST_ERROR,
    RELEASE_ARRAY,
    RELEASE_SCHEMA,
    RELEASE_STREAM,
    Array,
    Column,
    Schema,
    Stream,
    new_capsule,
)


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
        return new_capsule(ctypes.addressof(schema), b"arrow_schema", None)

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
                    out.contents.release = RELEASE_ARRAY()
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
        callbacks = GET_SCHEMA(get_schema), GET_NEXT(get_next), ctypes.cast(message, LAST_ERROR)
        stream = _owned(Stream(*callbacks, _released_stream), [callbacks, message])
        return new_capsule(ctypes.addressof(stream), b"arrow_array_stream", None)

    def _schema(self) -> Schema:
        kept: list[Any] = []
        fields = [_schema_of(name, shape, kept) for name, shape in self._shapes.items()]
        return cast(Schema, _owned(_schema(b"+s", b"", fields, kept), kept))


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


def _schema_of(name: str, shape: list[str], kept: list[Any]) -> Schema:
    children = [_schema_of("item", shape[1:], kept)] if shape[1:] else []
    return _schema(shape[0].encode(), name.encode(), children, kept)


def _schema(form: bytes, name: bytes, children: list[Schema], kept: list[Any]) -> Schema:
    pointers = (ctypes.POINTER(Schema) * len(children))(*map(ctypes.pointer, children))
    kept += [form, name, children, pointers]
    return Schema(form, name, None, _NULLABLE, len(children), pointers, None, _released_schema, None)


_NULLABLE = 2


def _data(column: Column, kept: list[Any]) -> Array:
    rows = len(column.valid)
    nulls = rows - int(np.count_nonzero(column.valid))
    valid = np.packbits(column.valid, bitorder="little") if nulls else None
    if column.child is not None:
        return _array(rows, nulls, [valid, column.offsets], [_data(column.child, kept)], kept)
    values = np.packbits(column.values, bitorder="little") if column.format == "b" else column.values
    return _array(rows, nulls, [valid, values] if column.offsets is None else [valid, column.offsets, values], [], kept)


def _array(rows: int, nulls: int, buffers: list[Any], children: list[Array], kept: list[Any]) -> Array:
    own = [None if buffer is None else np.ascontiguousarray(buffer) for buffer in buffers]
    addresses = (ctypes.c_void_p * len(own))(*(None if one is None else one.ctypes.data for one in own))
    pointers = (ctypes.POINTER(Array) * len(children))(*map(ctypes.pointer, children))
    kept += [own, addresses, children, pointers]
    return Array(rows, nulls, 0, len(own), len(children), addresses, pointers, None, _released_array, None)


def _releasing(kind: Any) -> Any:
    """A callback that lets go of what a structure points to."""

    def release(structure: Any) -> None:
        structure.contents.release = kind()
        _alive.pop(structure.contents.private_data or 0, None)

    return kind(release)


# These stay: a callback that was made for one structure would be gone while it still runs.
_released_schema, _released_array, _released_stream = map(_releasing, (RELEASE_SCHEMA, RELEASE_ARRAY, RELEASE_STREAM))


def _fill(target: ctypes.Structure, source: ctypes.Structure) -> None:
    ctypes.memmove(ctypes.addressof(target), ctypes.addressof(source), ctypes.sizeof(source))
