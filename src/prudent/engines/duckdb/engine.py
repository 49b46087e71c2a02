"""DuckDB: counts logs on one machine, out of core, and reads and writes every file."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from prudent.base.errors import LogError
from prudent.engines.base import Tally
from prudent.engines.duckdb.open import INTEGERS, Source, name_as, opened
from prudent.logs.log import CODE, ODD, REASONS, Log
from prudent.storage.database import Database
from prudent.storage.parquet import counts_format, fill_placeholder, placeholder
from prudent.storage.quoting import file_text, text


@dataclass(frozen=True)
class DuckDB(Database):
    """The engine on one machine. ``memory`` caps it, e.g. ``"1GB"``; what does not fit spills beside the output."""

    def histogram(self, log: Log, query: str, target: Path) -> Tally:
        """See `Engine.histogram`."""
        with self._checking(log, target) as connection:
            connection.execute(f"create temp view impressions as {_IMPRESSIONS}")
            later = placeholder(log.left_out)
            connection.execute(f"copy ({query}) to {text(target)} ({counts_format(later)})")
            tally = _tally(connection, count_lists(connection, target))
            fill_placeholder(target, later, replace(tally, left_out=log.left_out))
            return tally

    def distinct_lists(
        self, log: Log, query: str, target: Path, length: int | None = None, where: str = "true"
    ) -> Tally:
        """Run `query` over the view ``shown`` of this log and write its rows to a Parquet file.

        The view has the columns context, items, clicks and, where the log names it, propensity: one row per list that
        has no fault, cut after `length` positions. The query says in a column n how often each was met. `where` is a
        condition on the context of the lists to look at.
        """
        with self._checking(log, target, where) as connection:
            upto = "" if length is None else f"[1:{length:d}]"
            connection.execute(
                f"create temp view shown as select context, items{upto} as items, clicks{upto} as clicks"
                f"{_cut_propensity(log, length)} from checked where reason = 0"
            )
            connection.execute(f"copy ({query}) to {text(target)} (format parquet, compression zstd)")
            counted = connection.execute(f"select coalesce(sum(n), 0)::bigint from read_parquet({file_text(target)})")
            return _tally(connection, int(counted.fetchall()[0][0]))

    @contextmanager
    def _checking(self, log: Log, target: Path, where: str = "true") -> Iterator[duckdb.DuckDBPyConnection]:
        """The views `lists` and `checked` of a log."""
        with self.connect(spill=target.parent) as connection, opened(connection, log) as source:
            # The order of rows means nothing here, and keeping it would cost memory.
            connection.execute("set preserve_insertion_order = false")
            # What is costly to read twice is kept: text files, and lists put together from rows.
            kept = "view" if log.layout == "lists" and source.kind in ("parquet", None) else "table"
            connection.execute(f"create temp {kept} lists as select * from ({_lists(log, source)}) where {where}")
            connection.execute(f"create temp view checked as {_checked(log, source)}")
            yield connection


# --- from `source` to `lists`, `checked` and `impressions` ------------------------------------------------------------


def _lists(log: Log, source: Source) -> str:
    """One row per list: context, items, clicks; the fault that only rows can have; and how many lists it stands for."""
    return _from_lists(log, source) if log.layout == "lists" else _from_rows(log, source)


def _from_lists(log: Log, source: Source) -> str:
    for meaning in ("items", "clicks"):
        if not source.types[meaning].endswith("[]"):
            raise LogError(
                f"The column {log.columns[meaning]!r} for the {meaning} is {source.types[meaning].lower()}, not a "
                'list. A log with one row per shown item has the layout "rows": layout="rows".'
            )
    items, clicks = source.types["items"][:-2], source.types["clicks"][:-2]
    name, click = name_as("items", items, log), _click("clicks", clicks)
    return f"""
        select {name_as("context", source.types["context"], log)} as context,
            {"items" if name == "items" else f"list_transform(items, lambda items: {name})"} as items,
            {"clicks" if click == "clicks" else f"list_transform(clicks, lambda clicks: {click})"} as clicks,
            {"" if log.propensity is None else f"{_propensities(source.types['propensity'])} as propensity,"}
            1 as copies, {f"case when odd then {CODE[ODD]} else 0 end" if source.kind == "jsonl" else 0} as fault
        from source
    """


def _from_rows(log: Log, source: Source) -> str:
    # Impressions are grouped here; everything after is the same for both layouts. Rows without an impression id
    # belong to no list: they fall into one group, which keeps none of them and counts each as a rejected list.
    return f"""
        select any_value(context) as context,
            list(item order by position) filter (impression is not null) as items,
            list(click order by position) filter (impression is not null) as clicks,
            {"" if log.propensity is None else "list(propensity order by position) as propensity,"}
            case when impression is null then count(*) else 1 end as copies,
            case
                {f"when bool_or(odd) then {CODE[ODD]}" if source.kind == "jsonl" else ""}
                when impression is null then {CODE["impression id missing"]}
                when count(context) < count(*) then {CODE["context missing"]}
                when min(context) <> max(context) then {CODE["impression id in several contexts"]}
                when count(distinct position) < count(position)
                    then {CODE["duplicate position in a list"]}
                when count(position) < count(*) or min(position) <> 1 or max(position) <> count(*)
                    then {CODE["positions other than 1, 2, 3, ..."]}
                else 0
            end as fault
        from (
            select impression, {"odd," if source.kind == "jsonl" else ""}
                {name_as("context", source.types["context"], log)} as context,
                {name_as("item", source.types["item"], log)} as item,
                {_click("click", source.types["click"])} as click,
                {"" if log.propensity is None else "try_cast(propensity as double) as propensity,"}
                -- a whole number, or null where there is none; a cast alone would round 1.5 to 2
                case when try_cast(position as double) = floor(try_cast(position as double))
                     then try_cast(position as bigint) end as position
            from source
        )
        group by impression
    """


def _checked(log: Log, source: Source) -> str:
    """The lists, each with the number of the reason to reject it, or 0."""
    items = source.types["items"] if log.layout == "lists" else source.types["item"]
    nul = [
        *(["contains(context, chr(0))"] if source.types["context"] == "VARCHAR" else []),
        *(["len(list_filter(items, lambda i: contains(i, chr(0)))) > 0"] if items.startswith("VARCHAR") else []),
    ]
    # Only text files bring NUL bytes by accident; elsewhere the look would cost and find nothing.
    look = nul and source.kind in ("csv", "jsonl")
    return f"""
        select *,
            case
                when fault > 0 then fault
                when context is null then {CODE["context missing"]}
                when items is null or len(items) = 0 then {CODE["empty list"]}
                when clicks is null or len(clicks) <> len(items) then {CODE["items and clicks differ in length"]}
                when list_count(items) < len(items) then {CODE["item missing"]}
                when list_count(clicks) < len(clicks) or list_min(clicks) < 0 or list_max(clicks) > 1
                    then {CODE["click other than 0 or 1"]}
                when len(list_distinct(items)) < len(items) then {CODE["duplicate item in a list"]}
                {_improper(source.types["propensity"]) if log.propensity is not None else ""}
                {f"when {' or '.join(nul)} then {CODE['NUL byte in a name']}" if look else ""}
                else 0
            end as reason
        from lists
    """


def _improper(kind: str) -> str:
    """When a propensity is none: below 10⁻¹² its inverse is no weight any more; NaN is above 1 to DuckDB."""
    many = "<> len(items)" if kind.endswith("[]") else "not in (1, len(items))"
    return f"""
        when propensity is null or len(propensity) {many} or list_count(propensity) < len(propensity)
            or list_min(propensity) < 1e-12 or list_max(propensity) > 1
            then {CODE["propensity outside (0, 1]"]}
    """


def _propensities(kind: str) -> str:
    """A list of numbers: one for each position, or a single one for the whole list; null where there is no number."""
    if kind.endswith("[]"):
        return "list_transform(propensity, lambda p: try_cast(p as double))"
    whole = "[try_cast(propensity as double)]"
    if kind != "VARCHAR":
        return whole
    # Of JSON, a list arrives as it was written.
    return f"case when ltrim(propensity)[1] = '[' then try_cast(propensity as double[]) else {whole} end"


def _cut_propensity(log: Log, length: int | None) -> str:
    """Of a list that is cut, the propensity of what is left: it does not follow from that of the whole."""
    if log.propensity is None:
        return ""
    if length is None:
        return ", propensity"
    whole = f"len(propensity) = 1 and len(items) > {length:d}"
    return f", case when {whole} then [null::double] else propensity[1:{length:d}] end as propensity"


_IMPRESSIONS = """
    with clicked as (
        select context, items, clicks, list_filter(range(1, len(items) + 1), lambda i: clicks[i] = 1) as clicked
        from checked
        where reason = 0
    ),
    exploded as (
        select context, unnest(items) as item, unnest(range(1, len(items) + 1))::integer as position,
            unnest(clicks) as click, clicked, coalesce(clicked[-1], 0) as last
        from clicked
    )
    select context, item, position,
        coalesce(list_filter(clicked, lambda c: c < position)[-1], 0)::integer as prev,
        click = 1 as click,
        last > position as more
    from exploded
