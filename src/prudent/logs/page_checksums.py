"""Checksums of the pages of Parquet files, which Spark writes by default and DuckDB does not compare.

A page has a header in Thrift's compact protocol: among its fields, the size of the page (3) and the CRC-32 of its bytes
as they are in the file (4). Whatever cannot be parsed here is left to DuckDB, which reports it.
"""

import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_SIZE, _CHECKSUM = 3, 4  # fields of a header
_STOP, _TRUE, _FALSE, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _STRUCT = 0, 1, 2, 3, (4, 5, 6), 7, 8, 12
_HEADER = 1 << 16  # bytes that a header has at most, with its statistics
_BLOCK = 1 << 20


class Chunk(NamedTuple):
    """The pages of a column in a row group: where they begin and end in the file."""

    start: int
    end: int


def page_fault(file: Path, chunks: Iterable[Chunk]) -> str | None:
    """Why pages of a file are damaged, or None, also where they have no checksums: all have them, or none."""
    try:
        with file.open("rb") as content:
            for at, end in chunks:
                while at < end:
                    content.seek(at)
                    length, fields = _header(content.read(_HEADER))
                    if _CHECKSUM not in fields:
                        return None
                    at += length
                    content.seek(at)
                    left, checksum = fields[_SIZE], 0
                    while left > 0 and (block := content.read(min(left, _BLOCK))):
                        left -= len(block)
                        checksum = zlib.crc32(block, checksum)
                    if checksum != fields[_CHECKSUM] % (1 << 32):
                        return f"{file} is damaged: the checksum of a page is wrong. Write or copy it again."
                    at += fields[_SIZE]
    except (ValueError, IndexError, KeyError):
        return None
    except OSError as error:
        return f"Cannot read {file}: {error.strerror}."
    return None


def _header(content: bytes) -> tuple[int, dict[int, int]]:
    """The length of a header, and its integers by the number of their field."""
    fields: dict[int, int] = {}
    return _struct(content, 0, fields, depth=0), fields


def _struct(content: bytes, at: int, fields: dict[int, int], depth: int) -> int:
    """Read a structure; where it ends."""
    if depth > 8:
        raise ValueError("nested too deeply")
    field = 0
    while (head := content[at]) != _STOP:
        at += 1
        if head >> 4:
            field += head >> 4
        else:
            field, at = _integer(content, at)
        kind = head & 15
        if kind in _INTEGERS:
            fields[field], at = _integer(content, at)
        elif kind == _BINARY:
            size, at = _varint(content, at)
            at += size
        elif kind == _STRUCT:
            at = _struct(content, at, {}, depth + 1)
        elif kind in (_BYTE, _DOUBLE):
            at += 1 if kind == _BYTE else 8
        elif kind not in (_TRUE, _FALSE):
            raise ValueError("not in the header of a page")
    return at + 1


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (content[at] & 127) << shift
        at += 1
        if content[at - 1] < 128:
            return value, at
        shift += 7


def _integer(content: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(content, at)
    return (value >> 1) ^ -(value & 1), at
