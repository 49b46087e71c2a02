"""Spark counts the rewards that DuckDB counts, and ranks by them, to the last bit."""

import json
import math
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import prudent
from prudent.base.errors import LogError
from prudent.engines.spark import rewards, tasks
from prudent.logs.log import REASONS
from tests.counts import test_rewards as plain
from tests.engines.test_spark import assert_same
from tests.engines.test_spark_rank import rank, same
from tests.policies.test_rewards import world

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> prudent.Counts:
    return prudent.count(world(1), reward="margin", to=tmp_path_factory.mktemp("rewards") / "counts.parquet")


def test_the_policy_of_one_machine(counts: prudent.Counts, quick: SparkSession, tmp_path: Path) -> None:
    same(tmp_path, rank(counts, quick, tmp_path, reward="margin"), prudent.rank(counts))


def test_the_policy_with_candidates_and_groups(counts: prudent.Counts, quick: SparkSession, tmp_path: Path) -> None:
    """Candidates that were never shown have earned nothing."""
    pairs = [(context, item) for context in range(3, 15) for item in range(1, 8)]
    candidates = tmp_path / "candidates.parquet"
    pq.write_table(pa.table(dict(zip(("context", "item"), zip(*pairs, strict=True), strict=True))), candidates)
    settings: dict[str, Any] = {"candidates": candidates, "groups": "item", "unseen": True}
    found = rank(counts, quick, tmp_path, **settings)
    same(tmp_path, found, prudent.rank(counts, **settings))


def rows_of(lists: pa.Table) -> pa.Table:
    """One row per item."""
    return pa.Table.from_pylist(
        [
            {"impression": n, "context": one["context"], "item": item, "position": k, "click": click, "margin": margin}
            for n, one in enumerate(lists.to_pylist())
            for k, (item, click, margin) in enumerate(
                zip(one["items"], one["clicks"], one["margin"], strict=True), start=1
            )
        ]
    )


@pytest.mark.parametrize("layout", ["lists", "rows", "impressions"])
def test_the_counts_of_one_machine(layout: Any, quick: SparkSession, tmp_path: Path) -> None:
    """The same bytes in one file, and the same counts in a folder of part files."""
    lists = world(4, lists=400)
    table = lists if layout == "lists" else rows_of(lists)
    settings: dict[str, Any] = {"layout": layout, "reward": "margin"}
    pq.write_table(table, tmp_path / "log.parquet")
    log = prudent.Log(tmp_path / "log.parquet", **settings)
    one = prudent.count(log, to=tmp_path / "one.parquet")
    two = prudent.count(log, to=tmp_path / "two.parquet", engine=prudent.Spark(quick))
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    folder = prudent.count(log, to=str(tmp_path / "folder"), engine=prudent.Spark(quick))
    assert one == two == folder
    assert folder.tally == one.tally


AMOUNTS: dict[str, tuple[Any, list[Any]]] = {
    "integers": (pa.int32(), [0, 1, 7, 100_000, 100_001, -1]),
    "booleans": (pa.bool_(), [False, True]),
    "floats": (
        pa.float64(),
        [0.0, -0.0, 2.675, 0.0004, 0.0005, 100_000.0, 100_000.01, -0.5, float("nan"), float("inf"), 1e300],
    ),
    "decimals": (pa.decimal128(12, 4), [Decimal(text) for text in ("0", "2.6755", "0.0005", "100000.0001", "-1")]),
    "text": (
        pa.string(),
        ["0", "3.5", " 2.675 ", "1e2", "1_0", "1d", "0x1", "much", "", "nan", "inf", "true", "-1", "1e99", "+1", ".5"],
    ),
    "dates": (pa.date32(), [date(2026, 11, 19)]),
    "nothing": (pa.null(), [None]),
}  # fmt: skip


