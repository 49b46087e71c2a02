"""Sums of rewards against plain loops over the lists, whatever they are counted with, and what is no reward."""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import prudent
from prudent.base.errors import CountsError, LogError, UsageError
from prudent.counts.days import UNIT, weight
from prudent.engines.duckdb import count as counting
from tests.strategies import logs

List = tuple[Any, tuple[Any, ...], tuple[int, ...], tuple[float, ...]]
Sums = dict[tuple[Any, Any], list[int]]

amounts = st.one_of(
    st.sampled_from([0.0, 1.0, 0.001, 0.0004, 0.0005, 2.675, 100_000.0]), st.floats(0, 100_000, allow_subnormal=False)
)


@st.composite
def rewarded(draw: st.DrawFn) -> list[List]:
    """Lists whose clicks earned something or not."""
    return [
        (context, items, clicks, tuple(draw(amounts) if click else 0.0 for click in clicks))
        for context, items, clicks in draw(logs(max_items=4))
    ]


def plain_sums(lists: Sequence[List]) -> Sums:
    """Of each pair, the sum of rewards and of their squares, in whole thousandths of each reward."""
    sums: Sums = defaultdict(lambda: [0, 0])
    for context, items, _, rewards in lists:
        for item, reward in zip(items, rewards, strict=True):
            thousandths = math.floor(reward * 1000 + 0.5)
            pair = sums[context, item]
            pair[0] += thousandths
            pair[1] += thousandths**2
    return dict(sums)


def table(lists: Sequence[List]) -> pa.Table:
    context, items, clicks, rewards = zip(*lists, strict=True)
    return pa.table({"context": context, "items": items, "clicks": clicks, "margin": rewards})


def counted(lists: Sequence[List], **settings: Any) -> prudent.Counts:
    return prudent.count(table(lists), reward="margin", **settings)


def sums_of(counts: prudent.Counts) -> Sums:
    found: Sums = {}
    for piece in counts.pieces():
        run = piece.run
        contexts = np.repeat(np.array(run.contexts.to_list(), object), run.pairs).tolist()
        assert run.rewards is not None
        found |= dict(zip(zip(contexts, run.items.to_list(), strict=True), run.rewards.tolist(), strict=True))
    return found


@given(rewarded())
def test_sums_are_those_of_a_loop(lists: list[List]) -> None:
    counts = counted(lists)
    assert sums_of(counts) == plain_sums(lists)
    clicks = prudent.count(table(lists))
    assert counts.tally.lists == clicks.tally.lists
    assert np.array_equal(counts.cells.n, clicks.cells.n)  # rewards change no cell


@given(rewarded(), st.data())
def test_parts_add_up_in_any_order(lists: list[List], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(lists) - 1))
    parts = [part for part in (lists[cut:][::-1], lists[:cut]) if part]
    both = [counted(part) for part in parts]
    added = both[0] + both[1] if len(both) == 2 else both[0]
    assert sums_of(added) == sums_of(counted(data.draw(st.permutations(lists))))
    assert added == counted(lists)


def world(lists: int = 5_000, seed: int = 5) -> list[List]:
    rng = np.random.default_rng(seed)
    shown: list[List] = []
    for _ in range(lists):
        items = tuple(f"i{item}" for item in rng.permutation(30)[:6])
        clicks = tuple(int(click) for click in rng.random(6) < 0.3)
        shown.append((f"q{rng.integers(400)}", items, clicks, tuple(c * round(rng.exponential(9), 3) for c in clicks)))
    return shown


def test_any_memory_threads_kernel_and_order_write_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lists = world()
    expected = plain_sums(lists)

    def write(name: str, lists: Sequence[List], **engine: Any) -> bytes:
        counts = counted(lists, to=tmp_path / name, engine=prudent.DuckDB(**engine))
        assert sums_of(counts) == expected
        return (tmp_path / name).read_bytes()

    first = write("one.parquet", lists, threads=1)
    assert write("two.parquet", lists[::-1], threads=2) == first
    monkeypatch.setattr(counting, "_MOST", 100_000)  # bytes of lists at a time: many runs, which are spilled
    assert write("spilled.parquet", lists) == first
    monkeypatch.setenv("PRUDENT_KERNEL", "numpy")
    assert write("numpy.parquet", lists) == first


