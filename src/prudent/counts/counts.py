"""Counts: the histogram between log and arrays. Above it data is big and lives in an engine, below it is numpy."""

from collections.abc import Iterator, Sequence
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
from prudent.counts.index import Index, name_types, number
from prudent.counts.lists import ListBatch, as_batches
from prudent.counts.remote import find_remote, read_tallies
from prudent.engines.duckdb.count import count_lists
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import INTEGERS
from prudent.engines.spark.engine import Spark
from prudent.logs.formats import find_files, parquet_files
from prudent.logs.log import MOST_POSITIONS, Candidates
from prudent.storage.counts_file import CELL_KEYS, check_bytes, counts_footer, counts_manifest, write_counts_file
from prudent.storage.digest import Digest, digest_lists
from prudent.storage.files import TemporaryFolder, replacing
from prudent.storage.filesystem import (
    Location,
    fetch,
    fetch_rows,
    locate,
)
from prudent.storage.locks import Seen, has_changed, locked, look_at
from prudent.storage.manifest import Days, Manifest, Source, Tally
from prudent.storage.parquet import read_footer
from prudent.storage.quoting import file_text
from prudent.storage.sketch import NOTHING, SAMPLE_LISTS, below, sample_threshold

COLUMNS = (*CELL_KEYS, "n")
_KEYS = ", ".join(CELL_KEYS)


