"""Counting in Spark: lists to the kernel in its tasks, what it counts to one file or to a folder of part files.

Needs pyspark.
"""

import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody calls it)

from prudent.base.errors import LogError, UsageError
from prudent.engines.base import tally_of
from prudent.engines.duckdb.rewards import check_sums, merge_rewards, with_rewards
from prudent.engines.kernel.merging import merge_files
from prudent.engines.spark.hygiene import without_left_out
from prudent.engines.spark.impressions import contexts_of, impressions_of
from prudent.engines.spark.open import escaped, is_dataframe, opened_in_spark
from prudent.engines.spark.reject import lists_of, rows_of
from prudent.engines.spark.tasks import count_batches, count_to_files
from prudent.logs.log import REASONS, Log, recorded_names
from prudent.storage.counts_file import (
    CELL_COLUMNS,
    COLUMNS,
    COUNTS_VERSION,
    LIST_COLUMNS,
    MOST_REWARDS,
    REWARD_COLUMNS,
    REWARDS_TOO_LARGE,
    SAMPLE,
    VERSION,
    Piece,
    common_threshold,
    counts_manifest,
    empty_piece,
    pieces_in,
    write_counts_file,
)
from prudent.storage.database import Database, first_line
from prudent.storage.files import replacing
from prudent.storage.filesystem import Location, replacing_folder, scratch_folder, write_text
from prudent.storage.manifest import IN_FOLDER, Source, Tally
from prudent.storage.quoting import text
from prudent.storage.sketch import EVERYTHING, NOTHING, SAMPLE_LISTS, below, sample_threshold

if TYPE_CHECKING:
    from pyarrow import RecordBatch
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
        text_files = source.kind in ("csv", "jsonl")
        if log.layout == "impressions":
            yield Impressions(session, impressions_of(rows_of(log, source), log, text_files), text_files, log)
        else:
            rows = rows_of(log, source)
            lists, log = without_left_out(lists_of(rows, log), rows, log)
            yield Job(session, lists, text_files, log)


