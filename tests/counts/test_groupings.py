"""Which group a pair belongs to: hosts, normal forms of queries, columns of tables."""

from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.errors import LogError, UsageError
from prudent.counts.cells import Cells
from prudent.counts.groupings import OF_CONTEXTS, OF_ITEMS, GroupBy, open_groupings
from prudent.counts.groups import NO_GROUP
from prudent.counts.index import Part
from prudent.engines.kernel import keys_of
from prudent.storage.run import NameColumn

TEXT = ("VARCHAR", "VARCHAR")


def names(*values: str | int) -> NameColumn:
    if values and isinstance(values[0], int):
        return NameColumn(np.array(values, np.int64))
    raw = [str(value).encode() for value in values]
    return NameColumn(np.frombuffer(b"".join(raw), np.uint8), np.cumsum([len(one) for one in raw]))


def part(contexts: NameColumn, items: NameColumn, context: list[int]) -> Part:
    none = np.zeros(0, np.int64)
    cells = Cells.of_columns(
        np.array(context), none, none, none, none.astype(bool), none.astype(bool), none.astype(float)
    )
    return Part(cells, np.ones(len(context), bool), contexts, items)


def same(found: np.ndarray) -> list[list[int]]:
    """Rows by group, those without one left out."""
    return [np.flatnonzero(found == key).tolist() for key in dict.fromkeys(found.tolist()) if key != NO_GROUP]


def test_hosts() -> None:
    urls = [
        "https://www.shop.com/a",
        "http://user@SHOP.com:80/b?c",
        "shop.com",
        "//shop.com#x",
        "https://other.org",
        "plain item",
        "7",
        "",
        "https://",
        "ftp://other.org/file.txt",
    ]
    found = OF_ITEMS["host"](names(*urls))
    assert same(found) == [[0, 1, 2, 3], [4, 9]]
    for row, url in enumerate(urls):
        host = (urlsplit(url if "//" in url else f"//{url}").hostname or "").removeprefix("www.")
        assert (found[row] != NO_GROUP) == ("." in host)
    assert not OF_ITEMS["host"](names(7, 8)).any(), "integers have no host"


def test_queries_in_normal_form() -> None:
    found = OF_CONTEXTS["query"](
        names("Running  shoes", "shoes running", "shoes, RUNNING!", "running shoe", "Ünï", "ünï ", "?!", "")
    )
    assert same(found) == [[0, 1, 2], [3], [4, 5]]


assigned = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs", "Cn"]), max_size=4)


@settings(max_examples=100, deadline=None)
@given(texts=st.lists(assigned | st.text("Ab.:/@?#wW-éẞ́ 1ﬁ²Σİ", max_size=12), min_size=1, max_size=20))
def test_a_request_finds_the_groups_of_the_log(texts: list[str]) -> None:
    """For a few names the groups are made without SQL; letters that Python's Unicode does not have are none to it."""
    for derived in (*OF_ITEMS.values(), *OF_CONTEXTS.values()):
        np.testing.assert_array_equal(derived.few(texts), derived(names(*texts)))


def test_keys_are_the_same_on_every_machine() -> None:
    """Spark's workers make keys of their own, and the prior of a policy keeps them."""
    assert keys_of(names("", "a", "shoes", "x" * 100)).tolist() == EXPECTED_TEXT
    assert keys_of(names(0, 1, -1)).tolist() == EXPECTED_INTEGERS
    many = names(*(f"item {i}" for i in range(50_000)))
    assert len(np.unique(keys_of(many))) == 50_000


EXPECTED_TEXT = [1, -6012589419654151255, -6563058432951846613, 1624843687048696746]
EXPECTED_INTEGERS = [1, -3890943948839090055, -7139391786603538841]


def test_groupings_of_contexts_are_a_level_and_the_item_within(tmp_path: Path) -> None:
    table = tmp_path / "contexts.csv"
    table.write_text("context,topic\nq1,sport\nq2,sport\nq3,\n", encoding="utf-8")
    groupings = open_groupings(GroupBy(["item"], None, table), prudent.DuckDB(), TEXT)
    assert groupings.names == ("item", "topic", "topic × item")
    keys = groupings.keys(part(names("q1", "q2", "q3", "q4"), names("a", "b", "a", "a", "a"), [0, 0, 1, 2, 3]))
    item, topic, within = keys.values.T
    assert same(item) == [[0, 2, 3, 4], [1]]
    assert same(topic) == [[0, 1, 2]]
    assert same(within) == [[0, 2], [1]]
    assert keys.alone == (True, False, True)


def test_tables_of_items(tmp_path: Path) -> None:
    table = tmp_path / "items.parquet"
    rows = "(values (1, 'x', 10), (2, 'x', 20), (3, null, 10)) as t(item, brand, \"price band\")"
    duckdb.execute(f"copy (from {rows}) to '{table}'")
    groupings = open_groupings(GroupBy("", table), prudent.DuckDB(), ("VARCHAR", "BIGINT"))
    assert groupings.names == ("brand", "price band")
    brand, price = groupings.keys(part(names("q"), names(1, 2, 3, 4), [0, 0, 0, 0])).values.T
    assert same(brand) == [[0, 1]]
    assert same(price) == [[0, 2], [1]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("item\na\n", "has no groupings: besides item"),
        ("product,brand\na,x\n", "has no column 'item'"),
        ("item,brand\n", "has no rows"),
        ("item,brand\na,x\na,y\n", "several groups of one grouping for 1 of its items"),
        ("item,item2,host\na,x,y\n", "two groupings 'host'"),
    ],
)
def test_tables_that_cannot_be(tmp_path: Path, content: str, message: str) -> None:
    table = tmp_path / "items.csv"
    table.write_text(content, encoding="utf-8")
    with pytest.raises((LogError, UsageError), match=message):
        open_groupings(GroupBy("host", table), prudent.DuckDB(), TEXT)


def test_unknown_groupings() -> None:
    with pytest.raises(UsageError, match=r"no grouping 'hots'\. Did you mean 'host'"):
        open_groupings(GroupBy("item,hots"), prudent.DuckDB(), TEXT)
