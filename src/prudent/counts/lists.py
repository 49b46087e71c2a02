"""ListBatch: logged lists as arrays, for what counts do not keep: whole lists and their propensities."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files as package_files
from pathlib import Path

import duckdb
import numpy as np

from prudent.base.arrays import BoolArray, IntArray
from prudent.base.errors import LogError
from prudent.counts.cells import FEWEST, Cells
from prudent.counts.counts import check_tally
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.log import Log
from prudent.storage.files import TemporaryFolder
from prudent.storage.manifest import Tally
from prudent.storage.quoting import file_text, text

QUERY = package_files("prudent.engines").joinpath("sql/lists.sql").read_text(encoding="utf-8")


@dataclass(frozen=True, eq=False)
class ListBatch:
    """Lists as they were shown and clicked, one row each; equal lists may share one row with a larger ``n``.

    An item is the number of its pair (one item of one context), so it also says which context it belongs to.
    """

    context: IntArray  # one entry per pair, ascending: the number of its context
    items: IntArray  # this and the rest: one row per list; pairs from the top down, −1 below the end of a short list
    clicks: BoolArray
    n: IntArray  # how often that list was shown and clicked in that way

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
        return ListBatch(context, number[self.items[rows]], self.clicks[rows], self.n[rows])

    @cached_property
    def cells(self) -> Cells:
        """The histogram that an engine would make of these lists, cell for cell."""
        place = np.arange(1, self.length + 1)
        clicked_at = np.where(self.clicks, place, 0)
        upto = np.maximum.accumulate(clicked_at, axis=1)
        prev = np.zeros_like(upto)
        prev[:, 1:] = upto[:, :-1]
        more = upto[:, -1:] > place
        inside = self.items >= 0
        size = self.length + 1
        # A cell as one number, pair first and more last: sorting it sorts the cells.
        cell = ((self.items * size + place) * size + prev) * 4 + self.clicks * 2 + more
        cell, weight = cell[inside], np.broadcast_to(self.n[:, None], cell.shape)[inside]
        span = len(self.context) * size * size * 4
        if span <= 16 * cell.size:  # few possible cells: a table of them is cheaper than sorting what occurs
            table = np.bincount(cell, weight, minlength=span)
            found = np.flatnonzero(table)
            n = table[found].astype(np.float64, copy=False)
        else:
            found, which = np.unique(cell, return_inverse=True)
            n = np.bincount(which, weight).astype(np.float64, copy=False)
        return Cells(
            context=self.context,
            pair=found // (4 * size * size),
            position=found // (4 * size) % size,
            prev=found // 4 % size,
            click=(found & 2) > 0,
            more=(found & 1) > 0,
            n=n,
        )


# --- reading ----------------------------------------------------------------------------------------------------------


def read_lists(
    log: Log, engine: DuckDB, length: int | None, max_rejected: float
) -> tuple[duckdb.DuckDBPyConnection, ListBatch, Tally]:
    """Whole lists, cut after `length` positions, as arrays, and a database that knows the names of their numbers.

    The rowids of its tables `pairs` and `contexts` are the numbers.
    """
    connection, (shown,), (tally,) = read_parts([log], engine, length, max_rejected)
    return connection, shown, tally


def read_parts(
    logs: Sequence[Log],
    engine: DuckDB,
    length: int | None,
    max_rejected: float,
    where: str = "true",
    most: int | None = None,
) -> tuple[duckdb.DuckDBPyConnection, list[ListBatch], list[Tally]]:
    """The same for several logs, whose pairs share their numbers.

    `where` is a condition on contexts that the engine keeps to. Where there are more than `most` lists, only some
    contexts become arrays, with all of their lists, and the tallies are of everything: see `sample_of` for both.
    """
    folder = TemporaryFolder()
    longest = None if length is None else min(length, 1 << 31)  # DuckDB counts in 64 bits
    files, tallies = [], []
    for number, log in enumerate(logs):
        files.append(folder.path / f"lists{number}.parquet")
        tallies.append(replace(engine.lists(log, QUERY, files[-1], length=longest, where=where), left_out=log.left_out))
        check_tally(tallies[-1], log, max_rejected)
    connection = engine.open()
    run = connection.execute
    _check_names(connection, logs, files)
    if most is not None and sum(tally.lists for tally in tallies) > most:
        shown = " union all ".join(f"select context, n from read_parquet({file_text(file)})" for file in files)
        condition = sample_of(connection, f"select context, sum(n) as lists from ({shown}) group by context", most)
        some = [folder.path / f"some{number}.parquet" for number in range(len(files))]
        for file, target in zip(files, some, strict=True):
            run(f"copy (from read_parquet({file_text(file)}) where {condition}) to {text(target)} (format parquet)")
        files = some
    sources = [f"read_parquet({file_text(file)}, file_row_number = true)" for file in files]
    shown = " union all ".join(f"select context, unnest(items) as item from {source}" for source in sources)
    run(f"create table pairs as select distinct context, item from ({shown}) order by context, item")
    run("create table contexts as select distinct context from pairs order by context")
    sizes = run("select count(*) as n from pairs group by context order by context").fetchnumpy()["n"]
    context = np.repeat(np.arange(len(sizes)), sizes)
    return connection, [ListBatch(context, *_arrays(connection, source)) for source in sources], tallies


def _arrays(connection: duckdb.DuckDBPyConnection, source: str) -> tuple[IntArray, BoolArray, IntArray]:
    """Items, clicks and n of the lists in one file."""
    run = connection.execute
    lists = run(f"select n, len(items) as length from {source} order by file_row_number").fetchnumpy()
    found = run(
        "select list, position, pairs.rowid as pair, click from ("
        "select file_row_number as list, context, unnest(items) as item, "
        f"unnest(range(len(items))) as position, unnest(clicks) = 1 as click from {source}"
        ") join pairs using (context, item)"
    ).fetchnumpy()
    shape = len(lists["n"]), int(lists["length"].max(initial=0))
    items, clicks = np.full(shape, -1), np.zeros(shape, bool)
    items[found["list"], found["position"]] = found["pair"]
    clicks[found["list"], found["position"]] = found["click"]
    return items, clicks, lists["n"].astype(np.int64)


def _check_names(connection: duckdb.DuckDBPyConnection, logs: Sequence[Log], files: Sequence[Path]) -> None:
    """7 is not '7': names of one kind are never names of another."""
    words = {"VARCHAR": "text", "UBIGINT": "unsigned integers"}
    first = ""
    for log, file in zip(logs, files, strict=True):
        described = connection.execute(f"describe select context, items[1] from read_parquet({file_text(file)})")
        kinds = " and ".join(words.get(row[1], "integers") for row in described.fetchall())
        first = first or kinds
        if kinds != first:
            raise LogError(
                f"{logs[0].name} names its contexts and items by {first}, {log.name} by {kinds}: "
                "they have nothing in common."
            )


def sample_of(connection: duckdb.DuckDBPyConnection, contexts: str, most: int) -> str:
    """A condition that keeps contexts which together have at most so many lists, or else a few.

    `contexts` is a query for context and lists. The order in which they are taken has nothing to do with what is in
    them, and is the same in every engine and for every log.
    """
    found = connection.execute(
        f"select md5(context::varchar) as hash, lists::bigint as lists from ({contexts}) order by hash"
    ).fetchnumpy()
    few = int(np.searchsorted(np.cumsum(found["lists"]), most, side="right"))
    last = found["hash"][min(max(few, FEWEST), len(found["hash"])) - 1]
    return f"md5(context::varchar) <= '{last}'"
