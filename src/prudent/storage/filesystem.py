"""Files on this machine, on object stores and on HDFS, through `pyarrow.fs`, which is imported on first use.

Spark reads and writes the rows; the driver only lists files, reads footers and small text, and renames folders. A path
without a scheme is on this machine. ``s3a://``, Hadoop's name for S3, is ``s3://`` here. For other schemes, or settings
that a URI does not carry (an endpoint, credentials), the caller passes a `pyarrow.fs.FileSystem`.
"""

import os
import re
import secrets
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from prudent.base.errors import LogError, UsageError, WriteError
from prudent.storage.files import has_scheme, replacing

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

STORES = ("s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss")
"""Schemes of object stores; no other name makes this process call anybody."""

_RENAMING = ("local", "hdfs")  # file systems that rename a folder in one step; object stores copy file by file
_MAGIC = re.compile(r"[*?\[]")
_SECRET = re.compile(r"/*[^/]*:(?!\d*(/|$))")  # a colon before the path that is not that of a port


@dataclass(frozen=True)
class Location:
    """A file or folder: its name as the user writes it, its file system, and its path there."""

    name: str
    system: Any  # pyarrow.fs.FileSystem
    path: str

    def __fspath__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash((self.system.type_name, self.path))

    @property
    def local(self) -> Path | None:
        """The path, if it is on this machine."""
        return Path(self.path) if self.system.type_name == "local" else None

    @property
    def uri(self) -> str:
        """The name with a scheme, as Spark reads and writes it."""
        return f"file:{self.path}" if self.system.type_name == "local" else self.name

    def sibling(self, name: str) -> "Location":
        """Another file or folder beside it."""
        above, slash, _ = self.name.rpartition("/")
        return replace(self, path=f"{self.path.rpartition('/')[0]}/{name}", name=above + slash + name)

    def child(self, name: str) -> "Location":
        """A file or folder in it."""
        return replace(self, path=f"{self.path}/{name}", name=f"{self.name}/{name}")


def locate(name: str | os.PathLike[str], filesystem: "FileSystem | None" = None) -> Location:
    """The location that a path or URI names; a file system that the caller passes is for URIs."""
    from pyarrow import ArrowException, fs

    name = os.fspath(name).rstrip("/") or "/"
    scheme, _, rest = name.partition(":") if has_scheme(name) else ("file", "", name)
    if scheme == "file":
        return Location(name, fs.LocalFileSystem(), os.path.abspath(re.sub("^//[^/]*/", "/", rest)))
    if filesystem is not None:
        return Location(name, filesystem, rest.lstrip("/"))
    if _SECRET.match(rest):  # names of files are in manifests, reports and messages
        raise UsageError(
            f"A URI of {scheme}:// has a colon before its path, where a secret would be: credentials come from the "
            "environment. Leave them out of names."
        )
    uri = f"{'s3' if scheme in ('s3a', 's3n') else scheme}:{quote(rest, safe='/@:=+,;&')}"
    try:
        return Location(name, *fs.FileSystem.from_uri(uri))
    except (OSError, ArrowException) as error:
        if scheme in STORES and isinstance(error, OSError):  # no such bucket, no network: nothing to do with usage
            raise LogError(f"Cannot reach {name}: {reason(error)}.") from error
        known = "s3a://, s3://, gs://, abfs://, hdfs:// (with libhdfs) and file:"
        raise UsageError(
            f"Cannot open {name}: {reason(error)}. pyarrow opens {known}; for others, and for other settings, pass a "
            "file system: prudent.Spark(session, filesystem=...)."
        ) from error


def find(name: str, filesystem: "FileSystem | None" = None) -> list[Location]:
    """The files that a path, a folder of Parquet files or a pattern names, sorted; an error when there are none.

    In a pattern, ``*``, ``?`` and ``[...]`` match within one folder.
    """
    from pyarrow.fs import FileType

    place = locate(name, filesystem)
    with reading(name):
        kind = place.system.get_file_info(place.path).type
        if kind == FileType.File:
            return [place]
        if kind == FileType.Directory:
            files = [file for file in below(place) if file.path.endswith(".parquet")]
            if not files:
                raise LogError(f"{name} holds no *.parquet file.")
            return files
        files = list(_matching(place)) if _MAGIC.search(place.path) else []
    if not files:
        raise LogError(f"There is no file {name}.")
    return files


def below(place: Location, *, hidden: bool = False) -> list[Location]:
    """The files in a folder and below; names that begin with a dot or an underscore are hidden, as in Spark."""
    return [
        file
        for file in _listing(place)
        if hidden
        or not any(part.startswith((".", "_")) for part in file.path.removeprefix(place.path).strip("/").split("/"))
    ]


def _listing(place: Location) -> list[Location]:
    from pyarrow.fs import FileSelector, FileType

    entries = place.system.get_file_info(FileSelector(place.path, recursive=True))
    below = [info.path.removeprefix(place.path).lstrip("/") for info in entries if info.type == FileType.File]
    return [place.child(name) for name in sorted(below)]


