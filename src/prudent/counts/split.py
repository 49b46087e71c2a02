"""Split a log into a training log and a holdout, so that a policy is evaluated on lists it was not trained on."""

import math
import re
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import md5
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import duckdb

from prudent.base.errors import LogError, PrudentWarning, UsageError, did_you_mean
from prudent.base.spec import as_number, whole_number
from prudent.counts.counts import Counts
from prudent.counts.max_rejected import MAX_REJECTED
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import CSV_HEAD, OpenTable, csv_header, delimiter, opened
from prudent.logs.formats import first_bytes
from prudent.logs.hygiene import kinds_left_out
from prudent.logs.json_lines import without_bom
from prudent.logs.log import Log, as_log, context_meanings, recorded_names
from prudent.storage.files import TemporaryFolder, check_not_read, make_folder, replacing
from prudent.storage.manifest import Manifest, Source, Tally
from prudent.storage.parquet import write_parquet
from prudent.storage.quoting import file_text, identifier, text

By = Literal["hash", "time"]
_CHANCE = 4.0  # standard errors by which parts of a random split hardly ever differ


@dataclass(frozen=True)
class Part:
    """One part of a split log."""

    path: Path
    lists: int  # rejected ones too
    clicks_per_list: float  # of the others
    standard_error: float


@dataclass(frozen=True)
class Split:
    """The two parts of a log."""

    train: Part
    holdout: Part
    reward: str | None = None  # the column of it in both parts, where the log has one

    @property
    def z(self) -> float:
        """The difference in clicks per list, holdout less train, in standard errors."""
        spread = math.hypot(self.train.standard_error, self.holdout.standard_error)
        return (self.holdout.clicks_per_list - self.train.clicks_per_list) / spread if spread else 0.0

    def __str__(self) -> str:
        one, two = self.train, self.holdout
        return (
            f"{one.lists:,} lists in {one.path} and {two.lists:,} in {two.path}, with {one.clicks_per_list:.4g} and "
            f"{two.clicks_per_list:.4g} clicks per list"
        )


def split(
    log: Any,
    to: str | PathLike[str] = ".",
    *,
    holdout: float = 0.2,
    by: By = "hash",
    time: str | None = None,
    seed: int = 0,
    engine: DuckDB | None = None,
    **columns: Any,
) -> Split:
    """Write the lists of a log, with all of its columns, to ``train.parquet`` and ``holdout.parquet`` in a folder.

    log
        A `Log`, or what `Log` takes: a path, several or a table, with its column names as `columns`.
    holdout
        Share of the lists that go to the holdout.
    by
        ``"hash"``: a hash of its content decides about each list, so that the same log in another order is split the
        same way. In the layout ``rows`` it is the hash of the impression id, so that lists stay whole. In the layout
        ``lists``, equal rows are divided between the parts, unless the log leaves out duplicates. Parts have all rows:
        what a log leaves out is left out where its parts are read.
        ``"time"``: the latest lists by the column `time`; lists of the same time stay together.
    seed
        Another seed makes another split by hash.

    >>> import duckdb, prudent, tempfile
    >>> shown = duckdb.sql("select i % 9 as context, ['a', 'b'] as items, [i % 2, 0] as clicks from range(1000) t(i)")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = prudent.split(shown, folder, holdout=0.25)
    >>> parts.train.lists + parts.holdout.lists
    1000
    """
    if by not in ("hash", "time"):
        raise UsageError(f"Cannot split by {by!r}.{did_you_mean(str(by), ['hash', 'time'])} Known: hash, time.")
    if not 0 < as_number(holdout) < 1:
        raise UsageError(f"holdout is {holdout!r}; it is a share of the lists, above 0 and below 1.")
    if (by == "time") != (time is not None):
        raise UsageError("Name the column of the time with by='time' (--by time --time COLUMN), and only then.")
    if isinstance(log, Counts):
        raise UsageError("split needs the log itself: counts do not keep whole lists.")
    log, seed, engine = as_log(log, engine=engine, **columns), whole_number("seed", seed, 0), engine or DuckDB()
    log.check_lists()
    folder = make_folder(to)
    paths = {name: folder / f"{name}.parquet" for name in ("train", "holdout")}
    manifests = _write_parts(log, paths, holdout, time, seed, engine)
    for name, manifest in manifests.items():
        manifest.write(paths[name])
    lists = {name: manifest.results["lists"] for name, manifest in manifests.items()}
    done = Split(**{name: _measure(log, path, lists[name], engine) for name, path in paths.items()}, reward=log.reward)
    if abs(done.z) > _CHANCE:
        _warn_of_difference(done, time)
    return done


