"""User Behavior Insights (UBI) of OpenSearch, Elasticsearch and Solr: records of queries and of user events.

The records become a Parquet file of lists in three DuckDB steps: extract the fields, find the one list of every query,
assign clicks to lists. All files are temporary and may be larger than memory.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import duckdb

from prudent.base.errors import LogError, UsageError, WriteError, did_you_mean
from prudent.logs.formats import file_format, find_files, path_names
from prudent.logs.intact import intact
from prudent.logs.json_lines import json_fault, without_bom
from prudent.logs.log import Log
from prudent.logs.readers.action_weights import spelled, weights_of
from prudent.logs.readers.base import readers
from prudent.logs.readers.ubi_lists import all_lists, count_left_out, find_lists
from prudent.storage.database import Database, first_line
from prudent.storage.files import TemporaryFolder, reason
from prudent.storage.quoting import file_text, text

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]

_ACTIONS_TO_NAME = 8  # in a message


@readers.register("ubi")
def read_ubi(
    *source: Paths,
    click_action: str | Sequence[str] = "click",
    impression_action: str | Sequence[str] = "impression",
    context: str = "user_query",
    segment: str | Sequence[str] = (),
    user: str | None = None,
    shown_at: str | None = None,
    reward: str | Mapping[str, float] | None = None,
    engine: Database | None = None,
) -> Log:
    """Read the records of User Behavior Insights, specification 1.0 to 1.3, as a `Log`.

    ``source`` is files, globs or several of them, JSON Lines (gzipped or not) or Parquet, such as
    ``read_ubi("ubi_queries.ndjson", "ubi_events.ndjson")``. The fields of a record show whether it is a query or an
    event: an event has an ``action_name``. A record may be the ``_source`` of a search hit. Action lines of a bulk
    request are skipped.

    The list of a query is its ``query_response_hit_ids`` (formerly ``query_response_object_ids``); where these are
    missing, the items of its impression events, by ``event_attributes.position.ordinal``. Ordinals begin at 0 if any
    impression has the ordinal 0, else at 1. A position is clicked if at least one event of the query, by ``query_id``,
    has a ``click_action`` and the item's ``event_attributes.object.object_id``. ``context`` is a field of the query,
    or a path such as ``"query_attributes.category"``. Ids and contexts are text, as in the index: 7 and "7" are one id.
    ``segment`` names further fields of the query, such as ``"query_attributes.device"``, as in `prudent.Log`, and so do
    ``user``, such as ``"client_id"``, and ``shown_at``, such as ``"timestamp"``.

    ``reward`` says what actions on an item are worth, such as ``"click=1, cart=3, purchase=10"``: an item earns the sum
    over the actions it met in its list, each once, and `prudent.rank` values lists by it. These actions count as
    clicks: who bought an item has examined it and found it attractive.

    Records that cannot be used are counted in ``left_out`` by reason.
    """
    worth = {} if reward is None else weights_of(reward)
    clicks = list(dict.fromkeys([*_actions(click_action, "click_action"), *worth]))
    impressions = _actions(impression_action, "impression_action")
    for action in clicks:
        if action in impressions:
            raise UsageError(f"The action {action!r} cannot be a click and an impression at once.")
    segments = [segment] if isinstance(segment, str) else list(dict.fromkeys(segment))
    beside = dict.fromkeys(segments, "segment")
    beside |= {name: what for what, name in (("user", user), ("shown_at", shown_at)) if name is not None}
    for setting, field in (("context", context), *((what, name) for name, what in beside.items())):
        if not all(field.split(".")):
            raise UsageError(f"{setting} is {field!r}; it is a field of the query records, such as 'user_query'.")
    earned = spelled(worth) or None
    files = find_files([name for paths in source for name in path_names(paths)])
    folder = TemporaryFolder()
    lists = folder.path / "lists.parquet"
    with intact(files), (engine or Database()).connect(spill=folder.path) as connection:
        try:
            connection.execute("set preserve_insertion_order = false")  # neither records nor lists have an order
            for step in _extract(files, folder.path, context, list(beside)):
                connection.execute(step)
            _check_records(connection, files, clicks)
            for step in find_lists(folder.path, clicks, impressions, worth):
                connection.execute(step)
            connection.execute(f"copy ({all_lists(list(beside), earned)}) to {text(lists)} (format parquet)")
            _check_beside(connection, beside)
            left_out = count_left_out(connection)
            _check_clicks(connection, files)
        except duckdb.Error as error:
            raise _explain(error, files) from error
    for used in folder.path.iterdir():
        if used != lists and used.is_file():
            used.unlink()
    named: dict[str, Any] = {"segment": segments, "user": user, "shown_at": shown_at, "reward": earned}
    return Log([lists], **named, origin=tuple(map(str, files)), left_out=left_out, _folder=folder)


def _actions(names: str | Sequence[str], setting: str) -> list[str]:
    actions = [names] if isinstance(names, str) else list(names)
    if not all(actions) or (setting == "click_action" and not actions):
        raise UsageError(f"{setting} is {names!r}; it is one or several names of actions, such as 'click'.")
    return actions


# --- fields of the records ------------------------------------------------------------------------------------------

_FIELDS = {
    "query_id": "/query_id",
    "action": "/action_name",
    "hits": "/query_response_hit_ids",
    "former_hits": "/query_response_object_ids",  # the name before specification 1.0
    "user_query": "/user_query",
    "attributes": "/event_attributes",
    "object": "/event_attributes/object/object_id",
    "ordinal": "/event_attributes/position/ordinal",
}

# Text, or an integer as its text; a fraction, a structure or true is not a name, and a NUL byte means a broken file.
# A cast alone would name items {"id":1}. DuckDB types integers beyond 64 bits as fractions, but keeps their digits.
_NAME = """
    create temp macro name(field) as case json_type(field)
        when 'VARCHAR' then case when not contains(field ->> '$', chr(0)) then field ->> '$' end
        when 'UBIGINT' then field::varchar when 'BIGINT' then field::varchar
        when 'DOUBLE' then nullif(regexp_extract(field::varchar, '^-?[0-9]+$'), '')
    end
