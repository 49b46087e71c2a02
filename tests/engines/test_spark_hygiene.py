"""Spark leaves out what DuckDB leaves out."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import prudent
from tests.engines.test_spark import assert_same
from tests.logs.visits import visits

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
NAMES: dict[str, Any] = {"user": "who", "shown_at": "at"}


@pytest.mark.parametrize(
    "settings",
    [
        NAMES,
        {**NAMES, "leave_out": ("duplicates", "bots")},
        {**NAMES, "leave_out": ("duplicates", "bots"), "max_user_clicks": 4},
        {"user": "who", "max_user_clicks": 2},
    ],
)
def test_lists(settings: dict[str, Any], quick: SparkSession) -> None:
    table = pa.Table.from_pylist(visits(1))
    frame = quick.createDataFrame(table)
    assert_same(prudent.Log(table, **settings), prudent.Log(frame, **settings), prudent.Spark(quick))


def test_rows(quick: SparkSession) -> None:
    rows = [
        {"impression": n, "context": "q", "item": f"i{k}", "position": k, "click": int(k == n % 4), "who": f"u{n % 5}"}
        for n in range(20)
        for k in (1, 2, 3)
    ]
    table = pa.Table.from_pylist([*rows, *rows[:3], *rows[10:11]])
    settings: dict[str, Any] = {"layout": "rows", "user": "who", "leave_out": "duplicates", "max_user_clicks": 2}
    _, _, tally = assert_same(
        prudent.Log(table, **settings), prudent.Log(quick.createDataFrame(table), **settings), prudent.Spark(quick)
    )
    assert set(tally.left_out) == {"duplicate rows", "lists beyond 2 clicks of a user"}
    assert tally.left_out["duplicate rows"] == 4