"""


def _tally(connection: duckdb.DuckDBPyConnection, counted: int) -> Tally:
    """Lists counted and rejected; only when some are missing does it take a second look at them, to tell why."""
    ((given,),) = connection.execute("select coalesce(sum(copies), 0)::bigint from lists").fetchall()
    if counted == given:
        return Tally(counted)
    rejected = connection.execute(
        "select reason, sum(copies)::bigint from checked where reason > 0 group by reason order by reason"
    ).fetchall()
    return Tally(counted, {REASONS[code - 1]: n for code, n in rejected})


def count_lists(connection: duckdb.DuckDBPyConnection, histogram: Path) -> int:
    """Lists in a file of counts: each has exactly one first position."""
    query = f"select coalesce(sum(n), 0)::bigint from read_parquet({file_text(histogram)}) where position = 1"
    return int(connection.execute(query).fetchall()[0][0])


def _click(column: str, kind: str) -> str:
    """0 or 1, or null where the value is neither."""
    if kind in INTEGERS:
        return column
    if kind == "VARCHAR":
        known = "when '0' then 0 when '1' then 1 when 'false' then 0 when 'true' then 1"
        number = f"try_cast({column} as double)"  # 1.0, as from a column that once had gaps
        return f"case lower(trim({column})) {known} else case {number} when 0 then 0 when 1 then 1 end end"
    if kind == "BOOLEAN":
        return f"{column}::tinyint"
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        return f"case when {column} = 0 then 0 when {column} = 1 then 1 end"
    return "null"
