"""A checksum of all bytes of a Parquet file, in an entry of its footer: damage is noticed before a row is read.

DuckDB writes the entry with a mark of the same length. The digest of the file, in which zeros stand for the mark, takes
its place. So the checksum needs no second look at the rows, and does not depend on how any version hashes them.
"""

import os
import re
import secrets
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

CHECKSUM = "prudent_checksum"
"""The key of the entry."""
_SIZE = 32  # hexadecimal digits
# As Thrift's compact protocol writes an entry: its key, then the field of its value, and the length of that.
_ENTRY = re.compile(CHECKSUM.encode() + rb"\x18\x20([0-9a-f]{32})")
_BLOCK = 1 << 20


class _Entry(NamedTuple):
    at: int  # where its value begins in the file
    value: str


def new_mark() -> str:
    """The value of the entry before there is a checksum."""
    return secrets.token_hex(_SIZE // 2)


def seal(file: Path, mark: str) -> None:
    """Put the checksum into a file that was written with a mark."""
    entry = _find(file)
    if entry is None or entry.value != mark:
        raise ValueError(f"{file} has no entry for its checksum")
    digest = _digest(file, entry.at)
    with file.open("rb+") as written:
        written.seek(entry.at)
        written.write(digest.encode())


def is_damaged(file: Path, *, sealed: bool) -> bool:
    """Whether a file is not as it was written; one without a checksum is, where it has to be `sealed`."""
    entry = _find(file)
    return sealed if entry is None else _digest(file, entry.at) != entry.value


def _find(file: Path) -> _Entry | None:
    """The entry in the footer, the last one: what looks like another is in the statistics of a column before it."""
    with file.open("rb") as content:
        size = content.seek(0, os.SEEK_END)
        content.seek(max(0, size - 8))
        length = int.from_bytes(content.read(4), "little")
        start = size - 8 - length
        if start < 0 or content.read(4) != b"PAR1":
            return None
        content.seek(start)
        footer = content.read(length)
    found = list(_ENTRY.finditer(footer))
    # Some programs copy the entries of a file that they read into one that they write.
    if not found or b"DuckDB version" not in footer[found[-1].end() :]:
        return None
    return _Entry(start + found[-1].start(1), found[-1][1].decode())


def _digest(file: Path, at: int) -> str:
    digest = blake2b(digest_size=_SIZE // 2)
    for block in _blocks(file, at):
        digest.update(block)
    return digest.hexdigest()


def _blocks(file: Path, at: int) -> Iterator[bytes]:
    """The bytes of a file, with zeros for the value of the entry."""
    with file.open("rb") as content:
        left = at
        while left and (block := content.read(min(left, _BLOCK))):
            left -= len(block)
            yield block
        content.seek(at + _SIZE)
        yield bytes(_SIZE)
        while block := content.read(_BLOCK):
            yield block
