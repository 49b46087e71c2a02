"""Opening what a user has, files of any format wherever Spark can read or a DataFrame, as frames in Spark.

A frame has the columns of a log under the names of their meanings. Whatever Spark finds wrong with their content comes
out as a `LogError` in one line. Needs pyspark; it is imported on first use.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyspark.logger import PySparkLogger
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody calls it)
from pyspark.sql.types import ArrayType, DataType, IntegralType

from prudent.base.errors import LogError, PrudentError, WriteError
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import CSV_HEAD, NAMES, csv_header, delimiter, no_names, opened
from prudent.engines.spark import hadoop
from prudent.logs.formats import HEAD, Format, find_files, first_bytes, has_scheme, one_format, path_names
from prudent.logs.json_lines import BOM, LISTS
from prudent.logs.log import Log
from prudent.storage.quoting import backquoted

_AT_ONCE = 16  # files that the driver opens side by side: on an object store each costs a journey


@dataclass(frozen=True)
class File:
    """One file of a log."""

    name: str  # as the user knows it
    path: str  # as Spark knows it: absolute, with its scheme
    local: bool  # whether the name is a path on this machine


@dataclass(frozen=True)
class Source:
    """What a log consists of: frames that may differ in their types, as Parquet files do."""

    kind: Format | None  # None: a DataFrame
    frames: Sequence[DataFrame]


@contextmanager
def opened_in_spark(session: SparkSession, log: Log) -> Iterator[Source]:
    """The frames of a log; Spark's complaints about their content come out as a `LogError`."""
    files: list[File] = []
    with _unlogged():
        try:
            if not log.in_files:
                yield Source(None, [_from_dataframe(log)])
                return
            files = _find(session, log)
            kind = one_format(dict(zip([file.name for file in files], _heads(session, files, HEAD), strict=True)))
            reading = {"parquet": _from_parquet, "csv": _from_csv, "jsonl": _from_jsonl}
            yield Source(kind, reading[kind](session, log, files))
        except hadoop.JAVA_ERRORS as error:
            raise _explain(error, log, files) from error


@contextmanager
def _unlogged() -> Iterator[None]:
    """Errors that come out in our words are not printed in those of pyspark."""
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
    """Whether a source is a table in Spark."""
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


def _find(session: SparkSession, log: Log) -> list[File]:
    """Local paths as DuckDB finds them, and others as Hadoop does."""
    away = hadoop.locate(session, "/")[1].toUri().getScheme() != "file"  # where paths without a scheme lie
    found = []
    for name in path_names(log.source) or [""]:
        if has_scheme(name) or away:
            found += [File(path, path, local=False) for path in hadoop.find(session, name)]
        else:
            found += [File(str(file), f"file:{os.path.abspath(file)}", local=True) for file in find_files(name)]
    for file in found:
        # Spark passes over files with such names without a word, and fails over a colon with odd ones.
        if re.search(r"/[.][^/]*$|/_[^/=]*$|[.]_COPYING_$|/[^/]*:[^/]*$", file.path):
            raise LogError(
                f"Spark does not read {file.name}: names of files must not begin with a dot or an underscore, nor have "
                "a colon in them. Rename it."
            )
    return found


def _heads(session: SparkSession, files: Sequence[File], size: int) -> list[bytes]:
    def head(file: File) -> bytes:
        if file.local:
            return first_bytes(Path(file.name), size)
        return hadoop.first_bytes(session, file.path, size)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(head, files))


def _paths(files: Sequence[File]) -> list[str]:
    return [hadoop.escaped(file.path) for file in files]


# --- Parquet ----------------------------------------------------------------------------------------------------------


