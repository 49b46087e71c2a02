"""Files that are read are whole and stay as they are: compares the checksums that DuckDB passes over."""

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from prudent.base.errors import LogError
from prudent.storage.checksum import is_damaged
from prudent.storage.locks import unchanged

_BLOCK = 1 << 20
Check = Callable[[], str | None]
"""Why a file is damaged, or None."""


@contextmanager
def intact(files: Sequence[Path]) -> Iterator[Callable[[Check], None]]:
    """A block that reads files: none may change meanwhile, nor be damaged where its format can tell.

    Checksums are compared in threads of their own; the block may add further checks.
    """
    with unchanged(files, LogError), ThreadPoolExecutor(2) as pool:
        checks: list[Future[str | None]] = []

        def check(fault: Check) -> None:
            checks.append(pool.submit(fault))

        for file in files:
            if {".csv", ".tsv"} & {ending.lower() for ending in file.suffixes}:
                check(partial(_line_fault, file))
            if file.suffix.lower() == ".gz":
                check(partial(zip_fault, file))
            elif file.suffix.lower() == ".parquet":
                check(partial(_own_fault, file))
        yield check
        for done in checks:
            if fault := done.result():
                raise LogError(fault)


def _line_fault(file: Path) -> str | None:
    """Whether a line of a CSV file is longer than a block: of lines that fit no buffer, DuckDB drops some silently."""
    try:
        with gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb") as content:
            while len(block := content.read(_BLOCK)) == _BLOCK:
                if b"\n" not in block and b"\r" not in block:
                    return (
                        f"{file} has a line of more than 1 MB, which no list has. Is a quote or a line break missing?"
                    )
    except (OSError, EOFError, zlib.error) as error:
        return f"{file} is damaged: {error}. Write or copy it again."
    return None


def _own_fault(file: Path) -> str | None:
    """Of a file that prudent wrote, such as a part of a split."""
    try:
        return (
            f"{file} is damaged: its bytes are not those that were written." if is_damaged(file, sealed=False) else None
        )
    except OSError as error:
        return f"Cannot read {file}: {error.strerror}."


def zip_fault(file: Path) -> str | None:
    """Why a gzipped file is damaged, or None; DuckDB does not compare checksums."""
    try:
        with gzip.open(file) as unzipped:
            while unzipped.read(1 << 20):
                pass
    except (OSError, EOFError, zlib.error) as error:
        return f"{file} is damaged: {error}. Write or copy it again."
    return None
