"""Log: where lists and clicks are, which column means what, what can be wrong with them."""

import glob
import gzip
import os
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from prudent.base.errors import LogError, UsageError, did_you_mean
from prudent.storage.files import is_utf8

Layout = Literal["lists", "rows"]
Format = Literal["parquet", "jsonl", "csv"]

REASONS = (
    "no context",
    "empty list",
    "items and clicks differ in length",
    "an item is missing",
    "a click is neither 0 nor 1",
    "an item twice in one list",
    "no impression id",
    "one impression id in several contexts",
    "a position twice under one impression id",
    "positions are not 1, 2, 3 and so on",
    "a propensity is no probability above 0",
    "a name with a NUL byte",
    "a name of another type than the others",
)
"""Why a list is rejected, most basic first: a list with several faults is counted under the first."""
ODD = REASONS[-1]
CODE = {why: code for code, why in enumerate(REASONS, start=1)}
"""The reasons as numbers, in the queries of all engines; 0 is none."""

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
"""First bytes of a file that tell its format."""
_COLUMNS: dict[Layout, tuple[str, ...]] = {
    "lists": ("context", "items", "clicks"),
    "rows": ("impression", "context", "item", "position", "click"),
}


class Table(ABC):
    """Something with named columns: files, or a table in memory. Opening it reads no rows."""

    source: Any

    @property
    @abstractmethod
    def columns(self) -> dict[str, str]:
        """What each column means -> its name in the source."""

    @property
    def in_files(self) -> bool:
        """Whether the source is files rather than a table in memory."""
        return is_path(self.source) or (isinstance(self.source, list | tuple) and all(map(is_path, self.source)))

    @property
    def names(self) -> list[str]:
        """What to call the sources, one by one."""
        if not self.in_files:
            return [f"the {type(self.source).__name__}"]
        return path_names(self.source)

    @property
    def name(self) -> str:
        """What to call the source in a message."""
        return ", ".join(self.names)

    def check_columns(self, columns: Iterable[str], where: str) -> None:
        """Check that the source's `columns` hold what is needed."""
        columns = list(columns)
        for meaning, name in self.columns.items():
            twins = [column for column in columns if column.casefold() == name.casefold()]
            if len(twins) > 1:
                raise LogError(
                    f"{where} has {len(twins)} columns that read {name!r} ({', '.join(map(repr, twins))}); "
                    f"which of them is the {meaning}? Rename all but one."
                )
        missing = {meaning: name for meaning, name in self.columns.items() if name not in columns}
        for meaning, name in missing.items():
            others = "".join(f" Nor one {of!r} for the {what}." for what, of in missing.items() if what != meaning)
            raise LogError(
                f"{where} has no column {name!r} for the {meaning}.{did_you_mean(name, columns)}{others} "
                f"It has: {', '.join(columns) or 'no columns at all'}. {self._remedy(*missing)}{self._hint(columns)}"
            )

    def _hint(self, columns: list[str]) -> str:
        return ""

    def _remedy(self, *meanings: str) -> str:
        named = ", ".join(f"{meaning}=..." for meaning in meanings)
        which = "which one it is" if len(meanings) == 1 else "which ones they are"
        return f"Say {which}: {named} ({', '.join(map(_option, meanings))})."


