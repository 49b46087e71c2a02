"""Opening a table in DuckDB: files of any format, or a table in memory, as one view.

The view `source` has the columns of a table under the names of their meanings. Faults in its content become a
`LogError` that names the file and the line.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import Any

import duckdb

from prudent.base.errors import LogError
from prudent.base.results import ArrowStream
from prudent.engines.duckdb.errors import explain
from prudent.engines.sql.contexts import composed
from prudent.logs.formats import Format, file_format, find_files, first_bytes
from prudent.logs.intact import intact
from prudent.logs.json_lines import BOM, without_bom
from prudent.logs.log import LISTS, Log, Table, context_meanings, is_name
from prudent.logs.page_checksums import Chunk, page_fault
from prudent.storage.files import TemporaryFolder
from prudent.storage.quoting import file_text, identifier


@dataclass(frozen=True)
class OpenTable:
    """The content of the view `source`."""

    kind: Format | None  # None: a table in memory
    types: Mapping[str, str]  # meaning -> DuckDB's type
    files: Sequence[Path] = ()


@contextmanager
def opened(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[OpenTable]:
    """Make the view `source` of a table; DuckDB's errors about its content become a `LogError`."""
    files = find_files(table.source) if table.in_files else []
    folder = TemporaryFolder()
    with intact(files) as check:
        try:
            if not files:
                yield _open_memory(connection, table)
                return
            kind = file_format(files)
            if kind == "parquet":
                source = _open_parquet(connection, table, files)
                for file in files:
                    check(partial(page_fault, file, _pages(connection, file)))
                yield source
            elif kind == "csv":
                yield _open_csv(connection, table, files)
            else:
                yield _open_jsonl(connection, table, files, folder.path)
        except duckdb.Error as error:
            if "Could not write" in str(error):  # the table is fine; `replacing` reports it
                raise
            raise explain(error, table, files) from error


def _open_memory(connection: duckdb.DuckDBPyConnection, table: Table) -> OpenTable:
    source = table.source
    if type(source).__module__.startswith("pyspark."):
        raise LogError("The DataFrame lives in Spark, which has to count it: engine=prudent.Spark(...).")
    table.check_columns(column_names(source), table.name)
    if isinstance(source, duckdb.DuckDBPyRelation):
        source = ArrowStream(source)
    elif type(source).__module__.startswith("pandas"):
        _check_objects(source, table)
    connection.register("table_in_memory", source)
    return _select(connection, table, "table_in_memory", None)


def column_names(source: Any) -> list[str]:
    """The columns of a table in memory."""
    if hasattr(source, "collect_schema"):  # Polars, lazy or not
        return list(source.collect_schema().names())
    if hasattr(source, "schema"):  # Arrow's tables, batches, readers and datasets
        return list(source.schema.names)
    names = getattr(source, "columns", None)
    if names is None:
        raise LogError(
            f"Cannot read a {type(source).__name__}. Give a path, or a pandas, Polars, Arrow or DuckDB table."
        )
    return [str(name) for name in names]


def _check_objects(frame: Any, table: Table) -> None:
    """Only pandas has columns of arbitrary objects; DuckDB would convert them to text, and 7 would be '7'."""
    columns = dict(zip(map(str, frame.columns), range(frame.shape[1]), strict=True))
    for meaning in filter(is_name, table.columns):
        column = frame.iloc[:, columns[table.columns[meaning]]]
        if column.dtype != object:
            continue
        listed = (names for names in column if hasattr(names, "__iter__"))
        kinds = set(map(type, chain.from_iterable(listed) if meaning in LISTS else column))
        if any(issubclass(kind, str) for kind in kinds) and any(issubclass(kind, Integral) for kind in kinds):
            raise LogError(
                f"The column {table.columns[meaning]!r} for the {meaning} mixes text and integers. Convert all of "
                "it to one of them: 7 and '7' are two names."
            )


def _open_parquet(connection: duckdb.DuckDBPyConnection, table: Table, files: Sequence[Path]) -> OpenTable:
    options = "binary_as_string = true, hive_partitioning = false"
    first: OpenTable | None = None
    for file in files:
        table.check_columns(_parquet_columns(connection, file), str(file))
        source = _select(connection, table, f"read_parquet({file_text(file)}, {options})", "parquet", files)
        first = first or source
        for meaning, kind in source.types.items():
            if _family(meaning, kind) != _family(meaning, first.types[meaning]):
                raise LogError(
                    f"The column {table.columns[meaning]!r} is {first.types[meaning].lower()} in {files[0]} but "
                    f"{kind.lower()} in {file}. Convert one of them: 7 and '7' would be two names."
                )
    listed = ", ".join(map(file_text, files))
    return _select(connection, table, f"read_parquet([{listed}], {options}, union_by_name = true)", "parquet", files)


