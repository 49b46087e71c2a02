"""Compact: merge many days of counts into one file."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from os import PathLike
from pathlib import Path

from prudent.base.errors import CountsError, ManifestError, WriteError
from prudent.counts.counts import Counts
from prudent.counts.days import Span, choose, day_or_age, in_force, span_of
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.formats import parquet_files
from prudent.storage.files import make_folder, manifest_path, reason
from prudent.storage.locks import Seen, has_changed, locked, look_at
from prudent.storage.manifest import IN_FOLDER, Manifest
from prudent.storage.quoting import file_text


@dataclass(frozen=True)
class Compacted:
    """The result of merging; ``file`` is None where fewer than two days were before the date."""

    before: date
    file: Path | None = None  # of the merged days
    first: date | None = None
    last: date | None = None
    days: int = 0
    cells_before: int = 0
    cells_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0


def compact(folder: str | PathLike[str], before: date | str, *, engine: DuckDB | None = None) -> Compacted:
    """Merge the days of a folder before a date, or before an age such as ``"90d"`` of the newest day, into one file.

    The sum of all days stays what it was, but merged days are no longer separate: they cannot be counted anew,
    ``since`` and ``until`` take all of them or none, and to a half-life they all have the age of the middle one.

    Others that count into the folder, or read it, wait meanwhile. Killed at any moment, the folder reads the same: from
    its rename on the merged file supersedes the days that went into it, and only then are they removed. The next call
    removes what an interrupted one left.

    >>> import prudent, pyarrow as pa, tempfile
    >>> log = pa.table({"context": ["shoes"], "items": [["i1", "i2"]], "clicks": [[0, 1]]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for day in ("2026-11-01", "2026-11-02", "2026-11-03"):
    ...         _ = prudent.count(log, to=folder, day=day)
    ...     prudent.compact(folder, before="2026-11-03").days
    2
    """
    with locked([Path(folder)] if os.path.isdir(folder) else []):
        return _compact(Path(folder), before, engine or DuckDB())


def _compact(folder: Path, before: date | str, engine: DuckDB) -> Compacted:
    files = [file for file in parquet_files(folder) if _is_day_in(file, folder)]
    if not files:
        raise CountsError(f"{folder} has no days to merge: there is no counts file in a folder such as day=2026-11-15.")
    valid = {file: span for file, span in in_force(files) if span is not None}
    limit = day_or_age("before", before, max(span.last for span in valid.values()))
    old = {file: span for file, span in valid.items() if span.last < limit}
    done = Compacted(limit)
    seen = {file: look_at(file) for file in files}
    if len(set(old.values())) > 1:
        done = _merge(folder, old, limit, engine)
        valid = {file: span for file, span in valid.items() if file not in old}
    _remove(folder, {file: mark for file, mark in seen.items() if file not in valid})
    return done


def _is_day_in(file: Path, folder: Path) -> bool:
    place = span_of(file)
    return place is not None and place[0] == folder


def _merge(folder: Path, files: dict[Path, Span], before: date, engine: DuckDB) -> Compacted:
    spans = set(files.values())
    merged = Span(min(span.first for span in spans), max(span.last for span in spans))
    target = make_folder(folder / merged.folder) / "counts.parquet"
    # The merged days are removed afterwards: the manifest names the logs that they were counted from.
    origin = dict.fromkeys(name for file in files for name in _inputs(file))
    replace(Counts.of_files(choose(list(files)), engine), origin=tuple(origin)).write(target)
    return Compacted(
        before,
        target,
        merged.first,
        merged.last,
        sum(span.number for span in spans),
        *(_cells(files, engine), _cells([target], engine)),
        *(_bytes(files), _bytes([target])),
    )


def _inputs(file: Path) -> Sequence[str]:
    """The logs that a day was counted from, by the manifest beside it or, as Spark leaves it, beside its folder."""
    for output in (file, file.parent):
        with suppress(ManifestError):
            manifest = Manifest.read(output, "counts")
            if manifest is not None:
                return manifest.sources["log"].inputs
    return [str(file)]


def _cells(files: Iterable[Path], engine: DuckDB) -> int:
    names = ", ".join(map(file_text, files))
    with engine.connect() as connection:
        cells = connection.execute(
            f"select coalesce(sum(len(code)), 0)::bigint from read_parquet([{names}])"
        ).fetchall()
    return int(cells[0][0])


def _bytes(files: Iterable[Path]) -> int:
    return sum(file.stat().st_size for file in files)


def _remove(folder: Path, files: Mapping[Path, Seen]) -> None:
    """Remove superseded files with their manifests, and folders that are empty then."""
    for file, seen in files.items():
        if has_changed(file, seen):  # where the file system has no locks
            raise CountsError(
                f"{file} was replaced while it was merged, and is superseded now. Count its log elsewhere."
            )
        try:
            file.unlink()
            manifest_path(file).unlink(missing_ok=True)
        except OSError as error:
            raise WriteError(f"Cannot remove {file}: {reason(error)}. It is superseded; remove it yourself.") from error
    inside = {parent for file in files for parent in file.parents if folder in parent.parents}
    # In the folder of a single day, somebody may be counting it.
    for emptied in sorted(inside | set(folder.glob("day=*..*/")), reverse=True):  # from the inside out
        written_here = emptied in inside and not parquet_files(emptied)
        for left in (*emptied.glob(".*.part"), *(_marks(emptied) if written_here else ())):
            with suppress(OSError):  # no reason to fail: it counts for nothing
                shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
        with suppress(OSError):  # where there is something else in it
            emptied.rmdir()


def _marks(folder: Path) -> Iterator[Path]:
    """Files that Spark writes beside its output, and the manifest of its folder."""
    yield from folder.glob(".*.crc")
    yield from (folder / "_SUCCESS", folder / IN_FOLDER)
    yield manifest_path(folder)