def _write_parts(
    log: Log, paths: Mapping[str, Path], holdout: float, time: str | None, seed: int, engine: DuckDB
) -> dict[str, Manifest]:
    """Write both files; their manifests, which are in their footers too."""
    with ExitStack() as stack:
        parts = {name: stack.enter_context(replacing(path)) for name, path in paths.items()}
        connection = stack.enter_context(engine.connect(spill=paths["train"].resolve().parent))
        source = stack.enter_context(opened(connection, log))
        for path in paths.values():
            check_not_read(path, source.files)
        folder = TemporaryFolder()
        connection.execute(f"create temp view everything as {_everything(connection, log, source, folder)}")
        columns = [row[0] for row in connection.execute("describe everything").fetchall()]
        if time is not None:
            _check_time(connection, log, time, columns)
        connection.execute(f"create temp table marked as {_marked(connection, log, columns, holdout, time, seed)}")
        number = "count(distinct list)" if log.layout == "rows" else "count(*)"
        sizes = dict(connection.execute(f"select held, {number} from marked group by held").fetchall())
        lists = {"train": int(sizes.get(False, 0)), "holdout": int(sizes.get(True, 0))}
        if not any(lists.values()):
            raise LogError(f"{log.name} has no lists: there is not a single row in it.")
        if not all(lists.values()):
            raise LogError(
                f"{log.name} cannot be split: all of its {sum(lists.values()):,} lists fall on one side. "
                + ("Their times are all the same." if time is not None else "It is too short, or the share too small.")
            )
        manifests = _manifests(connection, log, lists, holdout, time, seed)
        for name, part in parts.items():
            rows = (
                f"select {', '.join(f'row.{identifier(column)}' for column in columns)} from marked "
                f"where held = {name == 'holdout'} order by {'time, ' if time is not None else ''}list, place"
            )
            write_parquet(connection, rows, part, footer=manifests[name].footer)
    return manifests


def _manifests(
    connection: duckdb.DuckDBPyConnection,
    log: Log,
    lists: Mapping[str, int],
    holdout: float,
    time: str | None,
    seed: int,
) -> dict[str, Manifest]:
    """Both parts have the same id, that of the rows and of how they were split: parts of two splits may overlap."""
    rule = {"holdout": holdout, **({"by": "hash", "seed": seed} if time is None else {"by": "time", "time": time})}
    # A sum does not depend on the order of rows, and that of equal rows does not vanish.
    ((rows,),) = connection.execute(
        "select sum(md5_number_lower(concat(list, place, held))::hugeint)::varchar from marked"
    ).fetchall()
    whole = Source(recorded_names(log), Tally(sum(lists.values())))
    identity = md5(f"{rule} {rows}".encode(), usedforsecurity=False).hexdigest()
    return {
        name: Manifest("split", {"part": name, **rule, "id": identity}, {"log": whole}, {"lists": number})
        for name, number in lists.items()
    }


def _measure(log: Log, path: Path, lists: int, engine: DuckDB) -> Part:
    """Clicks per list of a part; a warning where too many of its lists are rejected, even if few of the log are."""
    folder = TemporaryFolder()
    file = folder.path / "clicks.parquet"
    alone = replace(log, source=path, origin=(), left_out={})
    clicks = "select list_sum(clicks)::double as clicks from shown"
    tally = engine.lists(alone, f"select count(*) as n, avg(clicks), stddev_samp(clicks) from ({clicks})", file)
    if tally.share_rejected > MAX_REJECTED:
        warnings.warn(
            f"{tally.rejected_lists:,} of {tally.lists + tally.rejected_lists:,} lists in {path} are rejected "
            f"({tally.share_rejected:.1%}): {'; '.join(tally.reasons)}. Fix or remove them and split again, "
            f"or read it with a higher max_rejected (--max-rejected) than {MAX_REJECTED:g}.",
            PrudentWarning,
            stacklevel=4,
        )
    with engine.connect() as connection:
        ((n, mean, deviation),) = connection.execute(f"from read_parquet({file_text(file)})").fetchall()
    return Part(path, lists, float(mean or 0), float(deviation or 0) / math.sqrt(max(1, n)))


def _warn_of_difference(parts: Split, time: str | None) -> None:
    one, two = parts.train.clicks_per_list, parts.holdout.clicks_per_list
    change = f"{abs(two / one - 1):.1%} {'more' if two > one else 'fewer'}" if one else "more"
    why = (
        "A random split does not do that: lists may depend on their content, or repeat."
        if time is None
        else f"Clicks may change over time; check that {time!r} is the time of a list."
    )
    warnings.warn(
        f"The holdout has {change} clicks per list than the training log ({two:.4g} and {one:.4g}, {abs(parts.z):.1f} "
        f"standard errors apart). {why}",
        PrudentWarning,
        stacklevel=3,
    )