def _pages(connection: duckdb.DuckDBPyConnection, file: Path) -> list[Chunk]:
    """Where the pages of a file are."""
    rows = connection.execute(
        "select coalesce(nullif(dictionary_page_offset, 0), data_page_offset), data_page_offset, total_compressed_size "
        f"from parquet_metadata({file_text(file)})"
    ).fetchall()
    return [Chunk(start := min(first, data), start + size) for first, data, size in rows]


def _parquet_columns(connection: duckdb.DuckDBPyConnection, file: Path) -> list[str]:
    """Top-level names as in the file; `describe` renames those that clash."""
    schema = connection.execute(
        f"select name, coalesce(num_children, 0) from parquet_schema({file_text(file)})"
    ).fetchall()

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


def _open_csv(connection: duckdb.DuckDBPyConnection, table: Table, files: Sequence[Path]) -> OpenTable:
    header = csv_header({str(file): first_bytes(file, CSV_HEAD) for file in files}, table)
    # Every column is text under a generated name: detected types lose 007, and detected dialects lose rows.
    columns = ", ".join(f"c{i}: 'VARCHAR'" for i in range(len(header)))
    read = (
        f"read_csv([{', '.join(map(file_text, files))}], auto_detect = false, header = true, columns = {{{columns}}}, "
        f"delim = '{delimiter(str(files[0]))}', quote = '\"', escape = '\"', nullstr = '', strict_mode = true)"
    )
    selected = ", ".join(f"c{header.index(name)} as {meaning}" for meaning, name in table.columns.items())
    connection.execute(f"create temp view source as select {selected} from {read}")
    return OpenTable("csv", dict.fromkeys(table.columns, "VARCHAR"), files)


CSV_HEAD = 1 << 20
"""Number of first bytes of a CSV file that contain its header."""


def csv_header(heads: Mapping[str, bytes], table: Table) -> list[str]:
    """The columns of these files, by their names and first bytes; an error where they differ or one is missing."""
    first = next(iter(heads))
    header = _csv_columns(first, heads[first])
    if len(header) == 1 and (other := re.search(r"[;|\t,]", header[0])):
        raise LogError(
            f"The columns of {first} seem to be separated by {other[0]!r}: write commas, or tabs into a .tsv file."
        )
    if isinstance(table, Log) and table.layout == "lists":
        raise LogError(
            f"{first} is CSV, which holds no lists. One row per shown item: layout='rows' (--layout rows), or without "
            "the id of the list: layout='impressions' (--layout impressions). Also name its columns, which are "
            f"{', '.join(header)}."
        )
    for file, head in heads.items():
        if (columns := _csv_columns(file, head)) != header:
            raise LogError(f"{file} has the columns {', '.join(columns)}, but {first} has {', '.join(header)}.")
    table.check_columns(header, first)
    return header


def delimiter(file: str) -> str:
    """The delimiter of a CSV file, by its name."""
    return "\t" if ".tsv" in Path(file).name.lower() else ","


def _csv_columns(file: str, head: bytes) -> list[str]:
    line = b"".join(head.removeprefix(BOM).splitlines()[:1])
    try:
        return next(csv.reader([line.decode("utf-8")], delimiter=delimiter(file)))
    except csv.Error as error:  # such as a field above 128 KB
        raise LogError(f"The first line of {file} is not a header: {error}.") from error
    except UnicodeDecodeError as error:
        raise LogError(f"{file} is not UTF-8: see byte {error.start} of its first line. Save it as UTF-8.") from error


def _open_jsonl(connection: duckdb.DuckDBPyConnection, table: Table, files: Sequence[Path], folder: Path) -> OpenTable:
    plain = [without_bom(file, folder / f"{i}.jsonl") for i, file in enumerate(files)]
    for file, copy in zip(files, plain, strict=True):
        keys = connection.execute(
            "select distinct unnest(json_keys(json)) as key from (select json from "
            f"read_json_objects({file_text(copy)}, format = 'newline_delimited') limit 10000) order by key"
        ).fetchall()
        table.check_columns([key for (key,) in keys], str(file))
    # Names stay JSON until it is known whether they are text or integers; clicks may be of any type.
    columns = ", ".join(
        f"{identifier(name)}: '{'JSON' if is_name(meaning) else 'VARCHAR'}{'[]' if meaning in LISTS else ''}'"
        for meaning, name in table.columns.items()
    )
    written = ", ".join(f"{identifier(name)} as written_{meaning}" for meaning, name in table.columns.items())
    connection.execute(
        f"create or replace temp view written as select {written} from read_json([{', '.join(map(file_text, plain))}], "
        f"format = 'newline_delimited', records = 'true', columns = {{{columns}}})"
    )
    types, named, odd = {}, [], []
    kinds = _json_names(connection, table)
    for meaning in table.columns:
        kind = kinds.get(meaning, "VARCHAR")
        if not is_name(meaning):
            named.append(f"written_{meaning} as {meaning}")
        elif meaning in LISTS:
            named.append(f"list_transform(written_{meaning}, lambda name: {_JSON_NAME[kind]}) as {meaning}")
            odd.append(f"coalesce(list_count({meaning}) < list_count(written_{meaning}), false)")
        else:
            named.append(f"{_JSON_NAME[kind].replace('name', f'written_{meaning}')} as {meaning}")
            odd.append(f"({meaning} is null and written_{meaning} is not null)")
        types[meaning] = kind + ("[]" if meaning in LISTS else "")
    connection.execute(
        f"create or replace temp view source as select *, {' or '.join(odd) or 'false'} as odd "
        f"from (select *, {', '.join(named)} from written)"
    )
    return OpenTable("jsonl", types, files)


