"""Counts summed by context in Spark, samples of contexts, and a function mapped over whole contexts.

Needs pyspark. What ranking makes of the rows of a context is not known here: it is passed in as functions.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from os import PathLike, fspath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody calls it)

from prudent.base.errors import CountsError, LogError, UsageError
from prudent.engines.spark.count import fresh_session
from prudent.engines.spark.engine import Spark
from prudent.engines.spark.errors import JAVA_ERRORS, first_line, messages
from prudent.engines.spark.open import escaped
from prudent.engines.sql.contexts import composed
from prudent.logs.log import Candidates
from prudent.storage.counts_file import COLUMNS, MOST_REWARDS, REWARD_COLUMNS, REWARDS_TOO_LARGE
from prudent.storage.filesystem import Location, find, replacing_folder, total_size, write_text
from prudent.storage.manifest import IN_FOLDER, Manifest
from prudent.storage.quoting import backquoted

_BYTES = 16_000_000  # of counts files for a task to be worth its start
_ROWS = 1_000_000  # of counts that a task holds at a time; a context with more is held whole
_KEYS = ("context", "item", "position", "prev", "click", "more")

Enough = Callable[[Any, Any, float], int]
"""How many contexts, in this order, are enough, by their numbers of pairs and cells, and the share of all to take."""


@dataclass(frozen=True)
class Contexts:
    """Summed counts, with a row at position 0 for every candidate; the rows of a context are in one task, sorted."""

    session: SparkSession
    rows: DataFrame
    per_context: DataFrame

    @property
    def kinds(self) -> tuple[str, str]:
        """The types of contexts and items, as DuckDB has them."""
        types = dict(self.rows.dtypes)
        context, item = ("VARCHAR" if types[name] == "string" else "BIGINT" for name in ("context", "item"))
        return context, item

    def summarize(self, min_lists: int, unseen: bool) -> dict[str, int]:
        """How much there is to rank, where contexts with fewer lists, in the unit of n, are left out.

        If `unseen`, contexts without any list are not left out.
        """
        kept = f"(eligible > 0 and (lists >= {min_lists}L{' or lists = 0' if unseen else ''}))"
        (row,) = self.per_context.selectExpr(
            "sum(clicks) as clicks",
            "max(longest) as positions",
            "sum(pairs) as pairs",
            f"count_if({kept}) as contexts",
            f"count_if({kept} and lists = 0) as unseen",
            f"count_if(eligible > 0 and not {kept}) as too_few_lists",
            "count_if(eligible = 0 and lists > 0) as without_candidates",
            "max(eligible) as most_eligible",
            f"max(if({kept}, eligible, 0)) as most_listed",
            "max(most_rewards) as most_rewards",
        ).collect()
        found = {name: int(value or 0) for name, value in row.asDict().items()}
        if found.pop("most_rewards") > MOST_REWARDS:
            raise CountsError(REWARDS_TOO_LARGE)
        return found

    def samples(self, enough: Enough, most: int) -> tuple[pa.Table, pa.Table]:
        """Sorted rows of the contexts with most lists, and of contexts in random order, as many as are enough.

        Half of the former have a list of full length. `most` is a number of contexts that is enough in any case.
        """
        keyed = self.per_context.selectExpr(
            "context", "pairs", "cells", "longest", "-lists as heavy", "md5(cast(context as string)) as random"
        )

        def first(contexts: DataFrame, order: Sequence[str], share: float) -> Column:
            """Whether a context is one of the first, in this order, that are enough."""
            table = contexts.orderBy(*order).limit(most).toArrow()
            pairs, cells = (table[name].to_numpy().astype(np.int64) for name in ("pairs", "cells"))
            last = enough(pairs, cells, share) - 1
            ends = F.struct(*(F.lit(table[name][last].as_py()).cast(keyed.schema[name].dataType) for name in order))
            return F.struct(*order) <= ends

        def rows(chosen: Column) -> pa.Table:
            contexts = F.broadcast(keyed.where(chosen).select("context"))
            return self.rows.join(contexts, "context", "left_semi").orderBy(*_KEYS).toArrow()

        heaviest, shuffled = ("heavy", "random", "context"), ("random", "context")
        sizes = keyed.orderBy(*shuffled).limit(most + 1).select("pairs", "cells").toArrow()
        pairs, cells = (sizes[name].to_numpy().astype(np.int64) for name in ("pairs", "cells"))
        if len(pairs) <= most and enough(pairs, cells, 1.0) == len(pairs):
            whole = rows(F.lit(True))
            return whole, whole
        longest = keyed.agg(F.max("longest")).collect()[0][0]
        full = F.col("longest") == longest
        keyed = keyed.withColumn("later", ~(full & first(keyed.where(full), heaviest, 0.5)))
        return rows(first(keyed, ("later", *heaviest), 1.0)), rows(first(keyed, shuffled, 1.0))

    def add_up(
        self, function: Callable[[pa.Table], pa.RecordBatch], keys: Sequence[str], sums: Sequence[str], most: int
    ) -> pa.Table | None:
        """Apply a function to the rows of whole contexts, and add up the sums of rows with the same keys.

        All columns are integers. None where more than `most` rows remain.
        """
        schema = ", ".join(f"{name} bigint" for name in (*keys, *sums))

        def apply(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for table in whole_contexts(batches, _ROWS):
                yield function(table)

        with _without_pandas():
            mapped = self.rows.mapInArrow(apply, schema)
        added = mapped.groupBy(*keys).agg(*(F.sum(name).alias(name) for name in sums)).limit(most + 1).toArrow()
        return added if added.num_rows <= most else None

    def map_contexts(
        self, function: Callable[[pa.Table], pa.RecordBatch], columns: str, *, to: Location, keep: Sequence[str],
        sums: Mapping[str, str], manifest: Callable[[Mapping[str, Any]], Manifest], texts: Mapping[str, str],
    ) -> Manifest:  # fmt: skip
        """Apply a function to the rows of whole contexts, write the columns to `keep` to a folder, and sum up.

        `columns` are those that the function returns, besides context, rank and item; `sums` are SQL terms to add up
        over the rows of rank 1. The manifest that is made of them goes into the folder, and is returned; `texts` go
        there as well, by the names of their files.
        """
        types = dict(self.rows.dtypes)
        schema = f"context {types['context']}, rank int, item {types['item']}, {columns}"

        def apply(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for table in whole_contexts(batches, _ROWS):
                yield function(table)

        with _without_pandas():
            mapped = self.rows.mapInArrow(apply, schema)
        each = [F.expr("count_if(rank = 1)").alias("contexts")]
        each += [F.expr(f"sum(if(rank = 1, {term}, 0))").alias(name) for name, term in sums.items()]
        observed = Observation()
        with replacing_folder(to, keep) as folder:
            lists = mapped.observe(observed, *each).select(*keep)
            try:
                lists.write.option("compression", "zstd").mode("overwrite").parquet(folder.uri)
            except JAVA_ERRORS as error:
                if "No module named 'prudent" in str(error):
                    raise UsageError(
                        "The Python workers of Spark have no prudent. Install it where they run, or set PYSPARK_PYTHON "
                        "to a Python that has it before Spark starts."
                    ) from None
                raise
            written = self.session.read.parquet(*escaped([folder])).where("rank = 1").count()
            totals = dict(observed.get)
            if totals["contexts"] != written:  # a task that was repeated is observed twice, and written once
                totals = mapped.agg(*each).collect()[0].asDict()
            made = manifest(totals)
            for name, content in {**texts, IN_FOLDER: made.to_text()}.items():
                write_text(folder.child(name), content)
        return made


@contextmanager
def _without_pandas() -> Iterator[None]:
    """PySpark looks at pandas wherever Python runs; nothing here uses it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


