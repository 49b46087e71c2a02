"""Opening a log in Spark: files of any format, wherever Spark reads, or a DataFrame. Needs pyspark.

A frame has the columns of a log under the names of their meanings. Faults in their content become a `LogError` of one
line.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody calls it)
from pyspark.sql.types import ArrayType, DataType, IntegralType

from prudent.base.errors import LogError
from prudent.engines.duckdb.open import CSV_HEAD, csv_header, delimiter, no_names
from prudent.engines.spark.errors import JAVA_ERRORS, explain, explain_file
from prudent.logs import formats
from prudent.logs.formats import HEAD, Format, find_files, one_format, path_names
from prudent.logs.json_lines import BOM
from prudent.logs.log import LISTS, Log, is_name
from prudent.storage import filesystem
from prudent.storage.files import has_scheme
from prudent.storage.filesystem import Location, locate
from prudent.storage.quoting import backquoted

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_AT_ONCE = 16  # files that the driver opens at a time: on an object store each takes a round trip


@dataclass(frozen=True)
class OpenTable:
    """The frames of a log, which may differ in their types, as Parquet files do."""

    kind: Format | None  # None: a DataFrame
    frames: Sequence[DataFrame]


@contextmanager
def opened_in_spark(session: SparkSession, log: Log, remote: "FileSystem | None" = None) -> Iterator[OpenTable]:
    """The frames of a log; Spark's errors about their content become a `LogError`."""
    files: list[Location] = []
    with _unlogged():
        try:
            if not log.in_files:
                yield OpenTable(None, [_from_dataframe(log)])
                return
            files = _find(log, remote)
            kind = one_format(dict(zip([file.name for file in files], _heads(files, HEAD), strict=True)))
            reading = {"parquet": _from_parquet, "csv": _from_csv, "jsonl": _from_jsonl}
            yield OpenTable(kind, reading[kind](session, log, files))
        except JAVA_ERRORS as error:
            raise explain(error, log, files) from error


@contextmanager
def _unlogged() -> Iterator[None]:
    """Without pyspark's own log of errors that are reported here."""
    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def is_dataframe(source: object) -> bool:
    """Whether a source is a DataFrame of Spark."""
    return isinstance(source, DataFrame)


def _from_dataframe(log: Log) -> DataFrame:
    if not is_dataframe(log.source):
        raise LogError(
            f"Spark counts files and its own DataFrames, not a {type(log.source).__name__}. Count it with DuckDB "
            "(engine=None), or make a DataFrame of it: session.createDataFrame(...)."
        )
    log.check_columns(log.source.columns, log.name)
    return _select(log.source, log)


def _select(frame: DataFrame, log: Log) -> DataFrame:
    return frame.select(*[F.col(backquoted(name)).alias(meaning) for meaning, name in log.columns.items()])


# --- files ------------------------------------------------------------------------------------------------------------


def _find(log: Log, remote: "FileSystem | None") -> list[Location]:
    """Paths on this machine as DuckDB finds them, URIs through pyarrow."""
    files: list[Location] = []
    for name in path_names(log.source) or [""]:
        files += filesystem.find(name, remote) if has_scheme(name) else map(locate, find_files(name))
    for file in files:
        # Spark skips some of these names without an error, and fails with an unhelpful one over a colon.
        if re.search(r"/[.][^/]*$|/_[^/=]*$|[.]_COPYING_$|/[^/]*:[^/]*$", file.path):
            raise LogError(
                f"Spark does not read {file.name}: the name of a file must not begin with a dot or an underscore, nor "
                "contain a colon. Rename it."
            )
    return files


def _heads(files: Sequence[Location], size: int) -> list[bytes]:
    def head(file: Location) -> bytes:
        if has_scheme(file.name):
            return filesystem.first_bytes(file, size)
        return formats.first_bytes(Path(file.name), size)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(head, files))


