"""Single impressions in Spark: from rows to one row per context, as counts files have it. Needs pyspark."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (as everybody calls it)

from prudent.engines.sql.impressions import CODE_OF_CELL, impression_fault
from prudent.logs.log import Log
from prudent.storage.counts_file import MOST_REWARDS, REWARD_COLUMNS

OF_LISTS = (
    "cast(null as array<bigint>) as list_n",
    "cast(null as array<int>) as list_length",
    "cast(null as array<int>) as list_items",
    "cast(null as array<boolean>) as list_clicks",
)


def impressions_of(rows: DataFrame, log: Log, text_files: bool) -> DataFrame:
    """One row per impression: context, item, position, click, fault and, where the log names it, the reward."""
    reward = [] if log.reward is None else ["reward"]
    first, columns, odd = log.first_position, log.grid_width, "odd" in rows.columns
    kinds = dict(rows.dtypes)
    if columns is None:
        row = column = "null"
        position = f"cast(position as decimal(20, 0)) + {1 - first}"
    else:
        row, column = (f"(cast({name} as decimal(20, 0)) - {first})" for name in ("grid_row", "grid_column"))
        position = f"{row} * {columns:d} + {column} + 1"
    nul = [f"contains({name}, chr(0))" for name in ("context", "item") if text_files and kinds[name] == "string"]
    rewarded = log.reward is not None
    fault = impression_fault(log.max_positions, odd=odd, nul=" or ".join(nul), columns=columns, rewards=rewarded)
    placed = rows.selectExpr(
        "context",
        "item",
        "click",
        f"{row} as row_place",
        f"{column} as column_place",
        f"{position} as position",
        *reward,
        *(["odd"] if odd else []),
    )
    return placed.selectExpr("context", "item", "click", "position", *reward, f"{fault} as fault")


def contexts_of(impressions: DataFrame) -> DataFrame:
    """One row per context, in the columns of a counts file, and how many `lists` it has, of which none are kept.

    A sum of rewards that does not fit is `MOST_REWARDS`.
    """
    good, rewards = impressions.where("fault = 0"), REWARD_COLUMNS if "reward" in impressions.columns else ()
    earned = {"reward": "reward", "reward_squares": "reward * reward"}
    wide = [f"cast({earned[name]} as decimal(38, 0)) as {name}" for name in rewards]
    coded = good.selectExpr("context", "item", f"{CODE_OF_CELL} as code", *wide).groupBy("context", "item", "code")
    cells = coded.agg(F.expr("count(*) as n"), *(F.expr(f"sum({name}) as {name}") for name in rewards))
    pairs = cells.withColumn("cell", F.struct("code", "n")).groupBy("context", "item")
    capped = (F.expr(f"cast(least(sum({name}), {MOST_REWARDS}) as bigint) as {name}") for name in rewards)
    items = pairs.agg(F.sort_array(F.collect_list("cell")).alias("cells"), *capped)
    items = items.withColumn("one", F.struct("item", "cells", *rewards))
    contexts = items.groupBy("context").agg(F.sort_array(F.collect_list("one")).alias("ones"))
    return contexts.selectExpr(
        "context",
        "ones.item as items",
        "transform(ones, one -> size(one.cells)) as cells",
        "flatten(transform(ones, one -> one.cells.code)) as code",
        "flatten(transform(ones, one -> one.cells.n)) as n",
        *OF_LISTS,
        *(f"ones.{name} as {name}" for name in rewards),
        "0L as lists",
    )
