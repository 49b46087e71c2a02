"""Index: numbers for contexts and (context, item) pairs, and their cells as arrays, as many contexts at a time as fit.

Names stay in the database; arrays have numbers. Contexts and pairs are numbered in the order of their names, so that
the pairs of a context, and of consecutive contexts, are consecutive: a part is a range of both.
"""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import LogError
from prudent.counts.cells import CellCodec, Cells
from prudent.engines.duckdb.open import INTEGERS, name_as, opened
from prudent.logs.log import Candidates
from prudent.storage.quoting import file_text

_BYTES = 160  # memory of one cell in arrays, at most
_BYTES_TO_JOIN = 100  # memory of one pair in the join that numbers cells
_SHARE = 0.15  # of the memory, for arrays
_DATABASE = 0.8  # of the memory, for the database; it exceeds its limit somewhat, and Python needs some
_MOST_CELLS = 8_000_000  # of a part, however much memory there is: larger parts are not faster


class Part(NamedTuple):
    """Consecutive contexts."""

    first_pair: int
    first_context: int
    cells: Cells
    eligible: BoolArray  # whether each pair may be shown


@dataclass(frozen=True, eq=False)
class Index:
    """All pairs and contexts of the log and of the candidates, numbered.

    The database has the tables ``pairs`` (context, item, eligible), which their rowids number, and ``contexts``.
    """

    connection: duckdb.DuckDBPyConnection
    memory: int  # bytes that the database and the arrays may take together
    unit: int  # of n in the database
    positions: int  # of the longest list
    clicks: float  # in total
    pairs_of: IntArray  # this and the rest: one entry per context
    eligible_of: IntArray  # pairs that may be shown
    cells_of: IntArray
    longest_of: IntArray  # positions of the longest list
    lists_of: FloatArray  # logged

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return int(self.pairs_of.sum())

    @property
    def contexts(self) -> int:
        """Number of contexts."""
        return len(self.pairs_of)

    def whole(self) -> Part:
        """All contexts at once."""
        return self._part(0, self.contexts)

    def parts(self) -> Generator[Part]:
        """All contexts, in parts that fit into memory."""
        most = max(1, min(_MOST_CELLS, int(_SHARE * self.memory / _BYTES)))
        upto = np.cumsum(self.cells_of + self.pairs_of)
        first = 0
        try:
            # Memory of the arrays is taken from the database's.
            _limit_memory(self.connection, (_DATABASE - 2 * _SHARE) * self.memory)
            while first < self.contexts:
                before = upto[first - 1] if first else 0
                last = max(first + 1, int(np.searchsorted(upto, before + most, side="right")))
                yield self._part(first, last)
                first = last
        finally:
            _limit_memory(self.connection, _DATABASE * self.memory)

    def only(self, contexts: BoolArray) -> Part:
        """The selected contexts, renumbered."""
        if contexts.all():
            return self.whole()
        chosen, span = np.flatnonzero(np.repeat(contexts, self.pairs_of)), self._codec.span
        cursor = self.connection.cursor()
        cursor.register("chosen", {"row": chosen})
        cells = cursor.execute(
            f"select cell, n from cells where cell // {span} in (select row from chosen) order by cell"
        ).fetchnumpy()
        pair, rest = np.divmod(cells["cell"], span)
        cells["cell"] = np.searchsorted(chosen, pair) * span + rest
        eligible = cursor.execute(
            "select eligible from pairs where rowid in (select row from chosen) order by rowid"
        ).fetchnumpy()["eligible"]
        return Part(0, 0, self._cells(self.pairs_of[contexts], cells), eligible)

    def in_random_order(self) -> IntArray:
        """The contexts in a random order that is the same in every engine."""
        order = self.connection.execute("select rowid from contexts order by md5(context::varchar), context")
        return order.fetchnumpy()["rowid"].astype(np.int64)

    @property
    def _codec(self) -> CellCodec:
        return CellCodec.up_to(self.positions)

    def _part(self, first: int, last: int) -> Part:
        start = int(self.pairs_of[:first].sum())
        end = start + int(self.pairs_of[first:last].sum())
        cells = self.connection.execute(
            f"select cell - {start * self._codec.span} as cell, n from cells "
            f"where cell >= {start * self._codec.span} and cell < {end * self._codec.span} order by cell"
        ).fetchnumpy()
        eligible = self.connection.execute(
            f"select eligible from pairs where rowid >= {start} and rowid < {end} order by rowid"
        ).fetchnumpy()["eligible"]
        return Part(start, first, self._cells(self.pairs_of[first:last], cells), eligible)

    def _cells(self, sizes: IntArray, cells: dict[str, IntArray]) -> Cells:
        n = cells["n"] / self.unit  # exact below 2⁵³ of it
        return self._codec.decode(cells["cell"], n, np.repeat(np.arange(len(sizes)), sizes))


def _memory_limit(connection: duckdb.DuckDBPyConnection) -> int:
    """In bytes; DuckDB reports text such as 953.6 MiB."""
    ((limit,),) = connection.execute("select current_setting('memory_limit')").fetchall()
    size, unit = limit.split()
    return int(float(size) * 1024 ** ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].index(unit))


def _limit_memory(connection: duckdb.DuckDBPyConnection, limit: float) -> None:
    connection.execute(f"set memory_limit = '{int(limit)} bytes'")


