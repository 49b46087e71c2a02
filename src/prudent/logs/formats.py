"""Files of logs: which files a path names, and which format each has, by its ending and first bytes."""

import glob
import gzip
import os
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from prudent.base.errors import LogError, UsageError, did_you_mean
from prudent.storage.delta import DELTA_LOG, live_files, refuse_iceberg
from prudent.storage.files import has_scheme, is_utf8
from prudent.storage.object_store import fetched
from prudent.storage.quoting import is_pattern_only

Format = Literal["parquet", "jsonl", "csv"]

_ENDINGS: dict[str, Format] = {
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
}
_GZIP = b"\x1f\x8b"
HEAD = 64
"""Number of first bytes that identify the format of a file."""


def is_path(source: object) -> bool:
    """Whether a source names files."""
    return isinstance(source, str | os.PathLike)


def is_paths(source: object) -> bool:
    """Whether a source names one or several files."""
    return is_path(source) or (isinstance(source, list | tuple) and all(map(is_path, source)))


def path_names(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """The paths that a source consists of, one by one."""
    return [os.fspath(name) for name in ([source] if isinstance(source, str | os.PathLike) else source)]


def find_files(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files that paths, folders of Parquet files and globs name, sorted; at least one, and none twice."""
    files = [file for name in path_names(source) for file in _files_of(name)]
    if not files:
        raise LogError("No file is named.")
    for file in files:
        if not is_utf8(str(file)):
            raise LogError(f"The name of {str(file)!r} is not UTF-8. Rename the file.")
        if is_pattern_only(file):
            raise LogError(f"The path {file} has a backslash and one of *?[, which DuckDB cannot open. Rename it.")
    names: dict[tuple[int, int], Path] = {}  # a file may have several, also by hard links
    for file in files:
        entry = file.stat()
        first = names.setdefault((entry.st_dev, entry.st_ino), file)
        if first is not file:
            also = "" if first == file else f", also as {first}"
            raise UsageError(f"{file} is named twice{also}, and would be counted twice.")
    return files


def named_files(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str | Path]:
    """The same, with URIs as they are: nothing is copied to this machine."""
    names = path_names(source)
    here = [name for name in names if not has_scheme(name)]
    return [*(find_files(here) if here else []), *filter(has_scheme, names)]


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files in a folder and below, through symbolic links, sorted; hidden files are ignored."""
    files, seen = [], set()
    for where, inside, names in os.walk(folder, followlinks=True, onerror=_refuse_folder):
        real = os.path.realpath(where)
        inside[:] = [] if real in seen else sorted(name for name in inside if name[0] not in "._")
        if real not in seen:
            files += [Path(where, name) for name in names if name.endswith(".parquet") and name[0] not in "._"]
        seen.add(real)
    return sorted(files)


def _refuse_folder(error: OSError) -> None:
    """An unreadable folder is not a smaller log; one that was removed meanwhile is."""
    if not isinstance(error, FileNotFoundError):
        raise LogError(f"Cannot read the folder {error.filename}: {error.strerror}.") from error


def _files_of(name: str) -> list[Path]:
    path = Path(name)
    if not name:
        return []
    if os.path.isdir(path):
        if any((path / "metadata").glob("*.metadata.json")):
            raise refuse_iceberg(name)
        if os.path.isdir(path / DELTA_LOG):
            return [path / file for file in live_files(path, name)]
        matches = parquet_files(path)
        if not matches:
            raise LogError(f"The folder {path} has no *.parquet file. Name the files, or a glob such as *.jsonl.")
        return matches
    if os.path.exists(path):
        if not os.path.isfile(path):  # a pipe can be read once, and files are read twice
            raise LogError(f"{path} is not a regular file. Write what it has to a file first.")
        return [path]
    if has_scheme(name):
        return fetched(name)
    if glob.has_magic(name):
        matches = [Path(match) for match in sorted(glob.glob(name, recursive=True)) if os.path.isfile(match)]
        matches = [match for match in matches if not match.name.endswith(".manifest.json")]
        for above in glob.glob(os.path.dirname(name) or ".", recursive=True):
            if os.path.isdir(above) and not os.access(above, os.R_OK | os.X_OK):  # `glob` passes over it
                raise LogError(f"Cannot read the folder {above}: no permission.")
        if not matches:
            raise LogError(f"No file matches {name}. Quote the pattern so that the shell leaves it alone.")
        return matches
    siblings: list[str] = []
    with suppress(OSError):  # a folder that may not be read, or is none
        siblings = os.listdir(path.parent)
    alike = [name for name in siblings if did_you_mean(path.stem, [Path(name).stem])]  # by more than the ending
    raise LogError(f"There is no file {path}.{did_you_mean(path.name, alike)}")


def find_text_files(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The same for text files with any ending: none empty, and gzipped only if the name ends in ``.gz``."""
    files = find_files(source)
    for file in files:
        head = first_bytes(file, 4)
        if not head:
            raise _empty(file)
        if head.startswith(_GZIP):
            raise _unnamed_gzip(file)
    return files


def file_format(files: Sequence[Path]) -> Format:
    """The format of these files, by their endings and first bytes; all must agree."""
    return one_format({str(path): first_bytes(path, HEAD) for path in files})


def one_format(heads: Mapping[str, bytes]) -> Format:
    """The same for files on any file system, from their names and first bytes."""
    formats = {path: _format_of(path, head) for path, head in heads.items()}
    files = list(formats)
    first = formats[files[0]]
    for path, kind in formats.items():
        if kind != first:
            raise LogError(f"{files[0]} is {first} but {path} is {kind}. Count them separately and add the counts.")
    return first


def _format_of(path: str, head: bytes) -> Format:
    zipped = path.lower().endswith(".gz")
    ending = Path(path[:-3] if zipped else path).suffix.lower()
    if not head:
        raise _empty(path)
    is_parquet = head.startswith(b"PAR1")
    named = _ENDINGS.get(ending)
    if named == "parquet" and not is_parquet:
        raise LogError(f"{path} is not a Parquet file: it starts with {head[:24]!r}. Was it saved from a web page?")
    if is_parquet and zipped:
        raise LogError(f"{path} is a gzipped Parquet file. Unzip it first.")
    if is_parquet:
        if named not in ("parquet", None):
            raise LogError(f"{path} is a Parquet file by its content. Rename it to end in .parquet.")
        return "parquet"
    if head.startswith(_GZIP):
        raise _unnamed_gzip(path)
    if named is None:
        known = ", ".join(_ENDINGS)
        raise LogError(f"The name of {path} does not show its format. Known endings: {known} (.gz may follow).")
    braced = head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
    if named == "jsonl" and not braced:
        raise LogError(f"{path} is not JSON Lines (one object per line, UTF-8): it starts with {head[:24]!r}.")
    if named == "csv" and braced:
        raise LogError(f"{path} is JSON by its content. Rename it to end in .jsonl.")
    return named


def _empty(path: str | Path) -> LogError:
    return LogError(f"{path} is empty (0 bytes). Was its writer interrupted?")


def _unnamed_gzip(path: str | Path) -> LogError:
    return LogError(f"{path} is gzipped by its content. Rename it to end in .gz.")


def first_bytes(path: Path, size: int) -> bytes:
    """The first bytes of a file, decompressed."""
    try:
        if path.suffix.lower() == ".gz":
            with gzip.open(path, "rb") as unzipped:
                return unzipped.read(size)
        with path.open("rb") as plain:
            return plain.read(size)
    except (OSError, EOFError, zlib.error) as error:
        raise LogError(f"Cannot read {path}: {getattr(error, 'strerror', None) or error}.") from error
