"""ListBatch: logged lists as arrays, for what cells do not keep: whole lists and their propensities."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import duckdb
import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import LogError
from prudent.counts.cells import CellCodec, Cells
from prudent.counts.index import name_types
from prudent.counts.max_rejected import check_tally
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.log import Log
from prudent.storage.arrow import Column, listed, numbers
from prudent.storage.counts_file import Piece
from prudent.storage.digest import Digest, digest_lists
from prudent.storage.files import TemporaryFolder, writing_temporary
from prudent.storage.manifest import Tally
from prudent.storage.quoting import file_text, text
from prudent.storage.run import WholeLists
from prudent.storage.sketch import below, sample_threshold

_CHUNK = 250_000  # lists that become arrays at a time
_MOST_PLACES = 1 << 30  # of all lists, each as long as the longest: 9 GB of arrays


@dataclass(frozen=True, eq=False)
class ListBatch:
    """Lists as they were shown and clicked, one row each; equal lists may share one row with a larger ``n``.

    An item is the number of its pair (one item of one context), so it also says which context it belongs to.
    """

    context: IntArray  # one entry per pair, ascending: the number of its context
    items: IntArray  # this and the rest: one row per list; pairs from the top down, −1 below the end of a short list
    clicks: BoolArray
    n: IntArray  # how often that list was shown and clicked in that way
    propensity: FloatArray | None = None  # of the first k items, for each k; NaN where it is not known

    def sample(self) -> "ListBatch":
        """The whole lists that there are: all of these, where counts keep some."""
        return self

    def bootstrapped(self, random: np.random.Generator) -> "ListBatch":
        """The lists of a bootstrapped log: how often each was logged is drawn from a Poisson distribution."""
        n = random.poisson(self.n)
        kept = n > 0
        propensity = None if self.propensity is None else self.propensity[kept]
        return ListBatch(self.context, self.items[kept], self.clicks[kept], n[kept], propensity)

    @property
    def length(self) -> int:
        """K: positions of the longest list there may be."""
        return int(self.items.shape[1])

    @property
    def list_context(self) -> IntArray:
        """The context of each list."""
        return self.context[self.items[:, 0]]

    @property
    def impressions(self) -> IntArray:
        """How often each pair was shown."""
        inside = self.items >= 0
        weight = np.broadcast_to(self.n[:, None], self.items.shape)[inside]
        return np.bincount(self.items[inside], weight, minlength=len(self.context)).astype(np.int64)

    def made_of(self, kept: BoolArray) -> "ListBatch":
        """The lists made of these pairs alone; pairs and contexts are numbered anew."""
        rows = np.append(kept, True)[self.items].all(axis=1)
        number = np.append(np.cumsum(kept) - 1, -1)  # −1, below the end of a short list, stays −1
        _, context = np.unique(self.context[kept], return_inverse=True)
        propensity = None if self.propensity is None else self.propensity[rows]
        return ListBatch(context, number[self.items[rows]], self.clicks[rows], self.n[rows], propensity)

    @cached_property
    def cells(self) -> Cells:
        """The cells that an engine would count in these lists."""
        position = np.arange(1, self.length + 1)
        last_click = np.maximum.accumulate(np.where(self.clicks, position, 0), axis=1)
        prev = np.zeros_like(last_click)
        prev[:, 1:] = last_click[:, :-1]
        inside = self.items >= 0
        codec = CellCodec.up_to(self.length)
        more = last_click[:, -1:] > position
        cell = codec.encode(self.items.astype(np.int64), position, prev, self.clicks, more)[inside]
        weight = np.broadcast_to(self.n[:, None], inside.shape)[inside]
        span = len(self.context) * codec.span
        if span <= 16 * cell.size:  # few possible cells: a table of them is cheaper than sorting what occurs
            table = np.bincount(cell, weight, minlength=span)
            cell = np.flatnonzero(table)
            n = table[cell]
        else:
            cell, which = np.unique(cell, return_inverse=True)
            n = np.bincount(which, weight)
        return codec.decode(cell, n.astype(np.float64, copy=False), self.context)


class Counted(Protocol):
    """Something that has cells, and whole lists of some contexts: counts in files, or lists in memory."""

    @property
    def cells(self) -> Cells:
        """The histogram as arrays."""
        ...

    def sample(self) -> ListBatch:
        """The whole lists that are kept."""
        ...


# --- from the sample of counts ----------------------------------------------------------------------------------------


def batch_of(pieces: Iterable[Piece]) -> ListBatch:
    """The whole lists that counts keep."""
    sizes, firsts, found = list[IntArray](), list[IntArray](), list[WholeLists]()
    numbered = 0
    for run, lists in pieces:
        sampled = np.unique(lists.context)
        size = run.pairs[sampled].astype(np.int64)
        first = numbered + np.cumsum(size) - size
        firsts.append(first[np.searchsorted(sampled, lists.context)])
        sizes.append(size)
        found.append(lists)
        numbered += int(size.sum())
    pairs_of = np.concatenate(sizes)
    length = np.concatenate([lists.size for lists in found]).astype(np.int64)
    shape = len(length), int(length.max(initial=0))
    inside = np.arange(shape[1]) < length[:, None]
    items, clicks = np.full(shape, -1), np.zeros(shape, bool)
    items[inside] = np.repeat(np.concatenate(firsts), length) + np.concatenate([lists.items for lists in found])
    clicks[inside] = np.concatenate([lists.clicks for lists in found])
    n = np.concatenate([lists.n for lists in found]).astype(np.int64)
    return ListBatch(np.repeat(np.arange(len(pairs_of)), pairs_of), items, clicks, n)


def named_lists(piece: Piece) -> dict[str, Column]:
    """The same as columns of names: context, items, clicks and n."""
    run, lists = piece
    pair = np.repeat(run.first_pair[lists.context], lists.size) + lists.items
    return {
        "context": run.contexts.take(lists.context).column,
        "items": listed(lists.size, run.items.take(pair).column),
        "clicks": listed(lists.size, numbers(lists.clicks)),
        "n": numbers(lists.n.view(np.int64)),
    }


# --- from a log -------------------------------------------------------------------------------------------------------


def read_lists(
    logs: Sequence[Log],
    engine: DuckDB,
    *,
    max_rejected: float,
    length: int | None = None,
    where: str = "true",
    most: int | None = None,
) -> tuple[duckdb.DuckDBPyConnection, list[ListBatch], list[Tally]]:
    """The lists of logs, cut after `length` positions, as arrays with common numbers, and a database of their names.

    The rowids of its tables `pairs` and `contexts` are the numbers. `where` is a condition on contexts that the engine
    reads. Where the logs have more than `most` lists, a sample of contexts becomes arrays, with all of their lists
    (`prudent.storage.sketch`); the tallies are those of whole logs.
    """
    folder = TemporaryFolder()
    files = [folder.path / f"lists{number}.parquet" for number in range(len(logs))]
    tallies = [
        write_lists(log, engine, file, max_rejected=max_rejected, length=length, where=where)
        for log, file in zip(logs, files, strict=True)
    ]
    connection = engine.open()
    kinds = [name_types(connection, file) for file in files]
    for log, kind in zip(logs, kinds, strict=True):
        if kind != kinds[0]:
            raise LogError(
                f"{logs[0].name} names its contexts and items by {' and '.join(kinds[0])}, {log.name} by "
                f"{' and '.join(kind)}: they have nothing in common."
            )
    condition = "true"
    if most is not None and sum(tally.lists for tally in tallies) > most:
        listed = f"read_parquet([{', '.join(map(file_text, files))}])"
        contexts = f"select context, sum(n) as lists from {listed} group by context"
        condition = below(sample_threshold(connection, contexts, most))
    tables = []
    for number, file in enumerate(files):
        tables.append(folder.path / f"sample{number}.parquet" if condition != "true" else file)
        if condition != "true":
            sample = f"from read_parquet({file_text(file)}) where {condition}"
            with writing_temporary(folder.path):
                connection.execute(f"copy ({sample}) to {text(tables[-1])} (format parquet)")
    return connection, as_batches(connection, [numbered(file) for file in tables]), tallies


def write_lists(
    log: Log, engine: DuckDB, target: Path, *, max_rejected: float, length: int | None = None, where: str = "true"
) -> Tally:
    """Write the distinct lists of a log to a Parquet file: `list_columns` and n."""
    keys = list_columns(log)
    query = f"select {keys}, count(*) as n from shown group by {keys}"
    cut = None if length is None else min(length, 1 << 31)  # DuckDB counts in 64 bits
    tally = replace(engine.lists(log, query, target, length=cut, where=where), left_out=log.left_out)
    check_tally(tally, log, max_rejected)
    return tally


def list_columns(log: Log) -> str:
    """Context, items, clicks and, where they are named, propensity and segments; in SQL."""
    return ", ".join(
        ("context", "items", "clicks", *(() if log.propensity is None else ("propensity",)), *log.segments)
    )


def digest_log(log: Log, engine: DuckDB) -> Digest | None:
    """The digest of a log, whose lists are read whole."""
    folder = TemporaryFolder()
    file = folder.path / "lists.parquet"
    write_lists(replace(log, propensity=None), engine, file, max_rejected=1.0)
    with engine.connect() as connection:
        return digest_lists(connection, f"from read_parquet({file_text(file)})")


def numbered(file: Path) -> str:
    """A file of distinct lists as a source for `as_batches`."""
    return f"(select *, file_row_number as list from read_parquet({file_text(file)}, file_row_number = true))"


def as_batches(
    connection: duckdb.DuckDBPyConnection,
    sources: Sequence[str],
    *,
    weighed: bool = False,
    dtype: type[np.signedinteger[Any]] = np.int64,
) -> list[ListBatch]:
    """Number the pairs of all sources in the order of their names, and read the lists of each source as arrays.

    A source is SQL for rows of context, items, clicks, n, their own number ``list`` from 0 on and, where `weighed`,
    propensity. The rowids of the tables `pairs` and `contexts`, which this creates, are the numbers of names.
    """
    run = connection.execute
    shown = " union all ".join(f"select context, unnest(items) as item from {source}" for source in sources)
    run(f"create temp table pairs as select distinct context, item from ({shown}) order by context, item")
    run("create temp table contexts as select distinct context from pairs order by context")
    sizes = run("select count(*) as n from pairs group by context order by context").fetchnumpy()["n"]
    context = np.repeat(np.arange(len(sizes)), sizes)
    return [_read_batch(connection, source, context, weighed, dtype) for source in sources]


def _read_batch(
    connection: duckdb.DuckDBPyConnection, source: str, context: IntArray, weighed: bool, dtype: Any
) -> ListBatch:
    run = connection.execute
    lists = run(f"select n, len(items) as length from {source} order by list").fetchnumpy()
    n, lengths = lists["n"].astype(np.int64), lists["length"]
    shape = len(n), int(lengths.max(initial=0))
    if len(n) * shape[1] > _MOST_PLACES:
        raise LogError(
            f"{len(n):,} different lists and one of {shape[1]:,} positions need {len(n) * shape[1] * 9 >> 30:,} GB of "
            f"memory. Most have at most {int(np.quantile(lengths, 0.99)):,} positions: reject longer ones with "
            "max_positions= (--max-positions)."
        )
    items, clicks = np.full(shape, -1, dtype), np.zeros(shape, bool)
    propensity = np.full(shape, np.nan) if weighed else None
    for first in range(0, len(n), _CHUNK):
        rows = f"(from {source} where list >= {first} and list < {first + _CHUNK})"
        cells = run(
            "select list, position, pairs.rowid as pair, click from ("
            "select list, context, unnest(items) as item, unnest(range(len(items))) as position, "
            f"unnest(clicks)::int = 1 as click from {rows}) join pairs using (context, item)"
        ).fetchnumpy()
        items[cells["list"], cells["position"]] = cells["pair"]
        clicks[cells["list"], cells["position"]] = cells["click"]
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
    return ListBatch(context, items, clicks, n, propensity)