@contextmanager
def opened_counts(
    engine: Spark, files: Mapping[Location, int], unit: int, candidates: Candidates | None, *, rewarded: bool
) -> Iterator[Contexts]:
    """The sum of counts files, each with its weight; what Spark raises in the block becomes an error of one line.

    `unit` is the weight of a file that counts in full. Where the log has rewards (`rewarded`), their sums are columns.
    """
    name = ", ".join(file.name for file in files)
    session = fresh_session(engine.running, {"spark.sql.execution.arrow.maxRecordsPerBatch": "100000"})
    try:
        offer = None if candidates is None else _offer(engine, session, candidates)
        rewards = REWARD_COLUMNS if rewarded else ()
        rows = _rows(session, files, unit, offer, "" if candidates is None else name_of(candidates.source), rewards)
        per_context = _per_context(rows, rewards).persist()
        try:
            yield Contexts(session, rows, per_context)
        finally:
            per_context.unpersist()
            rows.unpersist()
    except JAVA_ERRORS as error:
        raise LogError(f"Spark cannot rank {name}: {first_line(messages(error)[-1])}.") from error


def _rows(
    session: SparkSession, files: Mapping[Location, int], unit: int, offer: DataFrame | None, name: str,
    rewards: Sequence[str],
) -> DataFrame:  # fmt: skip
    groups: dict[int, list[Location]] = {}
    for file, weight in files.items():
        groups.setdefault(weight, []).append(file)
    tables = []
    for weight, group in groups.items():
        table = session.read.parquet(*escaped(group))
        _check_columns(table, (*COLUMNS, *rewards), group[0].name, ("context", "items"))
        # As `prudent.engines.kernel.merging` weighs the sums of a file: whole numbers, which add up in any order.
        shares = [
            f"{one} div {unit}L * {weight}L + (pmod({one}, {unit}L) * {weight}L + {unit // 2}L) div {unit}L as {one}"
            for one in rewards
        ]
        cells = _cells(table, rewards)
        tables.append(cells.selectExpr(*_KEYS, f"n * {weight}L as n", f"{offer is None} as eligible", *shares))
    rows = reduce(DataFrame.unionAll, tables)
    if offer is not None:
        _check_offer(offer, rows, name)
        nothing = "0 as position", "0 as prev", "false as click", "false as more", "0L as n", "true as eligible"
        rows = rows.unionAll(offer.selectExpr("context", "item", *nothing, *(f"0L as {one}" for one in rewards)))
    # Ranges rather than hashes: the rows of one task then follow those of the task before it.
    together = rows.repartitionByRange(_tasks(session, list(files)), "context")
    sums = [F.sum(name).alias(name) for name in ("n", *rewards)]
    summed = together.groupBy(*_KEYS).agg(*sums, F.max("eligible").alias("eligible"))
    return summed.sortWithinPartitions(*_KEYS).persist(StorageLevel.DISK_ONLY)