def _from_parquet(session: SparkSession, log: Log, files: Sequence[File]) -> list[DataFrame]:
    """One frame for all files of one schema: Spark would take that of the first file for the schema of all."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        schemas = list(pool.map(lambda file: _schema(session, file), files))
    alike: dict[str, list[File]] = {}
    empty: dict[str, set[str]] = {}
    for file, (written, columns) in zip(files, schemas, strict=True):
        if written not in alike:
            log.check_columns([name for name, _ in columns], file.name)
            empty[written] = {name for name, text in columns if "(UNKNOWN)" in text}
        alike.setdefault(written, []).append(file)
    frames = {}
    for written, group in alike.items():
        frame = _select(session.read.parquet(*_paths(group)), log)
        for meaning in [meaning for meaning, name in log.columns.items() if name in empty[written]]:
            # To Spark, a column of nothing but nulls is one of integers, and would not go with text in other files.
            frame = frame.withColumn(meaning, F.col(meaning).cast("array<string>" if meaning in LISTS else "string"))
        frames[group[0]] = frame
    _check_families(log, frames)
    return list(frames.values())


def _schema(session: SparkSession, file: File) -> tuple[str, list[tuple[str, str]]]:
    """The schema in a file's footer, as text, whole and by column; Spark would fail over columns whose names clash."""
    java: Any = session._jvm
    parquet = java.org.apache.parquet.hadoop
    try:
        place = java.org.apache.hadoop.fs.Path(file.path)
        reader = parquet.ParquetFileReader.open(
            parquet.util.HadoopInputFile.fromPath(place, hadoop.configuration(session))
        )
        try:
            schema = reader.getFooter().getFileMetaData().getSchema()
            return schema.toString(), [(column.getName(), column.toString()) for column in schema.getFields()]
        finally:
            reader.close()
    except hadoop.JAVA_ERRORS as error:
        raise _damaged(file.name, error) from error


def _check_families(log: Log, frames: Mapping[File, DataFrame]) -> None:
    first = next(iter(frames))
    for file, frame in frames.items():
        for meaning in log.columns:
            here, there = frame.schema[meaning].dataType, frames[first].schema[meaning].dataType
            if _family(meaning, here) != _family(meaning, there):
                raise LogError(
                    f"The column {log.columns[meaning]!r} is {there.simpleString()} in {first.name} but "
                    f"{here.simpleString()} in {file.name}. Convert one of them: 7 and '7' would be two names."
                )


def _family(meaning: str, kind: DataType) -> str:
    """What the type of a column has to share with that of other files: for names, what makes 7 another than '7'."""
    if isinstance(kind, ArrayType):
        return f"list of {_family(meaning, kind.elementType)}"
    if meaning not in NAMES:
        return "any"
    return "integer" if isinstance(kind, IntegralType) else kind.simpleString()


# --- CSV --------------------------------------------------------------------------------------------------------------


def _from_csv(session: SparkSession, log: Log, files: Sequence[File]) -> list[DataFrame]:
    """Everything is text. One task reads a file as a whole: line breaks may be quoted, so no part stands alone."""
    heads = dict(zip(files, _heads(session, files, CSV_HEAD), strict=True))
    header = csv_header({file.name: head for file, head in heads.items()}, log)
    by_ending: dict[str, list[File]] = {}
    for file, head in heads.items():
        by_ending.setdefault(_line_end(head), []).append(file)
    return [_read_csv(session, log, header, ending, group) for ending, group in by_ending.items()]


def _line_end(head: bytes) -> str:
    first = re.search(rb"\r?\n|\r", head)
    return "\r" if first and first[0] == b"\r" else "\n"


def _read_csv(session: SparkSession, log: Log, header: list[str], ending: str, files: Sequence[File]) -> DataFrame:
    columns = [f"c{number}" for number in range(len(header))]
    read = (
        session.read.schema(", ".join(f"{name} string" for name in [*columns, "broken"]))
        .options(sep=delimiter(files[0].name), quote='"', escape='"', unescapedQuoteHandling="RAISE_ERROR")
        .options(header=True, multiLine=True, lineSep=ending, maxCharsPerColumn=-1, maxColumns=max(20480, len(header)))
        # Bytes as they are: read as UTF-8, what is none would be replaced without a word.
        .options(encoding="ISO-8859-1", mode="PERMISSIVE", columnNameOfCorruptRecord="broken")
        .csv(_paths(files))
        .select(*columns, "broken", F.col("_metadata.file_path").alias("file"))
        .where("broken is null or broken <> ''")  # '' is a blank line that ends in \r\n
    )
    last = columns[-1]
    # Between \n and \n, a line that ends in \r\n has one sign too much.
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
    """SQL that stops everything; `_explain` finds file and fault in what Spark then says."""
    return f"raise_error(concat(file, '\t', '{what}'))"


