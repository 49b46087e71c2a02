"""Single impressions in DuckDB: from the view `source` to a file with the columns of counts."""

from pathlib import Path

import duckdb

from prudent.engines.base import tally_of
from prudent.engines.duckdb.open import OpenTable, context_as, context_type, name_as
from prudent.engines.duckdb.reject import click_as, position_as, rewards
from prudent.engines.duckdb.rewards import SUMS, check_sums
from prudent.engines.sql.impressions import CODE_OF_CELL, impression_fault
from prudent.logs.log import REASONS, Log
from prudent.storage.counts_file import REWARD_COLUMNS
from prudent.storage.manifest import Tally
from prudent.storage.quoting import text


def count_impressions(connection: duckdb.DuckDBPyConnection, log: Log, source: OpenTable, to: Path) -> Tally:
    """Write what a log in the layout ``impressions`` has, context by context in the order of their names."""
    connection.execute("set preserve_insertion_order = false")  # the order of impressions means nothing
    connection.execute(f"create temp view impressions as {_impressions(log, source)}")
    sums = f", {SUMS}" if log.reward is not None else ""
    cells = f"select fault, context, item, {CODE_OF_CELL} as code, count(*) as n{sums} from impressions where fault = 0"
    nothing = ", null as reward, null as reward_squares" if sums else ""
    rejected = (
        f"select fault, null as context, null as item, null as code, count(*) as n{nothing} "
        "from impressions where fault > 0"
    )
    connection.execute(f"create temp table counted as ({cells} group by all) union all ({rejected} group by all)")
    numbers = [0] * (len(REASONS) + 1)
    for fault, n in connection.execute("select fault, sum(n)::bigint from counted group by fault").fetchall():
        numbers[fault] = n
    items = (
        "select context, item, count(*) as cells, list(code order by code) as code, list(n order by code) as n"
        f"{', sum(reward) as reward, sum(reward_squares) as reward_squares' if sums else ''} "
        "from counted where fault = 0 group by context, item"
    )
    rewards = "".join(f", list({name}::bigint order by item) as {name}" for name in REWARD_COLUMNS if sums)
    contexts = (
        "select context, list(item order by item) as items, list(cells::integer order by item) as cells, "
        "flatten(list(code order by item)) as code, flatten(list(n::bigint[] order by item)) as n, "
        "null::bigint[] as list_n, null::integer[] as list_length, null::integer[] as list_items, "
        f"null::boolean[] as list_clicks{rewards} from ({items}) group by context order by context"
    )
    if sums:
        connection.execute(f"create temp view rewarded as {items}")
        check_sums(connection, "rewarded")
    connection.execute(f"copy ({contexts}) to {text(to)} (format parquet)")
    return tally_of(log, numbers)


def _impressions(log: Log, source: OpenTable) -> str:
    """One row per impression: context, item, position, click, fault and, where the log names it, the reward."""
    kinds = source.types
    context, item = context_as(log, source), name_as("item", kinds["item"], log)
    first, columns = log.first_position, log.grid_width
    if columns is None:
        place, row, column = position_as("position", kinds["position"]), "null", "null"
        position = f"({place})::hugeint + {1 - first}"
    else:
        row, column = (f"({position_as(name, kinds[name])})::hugeint - {first}" for name in ("grid_row", "grid_column"))
        position = f"row_place * {columns:d} + column_place + 1"
    nul = [
        f"contains({name}, chr(0))"
        for name, kind in (("context", context_type(log, source)), ("item", kinds["item"]))
        if kind == "VARCHAR" and source.kind in ("csv", "jsonl")
    ]
    odd = source.kind == "jsonl"
    rewarded = log.reward is not None
    fault = impression_fault(log.max_positions, odd=odd, nul=" or ".join(nul), columns=columns, rewards=rewarded)
    named = (
        f"select {context} as context, {item} as item, {click_as('click', kinds['click'])} as click, "
        f"{rewards(log, source)} {row} as row_place, {column} as column_place{', odd' if odd else ''}"
        f"{', position' if columns is None else ''} from source"
    )
    placed = f"select *{' exclude (position)' if columns is None else ''}, {position} as position from ({named})"
    reward = "" if log.reward is None else "reward, "
    return f"select context, item, click, position, {reward}{fault} as fault from ({placed})"
