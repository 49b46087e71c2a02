"""Running the shared queries in DuckDB: rows to one Parquet file, and the tally of the lists."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import duckdb

from prudent.engines.duckdb import reject
from prudent.engines.duckdb.open import opened
from prudent.logs.log import Log, recorded_names
from prudent.storage.counts_file import write_counts_file
from prudent.storage.database import Database
from prudent.storage.files import replacing, writing_temporary
from prudent.storage.manifest import Source, Tally
from prudent.storage.quoting import file_text, text
from prudent.storage.sketch import below, sample_threshold


def write_counts(database: Database, log: Log, query: str, to: Path, check: Callable[[Tally], object]) -> Tally:
    """See `Engine.count`."""
    with replacing(to) as part, _checking(database, log, part) as connection:
        connection.execute(f"create temp view impressions as {reject.IMPRESSIONS}")
        # The sample depends on how many lists each context has, and is chosen when the cells are counted.
        with _removing(part.with_name(f"{part.name}.cells.part")) as file:
            connection.execute(f"copy ({query}) to {text(file)} (format parquet, compression zstd)")
            tally = replace(reject.count_rejected(connection, count_lists(connection, file)), left_out=log.left_out)
            check(tally)
            source = Source(recorded_names(log), tally)
            cells = f"select * from read_parquet({file_text(file)})"
            contexts = f"select context, sum(n) as lists from ({cells}) where position = 1 group by context"
            threshold = sample_threshold(connection, contexts)
            lists = (
                "select context, items, clicks, count(*) as n from checked "
                f"where reason = 0 and {below(threshold)} group by context, items, clicks"
            )
            write_counts_file(connection, part, cells=cells, lists=lists, source=source, threshold=threshold)
    return tally


@contextmanager
def _removing(file: Path) -> Iterator[Path]:
    try:
        yield file
    finally:
        with suppress(OSError):  # hidden, and no reason to fail
            file.unlink(missing_ok=True)


def write_lists(database: Database, log: Log, query: str, to: Path, *, length: int | None, where: str) -> Tally:
    """See `DuckDB.lists`."""
    with writing_temporary(to.parent), _checking(database, log, to, where) as connection:
        connection.execute(f"create temp view shown as {reject.cut_lists(log, length)}")
        connection.execute(f"copy ({query}) to {text(to)} (format parquet, compression zstd)")
        counted = connection.execute(f"select coalesce(sum(n), 0)::bigint from read_parquet({file_text(to)})")
        return reject.count_rejected(connection, int(counted.fetchall()[0][0]))


@contextmanager
def _checking(database: Database, log: Log, to: Path, where: str = "true") -> Iterator[duckdb.DuckDBPyConnection]:
    """The views `lists` and `checked` of a log."""
    with database.connect(spill=to.parent) as connection, opened(connection, log) as source:
        # The order of rows means nothing here, and keeping it would cost memory.
        connection.execute("set preserve_insertion_order = false")
        # Text files, and lists grouped from rows, are too costly to read twice.
        kept = "view" if log.layout == "lists" and source.kind in ("parquet", None) else "table"
        connection.execute(f"create temp {kept} lists as select * from ({reject.lists(log, source)}) where {where}")
        connection.execute(f"create temp view checked as {reject.checked(log, source)}")
        yield connection


def count_lists(connection: duckdb.DuckDBPyConnection, histogram: Path) -> int:
    """Lists in a file of counts: each has exactly one first position."""
    query = f"select coalesce(sum(n), 0)::bigint from read_parquet({file_text(histogram)}) where position = 1"
    return int(connection.execute(query).fetchall()[0][0])
