"""DuckDB: counts logs on one machine, out of core."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from prudent.engines.duckdb import check
from prudent.engines.duckdb.open import opened
from prudent.logs.log import REASONS, Log
from prudent.storage.database import Database
from prudent.storage.manifest import Tally
from prudent.storage.parquet import counts_format, fill_placeholder, placeholder
from prudent.storage.quoting import file_text, text


@dataclass(frozen=True)
class DuckDB(Database):
    """The engine on one machine. ``memory`` caps it, e.g. ``"1GB"``; what does not fit spills beside the output."""

    def histogram(self, log: Log, query: str, target: Path) -> Tally:
        """See `Engine.histogram`."""
        with self._checking(log, target) as connection:
            connection.execute(f"create temp view impressions as {check.IMPRESSIONS}")
            later = placeholder(REASONS, log.left_out)
            connection.execute(f"copy ({query}) to {text(target)} ({counts_format(later)})")
            tally = _tally(connection, count_lists(connection, target))
            fill_placeholder(target, later, replace(tally, left_out=log.left_out))
            return tally

    def distinct_lists(
        self, log: Log, query: str, target: Path, length: int | None = None, where: str = "true"
    ) -> Tally:
        """Run `query` over the view ``shown`` of this log and write its rows to a Parquet file.

        The view has the columns context, items, clicks and, where the log names it, propensity: one row per accepted
        list, cut after `length` positions. The column n of the query is how often a list occurs. `where` is a
        condition on the context.
        """
        with self._checking(log, target, where) as connection:
            connection.execute(f"create temp view shown as {check.cut_lists(log, length)}")
            connection.execute(f"copy ({query}) to {text(target)} (format parquet, compression zstd)")
            counted = connection.execute(f"select coalesce(sum(n), 0)::bigint from read_parquet({file_text(target)})")
            return _tally(connection, int(counted.fetchall()[0][0]))

    @contextmanager
    def _checking(self, log: Log, target: Path, where: str = "true") -> Iterator[duckdb.DuckDBPyConnection]:
        """The views `lists` and `checked` of a log."""
        with self.connect(spill=target.parent) as connection, opened(connection, log) as source:
            # The order of rows means nothing here, and keeping it would cost memory.
            connection.execute("set preserve_insertion_order = false")
            # Text files, and lists grouped from rows, are too costly to read twice.
            kept = "view" if log.layout == "lists" and source.kind in ("parquet", None) else "table"
            connection.execute(f"create temp {kept} lists as select * from ({check.lists(log, source)}) where {where}")
            connection.execute(f"create temp view checked as {check.checked(log, source)}")
            yield connection


def _tally(connection: duckdb.DuckDBPyConnection, counted: int) -> Tally:
    """Accepted and rejected lists; the reasons take a second pass, and only where some were rejected."""
    ((everything,),) = connection.execute("select coalesce(sum(copies), 0)::bigint from lists").fetchall()
    if counted == everything:
        return Tally(counted)
    rejected = connection.execute(
        "select reason, sum(copies)::bigint from checked where reason > 0 group by reason order by reason"
    ).fetchall()
    return Tally(counted, {REASONS[code - 1]: n for code, n in rejected})


def count_lists(connection: duckdb.DuckDBPyConnection, histogram: Path) -> int:
    """Lists in a file of counts: each has exactly one first position."""
    query = f"select coalesce(sum(n), 0)::bigint from read_parquet({file_text(histogram)}) where position = 1"
    return int(connection.execute(query).fetchall()[0][0])
