"""Running the shared queries in Spark: what is written, and what is seen of the lists on the way.

Needs pyspark; `prudent.engines.spark.engine` imports this module when it is first used.
"""

import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody calls it)

from prudent.base.errors import LogError, UsageError
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.spark import hadoop
from prudent.engines.spark.check import IMPRESSIONS, checked
from prudent.engines.spark.engine import check_session
from prudent.engines.spark.open import is_dataframe, opened_in_spark
from prudent.logs.log import REASONS, Log
from prudent.storage.manifest import Tally
from prudent.storage.parquet import COUNTS_VERSION, counts_format, tally_text
from prudent.storage.quoting import file_text, text

_READING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",  # what is passed over would be missing without a word
    "spark.sql.files.ignoreMissingFiles": "false",
}
_MARK = {"prudent_counts": COUNTS_VERSION}  # Spark keeps it, with the column, in the footer of every part file


@contextmanager
def counting(given: SparkSession, log: Log, query: str) -> "Iterator[Job]":
    """The query over the view `impressions` of a log."""
    if log.propensity is not None:
        raise UsageError("Spark reads no propensities: they are for prudent evaluate. Leave out propensity.")
    session = _session(given, log)
    with opened_in_spark(session, log) as source:
        lists, seen = checked(log, source), Observation()
        by_reason = ", ".join(f"sum(if(reason = {code}, copies, 0L))" for code in range(len(REASONS) + 1))
        # A user may have a view of any name; ours has one that nobody has, and the others are part of the query's text.
        own = f"prudent_{secrets.token_hex(8)}"
        lists.observe(seen, F.expr(f"array({by_reason}) as lists")).createTempView(own)
        try:
            counts = session.sql(f"with checked as (select * from {own}), impressions as ({IMPRESSIONS}) {query}")
        finally:
            session.catalog.dropTempView(own)
        marked = F.col("n").alias("n", metadata=_MARK)
        yield Job(session, counts.select(*counts.columns[:-1], marked), lists, seen, log)


def _session(given: SparkSession, log: Log) -> SparkSession:
    """Where to count: a DataFrame in its own session, files in a new one, which may have settings of ours."""
    if is_dataframe(log.source):
        own: SparkSession = log.source.sparkSession
        check_session(own)
        return own
    return fresh_session(given, {})


def fresh_session(given: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A session with the settings of the given one and, where they differ, of ours."""
    session = given.newSession()
    inherited = session.conf.getAll
    for key, value in {**given.conf.getAll, **_READING, **settings}.items():
        if inherited.get(key) != value:
            session.conf.set(key, value)
    return session


@dataclass(frozen=True)
class Job:
    """A query over a log, not yet run."""

    session: SparkSession
    table: DataFrame
    checked: DataFrame
    seen: Observation  # how many lists had which reason to be rejected, once the query has run
    log: Log

    def write_counts_file(self, target: Path, left_out: Mapping[str, int]) -> Tally:
        """Run it and write its rows to one Parquet file on this machine, as DuckDB would."""
        with self._part_files(target) as parts, DuckDB().connect(spill=target.parent) as connection:
            found = connection.execute(f"select coalesce(sum(n), 0)::bigint from {parts} where position = 1").fetchall()
            tally = self._tally(int(found[0][0]))
            self._merge(connection, parts, target, counts_format(tally_text(replace(tally, left_out=left_out))))
            return tally

    def write_counts_folder(self, target: str, check: Callable[[Tally], object]) -> Tally:
        """Run it and write its rows to a folder anywhere."""
        with hadoop.replacing(self.session, target, self.table.columns) as folder:
            self._write(folder)
            written = self.session.read.parquet(hadoop.escaped(folder))
            tally = self._tally(written.where("position = 1").selectExpr("sum(n)").collect()[0][0] or 0)
            check(tally)
        return tally

    def _write(self, folder: str) -> None:
        self.table.write.option("compression", "zstd").mode("overwrite").parquet(folder)

    @contextmanager
    def _part_files(self, target: Path) -> Iterator[str]:
        """Run it; SQL that reads what it wrote, for as long as the block lasts."""
        with tempfile.TemporaryDirectory(prefix=".prudent-", dir=target.parent) as here:
            alone = str(self.session.sparkContext.master).startswith("local")
            # Machines of a cluster do not see our disk: files come by way of one that all of them see.
            parts = nullcontext(f"file:{Path(here).resolve()}") if alone else hadoop.shared_folder(self.session)
            with parts as folder:
                self._write(folder)
                files = (
                    sorted(Path(here).glob("*.parquet")) if alone else hadoop.fetch(self.session, folder, Path(here))
                )
            yield f"read_parquet([{', '.join(map(file_text, files))}], hive_partitioning = false)"

    def _merge(self, connection: duckdb.DuckDBPyConnection, parts: str, target: Path, how: str) -> None:
        connection.execute("set preserve_insertion_order = false")
        try:
            connection.execute(f"copy (from {parts}) to {text(target)} ({how})")
        except duckdb.InvalidInputException as error:
            said = str(error).splitlines()[0]
            raise LogError(f"{self.log.name} has a name that is not UTF-8. DuckDB says: {said}") from error

    def _tally(self, counted: int) -> Tally:
        """What was seen, if it fits what was written; else look again.

        When Spark repeats a task, because a machine was lost, it sees the same lists twice, but it writes them once.
        """
        try:
            seen = {code: n or 0 for code, n in enumerate(self.seen.get["lists"])}
        except hadoop.JAVA_ERRORS:  # where Spark knew beforehand that there is not a single row, it saw nothing
            seen = {}
        if seen.get(0) != counted:
            looked = self.checked.groupBy("reason").agg(F.sum("copies").alias("n")).collect()
            seen = {row["reason"]: row["n"] for row in looked}
        return Tally(counted, {REASONS[code - 1]: n for code, n in sorted(seen.items()) if code and n})
