"""Locks on folders that several processes write to, and whether a file is still the one that was seen."""

import errno
import os
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from prudent.base.errors import CountsError, PrudentError, PrudentWarning

try:
    import fcntl
except ImportError:  # not on Windows, where nothing is locked
    fcntl = None  # type: ignore[assignment]

PATIENCE = 600.0
"""Seconds to wait for another process."""
_POLL = 0.05


@contextmanager
def locked(folders: Iterable[Path], *, shared: bool = False) -> Iterator[None]:
    """Nobody else writes to these folders in this block and, unless `shared`, nobody reads them either.

    The lock is on the folder itself, needs no file in it, and ends with the process, however that ends. A file system
    without locks is used without.
    """
    with ExitStack() as stack:
        for folder in sorted({folder.resolve() for folder in folders}):  # in one order, so that no two wait in a ring
            stack.enter_context(_locked(folder, shared))
        yield


@contextmanager
def _locked(folder: Path, shared: bool) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if fcntl is not None:
            _wait(descriptor, folder, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, folder: Path, kind: int) -> None:
    started = time.monotonic()
    warned = False
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                return  # such as a network file system that has no locks
        if time.monotonic() - started > PATIENCE:
            raise CountsError(
                f"Another process has been using {folder} for {PATIENCE / 60:.0f} minutes. Run this again later."
            )
        if not warned:
            warnings.warn(f"Waiting for another process that uses {folder}.", PrudentWarning, stacklevel=4)
            warned = True
        time.sleep(_POLL)


class Seen(NamedTuple):
    """A file as it was when it was looked at: another one in its place has another number, size or time."""

    device: int
    number: int
    size: int
    modified: int


def look_at(file: Path) -> Seen:
    """The file as it is now."""
    found = file.stat()
    return Seen(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def has_changed(file: Path, seen: Seen) -> bool:
    """Whether it is gone, or another file since."""
    try:
        return look_at(file) != seen
    except OSError:
        return True


@contextmanager
def unchanged(files: Iterable[Path], error: type[PrudentError]) -> Iterator[None]:
    """A block that reads files; an error where one of them is another at its end."""
    seen = {file: look_at(file) for file in files}
    yield
    for file, before in seen.items():
        if has_changed(file, before):
            raise error(f"{file} changed while it was read. Read it when its writer is done.")
