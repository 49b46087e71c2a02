"""Atomic writes: every output goes to a temporary file beside its target, which is renamed when complete."""

import os
import re
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from prudent.base.errors import UsageError, WriteError


def has_scheme(name: str | os.PathLike[str]) -> bool:
    """Whether a path has a URI scheme, such as ``s3a://bucket/clicks`` or ``file:/clicks``."""
    return re.match("[a-zA-Z][a-zA-Z0-9+.-]+:/", os.fspath(name)) is not None


@contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path to write to; it replaces the target if the block succeeds, and is removed otherwise.

    Killed or out of disk at any moment, the target is the old file or the new one, whole. What is left of
    a killed process is hidden and ends in ``.part``, so that no glob of outputs matches it. On an object store, where a
    target has a scheme, it is written here and uploaded in one step.
    """
    check_target(target)
    if has_scheme(target):
        from prudent.storage.object_store import uploading  # it imports this module, and pyarrow

        with uploading(target) as part:
            yield part
        return
    real = Path(target).resolve()  # behind a symbolic link, the file is replaced and not the link
    try:
        with private_part(real) as part:
            yield part
            with part.open("rb+") as written:
                os.fsync(written.fileno())
            _keep_owner_and_mode(part, real)
            part.replace(real)
    except (OSError, duckdb.OperationalError) as error:
        raise WriteError(f"Cannot write {target}: {reason(error)}. What was there before is untouched.") from error


@contextmanager
def private_part(target: Path) -> Iterator[Path]:
    """A path to write what becomes the target to, in a hidden folder beside it, which is removed at the end.

    The target may be private, and files are made with the mode that others chose: nobody else enters the folder. The
    path is free: over a file that exists, DuckDB would write to a third one.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name[:40]}.", suffix=".part", dir=target.parent))
    except OSError as error:
        raise WriteError(f"Cannot write {target}: {reason(error)}. What was there before is untouched.") from error
    try:
        yield folder / f".{target.name[:40]}.part"
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # hidden, and no reason to fail


def _keep_owner_and_mode(part: Path, real: Path) -> None:
    """What replaces a file is as private as that was."""
    with suppress(FileNotFoundError):
        old = real.stat()
        with suppress(PermissionError):  # only root gives files away
            os.chown(part, old.st_uid, old.st_gid)
        part.chmod(stat.S_IMODE(old.st_mode))


def check_not_read(target: str | os.PathLike[str], sources: Iterable[str | os.PathLike[str]]) -> None:
    """Raise where an output would replace an input, another output, or the manifest of one."""
    sources = list(sources)
    if has_scheme(target):
        from prudent.storage.object_store import uri_of, uri_of_copy

        uris = {uri_of_copy(source) or uri_of(source) for source in sources}
        if uri_of(target) in uris | {f"{uri}.manifest.json" for uri in uris}:
            raise UsageError(f"{target} is named twice: an output cannot replace an input or another output.")
        return
    taken = {Path(source).resolve() for source in sources}
    if Path(target).resolve() in taken | {manifest_path(source) for source in taken}:
        raise UsageError(f"{target} is named twice: an output cannot replace an input or another output.")


def check_target(target: str | os.PathLike[str]) -> None:
    """Raise before the work what writing would raise after it: missing folder, no permission, not a file."""
    if has_scheme(target):
        from prudent.storage.object_store import check_reachable

        check_reachable(target)
        return
    target = Path(target)
    if not is_utf8(str(target)):
        raise WriteError(f"Cannot write {str(target)!r}: its name is not UTF-8.")
    try:
        folder, known = target.resolve().parent, target.exists()
    except OSError as error:  # such as a name that is too long
        raise WriteError(f"Cannot write {target}: {reason(error)}.") from error
    if target.is_dir():
        raise WriteError(f"Cannot write {target}: it is a folder. Name a file in it.")
    if known and not target.is_file():
        raise WriteError(f"Cannot write {target}: it is not a regular file, and would be replaced by one.")
    if not folder.is_dir():
        raise WriteError(f"Cannot write {target}: there is no folder {folder}. Make it first.")
    if not os.access(folder, os.W_OK):
        raise WriteError(f"Cannot write {target}: no permission to write in {folder}.")


_OTHER_FORMATS = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".gz", ".zip", ".xlsx", ".html")


def check_output(
    target: str | os.PathLike[str], sources: Iterable[str | os.PathLike[str]], *, parquet: bool = True
) -> None:
    """Raise before the work what would fail after it: no such folder, another format, a file that is also read."""
    check_target(target)
    check_not_read(target, sources)
    path = Path(target)
    if parquet and path.suffix.lower() in _OTHER_FORMATS:
        raise UsageError(f"{target} would hold Parquet. Name it {path.stem}.parquet.")


def make_folder(folder: str | os.PathLike[str]) -> Path:
    """Make a folder for outputs if there is none, and check that it is writable."""
    if has_scheme(folder):
        raise UsageError(f"{folder} is not a folder on this machine. Write to one, and copy it.")
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"Cannot make the folder {path}: {reason(error)}.") from error
    check_target(path / "output")
    return path


class TemporaryFolder:
    """A folder removed with the last reference to it; `tempfile.TemporaryDirectory` would warn then."""

    def __init__(self) -> None:
        try:
            self.path = Path(tempfile.mkdtemp(prefix="prudent-"))  # nobody else may read it
        except OSError as error:
            raise WriteError(f"Cannot make a temporary folder: {error.strerror}. Set TMPDIR to another.") from error
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@contextmanager
def writing_temporary(folder: Path) -> Iterator[None]:
    """A block that writes temporary files; where it cannot, an error that names their folder."""
    try:
        yield
    except (OSError, duckdb.OperationalError) as error:
        if isinstance(error, duckdb.Error) and "Could not write" not in str(error):
            raise
        raise WriteError(
            f"Cannot write temporary files to {folder}: {reason(error)}. Set TMPDIR to another."
        ) from error


def manifest_path(output: str | os.PathLike[str]) -> Path:
    """The path of the manifest of an output."""
    return Path(f"{os.fspath(output)}.manifest.json")


def forget_manifest(output: str | os.PathLike[str]) -> None:
    """Remove the manifest of an output of text just before it is replaced: none is better than that of another one."""
    if has_scheme(output):
        from prudent.storage.object_store import remove

        remove(manifest_path(output))
        return
    manifest_path(Path(output).resolve()).unlink(missing_ok=True)


def read_small(path: Path, most: int) -> str:
    """The text of a file of at most so many bytes; an OSError for others, such as a named pipe, which may never end."""
    known = path.stat()
    if not stat.S_ISREG(known.st_mode):
        raise OSError("it is a folder" if path.is_dir() else "it is not a regular file")
    if known.st_size > most:
        raise OSError(f"it has {known.st_size:,} bytes, and may have {most:,}")
    with path.open("rb") as file:
        content = file.read(most + 1)  # files of /proc have no size
    if len(content) > most:
        raise OSError(f"it has more than {most:,} bytes")
    return content.decode("utf-8")


def is_utf8(path: str) -> bool:
    """Whether the name of a file is valid UTF-8, which DuckDB needs; on Linux it may be any bytes."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def reason(error: Exception) -> str:
    """The reason why a file could not be read or written."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    inside = re.search(r'"errno":"(\d+)"', str(error))  # DuckDB's, wrapped in what it was doing
    return os.strerror(int(inside[1])) if inside else str(error).splitlines()[0].rstrip(".")
