"""The lift in each segment of the traffic, such as devices or markets, by the estimator of the gate."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from prudent.base.errors import LogError
from prudent.counts.lists_with_columns import list_columns
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.estimators import Estimator
from prudent.evaluation.holdout_log import read_holdout
from prudent.evaluation.intervals import Settings, estimate
from prudent.logs.log import Log
from prudent.policies.policy import Policy
from prudent.reporting.changes import traffic
from prudent.storage.quoting import file_text, text

MOST_VALUES = 12
"""Values of a segment that are estimated, those with the most lists first."""


def estimate_segments(
    policy: Policy, log: Log, accepted: Path, engine: DuckDB, estimator: Estimator, settings: Settings
) -> list[dict[str, Any]]:
    """For each column that the log names as a segment its values, each with its share of traffic and its lift.

    accepted
        Parquet file of the accepted lists: context, items, clicks, segments and, where they are named, propensity and
        rewards.
    """
    source = f"read_parquet({file_text(accepted)})"
    segments = []
    for column, name in log.segments.items():
        connection = engine.open()
        value = f"{column}::varchar"
        rows = connection.execute(
            f"select {value} as value, count(*) as lists from {source} group by value order by lists desc, value"
        ).fetchall()
        every = sum(lists for _, lists in rows)
        values = []
        for one, lists in rows[:MOST_VALUES]:
            where = f"{value} is null" if one is None else f"{value} = {text(one)}"
            columns = list_columns(replace(log, segment=()))
            part = Log(
                connection.sql(f"select {columns} from {source} where {where}"),
                propensity=None if log.propensity is None else "propensity",
                reward=None if log.reward is None else "rewards",
                max_positions=log.max_positions,
            )
            values.append({"value": one, "lists": lists, "share": lists / every})
            values[-1] |= _estimate(policy, part, engine, estimator, settings)
        segments.append({"name": name, "values": values, "more": len(rows) - len(values)})
    return segments


def _estimate(policy: Policy, part: Log, engine: DuckDB, estimator: Estimator, settings: Settings) -> dict[str, Any]:
    try:
        held = read_holdout(policy, part, engine, 1.0).lists
    except LogError as error:
        return {"changes": None, "lift": None, "lift_low": None, "lift_high": None, "why": str(error)}
    (one,) = estimate(held, [estimator], settings)
    return {
        "changes": traffic(held)["any"],
        "lift": one.lift,
        "lift_low": one.lift_low,
        "lift_high": one.lift_high,
        "why": "" if one.lift is not None else one.why or "The lift is not defined.",
    }
