"""One long list does not hold up the others."""

import time
from pathlib import Path

import pyarrow as pa
import pytest

import prudent
import prudent.counts.lists
from prudent.base.errors import LogError, UsageError


def log(*sizes: int) -> pa.Table:
    """Lists of these sizes, in which every item was clicked."""
    return pa.table(
        {
            "context": ["q"] * len(sizes),
            "items": [[f"item{k}" for k in range(size)] for size in sizes],
            "clicks": [[1] * size for size in sizes],
        }
    )


def test_lists_with_more_positions_are_rejected() -> None:
    counts = prudent.count(log(3, 4, 5), max_positions=4, max_rejected=1)
    assert counts.tally.lists == 2
    assert counts.tally.rejected == {"too many positions": 1}


def test_by_default_a_list_of_50_000_clicks_is_rejected_in_no_time() -> None:
    """It took 117 s where every position looked for the last of all clicks above it."""
    start = time.process_time()
    with pytest.raises(LogError, match="1 × too many positions"):
        prudent.compare(log(*[5] * 20, 50_000))
    assert time.process_time() - start < 10  # 0.5 s; the rest is for a slow machine


@pytest.mark.parametrize(("size", "click"), [(300_000, 0), (50_000, 1)])
def test_of_a_holdout_too(size: int, click: int, tmp_path: Path) -> None:
    """300,000 items without a click ended in a memory error in all of them."""
    table = log(*[3] * 40, size)
    clicks = [*[[1, 0, 0]] * 40, [click] * size]
    table = table.set_column(2, "clicks", pa.array(clicks))
    policy = prudent.Policy.from_table(pa.table({"context": ["q"], "items": [["item1", "item0"]]}), items="items")
    start = time.process_time()
    for judge in (prudent.evaluate, prudent.gate, prudent.gate_contexts):
        with pytest.raises(LogError, match="1 × too many positions"):
            judge(policy, table)
    with pytest.raises(LogError, match="1 × too many positions"):
        prudent.report(policy, table, to=tmp_path / "report.html")
    assert time.process_time() - start < 20  # 0.5 s


@pytest.mark.parametrize("limit", [0, 10_001, 1 << 31])
def test_a_limit_is_a_whole_number(limit: int) -> None:
    """Above 32,767 `evaluate` and `gate` ended in an OverflowError."""
    with pytest.raises(UsageError, match="max_positions"):
        prudent.count(log(3), max_positions=limit)


def test_a_reader_takes_the_limit_too(tmp_path: Path) -> None:
    file = tmp_path / "log.tsv"
    file.write_text("".join(f"{i}\t0\tQ\t7\t3\t1\t2\t3\n" for i in range(4)))
    counts = prudent.count(file, format="yandex", max_positions=2, max_rejected=1)
    assert counts.tally.rejected == {"too many positions": 4}


def test_too_many_places_are_an_error_that_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prudent.counts.lists, "_MOST_PLACES", 1_000)
    table = pa.concat_tables([log(*range(1, 30)), log(400)])
    with pytest.raises(LogError, match=r"30 different lists and one of 400 positions.*--max-positions"):
        prudent.compare(table)