def _everything(connection: duckdb.DuckDBPyConnection, log: Log, source: OpenTable, folder: TemporaryFolder) -> str:
    """A query for all columns, also those that the log does not name."""
    if source.kind is None:
        return "from table_in_memory"
    listed = ", ".join(map(file_text, source.files))
    if source.kind == "parquet":
        options = "binary_as_string = true, hive_partitioning = false, union_by_name = true"
        return f"from read_parquet([{listed}], {options})"
    names = (*context_meanings(log), "items" if log.layout == "lists" else "item")
    has_nul = " or ".join(f"contains({name}::varchar, chr(0))" for name in names)
    ((nul,),) = connection.execute(f"select count(*) from source where {has_nul}").fetchall()
    if nul:  # it is rejected in text files only; in Parquet it would be a name like any other
        raise LogError(f"{nul:,} lines of {log.name} have a NUL byte in a name: a damaged file. Fix them first.")
    if source.kind == "csv":
        header = csv_header({str(file): first_bytes(file, CSV_HEAD) for file in source.files}, log)
        columns = ", ".join(f"{text(name)}: 'VARCHAR'" for name in header)
        return (
            f"from read_csv([{listed}], auto_detect = false, header = true, columns = {{{columns}}}, delim = "
            f"'{delimiter(str(source.files[0]))}', quote = '\"', escape = '\"', nullstr = '', strict_mode = true)"
        )
    ((odd,),) = connection.execute("select count(*) from source where odd").fetchall()
    if odd:
        raise LogError(
            f"{odd:,} lines of {log.name} have names of another type than the others: 7 and '7' are two names, and a "
            "column of a Parquet file has one type. Fix them first."
        )
    plain = [without_bom(file, folder.path / f"{i}.jsonl") for i, file in enumerate(source.files)]
    read = f"read_json([{', '.join(map(file_text, plain))}], format = 'newline_delimited', records = 'true'"
    described = connection.execute(f"describe from {read}, sample_size = -1)").fetchall()
    # What looks like a date is text, and comes back as it was written.
    kinds = {name: re.sub("DATE|TIMESTAMP[A-Z_]*|TIME|UUID|JSON", "VARCHAR", kind) for name, kind, *_ in described}
    columns = ", ".join(f"{text(name)}: {text(kind)}" for name, kind in kinds.items())
    return f"from {read}, columns = {{{columns}}})"


def _check_time(connection: duckdb.DuckDBPyConnection, log: Log, time: str, columns: list[str]) -> None:
    if time not in columns:
        raise LogError(
            f"{log.name} has no column {time!r} for the time.{did_you_mean(time, columns)} "
            f"It has: {', '.join(columns)}."
        )
    ((missing,),) = connection.execute(f"select count(*) from everything where {identifier(time)} is null").fetchall()
    if missing:
        raise LogError(f"{missing:,} rows of {log.name} have no time in {time!r}. Fill it in, or split by hash.")


def _marked(
    connection: duckdb.DuckDBPyConnection, log: Log, columns: list[str], share: float, time: str | None, seed: int
) -> str:
    """Every row with the list it belongs to, its place there, and whether it is held out."""
    when = "null" if time is None else _clock(connection, time)
    everything = f"(select struct_pack({_fields(columns)}) as row from everything)"
    if log.layout == "rows":
        # Rows without an id belong to no list; they are rejected wherever they are read, and go with the rest.
        rows = (
            f"select row, coalesce(md5(row.{identifier(log.impression)}::varchar || {text(f'/{seed}')}), '') as list, "
            f"lpad(coalesce(row.{identifier(log.position)}::varchar, ''), 20, ' ') || row::varchar as place, "
            f"{when} as clock from {everything}"
        )
        first = "min(clock) over (partition by list)"
    else:
        # Of equal rows each has its own number, and it does not matter which has which; duplicates stay together.
        number = "1" if "duplicates" in kinds_left_out(log) else "row_number() over (partition by content)"
        rows = (
            f"select row, md5(content || '/' || {number} || {text(f'/{seed}')}) "
            f"as list, '' as place, clock from "
            f"(select row, md5(row::varchar) as content, {when} as clock from {everything})"
        )
        first = "clock"
    marked = f"select row, list, place, {first} as time from ({rows})"
    if time is None:
        limit = f"{min(round(share * 16**8), 16**8 - 1):08x}"  # in eight digits, of which letters are compared
        return f"select *, list <> '' and list[:8] < '{limit}' as held from ({marked})"
    connection.execute(f"create temp table timed as {marked}")
    return f"select *, time >= ({_cutoff(share)}) as held from timed"


def _cutoff(share: float) -> str:
    """The earliest time from which on no more than this share of lists remains, or else the last one."""
    return (
        "with lists as (select list, min(time) as time from timed group by list), "
        "times as (select time, count(*) as n from lists group by time), "
        "since as (select time, sum(n) over (order by time desc) as n from times) "
        f"select coalesce(min(time) filter (n <= {share!r} * (select count(*) from lists)), max(time)) from since"
    )


def _fields(columns: list[str]) -> str:
    return ", ".join(f"{identifier(name)} := {identifier(name)}" for name in columns)


def _clock(connection: duckdb.DuckDBPyConnection, time: str) -> str:
    """The time as something that sorts: text files write 9 and 10, which as text stand the other way round."""
    column = identifier(time)
    ((kind,),) = connection.execute(f"select any_value(typeof({column})) from everything").fetchall()
    if kind == "VARCHAR":
        for other in ("double", "timestamptz", "timestamp"):
            ((bad,),) = connection.execute(
                f"select count(*) from everything where try_cast({column} as {other}) is null"
            ).fetchall()
            if not bad:
                return f"row.{column}::{other}"
    return f"row.{column}"