def _cells(table: DataFrame, rewards: Sequence[str]) -> DataFrame:
    """One row per cell, from the rows of counts files; the first of an item has the sums of its rewards."""
    item = "flatten(transform(arrays_zip(items, cells), one -> array_repeat(one.items, one.cells))) as item"
    sums = [
        f"flatten(transform(arrays_zip({one}, cells), of -> concat(array(of.{one}), array_repeat(0L, of.cells - 1)))) "
        f"as {one}"
        for one in rewards
    ]
    zipped = table.selectExpr("context", item, "code", "n", *sums).selectExpr(
        "context", f"explode(arrays_zip({', '.join(('item', 'code', 'n', *rewards))})) as one"
    )
    position, prev = "shiftright(one.code, 16) as position", "shiftright(one.code, 2) & 16383 as prev"
    flags = "one.code & 2 > 0 as click", "one.code & 1 > 0 as more"
    summed = [f"one.{name} as {name}" for name in ("n", *rewards)]
    return zipped.selectExpr("context", "one.item as item", position, prev, *flags, *summed)


def _tasks(session: SparkSession, files: Sequence[Location]) -> int:
    """How many tasks rank: as many as Spark is set to shuffle to, but fewer for few rows."""
    most = int(session.conf.get("spark.sql.shuffle.partitions") or 200)
    return max(1, min(most, max(session.sparkContext.defaultParallelism, total_size(files) // _BYTES)))


def _offer(engine: Spark, session: SparkSession, table: Candidates) -> DataFrame:
    candidates = table.source
    if not isinstance(candidates, DataFrame):
        if not isinstance(candidates, str | PathLike):
            raise UsageError(
                f"Candidates are Parquet files or a DataFrame of Spark, not a {type(candidates).__name__}."
            )
        candidates = session.read.parquet(*escaped(find(fspath(candidates), engine.filesystem)))
    if len(table.context) == 1:
        return candidates
    _check_columns(candidates, (*table.context, "item"), name_of(table.source), ())
    return candidates.selectExpr(f"{composed([backquoted(name) for name in table.context])} as context", "item")


def name_of(candidates: Any) -> str:
    """How to name candidates in messages and manifests."""
    return fspath(candidates) if isinstance(candidates, str | PathLike) else f"the {type(candidates).__name__}"


def _check_offer(offer: DataFrame, rows: DataFrame, name: str) -> None:
    _check_columns(offer, ("context", "item"), name, ("context", "item"))
    for column in ("context", "item"):
        theirs, ours = (dict(frame.dtypes)[column] for frame in (offer, rows))
        if (theirs == "string") != (ours == "string"):
            raise LogError(f"The candidates' {column} is {theirs}, but the log's is {ours}.")
    if offer.filter("context is null or item is null").limit(1).count():
        raise LogError(f"{name} has rows without a context or an item.")


def _check_columns(table: DataFrame, columns: Sequence[str], name: str, named: Sequence[str]) -> None:
    types = dict(table.dtypes)
    missing = [column for column in columns if column not in types]
    if missing:
        raise CountsError(f"{name} has no column {missing[0]}. It has: {', '.join(types)}.")
    for column in named:
        if types[column].removeprefix("array<").rstrip(">") not in ("string", "bigint", "int", "smallint", "tinyint"):
            raise CountsError(
                f"The column {column} of {name} is {types[column]}. Names are text or integers of up to 64 bits; "
                "Spark has no unsigned integers of 64 bits: rank them with DuckDB."
            )


def _per_context(rows: DataFrame, rewards: Sequence[str]) -> DataFrame:
    """One row per context; the rows of a context are in one task already, so that nothing is shuffled."""
    pairs = rows.groupBy("context", "item").agg(
        F.expr("count_if(position > 0) as cells"),
        F.expr("sum(if(position = 1 or (position > 0 and position = prev), n, 0)) as lists"),
        F.expr("sum(if(click, n, 0)) as clicks"),
        F.max("position").alias("longest"),
        F.max("eligible").alias("eligible"),
        F.expr(f"greatest(0L, 0L{''.join(f', sum({one})' for one in rewards)})").alias("most_rewards"),
    )
    return pairs.groupBy("context").agg(
        F.expr("count(*) as pairs"),
        F.sum("cells").alias("cells"),
        F.sum("lists").alias("lists"),
        F.sum("clicks").alias("clicks"),
        F.max("longest").alias("longest"),
        F.expr("count_if(eligible) as eligible"),
        F.max("most_rewards").alias("most_rewards"),
    )


# --- in the Python workers --------------------------------------------------------------------------------------------


def whole_contexts(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The rows of a task, several whole contexts at a time."""
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) < rows:
            continue
        table = pa.Table.from_batches(held).combine_chunks()
        new = changes(table["context"].chunk(0))
        cut = int(np.flatnonzero(new)[-1])  # the last context may continue in the next batch
        if cut:
            yield table.slice(0, cut)
        held = table.slice(cut).to_batches()
    if held:
        yield pa.Table.from_batches(held)


def changes(column: pa.Array) -> Any:
    """Whether each value differs from the one before it; the first does."""
    if len(column) < 2:
        return np.ones(len(column), bool)
    differs = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1))
    return np.concatenate([[True], differs.to_numpy(zero_copy_only=False)])