def escaped(files: Sequence[Location]) -> list[str]:
    r"""Paths for Spark, which reads every path as a pattern: ``log[1].csv`` is that file, not ``log1.csv``."""
    return ["".join(f"\\{sign}" if sign in "\\{}[]*?" else sign for sign in file.uri) for file in files]


# --- Parquet ----------------------------------------------------------------------------------------------------------


def _from_parquet(session: SparkSession, log: Log, files: Sequence[Location]) -> list[DataFrame]:
    """One frame for all files of one schema: Spark would take the schema of the first file for that of all."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        schemas = list(pool.map(lambda file: filesystem.read_footer(file).schema, files))
    alike: dict[str, list[Location]] = {}
    empty: dict[str, set[str]] = {}
    for file, schema in zip(files, schemas, strict=True):
        written = str(schema).partition("\n")[2]  # after the line with the address of the object
        if written not in alike:
            fields = schema.to_arrow_schema()
            log.check_columns(fields.names, file.name)
            empty[written] = {field.name for field in fields if _all_null(field.type)}
        alike.setdefault(written, []).append(file)
    frames = {}
    for written, group in alike.items():
        frame = _select(session.read.parquet(*escaped(group)), log)
        for meaning in [meaning for meaning, name in log.columns.items() if name in empty[written]]:
            # Spark reads a column without a value as integers, which do not fit text in other files.
            frame = frame.withColumn(meaning, F.col(meaning).cast("array<string>" if meaning in LISTS else "string"))
        frames[group[0].name] = frame
    _check_families(log, frames)
    return list(frames.values())


def _all_null(kind: pa.DataType) -> bool:
    return bool(pa.types.is_null(kind) or (pa.types.is_list(kind) and pa.types.is_null(kind.value_type)))


def _check_families(log: Log, frames: Mapping[str, DataFrame]) -> None:
    first = next(iter(frames))
    for file, frame in frames.items():
        for meaning in log.columns:
            here, there = frame.schema[meaning].dataType, frames[first].schema[meaning].dataType
            if _family(meaning, here) != _family(meaning, there):
                raise LogError(
                    f"The column {log.columns[meaning]!r} is {there.simpleString()} in {first} but "
                    f"{here.simpleString()} in {file}. Convert one of them: 7 and '7' would be two names."
                )


def _family(meaning: str, kind: DataType) -> str:
    """What the types of a column have in common in all files: for names, whether they are text or integers."""
    if isinstance(kind, ArrayType):
        return f"list of {_family(meaning, kind.elementType)}"
    if not is_name(meaning):
        return "any"
    return "integer" if isinstance(kind, IntegralType) else kind.simpleString()


# --- CSV --------------------------------------------------------------------------------------------------------------


def _from_csv(session: SparkSession, log: Log, files: Sequence[Location]) -> list[DataFrame]:
    """All columns as text. One task reads a whole file, which is not split: quoted values may contain line breaks."""
    heads = dict(zip(files, _heads(files, CSV_HEAD), strict=True))
    header = csv_header({file.name: head for file, head in heads.items()}, log)
    by_ending: dict[str, list[Location]] = {}
    for file, head in heads.items():
        by_ending.setdefault(_line_end(head), []).append(file)
    return [_read_csv(session, log, header, ending, group) for ending, group in by_ending.items()]


def _line_end(head: bytes) -> str:
    first = re.search(rb"\r?\n|\r", head)
    return "\r" if first and first[0] == b"\r" else "\n"


def _read_csv(session: SparkSession, log: Log, header: list[str], ending: str, files: Sequence[Location]) -> DataFrame:
    columns = [f"c{number}" for number in range(len(header))]
    read = (
        session.read.schema(", ".join(f"{name} string" for name in [*columns, "broken"]))
        .options(sep=delimiter(files[0].name), quote='"', escape='"', unescapedQuoteHandling="RAISE_ERROR")
        .options(header=True, multiLine=True, lineSep=ending, maxCharsPerColumn=-1, maxColumns=max(20480, len(header)))
        # As bytes: read as UTF-8, invalid characters would be replaced without an error.
        .options(encoding="ISO-8859-1", mode="PERMISSIVE", columnNameOfCorruptRecord="broken")
        .csv(escaped(files))
        .select(*columns, "broken", F.col("_metadata.file_path").alias("file"))
        .where("broken is null or broken <> ''")  # '' is a blank line that ends in \r\n
    )
    last = columns[-1]
    # Split at \n, a line that ends in \r\n keeps its \r.
    read = read.withColumn(
        last, F.expr(f"nullif(if(endswith({last}, '\r'), left({last}, len({last}) - 1), {last}), '')")
    )
    whole = f"""
        case
            when broken is not null then {_fault("has a line with more or fewer columns than the header")}
            when contains({last}, '\n') or contains({last}, '\r')
                then {_fault("has a line break in its last column, or a quote that does not close")}
            else true
        end
    """
    read = read.where(whole)
    named = {meaning: columns[header.index(name)] for meaning, name in log.columns.items()}
    return read.selectExpr(*[f"{_utf8(column)} as {meaning}" for meaning, column in named.items()])


def _utf8(column: str) -> str:
    decoded = f"cast(encode({column}, 'ISO-8859-1') as string)"
    return f"if(not is_valid_utf8({decoded}), {_fault('is not UTF-8')}, {decoded})"


def _fault(what: str) -> str:
    """SQL that raises an error, in which `explain` finds the file and the fault."""
    return f"raise_error(concat(file, '\t', '{what}'))"


# --- JSON Lines -------------------------------------------------------------------------------------------------------

_JSON_HEAD = 1 << 16
_SAMPLE = 10_000  # lines in which every column has to occur, as in DuckDB
_OBJECTS = "array<map<string, variant>>"
_TEXT, _WHOLE = "STRING", "BIGINT"  # Spark's types of names with and without quotes


def _from_jsonl(session: SparkSession, log: Log, files: Sequence[Location]) -> list[DataFrame]:
    """Names keep their type: 7 is not "7". The type of most of them is counted first, which reads the files twice."""
    for file, head in zip(files, _heads(files, _JSON_HEAD), strict=True):
        keys = _keys(head)
        if not keys.issuperset(log.columns.values()):
            keys |= set(_first_keys(_lines(session, log, [file])))
        log.check_columns(sorted(keys), file.name)
    lines = _lines(session, log, files)
    kinds = _survey(lines, log, files)
    return [lines.select(*[_json_column(meaning, kinds) for meaning in log.columns], _odd(kinds).alias("odd"))]


def _lines(session: SparkSession, log: Log, files: Sequence[Location]) -> DataFrame:
    """One row per line: its file, whether it is broken, its keys, and the columns of the log."""
    return (
        session.read.option("lineSep", "\n")
        .text(escaped(files))
        .select("value", F.col("_metadata.file_path").alias("file"))
        .where("btrim(value, ' \t\r\ufeff') <> ''")
        # In brackets, a second object in the same line is noticed; alone, from_json stops before it.
        .withColumn("text", F.expr("concat('[', ltrim('\ufeff', value), ']')"))
        .withColumn("objects", F.from_json("text", _OBJECTS, {"allowSingleQuotes": "false"}))
        .select(
            "file",
            F.expr("not is_valid_utf8(value) or coalesce(size(objects), 0) <> 1").alias("broken"),
            F.map_keys(F.get("objects", F.lit(0))).alias("keys"),
            *[F.get("objects", F.lit(0))[name].alias(meaning) for meaning, name in log.columns.items()],
        )
    )


def _keys(head: bytes) -> set[str]:
    """Keys of the objects in a file's first lines; broken lines are reported later."""
    lines = head.removeprefix(BOM).splitlines()
    if len(head) == _JSON_HEAD:
        lines.pop()  # cut
    keys: set[str] = set()
    for line in lines:
        with suppress(ValueError):
            content = json.loads(line)
            keys |= content.keys() if isinstance(content, dict) else set()
    return keys