# Text or integers of 64 bits, and null for anything else.
_JSON_NAME = {
    "VARCHAR": "case when json_type(name) = 'VARCHAR' then name->>'$' end",
    "BIGINT": "case when json_type(name) in ('BIGINT', 'UBIGINT') then try_cast(name as bigint) end",
}


def _json_names(connection: duckdb.DuckDBPyConnection, table: Table) -> dict[str, str]:
    """Whether most names are text or integers. All names are counted, which reads the files twice."""
    named = list(filter(is_name, table.columns))
    if not named:
        return {}
    terms = []
    for meaning in named:
        kinds = f"list_transform({f'written_{meaning}' if meaning in LISTS else f'[written_{meaning}]'}, "
        kinds += "lambda name: nullif(json_type(name), 'NULL'))"
        terms += [
            *(
                f"coalesce(sum(len(list_filter({kinds}, lambda kind: {condition}))), 0)::bigint"
                for condition in ("kind = 'VARCHAR'", "kind in ('BIGINT', 'UBIGINT')")
            ),
            f"min(list_min({kinds}))",
        ]
    (row,) = connection.execute(f"select {', '.join(terms)} from written").fetchall()
    types = {}
    for meaning, text_names, whole, least in zip(named, row[::3], row[1::3], row[2::3], strict=True):
        if least is not None and not text_names and not whole:
            raise no_names(table, meaning, least)
        types[meaning] = "VARCHAR" if text_names >= whole else "BIGINT"
    if "clicked_items" in types:  # they are items, of which there may be few
        types["clicked_items"] = types["items"]
    return types


def _select(
    connection: duckdb.DuckDBPyConnection, table: Table, read: str, kind: Format | None, files: Sequence[Path] = ()
) -> OpenTable:
    types: dict[str, str] = {}
    for _ in range(2):  # the second time with casts, where the first found types that have a plainer form
        selected = ", ".join(
            identifier(name) + (f"::{types[meaning]}" if meaning in types else "") + f" as {meaning}"
            for meaning, name in table.columns.items()
        )
        connection.execute(f"create or replace temp view source as select {selected} from {read}")
        current = {name: type_ for name, type_, *_ in connection.execute("describe source").fetchall()}
        types = {meaning: plain for meaning, type_ in current.items() if (plain := _plainer(meaning, type_)) != type_}
        if not types:
            break
    return OpenTable(kind, current, files)


def _plainer(meaning: str, kind: str) -> str:
    """Lists of fixed length are lists, and a column of nulls has the type that it should have."""
    kind = re.sub(r"\[\d+\]$", "[]", kind)
    if kind == '"NULL"' and meaning in LISTS:
        return "VARCHAR[]"
    return kind.replace('"NULL"', "VARCHAR")


INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")


def _family(meaning: str, kind: str) -> str:
    """What the types of a column have in common in all files: for names, whether they are text or integers."""
    element = kind.removesuffix("[]")
    if not is_name(meaning):
        return kind[len(element) :]
    # The largest unsigned integers do not fit signed ones.
    return ("integer" if element in INTEGERS and element != "UBIGINT" else element) + kind[len(element) :]


def name_as(meaning: str, kind: str, table: Table) -> str:
    """Names are text or integers; other types do not survive a round trip."""
    if kind == "VARCHAR" or kind in ("BIGINT", "UBIGINT"):
        return meaning
    if kind in INTEGERS:
        return f"{meaning}::bigint"
    if kind.startswith("ENUM") or kind == "UUID":
        return f"{meaning}::varchar"
    raise no_names(table, meaning, kind)


def context_as(table: Table, source: "OpenTable") -> str:
    """The context, made of several columns where it has them."""
    return composed([name_as(meaning, source.types[meaning], table) for meaning in context_meanings(table)])


def context_type(table: Table, source: "OpenTable") -> str:
    """DuckDB's type of the context in the source: text where it is made of several columns."""
    meanings = context_meanings(table)
    return source.types[meanings[0]] if len(meanings) == 1 else "VARCHAR"


def no_names(table: Table, meaning: str, kind: str) -> LogError:
    """The error for a column whose type cannot be a name."""
    return LogError(
        f"The column {table.columns[meaning]!r} for the {meaning} holds {kind.lower()}; names are text or integers of "
        "up to 64 bits. Convert it to text first."
    )
