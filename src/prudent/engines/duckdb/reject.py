"""Which lists of a log are rejected, and how many: from the view `source` to `lists` and `checked`."""

from collections.abc import Mapping

import duckdb

from prudent.base.errors import LogError
from prudent.engines.duckdb.open import INTEGERS, OpenTable, context_as, context_type, name_as
from prudent.engines.sql import rules
from prudent.logs.hygiene import VISIT, kinds_left_out
from prudent.logs.log import CLICKED, LISTS, MOST_REWARD, REASONS, Log
from prudent.storage.manifest import Tally
from prudent.storage.run import REWARD_UNITS


def lists(log: Log, source: OpenTable) -> str:
    """One row per list: context, items, clicks, the fault that it has before it is checked, and its copies."""
    return _from_lists(log, source) if log.layout == "lists" else _from_rows(log, source)


def _from_lists(log: Log, source: OpenTable) -> str:
    columns = [meaning for meaning in log.columns if meaning in LISTS]
    for meaning in columns:
        if not source.types[meaning].endswith("[]"):
            raise not_a_list(log, meaning, source.types[meaning])
    kinds = {meaning: source.types[meaning][:-2] for meaning in columns}
    name = name_as("items", kinds["items"], log)
    clicks, fault = _clicks(log, kinds)
    return f"""
        select {context_as(log, source)} as context,
            {"items" if name == "items" else f"list_transform(items, lambda items: {name})"} as items,
            {clicks} as clicks,
            {"" if log.propensity is None else f"{_propensities(source.types['propensity'])} as propensity,"}
            {rewards(log, source)}
            {_beside(log, "{0}::varchar as {0}")}
            1 as copies, {rules.list_fault(source.kind == "jsonl", fault)} as fault
        from source
    """


def _clicks(log: Log, kinds: Mapping[str, str]) -> tuple[str, str]:
    """A 0 or 1 for each item, and what is wrong with what they are made of."""
    if "clicks" in kinds:
        click = click_as("clicks", kinds["clicks"])
        return "clicks" if click == "clicks" else f"list_transform(clicks, lambda clicks: {click})", ""
    if "clicked_items" in kinds:
        check_clicked_items(log, *(kinds[meaning] in INTEGERS for meaning in ("items", "clicked_items")))
        clicked = "clicked_items"
        found, outside = f"list_contains({clicked}, item)", f"not list_has_all(items, {clicked})"
        unknown = f"list_count({clicked}) < len({clicked})"
    else:
        position = position_as("p", kinds["clicked_positions"])
        clicked = f"list_transform(clicked_positions, lambda p: {position})"
        first = log.first_position
        found = f"list_contains({clicked}, k - 1 + {first})"
        outside = f"list_min({clicked}) < {first} or list_max({clicked}) >= len(items) + {first}"
        unknown = f"list_count({clicked}) < len(clicked_positions)"
    fault = rules.clicked_fault(next(m for m in kinds if m in CLICKED), f"{unknown} or {outside}")
    return f"list_transform(items, lambda item, k: {found}::tinyint)", fault


def check_clicked_items(log: Log, items_whole: bool, clicked_whole: bool) -> None:
    """Raise where items are text, and clicked items integers, or the other way round."""
    if items_whole != clicked_whole:
        kinds = ["integers" if whole else "text" for whole in (items_whole, clicked_whole)]
        raise LogError(
            f"The items in {log.items!r} are {kinds[0]}, and those clicked in {log.clicked_items!r} {kinds[1]}. "
            "Convert one of them: 7 and '7' are two names."
        )


def not_a_list(log: Log, meaning: str, kind: str) -> LogError:
    """The error where a column of the layout ``lists`` has another type."""
    return LogError(
        f"The column {log.columns[meaning]!r} for the {meaning} is {kind.lower()}, not a list. A log with one row per "
        'shown item has the layout "rows": layout="rows" (--layout rows).'
    )


def _from_rows(log: Log, source: OpenTable) -> str:
    # Rows without an impression id belong to no list. They are one group, which keeps none of its rows and counts each
    # of them as a rejected list.
    odd, first = source.kind == "jsonl", log.first_position
    distinct = "distinct" if "duplicates" in kinds_left_out(log) else ""
    fault = rules.row_fault(
        odd=odd,
        whole=f"positions = rows and least = {first} and most = rows - 1 + {first} and not repeated",
        repeated="repeated",
    )
    return f"""
        select first_context as context, items, clicks, {"" if log.propensity is None else "propensity,"}
            {"" if log.reward is None else "rewards,"}
            {_beside(log, "{0}")}{"rows, " if distinct else ""}
            case when impression is null then rows else 1 end as copies, {fault} as fault
        from (
            select impression, count(*) as rows, count(context) as contexts,
                min(context) as first_context, max(context) as last_context,
                list(item order by position) filter (impression is not null) as items,
                list(click order by position) filter (impression is not null) as clicks,
                {"" if log.propensity is None else "list(propensity order by position) as propensity,"}
                {"" if log.reward is None else "list(reward order by position) as rewards,"}
                {_beside(log, "first({0} order by position) as {0}")}
                {"bool_or(odd) as odd," if odd else ""}
                count(position) as positions, min(position) as least, max(position) as most,
                count(distinct position) < count(position) as repeated
            from (
                select {distinct} impression, {"odd," if odd else ""}
                    {context_as(log, source)} as context,
                    {name_as("item", source.types["item"], log)} as item,
                    {click_as("click", source.types["click"])} as click,
                    {"" if log.propensity is None else "try_cast(propensity as double) as propensity,"}
                    {rewards(log, source)}
                    {_beside(log, "{0}::varchar as {0}")}
                    {position_as("position", source.types["position"])} as position
                from source
            )
            group by impression
        )
    """


