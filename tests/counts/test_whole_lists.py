"""Whole lists of logs from the counting kernel: at once or in runs, of one log or of several, whole or cut."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.errors import LogError
from prudent.counts import lists as module
from prudent.counts.count import count_with_lists
from prudent.counts.lists import ListBatch, batch_of, cut, read_lists, read_whole_lists
from prudent.engines import kernel
from prudent.engines.duckdb import count as counting
from prudent.storage import run as runs
from prudent.storage.sketch import EVERYTHING
from tests.counts.test_sample import MOST_LISTS, sampled
from tests.reference import LoggedList
from tests.strategies import as_batch, integer_names, logs, plain_names, table, text_names

ENGINE = prudent.DuckDB(threads=2)


def rows_of(lists: ListBatch) -> list[tuple[Any, ...]]:
    """Every logged list, as its numbers and clicks."""
    each = zip(lists.items.tolist(), lists.clicks.tolist(), lists.n.tolist(), strict=True)
    return sorted((tuple(items), tuple(clicks)) for items, clicks, n in each for _ in range(n))


def in_runs(size: int) -> Any:
    """Counting as where the memory is full after so many lists."""
    whole = counting._counted

    def counted(connection: Any, log: prudent.Log, source: Any, sample: Any) -> Iterator[kernel.Counted]:
        for first in range(0, log.source.num_rows, size):
            part = connection.cursor()
            connection.register("table_in_memory", log.source.slice(first, size))
            yield from whole(connection, log, source, sample)
            part.close()

    return counted


@pytest.mark.parametrize("which", ["", "numpy"])
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_runs_do_not_show(which: str, data: st.DataObject) -> None:
    lists = data.draw(logs(data.draw(st.sampled_from([plain_names, text_names, integer_names]))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRUDENT_KERNEL", which)
        tally, whole, threshold = read_whole_lists(prudent.Log(table(lists)), ENGINE, max_rejected=0)
        patch.setattr(counting, "_counted", in_runs(data.draw(st.integers(1, 9))))
        again, merged, _ = read_whole_lists(prudent.Log(table(lists)), ENGINE, max_rejected=0)
    assert (tally.lists, again.lists, threshold) == (len(lists), len(lists), EVERYTHING)
    for one, other in ((whole.run.contexts, merged.run.contexts), (whole.run.items, merged.run.items)):
        assert one.to_list() == other.to_list()
    assert whole.run.pairs.tolist() == merged.run.pairs.tolist()
    for column in runs.WholeLists.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(whole.lists, column), getattr(merged.lists, column))
    assert rows_of(batch_of([whole])) == rows_of(as_batch(lists))


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_a_sample_is_that_of_the_whole_log(data: st.DataObject) -> None:
    """With several runs, of which each has its own sample, and with two logs."""
    names = st.integers(0, 15).map(str)
    pair = st.sampled_from([("a", "b"), ("b", "a"), ("c", "a")])
    one: st.SearchStrategy[LoggedList] = st.tuples(names, pair, st.tuples(st.integers(0, 1), st.integers(0, 1)))
    first, second = (data.draw(st.lists(one, min_size=1, max_size=40)) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_counted", in_runs(data.draw(st.integers(1, 20))))
        ((alone,), _) = read_lists([prudent.Log(table(first))], ENGINE, max_rejected=0, most=MOST_LISTS)
        several = [prudent.Log(table(lists)) for lists in (first, second)]
        both, tallies = read_lists(several, ENGINE, max_rejected=0, most=MOST_LISTS)
    assert rows_of(alone) == rows_of(as_batch(sampled(first)))
    assert [tally.lists for tally in tallies] == [len(first), len(second)]
    chosen = sampled([*first, *second])
    known = {context for context, *_ in chosen}
    expected = as_batch(sorted(chosen))
    np.testing.assert_array_equal(both[0].context, expected.context)
    np.testing.assert_array_equal(both[1].context, expected.context)
    kept = [one for one in [*first, *second] if one[0] in known]
    assert len(kept) == len(chosen)
    assert sorted([*rows_of(both[0]), *rows_of(both[1])]) == rows_of(expected)
    assert both[0].n.sum() == sum(one[0] in known for one in first)


@settings(max_examples=12, deadline=None)
@given(logs(), st.integers(1, 5))
def test_cut_lists_are_those_of_a_shorter_log(lists: list[LoggedList], length: int) -> None:
    short = [(context, items[:length], clicks[:length]) for context, items, clicks in lists]
    _, whole, _ = read_whole_lists(prudent.Log(table(lists)), ENGINE, max_rejected=0)
    _, expected, _ = read_whole_lists(prudent.Log(table(short)), ENGINE, max_rejected=0)
    actual = cut(whole, length)
    assert actual.run.items.to_list() == expected.run.items.to_list()
    assert actual.run.pairs.tolist() == expected.run.pairs.tolist()
    for column in runs.WholeLists.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(actual.lists, column), getattr(expected.lists, column))


@pytest.mark.parametrize("held", [True, False])
@settings(max_examples=6, deadline=None)
@given(st.data())
def test_counts_and_lists_in_one_pass(held: bool, data: st.DataObject) -> None:
    """Both as they come alone, whether counts stay in memory or go to a file, and in several runs."""
    log = prudent.Log(table(data.draw(logs(text_names))))
    alone = prudent.count(log, engine=ENGINE)
    _, whole, _ = read_whole_lists(log, ENGINE, max_rejected=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_counted", in_runs(data.draw(st.integers(1, 9))))
        if not held:
            patch.setattr(prudent.DuckDB, "room", lambda engine: 0)
        counts, lists, _ = count_with_lists(log, ENGINE, max_rejected=0)
        sampled, some, _ = count_with_lists(log, ENGINE, max_rejected=0, most=MOST_LISTS)
    assert held or counts.held is None
    assert counts == alone
    assert (counts.tally, counts.origin) == (alone.tally, alone.origin)
    assert rows_of(counts.sample()) == rows_of(alone.sample())
    assert sampled == alone
    assert rows_of(sampled.sample()) == rows_of(alone.sample())
    _, expected, _ = read_whole_lists(log, ENGINE, max_rejected=0, most=MOST_LISTS)
    for actual, other in ((lists, whole), (some, expected)):
        assert actual.run.items.to_list() == other.run.items.to_list()
        for column in runs.WholeLists.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(actual.lists, column), getattr(other.lists, column))


def test_lists_as_arrays_and_back() -> None:
    lists: list[LoggedList] = [("x", ("a", "b"), (0, 1)), ("x", ("c",), (1,)), ("y", ("b", "a", "c"), (0, 0, 0))] * 2
    _, whole, _ = read_whole_lists(prudent.Log(table(lists)), ENGINE, max_rejected=0)
    again = batch_of([whole]).whole_lists
    for column in runs.WholeLists.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(again, column), getattr(whole.lists, column))


def test_arrays_that_no_machine_has_room_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_PLACES", 5)
    lists: list[LoggedList] = [("x", ("a", "b", "c"), (0, 1, 0)), ("x", ("a", "c"), (0, 1))]
    with pytest.raises(LogError, match="2 different lists and one of 3 positions need"):
        read_lists([prudent.Log(table(lists))], ENGINE, max_rejected=0)
