"""Counts from whatever has them: counts, files of counts, or a log to count."""

from datetime import date
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prudent.base.errors import UsageError
from prudent.counts.counts import Counts, count, which_are_counts
from prudent.counts.max_rejected import MAX_REJECTED
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.formats import find_files, is_paths, path_names
from prudent.logs.log import as_log

if TYPE_CHECKING:
    from prudent.engines.spark.engine import Spark


def as_counts(
    source: Any,
    *,
    engine: "DuckDB | Spark | None" = None,
    max_rejected: float = MAX_REJECTED,
    since: date | str | None = None,
    until: date | str | None = None,
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
    if isinstance(source, Counts) and days:
        raise UsageError(f"{', '.join(days)}: these choose among files of counts. Pass them to Counts.read.")
    files = [] if isinstance(source, Counts) else counted_files(source, engine)
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


def counted_files(source: Any, engine: "DuckDB | Spark | None" = None) -> list[Path] | list[str]:
    """The files of a source that are counts: all or none. Spark, which reads elsewhere too, ranks only from counts."""
    if not is_paths(source):
        return []
    if not isinstance(engine, DuckDB | None):
        return path_names(source)
    files = find_files(source)
    counts = which_are_counts(files)
    if counts and len(counts) < len(files):
        raise UsageError(f"{counts[0]} holds counts and other files hold logs. Count the logs first, then name counts.")
    return counts