def position_as(column: str, kind: str) -> str:
    """An integer, or null; a cast alone would round 1.5 to 2, and true is no position in JSON either."""
    number = f"try_cast({column} as double)"
    whole = f"case when {number} = floor({number}) then try_cast({column} as bigint) end"
    return "null::bigint" if kind == "BOOLEAN" else whole


def _beside(log: Log, template: str) -> str:
    """A column for each segment, the user and the time, with a comma behind it."""
    beside = [*log.segments, *(name for name in VISIT if name in log.columns)]
    return "".join(f"{template.format(name)}, " for name in beside)


def _segments(log: Log, template: str) -> str:
    """A column for each segment, with a comma behind it."""
    return "".join(f"{template.format(name)}, " for name in log.segments)


def checked(log: Log, source: OpenTable) -> str:
    """The lists, each with the number of the reason to reject it, or 0."""
    items = source.types["items"] if log.layout == "lists" else source.types["item"]
    # Only text files contain NUL bytes by accident; elsewhere the search would cost time and find nothing.
    kinds = {"context": context_type(log, source), "items": items} if source.kind in ("csv", "jsonl") else {}
    text = [name for name, kind in kinds.items() if kind.startswith("VARCHAR")]
    number = None
    if log.propensity is not None:
        number = "<> len(items)" if source.types["propensity"].endswith("[]") else "not in (1, len(items))"
    why = rules.rejection(log.max_positions, text=text, propensity=number, rewards=log.reward is not None)
    return f"select *, {why} as reason from lists"


def reward_as(column: str, kind: str) -> str:
    """A reward in thousandths, or null where it is none that can be counted."""
    if kind not in (*INTEGERS, "FLOAT", "DOUBLE", "VARCHAR", "BOOLEAN", "HUGEINT") and not kind.startswith("DECIMAL"):
        return "null::bigint"
    number = f"try_cast({column} as double)" if kind != "BOOLEAN" else f"{column}::int::double"
    # NaN is above every number, but in no footer of Parquet: by that, DuckDB may take the condition for true.
    units = f"try_cast(floor({number} * {REWARD_UNITS} + 0.5) as bigint)"
    return f"case when {number} between 0 and {MOST_REWARD} then {units} end"


def rewards(log: Log, source: OpenTable) -> str:
    """The column of rewards, with a comma behind it."""
    if log.reward is None:
        return ""
    if log.layout != "lists":
        return f"{reward_as('reward', source.types['reward'])} as reward,"
    each = reward_as("reward", source.types["rewards"].removesuffix("[]"))
    return f"list_transform(rewards, lambda reward: {each}) as rewards,"


def _propensities(kind: str) -> str:
    """A list of numbers: one for each position, or a single one for the whole list; null where there is no number."""
    if kind.endswith("[]"):
        return "list_transform(propensity, lambda p: try_cast(p as double))"
    whole = "[try_cast(propensity as double)]"
    if kind != "VARCHAR":
        return whole
    # In JSON a list is still the text in the file.
    return f"case when ltrim(propensity)[1] = '[' then try_cast(propensity as double[]) else {whole} end"


def cut_lists(log: Log, length: int | None) -> str:
    """The accepted lists, cut after `length` positions."""
    upto = "" if length is None else f"[1:{length:d}]"
    propensity = "" if log.propensity is None else ", propensity"
    if propensity and length is not None:
        # The propensity of a cut list does not follow from that of the whole list.
        whole = f"len(propensity) = 1 and len(items) > {length:d}"
        propensity = f", case when {whole} then [null::double] else propensity{upto} end as propensity"
    rewards = "" if log.reward is None else f", rewards{upto} as rewards"
    lists = f"items{upto} as items, clicks{upto} as clicks{propensity}{rewards}"
    return f"select {_segments(log, '{0}')} context, {lists} from checked where reason = 0"


def click_as(column: str, kind: str) -> str:
    """0 or 1, or null where the value is neither."""
    if kind in INTEGERS:
        return column
    if kind == "VARCHAR":
        number = f"try_cast({column} as double)"  # such as 1.0, from a column that once had missing values
        return f"case lower(trim({column})) {rules.CLICK_WORDS} else case {number} when 0 then 0 when 1 then 1 end end"
    if kind == "BOOLEAN":
        return f"{column}::tinyint"
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        return f"case when {column} = 0 then 0 when {column} = 1 then 1 end"
    return "null"


def count_rejected(connection: duckdb.DuckDBPyConnection, counted: int) -> Tally:
    """Accepted and rejected lists; the reasons take a second pass, and only where some were rejected."""
    ((everything,),) = connection.execute("select coalesce(sum(copies), 0)::bigint from lists").fetchall()
    if counted == everything:
        return Tally(counted)
    rejected = connection.execute(
        "select reason, sum(copies)::bigint from checked where reason > 0 group by reason order by reason"
    ).fetchall()
    return Tally(counted, {REASONS[code - 1]: n for code, n in rejected})