def _matching(pattern: Location) -> Iterator[Location]:
    steps = pattern.path.split("/")
    first = next(number for number, step in enumerate(steps) if _MAGIC.search(step))
    above = "/".join(steps[:first])
    folder = replace(
        pattern, path=above, name=above if pattern.local else pattern.name.rsplit("/", len(steps) - first)[0]
    )
    with suppress(FileNotFoundError):
        for file in below(folder):
            inside = file.path.removeprefix(folder.path).strip("/")
            steps_match = PurePosixPath("/" + inside).match("/" + "/".join(steps[first:]))
            if steps_match and not inside.endswith(".manifest.json"):
                yield file


def exists(place: Location) -> bool:
    """Whether there is a file or folder."""
    from pyarrow.fs import FileType

    with reading(place.name):
        return bool(place.system.get_file_info(place.path).type != FileType.NotFound)


def total_size(files: Sequence[Location]) -> int:
    """Bytes of all files."""
    with reading(files[0].name):
        return sum(int(file.system.get_file_info(file.path).size) for file in files)


def first_bytes(place: Location, size: int) -> bytes:
    """The first bytes of a file; pyarrow unzips by the ending of the name."""
    with reading(place.name), place.system.open_input_stream(place.path) as stream:
        return bytes(stream.read(size))


def read_text(place: Location) -> str | None:
    """The content of a small text file; None where there is none."""
    if not exists(place):
        return None
    with reading(place.name), place.system.open_input_stream(place.path, compression=None) as stream:
        return bytes(stream.read()).decode("utf-8")


def write_text(place: Location, text: str) -> None:
    """Write a small text file, whole or not at all; one that is there is replaced."""
    if place.local is not None:
        with replacing(place.local) as part:
            part.write_text(text, encoding="utf-8")
        return
    aside = _hidden(place) if _renames(place) else place  # on an object store, a file appears when it is complete
    with _writing(place.name):
        with aside.system.open_output_stream(aside.path, compression=None) as stream:
            stream.write(text.encode("utf-8"))
        if aside != place:
            place.system.move(aside.path, place.path)


def put(file: Path, place: Location) -> None:
    """Copy a file of this machine to a location, which has its old content until it has the new one."""
    from pyarrow.fs import LocalFileSystem, copy_files

    aside = _hidden(place) if _renames(place) else place  # on an object store, a file appears when it is complete
    with _writing(place.name):
        copy_files(str(file), aside.path, LocalFileSystem(), place.system)
        if aside != place:
            place.system.move(aside.path, place.path)


def read_footer(place: Location) -> Any:
    """The metadata of a Parquet file (`pyarrow.parquet.FileMetaData`), which reads its end alone."""
    from pyarrow import parquet

    with reading(place.name, " Write or copy it again: it is damaged."):
        return parquet.read_metadata(place.path, filesystem=place.system)


def subfolders(place: Location, prefix: str) -> list[str]:
    """The names of folders in a folder that begin with a prefix and have a file in them."""
    from pyarrow.fs import FileSelector, FileType

    with reading(place.name):
        selector = FileSelector(place.path, allow_not_found=True)
        folders = [info for info in place.system.get_file_info(selector) if info.type == FileType.Directory]
        named = sorted(info.base_name for info in folders if info.base_name.startswith(prefix))
        return [name for name in named if below(place.child(name))]


def check_apart(target: Location, inputs: Sequence[Location]) -> None:
    """Stop where an output would replace its own input."""
    for place in inputs:
        one, other = f"{target.path}/", f"{place.path}/"
        if target.system == place.system and (one.startswith(other) or other.startswith(one)):
            raise UsageError(f"{target.name} would replace {place.name}, which it is made from. Choose another output.")


def fetch(files: Sequence[Location], folder: Path) -> list[Path]:
    """The files on this machine: where they are, or copied to a folder."""
    from pyarrow.fs import LocalFileSystem, copy_files

    here = []
    for number, file in enumerate(files):
        copy = file.local or folder / f"{number}.parquet"
        if file.local is None:
            with reading(file.name):
                copy_files(file.path, str(copy), file.system, LocalFileSystem())
        here.append(copy)
    return here


def fetch_rows(files: Sequence[Location], folder: Path, column: str, without: Collection[str]) -> list[Path]:
    """Copies of Parquet files with the rows in which a column is not null, and their footers without some entries."""
    from pyarrow import compute, parquet

    here = []
    for number, file in enumerate(files):
        here.append(folder / f"{number}.parquet")
        with reading(file.name):
            some = compute.field(column).is_valid()
            rows = parquet.read_table(file.path, filesystem=file.system, filters=some, partitioning=None)
            entries = {key: value for key, value in (rows.schema.metadata or {}).items() if key.decode() not in without}
            parquet.write_table(rows.replace_schema_metadata(entries), here[-1])
    return here


