"""Counts are the histogram that a plain loop makes, whatever the source, its order, and the number of threads."""

import csv
import gc
import gzip
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.errors import CountsError, LogError, UsageError
from prudent.counts.cells import Cells
from prudent.counts.days import UNIT
from tests import reference
from tests.command import run
from tests.reference import LoggedList
from tests.strategies import count, integer_names, logs, plain_names, quick_counts, rows, table, text_names

any_log = st.sampled_from([plain_names, text_names, integer_names]).flatmap(logs)

# Three lists, worked by hand in `test_three_lists`.
SMALL: list[LoggedList] = [
    ("shoes", ("a", "b", "c"), (1, 0, 1)),
    ("shoes", ("b", "a"), (0, 1)),
    ("boots", ("a", "c", "d"), (0, 0, 0)),
]
# Names of which careless readers make numbers, dates, nulls or fewer of.
AWKWARD: list[LoggedList] = [
    ("007", ("7", "07", "NULL"), (1, 0, 0)),
    ("7", ("1e3", "1000", " 7"), (0, 0, 1)),
    ("7.0", ("2024-01-01", "true", "nan"), (0, 1, 1)),
    ("ß", ("SS", "ss", 'a,"b"'), (0, 0, 0)),
]
NUMBERED: list[LoggedList] = [(7, (1, 2, -3), (0, 1, 1)), (-7, (2**62, 1), (0, 0)), (7, (2, 1), (1, 0))] * 3


def histogram(counts: prudent.Counts) -> dict[tuple[Any, ...], int]:
    rows = duckdb.execute(counts.sql).fetchall()
    actual = {row[:-1]: row[-1] for row in rows}
    assert len(actual) == len(rows), "one row per cell"
    return actual


def assert_same_cells(actual: Cells, expected: Cells) -> None:
    for field in fields(Cells):
        np.testing.assert_array_equal(getattr(actual, field.name), getattr(expected, field.name))


# --- what is counted ----------------------------------------------------------------------------------------------


def test_three_lists() -> None:
    assert histogram(count(SMALL)) == {
        # context, item, position, prev, click, more
        ("shoes", "a", 1, 0, True, True): 1,
        ("shoes", "b", 2, 1, False, True): 1,
        ("shoes", "c", 3, 1, True, False): 1,
        ("shoes", "b", 1, 0, False, True): 1,
        ("shoes", "a", 2, 0, True, False): 1,
        ("boots", "a", 1, 0, False, False): 1,
        ("boots", "c", 2, 0, False, False): 1,
        ("boots", "d", 3, 0, False, False): 1,
    }


@settings(max_examples=30, deadline=None)
@given(lists=any_log)
def test_equals_a_plain_loop(lists: list[LoggedList]) -> None:
    counts = count(lists)
    assert histogram(counts) == reference.histogram(lists)
    assert counts.tally.lists == len(lists)
    assert counts.tally.rejected == {}


@settings(max_examples=15, deadline=None)
@given(lists=any_log)
def test_both_layouts_count_the_same(lists: list[LoggedList]) -> None:
    by_rows = prudent.count(prudent.Log(rows(lists), layout="rows"))
    assert histogram(by_rows) == reference.histogram(lists)
    assert by_rows.tally.lists == len(lists)


@settings(max_examples=15, deadline=None)
@given(lists=logs(), data=st.data())
def test_the_order_of_rows_means_nothing(lists: list[LoggedList], data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 2**32))
    flat = rows(lists)
    order = random.Random(seed).sample(range(flat.num_rows), flat.num_rows)
    shuffled = prudent.count(prudent.Log(flat.take(order), layout="rows"))
    assert histogram(shuffled) == reference.histogram(lists)
    assert shuffled == count(random.Random(seed).sample(lists, len(lists)))


def test_a_long_list_has_no_limit() -> None:
    items = tuple(f"i{k}" for k in range(1, 301))
    lists: list[LoggedList] = [("c", items, tuple(int(k % 7 == 0) for k in range(300)))]
    assert histogram(count(lists)) == reference.histogram(lists)


