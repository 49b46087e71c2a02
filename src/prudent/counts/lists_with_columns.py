"""Whole lists with columns that the counting kernel does not take, by SQL: propensities, rewards and segments."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np

from prudent.base.arrays import IntArray
from prudent.counts.lists import ListBatch, check_places
from prudent.counts.max_rejected import check_tally
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.log import Log
from prudent.storage.arrow import read, stream_of
from prudent.storage.files import TemporaryFolder, writing_temporary
from prudent.storage.manifest import Tally
from prudent.storage.quoting import file_text, text
from prudent.storage.run import REWARD_UNITS, NameColumn, Run
from prudent.storage.sketch import below, sample_threshold

_CHUNK = 250_000  # lists that become arrays at a time
_SEGMENTED_LISTS = 100_000


class ListsWithColumns(NamedTuple):
    """The lists of a log, with propensities where it names them."""

    names: Run  # of contexts and pairs, without cells
    lists: ListBatch
    segmented: tuple[ListBatch, IntArray] | None  # lists of a sample of contexts, and their segments: a column each


def read_with_columns(log: Log, engine: DuckDB, *, max_rejected: float) -> tuple[Tally, ListsWithColumns | None]:
    """The tally of a log, and its lists; None where all were rejected."""
    folder = TemporaryFolder()
    file = folder.path / "lists.parquet"
    keys = list_columns(log)
    tally = engine.lists(log, f"select {keys}, count(*) as n from shown group by {keys}", file)
    tally = replace(tally, left_out={**log.left_out, **tally.left_out})
    check_tally(tally, log, max_rejected)
    if not tally.lists:
        return tally, None
    segmented = _read_segments(engine, log, file) if log.segments else None
    source = f"(select *, file_row_number as list from read_parquet({file_text(file)}, file_row_number = true))"
    names, lists = _as_batch(engine.open(), source, log.propensity is not None, log.reward is not None)
    return tally, ListsWithColumns(names, lists, segmented)


def list_columns(log: Log) -> str:
    """Context, items, clicks and, where they are named, propensity, rewards and segments; in SQL."""
    beside = {"propensity": log.propensity, "rewards": log.reward}
    named = (meaning for meaning, column in beside.items() if column is not None)
    return ", ".join(("context", "items", "clicks", *named, *log.segments))


def _read_segments(engine: DuckDB, log: Log, lists: Path) -> tuple[ListBatch, IntArray]:
    """Take the segments out of a file of distinct lists; they come back beside lists of a sample of contexts."""
    connection = engine.open()
    whole = f"read_parquet({file_text(lists)})"
    contexts = f"select context, sum(n) as lists from {whole} group by context"
    sample = below(sample_threshold(connection, contexts, _SEGMENTED_LISTS))
    number = f"row_number() over (order by {list_columns(log)}) - 1"
    connection.execute(f"create table sample as select *, {number} as list from {whole} where {sample}")
    _, batch = _as_batch(connection, "sample", weighed=False)
    ranks = ", ".join(f"dense_rank() over (order by {name}) - 1" for name in log.segments)
    values = connection.execute(f"select {ranks} from sample order by list").fetchnumpy()
    keys = list_columns(replace(log, segment=()))
    part = lists.with_suffix(".part")
    with writing_temporary(lists.parent):
        connection.execute(
            f"copy (select {keys}, sum(n)::bigint as n from {whole} group by {keys}) to {text(part)} (format parquet)"
        )
    part.replace(lists)
    batch = replace(batch, items=batch.items.astype(np.int64))
    return batch, np.stack([column.astype(np.int64) for column in values.values()], axis=1)


def _as_batch(
    connection: duckdb.DuckDBPyConnection, source: str, weighed: bool, rewarded: bool = False
) -> tuple[Run, ListBatch]:
    """Number the pairs of a source in the order of their names, and read its lists as arrays.

    A source is SQL for rows of context, items, clicks, n, their own number ``list`` from 0 on and, where `weighed`,
    propensity and, where `rewarded`, rewards.
    """
    run = connection.execute
    shown = f"select context, unnest(items) as item from {source}"
    run(f"create temp table pairs as select distinct context, item from ({shown}) order by context, item")
    run(
        "create temp table contexts as "
        "select context, count(*)::bigint as n from pairs group by context order by context"
    )
    contexts, n = _columns(connection, "select context, n from contexts order by rowid")
    (items,) = _columns(connection, "select item from pairs order by rowid")
    pairs, none = n.values.astype(np.uint32), np.zeros(0, np.int64)
    cells = np.zeros(len(items), np.uint32)
    names = Run(contexts, items, pairs, cells, none.astype(np.uint32), none.astype(np.uint64))
    return names, _read_batch(connection, source, np.repeat(np.arange(len(pairs)), pairs), weighed, rewarded)


def _columns(connection: duckdb.DuckDBPyConnection, query: str) -> list[NameColumn]:
    capsule = connection.sql(query).__arrow_c_stream__()
    batches = [[NameColumn.of(column) for column in batch] for batch in read(stream_of(capsule))]
    return [NameColumn.concatenated(column) for column in zip(*batches, strict=True)]


def _read_batch(
    connection: duckdb.DuckDBPyConnection, source: str, context: IntArray, weighed: bool, rewarded: bool
) -> ListBatch:
    run = connection.execute
    lists = run(f"select n, len(items) as length from {source} order by list").fetchnumpy()
    n, lengths = lists["n"].astype(np.int64), lists["length"]
    check_places(lengths)
    shape = len(n), int(lengths.max(initial=0))
    items: Any = np.full(shape, -1, np.int32)  # half the memory
    clicks = np.zeros(shape, bool)
    propensity = np.full(shape, np.nan) if weighed else None
    rewards = np.zeros(shape) if rewarded else None
    earned = "unnest(rewards) as reward, " if rewarded else ""
    for first in range(0, len(n), _CHUNK):
        rows = f"(from {source} where list >= {first} and list < {first + _CHUNK})"
        cells = run(
            f"select list, position, pairs.rowid as pair, click{', reward' if rewarded else ''} from ("
            f"select list, context, unnest(items) as item, {earned} unnest(range(len(items))) as position, "
            f"unnest(clicks)::int = 1 as click from {rows}) join pairs using (context, item)"
        ).fetchnumpy()
        items[cells["list"], cells["position"]] = cells["pair"]
        clicks[cells["list"], cells["position"]] = cells["click"]
        if rewards is not None:
            rewards[cells["list"], cells["position"]] = cells["reward"] / REWARD_UNITS
        if propensity is not None:
            chunk = slice(first, first + _CHUNK)
            # One number is that of the whole list, at its end; one per position are those given the items above.
            known = run(
                "select list, unnest(propensity) as p, "
                f"unnest(range(len(items) - len(propensity), len(items))) as position from {rows}"
            ).fetchnumpy()
            propensity[known["list"], known["position"]] = np.ma.filled(known["p"].astype(float), np.nan)
            steps = ~np.isnan(propensity[chunk, 0]) | (lengths[chunk] == 1)
            propensity[chunk][steps] = np.cumprod(propensity[chunk][steps], axis=1)
    return ListBatch(context, items, clicks, n, propensity, rewards)
