"""Files that are read are whole and stay as they are: compares the checksums that DuckDB passes over."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from prudent.base.errors import LogError
from prudent.storage.locks import unchanged


@contextmanager
def intact(files: Sequence[Path]) -> Iterator[None]:
    """A block that reads files: none may change meanwhile, nor be damaged where its format can tell.

    Checksums of gzipped files are compared in threads of their own.
    """
    with unchanged(files, LogError), ThreadPoolExecutor(2) as pool:
        checks = [pool.submit(zip_fault, file) for file in files if file.suffix.lower() == ".gz"]
        yield
        for check in checks:
            if fault := check.result():
                raise LogError(fault)


def zip_fault(file: Path) -> str | None:
    """Why a gzipped file is damaged, or None; DuckDB does not compare checksums."""
    try:
        with gzip.open(file) as unzipped:
            while unzipped.read(1 << 20):
                pass
    except (OSError, EOFError, zlib.error) as error:
        return f"{file} is damaged: {error}. Write or copy it again."
    return None
