"""Counts and policies as folders wherever Spark can write, for what outgrows one machine.

What all contexts have in common is learned on the driver, from two samples that are bounded however large the counts
are; then each task ranks its own contexts, batch by batch, with the very functions that rank on one machine.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prudent.base.errors import CountsError, LogError, UsageError
from prudent.bounds import Bound
from prudent.click_models import ClickModel
from prudent.counts.cells import Cells, enough
from prudent.counts.counts import COLUMNS, MAX_REJECTED, QUERY, Counts, check_max_rejected, check_tally
from prudent.counts.days import UNIT, check_not_merged, choose, day_folder
from prudent.counts.index import Part
from prudent.engines.spark.engine import Spark
from prudent.logs.log import Log
from prudent.policies.policy import COLUMNS as POLICY
from prudent.policies.rank import Asked, Extent, Plan, ask, learn, manifest_of, terms
from prudent.storage.manifest import Days, Manifest, Source, Tally
from prudent.storage.parquet import counts_in

# pyspark is optional: what needs it is imported where it is used.
if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_BYTES = 16_000_000  # of files of counts for a task to be worth its start
_ROWS = 1_000_000  # of counts that a task holds at a time; a context with more is held whole
_VALUES = (
    "lists",
    "value",
    "lower",
    "incumbent_value",
    "incumbent_lower",
    "differ",
)  # of a context, on each of its rows
_OF = "of_"  # what their columns begin with


def count_on_spark(
    log: Log,
    to: str | PathLike[str],
    engine: Spark | None = None,
    max_rejected: float = MAX_REJECTED,
    day: date | str | None = None,
) -> Manifest:
    """Count a log into a folder of Parquet files, wherever Spark can write: as `prudent.count` would, row for row.

    With a ``day``, such as ``"2026-11-15"``, `to` is the folder of all days, in which this day gets a folder; counted
    again, it is replaced. What comes back is what lies beside the folder as its manifest. Where the counts fit on one
    machine, ``prudent.count(log, engine=prudent.Spark(session))`` brings them there.
    """
    check_max_rejected(max_rejected)
    if not isinstance(log, Log):
        raise UsageError(
            f"count_on_spark takes a Log, not a {type(log).__name__}: wrap it, as in prudent.Log(frame, ...)."
        )
    engine = _engine(engine)  # says so where there is no pyspark, which all that follows imports
    from prudent.engines.spark import hadoop

    session, target = engine.running, fspath(to).rstrip("/")
    if day is not None:
        check_not_merged(target, hadoop.day_folders(session, target), day)
        target = f"{target}/{day_folder(day)}"
    if log.in_files:
        hadoop.check_apart(session, target, log.names)
    tally = engine.write_counts(log, QUERY, target, lambda tally: check_tally(tally, log, max_rejected))
    source = Source(tuple(log.names), replace(tally, left_out=log.left_out))
    manifest = Manifest("counts", sources={"log": source})
    hadoop.write_text(session, f"{target}.manifest.json", manifest.to_text())
    return manifest


def rank_on_spark(
    counts: str | PathLike[str] | Sequence[str | PathLike[str]],
    to: str | PathLike[str],
    engine: Spark | None = None,
    model: str | ClickModel = "auto",
    bound: str | Bound = "exposure(delta=0.5)",
    length: int | None = None,
    candidates: "str | PathLike[str] | DataFrame | None" = None,
    min_lists: int = 1,
    since: date | str | None = None,
    until: date | str | None = None,
    half_life: float | str | None = None,
) -> Manifest:
    """Find, for every context, the list with the highest lower bound on its value, and write the lists to a folder.

    The lists and their numbers are those of `prudent.rank`, to the last bit. Where Python workers run, prudent has to
    be installed. What comes back is what lies beside the folder as its manifest.

    counts
        Files or folders of counts, with days or without, wherever Spark can read.
    to
        A folder for Parquet files, wherever Spark can write, sorted from file to file; `prudent.Policy.read` reads it.
    model, bound, length, min_lists
        As in `prudent.rank`.
    candidates
        Parquet files with the columns ``context`` and ``item``, or a DataFrame with them: as in `prudent.rank`.
    since, until, half_life
        As in `prudent.Counts.read`.
    """
    asked = ask(model, bound, length, min_lists)
    if isinstance(counts, Counts):
        raise UsageError("rank_on_spark reads files of counts; prudent.rank ranks counts on this machine.")
    for package in ("pyarrow", "pandas"):
        if find_spec(package) is None:
            raise UsageError(f"Ranking on Spark needs {package}: pip install 'prudent[spark]'")
    engine = _engine(engine)  # says so where there is no pyspark, which all that follows imports
    from prudent.engines.spark import hadoop
    from prudent.engines.spark.count import fresh_session

    session = fresh_session(engine.running, {"spark.sql.execution.arrow.maxRecordsPerBatch": "100000"})
    paths = [fspath(path) for path in ([counts] if isinstance(counts, str | PathLike) else counts)]
    hadoop.check_apart(session, fspath(to), paths)
    found = _find(session, paths, since, until, half_life)
    with hadoop.explaining(f"rank {', '.join(found.given)}"):
        said = _rank_found(session, found, fspath(to), asked, candidates)
        hadoop.write_text(session, f"{fspath(to).rstrip('/')}.manifest.json", said.to_text())
    return said


def _rank_found(session: "SparkSession", found: "_Found", to: str, asked: Asked, candidates: Any) -> Manifest:
    from prudent.engines.spark import hadoop

    rows = _rows(session, found, candidates)
    contexts = _per_context(rows).persist()
    try:
        extent = _measure(contexts, found, _logged(session, found), asked.min_lists)
        plan = learn(asked, extent, lambda: _samples(rows, contexts, extent, found.unit))
        ranked = _rank(rows, plan, found.unit)
        with hadoop.replacing(session, to, POLICY) as folder:
            sums = _write(session, ranked, folder)
    finally:
        contexts.unpersist()
        rows.unpersist()
    training = Source(tuple(found.given), replace(found.tally, lists=extent.lists), found.days)
    return manifest_of(asked, extent, plan, sums, training, None if candidates is None else _name(candidates))


def _engine(given: Spark | None) -> Spark:
    if given is not None and not isinstance(given, Spark):
        raise UsageError(f"The engine is a {type(given).__name__}: wrap it, as in prudent.Spark(session).")
    return given or Spark()


# --- the counts -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Found:
    """Files of counts, each with its weight."""

    given: Sequence[str]  # the paths that name them
    weights: Mapping[str, int]  # by file
    unit: int
    days: Days | None
    tally: Tally  # of what was not counted; lists are counted anew


def _find(session: "SparkSession", given: Sequence[str], since: Any, until: Any, half_life: Any) -> _Found:
    from prudent.engines.spark import hadoop

    if not given:
        raise UsageError("No counts were named.")
    names = [file for path in given for file in hadoop.find(session, path)]
    if len(set(names)) < len(names):
        raise UsageError(f"{max(names, key=names.count)} is named twice, and would be counted twice.")
    known = {Path(name): name for name in names}  # days look at folders alone, for which any path will do
    chosen = choose(list(known), since, until, half_life)
    weights = chosen.weights or (1,) * len(chosen.files)
    files = dict(zip((known[file] for file in chosen.files), weights, strict=True))
    tally = _read_tallies(session, list(files))
    return _Found(given, files, UNIT if chosen.weights else 1, chosen.days, tally)


def _read_tallies(session: "SparkSession", files: Sequence[str]) -> Tally:
    """What was not counted, by the footers of the files or the manifests beside them; and that they are counts."""
    from prudent.engines.spark import hadoop

    total, beside, first = Tally(0), set[str](), ""
    for file in files:
        footer = hadoop.read_footer(session, file)
        tally = counts_in(footer.said, file)
        kinds = " and ".join(
            "text" if footer.kinds.get(column) == "BINARY" else "integers" for column in ("context", "item")
        )
        first = first or kinds
        if kinds != first:
            raise CountsError(
                f"{files[0]} names its contexts and items by {first}, {file} by {kinds}: they cannot be added."
            )
        if tally is not None:
            total += tally
        else:  # a file that Spark wrote, whose folder has a manifest
            beside |= {f"{name}.manifest.json" for name in (file, file.rpartition("/")[0])}
    for path in sorted(beside):
        if hadoop.exists(session, path):
            total += Manifest.from_text(hadoop.read_text(session, path), path, "counts").sources["log"].tally
    return total


def _rows(session: "SparkSession", found: _Found, candidates: Any) -> "DataFrame":
    """The summed histogram, with a row at position 0 for every candidate; a context's rows are in one task, sorted."""
    from functools import reduce

    from pyspark import StorageLevel

    from prudent.engines.spark import hadoop

    groups: dict[int, list[str]] = {}
    for name, weight in found.weights.items():
        groups.setdefault(weight, []).append(hadoop.escaped(name))
    tables: list[DataFrame] = []
    for weight, names in groups.items():
        table = session.read.parquet(*names)
        _check_columns(table, COLUMNS, names[0], "counts")
        tables.append(table.selectExpr(*COLUMNS[:-1], f"n * {weight}L as n", f"{candidates is None} as eligible"))
    rows = reduce(lambda one, other: one.unionAll(other), tables)
    if candidates is not None:
        offer = _offer(session, candidates)
        _check_columns(offer, ("context", "item"), _name(candidates), "candidates")
        for column in ("context", "item"):
            theirs, ours = (dict(of.dtypes)[column] for of in (offer, rows))
            if (theirs == "string") != (ours == "string"):
                raise LogError(f"The candidates' {column} is {theirs}, but the log's is {ours}.")
        if offer.filter("context is null or item is null").limit(1).count():
            raise LogError(f"{_name(candidates)} has rows without a context or an item.")
        nothing = "0 as position", "0 as prev", "false as click", "false as more", "0L as n", "true as eligible"
        rows = rows.unionAll(offer.selectExpr("context", "item", *nothing))
    # Ranges rather than hashes: what each task writes then follows what the one before it wrote.
    together = rows.repartitionByRange(_tasks(session, list(found.weights)), "context")
    summed = together.groupBy(*COLUMNS[:-1]).agg({"n": "sum", "eligible": "max"})
    summed = summed.selectExpr(*COLUMNS[:-1], "`sum(n)` as n", "`max(eligible)` as eligible")
    return summed.sortWithinPartitions(*COLUMNS[:-1]).persist(StorageLevel.DISK_ONLY)


