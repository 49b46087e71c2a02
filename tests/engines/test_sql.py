"""The text that both engines share, in both dialects."""

import re

import duckdb
import pytest

from prudent.engines.sql import rules
from prudent.engines.sql.dialect import DUCKDB, SPARK, Dialect
from prudent.logs.log import CODE


@pytest.mark.parametrize("dialect", [DUCKDB, SPARK])
def test_the_rules_differ_in_names_of_functions_alone(dialect: Dialect) -> None:
    text = rules.rejection(dialect, 4, text=["context", "items"], propensity="<> 1")
    codes = [int(code) for code in re.findall(r"then (\d+)", text)]
    assert codes == sorted(codes), "most basic first"
    for named, template in ((dialect.size, "len"), (dialect.minimum, "list_min"), (dialect.maximum, "list_max")):
        text = re.sub(rf"\b{named}\(", f"{template}(", text)
    for column in ("items", "clicks", "propensity"):
        text = text.replace(dialect.has_null(column), DUCKDB.has_null(column))
    condition = "contains(item, chr(0))"
    text = text.replace(dialect.where("items", "item", condition), DUCKDB.where("items", "item", condition))
    assert text == rules.rejection(DUCKDB, 4, text=["context", "items"], propensity="<> 1")


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
    actual = duckdb.execute(f"select {rules.rejection(DUCKDB, 4, text=['items'])} from ({lists})", [items, clicks])
    assert actual.fetchall() == [(CODE[reason] if reason else 0,)]
