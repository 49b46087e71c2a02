"""`prudent.count`: counts from whatever has them, which is a log, files of counts, or `Counts`."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import duckdb

from prudent.base.errors import LogError, UsageError
from prudent.counts.counts import Counts
from prudent.counts.days import check_not_merged, day_folder, place
from prudent.counts.max_rejected import MAX_REJECTED, check_max_rejected, check_tally
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.spark.engine import Spark
from prudent.logs.formats import find_files, first_bytes, is_paths, named_files, path_names
from prudent.logs.log import Log, as_log, recorded_names
from prudent.storage.counts_file import COLUMNS, Piece, counts_version
from prudent.storage.files import TemporaryFolder, check_output, has_scheme, make_folder, private_part, replacing
from prudent.storage.filesystem import (
    check_apart,
    find,
    locate,
    place_folder,
    scratch_folder,
    subfolders,
    write_text,
)
from prudent.storage.locks import locked
from prudent.storage.manifest import Manifest, Tally
from prudent.storage.parquet import read_footer


def count(
    source: Any,
    *,
    engine: DuckDB | Spark | None = None,
    to: str | PathLike[str] | None = None,
    day: date | str | None = None,
    max_rejected: float = MAX_REJECTED,
    **log: Any,
) -> Counts:
    """Count a log: one pass, in the engine, after which models, bounds and δ are free to vary.

    ``source`` is a log: a path, several, a table or a `Log`; `log` are arguments of `as_log`, such as the names of
    columns. Files of counts are added up.

    to
        The Parquet file to write; without it the counts are in memory or, where they do not fit, in a temporary file,
        which is removed with them. With
        `prudent.Spark`, a path with a scheme (``s3a://...``) and a name that does not end in ``.parquet`` become a
        folder of part files.
    day
        The day of these lists, such as ``"2026-11-15"``. ``to`` is then the folder of all days, in which this day gets
        a folder; counted again, it is replaced.
    max_rejected
        Maximum share of rejected lists: more are an error, so that a wrong column does not go unnoticed.

    >>> import prudent, pyarrow as pa
    >>> lists = [{"query": "shoes", "items": ["i1", "i2"], "clicks": [0, 1]}] * 9
    >>> prudent.count(pa.Table.from_pylist(lists), context="query")
    Counts of 9 lists from the Table
    """
    check_max_rejected(max_rejected)
    engine = DuckDB() if engine is None else engine
    if not isinstance(engine, DuckDB | Spark):
        raise UsageError(f"The engine is {engine!r}: prudent.DuckDB(...) or prudent.Spark(session).")
    if day is not None and to is None:
        raise UsageError(f"Say in which folder the day {day} goes: to=...")
    if to is not None and isinstance(engine, Spark) and (has_scheme(fspath(to)) or _is_folder(to, day)):
        return _count_to_folder(as_log(source, **log), engine, to, max_rejected, day)
    target = None if to is None else _target(to, day, source)
    if to is not None and has_scheme(to):
        counts = count(source, engine=engine, max_rejected=max_rejected, **log)
        counts.write(to)
        return counts
    reader = engine if isinstance(engine, DuckDB) else DuckDB()
    files = counted_files(source) if isinstance(engine, DuckDB) else []  # Spark reads logs that are not here
    if files or isinstance(source, Counts):
        # By the names that were given: files in a folder of days may be replaced before they are read.
        counts = source if isinstance(source, Counts) else Counts.read(*path_names(source), engine=engine)
        if target is None:
            return counts
        with _placing(target, to, day, lambda: counts.manifest) as part:
            counts.write_file(part)
        return replace(counts, files=(target,), remote=(), seen=(), held=None)
    opened = as_log(source, engine=reader, **log)
    check = partial(check_tally, log=opened, max_rejected=max_rejected)
    if target is None:
        folder = TemporaryFolder()
        target, names = folder.path / "counts.parquet", recorded_names(opened)
        if isinstance(engine, DuckDB):
            tally, held = engine.hold(opened, target, check=check)
            if held is not None:
                return Counts((), tally, reader, names, held=held)
        else:
            tally = engine.count(opened, target, check=check)
        return Counts((target,), tally, reader, names, _folder=folder)
    with _placing(target, to, day, lambda: counts.manifest) as part:
        tally = engine.count(opened, part, check=check)
        counts = Counts((target,), tally, reader, recorded_names(opened))
    return counts


def count_with_lists(
    log: Log, engine: DuckDB, *, max_rejected: float, most: int | None = None
) -> tuple[Counts, Piece, str]:
    """The counts of a log, and its whole lists with the threshold of their sample, in one pass.

    Of more than `most` lists they are a sample of contexts with all of their lists.
    """
    folder = TemporaryFolder()
    target, names = folder.path / "counts.parquet", recorded_names(log)
    check = partial(check_tally, log=log, max_rejected=max_rejected)
    tally, held, lists, threshold = engine.hold_with_lists(log, target, check=check, most=most)
    if held is not None:
        return Counts((), tally, engine, names, held=held), lists, threshold
    return Counts((target,), tally, engine, names, _folder=folder), lists, threshold


def as_counts(
    source: Any,
    *,
    engine: DuckDB | Spark | None = None,
    max_rejected: float = MAX_REJECTED,
    since: date | str | None = None,
    until: date | str | None = None,
    half_life: str | float | None = None,
    **log: Any,
) -> Counts:
    """Counts from `Counts`, from files or folders of counts, or from a log: a path, several, a table or a `Log`.

    ``since``, ``until`` and ``half_life`` are those of `Counts.read` and apply to files of counts; `log` are arguments
    of `as_log`, such as column names, and apply to logs. Spark, which reads elsewhere too, takes all paths for counts.
    """
    days: dict[str, Any] = {"since": since, "until": until, "half_life": half_life}
    days = {name: value for name, value in days.items() if value is not None}
    if isinstance(source, Counts):
        if days:
            raise UsageError(f"{', '.join(days)}: these choose among files of counts. Pass them to Counts.read.")
        return source
    paths = isinstance(engine, Spark) and is_paths(source)
    files: Sequence[str | Path] = path_names(source) if paths else counted_files(source)
    if files:
        return Counts.read(*path_names(source), engine=engine, **days)
    for name in days:
        raise UsageError(
            f"{name} (--{name.replace('_', '-')}) applies to counts by day. Count each day first: "
            "prudent count LOG -o counts/ --day DATE"
        )
    return count(source, engine=engine, max_rejected=max_rejected, **log)


def counted_files(source: Any) -> list[Path]:
    """The files of a source that are counts, whatever their names: all or none."""
    if not is_paths(source):
        return []
    files = find_files(source)
    with DuckDB().connect() as connection:
        counts = [file for file in files if _holds_counts(connection, file)]
    if counts and len(counts) < len(files):
        raise UsageError(f"{counts[0]} holds counts and other files hold logs. Count the logs first, then name counts.")
    return counts


def _holds_counts(connection: duckdb.DuckDBPyConnection, file: Path) -> bool:
    if first_bytes(file, 4) != b"PAR1":
        return False
    try:
        return counts_version(read_footer(connection, file)) is not None
    except duckdb.Error:
        return False


# --- where counts go --------------------------------------------------------------------------------------------------


def _target(to: str | PathLike[str], day: date | str | None, source: Any) -> Path:
    """The file for counts, `to` or that of a day in it; raise before the work where it cannot be written."""
    name = fspath(to)
    if has_scheme(name) and day is not None:
        raise UsageError(
            f"{name} is not a folder on this machine, and days need one that can be locked. Name a file for each day "
            f"instead, such as {name.rstrip('/')}/day={day}/counts.parquet, or let Spark write: "
            "engine=prudent.Spark(...) (--engine spark)."
        )
    if day is None and (name.endswith("/") or os.path.isdir(name)):
        raise UsageError(
            f"{name} is a folder. Set the day of these lists, as in day='2026-11-15' (--day), or name a file."
        )
    if day is not None and (Path(name).is_file() or name.endswith(".parquet")):
        raise UsageError(f"day= (--day) needs the folder of all days, and {name} is a file. Name a folder.")
    target = Path(name) if day is None else place(name, day)
    if isinstance(source, Log):
        source = source.names if source.in_files else []
    read = path_names(source) if is_paths(source) else []
    for folder in read:
        if os.path.isdir(folder) and Path(folder).resolve() in target.resolve().parents:
            raise UsageError(f"{target} is inside {folder}, which is read here. Choose an output elsewhere.")
    files: list[str | Path] = []
    with suppress(LogError):  # what is not on this machine cannot be overwritten here
        files = named_files(read)
    check_output(target, files)
    return target


@contextmanager
def _placing(
    target: Path, to: str | PathLike[str] | None, day: date | str | None, manifest: Callable[[], Manifest]
) -> Iterator[Path]:
    """The file to write counts to. That of a day gets its name while nobody merges or reads the days, and only then."""
    if day is None or to is None:
        yield target
        manifest().write(target)
        return
    with private_part(target) as part:
        yield part
        with locked([Path(to)]):
            place(to, day)  # once more: it may have been merged meanwhile
            with replacing(target) as last:
                part.rename(last)
            manifest().write(target)


def _is_folder(to: str | PathLike[str], day: date | str | None) -> bool:
    """Whether Spark writes a folder of part files: for a day, and unless the name is that of a Parquet file."""
    return day is not None or os.path.isdir(to) or Path(to).suffix != ".parquet"


def _count_to_folder(
    log: Log, engine: Spark, to: str | PathLike[str], max_rejected: float, day: date | str | None
) -> Counts:
    days = locate(to, engine.filesystem)
    target = days if day is None else days.child(day_folder(day))
    if day is not None:
        check_not_merged(days.name, subfolders(days, "day="), day)
    if log.in_files:
        check_apart(target, [locate(name, engine.filesystem) for name in log.names])

    def check(tally: Tally) -> None:
        check_tally(tally, log, max_rejected)

    if day is None or days.local is None:  # object stores and HDFS have no locks
        tally = engine.count(log, target, check=check)
    else:
        make_folder(days.local)
        with scratch_folder(target) as part:
            tally = engine.count(log, part, check=check)
            with locked([days.local]):
                check_not_merged(days.name, subfolders(days, "day="), day)  # once more: it may be merged by now
                place_folder(part, target, COLUMNS)
    parts, names = tuple(find(target.name, engine.filesystem)), recorded_names(log)
    if target.local is None:
        counts = Counts((), tally, origin=names, remote=parts)
    else:
        counts = Counts(tuple(Path(part.path) for part in parts), tally, origin=names)
    write_text(target.sibling(f"{target.path.rpartition('/')[2]}.manifest.json"), counts.manifest.to_text())
    return counts
