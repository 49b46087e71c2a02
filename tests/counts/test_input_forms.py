"""Logs as people have them: clicked items or positions, positions from 0, contexts of several columns."""

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import prudent
from prudent.base.errors import LogError, UsageError
from prudent.logs.contexts import context_name
from prudent.logs.log import as_log
from tests.command import run
from tests.reference import LoggedList
from tests.strategies import logs, rows, table


def with_forms(lists: list[LoggedList]) -> pa.Table:
    """The log in the layout `lists`, and its clicks in every form."""
    clicked = {
        "ids": [[item for item, click in zip(items, clicks, strict=True) if click] for _, items, clicks in lists],
        **{
            f"from{first}": [[k for k, click in enumerate(clicks, first) if click] for _, _, clicks in lists]
            for first in (0, 1)
        },
    }
    made = table(lists)
    for name, values in clicked.items():
        made = made.append_column(name, pa.array(values, pa.list_(pa.string() if name == "ids" else pa.int8())))
    return made


FORMS: list[dict[str, Any]] = [
    {"clicked_items": "ids"},
    {"clicked_positions": "from1"},
    {"clicked_positions": "from0", "first_position": 0},
]


@given(logs())
def test_every_form_of_clicks_counts_the_same(lists: list[LoggedList]) -> None:
    made, expected = with_forms(lists), prudent.count(table(lists))
    for form in FORMS:
        assert prudent.count(made.drop_columns("clicks"), **form) == expected


@given(logs())
def test_rows_may_count_positions_from_0(lists: list[LoggedList]) -> None:
    made = rows(lists)
    position = made.schema.get_field_index("position")
    from_zero = pa.array([place - 1 for place in made["position"].to_pylist()])
    shifted = made.set_column(position, "position", from_zero)
    expected = prudent.count(made, layout="rows")
    assert prudent.count(shifted, layout="rows", first_position=0) == expected
    with pytest.raises(LogError, match=r"If positions count from 0: first_position=0 \(--first-position 0\)\."):
        prudent.count(shifted, layout="rows")


@pytest.mark.parametrize(
    ("form", "clicked", "reason"),
    [
        ("clicked_items", [["b", "b"], None], "clicks missing"),
        ("clicked_items", [[], ["c"]], "click outside its list"),
        ("clicked_items", [[], [None]], "click outside its list"),
        ("clicked_positions", [[2, 2], None], "clicks missing"),
        ("clicked_positions", [[], [0]], "click outside its list"),
        ("clicked_positions", [[1], [3]], "click outside its list"),
        ("clicked_positions", [[1.0], [1.5]], "click outside its list"),
    ],
)
def test_clicks_that_are_not_in_their_list_reject_it(form: str, clicked: list[Any], reason: str) -> None:
    """The first list is right: an item that was clicked twice has a click. The second is not."""
    made = pa.table({"context": ["q", "q"], "items": [["a", "b"]] * 2, "clicked": clicked})
    columns: dict[str, Any] = {form: "clicked"}
    counts = prudent.count(made, max_rejected=1, **columns)
    assert (counts.tally.lists, dict(counts.tally.rejected)) == (1, {reason: 1})


@pytest.mark.parametrize(("form", "clicked"), [("clicked_items", "a"), ("clicked_positions", 0)])
def test_without_items_there_is_no_list_to_be_outside_of(form: str, clicked: Any) -> None:
    """Position 0 was outside a list that is not there, and position 1 was not."""
    made = pa.table({"context": ["q", "q"], "items": [["a", "b"], None], "clicked": [[], [clicked]]})
    columns: dict[str, Any] = {form: "clicked"}
    counts = prudent.count(made, max_rejected=1, **columns)
    assert dict(counts.tally.rejected) == {"empty list": 1}


def test_errors_hint_at_other_forms_and_nothing_is_guessed() -> None:
    made = with_forms([("q", ("a", "b"), (1, 0))] * 9)
    for column in ("ids", "from1"):
        with pytest.raises(LogError, match=r"clicked_items= \(--clicked-items\) or clicked_positions="):
            prudent.count(made, clicks=column)
    with pytest.raises(LogError, match=r"first_position=0"):
        prudent.count(made, clicked_positions="from0")
    with pytest.raises(LogError, match=r"are text, and those clicked in 'from1' integers"):
        prudent.count(made, clicked_items="from1")
    with pytest.raises(LogError, match=r"no column 'id' for the clicked_items\. Did you mean 'ids'\?"):
        prudent.count(made, clicked_items="id")
    with pytest.raises(UsageError, match="not both"):
        prudent.Log(made, clicked_items="ids", clicked_positions="from1")
    with pytest.raises(UsageError, match="count from 0 or from 1"):
        prudent.Log(made, first_position=2)
    with pytest.raises(UsageError, match="Name a column of the context"):
        prudent.Log(made, context=[])
    with pytest.raises(UsageError, match="takes one context"):
        as_log("x.jsonl", format="ubi", context=["a", "b"])


