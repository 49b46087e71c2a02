"""Tables of features: what is read, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prudent.base.errors import LogError, UsageError
from prudent.counts.cells import Cells
from prudent.counts.feature_columns import MISSING, MOST_LEVELS, Categorical, Numeric
from prudent.counts.feature_tables import FOLDS, FeatureTables, folds, read_features
from prudent.counts.index import Part
from prudent.engines.duckdb.engine import DuckDB
from prudent.storage.run import NameColumn

TEXT = ("VARCHAR", "VARCHAR")


def part(pairs: list[tuple[Any, Any]]) -> Part:
    """Pairs of contexts and items, each shown once; contexts are in order."""
    contexts = list(dict.fromkeys(context for context, _ in pairs))
    rows, one = np.arange(len(pairs)), np.ones(len(pairs), np.int64)
    cells = Cells.of_columns(
        context=np.array([contexts.index(context) for context, _ in pairs]),
        pair=rows, position=one, prev=0 * one, click=one > 1, more=one > 1, n=one.astype(float),
    )  # fmt: skip
    names = NameColumn.of_names(contexts), NameColumn.of_names([item for _, item in pairs])
    return Part(cells, one > 0, *names)


def read(source: Any, *more: Any, context: Any = ("context",), named: tuple[str, str] = TEXT) -> FeatureTables:
    return read_features([source, *more], context, DuckDB(), named)


def values(tables: FeatureTables, pairs: list[tuple[Any, Any]]) -> dict[str, list[Any]]:
    """The features of pairs, as people write them."""
    found: dict[str, list[Any]] = {}
    some = part(pairs)
    for one in tables.of(tables.rows(some)):
        if isinstance(one, Numeric):
            found[one.name] = [None if np.isnan(value) else value for value in one.values.tolist()]
        else:
            names = [*one.levels, "another", None]
            found[one.name] = [names[code] for code in one.codes.tolist()]
    return found


PAIRS = [("q1", "a"), ("q1", "b"), ("q2", "a"), ("q2", "z")]


def test_items_contexts_and_pairs() -> None:
    items = pa.table({"item": ["b", "a"], "price": [2.5, None], "kind": ["x", ""]})
    contexts = pa.table({"context": ["q2", "q3"], "words": [3, 4]})
    pairs = pa.table({"item": ["a", "a"], "match": [True, None], "context": ["q2", "q1"]})
    found = values(read(items, contexts, pairs), PAIRS)
    assert found == {
        "price": [None, 2.5, None, None],
        "kind": [None, "x", None, None],
        "words": [None, None, 3, 3],
        "match": [None, None, "true", None],
    }


def test_contexts_of_several_columns() -> None:
    table = pa.table({"query": ["q", "q"], "market": ["de", "fr"], "n": [1, 2]})
    tables = read(table, context=("query", "market"))
    assert values(tables, [("q|de", "a"), ("q|fr", "a")]) == {"n": [1, 2]}


def test_integers_are_names() -> None:
    tables = read(pa.table({"item": [3, 1], "n": [3.0, 1.0]}), named=("BIGINT", "BIGINT"))
    assert values(tables, [(0, 1), (0, 3), (0, 4)]) == {"n": [1, 3, None]}


def test_files_of_text_have_numbers_where_all_are(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item,n,t,code\na,1e3,x,7\nb,,true,08\n")
    (tmp_path / "b.jsonl").write_text('{"item": "a", "m": 1.5, "flag": true}\n{"item": "b", "m": null, "flag": "x"}\n')
    found = values(read(tmp_path / "a.csv", tmp_path / "b.jsonl"), PAIRS[:2])
    assert found == {"n": [1000, None], "t": ["x", "true"], "code": [7, 8], "m": [1.5, None], "flag": ["true", "x"]}


def test_types_of_parquet(tmp_path: Path) -> None:
    columns = {
        "item": ["a", "b"],
        "small": pa.array([1, 2], pa.int8()),
        "exact": pa.array([1, 2], pa.decimal128(10, 2)),
        "enum": pa.array(["x", "y"]).dictionary_encode(),
        "nan": [float("nan"), 1.0],
    }
    pq.write_table(pa.table(columns), tmp_path / "f.parquet")
    found = values(read(tmp_path / "f.parquet"), PAIRS[:2])
    assert found == {"small": [1, 2], "exact": [1, 2], "enum": ["x", "y"], "nan": [None, 1]}


def test_rare_levels_of_a_category_of_10_000_are_one() -> None:
    items = [f"i{number}" for number in range(10_000)]
    levels = ["often"] * 100 + [f"l{number:05}" for number in range(100, 10_000)]
    (table,) = read(pa.table({"item": items, "id": levels})).tables
    (column,) = table.columns
    assert isinstance(column, Categorical)
    assert len(column.levels) == MOST_LEVELS
    assert column.levels[:2] == ("often", "l00100"), "the most frequent, then by name"
    found = values(read(pa.table({"item": items, "id": levels})), [("q", "i5"), ("q", "i9999"), ("q", "none")])
    assert found == {"id": ["often", "another", None]}
    assert column.codes[-1] == MISSING


def test_rows_in_any_order_are_the_same() -> None:
    rows = pa.table({"item": ["a", "b", "c"], "n": [1, 2, 3], "kind": ["x", "y", "y"]})
    one, other = (read(rows.take(order)).tables[0] for order in ([0, 1, 2], [2, 0, 1]))
    np.testing.assert_array_equal(one.keys, other.keys)
    for left, right in zip(one.columns, other.columns, strict=True):
        assert vars(left).keys() == vars(right).keys()
        found = [one.values if isinstance(one, Numeric) else one.codes for one in (left, right)]
        np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"item": ["a", "a"], "n": [1, 2]}, "2 rows or more for the same item, such as item 'a': keep one"),
        ({"item": ["a"], "context": ["q"]}, "no features: besides context and item, it needs a column for each"),
        ({"n": [1]}, "names neither items nor contexts: a table of features has the column item, or context"),
        ({"item": ["a"], "n": [float("inf")]}, "'n' of the Table has 1 infinite number: leave them empty"),
        ({"item": ["a"], "n": [[1]]}, r"'n' of the Table is bigint\[\]: use numbers, text or booleans"),
        ({"item": ["a"], "n": [{"x": 1}]}, "'n' of the Table is struct"),
        ({"item": ["a"], "n": [b"x"]}, "'n' of the Table is blob"),
        ({"item": ["a"], "n": pa.array([0], pa.date32())}, "'n' of the Table is date"),
        ({"item": [None], "n": [1]}, "1 rows of the Table have no item"),
        ({"item": [7], "n": [1]}, "features' item is bigint, but the log's is varchar"),
        ({"item": pa.array([], pa.string()), "n": pa.array([], pa.int64())}, "has no rows"),
        ({"item": ["a"], "N": [1], "n": [1]}, "2 columns named 'N', ignoring case"),
        ({"item": ["a"], **{f"c{i}": [1] for i in range(101)}}, "There are 101 features, and at most 100"),
        ({"item": ["a"], 'x"; drop table wide; --': [[1]]}, "use numbers"),
    ],
)
def test_what_is_refused(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(LogError, match=message):
        read(pa.table(columns))


def test_more_that_is_refused(tmp_path: Path) -> None:
    table = pa.table({"item": ["a"], "n": [1]})
    with pytest.raises(LogError, match="both have a feature 'n'"):
        read(table, table)
    for name, other in (("a", {"n": [1]}), ("b", {"x": [1]})):
        pq.write_table(pa.table({"item": [name], **other}), tmp_path / f"{name}.parquet")
    with pytest.raises(
        LogError, match=r"b\.parquet has other columns than .*: n, x are not in all of them\. Name tables"
    ):
        read(str(tmp_path / "*.parquet"))
    with pytest.raises(UsageError, match="features is empty"):
        read_features([], ("context",), DuckDB(), TEXT)
    with pytest.raises(LogError, match="has the column item, or query and market, or all of them"):
        read(pa.table({"query": ["q"], "n": [1]}), context=("query", "market"))
    (tmp_path / "f.jsonl").write_text('{"item": "a", "n": {"x": 1}}\n')
    with pytest.raises(LogError, match=r"'n' of .*f\.jsonl has lists or objects"):
        read(tmp_path / "f.jsonl")
    with pytest.raises(LogError, match=r"missing.csv"):
        read(tmp_path / "missing.csv")


def test_hostile_names_are_names() -> None:
    name = 'x"); drop table wide; --\x1b[31m\n'
    assert values(read(pa.table({"item": ["a"], name: [2.0]})), PAIRS[:1]) == {name: [2]}


def test_folds_are_even_and_of_names_alone() -> None:
    names = NameColumn.of_names([f"query {number}" for number in range(5_000)])
    found = folds(names)
    assert np.bincount(found, minlength=FOLDS).min() > 900
    np.testing.assert_array_equal(folds(names.take(np.arange(100, 200))), found[100:200])
