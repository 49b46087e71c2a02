"""Counts from whatever has them: counts, files of counts, or a log to count."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from prudent.base.errors import UsageError
from prudent.counts.counts import Counts, count, which_are_counts
from prudent.counts.rejected import MAX_REJECTED
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.formats import find_files, is_path
from prudent.logs.log import as_log


def as_counts(
    source: Any,
    *,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
    since: str | None = None,
    until: str | None = None,
    half_life: str | float | None = None,
    to: str | PathLike[str] | None = None,
    **log: Any,
) -> Counts:
    """Counts from `Counts`, from files or folders of counts, or from a log: a path, several, a table or a `Log`.

    ``since``, ``until`` and ``half_life`` are those of `Counts.read` and apply to files of counts; `log` are arguments
    of `as_log`, such as column names, and apply to logs. ``to`` is a Parquet file to write the counts to.
    """
    days: dict[str, Any] = {"since": since, "until": until, "half_life": half_life}
    days = {name: value for name, value in days.items() if value is not None}
    files = [] if isinstance(source, Counts) else counted_files(source)
    if files or isinstance(source, Counts):
        counts = source if isinstance(source, Counts) else Counts.read(*files, engine=engine, **days)
        if to is not None:
            counts.write(to)
        return counts
    for name in days:
        raise UsageError(
            f"{name} (--{name.replace('_', '-')}) applies to counts by day. Count each day first: "
            "prudent count LOG -o counts/ --day DATE"
        )
    return count(as_log(source, engine=engine, **log), engine, to, max_rejected)


def counted_files(source: Any) -> list[Path]:
    """The files of a source that are counts: all or none."""
    if not is_path(source) and not (isinstance(source, Sequence) and all(map(is_path, source))):
        return []
    files = find_files(source)
    check_once(files)
    counts = which_are_counts(files)
    if counts and len(counts) < len(files):
        raise UsageError(f"{counts[0]} holds counts and other files hold logs. Count the logs first, then name counts.")
    return counts


def check_once(files: Sequence[str | PathLike[str]]) -> None:
    """Raise where a file is named twice, under whatever name: its lists would count twice."""
    real = [Path(file).resolve() for file in files]
    for file, at in zip(files, real, strict=True):
        if real.count(at) > 1:
            raise UsageError(f"{file} is named twice, and would be counted twice.")