@dataclass(frozen=True, eq=False, repr=False)
class Log(Table):
    """A click log, opened without reading a row.

    ``source`` is a path, a glob, several of them, or a pandas, Polars, Arrow or DuckDB table. Files are
    Parquet, JSON Lines or CSV (the latter two gzipped or not). The other arguments name the columns. With
    `prudent.Spark`, it may also be a Spark DataFrame, and paths may lie wherever Spark can read: ``s3a://...``.

    Layout ``lists``, the default, has one row per shown list: ``context``, ``items`` (a list) and ``clicks``
    (a list of 0 and 1 of the same length). Layout ``rows`` has one row per shown item: ``impression``,
    ``context``, ``item``, ``position`` (from 1) and ``click``.

    ``propensity`` names the column, where there is one, with the probability that the list was shown in its context:
    a number for the whole list, or a list of numbers, one for each position given the items above it; in the layout
    ``rows``, such a number in each row. `prudent.evaluate`, `gate` and `report` weigh lists by it; where it is named,
    lists without a proper one are rejected.

    The functions in `prudent.logs.readers` make a log of files in other formats; they fill ``origin`` and ``left_out``.

    >>> import prudent
    >>> log = prudent.Log("clicks/*.parquet", context="query", items="shown", clicks="clicked")
    >>> log.columns
    {'context': 'query', 'items': 'shown', 'clicks': 'clicked'}
    """

    source: Any
    layout: Layout = "lists"
    context: str = "context"
    items: str = "items"
    clicks: str = "clicks"
    impression: str = "impression"
    item: str = "item"
    position: str = "position"
    click: str = "click"
    propensity: str | None = None
    origin: tuple[str, ...] = field(default=(), kw_only=True)  # the files that a reader made the source from
    left_out: Mapping[str, int] = field(default_factory=dict, kw_only=True)  # what it did not turn into lists
    _folder: object = field(default=None, kw_only=True)  # a temporary one lives as long as the log that needs it

    def __post_init__(self) -> None:
        if self.layout not in list(_COLUMNS):
            raise UsageError(f"There is no layout {self.layout!r}. Known: {', '.join(_COLUMNS)}.")
        named = list(self.columns.values())
        for name in named:
            if not isinstance(name, str):
                raise UsageError(f"A column is named by text, not by {name!r}.")
            if named.count(name) > 1:
                raise UsageError(f"The column {name!r} cannot stand for two things at once.")

    @property
    def names(self) -> list[str]:
        """What to call the sources, one by one."""
        return list(self.origin) or super().names

    @property
    def columns(self) -> dict[str, str]:
        """What each column means -> its name in the source."""
        columns = {meaning: getattr(self, meaning) for meaning in _COLUMNS[self.layout]}
        return columns if self.propensity is None else {**columns, "propensity": self.propensity}

    def __repr__(self) -> str:
        columns = ", ".join(f"{meaning}={name!r}" for meaning, name in self.columns.items())
        return f"Log({self.name}, layout={self.layout!r}, {columns})"

    def check_columns(self, columns: Iterable[str], where: str) -> None:
        """Check that the source's `columns` hold what is needed, and are not what a log ends up as."""
        columns = list(columns)
        if {"context", "rank", "item", "lower", "mean"} <= set(columns):
            raise LogError(f"{where} is a policy, which prudent rank has written. Give it a log, or counts.")
        super().check_columns(columns, where)

    def _hint(self, columns: list[str]) -> str:
        other: Layout = "rows" if self.layout == "lists" else "lists"
        fits = set(_COLUMNS[other]) <= set(columns)
        return f" It looks like the layout {other!r}: layout={other!r} ({_option('layout')} {other})." if fits else ""


@dataclass(frozen=True, eq=False)
class Candidates(Table):
    """What may be shown: one row per ``context`` and ``item``; items that the log never showed enter unseen."""

    source: Any

    def _remedy(self, *meanings: str) -> str:
        return f"Candidates have the columns context and item: rename what is the {' and the '.join(meanings)}."

    @property
    def columns(self) -> dict[str, str]:
        """Its two columns."""
        return {"context": "context", "item": "item"}


def _option(setting: str) -> str:
    return f"--{setting.replace('_', '-')}"


def is_path(source: object) -> bool:
    """Whether a source names files."""
    return isinstance(source, str | os.PathLike)


def has_scheme(name: str) -> bool:
    """Whether a path says where it lies, such as ``s3a://bucket/clicks`` or ``file:/clicks``: Spark knows these."""
    return re.match("[a-zA-Z][a-zA-Z0-9+.-]+:/", name) is not None


