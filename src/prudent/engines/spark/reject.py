"""From a log to its lists, in Spark's types, with the faults that only rows have. Needs pyspark."""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (as everybody calls it)
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    FractionalType,
    IntegralType,
    LongType,
    NullType,
    StringType,
)

from prudent.base.errors import LogError
from prudent.engines.duckdb.open import NAMES, no_names
from prudent.engines.duckdb.reject import not_a_list
from prudent.engines.spark.open import OpenTable
from prudent.engines.sql import rules
from prudent.logs.json_lines import LISTS
from prudent.logs.log import Log


def lists_of(log: Log, source: OpenTable) -> DataFrame:
    """One row per list: context, items, clicks, the fault that it has before it is checked, and its copies."""
    # Files may write clicks in different types: every frame gets the same types before they are united.
    rows = reduce(DataFrame.unionByName, [_typed(frame, log) for frame in source.frames])
    return _from_lists(rows) if log.layout == "lists" else _from_rows(rows)


def _from_lists(rows: DataFrame) -> DataFrame:
    fault = rules.list_fault("odd" in rows.columns)
    return rows.selectExpr("context", "items", "clicks", f"{fault} as fault", "1L as copies")


def _from_rows(rows: DataFrame) -> DataFrame:
    # Rows without an impression id belong to no list. They are one group, which keeps none of its rows and counts each
    # of them as a rejected list.
    odd = "odd" in rows.columns
    shown = "collect_list(struct(position, item, click)) filter (where impression is not null)"
    grouped = rows.groupBy("impression").agg(
        F.min("context").alias("first_context"),
        F.max("context").alias("last_context"),
        F.count("context").alias("contexts"),
        F.count(F.lit(1)).alias("rows"),
        F.sort_array(F.expr(shown)).alias("shown"),
        *([F.bool_or("odd").alias("odd")] if odd else []),
    )
    # Positions are compared as one list: count(distinct) in a group would double the rows that Spark shuffles.
    positions = "filter(shown.position, position -> position is not null)"
    fault = rules.row_fault(
        odd=odd,
        whole="shown.position = sequence(1L, rows)",
        repeated=f"size(array_distinct({positions})) < size({positions})",
    )
    return grouped.selectExpr(
        "first_context as context",
        "shown.item as items",
        "shown.click as clicks",
        f"{fault} as fault",
        "if(impression is null, rows, 1L) as copies",
    )


# --- types ------------------------------------------------------------------------------------------------------------


def _typed(frame: DataFrame, log: Log) -> DataFrame:
    """Names as text or integers, clicks and positions as integers; null where the value is none."""
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    columns = [f"{_column(meaning, kinds[meaning], log)} as {meaning}" for meaning in log.columns]
    return frame.selectExpr(*columns, *(["odd"] if "odd" in kinds else []))


def _column(meaning: str, kind: DataType, log: Log) -> str:
    if meaning == "impression":  # any type with equality
        return _binary(meaning, kind) if isinstance(kind, StringType) else meaning
    if meaning == "position":
        return _position(meaning, kind)
    if meaning not in LISTS:
        return _name(meaning, kind, log, meaning) if meaning in NAMES else _click(meaning, kind)
    if isinstance(kind, NullType):
        return f"cast({meaning} as array<{'string' if meaning in NAMES else 'int'}>)"
    if not isinstance(kind, ArrayType):
        raise not_a_list(log, meaning, kind.simpleString())
    element = kind.elementType
    one = _name("one", element, log, meaning) if meaning in NAMES else _click("one", element)
    return meaning if one == "one" else f"transform({meaning}, one -> {one})"


def _binary(column: str, kind: StringType) -> str:
    """Text in binary order: under another collation, names that differ only in case would be equal."""
    return column if kind.isUTF8BinaryCollation() else f"collate({column}, 'UTF8_BINARY')"


def _name(column: str, kind: DataType, log: Log, meaning: str) -> str:
    """Names are text or integers; other types do not survive a round trip."""
    if isinstance(kind, LongType):
        return column
    if isinstance(kind, IntegralType):
        return f"cast({column} as bigint)"
    if isinstance(kind, StringType):
        return _binary(column, kind)
    if isinstance(kind, NullType):
        return f"cast({column} as string)"
    if kind == DecimalType(20, 0):
        raise LogError(
            f"The column {log.columns[meaning]!r} for the {meaning} holds decimal(20,0), which in Spark is also the "
            "type of unsigned integers of 64 bits. Convert it to bigint or text first, or count it with DuckDB."
        )
    raise no_names(log, meaning, kind.simpleString())


def _click(column: str, kind: DataType) -> str:
    """0 or 1, or null where the value is neither."""
    if isinstance(kind, IntegralType):
        return column
    if isinstance(kind, StringType):
        return (
            f"case lower(btrim({column}, '{_SPACES}')) {rules.CLICK_WORDS} "
            f"else case {_number(column)} when 0D then 0 when 1D then 1 end end"
        )
    if isinstance(kind, BooleanType):
        return f"cast({column} as int)"
    if isinstance(kind, FractionalType):
        return f"case when {column} = 0 then 0 when {column} = 1 then 1 end"
    return "cast(null as int)"


def _position(column: str, kind: DataType) -> str:
    """An integer, or null; a cast alone would make 1 of 1.5 and of true."""
    if isinstance(kind, IntegralType):
        return f"cast({column} as bigint)"
    if not isinstance(kind, StringType | FractionalType):
        return "cast(null as bigint)"
    number = _number(column) if isinstance(kind, StringType) else f"try_cast({column} as double)"
    # Large integers in text are cast directly: a double does not hold all their digits.
    whole = f"try_cast({column} as bigint)" if isinstance(kind, StringType) else "null"
    return f"case when {number} % 1 = 0 then coalesce({whole}, try_cast({number} as bigint)) end"


_SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_DIGITS = "[0-9]+(_[0-9]+)*"
_BLANK = "[ \t\n\r\f\v]*"  # literal: whether Spark's SQL unescapes a backslash is a setting of the session
_NUMBER = rf"^{_BLANK}[+-]?({_DIGITS}[.]?({_DIGITS})?|[.]{_DIGITS})(e[+-]?{_DIGITS})?{_BLANK}$"


def _number(column: str) -> str:
    """Text as a double where DuckDB accepts it: Spark would also accept 1d, and not 1_0."""
    return f"try_cast(if(rlike(lower({column}), '{_NUMBER}'), replace({column}, '_', ''), null) as double)"
