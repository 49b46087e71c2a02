"""Leaving out duplicates, bots and lists beyond a user's clicks, in DuckDB: from the view `source` to `lists`."""

from dataclasses import replace

import duckdb
import numpy as np

from prudent.engines.duckdb import reject
from prudent.engines.duckdb.open import OpenTable, opened
from prudent.engines.sql import hygiene
from prudent.logs.bots import Clicking, clicking_bots
from prudent.logs.hygiene import Findings, everything_of, kinds_left_out, leaves_out, left_out
from prudent.logs.log import Log
from prudent.storage.database import Database

_DIALECT = hygiene.Dialect(
    length="len(items)",
    clicks="len(list_filter(clicks, lambda click: click = 1))",
    content="array_to_string(items, chr(31)), array_to_string(clicks, ',')",
    rewards="array_to_string(rewards, ',')",
)


def make_lists(
    connection: duckdb.DuckDBPyConnection, log: Log, source: OpenTable, kept: str = "view", where: str = "true"
) -> Log:
    """Make the relation `lists` of a log without what is left out; the log, with how much that is."""
    if not leaves_out(log):
        connection.execute(f"create temp {kept} lists as select * from ({reject.lists(log, source)}) where {where}")
        return log
    findings = _mark(connection, log, source)
    connection.execute(f"create temp view lists as select * from marked where why = 0 and {where}")
    return replace(log, left_out={**log.left_out, **findings.left_out})


def find_unwanted(database: Database, log: Log) -> Findings:
    """What a log has that could be left out, and how many users are bots."""
    with database.connect() as connection, opened(connection, log) as source:
        return _mark(connection, everything_of(log), source)


def _mark(connection: duckdb.DuckDBPyConnection, log: Log, source: OpenTable) -> Findings:
    """Make the table `marked` of lists, each with the reason to leave it out."""
    kinds = kinds_left_out(log)
    columns = hygiene.measures(_DIALECT, duplicates="duplicates" in kinds, rewards=log.reward is not None)
    measured = ", ".join(f"{text} as {name}" for name, text in columns.items())
    visit = "".join(f", null::varchar as {name}" for name in ("user1", "shown_at") if name not in log.columns)
    connection.execute(
        f"create temp table every as select *, {measured} from (select *{visit} from ({reject.lists(log, source)}))"
    )
    users = _users(connection)
    bots = 0
    is_bot = "false"
    if "bots" in kinds:
        clicking = hygiene.bot(clicking_bots(users))
        connection.execute(f"create temp table bots as select user1, true as bot from users where {clicking}")
        ((bots,),) = connection.execute("select count(*) from bots").fetchall()
        is_bot = "bot is not null"
    joined = "every left join bots using (user1)" if "bots" in kinds else "every"
    marked = f"select every.*, {hygiene.mark(is_bot)} as why from {joined}"
    connection.execute(
        f"create temp table marked as select * replace ({hygiene.beyond(log.max_user_clicks)} as why) from ({marked})"
    )
    lists = dict(connection.execute("select why, count(*) from marked group by why").fetchall())
    rows = 0
    if log.layout == "rows" and "duplicates" in kinds:
        query = "select (select count(*) from source) - (select coalesce(sum(rows), 0) from every)"
        ((rows,),) = connection.execute(query).fetchall()
    ((times,),) = connection.execute("select count(minute) from every").fetchall()
    return Findings(left_out(log, lists, int(rows)), int(users.users.sum()), bots, times > 0)


def _users(connection: duckdb.DuckDBPyConnection) -> Clicking:
    """Make the table `users` of totals, and how many have as many impressions and clicks."""
    by_minute, by_user = (
        ", ".join(f"{text} as {name}" for name, text in columns.items())
        for columns in (hygiene.BY_MINUTE, hygiene.BY_USER)
    )
    minutes = f"select user1, {by_minute} from every where {hygiene.COUNTED} group by user1, minute"
    connection.execute(f"create temp table users as select user1, {by_user} from ({minutes}) group by user1")
    found = connection.execute(
        "select shown, clicked, count(*) from users group by all order by shown, clicked"
    ).fetchall()
    return Clicking(*np.array(found, np.int64).reshape(-1, 3).T)