# --- folders of part files --------------------------------------------------------------------------------------------


@contextmanager
def replacing_folder(target: Location, columns: Sequence[str]) -> Iterator[Location]:
    """A folder to write part files to; it replaces the target when the block ends without an error.

    On this machine and on HDFS a folder is renamed in one step: the target is the old folder or the new one, whole,
    except between two renames, when the old one is beside it, hidden. An object store has no rename: files are copied
    one by one, and meanwhile a reader may see some of them beside old ones. Only a folder of part files with the same
    columns is replaced.
    """
    _check_target(target, columns)
    with scratch_folder(target) as part:
        with _writing(target.name):
            part.system.create_dir(part.path)  # now rather than after the work
        yield part
        with _writing(target.name):
            (_rename_folder if _renames(target) else _copy_folder)(part, target)


def place_folder(part: Location, target: Location, columns: Sequence[str]) -> None:
    """Let a folder of part files that is complete replace another on the same disk."""
    _check_target(target, columns)
    with _writing(target.name):
        _rename_folder(part, target)


@contextmanager
def scratch_folder(beside: Location) -> Iterator[Location]:
    """A name for a hidden folder beside a location; the folder is deleted at the end of the block."""
    folder = _hidden(beside)
    try:
        yield folder
    finally:
        with suppress(OSError):
            if exists(folder):
                folder.system.delete_dir(folder.path)


def _rename_folder(part: Location, target: Location) -> None:
    move, old = target.system.move, _hidden(target)
    replaces = exists(target)
    if replaces:
        move(target.path, old.path)
    try:
        move(part.path, target.path)
    except OSError:
        if replaces:
            move(old.path, target.path)
        raise
    if replaces:
        target.system.delete_dir(old.path)


def _copy_folder(part: Location, target: Location) -> None:
    """New files first, which have names of their own, then the old ones go: a failure loses nothing."""
    new, existing = _listing(part), _listing(target) if exists(target) else []
    target.system.create_dir(target.path)
    for file in new:
        target.system.move(file.path, target.child(file.path.rpartition("/")[2]).path)
    for file in existing:
        if file.path.rpartition("/")[2] not in {written.path.rpartition("/")[2] for written in new}:
            target.system.delete_file(file.path)


def _check_target(target: Location, columns: Sequence[str]) -> None:
    from pyarrow.fs import FileSelector, FileType

    with _writing(target.name):
        kind = target.system.get_file_info(target.path).type
        inside = target.system.get_file_info(FileSelector(target.path)) if kind == FileType.Directory else []
    if kind == FileType.File:
        raise WriteError(f"Cannot write {target.name}: it is a file, and Spark writes a folder. Choose another name.")
    names = sorted(info.base_name for info in inside)
    ours = re.compile(r"_SUCCESS|_(manifest|prior)\.json|\._SUCCESS\.crc|part-[^/]*\.parquet|\.part-[^/]*\.crc")
    foreign = [name for name in names if not ours.fullmatch(name)]
    if foreign:
        raise WriteError(f"Cannot write {target.name}: the folder contains {foreign[0]}. Choose a new folder.")
    for name in [name for name in names if name.startswith("part-")][:1]:
        there = read_footer(target.child(name)).schema.to_arrow_schema().names
        if list(there) != list(columns):
            raise WriteError(
                f"Cannot write {target.name}: its files have the columns {', '.join(there)}. Choose a new folder."
            )


def _renames(place: Location) -> bool:
    system = place.system
    while system.type_name == "subtree":
        system = system.base_fs
    return system.type_name in _RENAMING


def _hidden(place: Location) -> Location:
    return place.sibling(f".{place.path.rpartition('/')[2][:40]}.{secrets.token_hex(4)}.part")


# --- errors -----------------------------------------------------------------------------------------------------------


@contextmanager
def reading(name: str, advice: str = "") -> Iterator[None]:
    """A block that reads a file or folder of this name; errors name it."""
    try:
        yield
    except FileNotFoundError as error:
        raise LogError(f"There is no file {name}.") from error
    except (OSError, ValueError) as error:
        raise LogError(f"Cannot read {name}: {reason(error)}.{advice}") from error


@contextmanager
def _writing(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise WriteError(f"Cannot write {name}: {reason(error)}. The previous content is unchanged.") from error


def reason(error: Exception) -> str:
    """Pyarrow's message in one line: what the system reports, if it does."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    detail = re.search(r"Detail: \[errno \d+\] (.+)", str(error))
    return (detail[1] if detail else str(error).splitlines()[0] if str(error) else type(error).__name__).rstrip(". ")


def same_file(uri: str, place: Location) -> bool:
    """Whether Spark means this file: it writes one slash or three after ``file:``, and may escape characters."""

    def bare(path: str) -> str:
        return re.sub("^file:/+", "/", path)

    return bare(place.uri) in (bare(uri), bare(unquote(uri)))
