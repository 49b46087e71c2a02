"""Index: numbers for contexts and (context, item) pairs, and their cells as arrays, as many contexts at a time as fit.

Contexts and pairs are numbered in the order of their names, so that the pairs of a context, and of consecutive
contexts, are consecutive: a part is a range of both.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import LogError
from prudent.counts.cells import Cells
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import INTEGERS, OpenTable, context_as, context_type, name_as, opened
from prudent.engines.kernel.merging import merge_pieces
from prudent.logs.log import Candidates, Table
from prudent.storage.arrow import Column, ListColumn, numbers, read, stream_of
from prudent.storage.arrow_tables import registered
from prudent.storage.counts_file import Piece, empty_piece
from prudent.storage.quoting import file_text
from prudent.storage.run import NO_NAMES, REWARD_UNITS, NameColumn, Run, starts_list

_MOST_CELLS = 500_000  # of a part: its arrays take memory that earlier ones gave back
REWARDS_OF_UNITS = np.array([REWARD_UNITS, REWARD_UNITS**2], float)
"""By which the sums of rewards and of their squares are divided, which are those of thousandths."""
_CANDIDATE = 0  # code of the cell that marks a pair that may be shown; no position is 0


class Part(NamedTuple):
    """Consecutive contexts, or a selection of contexts."""

    cells: Cells
    eligible: BoolArray  # whether each pair may be shown
    contexts: NameColumn = NO_NAMES
    items: NameColumn = NO_NAMES  # of the pairs


@dataclass(frozen=True, eq=False)
class Index:
    """All pairs and contexts of the log and of the candidates, numbered."""

    runs: Callable[[], Iterable[Run]]  # all contexts, in their order; a candidate is a pair with one cell more
    engine: DuckDB
    unit: int  # of n in runs
    offered: bool  # whether there are candidates; or else every pair may be shown
    names: NameColumn  # of the contexts
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
        return self._part(Run.concatenated(list(self.runs())))

    def parts(self) -> Iterator[Part]:
        """All contexts, in parts of a bounded size; a context that is larger is a part."""
        return map(self._part, _resized(self.runs()))

    def only(self, *selections: BoolArray) -> tuple[Part, ...]:
        """The contexts of each selection, renumbered; the cells are read once for all."""
        chosen: list[list[Run]] = [[] for _ in selections]
        first = 0
        for run in self.runs():
            last = first + len(run.pairs)
            for runs, contexts in zip(chosen, selections, strict=True):
                runs.append(run if contexts[first:last].all() else run.only(contexts[first:last]))
            first = last
        return tuple(self._part(Run.concatenated(runs)) for runs in chosen)

    def in_random_order(self) -> IntArray:
        """The contexts in a random order that is the same in every engine."""
        with self.engine.connect() as connection:
            number = numbers(np.arange(self.contexts))
            with registered(connection, "contexts", [{"number": number, "context": self.names.column}]):
                order = connection.execute("select number from contexts order by md5(context::varchar), context")
                return order.fetchnumpy()["number"].astype(np.int64)

    def find(self, contexts: Iterable[str | int]) -> dict[str | int, int]:
        """The numbers of these contexts, of those that there are."""
        found = {context: self.names.find(context) for context in contexts}
        return {context: number for context, number in found.items() if number is not None}

    def distinct_items(self) -> int:
        """How many items there are, whatever their contexts."""
        items = ({"item": run.items.column} for run in self.runs())
        with self.engine.connect() as connection, registered(connection, "items", items):
            return int(connection.execute("select count(distinct item) from items").fetchall()[0][0])

    def _part(self, run: Run) -> Part:
        size, code, n = run.cells, run.code, run.n
        eligible = np.ones(len(size), bool)
        if self.offered:
            shown = code != _CANDIDATE
            pair = np.repeat(np.arange(len(size)), size)
            eligible = np.bincount(pair[~shown], minlength=len(size)) > 0
            size = np.bincount(pair[shown], minlength=len(size)).astype(np.uint32)
            code, n = code[shown], n[shown]
        # n is exact below 2⁵³ of its unit
        rewards = None if run.rewards is None else run.rewards / REWARDS_OF_UNITS
        cells = Cells(np.repeat(np.arange(len(run.pairs)), run.pairs), size, code, n / self.unit, rewards)
        return Part(cells, eligible, run.contexts, run.items)


def _resized(runs: Iterable[Run]) -> Iterator[Run]:
    """The same contexts in runs of about `_MOST_CELLS` cells."""
    few: list[Run] = []
    held = 0
    for run in runs:
        first = 0
        while first < len(run.pairs):
            # At least one context, and as many as there is room for.
            room = run.first_cell[first] + _MOST_CELLS - held
            last = max(int(np.searchsorted(run.first_cell, room, side="right")) - 1, first + (not held))
            if last > first:
                few.append(run.slice(first, last))
                held += len(few[-1].code)
            if last < len(run.pairs):
                yield Run.concatenated(few)
                few, held = [], 0
            first = last
    if few:
        yield Run.concatenated(few)


def number(pieces: Callable[[], Iterator[Piece]], engine: DuckDB, unit: int, candidates: Candidates | None) -> Index:
    """Number the pairs of counts, whose pieces are read as often as needed, and of the candidates."""
    if candidates is not None:
        counts, offered = pieces, _read_candidates(engine, candidates, next(pieces()).run)

        def pieces() -> Iterator[Piece]:
            return merge_pieces([counts(), offered()], lambda names: np.zeros(len(names), bool))

    most = engine.room()
    kept: list[Run] | None = []
    held = 0
    names, columns = [], []
    for piece in pieces():
        run = piece.run
        names.append(run.contexts)
        columns.append(_measure(run))
        held += run.nbytes
        kept = None if kept is None or held > most else [*kept, run]
    pairs, eligible, cells, longest, lists, clicks = map(np.concatenate, zip(*columns, strict=True))
    return Index(
        (lambda: kept) if kept is not None else (lambda: (piece.run for piece in pieces())),
        engine,
        unit,
        candidates is not None,
        NameColumn.concatenated(names),
        positions=int(longest.max(initial=0)),
        clicks=float(clicks.sum() / unit),
        pairs_of=pairs,
        eligible_of=pairs if candidates is None else eligible,
        cells_of=cells,
        longest_of=longest,
        lists_of=lists / unit,
    )


def _measure(run: Run) -> tuple[IntArray, ...]:
    """Of each context: pairs, candidates, cells, the longest list, lists and clicks."""
    first, contexts = run.first_cell, len(run.pairs)
    if not contexts:
        return (np.zeros(0, np.int64),) * 6
    # Some contexts at a time: arrays of all cells would be made of memory that is new each time.
    cuts = np.unique(np.append(np.searchsorted(first[:-1], np.arange(0, first[-1], _CHUNK)), contexts))
    parts = []
    for one, next_ in pairwise(np.append(0, cuts[cuts > 0]).tolist()):
        cells = slice(first[one], first[next_])
        parts.append(_totals(run.code[cells], run.n[cells].view(np.int64), first[one:next_] - first[one]))
    eligible, longest, lists, clicks = map(np.concatenate, zip(*parts, strict=True))
    return run.pairs.astype(np.int64), eligible, np.diff(first) - eligible, longest, lists, clicks


_CHUNK = 1 << 16  # cells at a time


def _totals(code: NDArray[np.uint32], n: IntArray, starts: IntArray) -> tuple[IntArray, ...]:
    """Of each context: candidates, the longest list, lists and clicks; each has a cell."""
    position = code >> 16

    def total(values: NDArray[Any]) -> IntArray:
        return np.add.reduceat(values, starts, dtype=np.int64)

    longest = np.maximum.reduceat(position, starts).astype(np.int64)
    return total(position == _CANDIDATE), longest, total(starts_list(code) * n), total((code >> 1 & 1) * n)


def _read_candidates(engine: DuckDB, table: Candidates, logged: Run) -> Callable[[], Iterator[Piece]]:
    """The candidates as pieces of counts: each pair has the cell of a candidate."""
    connection = engine.open()
    _read(connection, table, [logged.contexts, logged.items])
    connection.execute(
        "create table grouped as select context, list(item order by item) as items from candidates "
        "group by context order by context"
    )

    def pieces() -> Iterator[Piece]:
        capsule = connection.cursor().sql("from grouped").__arrow_c_stream__()
        for context, items in read(stream_of(capsule)):
            yield _offered(context, items)

    return pieces


def _offered(context: Column, items: Column) -> Piece:
    offered = ListColumn.of(items)
    pairs, one = int(offered.size.sum()), np.uint32(1)
    run = Run(
        NameColumn.of(context),
        NameColumn.of(offered.child),
        offered.size.astype(np.uint32),
        np.full(pairs, one),
        np.full(pairs, _CANDIDATE, np.uint32),
        np.full(pairs, one, np.uint64),
    )
    return Piece(run, empty_piece("VARCHAR", "VARCHAR").lists)


def _read(connection: duckdb.DuckDBPyConnection, table: Candidates, logged: Sequence[NameColumn]) -> None:
    """Make the table `candidates`, with names of the types that the log's have."""
    with opened(connection, table) as source:
        kinds = {column: one.kind for column, one in zip(("context", "item"), logged, strict=True)}
        names, wrong = typed_names(source, table, "candidates", kinds)
        ((bad,),) = connection.execute(f"select count(*) from source where {' or '.join(wrong)}").fetchall()
        if bad:
            raise LogError(
                f"{bad:,} rows of {table.name} have a context or item that is missing or not of the log's type."
            )
        connection.execute(f"create table candidates as select distinct {', '.join(names)} from source")
    if not connection.execute("select count(*) from candidates").fetchall()[0][0]:
        raise LogError(f"{table.name} has no candidate: it has no rows.")


