"""A private DuckDB database, through which every package reads and writes files."""

import atexit
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import duckdb

from prudent.base.errors import PrudentError, UsageError
from prudent.base.spec import whole_number
from prudent.storage.files import TemporaryFolder
from prudent.storage.quoting import absolute

LEAST_SPACE = 2_000_000_000
"""Bytes of address space: threads reserve stacks and arenas that they hardly use."""
_MEMORY = re.compile(r"\s*(?=.*[1-9])\d+(\.\d+)?\s*([KMGT]I?B?|BYTES|B)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Database:
    """DuckDB's settings: ``memory`` caps it, e.g. ``"1GB"``; what does not fit spills beside the output."""

    memory: str | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.memory is not None and not _MEMORY.fullmatch(str(self.memory)):  # DuckDB takes -1GB for no limit
            raise UsageError(f"memory is {self.memory!r}; it must be a size above 0, such as 1GB or 500MB.")
        if self.threads is not None:
            whole_number("threads", self.threads, 1, 1024)

    def open(self, spill: Path | None = None) -> duckdb.DuckDBPyConnection:
        """A private in-memory database, closed with the last reference to it.

        Nothing is downloaded. What does not fit into memory spills to a folder in `spill`, which DuckDB makes when
        needed and removes when the database is closed. `spill` has to be private; without it, it is in a temporary
        folder of this process, which is.
        """
        space = _address_space()
        folder = Path(absolute(spill or _private_folder().path)) / f"spill-{secrets.token_hex(4)}"
        config: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "temp_directory": str(folder),
        }
        if self.memory is not None:
            config["memory_limit"] = self.memory
        elif space is not None:
            config["memory_limit"] = f"{space // 2}B"  # the rest is for Python and for the stacks of threads
        if self.threads is not None:
            config["threads"] = str(self.threads)
        try:
            return duckdb.connect(config=config)
        except duckdb.OutOfMemoryException:  # whatever the settings are
            raise
        except duckdb.Error as error:
            raise UsageError(f"DuckDB does not accept these settings: {first_line(error)}") from error

    @contextmanager
    def connect(self, spill: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection, closed at the end of a block.

        With `spill`, to a private database whose spill goes to a private folder beside others in `spill`. Without it,
        to a database that such blocks share: they read small files, and a connection takes 0.1 ms where a database
        takes 9 ms. Temporary tables and views are those of the connection; such a block may neither make others nor
        change settings.
        """
        private: Path | None = None
        with suppress(OSError):  # a folder that cannot be written to is reported with the output
            private = None if spill is None else Path(tempfile.mkdtemp(prefix=".prudent-spill-", dir=spill))
        try:
            connection = self._open_shared() if spill is None else self.open(private)
            try:
                yield connection
            finally:
                connection.close()
        finally:
            if private is not None:
                shutil.rmtree(private, ignore_errors=True)

    def _open_shared(self) -> duckdb.DuckDBPyConnection:
        connection = _shared(self, os.getpid()).cursor()
        try:
            connection.execute("select 1").fetchall()
        except duckdb.FatalException:  # an error inside DuckDB, on a damaged file, makes a database unusable
            _shared.cache_clear()
            return _shared(self, os.getpid()).cursor()
        return connection


@lru_cache(maxsize=2)
def _shared(database: Database, process: int) -> duckdb.DuckDBPyConnection:
    """The database of short reads in this process; a fork cannot use that of its parent."""
    return database.open()


atexit.register(_shared.cache_clear)  # while DuckDB is still loaded


@cache
def _private_folder() -> TemporaryFolder:
    """Of this process, and removed with it."""
    return TemporaryFolder()


def _address_space() -> int | None:
    """Bytes that the process may allocate (`ulimit -v`), if there is a limit.

    Below a limit that is too low, an allocation fails anywhere, also where C code takes its success for granted and
    crashes: 3 of 11 runs with less than 1 GB did.
    """
    if find_spec("resource") is None:  # Windows
        return None
    import resource

    space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if space == resource.RLIM_INFINITY:
        return None
    if space < LEAST_SPACE:
        raise PrudentError(
            f"The process may allocate {space / 1e9:.1f} GB (ulimit -v), and DuckDB needs {LEAST_SPACE / 1e9:g} GB to "
            "start. Raise that limit; --memory limits DuckDB instead."
        )
    return space


def first_line(error: Exception) -> str:
    """DuckDB's message without the advice that follows it."""
    return str(error).splitlines()[0]
