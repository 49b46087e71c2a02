"""Train and holdout: the lists of a log in two files, so that a policy is judged on lists it has not learned from."""

import re
import warnings
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Literal

import duckdb

from prudent.base.errors import LogError, PrudentError, PrudentWarning, UsageError, did_you_mean
from prudent.base.spec import as_number, whole_number
from prudent.counts.counts import Counts
from prudent.counts.rejected import MAX_REJECTED
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import CSV_HEAD, csv_header, delimiter, opened
from prudent.engines.duckdb.open import Source as Opened
from prudent.logs.formats import find_files, first_bytes
from prudent.logs.json_lines import without_bom
from prudent.logs.log import Log
from prudent.storage.files import TemporaryFolder, check_not_read, replacing
from prudent.storage.manifest import Manifest, Source, Tally
from prudent.storage.quoting import file_text, identifier, text

By = Literal["hash", "time"]


def files_behind(names: Iterable[str]) -> set[Path]:
    """The files that names of logs stand for here and now, whatever else they may be called."""
    found: set[Path] = set()
    for name in names:
        try:
            found |= {file.resolve() for file in find_files(name)}
        except (PrudentError, ValueError):  # it is gone, or was never a file of this machine
            with suppress(ValueError):
                found.add(Path(name).resolve())
    return found


@dataclass(frozen=True)
class Split:
    """How many lists went where."""

    train: int
    holdout: int


def split(
    log: Log,
    train: str | PathLike[str],
    holdout: str | PathLike[str],
    share: float = 0.2,
    by: By = "hash",
    time: str | None = None,
    seed: int = 0,
    engine: DuckDB | None = None,
) -> Split:
    """Write the lists of a log to two Parquet files, with all of its columns.

    share
        Of the lists that go to `holdout`, about.
    by
        ``"hash"``: which lists is decided by a hash of what they are, not by where they stand; the same log in another
        order is split alike. In the layout ``rows`` it is the hash of the impression id, so that lists stay whole. In
        the layout ``lists`` it is that of the row, and of how many equal rows there are, of which some go either way.
        ``"time"``: the latest lists by the column `time`; lists of the same time stay together.
    seed
        Another seed makes another split by hash.
    """
    if by not in ("hash", "time"):
        raise UsageError(f"Cannot split by {by!r}.{did_you_mean(str(by), ['hash', 'time'])} Known: hash, time.")
    if not 0 < as_number(share) < 1:
        raise UsageError(f"The share of lists to hold out is {share!r}; it must be above 0 and below 1.")
    if (by == "time") != (time is not None):
        raise UsageError("Name the column of the time with by='time' (--by time --time COLUMN), and only then.")
    if isinstance(log, Counts) or not isinstance(log, Log):
        raise UsageError(f"split takes a Log, not a {type(log).__name__}: prudent.split(prudent.Log(...), ...).")
    seed = whole_number("seed", seed, 0)
    if Path(train).resolve() == Path(holdout).resolve():
        raise UsageError(f"{train} is to hold both parts. Name two files.")
    engine = engine or DuckDB()
    with ExitStack() as stack:
        parts = {False: stack.enter_context(replacing(train)), True: stack.enter_context(replacing(holdout))}
        connection = stack.enter_context(engine.connect(spill=Path(train).resolve().parent))
        source = stack.enter_context(opened(connection, log))
        for target in (train, holdout):
            check_not_read(target, source.files)
        folder = TemporaryFolder()
        connection.execute(f"create temp view everything as {_everything(connection, log, source, folder)}")
        columns = [row[0] for row in connection.execute("describe everything").fetchall()]
        if time is not None:
            _check_time(connection, log, time, columns)
        connection.execute(f"create temp table marked as {_marked(connection, log, columns, share, time, seed)}")
        lists = "count(distinct list)" if log.layout == "rows" else "count(*)"
        sizes = dict(connection.execute(f"select held, {lists} from marked group by held").fetchall())
        found = Split(int(sizes.get(False, 0)), int(sizes.get(True, 0)))
        if not found.train and not found.holdout:
            raise LogError(f"{log.name} has no lists: there is not a single row in it.")
        if not found.train or not found.holdout:
            raise LogError(
                f"{log.name} cannot be split: all of its {found.train + found.holdout:,} lists fall on one side. "
                + ("Their times are all the same." if time is not None else "It is too short, or the share too small.")
            )
        for held, part in parts.items():
            connection.execute(
                f"copy (select {', '.join(f'row.{identifier(name)}' for name in columns)} from marked "
                f"where held = {held} order by {'time, ' if time is not None else ''}list, place) "
                f"to {text(part)} (format parquet, compression zstd)"
            )
    for name, target in (("train", train), ("holdout", holdout)):
        rule = {"seed": seed} if time is None else {"time": time}
        whole = Source(tuple(log.names), Tally(found.train + found.holdout))
        settings = {"part": name, "by": by, "holdout": share, **rule}
        Manifest("split", settings, {"log": whole}, {"lists": getattr(found, name)}).write(target)
        _warn_of_bad_lists(log, Path(target), engine)
    return found


def _warn_of_bad_lists(log: Log, part: Path, engine: DuckDB) -> None:
    """Bad lists go with the others, and a log that had few enough may have a part with too many."""
    folder = TemporaryFolder()
    alone = replace(log, source=part, origin=(), left_out={})
    tally = engine.lists(alone, "select count(*) as n from shown", folder.path / "counted.parquet")
    if tally.share_rejected > MAX_REJECTED:
        warnings.warn(
            f"{tally.bad:,} of {tally.lists + tally.bad:,} lists in {part} are bad ({tally.share_rejected:.1%}): "
            f"{'; '.join(tally.reasons)}. Mend or remove them and split again, or read it with a higher "
            f"max_rejected (--max-rejected) than {MAX_REJECTED:g}.",
            PrudentWarning,
            stacklevel=3,
        )


def _everything(connection: duckdb.DuckDBPyConnection, log: Log, source: Opened, folder: TemporaryFolder) -> str:
    """A query for all columns, not only those that mean something to us."""
    if source.kind is None:
        return "from given"
    listed = ", ".join(map(file_text, source.files))
    if source.kind == "parquet":
        options = "binary_as_string = true, hive_partitioning = false, union_by_name = true"
        return f"from read_parquet([{listed}], {options})"
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
            "column of a Parquet file has one type. Mend them first."
        )
    plain = [without_bom(file, folder.path / f"{i}.jsonl") for i, file in enumerate(source.files)]
    read = f"read_json([{', '.join(map(file_text, plain))}], format = 'newline_delimited', records = 'true'"
    found = connection.execute(f"describe from {read}, sample_size = -1)").fetchall()
    # What looks like a date is text, and comes back as it was written.
    kinds = {name: re.sub("DATE|TIMESTAMP[A-Z_]*|TIME|UUID|JSON", "VARCHAR", kind) for name, kind, *_ in found}
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
        # Of equal rows each has its own number, and it does not matter which has which.
        rows = (
            f"select row, md5(content || '/' || row_number() over (partition by content) || {text(f'/{seed}')}) "
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