"""

# As the index does: 3, 3.0 and "3" are one integer.
_ORDINAL = r"""
    create temp macro whole(field) as
        try_cast(regexp_extract(field ->> '$', '^([0-9]{1,9})(\.0+)?$', 1) as integer)
"""


def _extract(files: Sequence[Path], folder: Path, context: str, segments: Sequence[str]) -> Sequence[str]:
    """Statements that make the views `written`, records as JSON, and `records`, numbered by `row`."""
    named = {"context": context} | {f"segment{place}": name for place, name in enumerate(segments)}
    paths = {name: "".join(f"/{_pointed(part)}" for part in field.split(".")) for name, field in named.items()}
    fields = {**_FIELDS, **paths}
    values = ", ".join(f"segment{place} ->> '$'" for place in range(len(segments)))
    pointers = [*fields.values(), *(f"/_source{pointer}" for pointer in fields.values())]
    # One parse of a record for all fields; a null counts as missing.
    either = [
        f"coalesce(nullif(values[{place}], 'null'), nullif(values[{place + len(fields)}], 'null')) as {name}"
        for place, name in enumerate(fields, start=1)
    ]
    records = folder / "records.parquet"
    return [
        _NAME,
        _ORDINAL,
        f"create temp view written as {' union all '.join(_written(files, folder))}",
        f"""
            copy (
                with parsed as (
                    select json_extract(record, [{", ".join(map(text, pointers))}]) as values,
                        json_keys(record) as keys
                    from written
                ),
                fields as (select keys, {", ".join(either)} from parsed),
                hits as (select * replace (coalesce(hits, former_hits) as hits) from fields)
                select name(query_id) as query_id,
                    case
                        when keys in ({_BULK}) then 'bulk action'
                        when name(action) is not null then 'event'
                        when attributes is not null then null
                        when query_id is not null or hits is not null or user_query is not null then 'query'
                    end as kind,
                    name(context) as context,
                    [{values}]::varchar[] as segments,
                    case
                        when json_type(hits) = 'ARRAY'
                            then nullif(list_transform(hits::json[], lambda hit: name(hit)), [])
                        when hits is not null then [name(hits)]  -- in the index, a value is a list of one
                    end as items,
                    name(action) as action,
                    name(object) as item,
                    whole(ordinal) as ordinal
                from hits
            ) to {text(records)} (format parquet)
        """,
        f"create temp view records as select *, file_row_number as row from read_parquet({file_text(records)}, "
        "file_row_number = true, hive_partitioning = false)",
    ]


# Before each document, the body of a bulk request has a line such as {"index": {"_index": "ubi_queries"}}.
_BULK = "['index'], ['create'], ['update'], ['delete']"


def _written(files: Sequence[Path], folder: Path) -> list[str]:
    """Queries for the records of all files as JSON."""
    formats = {file: file_format([file]) for file in files}
    selects = []
    for file, kind in formats.items():
        if kind == "csv":
            raise LogError(f"{file} is CSV, which cannot hold UBI records: export JSON Lines or Parquet.")
        if kind == "parquet":
            read = f"read_parquet({file_text(file)}, binary_as_string = true, hive_partitioning = false)"
            selects.append(f"select to_json(columns) as record from {read} as columns")
    texts = [file for file, kind in formats.items() if kind == "jsonl"]
    plain = [without_bom(file, folder / f"{number}.jsonl") for number, file in enumerate(texts)]
    if plain:
        listed = ", ".join(map(file_text, plain))
        selects.append(f"select json as record from read_json_objects([{listed}], format = 'newline_delimited')")
    return selects


def _pointed(part: str) -> str:
    """A key in a JSON pointer."""
    return part.replace("~", "~0").replace("/", "~1")


def _check_records(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], clicks: Sequence[str]) -> None:
    counted = "select count(*) filter (kind = 'query'), count(*) filter (kind = 'event') from records"
    ((queries, events),) = connection.execute(counted).fetchall()
    where = ", ".join(map(str, files))
    if not queries and not events:
        objects = "from written where json_type(record) = 'OBJECT'"
        fields = connection.execute(f"select json_keys(record) {objects} limit 1").fetchall()
        if fields and {"items", "clicks"} <= set(fields[0][0]):
            raise LogError(
                f"{where}: no query_response_hit_ids and no action_name, but items and clicks: these are already "
                "lists, such as prudent split writes. Leave out --format (in Python, use prudent.Log)."
            )
    if not queries:
        kinds = "only events" if events else "neither queries nor events"
        hits = "" if events else " From the response to a search, write one hit per line: jq -c '.hits.hits[]'."
        raise LogError(
            f"{where}: {kinds}. Add the records of queries, which have a query_id and, preferably, "
            f"query_response_hit_ids.{hits}"
        )
    if not events:
        raise LogError(f"{where}: only queries. Add the records of events, which have an action_name.")
    by_action = dict(
        connection.execute(
            "select action, count(*) from records where kind = 'event' group by action order by count(*) desc, action"
        ).fetchall()
    )
    if not any(action in by_action for action in clicks):
        named = ", ".join(f"{action!r} ({n:,})" for action, n in list(by_action.items())[:_ACTIONS_TO_NAME])
        raise LogError(
            f"{where}: no event has the action {' or '.join(map(repr, clicks))}.{did_you_mean(clicks[0], by_action)} "
            f"There are: {named}. Name the clicks: click_action=... (--click-action)."
        )


def _check_beside(connection: duckdb.DuckDBPyConnection, beside: Mapping[str, str]) -> None:
    for place, (name, what) in enumerate(beside.items(), start=1):
        ((found,),) = connection.execute(f"select count(segments[{place}]) from queries").fetchall()
        if not found:
            raise LogError(
                f"No query has the field {name!r}: {what} is a field of the query records, or a path such as "
                "'query_attributes.device'."
            )


def _check_clicks(connection: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> None:
    """Clicks of which none is on its list mean a missing field or ids of two kinds, not a log with few clicks."""
    if connection.execute("from clicked limit 1").fetchall():
        return
    where = ", ".join(map(str, files))
    missed = connection.execute(
        "select item, items from clicks join pages using (query_id) where item is not null order by item, items limit 1"
    ).fetchall()
    if missed:
        ((item, items),) = missed
        raise LogError(
            f"{where}: no click is on an item of its list. The first of them is on the object_id {item!r}, and its "
            f"list begins with {', '.join(map(repr, items[:3]))}: are these ids from the same field of the index?"
        )
    ((with_query, with_item),) = connection.execute("select count(query_id), count(item) from clicks").fetchall()
    if not with_query:
        raise LogError(f"{where}: no click has a query_id, so no click can be assigned to a list.")
    if not with_item:
        raise LogError(f"{where}: no click has an event_attributes.object.object_id, so the clicked item is unknown.")
    if not connection.execute("from pages limit 1").fetchall():
        raise LogError(
            f"{where}: no query has a list. Queries need query_response_hit_ids, or impression events with an "
            "event_attributes.object.object_id and an event_attributes.position.ordinal."
        )
    raise LogError(
        f"{where}: no click has the query_id of a query with a list. Are queries and events of the same days?"
    )


# --- errors ----------------------------------------------------------------------------------------------------


def _explain(error: duckdb.Error, files: Sequence[Path]) -> LogError | WriteError:
    """The error with the line that caused it, or else with DuckDB's own message."""
    message, where = str(error), ", ".join(map(str, files))
    if isinstance(error, duckdb.OutOfMemoryException):
        return LogError(f"Reading {where} needs more memory than allowed: {first_line(error)} Raise --memory.")
    if "Could not write" in message or "No space left" in message:
        return WriteError(
            f"Cannot write temporary files while reading {where}: {reason(error)}. Set TMPDIR to a folder with space."
        )
    texts = [file for file in files if file_format([file]) == "jsonl"]
    return LogError(
        (json_fault(texts, {}) if "JSON" in message else None) or f"Cannot read {where}: {first_line(error)}"
    )