def _first_keys(lines: DataFrame) -> list[str]:
    keys = lines.select("keys").limit(_SAMPLE).select(F.explode("keys").alias("key")).distinct()
    return [key for (key,) in keys.collect()]


def _survey(lines: DataFrame, log: Log, files: Sequence[Location]) -> dict[str, str]:
    """Whether most names are text or integers; the same pass checks that every line is valid."""
    wanted = list(log.columns.values())
    twice = F.size(F.filter("keys", lambda key: key.isin(wanted))) > F.size(
        F.array_intersect("keys", F.array(*map(F.lit, wanted)))
    )
    no_list = [f"schema_of_variant({m}) <> 'VOID' and {_names(m)} is null" for m in log.columns if m in LISTS]
    broken = F.col("broken") | F.coalesce(twice, F.lit(False)) | F.expr(" or ".join(["false", *no_list]))
    named = list(filter(is_name, log.columns))
    row = lines.agg(
        F.min(F.when(F.coalesce(broken, F.lit(False)), F.col("file"))).alias("broken"),
        *[F.expr(f"sum(size(filter({_names(m)}, name -> {_IS_TEXT})))").alias(f"text_{m}") for m in named],
        *[F.expr(f"sum(size(filter({_names(m)}, name -> {_IS_WHOLE})))").alias(f"whole_{m}") for m in named],
        *[F.expr(f"min(array_min(transform({_names(m)}, name -> {_ANY_KIND})))").alias(f"kind_{m}") for m in named],
    ).collect()[0]
    if row["broken"] is not None:
        raise explain_file(row["broken"], "has a line that is not a JSON object with what it needs", log, files)
    kinds = {}
    for meaning in named:
        text, whole, kind = row[f"text_{meaning}"] or 0, row[f"whole_{meaning}"] or 0, row[f"kind_{meaning}"]
        if kind is not None and not text and not whole:
            raise no_names(log, meaning, kind)
        kinds[meaning] = _TEXT if text >= whole else _WHOLE
    if "clicked_items" in kinds:  # they are items, of which there may be few
        kinds["clicked_items"] = kinds["items"]
    return kinds