# --- JSON Lines -------------------------------------------------------------------------------------------------------

_JSON_HEAD = 1 << 16
_SAMPLE = 10_000  # lines in which all columns should occur, as in DuckDB
_OBJECTS = "array<map<string, variant>>"
_TEXT, _WHOLE = "STRING", "BIGINT"  # Spark's types of what was written in quotes, and without


def _from_jsonl(session: SparkSession, log: Log, files: Sequence[File]) -> list[DataFrame]:
    """Names as they were written: 7 is not "7". What most of them are is counted first, which reads the files twice."""
    for file, head in zip(files, _heads(session, files, _JSON_HEAD), strict=True):
        keys = _keys(head)
        if not keys.issuperset(log.columns.values()):
            keys |= set(_first_keys(_lines(session, log, [file])))
        log.check_columns(sorted(keys), file.name)
    lines = _lines(session, log, files)
    kinds = _survey(lines, log, files)
    return [lines.select(*[_json_column(meaning, kinds) for meaning in log.columns], _odd(kinds).alias("odd"))]


def _lines(session: SparkSession, log: Log, files: Sequence[File]) -> DataFrame:
    """One row per line: where it is from, whether it is broken, its keys, and what it has in the columns of the log."""
    return (
        session.read.option("lineSep", "\n")
        .text(_paths(files))
        .select("value", F.col("_metadata.file_path").alias("file"))
        .where("btrim(value, ' \t\r\ufeff') <> ''")
        # In brackets, a second object in the same line comes to light; alone, from_json would stop before it.
        .withColumn("text", F.expr("concat('[', ltrim('\ufeff', value), ']')"))
        .withColumn("found", F.from_json("text", _OBJECTS, {"allowSingleQuotes": "false"}))
        .select(
            "file",
            F.expr("not is_valid_utf8(value) or coalesce(size(found), 0) <> 1").alias("broken"),
            F.map_keys(F.get("found", F.lit(0))).alias("keys"),
            *[F.get("found", F.lit(0))[name].alias(meaning) for meaning, name in log.columns.items()],
        )
    )


def _keys(head: bytes) -> set[str]:
    """Keys of the objects in a file's first lines; what is broken there, others will say."""
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


def _survey(lines: DataFrame, log: Log, files: Sequence[File]) -> dict[str, str]:
    """Whether names are text or integers, as most of them are; on the way, whether every line is what it should be."""
    wanted = list(log.columns.values())
    twice = F.size(F.filter("keys", lambda key: key.isin(wanted))) > F.size(
        F.array_intersect("keys", F.array(*map(F.lit, wanted)))
    )
    no_list = [f"schema_of_variant({m}) <> 'VOID' and {_names(m)} is null" for m in log.columns if m in LISTS]
    broken = F.col("broken") | F.coalesce(twice, F.lit(False)) | F.expr(" or ".join(["false", *no_list]))
    named = [meaning for meaning in log.columns if meaning in NAMES]
    found = lines.agg(
        F.min(F.when(F.coalesce(broken, F.lit(False)), F.col("file"))).alias("broken"),
        *[F.expr(f"sum(size(filter({_names(m)}, name -> {_IS_TEXT})))").alias(f"text_{m}") for m in named],
        *[F.expr(f"sum(size(filter({_names(m)}, name -> {_IS_WHOLE})))").alias(f"whole_{m}") for m in named],
        *[F.expr(f"min(array_min(transform({_names(m)}, name -> {_ANY_KIND})))").alias(f"kind_{m}") for m in named],
    ).collect()[0]
    if found["broken"] is not None:
        raise _explain_file(found["broken"], "has a line that is not a JSON object with what it needs", log, files)
    kinds = {}
    for meaning in named:
        text, whole, kind = found[f"text_{meaning}"] or 0, found[f"whole_{meaning}"] or 0, found[f"kind_{meaning}"]
        if kind is not None and not text and not whole:
            raise no_names(log, meaning, kind)
        kinds[meaning] = _TEXT if text >= whole else _WHOLE
    return kinds