def number(
    connection: duckdb.DuckDBPyConnection, counts: str, costly: bool, unit: int, candidates: Candidates | None
) -> Index:
    """Number the pairs of `counts`, a query for the histogram, and of the candidates; a costly query is run once."""
    run = connection.execute
    memory = _memory_limit(connection)
    _limit_memory(connection, _DATABASE * memory)
    run("set preserve_insertion_order = false")  # queries that need an order have one; the others take less memory
    if costly:
        run(f"create table histogram as {counts}")
        counts = "from histogram"
    if candidates is None:
        run(
            "create table pairs as select *, true as eligible from (select distinct context, item "
            f"from ({counts})) order by context, item"
        )
    else:
        run(f"create table logged as select distinct context, item from ({counts})")
        _read(connection, candidates)
        # Logged items that are not eligible stay: they are evidence about the others and part of the incumbent lists.
        run(
            "create table pairs as select context, item, coalesce(eligible, false) as eligible "
            "from logged full outer join (select true as eligible, context, item from candidates) "
            "using (context, item) order by context, item"
        )
        run("drop table logged")
    run(
        "create table contexts as select context, pairs, eligible, coalesce(cells, 0) as cells, "
        "coalesce(lists, 0) as lists, coalesce(clicks, 0) as clicks, coalesce(longest, 0) as longest "
        "from (select context, count(*) as pairs, count(*) filter (eligible) as eligible from pairs group by context) "
        "left join (select context, count(*) as cells, sum(n) filter (position = 1) as lists, "
        f"sum(n) filter (click) as clicks, max(position) as longest from ({counts}) group by context) "
        "using (context) order by context"
    )
    contexts = run(
        "select pairs, eligible, cells, lists::bigint as lists, clicks::bigint as clicks, longest "
        "from contexts order by rowid"
    )
    columns = contexts.fetchnumpy()
    longest = int(columns["longest"].max(initial=0))
    _make_cells(connection, counts, CellCodec.up_to(longest), columns["pairs"], int(_DATABASE * memory))
    if costly:
        run("drop table histogram")
    run("set preserve_insertion_order = true")  # a policy is written in the order of its table
    return Index(
        connection,
        memory,
        unit,
        positions=longest,
        clicks=float(columns["clicks"].sum() / unit),
        pairs_of=columns["pairs"],
        eligible_of=columns["eligible"],
        cells_of=columns["cells"],
        longest_of=columns["longest"],
        lists_of=columns["lists"] / unit,
    )


def _make_cells(
    connection: duckdb.DuckDBPyConnection, counts: str, codec: CellCodec, pairs_of: IntArray, memory: int
) -> None:
    """The table `cells`: a cell as one number, pair first and more last, so that sorting it sorts the cells.

    Names are joined for some contexts at a time: a join that has to spill too many pairs fails.
    """
    run = connection.execute
    run("create table cells (cell bigint, n bigint)")
    upto = np.cumsum(pairs_of)
    first = start = 0
    while first < len(pairs_of):
        last = max(first + 1, int(np.searchsorted(upto, start + memory // _BYTES_TO_JOIN, side="right")))
        end = int(upto[last - 1])
        names = f"select rowid as row, context, item from pairs where rowid >= {start} and rowid < {end}"
        rows = counts
        if last - first < len(pairs_of):
            ends = f"select min(context), max(context) from contexts where rowid >= {first} and rowid < {last}"
            ((lowest, highest),) = run(ends).fetchall()
            run("set variable lowest = ?", [lowest])
            run("set variable highest = ?", [highest])
            rows = f"from ({counts}) where context between getvariable('lowest') and getvariable('highest')"
        run(
            f"insert into cells select {codec.sql('row')} as cell, n "
            f"from ({rows}) join ({names}) using (context, item) order by cell"
        )
        first, start = last, end


def _read(connection: duckdb.DuckDBPyConnection, table: Candidates) -> None:
    """Make the table `candidates`, with names of the types that the log's have."""
    with opened(connection, table) as source:
        names, wrong = [], ["odd"] if source.kind == "jsonl" else []
        for column in ("context", "item"):
            ((kind,),) = connection.execute(f"select typeof({column}) from logged limit 1").fetchall()
            name = name_as(column, source.types[column], table)
            if (source.types[column] in INTEGERS) == (kind == "VARCHAR"):
                if source.kind != "csv":
                    theirs = source.types[column].lower()
                    raise LogError(f"The candidates' {column} is {theirs}, but the log's is {kind.lower()}.")
                name = f"case when regexp_full_match({name}, '[+-]?[0-9]+') then try_cast({name} as {kind}) end"
            elif kind != "VARCHAR":
                name = f"try_cast({name} as {kind})"  # of signed and unsigned, DuckDB would make a third
            names.append(f"{name} as {column}")
            wrong.append(f"({name}) is null")
        ((bad,),) = connection.execute(f"select count(*) from source where {' or '.join(wrong)}").fetchall()
        if bad:
            raise LogError(
                f"{bad:,} rows of {table.name} have a context or item that is missing or not of the log's type."
            )
        connection.execute(f"create table candidates as select distinct {', '.join(names)} from source")
    if not connection.execute("select count(*) from candidates").fetchall()[0][0]:
        raise LogError(f"{table.name} has no candidate: it has no rows.")


def name_types(connection: duckdb.DuckDBPyConnection, file: Path, item: str = "item") -> list[str]:
    """The types of contexts and items in a Parquet file; names of different types are never equal."""
    described = connection.execute(f"describe select context, {item} from read_parquet({file_text(file)})").fetchall()
    kinds = {"VARCHAR": "text", "UBIGINT": "unsigned integers"}
    return [kinds.get(row[1], "integers") for row in described]
