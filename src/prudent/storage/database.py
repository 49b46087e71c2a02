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
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import duckdb

from prudent.base.errors import PrudentError, UsageError
from prudent.base.spec import whole_number
from prudent.storage.files import TemporaryFolder
from prudent.storage.quoting import absolute, text

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

    def open(self) -> duckdb.DuckDBPyConnection:
        """A private in-memory database, closed with the last reference to it.

        Nothing is downloaded. What does not fit into memory spills to a temporary folder of this process.
        """
        return self._open(_spill_folder(None))

    def _open(self, folder: Path) -> duckdb.DuckDBPyConnection:
        space = _address_space()
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
        """A private database for a block; what spills goes to a private folder beside others in `spill`.

        Opening a database takes 9 ms, and a small file 1 ms: one that did not spill is kept for the next block, which
        finds neither its settings nor its tables. The tables of a block have to be temporary.
        """
        private: Path | None = None
        with suppress(OSError):  # a folder that cannot be written to is reported with the output
            private = None if spill is None else Path(tempfile.mkdtemp(prefix=".prudent-spill-", dir=spill))
        folder = _spill_folder(private)
        try:
            database = self._reopen(folder)
            connection = database.cursor()
            try:
                yield connection
            finally:
                connection.close()
                idle = _idle.setdefault(self, [])
                if not folder.exists() and len(idle) < _MOST_IDLE:
                    idle.append(database)
                else:
                    database.close()
        finally:
            if private is not None:
                shutil.rmtree(private, ignore_errors=True)

    def _reopen(self, folder: Path) -> duckdb.DuckDBPyConnection:
        with suppress(IndexError, KeyError):  # none is idle, or another thread took it
            while True:
                database = _idle[self].pop()
                with suppress(duckdb.Error):  # an error inside DuckDB, on a damaged file, makes a database unusable
                    database.execute("reset preserve_insertion_order")
                    database.execute(f"set temp_directory = {text(folder)}")
                    return database
        return self._open(folder)


_MOST_IDLE = 2
_idle: dict[Database, list[duckdb.DuckDBPyConnection]] = {}
atexit.register(_idle.clear)  # while DuckDB is still loaded
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_idle.clear)  # a process that inherits a database crashes when it ends


def _spill_folder(private: Path | None) -> Path:
    """A folder that DuckDB makes when needed."""
    return Path(absolute(private or _private_folder().path)) / f"spill-{secrets.token_hex(4)}"


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


def memory_limit(connection: duckdb.DuckDBPyConnection) -> int:
    """Of a database, in bytes; DuckDB reports text such as 953.6 MiB."""
    ((limit,),) = connection.execute("select current_setting('memory_limit')").fetchall()
    size, unit = limit.split()
    return int(float(size) * 1024 ** ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].index(unit))


def first_line(error: Exception) -> str:
    """DuckDB's message without the advice that follows it."""
    return str(error).splitlines()[0]