def typed_names(source: OpenTable, table: Table, what: str, kinds: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Columns of names of the types that the log's have, and conditions in which one has no such name, in SQL."""
    names, wrong = [], ["odd"] if source.kind == "jsonl" else []
    for column, kind in kinds.items():
        is_context = column == "context"
        name = context_as(table, source) if is_context else name_as(column, source.types[column], table)
        theirs = context_type(table, source) if is_context else source.types[column]
        if (theirs in INTEGERS) == (kind == "VARCHAR"):
            if source.kind != "csv":
                theirs = theirs.lower()
                raise LogError(f"The {what}' {column} is {theirs}, but the log's is {kind.lower()}.")
            name = f"case when regexp_full_match({name}, '[+-]?[0-9]+') then try_cast({name} as {kind}) end"
        elif kind != "VARCHAR":
            name = f"try_cast({name} as {kind})"  # of signed and unsigned, DuckDB would make a third
        names.append(f"{name} as {column}")
        wrong.append(f"({name}) is null")
    return names, wrong


def name_types(connection: duckdb.DuckDBPyConnection, file: Path, item: str = "items[1]") -> list[str]:
    """The types of contexts and items in a Parquet file; names of different types are never equal."""
    described = connection.execute(f"describe select context, {item} from read_parquet({file_text(file)})").fetchall()
    kinds = {"VARCHAR": "text", "UBIGINT": "unsigned integers"}
    return [kinds.get(row[1], "integers") for row in described]
