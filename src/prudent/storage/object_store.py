"""Files on object stores without Spark: copies to read, and outputs that appear when they are complete.

What is read is copied to a private folder of this process, once for as long as the object stays the same, under a path
that ends as the URI does. An output is written to a temporary file and uploaded in one step: an object has its old
content or its new one. Needs pyarrow, which takes credentials and endpoints from the environment.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from prudent.base.errors import LogError, UsageError, WriteError
from prudent.storage import filesystem
from prudent.storage.delta import DELTA_LOG, live_files, refuse_iceberg
from prudent.storage.files import TemporaryFolder, writing_temporary
from prudent.storage.filesystem import STORES, Location, locate, reason

_Seen = tuple[int, int | None]  # bytes, and the time of the last change in nanoseconds
_copies: dict[Path, tuple[str, _Seen]] = {}
"""The copies that this process has, of which object, and what was known of it when it was copied."""


def uri_of(name: str | os.PathLike[str]) -> str:
    """A URI with both of its slashes, of which a `Path` keeps one."""
    return re.sub("^(?!file:)([a-zA-Z][a-zA-Z0-9+.-]+):/+", r"\1://", os.fspath(name))


def fetched(name: str | os.PathLike[str]) -> list[Path]:
    """Copies of the files that a URI names, a folder of Parquet files, a Delta table or a pattern."""
    uri = uri_of(name)
    if uri.partition(":")[0] not in (*STORES, "file"):
        raise LogError(
            f"{uri} is not a path on this machine. Spark reads it: engine=prudent.Spark(...) (--engine spark). Without "
            "Spark: s3://, gs:// and abfs://."
        )
    _check_installed(uri)
    return [_copy(file) for file in _lake(locate(uri)) or filesystem.find(uri)]


def _lake(place: Location) -> list[Location]:
    """The files of a table of Delta Lake; none where a URI names something else."""
    metadata = place.child("metadata")
    if filesystem.exists(metadata) and any(file.path.endswith(".metadata.json") for file in filesystem.below(metadata)):
        raise refuse_iceberg(place.name)
    log = place.child(DELTA_LOG)
    if not filesystem.exists(log):
        return []
    copies = [_copy(file) for file in filesystem.below(log, hidden=True)]
    if not copies:
        raise LogError(f"Cannot read {place.name} as a table of Delta Lake: its {DELTA_LOG} has no file.")
    return [place.child(name) for name in live_files(copies[0].parent.parent, place.name)]


def uri_of_copy(file: str | os.PathLike[str]) -> str | None:
    """The URI of what a path is a copy of; None where it is none."""
    known = _copies.get(Path(file))
    return None if known is None else known[0]


@contextmanager
def uploading(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A path on this machine to write to; its content becomes the object if the block succeeds."""
    uri = uri_of(target)
    _check_installed(uri)
    place, folder = locate(uri), TemporaryFolder()
    part = folder.path / place.path.rpartition("/")[2]
    with writing_temporary(folder.path):
        yield part
    filesystem.put(part, place)


def check_reachable(target: str | os.PathLike[str]) -> None:
    """Raise before the work what uploading would raise after it: no such bucket, no permission to look at it."""
    from pyarrow.fs import FileType

    uri = uri_of(target)
    if uri.partition(":")[0] not in (*STORES, "file"):
        raise UsageError(
            f"{uri} is not a path on this machine. Spark writes there: engine=prudent.Spark(...) (--engine spark). "
            "Without Spark: s3://, gs:// and abfs://."
        )
    _check_installed(uri)
    try:
        place = locate(uri)
    except LogError as error:
        raise WriteError(f"Cannot write {uri}. {error}") from error
    if place.local is not None:
        raise UsageError(f"{target} is on this machine: name it {place.path}.")
    bucket, _, below = place.path.partition("/")
    if not below or uri.endswith("/"):
        raise WriteError(f"Cannot write {uri}: name a file in the bucket or folder.")
    try:
        known = place.system.get_file_info(bucket).type
    except (OSError, ValueError) as error:
        raise WriteError(f"Cannot write {uri}: {reason(error)}.") from error
    if known == FileType.NotFound:
        raise WriteError(f"Cannot write {uri}: there is no bucket {bucket}. Make it first.")


def remove(target: str | os.PathLike[str]) -> None:
    """Delete an object, if there is one."""
    place = locate(uri_of(target))
    try:
        if filesystem.exists(place):
            place.system.delete_file(place.path)
    except OSError as error:
        raise WriteError(f"Cannot delete {target}: {reason(error)}.") from error


def _copy(place: Location) -> Path:
    """A copy of a file, made unless there is one of the same content."""
    from pyarrow.fs import LocalFileSystem, copy_files

    if place.local is not None:
        return place.local
    if ".." in place.path.split("/"):  # whoever names objects may not choose where on this machine copies are
        raise LogError(f"{place.name} has '..' in its name: copy it to another one.")
    to = _folder().path / place.name.replace("://", "/").lstrip("/")
    with filesystem.reading(place.name):
        seen = _look(place)
        if _copies.get(to) != (place.name, seen):
            to.parent.mkdir(parents=True, exist_ok=True)
            copy_files(place.path, str(to), place.system, LocalFileSystem())
            if _look(place) != seen or to.stat().st_size != seen[0]:
                raise OSError("it changed while it was read")
            _copies[to] = place.name, seen
    return to


def _look(place: Location) -> _Seen:
    info = place.system.get_file_info(place.path)
    return info.size, info.mtime_ns


@cache
def _folder() -> TemporaryFolder:
    """Of this process, and removed with it."""
    return TemporaryFolder()


def _check_installed(uri: str) -> None:
    if find_spec("pyarrow") is None:
        raise UsageError(f"{uri} is not a path on this machine. To read it: pip install 'prudent[cloud]'.")