def test_counts_without_rewards_have_no_column_for_them(tmp_path: Path) -> None:
    named: Mapping[str, dict[str, Any]] = {"plain": {}, "rewards": {"reward": "margin"}}
    for name, settings in named.items():
        prudent.count(table(world(50)), to=tmp_path / f"{name}.parquet", **settings)
    plain, rewards = (pq.read_schema(tmp_path / f"{name}.parquet").names for name in ("plain", "rewards"))
    assert rewards == [*plain, "reward", "reward_squares"]
    manifest = json.loads((tmp_path / "rewards.parquet.manifest.json").read_text())
    assert (manifest["sources"]["log"]["reward"], manifest["sources"]["log"]["reward_units"]) == ("margin", 1000)
    assert "reward" not in json.loads((tmp_path / "plain.parquet.manifest.json").read_text())["sources"]["log"]


def test_layouts_agree(tmp_path: Path) -> None:
    """Lists, rows and impressions, in Parquet, CSV and JSON Lines, have the same rewards."""
    lists = world(300)
    rows = [
        {"impression": n, "context": context, "item": item, "position": k, "click": click, "margin": reward}
        for n, (context, items, clicks, rewards) in enumerate(lists)
        for k, (item, click, reward) in enumerate(zip(items, clicks, rewards, strict=True), start=1)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    duckdb.execute(f"copy (from '{tmp_path}/rows.parquet') to '{tmp_path}/rows.csv' (header)")
    whole = (
        {"context": context, "items": items, "clicks": clicks, "margin": rewards}
        for context, items, clicks, rewards in lists
    )
    (tmp_path / "lists.jsonl").write_text("\n".join(map(json.dumps, whole)))
    expected = plain_sums(lists)
    for name, layout in (
        ("rows.parquet", "rows"),
        ("rows.csv", "rows"),
        ("rows.csv", "impressions"),
        ("lists.jsonl", "lists"),
    ):
        assert sums_of(prudent.count(tmp_path / name, layout=layout, reward="margin")) == expected, (name, layout)


REJECTED: Mapping[str, Sequence[tuple[list[int], Any]]] = {
    "items and rewards differ in length": [([1, 0], [1.0]), ([1, 0], None)],
    "reward outside 0 to 100,000": [
        ([1, 0], [reward, 0.0]) for reward in (-0.5, math.nan, math.inf, -math.inf, 100_000.01, 1e308, None)
    ],
    "reward without a click": [([1, 0], [1.0, 0.5])],
}


def test_what_is_no_reward_is_rejected_and_counted() -> None:
    lists = [("q", ["a", "b"], clicks, rewards) for faults in REJECTED.values() for clicks, rewards in faults]
    good = ("q", ["a", "b"], [1, 0], [100_000.0, 0.0])
    columns = dict(zip(("context", "items", "clicks", "margin"), zip(*lists, good, strict=True), strict=True))
    counts = prudent.count(pa.table(columns), reward="margin", max_rejected=1)
    assert counts.tally.rejected == {reason: len(faults) for reason, faults in REJECTED.items()}
    assert sums_of(counts) == {("q", "a"): [10**8, 10**16], ("q", "b"): [0, 0]}


@pytest.mark.parametrize("layout", ["lists", "rows", "impressions"])
def test_a_reward_that_is_not_a_number_is_rejected_in_parquet_too(tmp_path: Path, layout: str) -> None:
    """The footer has the smallest and the largest reward, and NaN is neither."""
    one, many = ("item", "click", "margin"), ("items", "clicks", "margin")
    rows = [
        {"impression": n, "context": "q", "position": 1, **dict(zip(one, ("a", 1, reward), strict=True))}
        if layout != "lists"
        else {"context": "q", **dict(zip(many, (["a"], [1], [reward]), strict=True))}
        for n, reward in enumerate([2.5, math.nan, 4.0])
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    counts = prudent.count(tmp_path / "log.parquet", layout=layout, reward="margin", max_rejected=1)
    assert counts.tally.rejected == {"reward outside 0 to 100,000": 1}
    assert sums_of(counts) == {("q", "a"): [6_500, 22_250_000]}


@pytest.mark.parametrize(
    ("text", "rejected"), [("3.5", 0), ("0", 0), ("much", 1), ("", 1), ("nan", 1), ("1e99", 1), ("-1", 1)]
)
def test_text(tmp_path: Path, text: str, rejected: int) -> None:
    """In CSV every number is text."""
    rows = [f"{n},q,a,1,1,{text if n else 1}" for n in range(2)]
    (tmp_path / "log.csv").write_text("\n".join(["impression,context,item,position,click,margin", *rows]))
    for layout in ("rows", "impressions"):
        counts = prudent.count(tmp_path / "log.csv", layout=layout, reward="margin", max_rejected=1)
        assert counts.tally.rejected_lists == rejected


def test_purchases_may_be_true_and_false() -> None:
    lists = pa.table({"context": ["q"], "items": [["a", "b"]], "clicks": [[1, 1]], "bought": [[True, False]]})
    assert sums_of(prudent.count(lists, reward="bought")) == {("q", "a"): [1000, 10**6], ("q", "b"): [0, 0]}


def test_a_half_life_weighs_rewards_as_it_weighs_clicks(tmp_path: Path) -> None:
    """Each day's sums are rounded to whole thousandths, so that they add up in any order; 20 days are merged by 16."""
    days = [world(40, seed) for seed in range(20)]
    for day, lists in enumerate(days, start=1):
        counted(lists, to=tmp_path / "days", day=f"2026-11-{day:02}")
    expected: Sums = defaultdict(lambda: [0, 0])
    for age, lists in enumerate(reversed(days)):
        for pair, sums in plain_sums(lists).items():
            for k, each in enumerate(sums):
                expected[pair][k] += (each * weight(age, 2.0) + UNIT // 2) // UNIT
    assert sums_of(prudent.Counts.read(tmp_path / "days", half_life="2d")) == dict(expected)
    every = sums_of(prudent.Counts.read(tmp_path / "days"))
    assert every == plain_sums([one for day in days for one in day])
    prudent.compact(tmp_path / "days", "2026-11-15")
    assert sums_of(prudent.Counts.read(tmp_path / "days")) == every


def test_sums_that_do_not_fit_are_an_error(tmp_path: Path) -> None:
    """The square of the largest reward is 10¹⁶ in whole units: 461 of them are above 2⁶²."""
    one = [("q", ("a",), (1,), (100_000.0,))]
    with pytest.raises(LogError, match="larger unit"):
        counted(one * 462)
    many = [counted(one * 300, to=tmp_path / f"{part}.parquet") for part in "ab"]
    with pytest.raises(CountsError, match="larger unit"):
        list((many[0] + many[1]).pieces())


def test_different_rewards_are_not_added(tmp_path: Path) -> None:
    lists = table(world(20))
    margin, clicks = prudent.count(lists, reward="margin"), prudent.count(lists)
    dwell = prudent.count(lists.rename_columns(["context", "items", "clicks", "dwell"]), reward="dwell")
    for other in (clicks, dwell):
        assert margin != other
        with pytest.raises(CountsError, match="different rewards"):
            margin + other


def test_a_file_without_its_sums_is_damaged(tmp_path: Path) -> None:
    counted(world(20), to=tmp_path / "counts.parquet")
    whole = pq.read_table(tmp_path / "counts.parquet")
    footer = {key: value for key, value in whole.schema.metadata.items() if key != b"prudent_checksum"}
    for name, columns in (("less", [0, 1, 2, 3, 4, 5, 6, 7, 8]), ("half", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])):
        pq.write_table(whole.select(columns).replace_schema_metadata(footer), tmp_path / f"{name}.parquet")
        with pytest.raises(CountsError, match="reward"):
            prudent.Counts.read(tmp_path / f"{name}.parquet")


def test_candidates_that_were_never_shown_have_earned_nothing() -> None:
    counts = counted([("q", ("a", "b"), (1, 0), (2.5, 0.0))] * 9)
    candidates = pa.table({"context": ["p", "q", "q"], "item": ["a", "b", "c"]})
    part = counts.number(prudent.logs.log.Candidates(candidates)).whole()
    assert part.items.to_list() == ["a", "a", "b", "c"]
    assert part.cells.rewards is not None
    assert part.cells.rewards.tolist() == [[0, 0], [22.5, 56.25], [0, 0], [0, 0]]


def test_baselines_do_not_rank_by_rewards() -> None:
    with pytest.raises(UsageError, match="knows no rewards"):
        prudent.rank_baseline(table(world(20)), "ips", reward="margin")


def test_lists_that_are_left_out_earn_nothing() -> None:
    """Of duplicates one is kept; a list that earned something else is none."""
    rows = [("u", 9, "q", ["a"], [1], [2.0])] * 3 + [("u", 9, "q", ["a"], [1], [7.0])]
    columns = dict(
        zip(("user", "at", "context", "items", "clicks", "margin"), map(list, zip(*rows, strict=True)), strict=True)
    )
    hygiene: dict[str, Any] = {"user": "user", "shown_at": "at", "leave_out": "duplicates"}
    counts = prudent.count(pa.table(columns), reward="margin", **hygiene)
    assert sums_of(counts) == {("q", "a"): [9_000, 53_000_000]}