@pytest.mark.parametrize("kind", AMOUNTS)
def test_what_is_no_reward(kind: str, quick: SparkSession, tmp_path: Path) -> None:
    """Each amount with and without a click, and beside every other fault; lists of other lengths and none."""
    of_rewards, amounts = AMOUNTS[kind]
    some = [*amounts, None]
    good = amounts[0]
    lists: list[Any] = [("q", ["a", "b"], [click, 1], [amount, good]) for amount in some for click in (0, 1)]
    lists += [("p", ["a", "a"], [1, 1], [amount, amount]) for amount in some]
    lists += [(None, ["a"], [1], [good]), ("p", ["a"], [2], [None]), ("p", ["a", "b"], [1, 1], [good])]
    lists += [("p", ["a", "b"], [1, 1], None), ("p", [], [], []), ("p", None, [1], [good]), ("p", ["a"], None, [good])]
    types = [pa.string(), pa.list_(pa.string()), pa.list_(pa.int32()), pa.list_(of_rewards)]
    columns = [pa.array(column, kind) for kind, column in zip(types, zip(*lists, strict=True), strict=True)]
    table = pa.table(columns, ["context", "items", "clicks", "margin"])
    rows: list[Any] = [
        (n, one["context"], item, k, click, reward)
        for n, one in enumerate(table.to_pylist())
        if None not in (one["items"], one["clicks"], one["margin"])
        for k, (item, click, reward) in enumerate(zip(one["items"], one["clicks"], one["margin"], strict=False), 1)
    ]
    rows += [(None, "q", "a", 1, 1, good), (999, "q", "a", None, 1, good), (999, "q", "b", 2, 1, good)]
    row_types = [pa.int64(), pa.string(), pa.string(), pa.int64(), pa.int32(), of_rewards]
    arrays = [pa.array(column, kind) for kind, column in zip(row_types, zip(*rows, strict=True), strict=True)]
    by_row = pa.table(arrays, ["impression", "context", "item", "position", "click", "margin"])
    layouts: dict[Any, pa.Table] = {"lists": table, "rows": by_row, "impressions": by_row}
    for layout, given in layouts.items():
        pq.write_table(given, tmp_path / f"{layout}.parquet")
        settings: dict[str, Any] = {"layout": layout, "reward": "margin"}
        here = prudent.Log(tmp_path / f"{layout}.parquet", **settings)
        _, _, tally = assert_same(prudent.Log(given, **settings), here, prudent.Spark(quick))
        assert tally.rejected


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_text_files(ending: str, quick: SparkSession, tmp_path: Path) -> None:
    """Every number is text there, and a name may have a NUL byte."""
    amounts = ["3.5", "0", "much", "nan", "1e99", "-1", "2.675"]
    rows = [{"impression": n, "context": f"q{n % 2}", "item": "a", "position": 1, "click": 1, "margin": amount}
            for n, amount in enumerate(amounts)]  # fmt: skip
    rows.append({**rows[0], "impression": 99, "item": "a\0"})
    file = tmp_path / f"log.{ending}"
    if ending == "csv":
        file.write_text("\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]))
    else:
        numbers = [
            {**row, "margin": amount} for row, amount in zip(rows, [3.5, 1, 0.0005, True, -1, None], strict=False)
        ]
        file.write_text("\n".join(map(json.dumps, [*rows, *numbers])))
    layouts: tuple[Any, ...] = ("rows", "impressions")
    for layout in layouts:
        log = prudent.Log(file, layout=layout, reward="margin")
        _, _, tally = assert_same(log, log, prudent.Spark(quick))
        assert tally.rejected["NUL byte in a name"] == 1


@pytest.mark.parametrize("layout", ["lists", "impressions"])
def test_sums_that_do_not_fit_are_an_error(layout: Any, quick: SparkSession, tmp_path: Path) -> None:
    """The square of the largest reward is 10¹⁶ in whole units: 461 of them are above 2⁶², and 923 above 2⁶³."""
    lists = pa.table({"context": ["q"] * 930, "items": [["a"]] * 930, "clicks": [[1]] * 930, "margin": [[1e5]] * 930})
    table = lists if layout == "lists" else rows_of(lists)
    for name in ("counts.parquet", "counts"):
        log = prudent.Log(quick.createDataFrame(table), layout=layout, reward="margin")
        with pytest.raises(LogError, match="larger unit"):
            prudent.count(log, engine=prudent.Spark(quick), to=tmp_path / name)


def test_lists_that_are_left_out_earn_nothing(quick: SparkSession) -> None:
    """Of duplicates one is kept; a list that earned something else is none."""
    table = world(3, lists=60)
    lists = pa.concat_tables([table, table.slice(0, 20)])
    earned = [[7.0 * click for click in clicks] for clicks in table["clicks"].to_pylist()[:20]]
    other = table.slice(0, 20).set_column(3, "margin", pa.array(earned))
    lists = pa.concat_tables([lists, other])
    lists = lists.append_column("who", pa.array(["u"] * len(lists))).append_column("at", pa.array([9] * len(lists)))
    settings: dict[str, Any] = {"reward": "margin", "user": "who", "shown_at": "at", "leave_out": "duplicates"}
    here = prudent.Log(quick.createDataFrame(lists), **settings, max_user_clicks=30)
    _, _, tally = assert_same(prudent.Log(lists, **settings, max_user_clicks=30), here, prudent.Spark(quick))
    assert set(tally.left_out) == {"duplicate lists", "lists beyond 30 clicks of a user"}


def test_days_that_spark_counted(quick: SparkSession, tmp_path: Path) -> None:
    """Folders of part files, with a half-life: the policy of days that DuckDB counted, on both engines."""
    engine = prudent.Spark(quick)
    for day in range(1, 4):
        lists = world(day, lists=1_000)
        prudent.count(lists, reward="margin", to=tmp_path / "days", day=f"2026-11-{day:02}")
        frame = quick.createDataFrame(lists)
        prudent.count(frame, reward="margin", engine=engine, to=tmp_path / "parts", day=f"2026-11-{day:02}")
    one, other = (prudent.Counts.read(tmp_path / name, half_life="2d") for name in ("days", "parts"))
    assert one == other
    same(tmp_path, rank(other, quick, tmp_path), prudent.rank(one))


def test_a_task_of_many_batches_and_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums are those of a loop, however often runs end and rows of the same pair are added up."""
    monkeypatch.setattr(tasks, "_BUDGET", 50_000)
    monkeypatch.setattr(rewards, "_SUMS", 100)
    lists = plain.world(600)
    context, items, clicks, earned = zip(*lists, strict=True)
    thousandths = [[math.floor(reward * 1000 + 0.5) for reward in one] for one in earned]
    table = pa.table(
        {
            "context": context,
            "items": items,
            "clicks": clicks,
            "fault": pa.array([0] * len(lists), pa.int32()),
            "copies": [1] * len(lists),
            "rewards": thousandths,
        }
    )
    batches = table.to_batches(max_chunksize=50)
    made = pa.Table.from_batches(list(tasks.count_batches(iter(batches), 1_000, False))).to_pylist()
    assert made.pop()["tally"] == [600, *[0] * len(REASONS)]
    found = {
        (one["context"], item): [*sums]
        for one in made
        for item, *sums in zip(one["items"], one["reward"], one["reward_squares"], strict=True)
    }
    assert found == plain.plain_sums(lists)
