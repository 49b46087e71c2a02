"""Leaving out duplicates, bots and lists beyond a user's clicks, in Spark. Needs pyspark."""

from dataclasses import replace

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (as everybody calls it)

from prudent.engines.sql import hygiene
from prudent.logs.bots import Clicking, clicking_bots
from prudent.logs.hygiene import kinds_left_out, leaves_out, left_out
from prudent.logs.log import Log

_DIALECT = hygiene.Dialect(
    length="size(items)",
    clicks="size(filter(clicks, click -> click = 1))",
    content="array_join(cast(items as array<string>), chr(31)), array_join(cast(clicks as array<string>), ',')",
    rewards="array_join(cast(rewards as array<string>), ',')",
)


def without_left_out(lists: DataFrame, rows: DataFrame, log: Log) -> tuple[DataFrame, Log]:
    """The lists of a log, which are made of these rows, without what is left out; the log, with how much that is."""
    if not leaves_out(log):
        return lists, log
    kinds = kinds_left_out(log)
    columns = hygiene.measures(_DIALECT, duplicates="duplicates" in kinds, rewards=log.reward is not None)
    every = lists.selectExpr("*", *(f"{text} as {name}" for name, text in columns.items()))
    is_bot = "false"
    if "bots" in kinds:
        users = _users(every)
        found = users.groupBy("shown", "clicked").count().orderBy("shown", "clicked").collect()
        clicking = Clicking(*np.array([tuple(row) for row in found], np.int64).reshape(-1, 3).T)
        bots = users.where(hygiene.bot(clicking_bots(clicking))).selectExpr("user1", "true as bot")
        every, is_bot = every.join(bots, "user1", "left"), "bot is not null"
    marked = every.selectExpr("*", f"{hygiene.mark(is_bot)} as why")
    marked = marked.withColumn("why", F.expr(hygiene.beyond(log.max_user_clicks)))
    numbers = {row["why"]: row["count"] for row in marked.groupBy("why").count().collect()}
    repeated = rows.count() - rows.distinct().count() if log.layout == "rows" and "duplicates" in kinds else 0
    rewards = [] if log.reward is None else ["rewards"]
    kept = marked.where("why = 0").select("context", "items", "clicks", "fault", "copies", *rewards)
    return kept, replace(log, left_out={**log.left_out, **left_out(log, numbers, repeated)})


def _users(every: DataFrame) -> DataFrame:
    """Totals of users."""
    by_minute, by_user = (
        [F.expr(text).alias(name) for name, text in columns.items()] for columns in (hygiene.BY_MINUTE, hygiene.BY_USER)
    )
    return every.where(hygiene.COUNTED).groupBy("user1", "minute").agg(*by_minute).groupBy("user1").agg(*by_user)
