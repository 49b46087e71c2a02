"""Counting in Spark: the lists of each context to the kernel, what it counts to one file or to a folder of part files.

Needs pyspark.
"""

import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody calls it)

from prudent.base.errors import LogError, UsageError
from prudent.engines.kernel.merging import merge_files
from prudent.engines.spark.open import escaped, is_dataframe, opened_in_spark
from prudent.engines.spark.reject import checked, count_rejected
from prudent.engines.spark.tasks import count_batches
from prudent.logs.log import REASONS, Log, recorded_names
from prudent.storage.counts_file import (
    CELL_COLUMNS,
    COLUMNS,
    COUNTS_VERSION,
    LIST_COLUMNS,
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
def counting(session: SparkSession, log: Log, remote: "FileSystem | None") -> "Iterator[Job]":
    """The counts of a log, not yet counted."""
    if log.propensity is not None:
        raise UsageError("Spark reads no propensities: only evaluation uses them. Leave out propensity.")
    # A DataFrame belongs to its session; files are read in a new one, which may have settings of ours.
    session = log.source.sparkSession if is_dataframe(log.source) else fresh_session(session, {})
    with opened_in_spark(session, log, remote) as source:
        lists, observed = checked(log, source), Observation()
        by_reason = ", ".join(f"sum(if(reason = {code}, copies, 0L))" for code in range(len(REASONS) + 1))
        accepted = lists.observe(observed, F.expr(f"array({by_reason}) as lists")).where("reason = 0")
        yield Job(session, _counted(accepted, log.max_positions), lists, observed, log)


def _counted(lists: DataFrame, max_positions: int) -> DataFrame:
    """One row per context, as counts files have it; all lists of a context go to one task.

    The column `lists` is how many lists it has. Each task keeps the sample of its own contexts, which has more contexts
    than that of all.
    """
    clicks = "transform(clicks, click -> int(click)) as clicks"
    shuffled = lists.selectExpr("context", "items", clicks, "0 as fault", "1L as copies").repartition("context")
    kinds = dict(shuffled.dtypes)
    schema = (
        f"context {kinds['context']}, items {kinds['items']}, cells array<int>, code array<int>, n array<bigint>, "
        "list_n array<bigint>, list_length array<int>, list_items array<int>, list_clicks array<boolean>, lists bigint"
    )
    with warnings.catch_warnings():
        # PySpark looks at pandas wherever Python runs; nothing here uses it.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        return shuffled.mapInArrow(partial(count_batches, max_positions=max_positions), schema)


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
    contexts: DataFrame  # their counts
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
            parts = self._fetch(Path(folder))
            every = f"read_parquet([{', '.join(map(file_text, parts))}], hive_partitioning = false)"
            query = f"select coalesce(sum(lists), 0)::bigint from {every}"
            tally = self._tally(int(connection.execute(query).fetchall()[0][0]))
            check(tally)
            source = Source(recorded_names(self.log), tally)
            threshold = sample_threshold(connection, f"select context, lists from {every}")
            pieces = merge_files(connection, parts, threshold, Path(folder))
            try:
                write_counts_file(connection, part, pieces, source=source, threshold=threshold)
            except duckdb.InvalidInputException as error:
                raise LogError(f"{self.log.name} has a name that is not UTF-8: {first_line(error)}") from error
        return tally

    def _fetch(self, folder: Path) -> list[Path]:
        """Count, and have the counts on this machine, in files that are sorted by context."""
        parts = (folder / "parts").resolve()
        if str(self.session.conf.get("spark.master")).startswith("local"):
            _write(self.contexts, f"file:{parts}")
            return sorted(parts.glob("*.parquet"))
        # The machines of a cluster do not see this disk: rows come through the driver, within its
        # spark.driver.maxResultSize. Larger counts stay where they are, in a folder of part files.
        from pyarrow import parquet

        parquet.write_table(self.contexts.toArrow().sort_by("context"), f"{parts}.parquet")
        return [parts.with_name("parts.parquet")]

    def write_folder(self, to: Location, check: Callable[[Tally], object]) -> Tally:
        """Run it and write its rows to a folder of part files, wherever Spark writes."""
        with replacing_folder(to, COLUMNS) as part, scratch_folder(to) as counted:
            # The sample depends on how many lists each context has, and is cut when all are counted. They are written
            # rather than cached: Spark observes nothing of a cached query.
            _write(self.contexts, counted.uri)
            rows = self.session.read.parquet(*escaped([counted]))
            tally = self._tally(rows.agg(F.sum("lists")).collect()[0][0] or 0)
            check(tally)
            threshold = self._threshold(rows.select("context", "lists"))
            sampled = [f"if({below(threshold, 'string')}, {name}, null) as {name}" for name in LIST_COLUMNS]
            # Spark keeps the metadata of a column in the footer of every part file.
            mark = F.col("n").alias("n", metadata={VERSION: COUNTS_VERSION, SAMPLE: threshold})
            kept = rows.selectExpr(*CELL_COLUMNS, *sampled).withColumns({"n": mark}).sortWithinPartitions("context")
            _write(kept, part.uri)
            write_text(part.child(IN_FOLDER), counts_manifest(Source(recorded_names(self.log), tally)).to_text())
        return tally

    def _tally(self, counted: int) -> Tally:
        return replace(count_rejected(self.observed, self.checked, counted), left_out=self.log.left_out)

    def _threshold(self, contexts: DataFrame) -> str:
        """The threshold of the sample; the rule runs in DuckDB, on the first contexts, which are enough to decide."""
        first = contexts.orderBy(F.md5(F.col("context").cast("string"))).limit(SAMPLE_LISTS + 1)
        with Database().connect() as connection:
            connection.register("contexts", first.toArrow())
            return sample_threshold(connection, "from contexts")


def _write(table: DataFrame, folder: str) -> None:
    table.write.option("compression", "zstd").mode("overwrite").parquet(folder)
