"""Counts keep a bounded sample of whole lists, and the samples of parts add up to that of the whole."""

import hashlib
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.counts.lists import ListBatch
from prudent.storage import sketch
from prudent.storage.counts_file import counts_footer
from prudent.storage.parquet import read_footer
from prudent.storage.sketch import FEWEST_CONTEXTS
from tests.reference import LoggedList
from tests.strategies import as_batch, count, table

MOST_LISTS = 12


def sampled(lists: list[LoggedList]) -> list[LoggedList]:
    """The rule in a plain loop."""
    sizes = Counter(str(context) for context, *_ in lists)
    chosen: set[str] = set()
    total = 0
    for place, context in enumerate(sorted(sizes, key=lambda name: hashlib.md5(name.encode()).hexdigest())):
        total += sizes[context]
        if total > MOST_LISTS and place >= FEWEST_CONTEXTS:
            break
        chosen.add(context)
    return [one for one in lists if str(one[0]) in chosen]


def assert_same(actual: ListBatch, lists: list[LoggedList]) -> None:
    """The same lists, in the order of names; equal ones in one row."""
    expected = as_batch(sorted(lists))
    np.testing.assert_array_equal(actual.context, expected.context)
    np.testing.assert_array_equal(np.repeat(actual.items, actual.n, axis=0), expected.items)
    np.testing.assert_array_equal(np.repeat(actual.clicks, actual.n, axis=0), expected.clicks)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketch, "SAMPLE_LISTS", MOST_LISTS)
    monkeypatch.setattr(sketch.sample_threshold, "__defaults__", (MOST_LISTS,))
    monkeypatch.setattr("prudent.storage.counts_file.SAMPLE_LISTS", MOST_LISTS)


pair = st.sampled_from([("a", "b"), ("b", "a"), ("c", "a")])
clicks = st.tuples(st.integers(0, 1), st.integers(0, 1))
logs = st.lists(st.tuples(st.integers(0, 15).map(str), pair, clicks), min_size=1, max_size=60)


@pytest.mark.usefixtures("small")
@settings(max_examples=10)
@given(logs, st.integers(1, 4))
def test_the_sample_of_days_is_that_of_the_whole_log(lists: list[LoggedList], days: int) -> None:
    whole = count(lists)
    expected = sampled(lists)
    assert_same(whole.sample(), expected)
    parts = [count(lists[day::days]) for day in range(days) if lists[day::days]]
    assert_same(sum(parts[1:], parts[0]).sample(), expected)


@pytest.mark.usefixtures("small")
@settings(max_examples=6)
@given(lists=logs)
def test_written_and_added_in_any_grouping(lists: list[LoggedList], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("parts")
    one, two, three = (count(lists[i::3] or [("x", ("a", "b"), (0, 0))]) for i in range(3))
    (one + two).write(folder / "both.parquet")
    both = prudent.Counts.read(folder / "both.parquet")
    assert both == one + two
    actual, expected = (both + three).sample(), (one + two + three).sample()
    for name in ("context", "items", "clicks", "n"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name))


def test_a_sample_of_fewer_lists_than_it_may_have_is_the_log(tmp_path: Path) -> None:
    lists: list[LoggedList] = [("shoes", ("a", "b"), (1, 0))] * 3 + [("boots", ("b",), (0,))]
    prudent.count(prudent.Log(table(lists)), to=tmp_path / "days", day="2026-11-14")
    prudent.count(prudent.Log(table(lists)), to=tmp_path / "days", day="2026-11-15")
    counts = prudent.Counts.read(tmp_path / "days", half_life="1d")
    assert_same(counts.sample(), lists * 2)  # as often as they were shown, whatever they weigh
    with duckdb.connect() as connection:
        assert counts_footer(read_footer(connection, counts.files[0]), "").threshold == sketch.EVERYTHING


def test_files_without_lists_have_no_sample(tmp_path: Path) -> None:
    """As of Spark: the sum of such a file and another has none either, and its cells are read."""
    lists: list[LoggedList] = [("shoes", ("a", "b"), (1, 0))]
    full = prudent.count(prudent.Log(table(lists)), to=tmp_path / "full.parquet")
    with duckdb.connect() as connection:
        connection.execute(
            "copy (select * replace (null::bigint[] as list_n, null::integer[] as list_length, null::integer[] as "
            f"list_items, null::boolean[] as list_clicks) from '{tmp_path}/full.parquet') "
            f"to '{tmp_path}/bare.parquet' (format parquet, kv_metadata {{prudent_counts: '4'}})"
        )
    bare = prudent.Counts.read(tmp_path / "bare.parquet")
    assert bare == full
    for both in (bare + full, full + bare):
        assert len(both.sample().n) == 0
        assert both == count(lists * 2)
        both.write(tmp_path / "both.parquet")
        assert prudent.Counts.read(tmp_path / "both.parquet") == both