def path_names(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """The paths that a source consists of, one by one."""
    return [os.fspath(name) for name in ([source] if isinstance(source, str | os.PathLike) else source)]


def find_files(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files that paths, folders of Parquet files and globs name, sorted; an error when there are none."""
    found = [file for name in path_names(source) for file in _files_of(name)]
    if not found:
        raise LogError("No file was named.")
    for file in found:
        if not is_utf8(str(file)):
            raise LogError(f"The name of {str(file)!r} is not UTF-8. Rename the file.")
    return found


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files in a folder and below, also behind symbolic links, sorted; what is hidden does not count."""
    found, seen = [], set()
    for where, inside, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(where)
        inside[:] = [] if real in seen else sorted(name for name in inside if name[0] not in "._")
        if real not in seen:
            found += [Path(where, name) for name in files if name.endswith(".parquet") and name[0] not in "._"]
        seen.add(real)
    return sorted(found)


def _files_of(name: str) -> list[Path]:
    path = Path(name)
    if not name:
        return []
    if os.path.isdir(path):
        matches = parquet_files(path)
        if not matches:
            raise LogError(f"The folder {path} holds no *.parquet file. Name the files, or a glob such as *.jsonl.")
        return matches
    if os.path.exists(path):
        return [path]
    if glob.has_magic(name) and not has_scheme(name):
        matches = [Path(match) for match in sorted(glob.glob(name, recursive=True)) if os.path.isfile(match)]
        matches = [match for match in matches if not match.name.endswith(".manifest.json")]  # lies beside an output
        if not matches:
            raise LogError(f"No file matches {name}. Quote the pattern so that the shell leaves it alone.")
        return matches
    if has_scheme(name):
        raise LogError(
            f"{name} is not a path on this machine. Spark reads it: engine=prudent.Spark(...) (--engine spark)."
        )
    siblings = [p.name for p in path.parent.iterdir()] if os.path.isdir(path.parent) else []
    alike = [name for name in siblings if did_you_mean(path.stem, [Path(name).stem])]  # by more than the ending
    raise LogError(f"There is no file {path}.{did_you_mean(path.name, alike)}")


def find_text_files(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The same for files of text whose names need not tell their format: none empty, gzipped where the name says so."""
    found = find_files(source)
    for file in found:
        head = first_bytes(file, 4)
        if not head:
            raise _empty(file)
        if head.startswith(_GZIP):
            raise _unnamed_gzip(file)
    return found


def file_format(files: Sequence[Path]) -> Format:
    """The one format of these files, by their endings and first bytes, which must agree."""
    return one_format({str(path): first_bytes(path, HEAD) for path in files})


def one_format(heads: Mapping[str, bytes]) -> Format:
    """The same for files wherever they are, by name and first bytes."""
    formats = {path: _format_of(path, head) for path, head in heads.items()}
    files = list(formats)
    first = formats[files[0]]
    for path, kind in formats.items():
        if kind != first:
            raise LogError(f"{files[0]} is {first} but {path} is {kind}. Count them apart and add the counts.")
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
        raise LogError(f"{path} is a gzipped Parquet file, of which no part can be read alone. Unzip it first.")
    if is_parquet:
        if named not in ("parquet", None):
            raise LogError(f"{path} is a Parquet file by its content. Rename it to end in .parquet.")
        return "parquet"
    if head.startswith(_GZIP):
        raise _unnamed_gzip(path)
    if named is None:
        known = ", ".join(_ENDINGS)
        raise LogError(f"Cannot tell the format of {path} from its name. Known endings: {known} (.gz may follow).")
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
    """The first bytes of a file, unzipped."""
    try:
        if path.suffix.lower() == ".gz":
            with gzip.open(path, "rb") as unzipped:
                return unzipped.read(size)
        with path.open("rb") as plain:
            return plain.read(size)
    except (OSError, EOFError, zlib.error) as error:
        raise LogError(f"Cannot read {path}: {getattr(error, 'strerror', None) or error}.") from error
