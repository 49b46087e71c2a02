"""The rejection rules as SQL text."""

import re

import duckdb
import pytest

from prudent.engines.sql import rules
from prudent.logs.log import CODE


def test_the_most_basic_reason_comes_first() -> None:
    text = rules.rejection(4, text=["context", "items"], propensity="<> 1")
    codes = [int(code) for code in re.findall(r"then (\d+)", text)]
    assert codes == sorted(codes)


@pytest.mark.parametrize(
    ("items", "clicks", "reason"),
    [
        (["a", "b"], [0, 1], None),
        ([], [], "empty list"),
        (["a"], [0, 1], "items and clicks differ in length"),
        (["a", "b", "c", "d"], [0, 1, 0, 1], None),
        (["a", "b", "c", "d", "a"], [0, 1, 0, 1, 2], "too many positions"),
        (["a", None], [0, 1], "item missing"),
        (["a", "b"], [0, 2], "click other than 0 or 1"),
        (["a", "a"], [0, 1], "duplicate item in a list"),
        (["a", "b\0"], [0, 1], "NUL byte in a name"),
    ],
)
def test_rules_in_duckdb(items: list[str | None], clicks: list[int], reason: str | None) -> None:
    lists = "select 'c' as context, ?::varchar[] as items, ?::int[] as clicks, 0 as fault"
    actual = duckdb.execute(f"select {rules.rejection(4, text=['items'])} from ({lists})", [items, clicks])
    assert actual.fetchall() == [(CODE[reason] if reason else 0,)]
