"""Duplicates, bots and lists beyond a user's clicks are left out as a plain loop does it, and counted."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent.base.errors import LogError, UsageError
from tests.command import run
from tests.logs.visits import BOTS, kept, visits

NAMES: dict[str, Any] = {"user": "who", "shown_at": "at"}
BOTH = ("duplicates", "bots")
CASES: list[tuple[tuple[str, ...], int | None]] = [
    (("duplicates",), None),
    (("bots",), None),
    (BOTH, None),
    ((), 1),
    (BOTH, 1),
    (BOTH, 4),
]


@pytest.mark.parametrize(("leave_out", "limit"), CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_rest_is_counted_as_if_alone(leave_out: tuple[str, ...], limit: int | None, seed: int) -> None:
    rows = visits(seed)
    rest = kept(rows, duplicates="duplicates" in leave_out, bots="bots" in leave_out, limit=limit)
    counts = prudent.count(pa.Table.from_pylist(rows), **NAMES, leave_out=leave_out, max_user_clicks=limit)
    assert counts == prudent.count(pa.Table.from_pylist(rest))
    assert counts.tally.lists == len(rest)
    assert sum(counts.tally.left_out.values()) == len(rows) - len(rest)
    assert counts.manifest.sources["log"].tally.left_out == counts.tally.left_out


def test_each_reason_is_counted() -> None:
    rows = visits(1)
    alone = kept(rows, duplicates=True, bots=False, limit=None)
    people = kept(rows, duplicates=True, bots=True, limit=None)
    capped = kept(rows, duplicates=True, bots=True, limit=4)
    tally = prudent.count(pa.Table.from_pylist(rows), **NAMES, leave_out=BOTH, max_user_clicks=4).tally
    assert tally.left_out == {
        "duplicate lists": len(rows) - len(alone),
        "lists of bots": len(alone) - len(people),
        "lists beyond 4 clicks of a user": len(people) - len(capped),
    }
    assert tally.rejected == {}


@pytest.mark.parametrize("extra", [{}, {"reward": "worth"}, {"segment": "device"}, {"propensity": "chance"}])
def test_holdouts_count_what_is_left_out(extra: dict[str, str]) -> None:
    """However their lists are read."""
    rows = [
        {"who": f"u{n % 9}", "at": f"2026-11-{n % 7 + 1:02d} 10:00:00", "context": "q", "items": ["i", "j"],
         "clicks": [1, 0], "worth": [2, 0], "device": "phone", "chance": 0.5}
        for n in range(200)
    ]  # fmt: skip
    policy = prudent.Policy.from_table(pa.Table.from_pylist(rows[:1]), items="items")
    settings: dict[str, Any] = {**NAMES, **extra, "leave_out": "duplicates"}
    reward = {"reward": "clicks", **{key: value for key, value in extra.items() if key == "reward"}}
    made = prudent.evaluate(policy, pa.Table.from_pylist(rows), estimator="snips", **{**settings, **reward})
    tally = made.manifest.sources["holdout"].tally
    assert (tally.lists, tally.left_out) == (63, {"duplicate lists": 137})


def test_a_log_of_which_nothing_is_left_says_why() -> None:
    rows = [{"who": "u", "context": "q", "items": ["i", "j"], "clicks": [1, 1]} for _ in range(9)]
    with pytest.raises(
        LogError, match=r"Not one list of the Table is left: 9 lists beyond 1 clicks of a user were left"
    ):
        prudent.count(pa.Table.from_pylist(rows), user="who", max_user_clicks=1)


def test_a_limit_leaves_click_rates_as_they_are() -> None:
    """Every user with 40 lists that are clicked with probability .25: those kept below 5 clicks are too, but the end.

    The list with the click beyond the limit is missing: 5 clicks in the lists before a 6th, as in a negative binomial
    distribution, whose rate less that list is at least (5 + 0) / (20 + 1). Tolerance: four standard errors of 1,000.
    """
    rng = np.random.default_rng(0)
    rows = [
        {"who": user, "context": "q", "items": [f"i{n}", f"j{user}"], "clicks": [int(rng.random() < 0.25), 0]}
        for user in range(200)
        for n in range(40)
    ]
    counts = prudent.count(pa.Table.from_pylist(rows), user="who", max_user_clicks=5)
    health = prudent.check(counts)
    assert health.ctr[0] == pytest.approx(0.25, abs=0.025 + 4 * (0.25 * 0.75 / counts.tally.lists) ** 0.5)


def test_users_alone_change_nothing(tmp_path: Path) -> None:
    """To name them costs nothing: the same bytes but for nothing at all."""
    log = pa.Table.from_pylist(visits(3))
    pq.write_table(log, tmp_path / "log.parquet")
    files = [tmp_path / "without.parquet", tmp_path / "with.parquet"]
    for file, names in zip(files, ({}, NAMES), strict=True):
        prudent.count(str(tmp_path / "log.parquet"), to=file, **names)
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_files_give_what_tables_give(tmp_path: Path, suffix: str) -> None:
    table = pa.Table.from_pylist(visits(1))
    file = tmp_path / f"log.{suffix}"
    if suffix == "parquet":
        pq.write_table(table, file)
    else:
        pl.DataFrame(table).with_columns(pl.col("at").dt.to_string("%Y-%m-%d %H:%M:%S%.6f")).write_ndjson(file)
    settings: dict[str, Any] = {**NAMES, "leave_out": BOTH, "max_user_clicks": 4}
    assert prudent.count(str(file), **settings) == prudent.count(table, **settings)


def test_rows_that_are_repeated_are_one(tmp_path: Path) -> None:
    """In the layout rows, a list that is sent again has its id again: it was rejected for its positions."""
    rows = [
        {"impression": n, "context": "q", "item": f"i{k}", "position": k, "click": int(k == n), "who": f"u{n % 5}"}
        for n in range(20)
        for k in (1, 2, 3)
    ]
    again = [*rows, *rows[:3], *rows[10:11]]
    clean, repeated = (pa.Table.from_pylist(one) for one in (rows, again))
    whole = prudent.count(clean, layout="rows")
    assert prudent.count(repeated, layout="rows", max_rejected=1).tally.rejected_lists == 2
    counts = prudent.count(repeated, layout="rows", leave_out="duplicates")
    assert counts == whole
    assert counts.tally.left_out == {"duplicate rows": 4}
    assert prudent.count(repeated, layout="rows", user="who", leave_out=BOTH, max_user_clicks=99) == whole


def test_check_finds_what_could_be_left_out() -> None:
    table = pa.Table.from_pylist(visits(1))
    health = prudent.check(table, **NAMES)
    assert health.hygiene is not None
    assert (health.hygiene.users, health.hygiene.bots) == (123, len(BOTS))
    left_out = prudent.count(table, **NAMES, leave_out=BOTH).tally.left_out
    assert health.hygiene.left_out == left_out
    found = "lists of bots (2 users of 123); --leave-out duplicates --leave-out bots leave them out."
    assert any(found in one for one in health.verdicts())
    without_times = str(prudent.check(table, user="who").hygiene)
    assert "(1 user of 123); --leave-out bots leaves them out. Without times (--shown-at)" in without_times
    assert prudent.check(table).hygiene is None
    assert "hygiene" not in prudent.check(table).to_json()
    assert prudent.check(table, **NAMES, leave_out=BOTH).left_out == left_out


def test_check_reports_repeats_beyond_chance() -> None:
    """Without users nothing says which of equal lists are duplicates; that there are too many shows."""
    rows = [row for row in visits(1) if row["who"] not in BOTS] * 3
    verdicts = prudent.check(pa.Table.from_pylist(rows)).verdicts()
    assert any(one.startswith("Repeats: lists repeat improbably often, as if logged 3 times") for one in verdicts)


def test_duplicates_are_in_one_part_of_a_split(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(visits(1) * 2)
    settings: dict[str, Any] = {**NAMES, "leave_out": "duplicates"}
    parts = prudent.split(table, tmp_path, holdout=0.5, **settings)
    two = sum(prudent.count(str(part.path), **settings).tally.lists for part in (parts.train, parts.holdout))
    # Lists without a user or a time are no duplicates, but equal rows, which stay together too.
    assert two == prudent.count(table, **settings).tally.lists


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"leave_out": "bot", "user": "who"}, "Did you mean 'bots'"),
        ({"leave_out": "bots"}, "--user"),
        ({"max_user_clicks": 3}, "--user"),
        ({"max_user_clicks": 0, "user": "who"}, "at least 1"),
        ({"leave_out": "duplicates", "user": "who"}, "--shown-at"),
        ({"layout": "impressions", "user": "who"}, "whole lists"),
    ],
)
def test_what_is_missing_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        prudent.Log("log.parquet", **settings)


def test_command(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(visits(1)), tmp_path / "log.parquet")
    words = ["--user", "who", "--shown-at", "at", "--leave-out", "duplicates", "--leave-out", "bots"]
    done = run("count", str(tmp_path / "log.parquet"), "-o", str(tmp_path / "counts.parquet"), *words, "--json")
    tally = json.loads(done.out)["sources"]["log"]
    assert tally["left_out"] == prudent.count(str(tmp_path / "log.parquet"), **NAMES, leave_out=BOTH).tally.left_out
