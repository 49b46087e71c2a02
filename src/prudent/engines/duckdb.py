"""DuckDB: counts logs on one machine, out of core, and reads and writes every file."""

import csv
import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from prudent.engines import Tally
from prudent.errors import LogError, PrudentError, UsageError
from prudent.files import replacing
from prudent.log import REASONS, Format, Log, Table, file_format, find_files, first_bytes

_BOM = b"\xef\xbb\xbf"
_CODE = {reason: code for code, reason in enumerate(REASONS, start=1)}


@dataclass(frozen=True)
class DuckDB:
    """The engine on one machine. ``memory`` caps it, e.g. ``"1GB"``; what does not fit spills beside the output."""

    memory: str | None = None
    threads: int | None = None

    @contextmanager
    def connect(self, spill: Path | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """A private in-memory database; nothing is downloaded, and temporary files lie in `spill`."""
        with tempfile.TemporaryDirectory(prefix=".prudent-spill-", dir=spill) as folder:
            config: dict[str, str | bool | int | float | list[str]] = {
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "temp_directory": folder,
            }
            if self.memory is not None:
                config["memory_limit"] = self.memory
            if self.threads is not None:
                config["threads"] = str(self.threads)
            try:
                connection = duckdb.connect(config=config)
            except duckdb.Error as error:
                raise UsageError(f"DuckDB does not accept these settings: {_first_line(error)}") from error
            try:
                yield connection
            finally:
                connection.close()

    def histogram(self, log: Log, query: str, target: Path) -> Tally:
        """See `Engine.histogram`."""
        with self.connect(spill=target.parent) as connection, opened(connection, log) as source:
            # The order of rows means nothing here, and keeping it would cost memory.
            connection.execute("set preserve_insertion_order = false")
            try:
                connection.execute(f"create temp view impressions as {_impressions(log, source)}")
                connection.execute(f"create temp table histogram as {query}")
                rejected = connection.execute(
                    "select prev, n from histogram where position = 0 order by prev"
                ).fetchall()
                lists = connection.execute(
                    "select coalesce(sum(n), 0)::bigint from histogram where position = 1"
                ).fetchall()
            except duckdb.Error as error:
                raise _explain(error, log, source.files) from error
            tally = Tally(lists[0][0], {REASONS[code - 1]: n for code, n in rejected})
            with replacing(target) as part:
                connection.execute(
                    f"copy (from histogram where position > 0) to {text(part)} "
                    f"(format parquet, compression zstd, kv_metadata {{prudent: {text(describe_counts(tally))}}})"
                )
            return tally


def describe_counts(tally: Tally) -> str:
    """What a counts file says of itself in its Parquet metadata."""
    return json.dumps({"counts": 1, "lists": tally.lists, "rejected": dict(tally.rejected)})


def identifier(name: str) -> str:
    """A name as SQL text: the only way a column or table name enters a query.

    >>> print(identifier('a"b'))
    "a""b"
    """
    return '"' + name.replace('"', '""') + '"'


def text(value: str | os.PathLike[str]) -> str:
    """A string or path as SQL text, for the few places that take no bound parameter."""
    return "'" + os.fspath(value).replace("'", "''") + "'"


# --- opening a table: the view `source` has its columns under the names of their meanings ------------------------


@dataclass(frozen=True)
class Source:
    """What the view `source` stands for."""

    kind: Format | None  # None: a table in memory
    types: Mapping[str, str]  # meaning -> DuckDB's type
    files: Sequence[Path] = ()


@contextmanager
def opened(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[Source]:
    """Make the view `source` of a table; DuckDB's complaints about its content come out as a `LogError`."""
    files = find_files(table.source) if table.in_files else []
    with tempfile.TemporaryDirectory(prefix="prudent-") as folder:
        try:
            if not files:
                yield _open_memory(connection, table)
                return
            kind = file_format(files)
            if kind == "parquet":
                yield _open_parquet(connection, table, files)
            elif kind == "csv":
                yield _open_csv(connection, table, files)
            else:
                yield _open_jsonl(connection, table, files, Path(folder))
        except duckdb.Error as error:
            raise _explain(error, table, files) from error


def _open_memory(connection: duckdb.DuckDBPyConnection, table: Table) -> Source:
    given = table.source
    table.find(_column_names(given), table.name)
    if isinstance(given, duckdb.DuckDBPyRelation):
        given = _ArrowStream(given)  # a relation belongs to its own connection; Arrow crosses the border
    connection.register("given", given)
    return _select(connection, table, "given", None)


def _column_names(given: Any) -> list[str]:
    if hasattr(given, "collect_schema"):  # Polars, lazy or not
        return list(given.collect_schema().names())
    names = given.column_names if hasattr(given, "column_names") else getattr(given, "columns", None)
    if names is None:
        raise LogError(
            f"Cannot read a {type(given).__name__}. Give a path, or a pandas, Polars, Arrow or DuckDB table."
        )
    return [str(name) for name in names]


class _ArrowStream:
    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._relation.__arrow_c_stream__(requested_schema)


def _open_parquet(connection: duckdb.DuckDBPyConnection, table: Table, files: Sequence[Path]) -> Source:
    options = "binary_as_string = true, hive_partitioning = false"
    first: Source | None = None
    for file in files:
        table.find(_parquet_columns(connection, file), str(file))
        source = _select(connection, table, f"read_parquet({text(file)}, {options})", "parquet", files)
        first = first or source
        for meaning, kind in source.types.items():
            if _family(kind) != _family(first.types[meaning]):
                raise LogError(
                    f"The column {table.columns[meaning]!r} is {first.types[meaning].lower()} in {files[0]} but "
                    f"{kind.lower()} in {file}. Convert one of them: 7 and '7' would be two names."
                )
    listed = ", ".join(map(text, files))
    return _select(connection, table, f"read_parquet([{listed}], {options}, union_by_name = true)", "parquet", files)


def _parquet_columns(connection: duckdb.DuckDBPyConnection, file: Path) -> list[str]:
    """Top-level names as they stand in the file; `describe` would show clashing ones renamed."""
    schema = connection.execute(f"select name, coalesce(num_children, 0) from parquet_schema({text(file)})").fetchall()

    def after(index: int) -> int:
        following = index + 1
        for _ in range(schema[index][1]):
            following = after(following)
        return following

    names, at = [], 1
    while at < len(schema):
        names.append(schema[at][0])
        at = after(at)
    return names


def _open_csv(connection: duckdb.DuckDBPyConnection, table: Table, files: Sequence[Path]) -> Source:
    header = _csv_header(files[0])
    if isinstance(table, Log) and table.layout == "lists":
        raise LogError(
            f"{files[0]} is CSV, which holds no lists. One row per shown item: layout='rows' (--layout rows)."
        )
    for file in files[1:]:
        if _csv_header(file) != header:
            raise LogError(
                f"{file} has the columns {', '.join(_csv_header(file))}, but {files[0]} has {', '.join(header)}."
            )
    table.find(header, str(files[0]))
    # Every column is text under a name of ours: sniffed types lose 007, and sniffed dialects lose rows.
    columns = ", ".join(f"c{i}: 'VARCHAR'" for i in range(len(header)))
    read = (
        f"read_csv([{', '.join(map(text, files))}], auto_detect = false, header = true, columns = {{{columns}}}, "
        f"delim = '{_delimiter(files[0])}', quote = '\"', escape = '\"', nullstr = '', strict_mode = true)"
    )
    selected = ", ".join(f"c{header.index(name)} as {meaning}" for meaning, name in table.columns.items())
    connection.execute(f"create temp view source as select {selected} from {read}")
    return Source("csv", dict.fromkeys(table.columns, "VARCHAR"), files)


def _delimiter(file: Path) -> str:
    return "\t" if ".tsv" in file.suffixes else ","


def _csv_header(file: Path) -> list[str]:
    line = first_bytes(file, 1 << 20).removeprefix(_BOM).splitlines()[0]
    try:
        return next(csv.reader([line.decode("utf-8")], delimiter=_delimiter(file)))
    except UnicodeDecodeError as error:
        raise LogError(f"{file} is not UTF-8: see byte {error.start} of its first line. Save it as UTF-8.") from error


def _open_jsonl(connection: duckdb.DuckDBPyConnection, table: Table, files: Sequence[Path], folder: Path) -> Source:
    plain = [_without_bom(file, folder / f"{i}.jsonl") for i, file in enumerate(files)]
    listed = f"[{', '.join(map(text, plain))}], format = 'newline_delimited'"
    keys = connection.execute(
        "select distinct unnest(json_keys(json)) as key "
        f"from (select json from read_json_objects({listed}) limit 10000) order by key"
    ).fetchall()
    table.find([key for (key,) in keys], str(files[0]))
    described = connection.execute(f"describe from read_json({listed})").fetchall()
    sniffed = {name: kind for name, kind, *_ in described}
    # Names are integers when they are written as integers, and text otherwise; anything may stand for a click.
    types = {}
    for meaning, name in table.columns.items():
        whole = sniffed[name].removesuffix("[]") == "BIGINT" and meaning in ("context", "items", "item", "impression")
        types[meaning] = ("BIGINT" if whole else "VARCHAR") + ("[]" if meaning in ("items", "clicks") else "")
    columns = ", ".join(f"{identifier(table.columns[meaning])}: '{kind}'" for meaning, kind in types.items())
    return _select(connection, table, f"read_json({listed}, columns = {{{columns}}})", "jsonl", files)


def _without_bom(file: Path, copy: Path) -> Path:
    """A byte order mark is legal UTF-8, but DuckDB's JSON reader stumbles over it."""
    if not first_bytes(file, len(_BOM)).startswith(_BOM):
        return file
    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as marked, copy.open("wb") as clean:
        marked.read(len(_BOM))
        shutil.copyfileobj(marked, clean)
    return copy


def _select(
    connection: duckdb.DuckDBPyConnection, table: Table, read: str, kind: Format | None, files: Sequence[Path] = ()
) -> Source:
    selected = ", ".join(f"{identifier(name)} as {meaning}" for meaning, name in table.columns.items())
    connection.execute(f"create or replace temp view source as select {selected} from {read}")
    described = connection.execute("describe source").fetchall()
    return Source(kind, {row[0]: row[1] for row in described}, files)


_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")


def _family(kind: str) -> str:
    element = kind.removesuffix("[]")
    return ("integer" if element in _INTEGERS else element) + kind[len(element) :]


# --- the view `impressions`: one row per shown item, see `Engine.histogram` --------------------------------------


def _impressions(log: Log, source: Source) -> str:
    lists = _from_lists(log, source) if log.layout == "lists" else _from_rows(log, source)
    items = source.types["items"] if log.layout == "lists" else source.types["item"]
    # Only text files bring NUL bytes by accident; elsewhere the look would cost and find nothing.
    nul = [
        *(["contains(context, chr(0))"] if source.types["context"] == "VARCHAR" else []),
        *(["len(list_filter(items, lambda i: contains(i, chr(0)))) > 0"] if items.startswith("VARCHAR") else []),
    ]
    nul_case = (
        f"when {' or '.join(nul)} then {_CODE['a name with a NUL byte']}"
        if nul and source.kind in ("csv", "jsonl")
        else ""
    )
    return f"""
    with lists as ({lists}),
    checked as (
        select context, items, clicks, copies,
            case
                when fault > 0 then fault
                when context is null then {_CODE["no context"]}
                when items is null or len(items) = 0 then {_CODE["empty list"]}
                when clicks is null or len(clicks) <> len(items) then {_CODE["items and clicks differ in length"]}
                when list_count(items) < len(items) then {_CODE["an item is missing"]}
                when len(list_filter(clicks, lambda c: c is null or c not in (0, 1))) > 0
                    then {_CODE["a click is neither 0 nor 1"]}
                when list_unique(items) < len(items) then {_CODE["an item twice in one list"]}
                {nul_case}
                else 0
            end as reason
        from lists
    ),
    exploded as (
        select
            case when reason = 0 then context end as context,
            unnest(case when reason = 0 then items end) as item,
            unnest(case when reason = 0 then range(1, len(items) + 1)
                        else list_resize([0::bigint], copies, 0) end)::integer as position,
            unnest(case when reason = 0 then clicks end) as click,
            case when reason = 0 then list_filter(range(1, len(items) + 1), lambda i: clicks[i] = 1) end as clicked,
            reason
        from checked
    )
    select context, item, position,
        case when position = 0 then reason
             else coalesce(list_max(list_filter(clicked, lambda c: c < position)), 0) end::integer as prev,
        coalesce(click = 1, false) as click,
        coalesce(list_max(clicked) > position, false) as more
    from exploded
    """


def _from_lists(log: Log, source: Source) -> str:
    for meaning in ("items", "clicks"):
        if not source.types[meaning].endswith("[]"):
            raise LogError(
                f"The column {log.columns[meaning]!r} for the {meaning} is {source.types[meaning].lower()}, not a "
                'list. A log with one row per shown item has the layout "rows": layout="rows".'
            )
    items, clicks = source.types["items"][:-2], source.types["clicks"][:-2]
    name, click = _name("items", items, log), _click("clicks", clicks)
    return f"""
        select {_name("context", source.types["context"], log)} as context,
            {"items" if name == "items" else f"list_transform(items, lambda items: {name})"} as items,
            {"clicks" if click == "clicks" else f"list_transform(clicks, lambda clicks: {click})"} as clicks,
            1 as copies, 0 as fault
        from source
    """


def _from_rows(log: Log, source: Source) -> str:
    # Impressions are grouped here; everything after is the same for both layouts. Rows without an impression id
    # belong to no list: they fall into one group, which keeps none of them and counts each as a rejected list.
    return f"""
        select any_value(context) as context,
            list(item order by position) filter (impression is not null) as items,
            list(click order by position) filter (impression is not null) as clicks,
            case when impression is null then count(*) else 1 end as copies,
            case
                when impression is null then {_CODE["no impression id"]}
                when count(context) < count(*) then {_CODE["no context"]}
                when min(context) <> max(context) then {_CODE["one impression id in several contexts"]}
                when count(distinct position) < count(position)
                    then {_CODE["a position twice under one impression id"]}
                when count(position) < count(*) or min(position) <> 1 or max(position) <> count(*)
                    then {_CODE["positions are not 1, 2, 3, ..."]}
                else 0
            end as fault
        from (
            select impression, {_name("context", source.types["context"], log)} as context,
                {_name("item", source.types["item"], log)} as item,
                {_click("click", source.types["click"])} as click,
                -- a whole number, or null where there is none; a cast alone would round 1.5 to 2
                case when try_cast(position as double) = floor(try_cast(position as double))
                     then try_cast(position as bigint) end as position
            from source
        )
        group by impression
    """


def _name(meaning: str, kind: str, log: Log) -> str:
    """Names are text or integers; anything else would come back as something it was not."""
    if kind == "VARCHAR" or kind in ("BIGINT", "UBIGINT"):
        return meaning
    if kind in _INTEGERS:
        return f"{meaning}::bigint"
    if kind.startswith("ENUM") or kind == "UUID":
        return f"{meaning}::varchar"
    raise LogError(
        f"The column {log.columns[meaning]!r} for the {meaning} holds {kind.lower()}; names are text or integers of "
        "up to 64 bits. Convert it to text first."
    )


def _click(column: str, kind: str) -> str:
    """0 or 1, or null where the value is neither."""
    if kind in _INTEGERS:
        return column
    if kind == "VARCHAR":
        return f"case lower(trim({column})) when '0' then 0 when 'false' then 0 when '1' then 1 when 'true' then 1 end"
    if kind == "BOOLEAN":
        return f"{column}::tinyint"
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        return f"case when {column} = 0 then 0 when {column} = 1 then 1 end"
    return "null"


# --- errors -------------------------------------------------------------------------------------------------------


def _explain(error: duckdb.Error, log: Table, files: Sequence[Path]) -> PrudentError:
    if isinstance(error, duckdb.OutOfMemoryException):
        return LogError(f"Counting {log.name} needs more memory than allowed: {_first_line(error)} Raise --memory.")
    broken = _broken_json_line(files) if "Malformed JSON" in str(error) else None
    if broken is not None:
        return LogError(f"{broken[0]}, line {broken[1]} is not a JSON object: {broken[2]}")
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(("*", "Possible", "Try setting", "If you", "This can"))]
    message = " ".join(line.split(": ", 1)[-1] if i == 0 else line for i, line in enumerate(kept[:4]))
    return LogError(f"Cannot read {log.name}: {message}")


def _broken_json_line(files: Sequence[Path]) -> tuple[Path, int, str] | None:
    """DuckDB counts the lines before a fault from where its buffer began; look again, from the top."""
    for file in files:
        if file.suffix == ".gz":
            continue
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    whole = isinstance(json.loads(line.removeprefix(_BOM)), dict) or not line.strip()
                except ValueError as error:
                    if line.strip():
                        return file, number, str(error)
                else:
                    if not whole:
                        return file, number, "it is something else"
    return None


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