# --- contexts of several columns --------------------------------------------------------------------------------------

parts = st.text(st.sampled_from("ab|\\"), max_size=3)


@given(st.lists(st.tuples(parts, parts), min_size=2, max_size=2, unique=True))
def test_names_of_contexts_are_injective(pairs: list[tuple[str, str]]) -> None:
    one, other = pairs
    assert context_name(*one) != context_name(*other)


def two_columns(names: Sequence[tuple[str, int | None]]) -> pa.Table:
    query, market = zip(*names, strict=True)
    return pa.table(
        {"query": query, "market": market, "items": [["a", "b"]] * len(names), "clicks": [[0, 1]] * len(names)}
    )


def test_a_context_of_two_columns_has_the_name_that_its_values_make() -> None:
    names = list(product(["a", "a|", "a\\", "", "|"], [1, -7]))
    policy = prudent.rank(two_columns(names), "cm", context=["query", "market"])
    assert sorted(policy) == sorted(context_name(*name) for name in names)
    assert all(policy[name] == ["b", "a"] for name in names)
    assert policy.get(("a", 2)) is None


def test_a_missing_value_is_a_missing_context() -> None:
    counts = prudent.count(two_columns([("a", 1), ("a", None)]), context=["query", "market"], max_rejected=1)
    assert dict(counts.tally.rejected) == {"context missing": 1}


def test_one_column_in_a_list_is_that_column() -> None:
    made = two_columns([("a", 1)])
    assert prudent.count(made, context=["query"]) == prudent.count(made, context="query")


def test_tables_beside_the_log_have_the_same_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates and groups of contexts are composed like the log, from the command line too, and for counts."""
    monkeypatch.chdir(tmp_path)
    both = ["query", "market"]
    duckdb.from_arrow(two_columns([("a|b", 1)] * 30 + [("c", 2)] * 30)).write_parquet("log.parquet")
    Path("stock.csv").write_text("query,market,item\na|b,1,a\nc,2,b\nnew,3,b\n")
    Path("kinds.csv").write_text("query,market,kind\na|b,1,x\nc,2,y\n")
    counts = prudent.count("log.parquet", context=both, to="counts.parquet")
    for source in ("log.parquet", counts):
        policy = prudent.rank(
            source, "cm", context=both, candidates="stock.csv", context_groups="kinds.csv", unseen=True
        )
        assert dict(policy) == {r"a\|b|1": ["a"], "c|2": ["b"], "new|3": ["b"]}
    asked = ["--context", "query", "--context", "market", "--model", "cm", "--candidates", "stock.csv", "--json"]
    done = run("rank", "log.parquet", "-o", "policy.parquet", *asked)
    assert done.code == 0, done.text
    assert dict(prudent.Policy.read("policy.parquet")) == {r"a\|b|1": ["a"], "c|2": ["b"]}
    Path("other.csv").write_text("query,land,item\na|b,1,a\n")
    with pytest.raises(LogError, match="Candidates have the columns query, market and item: rename the market"):
        prudent.rank("log.parquet", "cm", context=both, candidates="other.csv")


def test_split_keeps_every_column(tmp_path: Path) -> None:
    """The parts are read with the same settings as the log."""
    lists = [{"q": "a", "m": i % 3, "shown": ["x", "y"], "bought": ["y"] if i % 2 else []} for i in range(200)]
    file = tmp_path / "log.jsonl"
    file.write_text("".join(json.dumps({**one, "n": i}) + "\n" for i, one in enumerate(lists)))
    how: dict[str, Any] = {"context": ["q", "m"], "items": "shown", "clicked_items": "bought"}
    parts = prudent.split(file, tmp_path, **how)
    assert parts.train.lists + parts.holdout.lists == 200
    whole, *two = (prudent.count(one, **how) for one in (file, parts.train.path, parts.holdout.path))
    assert two[0] + two[1] == whole