def fresh_session(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A session with the settings of another one and, where they differ, of ours."""
    fresh = session.newSession()
    inherited = fresh.conf.getAll
    for key, value in {**session.conf.getAll, **_READING, **settings}.items():
        if inherited.get(key) != value:
            fresh.conf.set(key, value)
    return fresh


# What tasks return for a folder: the counts of a context, or the task's tally.
_COUNTS, _TALLY = "context is not null", "context is null"


@dataclass(frozen=True)
class Job:
    """A query over a log, not yet run."""

    session: SparkSession
    lists: DataFrame
    text_files: bool
    log: Log

    def write_file(self, to: Path, check: Callable[[Tally], object]) -> Tally:
        """Count, and write one Parquet file on this machine, as DuckDB would.

        Each task counts the lists that it reads, whatever their contexts; runs are merged here, like those that a
        single machine spills.
        """
        with (
            replacing(to) as part,
            Database().connect(spill=part.parent) as connection,
            tempfile.TemporaryDirectory(prefix=".prudent-", dir=part.parent) as name,
        ):
            folder = Path(name).resolve()
            # The machines of a cluster do not see this disk: runs come through the driver, within its
            # spark.driver.maxResultSize. Larger counts stay where they are, in a folder of part files.
            here = str(self.session.conf.get("spark.master")).startswith("local")
            write_runs = partial(count_to_files, folder=str(folder) if here else None)
            schema = "content binary, name string, rewards boolean, tally array<bigint>"
            done = self._map(self.lists, write_runs, schema).collect()
            tally = self._tally(row.tally for row in done if row.tally)
            check(tally)
            for row in done:
                if row.content is not None:
                    (folder / row.name).write_bytes(row.content)
            runs, sums = ([folder / row.name for row in done if row.name and row.rewards == of] for of in (False, True))
            source = Source(recorded_names(self.log), tally)
            try:
                threshold = common_threshold(connection, runs) if runs else EVERYTHING
                pieces = merge_files(connection, runs, threshold, folder) if runs else iter([self._nothing()])
                if sums:
                    merge_rewards(connection, sums, folder / "rewards.parquet")
                    pieces = with_rewards(connection.cursor(), pieces, folder / "rewards.parquet")
                write_counts_file(connection, part, pieces, source=source, threshold=threshold)
            except duckdb.InvalidInputException as error:
                raise LogError(f"{self.log.name} has a name that is not UTF-8: {first_line(error)}") from error
        return tally

    def _nothing(self) -> Piece:
        kinds = dict(self.lists.dtypes)
        context, item = ("VARCHAR" if "string" in kinds[name] else "BIGINT" for name in ("context", "items"))
        return empty_piece(context, item, rewards=self.log.reward is not None)

    @property
    def _rewards(self) -> tuple[str, ...]:
        return () if self.log.reward is None else REWARD_COLUMNS

    def write_folder(self, to: Location, check: Callable[[Tally], object]) -> Tally:
        """Count, and write a folder of part files, wherever Spark writes; all lists of a context go to one task."""
        with replacing_folder(to, (*COLUMNS, *self._rewards)) as part, scratch_folder(to) as counted:
            # The sample depends on how many lists each context has, and is cut when all are counted.
            _write(self._contexts(), counted.uri)
            written = self.session.read.parquet(*escaped([counted]))
            tally = self._counted(written)
            check(tally)
            rows = written.where(_COUNTS)
            if self._rewards and rows.where(f"array_max(reward_squares) >= {MOST_REWARDS}").limit(1).count():
                raise LogError(REWARDS_TOO_LARGE)
            threshold = self._threshold(rows.select("context", "lists"))
            sampled = [f"if({below(threshold, 'string')}, {name}, null) as {name}" for name in LIST_COLUMNS]
            # Spark keeps the metadata of a column in the footer of every part file.
            mark = F.col("n").alias("n", metadata={VERSION: COUNTS_VERSION, SAMPLE: threshold})
            kept = rows.selectExpr(*CELL_COLUMNS, *sampled, *self._rewards).withColumns({"n": mark})
            _write(kept.sortWithinPartitions("context"), part.uri)
            write_text(part.child(IN_FOLDER), counts_manifest(Source(recorded_names(self.log), tally)).to_text())
        return tally

    def _counted(self, written: DataFrame) -> Tally:
        """The tally, of what was written."""
        return self._tally(row.tally for row in written.where(_TALLY).select("tally").collect())

    def _contexts(self) -> DataFrame:
        """One row per context, as counts files have it, and how many `lists` it has.

        Each task keeps the sample of its own contexts, which has more contexts than that of all, and ends with a row
        without a context: its `tally`.
        """
        kinds = dict(self.lists.dtypes)
        schema = (
            f"context {kinds['context']}, items {kinds['items']}, cells array<int>, code array<int>, n array<bigint>, "
            "list_n array<bigint>, list_length array<int>, list_items array<int>, list_clicks array<boolean>, "
            f"{''.join(f'{name} array<bigint>, ' for name in self._rewards)}lists bigint, tally array<bigint>"
        )
        return self._map(self.lists.repartition("context"), count_batches, schema)

    def _map(self, lists: DataFrame, count: Callable[..., Iterator["RecordBatch"]], schema: str) -> DataFrame:
        """What tasks make of lists."""
        count = partial(count, max_positions=self.log.max_positions, text_files=self.text_files)
        with warnings.catch_warnings():
            # PySpark looks at pandas wherever Python runs; nothing here uses it.
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            return lists.mapInArrow(count, schema)

    def _tally(self, of_tasks: Iterable[Sequence[int]]) -> Tally:
        lists = [0] * (len(REASONS) + 1)
        for tally in of_tasks:
            lists = [sum(numbers) for numbers in zip(lists, tally, strict=True)]
        return tally_of(self.log, lists)

    def _threshold(self, contexts: DataFrame) -> str:
        """The threshold of the sample; the rule runs in DuckDB, on the first contexts, which are enough to decide."""
        first = contexts.orderBy(F.md5(F.col("context").cast("string"))).limit(SAMPLE_LISTS + 1)
        with Database().connect() as connection:
            connection.register("contexts", first.toArrow())
            return sample_threshold(connection, "from contexts")


@dataclass(frozen=True)
class Impressions(Job):
    """The same for single impressions, which Spark groups itself: `lists` has a row for each of them."""

    def write_file(self, to: Path, check: Callable[[Tally], object]) -> Tally:
        """Count, and write one Parquet file on this machine; all that is counted comes through the driver."""
        tally = self._counted(self.lists)
        check(tally)
        with (
            replacing(to) as part,
            Database().connect(spill=part.parent) as connection,
            tempfile.TemporaryDirectory(prefix=".prudent-", dir=part.parent) as name,
        ):
            grouped = Path(name).resolve() / "contexts.parquet"
            connection.register("contexts", self._contexts().select(*COLUMNS, *self._rewards).toArrow())
            if self._rewards:
                each = ", ".join(f"unnest({name}) as {name}" for name in self._rewards)
                check_sums(connection, f"(select {each} from contexts)")
            connection.execute(f"copy (from contexts order by context) to {text(grouped)} (format parquet)")
            source = Source(recorded_names(self.log), tally)
            write_counts_file(connection, part, pieces_in(connection.cursor(), grouped), source=source)
        return tally

    def _counted(self, written: DataFrame) -> Tally:
        numbers = [0] * (len(REASONS) + 1)
        for row in self.lists.groupBy("fault").count().collect():
            numbers[row["fault"]] = row["count"]
        return tally_of(self.log, numbers)

    def _contexts(self) -> DataFrame:
        return contexts_of(self.lists)

    def _threshold(self, contexts: DataFrame) -> str:
        return NOTHING


def _write(table: DataFrame, folder: str) -> None:
    table.write.option("compression", "zstd").mode("overwrite").parquet(folder)
