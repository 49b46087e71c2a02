"""Counts: the histogram between log and arrays. Above it data is big and lives in an engine, below it is numpy."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from os import PathLike
from pathlib import Path

import duckdb
import numpy as np

from prudent.base.errors import CountsError, UsageError
from prudent.counts.cells import Cells
from prudent.counts.days import UNIT, Chosen, choose, folders_of_days
from prudent.counts.files import check_counts_file, find_counts, merged_pieces
from prudent.counts.index import Index, name_types, number
from prudent.counts.lists import ListBatch, batch_of, named_lists
from prudent.counts.remote import find_remote, read_tallies
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.spark.engine import Spark
from prudent.logs.log import Candidates
from prudent.storage.arrow import Column
from prudent.storage.arrow_tables import registered
from prudent.storage.counts_file import (
    OF_ALL_ROWS,
    Held,
    Piece,
    cells_query,
    common_threshold,
    counts_manifest,
    write_counts_file,
)
from prudent.storage.digest import Digest, digest_lists
from prudent.storage.files import TemporaryFolder, replacing, writing_temporary
from prudent.storage.filesystem import Location, fetch, fetch_rows, locate
from prudent.storage.locks import Seen, has_changed, locked, look_at
from prudent.storage.manifest import Days, Manifest, Source, Tally
from prudent.storage.quoting import file_text
from prudent.storage.run import Run, joined_rewards
from prudent.storage.sketch import NOTHING

_KEYS = "context, item, position, prev, click, more"


@dataclass(frozen=True, eq=False)
class Counts:
    """A log as one histogram, kept in Parquet files that add up, or in memory.

    Each cell says how often an item of a context was shown at a position, with the last click above at ``prev``, itself
    clicked or not, and with ``more`` clicks below or not. ``a + b`` are the counts of both logs together; ``==``
    compares the sums, not the files. The layout of a file is described in `prudent.storage.counts_file`.

    ``weights``, where there are any, are the weights of the lists of each file, in units of 2⁻²⁰.

    >>> import prudent, pyarrow as pa, tempfile
    >>> counts = prudent.count(pa.table({"context": ["shoes"], "items": [["i1", "i2"]], "clicks": [[0, 1]]}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     counts.write(f"{folder}/counts.parquet")
    ...     prudent.Counts.read(f"{folder}/counts.parquet") == counts
    True
    >>> (counts + counts).tally.lists
    2
    """

    files: tuple[Path, ...]
    tally: Tally
    engine: DuckDB = field(default_factory=DuckDB)
    origin: tuple[str, ...] = ()  # the logs or files it came from, for the provenance of a policy
    weights: tuple[int, ...] = field(default=(), kw_only=True)  # one for each file, or none at all
    days: Days | None = field(default=None, kw_only=True)  # that were read, for the same purpose
    remote: "tuple[Location, ...]" = field(default=(), kw_only=True)  # in place of files, where they are elsewhere
    held: Held | None = field(default=None, kw_only=True, repr=False)  # in place of files, where they are in memory
    seen: tuple[Seen, ...] = field(default=(), kw_only=True, repr=False)  # the files when their tallies were read
    _folder: object = field(default=None, repr=False)  # temporary folders live as long as the counts that need them

    @classmethod
    def read(
        cls,
        *paths: str | PathLike[str],
        since: date | str | None = None,
        until: date | str | None = None,
        half_life: float | str | None = None,
        engine: "DuckDB | Spark | None" = None,
    ) -> "Counts":
        """Counts from the files they were written to; several files, or the days of a folder, are added up.

        since, until
            The first and the last day to read: a date, or an age such as ``"30d"``, in days before the newest day.
        half_life
            Age, in days before the newest day that is read, at which the weight of a list halves. Without it, all days
            have the same weight.
        """
        for path in paths:
            if not isinstance(path, str | PathLike):
                raise UsageError(f"Counts.read takes paths, one after the other, not a {type(path).__name__}.")
        if isinstance(engine, Spark):
            places = [locate(path, engine.filesystem) for path in paths]
            if any(at.local is None for at in places):
                remote, chosen = find_remote(paths, engine.filesystem, since, until, half_life)
                origin = tuple(file.name for file in remote)
                tally = read_tallies(remote)
                return cls((), tally, DuckDB(), origin, weights=chosen.weights, days=chosen.days, remote=tuple(remote))
            paths, engine = tuple(at.local for at in places if at.local), None
        engine = engine or DuckDB()
        # In folders of days, files are replaced and merged: they are listed, and looked at, while nobody does that.
        with locked(folders_of_days(find_counts(paths)), shared=True):
            return cls.of_files(choose(find_counts(paths), since, until, half_life), engine)

    @classmethod
    def of_files(cls, chosen: Chosen, engine: DuckDB) -> "Counts":
        """Counts from files on this machine; the caller sees to it that nobody replaces them meanwhile."""
        files = chosen.files
        with engine.connect() as connection:
            seen = tuple(map(look_at, files))
            tallies = [check_counts_file(connection, file) for file in files]
            kinds = {file: name_types(connection, file) for file in files}
        for file, kind in kinds.items():
            if kind != kinds[files[0]]:
                raise CountsError(
                    f"{files[0]} names its contexts and items by {' and '.join(kinds[files[0]])}, {file} by "
                    f"{' and '.join(kind)}: they cannot be added."
                )
        tally = sum(tallies[1:], tallies[0])
        origin = tuple(map(str, files))
        return cls(files, tally, engine, origin, weights=chosen.weights, days=chosen.days, seen=seen)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the counts to one Parquet file, summed up, with a manifest beside it."""
        self.write_file(Path(path))
        self.manifest.write(path)

    def write_file(self, path: Path) -> None:
        """The same without the copy of the manifest beside it."""
        if self.weights:
            raise UsageError(
                "Counts with a half-life are not whole numbers and cannot be written. Write them without it, and set "
                "half_life when you read them."
            )
        with self.engine.connect(spill=path.parent) as connection, replacing(path) as part, self._reading():
            threshold = self._threshold(connection)
            write_counts_file(connection, part, self.pieces(), source=self.source, threshold=threshold)

    def _threshold(self, connection: duckdb.DuckDBPyConnection) -> str:
        """Of the sample of whole lists."""
        return common_threshold(connection, self._here) if self.held is None else self.held.threshold

    @property
    def source(self) -> Source:
        """What was counted, for the manifests of counts and of what is made of them."""
        return Source(self.origin, self.tally, self.days)

    @property
    def training(self) -> Source:
        """The same with a digest of the lists, for the manifests of what is fitted to them."""
        return replace(self.source, digest=self._digest)

    @cached_property
    def _digest(self) -> Digest | None:
        if self.remote:
            return self._lists_alone()._digest
        with self._reading(), self.engine.connect() as connection:
            threshold = self._threshold(connection)
            if threshold == NOTHING:
                return None
            with registered(connection, "lists", map(named_lists, self._sampled())):
                return digest_lists(connection, "from lists", threshold)

    def _lists_alone(self) -> "Counts":
        """The lists of counts that are elsewhere, which are bounded, without the cells, which are not."""
        folder = TemporaryFolder()
        lists = fetch_rows(self.remote, folder.path, "list_n", OF_ALL_ROWS)
        return replace(self, files=tuple(lists), remote=(), _folder=folder)

    @property
    def manifest(self) -> Manifest:
        """The manifest that is written beside the counts."""
        return counts_manifest(self.source)

    def __add__(self, other: "Counts") -> "Counts":
        with self._reading(), other._reading(), self.engine.connect() as connection:
            if name_types(connection, self._here[0]) != name_types(connection, other._here[0]):
                raise CountsError(
                    "The two logs name their contexts and items differently: by text, integers or unsigned integers."
                )
        weights = self._weight_of_each + other._weight_of_each if self.weights or other.weights else ()
        if weights and self.days != other.days:
            raise UsageError(
                "The weights of the two count ages from different days and cannot be added. Read both at once: "
                "Counts.read(one, other, half_life=...)."
            )
        seen = (*self.seen, *other.seen) if bool(self.seen) == bool(other.seen) else ()
        return Counts(
            self._here + other._here,
            self.tally + other.tally,
            self.engine,
            self.origin + other.origin,
            weights=weights,
            days=self.days if self.days == other.days else None,
            seen=seen,
            _folder=(self, other),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        with self._reading(), other._reading(), self.engine.connect() as connection:
            if name_types(connection, self._here[0]) != name_types(connection, other._here[0]):
                return False  # 7 is not '7', but DuckDB would compare them as text
            # In the same unit: 7 in full are as many as 14 of which each counts half.
            one, two = (
                f"select * replace (n * {UNIT // counts._unit} as n) from ({counts.sql})" for counts in (self, other)
            )
            rows = connection.execute(
                f"select count(*) from ((({one}) except all ({two})) union all (({two}) except all ({one})))"
            ).fetchall()
        return bool(rows[0][0] == 0) and self.tally.reward == other.tally.reward and self._rewards_equal(other)

    def _rewards_equal(self, other: "Counts") -> bool:
        """The sums of rewards, where the pairs are the same."""
        one, two = (joined_rewards([piece.run for piece in counts.pieces()]) for counts in (self, other))
        return one is None or two is None or np.array_equal(one, two)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Counts of {self.tally.lists:,} {self.tally.unit}s from {', '.join(self.origin)}"

    @property
    def sql(self) -> str:
        """A query for the summed histogram, which any DuckDB connection can run; with weights, n is in their unit."""
        source = f"read_parquet([{', '.join(map(file_text, self._here))}], hive_partitioning = false)"
        if self.weights:
            # From 2⁴³ impressions of one cell on the product would not fit, and DuckDB would stop rather than wrap.
            weight = f"{list(self.weights)}[file_index::bigint + 1]"
            cells = cells_query(source, f"list_transform(n, lambda one: one * {weight})")
        else:
            cells = cells_query(source)
        if len(self._here) == 1:
            return cells
        return f"select {_KEYS}, sum(n)::bigint as n from ({cells}) group by {_KEYS}"

    def pieces(self) -> Iterator[Piece]:
        """The summed histogram as arrays, context by context in the order of their names; n as in `sql`."""
        if self.held is not None and not self.weights:
            yield self.held.piece
            return
        with self._reading():
            yield from merged_pieces(self.engine, self._here, self.weights or (1,) * len(self._here), unit=self._unit)

    def _sampled(self) -> Iterator[Piece]:
        """Of the contexts with whole lists at least; their cells have no weights."""
        if self.held is not None:
            yield self.held.piece
            return
        with self._reading():
            yield from merged_pieces(self.engine, self._here, (1,) * len(self._here), sampled=True)

    @property
    def locations(self) -> "tuple[Location, ...]":
        """The files, wherever they are."""
        return self.remote or tuple(map(locate, self._here))

    @cached_property
    def _here(self) -> tuple[Path, ...]:
        """The files on this machine; what is elsewhere, or in memory, is copied to a temporary folder on first use."""
        if not self.remote and self.held is None:
            return self.files
        self.__dict__["_copies"] = folder = TemporaryFolder()  # removed with the counts
        if self.remote:
            return tuple(fetch(self.remote, folder.path))
        with writing_temporary(folder.path):
            replace(self, weights=()).write_file(folder.path / "counts.parquet")
        return (folder.path / "counts.parquet",)

    @property
    def _unit(self) -> int:
        return UNIT if self.weights else 1

    @property
    def _weight_of_each(self) -> tuple[int, ...]:
        return self.weights or (UNIT,) * len(self._here)

    @cached_property
    def index(self) -> Index:
        """The names, their numbers, and the cells that go with them."""
        return self.number(None)

    def number(self, candidates: Candidates | None) -> Index:
        """The same for candidates: the pairs that may be shown."""
        return number(self.pieces, self.engine, self._unit, candidates)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """A block that reads rows: they have to be those of the files whose tallies were read."""
        try:
            yield
        finally:
            for file, seen in zip(self.files, self.seen, strict=False):  # none of the files of this process
                if has_changed(file, seen):
                    raise CountsError(f"{file} was replaced or removed while it was read. Run it again.")

    @property
    def pairs(self) -> duckdb.DuckDBPyRelation:
        """Names of context and item, in the order in which `cells` and evidence number them."""
        connection = self.engine.open()
        with registered(connection, "names", map(_pair_names, self.index.runs())):
            connection.execute("create table pairs as from names")
        return connection.sql("from pairs")

    @cached_property
    def cells(self) -> Cells:
        """The histogram as arrays."""
        return self.index.whole().cells

    def sample(self) -> ListBatch:
        """The whole lists that counts keep: all lists of a random sample of contexts (`prudent.storage.sketch`).

        It is the sample that the whole log would give, whether it was counted at once or by days; ``n`` is how often a
        list was shown, also under a half-life. Empty where a file keeps no lists.
        """
        if self.remote:
            return self._lists_alone().sample()
        return batch_of(self._sampled())


def _pair_names(run: Run) -> dict[str, Column]:
    contexts = run.contexts.take(np.repeat(np.arange(len(run.pairs)), run.pairs))
    return {"context": contexts.column, "item": run.items.column}
