"""From the frames of a log to `checked`, `impressions` and `shown`, in Spark's words; `duckdb.py` has them in DuckDB's.

Needs pyspark; `prudent.engines.spark.engine` imports this module when it is first used.
"""

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
from prudent.engines.spark.open import Source
from prudent.logs.json_lines import LISTS
from prudent.logs.log import CODE, ODD, Log


def checked(log: Log, source: Source) -> DataFrame:
    """The lists, each with the number of the reason to reject it, or 0, and how many lists it stands for."""
    # Every frame gets the same types before they become one: files may differ in how they write clicks.
    rows = reduce(DataFrame.unionByName, [_typed(frame, log) for frame in source.frames])
    lists = _from_lists(rows) if log.layout == "lists" else _from_rows(rows)
    # Only text files bring NUL bytes by accident; elsewhere the look would cost and find nothing.
    look = _nul(lists) if source.kind in ("csv", "jsonl") else []
    return lists.selectExpr(
        "context",
        "items",
        "clicks",
        "copies",
        f"""
        case
            when fault > 0 then fault
            when context is null then {CODE["context missing"]}
            when items is null or size(items) = 0 then {CODE["empty list"]}
            when clicks is null or size(clicks) <> size(items) then {CODE["items and clicks differ in length"]}
            when exists(items, item -> item is null) then {CODE["item missing"]}
            when exists(clicks, click -> click is null) or array_min(clicks) < 0 or array_max(clicks) > 1
                then {CODE["click other than 0 or 1"]}
            when size(array_distinct(items)) < size(items) then {CODE["duplicate item in a list"]}
            {f"when {' or '.join(look)} then {CODE['NUL byte in a name']}" if look else ""}
            else 0
        end as reason
        """,
    )


def _from_lists(rows: DataFrame) -> DataFrame:
    fault = f"if(odd, {CODE[ODD]}, 0)" if "odd" in rows.columns else "0"
    return rows.selectExpr("context", "items", "clicks", "1L as copies", f"{fault} as fault")


def _from_rows(rows: DataFrame) -> DataFrame:
    # Impressions are grouped here; everything after is the same for both layouts. Rows without an impression id
    # belong to no list: they fall into one group, which keeps none of them and counts each as a rejected list.
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
    # All that is asked of positions is asked of one list: to count distinct ones in a group, Spark would double it.
    positions = "filter(shown.position, position -> position is not null)"
    return grouped.selectExpr(
        "first_context as context",
        "shown.item as items",
        "shown.click as clicks",
        "if(impression is null, rows, 1L) as copies",
        f"""
        case
            {f"when odd then {CODE[ODD]}" if odd else ""}
            when impression is null then {CODE["impression id missing"]}
            when contexts < rows then {CODE["context missing"]}
            when first_context <> last_context then {CODE["impression id in several contexts"]}
            when shown.position = sequence(1L, rows) then 0
            when size(array_distinct({positions})) < size({positions})
                then {CODE["duplicate position in a list"]}
            else {CODE["positions other than 1, 2, 3, ..."]}
        end as fault
        """,
    )


IMPRESSIONS = """
    select context, item, place + 1 as position,
        -- Most lists have at most one click, and for them first and last say it all.
        case
            when first = 0 or place < first then 0
            when place >= last then last
            else array_max(filter(clicked, at -> at <= place))
        end as prev,
        get(clicks, place) = 1 as click,
        last > place + 1 as more
    from (
        select context, posexplode(items) as (place, item), clicks, clicked,
            coalesce(get(clicked, 0), 0) as first, coalesce(get(clicked, size(clicked) - 1), 0) as last
        from (
            select context, items, clicks,
                filter(sequence(1, size(items)), at -> get(clicks, at - 1) = 1) as clicked
            from checked
            where reason = 0
        )
    )
"""
"""The view of this name, of a view `checked`: from posexplode on, everything is compiled, and nothing is sorted."""


# --- types ------------------------------------------------------------------------------------------------------------