def _offer(session: "SparkSession", candidates: Any) -> "DataFrame":
    from prudent.engines.spark import hadoop

    if hasattr(candidates, "selectExpr"):
        frame: DataFrame = candidates
        return frame
    if not isinstance(candidates, str | PathLike):
        raise UsageError(f"Candidates are Parquet files or a DataFrame of Spark, not a {type(candidates).__name__}.")
    return session.read.parquet(*map(hadoop.escaped, hadoop.find(session, fspath(candidates))))


def _tasks(session: "SparkSession", files: Sequence[str]) -> int:
    """How many tasks rank: as many as Spark is set to shuffle to, but none for a few rows."""
    from prudent.engines.spark import hadoop

    size = sum(hadoop.size(session, file) for file in files)
    most = int(session.conf.get("spark.sql.shuffle.partitions") or 200)
    return max(1, min(most, max(session.sparkContext.defaultParallelism, size // _BYTES)))


def _check_columns(table: "DataFrame", columns: Sequence[str], name: str, what: str) -> None:
    types = dict(table.dtypes)
    missing = [column for column in columns if column not in types]
    if missing:
        first = " Count the log first: prudent count, or prudent.count_on_spark." if what == "counts" else ""
        raise CountsError(f"{name} does not hold {what}: it has no column {missing[0]}.{first}")
    for column in ("context", "item"):
        if types[column] not in ("string", "bigint", "int", "smallint", "tinyint"):
            raise CountsError(
                f"The column {column} of {name} is {types[column]}. Names are text or integers of up to 64 bits; "
                "unsigned ones of 64 bits have no place in Spark: rank them on one machine."
            )


def _name(candidates: Any) -> str:
    return fspath(candidates) if isinstance(candidates, str | PathLike) else f"the {type(candidates).__name__}"


# --- what is learned on the driver ------------------------------------------------------------------------------------


def _per_context(rows: "DataFrame") -> "DataFrame":
    """One row per context; rows of a context are in one task already, so nothing is sent around."""
    from pyspark.sql.functions import expr

    def agg(*columns: str) -> list[Any]:
        return [expr(column) for column in columns]

    pairs = rows.groupBy("context", "item").agg(
        *agg(
            "count_if(position > 0) as cells",
            "sum(if(position = 1, n, 0)) as lists",
            "sum(if(click, n, 0)) as clicks",
            "max(position) as longest",
            "max(eligible) as eligible",
        )
    )
    return pairs.groupBy("context").agg(
        *agg(
            "count(*) as pairs",
            "sum(cells) as cells",
            "sum(lists) as lists",
            "sum(clicks) as clicks",
            "max(longest) as longest",
            "count_if(eligible) as eligible",
        )
    )


def _logged(session: "SparkSession", found: "_Found") -> int:
    """Lists in all files, old ones in full."""
    from prudent.engines.spark import hadoop

    rows = session.read.parquet(*map(hadoop.escaped, found.weights)).where("position = 1")
    return int(rows.selectExpr("coalesce(sum(n), 0)").collect()[0][0])


def _measure(contexts: "DataFrame", found: "_Found", lists: int, min_lists: int) -> Extent:
    kept = f"(eligible > 0 and lists >= {min_lists * found.unit}L)"
    (row,) = contexts.selectExpr(
        "sum(clicks) as clicks",
        "max(longest) as positions",
        "sum(pairs) as pairs",
        f"count_if({kept}) as contexts",
        f"count_if(eligible > 0 and not {kept}) as too_few_lists",
        "count_if(eligible = 0 and lists > 0) as without_candidates",
        "max(eligible) as most_eligible",
        f"max(if({kept}, eligible, 0)) as most_listed",
    ).collect()
    return Extent(lists=lists, **{name: int(value or 0) for name, value in row.asDict().items()})


def _samples(rows: "DataFrame", contexts: "DataFrame", extent: Extent, unit: int) -> tuple[Part, Part]:
    """The contexts with most lists, and contexts in a random order, as many as are enough."""
    from pyspark.sql.functions import broadcast, col, lit, struct

    from prudent.counts import cells

    keyed = contexts.selectExpr(
        "context", "pairs", "cells", "longest", "-lists as heavy", "md5(cast(context as string)) as random"
    )

    def upto(some: "DataFrame", order: Sequence[str], share: float) -> Any:
        """Whether a context is one of the first in this order that are enough."""
        # Each context has a pair at least, so that so many are enough.
        table = some.orderBy(*order).limit(cells.MOST).toArrow()
        pairs, of_these = (table[name].to_numpy().astype(np.int64) for name in ("pairs", "cells"))
        last = enough(pairs, of_these, share) - 1
        ends = struct(*(lit(table[name][last].as_py()).cast(keyed.schema[name].dataType) for name in order))
        return struct(*order) <= ends

    def part(chosen: Any) -> Part:
        some = broadcast(keyed.where(chosen).select("context"))
        return _part(rows.join(some, "context", "left_semi").orderBy(*COLUMNS[:-1]).toArrow(), unit)[0]

    if extent.pairs <= cells.MOST and contexts.selectExpr("sum(cells)").collect()[0][0] <= cells.MOST_CELLS:
        whole = part(lit(True))
        return whole, whole
    heaviest, anyhow = ("heavy", "random", "context"), ("random", "context")
    full = col("longest") == extent.positions
    keyed = keyed.withColumn("later", ~(full & upto(keyed.where(full), heaviest, 0.5)))
    return part(upto(keyed, ("later", *heaviest), 1.0)), part(upto(keyed, anyhow, 1.0))


# --- what is done where the contexts are ------------------------------------------------------------------------------


def _rank(rows: "DataFrame", plan: Plan, unit: int) -> "DataFrame":
    types = dict(rows.dtypes)
    schema = (
        f"context {types['context']}, rank int, item {types['item']}, lower double, mean double, positive double, "
        f"negative double, impressions bigint, {_OF}lists double, {_OF}value double, {_OF}lower double, "
        f"{_OF}incumbent_value double, {_OF}incumbent_lower double, {_OF}differ boolean"
    )
    with warnings.catch_warnings():
        # PySpark looks at pandas wherever Python runs, though nothing here ever gets into its hands.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        return rows.mapInArrow(_ranking(plan, unit), schema)


def _ranking(plan: Plan, unit: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def rank_contexts(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for table in _whole_contexts(batches, _ROWS):
            yield from _lists(table, plan, unit)

    return rank_contexts


def _whole_contexts(batches: "Iterator[pa.RecordBatch]", rows: int) -> "Iterator[pa.Table]":
    """The rows of a task, some contexts at a time."""
    import pyarrow as pa

    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) < rows:
            continue
        table = pa.Table.from_batches(held).combine_chunks()
        new = _changes(table["context"].chunk(0))
        cut = int(np.flatnonzero(new)[-1])  # the last context may go on
        if cut:
            yield table.slice(0, cut)
        held = table.slice(cut).to_batches()
    if held:
        yield pa.Table.from_batches(held)


def _changes(column: "pa.Array") -> Any:
    """Whether each value differs from the one before it; the first does."""
    import pyarrow.compute as pc

    if len(column) < 2:
        return np.ones(len(column), bool)
    differs = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1))
    return np.concatenate([[True], differs.to_numpy(zero_copy_only=False)])


def _part(table: "pa.Table", unit: int) -> "tuple[Part, pa.Array, pa.Array]":
    """Sorted rows as arrays; the names of contexts and of pairs, by number."""
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    columns = {name: of.chunk(0) if hasattr(of, "chunk") else of for name, of in columns.items()}
    new_context = _changes(columns["context"])
    new_pair = new_context | _changes(columns["item"])
    pair = np.cumsum(new_pair) - 1

    def array(name: str, kind: Any) -> Any:
        return columns[name].to_numpy(zero_copy_only=False).astype(kind)

    shown = array("position", np.int64) > 0
    eligible = np.bincount(pair, array("eligible", np.int64)) > 0
    cells = Cells(
        context=(np.cumsum(new_context) - 1)[new_pair],
        pair=pair[shown],
        position=array("position", np.int64)[shown],
        prev=array("prev", np.int64)[shown],
        click=array("click", bool)[shown],
        more=array("more", bool)[shown],
        n=array("n", np.float64)[shown] / unit,
    )
    contexts, items = (
        columns[name].take(_indices(where)) for name, where in (("context", new_context), ("item", new_pair))
    )
    return Part(0, 0, cells, eligible), contexts, items


def _indices(where: Any) -> "pa.Array":
    import pyarrow as pa

    return pa.array(np.flatnonzero(where))


def _lists(table: "pa.Table", plan: Plan, unit: int) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    part, contexts, items = _part(table, unit)
    ranked = plan.rank(part)
    new = ranked.lists
    columns = {
        "context": contexts.take(pa.array(new.context)),
        "rank": pa.array(new.rank.astype(np.int32)),
        "item": items.take(pa.array(new.row)),
        **{name: pa.array(of[new.row]) for name, of in ranked.columns.items()},
        **{f"{_OF}{name}": pa.array(ranked.per_context[name][new.context]) for name in _VALUES},
    }
    yield pa.RecordBatch.from_pydict(columns)


def _write(session: "SparkSession", ranked: "DataFrame", folder: str) -> dict[str, Any]:
    """Write the lists, and sum up what they are worth on the way."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import expr

    from prudent.engines.spark import hadoop

    seen = Observation()
    each = [expr("count_if(rank = 1)").alias("contexts")]
    each += [expr(f"sum(if(rank = 1, {term}, 0))").alias(name) for name, term in terms(_OF).items()]
    observed = ranked.observe(seen, *each)
    try:
        observed.select(*POLICY).write.option("compression", "zstd").mode("overwrite").parquet(folder)
    except hadoop.JAVA_ERRORS as error:
        if "No module named 'prudent" in str(error):
            raise UsageError(
                "The Python workers of Spark have no prudent. Install it where they run, or set PYSPARK_PYTHON to a "
                "Python that has it before Spark starts."
            ) from None
        raise
    written = session.read.parquet(hadoop.escaped(folder)).where("rank = 1").count()
    found = dict(seen.get)
    if found["contexts"] != written:  # a task that was repeated is seen twice, and written once
        found = ranked.agg(*each).collect()[0].asDict()
    return found
