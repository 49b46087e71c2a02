"""Counts: the histogram between log and arrays. Above it data is big and lives in an engine, below it is numpy."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources import files as package_files
from os import PathLike
from pathlib import Path
from typing import Protocol

import duckdb
import numpy as np

from prudent import __version__
from prudent.arrays import BoolArray, IntArray
from prudent.engines import Engine, Tally
from prudent.engines.duckdb import COUNTS_VERSION, DuckDB, count_lists, counts_format
from prudent.engines.quoting import file_text, text
from prudent.errors import CountsError, LogError, UsageError
from prudent.files import TemporaryFolder, manifest_path, replacing, write_manifest
from prudent.log import Log, find_files, first_bytes

MAX_BAD = 0.01
"""Share of rejected lists from which on something is wrong with the log rather than with its lists."""

COLUMNS = ("context", "item", "position", "prev", "click", "more", "n")
QUERY = package_files("prudent").joinpath("counts.sql").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Cells:
    """The counts as arrays: one entry per cell, sorted by pair, position, prev, click and more.

    A pair is one item of one context; pairs are numbered in the order of `Counts.pairs`, and ``context``
    has the number of the context of each pair, ascending. The order is part of the contract: sums of
    floats over cells then come out the same to the last bit, however the log was shuffled.
    """

    context: IntArray  # one entry per pair
    pair: IntArray  # this and the rest: one entry per cell
    position: IntArray
    prev: IntArray
    click: BoolArray
    more: BoolArray
    n: IntArray

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return len(self.context)

    @property
    def contexts(self) -> int:
        """How many contexts there are."""
        return int(self.context[-1]) + 1 if self.pairs else 0

    @property
    def positions(self) -> int:
        """Length of the longest list."""
        return int(self.position.max(initial=0))

    def per_pair(self, where: BoolArray | slice = slice(None)) -> IntArray:
        """Impressions of each pair in the cells that `where` keeps."""
        return np.bincount(self.pair[where], self.n[where], minlength=self.pairs).astype(np.int64)

    def lists_per_context(self) -> IntArray:
        """Logged lists of each context: every list has exactly one first position."""
        top = self.position == 1
        return np.bincount(self.context[self.pair[top]], self.n[top], minlength=self.contexts).astype(np.int64)


class Counted(Protocol):
    """What click models learn from: counts in files, or lists in memory."""

    @property
    def cells(self) -> Cells:
        """The histogram as arrays."""
        ...


@dataclass(frozen=True, eq=False)
class Counts:
    """A log as one histogram, kept in Parquet files whose rows add up.

    Each row tells how often an item of a context was shown at a position, with the last click above at
    ``prev``, itself clicked or not, and with ``more`` clicks below or not. ``a + b`` are the counts of both
    logs together; ``==`` compares the sums, not the files.
    """

    files: tuple[Path, ...]
    tally: Tally
    engine: DuckDB = field(default_factory=DuckDB)
    origin: tuple[str, ...] = ()  # the logs or files it came from, for the provenance of a policy
    _folder: object = field(default=None, repr=False)  # temporary folders live as long as the counts that need them

    @classmethod
    def read(cls, *paths: str | PathLike[str], engine: DuckDB | None = None) -> "Counts":
        """Counts from the files they were written to; several files are added up."""
        engine = engine or DuckDB()
        files = find_files(paths)
        with engine.connect() as connection:
            tallies = [_read_tally(connection, file) for file in files]
            kinds = {file: _name_types(connection, file) for file in files}
        for file, kind in kinds.items():
            if kind != kinds[files[0]]:
                raise CountsError(
                    f"{files[0]} names its contexts and items by {' and '.join(kinds[files[0]])}, {file} by "
                    f"{' and '.join(kind)}: they cannot be added."
                )
        return cls(tuple(files), sum(tallies[1:], tallies[0]), engine, tuple(map(str, files)))

    def write(self, path: str | PathLike[str]) -> None:
        """Write the counts to one Parquet file, summed up, with a manifest beside it."""
        with self.engine.connect(spill=Path(path).parent) as connection, replacing(path) as part:
            connection.execute("set preserve_insertion_order = false")
            connection.execute(f"copy ({self.sql}) to {text(part)} ({counts_format})")
        write_manifest(path, self.manifest)

    @property
    def manifest(self) -> dict[str, object]:
        """Where the counts came from, and what was not counted."""
        return {
            "prudent": __version__,
            "inputs": list(self.origin),
            "lists": self.tally.lists,
            "rejected": dict(self.tally.rejected),
            "left_out": dict(self.tally.left_out),
        }

    def __add__(self, other: "Counts") -> "Counts":
        with self.engine.connect() as connection:
            if _name_types(connection, self.files[0]) != _name_types(connection, other.files[0]):
                raise CountsError(
                    "The two logs name their contexts and items differently: by text, integers or unsigned integers."
                )
        both = (self._folder, other._folder)
        return Counts(self.files + other.files, self.tally + other.tally, self.engine, self.origin + other.origin, both)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        with self.engine.connect() as connection:
            if _name_types(connection, self.files[0]) != _name_types(connection, other.files[0]):
                return False  # 7 is not '7', though DuckDB would compare them as text
            found = connection.execute(
                f"select count(*) from ((({self.sql}) except all ({other.sql})) union all "
                f"(({other.sql}) except all ({self.sql})))"
            ).fetchall()
        return bool(found[0][0] == 0)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Counts of {self.tally.lists:,} lists from {', '.join(self.origin)}"

    @property
    def sql(self) -> str:
        """A query for the summed histogram, which any DuckDB connection can run."""
        keys = ", ".join(COLUMNS[:-1])
        source = f"read_parquet([{', '.join(file_text(file) for file in self.files)}], hive_partitioning = false)"
        if len(self.files) == 1:
            return f"select {keys}, n from {source}"
        return f"select {keys}, sum(n)::bigint as n from {source} group by {keys}"

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """A private database with the tables `pairs` and `contexts`: sorted names, which their rowids number."""
        connection = self.engine.open()
        connection.execute(
            f"create table pairs as select distinct context, item from ({self.sql}) order by context, item"
        )
        connection.execute("create table contexts as select distinct context from pairs order by context")
        return connection

    @property
    def pairs(self) -> duckdb.DuckDBPyRelation:
        """Names of context and item, in the order in which `cells` and evidence number them."""
        return self.connection.sql("select context, item from pairs order by rowid")

    @cached_property
    def cells(self) -> Cells:
        """The histogram as arrays."""
        run = self.connection.execute
        sizes = run("select count(*) as n from pairs group by context order by context").fetchnumpy()["n"]
        ((longest,),) = run(f"select coalesce(max(position), 0) from ({self.sql})").fetchall()
        bits = int(longest).bit_length()
        # A cell as one number, pair first and more last: sorting it sorts the cells.
        size = 1 << bits
        found = run(
            f"select ((pairs.rowid * {size} + position) * {size} + prev) * 4 + click::int * 2 + more::int as cell, n "
            f"from ({self.sql}) join pairs using (context, item)"
        ).fetchnumpy()
        order = np.argsort(found["cell"])
        cell, mask = found["cell"][order], size - 1
        return Cells(
            context=np.repeat(np.arange(len(sizes)), sizes),
            pair=cell >> (2 * bits + 2),
            position=(cell >> (bits + 2)) & mask,
            prev=(cell >> 2) & mask,
            click=(cell & 2) > 0,
            more=(cell & 1) > 0,
            n=found["n"][order],
        )


def count(
    log: Log, engine: Engine | None = None, to: str | PathLike[str] | None = None, max_bad: float = MAX_BAD
) -> Counts:
    """Count a log: one pass, in the engine, after which models, bounds and δ are free to vary.

    ``to`` is the Parquet file to write; without it the counts live in a temporary file that goes when they
    go. More than ``max_bad`` of rejected lists is an error, so that a wrong column does not go unnoticed.
    """
    check_max_bad(max_bad)
    if not isinstance(log, Log):
        raise UsageError(f"count takes a Log, not a {type(log).__name__}: prudent.count(prudent.Log(...)).")
    engine = engine or DuckDB()
    folder = None
    if to is None:
        folder = TemporaryFolder()
        to = folder.path / "counts.parquet"
    with replacing(to) as part:
        tally = replace(engine.histogram(log, QUERY, part), left_out=log.left_out)
        check_tally(tally, log, max_bad)
    reader = engine if isinstance(engine, DuckDB) else DuckDB()
    counts = Counts((Path(to),), tally, reader, tuple(log.names), folder)
    if folder is None:
        write_manifest(to, counts.manifest)
    return counts


def check_max_bad(max_bad: float) -> None:
    """It is a share."""
    if not 0 <= max_bad <= 1:
        raise UsageError(f"max_bad is {max_bad}; it is a share, between 0 and 1.")


def check_tally(tally: Tally, log: Log, max_bad: float) -> None:
    """Stop where there was nothing to count, or too much of it was wrong."""
    if tally.lists + tally.bad == 0:
        raise LogError(f"{log.name} has no lists: there is not a single row in it.")
    if tally.share_bad > max_bad:
        raise LogError(
            f"{tally.bad} of {tally.lists + tally.bad} lists in {log.name} are bad ({tally.share_bad:.1%}, "
            f"more than max_bad={max_bad:g} (--max-bad) allows): {'; '.join(describe_rejected(tally))}."
        )


def describe_rejected(tally: Tally) -> list[str]:
    """The reasons and how often each was met, the most frequent first."""
    ordered = sorted(tally.rejected.items(), key=lambda entry: -entry[1])
    return [f"{n:,} × {reason}" for reason, n in ordered]


def is_counts(path: str | PathLike[str]) -> bool:
    """Whether a file holds counts, whatever its name."""
    if first_bytes(Path(path), 4) != b"PAR1":
        return False
    with DuckDB().connect() as connection:
        try:
            return _version(connection, Path(path)) is not None
        except duckdb.Error:
            return False


def _version(connection: duckdb.DuckDBPyConnection, file: Path) -> str | None:
    found = connection.execute(
        f"select value from parquet_kv_metadata({file_text(file)}) where key = 'prudent_counts'"
    ).fetchall()
    return bytes(found[0][0]).decode(errors="replace") if found else None


def _read_tally(connection: duckdb.DuckDBPyConnection, file: Path) -> Tally:
    try:
        version = _version(connection, file)
    except duckdb.Error as error:
        raise CountsError(f"Cannot read {file}: {str(error).splitlines()[0]}") from error
    if version is None:
        raise CountsError(f"{file} does not hold counts. Make them with: prudent count LOG -o {file.stem}.counts")
    if version != str(COUNTS_VERSION):
        raise CountsError(
            f"{file} has counts of version {version}; this prudent reads version {COUNTS_VERSION}. Count the log again."
        )
    manifest = manifest_path(file)
    try:
        said = json.loads(manifest.read_text(encoding="utf-8")) if manifest.exists() else {"rejected": {}}
        return Tally(count_lists(connection, file), said["rejected"], said.get("left_out", {}))
    except (ValueError, KeyError, TypeError) as error:
        raise CountsError(f"{manifest} is not a manifest of counts. Count the log again, or remove it.") from error
    except duckdb.Error as error:
        raise CountsError(f"{file} does not hold counts, although it says so. Count the log again.") from error


def _name_types(connection: duckdb.DuckDBPyConnection, file: Path) -> Sequence[str]:
    described = connection.execute(f"describe select context, item from read_parquet({file_text(file)})").fetchall()
    kinds = {"VARCHAR": "text", "UBIGINT": "unsigned integers"}
    return [kinds.get(row[1], "integers") for row in described]
