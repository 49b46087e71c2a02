"""Log: where lists and clicks are, which column means what, what can be wrong with them."""

import glob
import gzip
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from prudent.errors import LogError, UsageError, did_you_mean

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
    "positions are not 1, 2, 3, ...",
    "a name with a NUL byte",
)
"""Why a list is rejected, most basic first: a list with several faults is counted under the first."""

_ENDINGS: dict[str, Format] = {
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
}
_COLUMNS: dict[Layout, tuple[str, ...]] = {
    "lists": ("context", "items", "clicks"),
    "rows": ("impression", "context", "item", "position", "click"),
}


class Table:
    """Something with named columns: files, or a table in memory. Opening it reads no rows."""

    source: Any

    @property
    def columns(self) -> dict[str, str]:
        """What each column means -> its name in the source."""
        raise NotImplementedError

    @property
    def in_files(self) -> bool:
        """Whether the source is files rather than a table in memory."""
        return is_path(self.source) or (isinstance(self.source, list | tuple) and all(map(is_path, self.source)))

    @property
    def name(self) -> str:
        """What to call the source in a message."""
        if not self.in_files:
            return f"the {type(self.source).__name__}"
        sources = [self.source] if is_path(self.source) else self.source
        return ", ".join(os.fspath(source) for source in sources)

    def find(self, columns: Iterable[str], where: str) -> None:
        """Check that the source's `columns` hold what is needed."""
        columns = list(columns)
        for meaning, name in self.columns.items():
            twins = [column for column in columns if column.casefold() == name.casefold()]
            if len(twins) > 1:
                raise LogError(
                    f"{where} has {len(twins)} columns that read {name!r} ({', '.join(map(repr, twins))}); "
                    f"which of them is the {meaning}? Rename all but one."
                )
            if name not in columns:
                raise LogError(
                    f"{where} has no column {name!r} for the {meaning}.{did_you_mean(name, columns)} "
                    f"It has: {', '.join(columns) or 'no columns at all'}. Say which one it is: "
                    f"{meaning}=... ({_option(meaning)}).{self._hint(columns)}"
                )

    def _hint(self, columns: list[str]) -> str:
        return ""


@dataclass(frozen=True, eq=False)
class Log(Table):
    """A click log, opened without reading a row.

    ``source`` is a path, a glob, several of them, or a pandas, Polars, Arrow or DuckDB table. Files are
    Parquet, JSON Lines or CSV (the latter two gzipped or not). The other arguments name the columns.

    Layout ``lists``, the default, has one row per shown list: ``context``, ``items`` (a list) and ``clicks``
    (a list of 0 and 1 of the same length). Layout ``rows`` has one row per shown item: ``impression``,
    ``context``, ``item``, ``position`` (from 1) and ``click``.

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

    def __post_init__(self) -> None:
        if self.layout not in _COLUMNS:
            raise UsageError(f"There is no layout {self.layout!r}. Known: {', '.join(_COLUMNS)}.")
        named = list(self.columns.values())
        for name in named:
            if named.count(name) > 1:
                raise UsageError(f"The column {name!r} cannot stand for two things at once.")

    @property
    def columns(self) -> dict[str, str]:
        """What each column means -> its name in the source."""
        return {meaning: getattr(self, meaning) for meaning in _COLUMNS[self.layout]}

    def _hint(self, columns: list[str]) -> str:
        other: Layout = "rows" if self.layout == "lists" else "lists"
        fits = set(_COLUMNS[other]) <= set(columns)
        return f" It looks like the layout {other!r}: layout={other!r} ({_option('layout')} {other})." if fits else ""


@dataclass(frozen=True, eq=False)
class Candidates(Table):
    """What may be shown: one row per ``context`` and ``item``; items that the log never showed enter unseen."""

    source: Any

    @property
    def columns(self) -> dict[str, str]:
        """Its two columns."""
        return {"context": "context", "item": "item"}


def _option(setting: str) -> str:
    return f"--{setting.replace('_', '-')}"


def is_path(source: object) -> bool:
    """Whether a source names files."""
    return isinstance(source, str | os.PathLike)


def find_files(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files that paths, folders of Parquet files and globs name, sorted; an error when there are none."""
    found: list[Path] = []
    for given in [source] if isinstance(source, str | os.PathLike) else source:
        path = Path(given)
        if path.is_dir():
            matches = sorted(path.rglob("*.parquet"))
            if not matches:
                raise LogError(f"The folder {path} holds no *.parquet file. Name the files, or a glob such as *.jsonl.")
        elif path.exists():
            matches = [path]
        elif glob.has_magic(str(given)):
            matches = sorted(Path(match) for match in glob.glob(str(given), recursive=True))
            if not matches:
                raise LogError(f"No file matches {given}. Quote the pattern so that the shell leaves it alone.")
        else:
            siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
            raise LogError(f"There is no file {path}.{did_you_mean(path.name, siblings)}")
        found += matches
    if not found:
        raise LogError("No file was named.")
    return found


def file_format(files: Sequence[Path]) -> Format:
    """The one format of these files, by their endings and first bytes, which must agree."""
    formats = {path: _one_format(path) for path in files}
    first = formats[files[0]]
    for path, kind in formats.items():
        if kind != first:
            raise LogError(f"{files[0]} is {first} but {path} is {kind}. Count them apart and add the counts.")
    return first


def _one_format(path: Path) -> Format:
    ending = path.suffix.lower() if path.suffix.lower() != ".gz" else Path(path.stem).suffix.lower()
    head = first_bytes(path, 64)
    if not head:
        raise LogError(f"{path} is empty (0 bytes).")
    is_parquet = head.startswith(b"PAR1")
    named = _ENDINGS.get(ending)
    if named == "parquet" and not is_parquet:
        raise LogError(f"{path} is not a Parquet file: it starts with {head[:24]!r}.")
    if is_parquet:
        if named not in ("parquet", None):
            raise LogError(f"{path} is a Parquet file by its content. Rename it to end in .parquet.")
        return "parquet"
    if named is None:
        known = ", ".join(_ENDINGS)
        raise LogError(f"Cannot tell the format of {path} from its name. Known endings: {known} (.gz may follow).")
    if named == "jsonl" and not head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        raise LogError(f"{path} is not JSON Lines (one object per line): it starts with {head[:24]!r}.")
    return named


def first_bytes(path: Path, size: int) -> bytes:
    """The first bytes of a file, unzipped."""
    try:
        if path.suffix.lower() == ".gz":
            with gzip.open(path, "rb") as unzipped:
                return unzipped.read(size)
        with path.open("rb") as plain:
            return plain.read(size)
    except (OSError, EOFError) as error:
        raise LogError(f"Cannot read {path}: {error}.") from error