@dataclass(frozen=True, eq=False)
class Counts:
    """A log as one histogram, kept in Parquet files whose rows add up.

    Each row is a cell: how often an item of a context was shown at a position, with the last click above at ``prev``,
    itself clicked or not, and with ``more`` clicks below or not. ``a + b`` are the counts of both logs together; ``==``
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
        with locked(folders_of_days(_find_counts(paths)), shared=True):
            return cls.of_files(choose(_find_counts(paths), since, until, half_life), engine)

    @classmethod
    def of_files(cls, chosen: Chosen, engine: DuckDB) -> "Counts":
        """Counts from files on this machine; the caller sees to it that nobody replaces them meanwhile."""
        files = chosen.files
        with engine.connect() as connection:
            seen = tuple(map(look_at, files))
            tallies = [_read_tally(connection, file) for file in files]
            for file, tally in zip(files, tallies, strict=True):
                _check_columns(connection, file)
                _check_content(connection, file, tally)
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
            connection.execute("set preserve_insertion_order = false")
            threshold, lists = self._sample(connection)
            write_counts_file(connection, part, cells=self.sql, lists=lists, source=self.source, threshold=threshold)

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
        with self.engine.connect() as connection:
            threshold, lists = self._sample(connection)
            return None if lists is None else digest_lists(connection, lists, threshold)

    def _lists_alone(self) -> "Counts":
        """The lists of counts that are elsewhere, which are bounded, without the cells, which are not."""
        folder = TemporaryFolder()
        lists = fetch_rows(self.remote, folder.path, [("position", "=", 0)])
        return replace(self, files=tuple(lists), remote=(), _folder=folder)

    @property
    def manifest(self) -> Manifest:
        """The manifest that is written beside the counts."""
        return counts_manifest(self.source)

    def __add__(self, other: "Counts") -> "Counts":
        with self.engine.connect() as connection:
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
        with self.engine.connect() as connection:
            if name_types(connection, self._here[0]) != name_types(connection, other._here[0]):
                return False  # 7 is not '7', but DuckDB would compare them as text
            # In the same unit: 7 in full are as many as 14 of which each counts half.
            one, two = (
                f"select * replace (n * {UNIT // counts._unit} as n) from ({counts.sql})" for counts in (self, other)
            )
            rows = connection.execute(
                f"select count(*) from ((({one}) except all ({two})) union all (({two}) except all ({one})))"
            ).fetchall()
        return bool(rows[0][0] == 0)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Counts of {self.tally.lists:,} lists from {', '.join(self.origin)}"

    @property
    def sql(self) -> str:
        """A query for the summed histogram, which any DuckDB connection can run; with weights, n is in their unit."""
        if self.weights:
            # From 2⁴³ impressions of one cell on the product would not fit, and DuckDB would stop rather than wrap.
            n = f"sum(n * {list(self.weights)}[file_index::bigint + 1])::bigint"
        elif len(self._here) == 1:
            return f"select {_KEYS}, n from {self._source} where position > 0"
        else:
            n = "sum(n)::bigint"
        return f"select {_KEYS}, {n} as n from {self._source} where position > 0 group by {_KEYS}"

    @property
    def _source(self) -> str:
        return f"read_parquet([{', '.join(map(file_text, self._here))}], hive_partitioning = false)"

    @property
    def locations(self) -> "tuple[Location, ...]":
        """The files, wherever they are."""
        return self.remote or tuple(map(locate, self.files))

    @cached_property
    def _here(self) -> tuple[Path, ...]:
        """The files on this machine; those that are elsewhere are copied on first use."""
        if not self.remote:
            return self.files
        self.__dict__["_copies"] = TemporaryFolder()  # removed with the counts
        return tuple(fetch(self.remote, self.__dict__["_copies"].path))

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
        with self._reading():
            return number(self.engine.open(), self.sql, len(self._here) > 1, self._unit, candidates)

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
        return self.index.connection.sql("select context, item from pairs order by rowid")

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
        with self._reading(), self.engine.connect() as connection:
            _, lists = self._sample(connection)
            if lists is None:
                none = np.zeros((0, 0), np.int64)
                return ListBatch(none.ravel(), none, none.astype(bool), none.ravel())
            connection.execute(f"create temp table sample as from ({lists}) order by context, items, clicks")
            (batch,) = as_batches(connection, ["(select *, rowid as list from sample)"])
            return batch

    def _sample(self, connection: duckdb.DuckDBPyConnection) -> tuple[str, str | None]:
        """The threshold of the sample, and a query for its lists, if it has any."""
        threshold = min(counts_footer(read_footer(connection, file), str(file)).threshold for file in self._here)
        if threshold == NOTHING:
            return NOTHING, None
        lists = f"from {self._source} where position = 0"
        if len(self._here) > 1:
            contexts = f"select context, sum(n) as lists {lists} and {below(threshold)} group by context"
            threshold = min(threshold, sample_threshold(connection, contexts, SAMPLE_LISTS))
        keys = "context, items, clicks"
        return threshold, f"select {keys}, sum(n)::bigint as n {lists} and {below(threshold)} group by {keys}"


def _find_counts(paths: Sequence[str | PathLike[str]]) -> list[Path]:
    for path in paths:
        if Path(path).is_dir() and not parquet_files(Path(path)):
            raise CountsError(f"{path} holds no counts. Count a day into it: prudent count LOG -o {path} --day DATE")
    files = find_files(paths)
    if len({file.resolve() for file in files}) < len(files):
        named = ", ".join(str(path) for path in paths)
        raise UsageError(f"A file is named twice, and would be counted twice: {named}.")
    return files


_KINDS = {
    **dict.fromkeys(("context", "item"), ("VARCHAR", *INTEGERS)),
    **dict.fromkeys(("position", "prev", "n"), INTEGERS),
    **dict.fromkeys(("click", "more"), ("BOOLEAN",)),
    "items": ("VARCHAR[]", *(f"{kind}[]" for kind in INTEGERS)),
    "clicks": ("BOOLEAN[]",),
}
"""The types that the columns of a file of counts may have."""


def _check_columns(connection: duckdb.DuckDBPyConnection, file: Path) -> None:
    try:
        described = connection.execute(f"describe from read_parquet({file_text(file)}, hive_partitioning = false)")
    except duckdb.Error as error:  # such as a name of a column that is not UTF-8
        raise CountsError(f"{file} is marked as counts, but its schema is damaged. Count the log again.") from error
    types = {name: kind for name, kind, *_ in described.fetchall()}
    needed = COLUMNS if counts_footer(read_footer(connection, file), str(file)).threshold == NOTHING else _KINDS
    for name in needed:
        if types.get(name) not in _KINDS[name]:
            what = f"is {types[name].lower()}" if name in types else "is missing"
            raise CountsError(f"{file} is marked as counts, but its column {name} {what}. Count the log again.")


def _check_content(connection: duckdb.DuckDBPyConnection, file: Path, tally: Tally) -> None:
    """The rows are those that were counted, and are counts at all, whoever wrote them."""
    try:
        check_bytes(file, read_footer(connection, file))
        ((wrong,),) = connection.execute(
            f"select count(*) from read_parquet({file_text(file)}, hive_partitioning = false) where "
            f"coalesce(n < 1 or position < 0 or position > {MOST_POSITIONS} or context is null "
            "or (position > 0 and (prev < 0 or prev >= position or item is null)), true)"
        ).fetchall()
        lists = count_lists(connection, file)
    except (duckdb.Error, OSError) as error:
        raise CountsError(f"{file} is damaged: {str(error).splitlines()[0]}. Count the log again.") from error
    if wrong:
        raise CountsError(f"{file} is marked as counts, but {wrong:,} of its rows cannot be. Count the log again.")
    if lists != tally.lists:
        raise CountsError(
            f"{file} has {lists:,} lists, and {tally.lists:,} by its tally: it is damaged. Count the log again."
        )


def _read_tally(connection: duckdb.DuckDBPyConnection, file: Path) -> Tally:
    try:
        footer = read_footer(connection, file)
    except duckdb.Error as error:
        raise CountsError(f"Cannot read {file}: {str(error).splitlines()[0]}") from error
    try:
        return counts_footer(footer, str(file)).tally or _tally_beside(connection, file)
    except duckdb.Error as error:
        raise CountsError(f"{file} is marked as counts, but its content is damaged. Count the log again.") from error


def _tally_beside(connection: duckdb.DuckDBPyConnection, file: Path) -> Tally:
    """The tally of a file of Spark, which has none in its footer: from the manifest beside the folder, if there is one.

    Rejected lists are those of the whole folder, and count with its first file.
    """
    manifest = Manifest.read(file, "counts")
    if manifest is None and file == min(file.parent.glob("*.parquet")):
        manifest = Manifest.read(file.parent, "counts")
    lists = count_lists(connection, file)
    return Tally(lists) if manifest is None else replace(manifest.sources["log"].tally, lists=lists)