_IS_TEXT = f"schema_of_variant(name) = '{_TEXT}'"
_IS_WHOLE = f"schema_of_variant(name) in ('{_WHOLE}', 'DECIMAL(19,0)', 'DECIMAL(20,0)')"  # up to 2⁶⁴, as in DuckDB
_ANY_KIND = "regexp_extract(nullif(schema_of_variant(name), 'VOID'), '^[A-Z]+', 0)"


def _names(meaning: str) -> str:
    return f"try_variant_get({meaning}, '$', 'array<variant>')" if meaning in LISTS else f"array({meaning})"


def _json_column(meaning: str, kinds: Mapping[str, str]) -> Column:
    if meaning not in kinds:  # anything may be a click
        of = "array<string>" if meaning in LISTS else "string"
        return F.expr(f"try_variant_get({meaning}, '$', '{of}')").alias(meaning)
    name = f"case when schema_of_variant(name) = '{kinds[meaning]}' then cast(name as {kinds[meaning]}) end"
    names = f"transform({_names(meaning)}, name -> {name})"
    return F.expr(names if meaning in LISTS else f"get({names}, 0)").alias(meaning)


def _odd(kinds: Mapping[str, str]) -> Column:
    """Whether a name is neither null nor of the type of the others."""
    odd = [
        f"coalesce(exists({_names(meaning)}, name -> schema_of_variant(name) not in ('VOID', '{kind}')), false)"
        for meaning, kind in kinds.items()
    ]
    return F.expr(" or ".join(odd))


# --- what is wrong ----------------------------------------------------------------------------------------------------


def _explain(error: Exception, log: Log, files: Sequence[File]) -> PrudentError:
    """Spark's complaint in the words of the family: which file, and what to do."""
    said = hadoop.causes(error)
    everything = "\n".join(said)
    if full := re.search("No space left on device|Disk quota exceeded|Read-only file system", everything):
        return WriteError(f"Spark cannot write: {full[0]}.")
    if fault := re.search(r"USER_RAISED_EXCEPTION\] (\S+)\t([^\n]*?)\.? SQLSTATE", everything):
        return _explain_file(fault[1], fault[2], log, files)
    if file := re.search(r"Encountered error while reading file (\S+)\.\s", everything):
        told = _ask_duckdb(log, files)
        return told or _damaged(_name_of(file[1], files), error)
    return LogError(f"Spark cannot count {log.name}: {_plain(said[-1])}.")


def _explain_file(uri: str, what: str, log: Log, files: Sequence[File]) -> PrudentError:
    return _ask_duckdb(log, files) or LogError(f"{_name_of(uri, files)} {what}. Mend it.")


def _ask_duckdb(log: Log, files: Sequence[File]) -> PrudentError | None:
    """What DuckDB says of text files that are here: it knows the line."""
    if not all(file.local for file in files):
        return None
    try:
        with DuckDB().connect() as connection, opened(connection, log):
            columns = ", ".join(f"count({meaning})" for meaning in log.columns)
            connection.execute(f"select {columns} from source").fetchall()
    except PrudentError as error:
        return error
    return None


def _damaged(name: str, error: Exception) -> LogError:
    return LogError(f"Cannot read {name}: {_plain(hadoop.causes(error)[-1])}. Write or copy it again: it is damaged.")


def _plain(said: str) -> str:
    """The first line without Spark's codes."""
    line = next((line for line in said.splitlines() if line.strip()), "no reason given")
    return re.sub(r"^\[[\w.]+\] |\s*SQLSTATE: \w+.*$", "", line).strip().rstrip(".")


def _name_of(uri: str, files: Sequence[File]) -> str:
    """The file in the user's words. Spark writes three slashes or one, and signs as in the address of a page."""

    def bare(path: str) -> str:
        return re.sub("^file:/+", "/", path)

    return next((file.name for file in files if bare(file.path) in (bare(uri), bare(unquote(uri)))), unquote(uri))
