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
from prudent.engines.spark.check import IMPRESSIONS, checked
from prudent.engines.spark.errors import JAVA_ERRORS
from prudent.engines.spark.open import escaped, is_dataframe, opened_in_spark
from prudent.logs.log import REASONS, Log
from prudent.storage.database import Database, first_line
from prudent.storage.files import replacing
from prudent.storage.filesystem import Location, replacing_folder
from prudent.storage.manifest import Tally
from prudent.storage.parquet import COUNTS_VERSION, VERSION, write_counts_file
from prudent.storage.quoting import file_text

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_READING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",  # a file that is skipped would be missing without a word
    "spark.sql.files.ignoreMissingFiles": "false",
}
_MARK = {VERSION: COUNTS_VERSION}  # Spark keeps it, with the column, in the footer of every part file


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
        marked = F.col("n").alias("n", metadata=_MARK)
        yield Job(session, counts.select(*counts.columns[:-1], marked), lists, observed, log)


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
    table: DataFrame
    checked: DataFrame
    observed: Observation  # how many lists had which reason to be rejected, once the query has run
    log: Log

    def write_file(self, to: Path, check: Callable[[Tally], object]) -> Tally:
        """Run it and write its rows to one Parquet file on this machine, as DuckDB would."""
        with (
            replacing(to) as part,
            Database().connect(spill=part.parent) as connection,
            self._on_this_machine(connection, part.parent),
        ):
            query = "select coalesce(sum(n), 0)::bigint from parts where position = 1"
            tally = self._tally(int(connection.execute(query).fetchall()[0][0]))
            connection.execute("set preserve_insertion_order = false")
            try:
                write_counts_file(connection, part, cells="from parts", lists=None, tally=tally)
            except duckdb.InvalidInputException as error:
                raise LogError(f"{self.log.name} has a name that is not UTF-8: {first_line(error)}") from error
            check(tally)
        return tally

    @contextmanager
    def _on_this_machine(self, connection: duckdb.DuckDBPyConnection, folder: Path) -> Iterator[None]:
        """Run it; the view `parts` of its rows."""
        if not str(self.session.conf.get("spark.master")).startswith("local"):
            # The machines of a cluster do not see this disk: rows come through the driver, within its
            # spark.driver.maxResultSize. Larger counts stay where they are, in a folder of part files.
            connection.register("parts", self.table.toArrow())
            yield
            return
        with tempfile.TemporaryDirectory(prefix=".prudent-", dir=folder) as here:
            self._write(f"file:{Path(here).resolve()}")
            files = ", ".join(file_text(file) for file in sorted(Path(here).glob("*.parquet")))
            connection.execute(f"create view parts as from read_parquet([{files}], hive_partitioning = false)")
            yield

    def write_folder(self, to: Location, check: Callable[[Tally], object]) -> Tally:
        """Run it and write its rows to a folder of part files, wherever Spark writes."""
        with replacing_folder(to, self.table.columns) as part:
            self._write(part.uri)
            written = self.session.read.parquet(*escaped([part]))
            tally = self._tally(written.where("position = 1").selectExpr("sum(n)").collect()[0][0] or 0)
            check(tally)
        return tally

    def _write(self, folder: str) -> None:
        self.table.write.option("compression", "zstd").mode("overwrite").parquet(folder)

    def _tally(self, counted: int) -> Tally:
        """What was observed, if it fits what was written; otherwise a second pass.

        When Spark repeats a task, because a machine was lost, it observes the same lists twice but writes them once.
        """
        try:
            lists = {code: n or 0 for code, n in enumerate(self.observed.get["lists"])}
        except JAVA_ERRORS:  # nothing is observed where Spark knows beforehand that there are no rows
            lists = {}
        if lists.get(0) != counted:
            again = self.checked.groupBy("reason").agg(F.sum("copies").alias("n")).collect()
            lists = {row["reason"]: row["n"] for row in again}
        rejected = {REASONS[code - 1]: n for code, n in sorted(lists.items()) if code and n}
        return replace(Tally(counted, rejected), left_out=self.log.left_out)
