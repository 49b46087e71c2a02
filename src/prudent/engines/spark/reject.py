"""From a log to its lists, in Spark's types, with the faults that only rows have. Needs pyspark."""

from collections.abc import Sequence
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
    NumericType,
    StringType,
)

from prudent.base.errors import LogError
from prudent.engines.duckdb.open import no_names
from prudent.engines.duckdb.reject import check_clicked_items, not_a_list
from prudent.engines.spark.open import OpenTable
from prudent.engines.sql import rules
from prudent.engines.sql.contexts import composed
from prudent.logs.hygiene import VISIT, kinds_left_out, leaves_out
from prudent.logs.log import CLICKED, LISTS, MOST_REWARD, Log, context_meanings, is_name
from prudent.storage.run import REWARD_UNITS


def rows_of(log: Log, source: OpenTable) -> DataFrame:
    """The rows of a log, typed by what its columns mean."""
    # Files may write clicks in different types: every frame gets the same types before they are united.
    return reduce(DataFrame.unionByName, [_typed(frame, log) for frame in source.frames])


def lists_of(rows: DataFrame, log: Log) -> DataFrame:
    """One row per list: context, items, clicks, the fault that it has before it is checked, and its copies.

    `rows` are those of `rows_of`. The rewards are one more column where the log names them and, where something is left
    out, so are the user and the time.
    """
    beside = [name if name in log.columns else f"cast(null as string) as {name}" for name in VISIT]
    beside = beside if leaves_out(log) else []
    beside = beside if log.reward is None else ["rewards", *beside]
    if log.layout == "lists":
        return _from_lists(rows, log, beside)
    return _from_rows(rows.distinct() if "duplicates" in kinds_left_out(log) else rows, log.first_position, beside)


def _from_lists(rows: DataFrame, log: Log, beside: Sequence[str]) -> DataFrame:
    clicks, clicked = _clicks(rows, log)
    fault = rules.list_fault("odd" in rows.columns, clicked)
    return rows.selectExpr("context", "items", f"{clicks} as clicks", f"{fault} as fault", "1L as copies", *beside)


def _clicks(rows: DataFrame, log: Log) -> tuple[str, str]:
    """A 0 or 1 for each item, and what is wrong with what they are made of."""
    if "clicks" in rows.columns:
        return "clicks", ""
    (form,) = set(CLICKED) & set(rows.columns)
    if form == "clicked_items":
        kinds = dict(rows.dtypes)
        check_clicked_items(log, *(kinds[meaning] != "array<string>" for meaning in ("items", form)))
        found, outside = f"array_contains({form}, item)", f"size(array_except({form}, items)) > 0"
    else:
        first = log.first_position
        found = f"array_contains({form}, k + {first}L)"
        outside = f"array_min({form}) < {first} or array_max({form}) >= size(items) + {first}"
    fault = rules.clicked_fault(form, f"exists({form}, one -> one is null) or {outside}")
    return f"transform(items, (item, k) -> cast({found} as int))", fault


def _from_rows(rows: DataFrame, first: int, beside: Sequence[str]) -> DataFrame:
    # Rows without an impression id belong to no list. They are one group, which keeps none of its rows and counts each
    # of them as a rejected list.
    odd = "odd" in rows.columns
    reward = ", reward" if "rewards" in beside else ""
    shown = f"collect_list(struct(position, item, click{reward})) filter (where impression is not null)"
    grouped = rows.groupBy("impression").agg(
        F.min("context").alias("first_context"),
        F.max("context").alias("last_context"),
        F.count("context").alias("contexts"),
        F.count(F.lit(1)).alias("rows"),
        F.sort_array(F.expr(shown)).alias("shown"),
        *([F.bool_or("odd").alias("odd")] if odd else []),
        *(F.expr(f"min_by({name}, position)").alias(name) for name in beside if name in VISIT),
    )
    # Positions are compared as one list: count(distinct) in a group would double the rows that Spark shuffles.
    positions = "filter(shown.position, position -> position is not null)"
    fault = rules.row_fault(
        odd=odd,
        whole=f"shown.position = sequence({first}L, rows - 1 + {first})",
        repeated=f"size(array_distinct({positions})) < size({positions})",
    )
    return grouped.selectExpr(
        "first_context as context",
        "shown.item as items",
        "shown.click as clicks",
        f"{fault} as fault",
        "if(impression is null, rows, 1L) as copies",
        *("shown.reward as rewards" if name == "rewards" else name for name in beside),
    )


# --- types ------------------------------------------------------------------------------------------------------------


def _typed(frame: DataFrame, log: Log) -> DataFrame:
    """Names as text or integers, clicks and positions as integers; null where the value is none."""
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    columns = {meaning: _column(meaning, kinds[meaning], log) for meaning in log.columns}
    context = composed([columns.pop(meaning) for meaning in context_meanings(log)])
    typed = [f"{column} as {meaning}" for meaning, column in {"context": context, **columns}.items()]
    return frame.selectExpr(*typed, *(["odd"] if "odd" in kinds else []))


def _column(meaning: str, kind: DataType, log: Log) -> str:
    if meaning in VISIT:
        return f"cast({meaning} as string)"
    if meaning == "impression":  # any type with equality
        return _binary(meaning, kind) if isinstance(kind, StringType) else meaning
    if meaning in ("position", "grid_row", "grid_column"):
        return _position(meaning, kind)
    if meaning == "reward":
        return _reward(meaning, kind)
    if meaning not in LISTS:
        return _name(meaning, kind, log, meaning) if is_name(meaning) else _click(meaning, kind)
    if isinstance(kind, NullType):
        return f"cast({meaning} as array<{'string' if is_name(meaning) else 'int'}>)"
    if not isinstance(kind, ArrayType):
        raise not_a_list(log, meaning, kind.simpleString())
    element = kind.elementType
    if meaning == "clicked_positions":
        one = _position("one", element)
    elif meaning == "rewards":
        one = _reward("one", element)
    else:
        one = _name("one", element, log, meaning) if is_name(meaning) else _click("one", element)
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


def _reward(column: str, kind: DataType) -> str:
    """A reward in thousandths, or null where it is none that can be counted."""
    if isinstance(kind, BooleanType):
        column = f"cast({column} as int)"
    elif not isinstance(kind, StringType | NumericType):
        return "cast(null as bigint)"
    number = _number(column) if isinstance(kind, StringType) else f"cast({column} as double)"
    # NaN is above every number.
    return f"case when {number} between 0 and {MOST_REWARD} then floor({number} * {REWARD_UNITS} + 0.5D) end"


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
