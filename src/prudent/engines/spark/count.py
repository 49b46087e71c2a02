"""Running the counting query in Spark: rows to one file or to a folder of part files, and the tally of the lists.

Needs pyspark.
"""

import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody calls it)

from prudent.base.errors import LogError, UsageError
from prudent.engines.spark.open import escaped, is_dataframe, opened_in_spark
from prudent.engines.spark.reject import IMPRESSIONS, checked, count_rejected
from prudent.logs.log import REASONS, Log, recorded_names
from prudent.storage.counts_file import (
    CELL_KEYS,
    COLUMNS,
    COUNTS_VERSION,
    SAMPLE,
    VERSION,
    counts_manifest,
    write_counts_file,
)
from prudent.storage.database import Database, first_line
from prudent.storage.files import replacing
from prudent.storage.filesystem import Location, replacing_folder, scratch_folder, write_text
from prudent.storage.manifest import IN_FOLDER, Source, Tally
from prudent.storage.quoting import file_text
from prudent.storage.sketch import SAMPLE_LISTS, below, sample_threshold

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_READING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",  # a file that is skipped would be missing without a word
    "spark.sql.files.ignoreMissingFiles": "false",
}


@contextmanager
def counting(session: SparkSession, log: Log, query: str, remote: "FileSystem | None") -> "Iterator[Job]":
    """The query over the view `impressions` of a log."""
    if log.propensity is not None:
        raise UsageError("Spark reads no propensities: only evaluation uses them. Leave out propensity.")
    # A DataFrame belongs to its session; files are read in a new one, which may have settings of ours.
    session = log.source.sparkSession if is_dataframe(log.source) else fresh_session(session, {})
    with opened_in_spark(session, log, remote) as source:
        lists, observed = checked(log, source), Observation()
        by_reason = ", ".join(f"sum(if(reason = {code}, copies, 0L))" for code in range(len(REASONS) + 1))
        # The user may have a view of any name; this one is unique, and the others are part of the query.
        own = f"prudent_{secrets.token_hex(8)}"
        lists.observe(observed, F.expr(f"array({by_reason}) as lists")).createTempView(own)
        try:
            counts = session.sql(f"with checked as (select * from {own}), impressions as ({IMPRESSIONS}) {query}")
        finally:
            session.catalog.dropTempView(own)
        # Selected once more: Spark observes nothing when it collects the very query that session.sql has made.
        yield Job(session, counts.select(*counts.columns), lists, observed, log)


def fresh_session(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A session with the settings of another one and, where they differ, of ours."""
    fresh = session.newSession()
    inherited = fresh.conf.getAll
    for key, value in {**session.conf.getAll, **_READING, **settings}.items():
        if inherited.get(key) != value:
            fresh.conf.set(key, value)
    return fresh


@dataclass(frozen=True)
class Job:
    """A query over a log, not yet run."""

    session: SparkSession
    cells: DataFrame
    checked: DataFrame
    observed: Observation  # how many lists had which reason to be rejected, once the query has run
    log: Log

    def write_file(self, to: Path, check: Callable[[Tally], object]) -> Tally:
        """Run it and write its rows to one Parquet file on this machine, as DuckDB would."""
        with (
            replacing(to) as part,
            Database().connect(spill=part.parent) as connection,
            tempfile.TemporaryDirectory(prefix=".prudent-", dir=part.parent) as folder,
        ):
            connection.execute("set preserve_insertion_order = false")
            cells = self._fetch(connection, self.cells, "cells", Path(folder))
            query = f"select coalesce(sum(n), 0)::bigint from ({cells}) where position = 1"
            tally = self._tally(int(connection.execute(query).fetchall()[0][0]))
            check(tally)
            source = Source(recorded_names(self.log), tally)
            contexts = f"select context, sum(n) as lists from ({cells}) where position = 1 group by context"
            threshold = sample_threshold(connection, contexts)
            lists = self._fetch(connection, self._sample(threshold), "lists", Path(folder))
            try:
                write_counts_file(connection, part, cells=cells, lists=lists, source=source, threshold=threshold)
            except duckdb.InvalidInputException as error:
                raise LogError(f"{self.log.name} has a name that is not UTF-8: {first_line(error)}") from error
        return tally

    def _fetch(self, connection: duckdb.DuckDBPyConnection, table: DataFrame, name: str, folder: Path) -> str:
        """Run a query; one for its rows in DuckDB."""
        if not str(self.session.conf.get("spark.master")).startswith("local"):
            # The machines of a cluster do not see this disk: rows come through the driver, within its
            # spark.driver.maxResultSize. Larger counts stay where they are, in a folder of part files.
            connection.register(name, table.toArrow())
            return f"from {name}"
        parts = (folder / name).resolve()
        _write(table, f"file:{parts}")
        files = ", ".join(file_text(file) for file in sorted(parts.glob("*.parquet")))
        return f"from read_parquet([{files}], hive_partitioning = false)"

    def write_folder(self, to: Location, check: Callable[[Tally], object]) -> Tally:
        """Run it and write its rows to a folder of part files, wherever Spark writes."""
        with replacing_folder(to, COLUMNS) as part, scratch_folder(to) as counted:
            # The sample depends on how many lists each context has, and is chosen when the cells are counted. They are
            # written rather than cached: Spark observes nothing of a cached query.
            _write(self.cells, counted.uri)
            cells = self.session.read.parquet(*escaped([counted]))
            contexts = cells.where("position = 1").groupBy("context").agg(F.sum("n").alias("lists"))
            tally = self._tally(contexts.agg(F.sum("lists")).collect()[0][0] or 0)
            check(tally)
            threshold = self._threshold(contexts)
            lists = self._sample(threshold).selectExpr(
                "context",
                f"cast(null as {dict(cells.dtypes)['item']}) as item",
                *("0 as position", "0 as prev", "false as click", "false as more", "n", "items", "clicks"),
            )
            rows = cells.unionByName(lists.coalesce(1), allowMissingColumns=True)
            # Spark keeps the metadata of a column in the footer of every part file.
            mark = F.col("n").alias("n", metadata={VERSION: COUNTS_VERSION, SAMPLE: threshold})
            _write(rows.select(*CELL_KEYS, mark, "items", "clicks"), part.uri)
            write_text(part.child(IN_FOLDER), counts_manifest(Source(recorded_names(self.log), tally)).to_text())
        return tally

    def _tally(self, counted: int) -> Tally:
        return replace(count_rejected(self.observed, self.checked, counted), left_out=self.log.left_out)

    def _sample(self, threshold: str) -> DataFrame:
        """The lists of the contexts below a threshold, and how often each occurs."""
        lists = self.checked.where(f"reason = 0 and {below(threshold, 'string')}")
        clicks = "transform(clicks, click -> click = 1) as clicks"
        return (
            lists.selectExpr("context", "items", clicks)
            .groupBy("context", "items", "clicks")
            .agg(F.count(F.lit(1)).alias("n"))
        )

    def _threshold(self, contexts: DataFrame) -> str:
        """The threshold of the sample; the rule runs in DuckDB, on the first contexts, which are enough to decide."""
        first = contexts.orderBy(F.md5(F.col("context").cast("string"))).limit(SAMPLE_LISTS + 1)
        with Database().connect() as connection:
            connection.register("contexts", first.toArrow())
            return sample_threshold(connection, "from contexts")


def _write(table: DataFrame, folder: str) -> None:
    table.write.option("compression", "zstd").mode("overwrite").parquet(folder)