_IS_TEXT = f"schema_of_variant(name) = '{_TEXT}'"
_IS_WHOLE = f"schema_of_variant(name) in ('{_WHOLE}', 'DECIMAL(19,0)', 'DECIMAL(20,0)')"  # up to 2⁶⁴, as in DuckDB
_ANY_KIND = "regexp_extract(nullif(schema_of_variant(name), 'VOID'), '^[A-Z]+', 0)"


def _names(meaning: str) -> str:
    return f"try_variant_get({meaning}, '$', 'array<variant>')" if meaning in LISTS else f"array({meaning})"


def _json_column(meaning: str, kinds: Mapping[str, str]) -> Column:
    if meaning not in kinds:  # clicks may be of any type
        kind = "array<string>" if meaning in LISTS else "string"
        return F.expr(f"try_variant_get({meaning}, '$', '{kind}')").alias(meaning)
    name = f"case when schema_of_variant(name) = '{kinds[meaning]}' then cast(name as {kinds[meaning]}) end"
    names = f"transform({_names(meaning)}, name -> {name})"
    return F.expr(names if meaning in LISTS else f"get({names}, 0)").alias(meaning)


def _odd(kinds: Mapping[str, str]) -> Column:
    """Whether a name is of another type than most."""
    odd = [
        f"coalesce(exists({_names(meaning)}, name -> schema_of_variant(name) not in ('VOID', '{kind}')), false)"
        for meaning, kind in kinds.items()
    ]
    return F.expr(" or ".join(odd))