def _typed(frame: DataFrame, log: Log) -> DataFrame:
    """Names as text or integers, clicks as 0, 1 or another integer, positions as integers; null where there is none."""
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    columns = [f"{_column(meaning, kinds[meaning], log)} as {meaning}" for meaning in log.columns]
    return frame.selectExpr(*columns, *(["odd"] if "odd" in kinds else []))


def _column(meaning: str, kind: DataType, log: Log) -> str:
    if meaning == "impression":  # whatever can be told apart
        return _binary(meaning, kind) if isinstance(kind, StringType) else meaning
    if meaning == "position":
        return _position(meaning, kind)
    if meaning not in LISTS:
        return _name(meaning, kind, log, meaning) if meaning in NAMES else _click(meaning, kind)
    if isinstance(kind, NullType):
        return f"cast({meaning} as array<{'string' if meaning in NAMES else 'int'}>)"
    if not isinstance(kind, ArrayType):
        raise LogError(
            f"The column {log.columns[meaning]!r} for the {meaning} is {kind.simpleString()}, not a "
            'list. A log with one row per shown item has the layout "rows": layout="rows".'
        )
    element = kind.elementType
    one = _name("one", element, log, meaning) if meaning in NAMES else _click("one", element)
    return meaning if one == "one" else f"transform({meaning}, one -> {one})"


def _binary(column: str, kind: StringType) -> str:
    """Text by its letters: by another collation, names that differ only in case would be one."""
    return column if kind.isUTF8BinaryCollation() else f"collate({column}, 'UTF8_BINARY')"


def _name(column: str, kind: DataType, log: Log, meaning: str) -> str:
    """Names are text or integers; anything else would come back as something it was not."""
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
            f"The column {log.columns[meaning]!r} for the {meaning} holds decimal(20,0), to Spark also the type of "
            "unsigned integers of 64 bits. Convert it to bigint or text first, or count it with DuckDB."
        )
    raise no_names(log, meaning, kind.simpleString())


def _click(column: str, kind: DataType) -> str:
    """0 or 1, or null where the value is neither."""
    if isinstance(kind, IntegralType):
        return column
    if isinstance(kind, StringType):
        known = "when '0' then 0 when '1' then 1 when 'false' then 0 when 'true' then 1"
        return (
            f"case lower(btrim({column}, '{_SPACES}')) {known} "
            f"else case {_number(column)} when 0D then 0 when 1D then 1 end end"
        )
    if isinstance(kind, BooleanType):
        return f"cast({column} as int)"
    if isinstance(kind, FractionalType):
        return f"case when {column} = 0 then 0 when {column} = 1 then 1 end"
    return "cast(null as int)"


def _position(column: str, kind: DataType) -> str:
    """A whole number, or null where there is none; a cast alone would make 1 of 1.5."""
    if isinstance(kind, IntegralType):
        return f"cast({column} as bigint)"
    if not isinstance(kind, StringType | BooleanType | FractionalType):
        return "cast(null as bigint)"
    number = _number(column) if isinstance(kind, StringType) else f"try_cast({column} as double)"
    # Large integers as text by their digits: a double has no room for them.
    whole = f"try_cast({column} as bigint)" if isinstance(kind, StringType) else "null"
    return f"case when {number} % 1 = 0 then coalesce({whole}, try_cast({number} as bigint)) end"


_SPACES = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_DIGITS = "[0-9]+(_[0-9]+)*"
_BLANK = "[ \t\n\r\f\v]*"  # as they are: what a backslash means in Spark's SQL is a setting of the session
_NUMBER = rf"^{_BLANK}[+-]?({_DIGITS}[.]?({_DIGITS})?|[.]{_DIGITS})(e[+-]?{_DIGITS})?{_BLANK}$"


def _number(column: str) -> str:
    """Text as a double where DuckDB takes it for one: Spark would also take 1d, and not 1_0."""
    return f"try_cast(if(rlike(lower({column}), '{_NUMBER}'), replace({column}, '_', ''), null) as double)"


def _nul(lists: DataFrame) -> list[str]:
    text = {field.name for field in lists.schema.fields if "string" in field.dataType.simpleString()}
    return [
        *(["contains(context, char(0))"] if "context" in text else []),
        *(["exists(items, item -> contains(item, char(0)))"] if "items" in text else []),
    ]