# --- cells --------------------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(lists=any_log)
def test_cells_are_the_histogram_in_the_order_of_names(lists: list[LoggedList]) -> None:
    counts = count(lists)
    cells = counts.cells
    expected = reference.histogram(lists)
    pairs = sorted(reference.impressions(lists))
    contexts = sorted({context for context, _ in pairs})
    assert counts.pairs.fetchall() == pairs
    assert [contexts[number] for number in cells.context] == [context for context, _ in pairs]
    columns = (cells.pair, cells.position, cells.prev, cells.click, cells.more, cells.n)
    actual = [tuple(row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    assert actual == sorted((pairs.index(key[:2]), *key[2:], n) for key, n in expected.items())
    assert (cells.pairs, cells.contexts, cells.positions) == (len(pairs), len(contexts), reference.longest(lists))
    assert_same_cells(cells, quick_counts(lists).cells)
    shown = reference.impressions(lists)
    assert cells.per_pair().tolist() == [shown[pair] for pair in pairs]
    assert cells.lists_per_context().tolist() == [sum(c == context for c, _, _ in lists) for context in contexts]


def test_per_pair_keeps_what_it_is_told() -> None:
    cells = count(SMALL).cells
    assert cells.per_pair(cells.click).tolist() == [0, 0, 0, 2, 0, 1]  # boots: a c d; shoes: a b c


# --- counts add ---------------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(first=logs(), second=logs())
def test_counts_add(first: list[LoggedList], second: list[LoggedList]) -> None:
    total, at_once = count(first) + count(second), count(first + second)
    assert total == at_once
    assert histogram(total) == reference.histogram(first + second)
    assert total.tally.lists == len(first) + len(second)
    assert_same_cells(total.cells, at_once.cells)


def test_equal_means_equal_sums() -> None:
    assert count(SMALL) == count(SMALL[::-1])
    assert count(SMALL) != count(SMALL[:2])
    assert count(SMALL) != count([*SMALL, SMALL[0]])
    assert count(SMALL) != count([("shoes", ("a", "b", "c"), (1, 1, 1)), *SMALL[1:]])
    assert count(SMALL) != "counts"


def test_seven_is_not_the_text_seven() -> None:
    numbers, text = count([(7, (1, 2), (0, 1))]), count([("7", ("1", "2"), (0, 1))])
    assert numbers != text
    with pytest.raises(CountsError, match="differently: by text, integers or unsigned integers"):
        numbers + text


def test_a_sum_outlives_its_terms() -> None:
    """Counts in memory are added up in temporary files, which go only with the last that needs them."""
    first, second = count(SMALL), count(SMALL[:1])
    total = first + second
    files = total.files
    assert all(file.exists() for file in files)
    assert len(files) == 2
    del first, second
    gc.collect()
    assert total == count([*SMALL, SMALL[0]])
    del total
    gc.collect()
    assert not any(file.exists() for file in files)
    assert not any(file.parent.exists() for file in files)


@settings(max_examples=8, deadline=None)
@given(lists=any_log)
def test_written_and_read_back(lists: list[LoggedList], tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("counts") / "counts.parquet"
    counts = count(lists)
    (counts + counts).write(file)
    back = prudent.Counts.read(file)
    assert back == counts + counts
    assert back.tally.lists == 2 * len(lists)
    assert back.pairs.fetchall() == counts.pairs.fetchall()


def test_several_files_are_read_as_their_sum(tmp_path: Path) -> None:
    for number, shown in enumerate(SMALL):
        count([shown]).write(tmp_path / f"{number}.parquet")
    assert prudent.Counts.read(tmp_path / "*.parquet") == count(SMALL)
    assert prudent.Counts.read(tmp_path / "0.parquet", tmp_path / "1.parquet").tally.lists == 2
    once = prudent.Counts.read(tmp_path / "0.parquet")
    assert once + once == count([SMALL[0]] * 2)


def test_what_was_rejected_is_written_and_added(tmp_path: Path) -> None:
    log = prudent.Log(table([*SMALL, ("shoes", ("a", "a"), (0, 1))]))
    counts = prudent.count(log, max_rejected=0.5, to=tmp_path / "counts.parquet")
    rejected = {"duplicate item in a list": 1}
    assert (counts.tally.lists, counts.tally.rejected, counts.tally.share_rejected) == (3, rejected, 0.25)
    assert counts == count(SMALL)
    both = prudent.Counts.read(tmp_path / "counts.parquet") + counts
    assert (both.tally.lists, both.tally.rejected) == (6, {"duplicate item in a list": 2})
    with pytest.raises(LogError, match=r"1 of 4 lists .* are rejected \(25.0%.*1 × duplicate item in a list"):
        prudent.count(log, max_rejected=0.24)


# --- weights ------------------------------------------------------------------------------------------------------

weights = st.one_of(st.integers(1, UNIT), st.sampled_from([1, UNIT // 2, UNIT]))


@settings(max_examples=15, deadline=None)
@given(parts=st.lists(st.tuples(logs(), weights), min_size=1, max_size=4))
def test_weights_are_exact(parts: list[tuple[list[LoggedList], int]]) -> None:
    """The same sums in fractions, by a plain loop: no float below has lost a bit."""
    expected: Counter[tuple[Any, ...]] = Counter()
    for lists, weight in parts:
        for key, n in reference.histogram(lists).items():
            expected[key] += Fraction(n * weight, UNIT)  # type: ignore[assignment]
    total = sum((count(lists) for lists, _ in parts[1:]), count(parts[0][0]))
    weighted = replace(total, weights=tuple(weight for _, weight in parts))
    pairs = sorted({key[:2] for key in expected})
    cells = weighted.cells
    columns = (cells.pair, cells.position, cells.prev, cells.click, cells.more, cells.n)
    actual = [(*row[:-1], Fraction(row[-1])) for row in zip(*(column.tolist() for column in columns), strict=True)]
    assert actual == sorted((pairs.index(key[:2]), *key[2:], n) for key, n in expected.items())
    assert weighted.pairs.fetchall() == pairs
    assert weighted.tally == total.tally  # what was read, not what it weighs


@settings(max_examples=8, deadline=None)
@given(first=logs(), second=logs())
def test_weights_add(first: list[LoggedList], second: list[LoggedList]) -> None:
    one, two = count(first), count(second)
    half = replace(one, weights=(UNIT // 2,))
    assert half + half == one
    assert half + two + half == count(first + second)
    assert half != one
    assert_same_cells((half + half).cells, one.cells)
    assert replace(one, weights=(UNIT,)) == one


def test_weighted_counts_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not whole numbers"):
        replace(count(SMALL), weights=(UNIT // 2,)).write(tmp_path / "counts.parquet")
    assert list(tmp_path.iterdir()) == []


# --- sources ------------------------------------------------------------------------------------------------------

Opener = Callable[[list[LoggedList], Path], prudent.Log]


def _text(file: Path, content: str) -> prudent.Log:
    layout: Any = "rows" if file.name.startswith("rows") else "lists"
    if file.suffix == ".gz":
        file.write_bytes(gzip.compress(content.encode()))
    else:
        file.write_text(content, encoding="utf-8", newline="")
    return prudent.Log(file, layout=layout)


def _json_lines(given: Any) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in given.to_pylist())


def _delimited(given: Any, file: Path, delimiter: str = ",") -> prudent.Log:
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, given.column_names, delimiter=delimiter)
        writer.writeheader()
        writer.writerows(given.to_pylist())
    return prudent.Log(file, layout="rows")


def _parquet(given: Any, file: Path, **options: Any) -> Path:
    pq.write_table(given, file, **options)
    return file


def _glob(lists: list[LoggedList], folder: Path) -> prudent.Log:
    for number, shown in enumerate(lists):
        _parquet(table([shown]), folder / f"part-{number}.parquet")
    return prudent.Log(folder / "part-*.parquet")


IN_MEMORY: dict[str, Opener] = {
    "Arrow": lambda lists, _: prudent.Log(table(lists)),
    "Arrow rows": lambda lists, _: prudent.Log(rows(lists), layout="rows"),
    "pandas": lambda lists, _: prudent.Log(table(lists).to_pandas()),
    "pandas of Python lists": lambda lists, _: prudent.Log(
        pd.DataFrame({k: [list(x) if isinstance(x, tuple) else x for x in v] for k, v in _columns(lists).items()})
    ),
    "pandas rows": lambda lists, _: prudent.Log(rows(lists).to_pandas(), layout="rows"),
    "Polars": lambda lists, _: prudent.Log(pl.from_arrow(table(lists))),
    "Polars rows": lambda lists, _: prudent.Log(pl.from_arrow(rows(lists)), layout="rows"),
    "Polars lazy": lambda lists, _: prudent.Log(pl.DataFrame(table(lists)).lazy()),
    "DuckDB": lambda lists, _: prudent.Log(duckdb.from_arrow(table(lists))),
    "DuckDB rows": lambda lists, _: prudent.Log(duckdb.from_arrow(rows(lists)), layout="rows"),
}
IN_FILES: dict[str, Opener] = {
    "Parquet": lambda lists, at: prudent.Log(_parquet(table(lists), at / "lists.parquet")),
    "Parquet in row groups": lambda lists, at: prudent.Log(_parquet(table(lists), at / "x.parquet", row_group_size=1)),
    "Parquet rows": lambda lists, at: prudent.Log(_parquet(rows(lists), at / "rows.parquet"), layout="rows"),
    "a glob of Parquet": _glob,
    "JSON Lines": lambda lists, at: _text(at / "lists.jsonl", _json_lines(table(lists))),
    "JSON Lines rows": lambda lists, at: _text(at / "rows.jsonl", _json_lines(rows(lists))),
    "gzipped JSON Lines": lambda lists, at: _text(at / "lists.jsonl.gz", _json_lines(table(lists))),
}
DELIMITED: dict[str, Opener] = {
    "CSV": lambda lists, at: _delimited(rows(lists), at / "rows.csv"),
    "TSV": lambda lists, at: _delimited(rows(lists), at / "rows.tsv", delimiter="\t"),
}


def _columns(lists: list[LoggedList]) -> dict[str, list[Any]]:
    context, items, clicks = zip(*lists, strict=True)
    return {"context": list(context), "items": list(items), "clicks": list(clicks)}


@pytest.mark.parametrize("source", [*IN_MEMORY, *IN_FILES, *DELIMITED])
@pytest.mark.parametrize("lists", [SMALL, AWKWARD], ids=["small", "awkward"])
def test_every_source_counts_the_same(source: str, lists: list[LoggedList], tmp_path: Path) -> None:
    log = (IN_MEMORY | IN_FILES | DELIMITED)[source](lists, tmp_path)
    assert histogram(prudent.count(log)) == reference.histogram(lists)


@pytest.mark.parametrize("source", [*IN_MEMORY, *IN_FILES])
def test_integers_come_back_as_integers(source: str, tmp_path: Path) -> None:
    """All sources but CSV, where everything is text."""
    log = (IN_MEMORY | IN_FILES)[source](NUMBERED, tmp_path)
    assert histogram(prudent.count(log)) == reference.histogram(NUMBERED)


def test_columns_by_any_name_and_contexts_of_another_kind_than_items() -> None:
    given = pa.table({"query": ["x", "x"], 'sh"own': [[1, 2], [2, 1]], "items": [[0, 1], [0, 0]]})
    counts = prudent.count(prudent.Log(given, context="query", items='sh"own', clicks="items"))
    assert histogram(counts) == reference.histogram([("x", (1, 2), (0, 1)), ("x", (2, 1), (0, 0))])


@pytest.mark.parametrize(
    "kind", [pa.bool_(), pa.uint8(), pa.int64(), pa.float64(), pa.string(), pa.decimal128(3, 1)], ids=str
)
def test_a_click_may_be_written_as_any_kind_of_zero_and_one(kind: Any) -> None:
    given = table(SMALL)
    clicks = [[str(y) if kind == pa.string() else kind_of(kind, y) for y in row] for row in given["clicks"].to_pylist()]
    changed = given.set_column(2, "clicks", pa.array(clicks, pa.list_(kind)))
    assert prudent.count(prudent.Log(changed)) == count(SMALL)


def kind_of(kind: Any, click: int) -> Any:
    return bool(click) if kind == pa.bool_() else click


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint32(), pa.uint64()], ids=str)
def test_integers_of_any_width_are_names(kind: Any) -> None:
    largest = 2**64 - 1 if kind == pa.uint64() else 100
    given = pa.table(
        {
            "context": pa.array([1, 2], kind),
            "items": pa.array([[1, largest], [3]], pa.list_(kind)),
            "clicks": pa.array([[0, 1], [0]], pa.list_(pa.int8())),
        }
    )
    assert histogram(prudent.count(prudent.Log(given))) == reference.histogram(
        [(1, (1, largest), (0, 1)), (2, (3,), (0,))]
    )


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_any_number_of_threads(threads: int, tmp_path: Path) -> None:
    """Row groups of 2,048 lists, so that there is something to share out among four threads."""
    rng = random.Random(5)
    lists: list[LoggedList] = []
    for _ in range(10_000):
        size = rng.randint(1, 6)
        clicks = tuple(int(rng.random() < 0.3) for _ in range(size))
        lists.append((f"c{rng.randint(0, 9)}", tuple(rng.sample("abcdefgh", size)), clicks))
    file = _parquet(table(lists), tmp_path / "log.parquet", row_group_size=2048)
    counts = prudent.count(prudent.Log(file), engine=prudent.DuckDB(threads=threads))
    assert histogram(counts) == reference.histogram(lists)


def test_counts_do_not_take_the_place_of_what_they_are_made_from(tmp_path: Path) -> None:
    log = tmp_path / "log.parquet"
    pq.write_table(table(SMALL), log)
    before = log.read_bytes()
    with pytest.raises(UsageError, match="is named twice"):
        prudent.count(prudent.Log(log), to=log)
    counts = prudent.count(prudent.Log(log), to=tmp_path / "counts.parquet")
    with pytest.raises(UsageError, match="is named twice"):
        prudent.rank(counts, "cm").write(tmp_path / "counts.parquet")
    for inside in (("count", tmp_path, "-o", tmp_path / "total.parquet"), ("count", log, log, "-o", "x.parquet")):
        assert run(*inside).code == 2
    assert log.read_bytes() == before


def test_candidates_may_be_unsigned(tmp_path: Path) -> None:
    """Of signed and unsigned integers DuckDB makes a type that Parquet has not, and names lost their last digits."""
    big = 2**60 + 1
    log = pa.table({"context": [big] * 3, "items": [[big + 2, 7]] * 3, "clicks": [[1, 0], [0, 1], [1, 1]]})
    offer = pa.table({"context": pa.array([big] * 2, pa.uint64()), "item": pa.array([big + 2, 7], pa.uint64())})
    for signed, unsigned in ((log, offer), (_as(log, pa.uint64()), _as(offer, pa.int64()))):
        policy = prudent.rank(prudent.count(prudent.Log(signed)), "cm", bound="mle", candidates=unsigned)
        policy.write(tmp_path / "policy.parquet")
        assert sorted(prudent.Policy.read(tmp_path / "policy.parquet")[big]) == [7, big + 2]


def _as(given: pa.Table, kind: pa.DataType) -> pa.Table:
    columns = {"context": kind, "items": pa.list_(kind), "item": kind}
    return given.cast(pa.schema([(f.name, columns.get(f.name, f.type)) for f in given.schema]))


def test_wrong_types_get_a_sentence(tmp_path: Path) -> None:
    counts = prudent.count(prudent.Log(table(SMALL)))
    for wrong in (
        lambda: prudent.Log(table(SMALL), context=5),  # type: ignore[arg-type]
        lambda: prudent.Log(table(SMALL), layout=[]),  # type: ignore[arg-type]
        lambda: prudent.count(prudent.Log(table(SMALL)), engine=[]),  # type: ignore[arg-type]
        lambda: prudent.rank(counts, model=5),  # type: ignore[arg-type]
        lambda: prudent.rank(counts, bound=None),  # type: ignore[arg-type]
        lambda: prudent.rank(counts, bound="bayes(alpha=1e308)"),
        lambda: prudent.Counts.read(["a", "b"]),  # type: ignore[arg-type]
    ):
        with pytest.raises(UsageError):
            wrong()
    assert run("count", "x", "-o", tmp_path / "y.parquet", "--memory", "2000TB").code == 3, "there is no x"
