"""From the records of User Behavior Insights to lists: the one list of every query, and the clicks on it.

Statements in DuckDB's SQL on the view `records`, which the reader makes.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from prudent.storage.quoting import file_text, identifier, text


def find_lists(
    folder: Path, clicks: Sequence[str], impressions: Sequence[str], worth: Mapping[str, float]
) -> Sequence[str]:
    """Statements that make the tables `known`, `paged`, `seen`, `pages` and `clicked`; actions are worth so much."""
    pages = folder / "pages.parquet"
    shown_actions = ", ".join(map(text, impressions)) or "null"
    # The same action on an item counts once, however often it was sent.
    earned = " + ".join(f"{weight!r} * max((action = {text(action)})::tinyint)" for action, weight in worth.items())
    return [
        "create temp view queries as select row, query_id, context, segments, items from records where kind = 'query'",
        f"""
            create temp view clicks as
            select row, query_id, item, action from records
            where kind = 'event' and action in ({", ".join(map(text, clicks))})
        """,
        f"""
            create temp view impressions as
            select query_id, item, ordinal from records where kind = 'event' and action in ({shown_actions})
        """,
        # Of several records under one id, those without hits are ignored. The others must be equal; comparing 64-bit
        # hashes keeps lists out of memory.
        """
            create temp table known as
            select query_id,
                coalesce(min(row) filter (items is not null), min(row)) as page,
                count(items) > 0 as listed,
                case when listed then min(hashed) filter (items is not null) <> max(hashed) filter (items is not null)
                    else min(hashed) <> max(hashed)
                end as disagree
            from (select *, hash(context, items) as hashed from queries where query_id is not null)
            group by query_id
        """,
        # Hits that are disjoint, or that extend one another, are the next page or more after scrolling.
        """
            create temp table paged as
            with differing as (
                select distinct query_id, context, items
                from queries join known using (query_id)
                where disagree and items is not null
            ),
            together as (
                select query_id, list(items) as lists, max(items) as last  -- of a list and its beginnings, the list
                from differing
                group by query_id
                having count(context) in (0, count(*)) and count(distinct context) <= 1
            )
            select query_id from together
            where len(list_distinct(flatten(lists))) = len(flatten(lists))
                or len(list_filter(lists, lambda hits: hits <> last[1:len(hits)])) = 0
        """,
        """
            create temp table seen as
            with start as (select case when min(ordinal) = 0 then 0 else 1 end as first from impressions),
            once as (
                select distinct page, item, ordinal
                from impressions join known using (query_id)
                where not listed and not disagree and item is not null and ordinal is not null
            )
            select page, list(item order by ordinal) as items,
                count(distinct item) < count(*) or count(distinct ordinal) < count(*) as contradict,
                not contradict and (min(ordinal) <> any_value(first) or max(ordinal) - min(ordinal) + 1 <> count(*))
                    as gap
            from once, start
            group by page
        """,
        f"""
            copy (
                select page, known.query_id, context, segments, coalesce(queries.items, seen.items) as items
                from queries join known on row = page left join seen using (page)
                where not disagree and (listed or (not contradict and not gap))
            ) to {text(pages)} (format parquet)
        """,
        f"create temp view pages as from read_parquet({file_text(pages)}, hive_partitioning = false)",
        f"""
            create temp table clicked as
            select page, list_position(items, item) as spot, {earned or 0} as earned
            from clicks join pages using (query_id)
            where list_contains(items, item)
            group by page, spot
        """,
    ]


def all_lists(segments: Sequence[str], reward: str | None) -> str:
    """A query for one row per list; segments have the names of their fields, and what items earned that of `reward`."""
    named = "".join(f"segments[{place}] as {identifier(name)}, " for place, name in enumerate(segments, start=1))
    rewards = (
        f", list_transform(items, lambda item, place: coalesce(earned[list_position(spots, place)], 0)) "
        f"as {identifier(reward)}"
        if reward
        else ""
    )
    return f"""
        with spots as (select page, list(spot) as spots, list(earned) as earned from clicked group by page)
        select {named} context, items,
            list_transform(items, lambda item, place: coalesce(list_contains(spots, place), false)::utinyint) as clicks
            {rewards}
        from pages left join spots using (page)
    """


_LEFT_OUT: Mapping[str, str] = {
    "records that are neither a query nor an event": "from records where kind is null",
    "queries without an id": "from queries where query_id is null",
    "repeated records of a query": (
        "from queries where query_id is not null and row not in (select page from known) and query_id in "
        "(select query_id from known where not disagree)"
    ),
    "queries with several pages of hits under one id": "from paged",
    "queries whose records disagree": "from known where disagree and query_id not in (select query_id from paged)",
    "queries without a list": "from known where not listed and not disagree and page not in (select page from seen)",
    "queries whose impressions contradict each other": "from seen where contradict",
    "queries with a gap in their impressions": "from seen where gap",
    "events without a query": (
        "from (select query_id from clicks union all select query_id from impressions) where query_id is null"
    ),
    "events of unknown queries": (
        "from (select query_id from clicks union all select query_id from impressions) "
        "where query_id not in (select query_id from known)"
    ),
    "impressions without an item or an ordinal": (
        "from impressions join known using (query_id) where not listed and not disagree "
        "and (item is null or ordinal is null)"
    ),
    "clicks without an item": "from clicks where query_id in (select query_id from known) and item is null",
    "clicks of queries that are left out": (
        "from clicks join known using (query_id) where item is not null and page not in (select page from pages)"
    ),
    "clicks outside their list": (
        "from clicks join pages using (query_id) where item is not null and not coalesce(list_contains(items, item), "
        "false)"
    ),
}


def count_left_out(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """The records that cannot be used, by reason."""
    ((*counted,),) = connection.execute(
        f"select {', '.join(f'(select count(*) {what})' for what in _LEFT_OUT.values())}"
    ).fetchall()
    return {why: n for why, n in zip(_LEFT_OUT, counted, strict=True) if n}
