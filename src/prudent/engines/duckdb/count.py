"""Counting in DuckDB: lists of any format to the kernel, what it counts to one Parquet file, and whole lists."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np

from prudent.base.arrays import BoolArray, IntArray
from prudent.engines import kernel
from prudent.engines.base import tally_of
from prudent.engines.duckdb import reject
from prudent.engines.duckdb.hygiene import make_lists
from prudent.engines.duckdb.impressions import count_impressions
from prudent.engines.duckdb.open import OpenTable, opened
from prudent.engines.duckdb.rewards import with_rewards, write_rewards
from prudent.engines.kernel.merging import merge, merge_files, renumbered
from prudent.logs.log import REASONS, Log, recorded_names
from prudent.storage.counts_file import Held, Piece, common_threshold, pieces_in, write_counts_file
from prudent.storage.database import Database, memory_limit
from prudent.storage.files import replacing, writing_temporary
from prudent.storage.manifest import Source, Tally
from prudent.storage.quoting import file_text, text
from prudent.storage.run import Run, WholeLists
from prudent.storage.sketch import EVERYTHING, in_sample, sample_of

_SHARE = 0.4  # of the memory, for the lists that are counted at a time
_MOST = 600_000_000  # bytes of them, however much memory there is


def write_counts(database: Database, log: Log, to: Path, check: Callable[[Tally], object]) -> Tally:
    """See `Engine.count`."""
    if log.layout == "impressions":
        return _write_impressions(database, log, to, check)
    with replacing(to) as part, database.connect(spill=part.parent) as connection:
        runs = _Runs(connection.cursor(), part.parent)
        tally = _count(connection, log, runs, check)
        _write(connection, part, runs, Source(recorded_names(log), tally))
    return tally


def hold_counts(
    database: Database, log: Log, to: Path, check: Callable[[Tally], object], most: int
) -> tuple[Tally, Held | None]:
    """See `DuckDB.hold`."""
    if log.layout == "impressions":
        return _write_impressions(database, log, to, check), None
    with writing_temporary(to.parent), database.connect(spill=to.parent) as connection:
        runs = _Runs(connection.cursor(), to.parent)
        tally = _count(connection, log, runs, check)
        held = runs.held(most)
        if held is None:
            _write(connection, to, runs, Source(recorded_names(log), tally))
    return tally, held


def read_whole_lists(
    database: Database, log: Log, check: Callable[[Tally], object], most: int | None
) -> tuple[Tally, Piece, str]:
    """See `DuckDB.whole_lists`."""
    log.check_lists()
    with database.connect() as connection:
        lists = _Lists(connection.cursor(), most)
        tally = _count(connection, log, lists, check)
        return tally, *lists.merged()


def hold_with_lists(
    database: Database,
    log: Log,
    to: Path,
    check: Callable[[Tally], object],
    *,
    most: int,
    most_lists: int | None,
) -> tuple[Tally, Held | None, Piece, str]:
    """See `DuckDB.hold_with_lists`."""
    log.check_lists()
    with writing_temporary(to.parent), database.connect(spill=to.parent) as connection:
        both = _Both(_Runs(connection.cursor(), to.parent), _Lists(connection.cursor(), most_lists))
        tally = _count(connection, log, both, check)
        held = both.runs.held(most)
        if held is None:
            _write(connection, to, both.runs, Source(recorded_names(log), tally))
        return tally, held, *both.lists.merged()


def _write_impressions(database: Database, log: Log, to: Path, check: Callable[[Tally], object]) -> Tally:
    """The counts of single impressions, which keep no whole lists."""
    with replacing(to) as part, database.connect(spill=part.parent) as connection:
        grouped = part.with_name(f"{part.stem}-grouped.part")
        try:
            with opened(connection, log) as source:
                tally = count_impressions(connection, log, source, grouped)
                check(tally)
            source_of = Source(recorded_names(log), tally)
            write_counts_file(connection, part, pieces_in(connection.cursor(), grouped), source=source_of)
        finally:
            grouped.unlink(missing_ok=True)
    return tally


def _count(
    connection: duckdb.DuckDBPyConnection, log: Log, runs: "_Runs | _Lists | _Both", check: Callable[[Tally], object]
) -> Tally:
    """Add the runs of a log and its rewards; the tally, after `check` has seen it."""
    numbers = np.zeros(len(REASONS) + 1, np.int64)
    with opened(connection, log) as source:
        connection.execute("set preserve_insertion_order = false")  # the order of lists means nothing here
        kept = "view" if log.reward is None else _kept(log, source)  # rewards are read in a second pass
        log = make_lists(connection, log, source, kept)
        for counted in _counted(connection, log, source, runs.sample):
            numbers += counted.tally
            runs.add(Piece(counted.run, counted.lists), counted.last)
            del counted  # the next lists need its memory
        tally = tally_of(log, numbers.tolist())
        check(tally)
        if log.reward is not None:
            runs.add_rewards(connection)
    return tally


def _write(connection: duckdb.DuckDBPyConnection, to: Path, runs: "_Runs", source: Source) -> None:
    pieces, threshold = runs.merged()
    write_counts_file(connection, to, pieces, source=source, threshold=threshold)


class _Runs:
    """The runs of a log: the last one is in memory where it is known to be that, others are in files of a folder."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
        self._connection, self._folder = connection, folder
        self._files: list[Path] = []
        self._last: Piece | None = None
        self._threshold = self._next = EVERYTHING  # of the sample of the last run, and of that which comes
        self._rewards: Path | None = None

    def sample(self, run: Run, lists: IntArray) -> BoolArray:
        """Which contexts of a run are in its sample; it is added next."""
        self._next, chosen = sample_of(self._connection, run.contexts, lists)
        return chosen

    def add(self, piece: Piece, last: bool) -> None:
        if self._last is not None:  # there are several streams
            self._spill(self._last)
            self._last = None
        self._threshold, self._next = self._next, EVERYTHING
        if last:
            self._last = piece
        else:
            self._spill(piece)

    def add_rewards(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Add up the rewards of the same lists, in the view `checked`."""
        self._rewards = self._folder / "rewards.parquet"
        write_rewards(connection, self._rewards)

    def _rewarded(self, pieces: Iterable[Piece]) -> Iterable[Piece]:
        return pieces if self._rewards is None else with_rewards(self._connection.cursor(), pieces, self._rewards)

    def _spill(self, piece: Piece) -> None:
        self._files.append(self._folder / f"run{len(self._files)}.parquet")
        write_counts_file(self._connection, self._files[-1], [piece], source=None, threshold=self._threshold)

    def held(self, most: int) -> Held | None:
        """The only run, where it takes at most so many bytes."""
        if self._last is None or self._files or self._last.run.nbytes > most:
            return None
        (piece,) = self._rewarded([self._last])
        return Held(piece, self._threshold)

    def merged(self) -> tuple[Iterable[Piece], str]:
        """The sum of all runs, and the threshold of its sample."""
        last, self._last = self._last, None  # its memory is needed
        pieces = [] if last is None else [last]
        if not self._files:
            return self._rewarded(pieces), self._threshold
        if last is not None:
            self._spill(last)
            del last, pieces
        threshold = common_threshold(self._connection, self._files)
        merged = merge_files(self._connection, self._files, threshold, self._folder)
        return self._rewarded(merged), threshold


class _Lists:
    """The names and the whole lists of a log, or of a sample of its contexts, in memory."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, most: int | None) -> None:
        self._connection, self._most = connection, most  # lists of the sample
        self._pieces: list[Piece] = []
        self._threshold = EVERYTHING

    def sample(self, run: Run, lists: IntArray) -> BoolArray:
        """The contexts of a run whose lists are kept."""
        if self._most is None:
            return np.ones(len(lists), bool)
        threshold, _ = sample_of(self._connection, run.contexts, lists, self._most)
        self._threshold = min(self._threshold, threshold)
        return in_sample(self._connection, run.contexts, self._threshold)

    def add(self, piece: Piece, last: bool) -> None:
        piece = Piece(piece.run.names, piece.lists.copy())  # the cells, which take the most memory, may go
        self._pieces.append(piece)
        if self._most is not None:
            self._pieces = [self._cut()]

    def add_rewards(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Whole lists have no rewards."""

    def _cut(self) -> Piece:
        """All pieces as one, with the contexts of their common sample."""
        both = [one.only(in_sample(self._connection, one.run.contexts, self._threshold)) for one in self._pieces]
        piece = merge(both, [1] * len(both))
        lists = np.bincount(piece.lists.context, piece.lists.n, minlength=len(piece.run.pairs)).astype(np.int64)
        threshold, chosen = sample_of(self._connection, piece.run.contexts, lists, self._most)
        self._threshold = min(self._threshold, threshold)
        return piece.only(chosen)

    def merged(self) -> tuple[Piece, str]:
        """All of them, and the threshold of their sample."""
        pieces, self._pieces = self._pieces, []
        if len(pieces) == 1:
            return pieces[0], self._threshold
        run, places = kernel.merge([piece.run for piece in pieces], [1] * len(pieces))
        numbered = []
        for place in places:  # names and lists of a piece are freed before the next one is looked at
            numbered.append(renumbered(pieces.pop(0), run, place))
        whole = WholeLists.concatenated(numbered)
        del places, numbered, place
        return Piece(run, kernel.distinct(whole)), self._threshold


class _Both:
    """The counts with their sample, and whole lists, all or those of another sample."""

    def __init__(self, runs: _Runs, lists: _Lists) -> None:
        self.runs, self.lists = runs, lists
        self._sampled = np.zeros(0, bool)

    def sample(self, run: Run, lists: IntArray) -> BoolArray:
        self._sampled = self.runs.sample(run, lists)
        return np.asarray(self._sampled | self.lists.sample(run, lists))

    def add(self, piece: Piece, last: bool) -> None:
        self.lists.add(piece, last)
        self.runs.add(Piece(piece.run, piece.lists.where(self._sampled[piece.lists.context])), last)

    def add_rewards(self, connection: duckdb.DuckDBPyConnection) -> None:
        """To the counts."""
        self.runs.add_rewards(connection)


def _counted(
    connection: duckdb.DuckDBPyConnection, log: Log, source: OpenTable, sample: Callable[[Run, IntArray], BoolArray]
) -> Iterator[kernel.Counted]:
    """Runs of as many lists as fit into memory at a time."""
    view, fault = "lists", "fault"
    if log.propensity is not None or log.reward is not None:  # the kernel does not look at them
        connection.execute(f"create temp view checked as {reject.checked(log, source)}")
        view, fault = "checked", "reason"
    kind = str(connection.sql("select clicks from lists").types[0]).removesuffix("[]")
    clicks = "clicks" if kind in _LETTERS else "clicks::integer[]"  # of nulls, where they are no clicks at all
    lists = connection.sql(f"select context, items, {clicks} as clicks, {fault}::integer, copies::bigint from {view}")
    kinds = [str(kind).removesuffix("[]") for kind in lists.types[:3]]
    types = "".join(_LETTERS[kind] for kind in kinds)
    budget = int(min(_MOST, _SHARE * memory_limit(connection)))
    yield from kernel.count(
        lists.__arrow_c_stream__(),
        types,
        budget=budget,
        max_positions=log.max_positions,
        text_files=source.kind in ("csv", "jsonl"),
        choose=sample,
    )


_LETTERS = {
    "VARCHAR": "u",
    "TINYINT": "c",
    "UTINYINT": "C",
    "SMALLINT": "s",
    "USMALLINT": "S",
    "INTEGER": "i",
    "UINTEGER": "I",
    "BIGINT": "l",
    "UBIGINT": "L",
}
"""DuckDB's types as Arrow calls them."""


def write_lists(database: Database, log: Log, query: str, to: Path, *, length: int | None, where: str) -> Tally:
    """See `DuckDB.lists`."""
    log.check_lists()
    with writing_temporary(to.parent), _checking(database, log, to, where) as (connection, left_out):
        connection.execute(f"create temp view shown as {reject.cut_lists(log, length)}")
        connection.execute(f"copy ({query}) to {text(to)} (format parquet, compression zstd)")
        counted = connection.execute(f"select coalesce(sum(n), 0)::bigint from read_parquet({file_text(to)})")
        return replace(reject.count_rejected(connection, int(counted.fetchall()[0][0])), left_out=left_out)


@contextmanager
def _checking(
    database: Database, log: Log, to: Path, where: str = "true"
) -> Iterator[tuple[duckdb.DuckDBPyConnection, dict[str, int]]]:
    """The views `lists` and `checked` of a log, and what is left out."""
    with database.connect(spill=to.parent) as connection, opened(connection, log) as source:
        # The order of rows means nothing here, and keeping it would cost memory.
        connection.execute("set preserve_insertion_order = false")
        left_out = make_lists(connection, replace(log, left_out={}), source, _kept(log, source), where).left_out
        connection.execute(f"create temp view checked as {reject.checked(log, source)}")
        yield connection, dict(left_out)


def _kept(log: Log, source: OpenTable) -> str:
    """What lists are in that are read twice: text files, and lists grouped from rows, are too costly for that."""
    return "view" if log.layout == "lists" and source.kind in ("parquet", None) else "table"
