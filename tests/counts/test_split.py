"""Train and holdout."""

import gzip
import json
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import prudent
from prudent.base.errors import LogError, PrudentWarning, UsageError
from prudent.logs.log import Layout
from tests.command import run


def lists(n: int = 400) -> list[dict[str, Any]]:
    """Lists of which every fourth is the same, with a column that nobody asked about."""
    return [
        {
            "context": f"q{i % 5}",
            "items": ["a", "b"] if i % 4 else ["007", "b"],
            "clicks": [i % 2, 0],
            "day": f"2026-01-{1 + i // 20:02}",
            "note": "same" if i % 4 == 0 else f"n{i}",
        }
        for i in range(n)
    ]


def rows(n: int = 100) -> list[dict[str, Any]]:
    return [
        {"impression": f"i{i}", "context": "q", "item": name, "position": k, "click": 0, "seconds": 3 * i + k}
        for i in range(n)
        for k, name in enumerate(["007", "b"], start=1)
    ]


def write(records: list[dict[str, Any]], path: Path) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
    elif path.suffix == ".csv":
        lines = [",".join(records[0]), *(",".join(map(str, one.values())) for one in records)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        content = "".join(json.dumps(one) + "\n" for one in records)
        with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w", encoding="utf-8") as file:
            file.write(content)
    return path


def content(*paths: Path) -> Counter[str]:
    return Counter(json.dumps(one, default=str) for path in paths for one in pq.read_table(path).to_pylist())


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "jsonl.gz"])
def test_every_list_is_on_one_side_with_all_its_columns(tmp_path: Path, ending: str) -> None:
    log = write(lists(), tmp_path / f"log.{ending}")
    train, holdout = tmp_path / "train.parquet", tmp_path / "holdout.parquet"
    actual = prudent.split(log, tmp_path, holdout=0.25)
    assert content(train, holdout) == Counter(json.dumps(one) for one in lists())
    assert actual.train.lists + actual.holdout.lists == 400
    # A binomial number: 100 ± 4 standard deviations of √75.
    assert 65 < actual.holdout.lists < 135
    # Equal lists are not all on one side.
    assert {one["note"] for one in pq.read_table(holdout).to_pylist()} & {"same"}
    assert {one["note"] for one in pq.read_table(train).to_pylist()} & {"same"}
    for part in (train, holdout):
        assert prudent.count(prudent.Log(part)).tally.rejected_lists == 0


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
def test_impressions_stay_whole(tmp_path: Path, ending: str) -> None:
    log = prudent.Log(write(rows(), tmp_path / f"log.{ending}"), layout="rows")
    parts = tmp_path / "train.parquet", tmp_path / "holdout.parquet"
    actual = prudent.split(log, tmp_path, holdout=0.3)
    ids = [{one["impression"] for one in pq.read_table(part).to_pylist()} for part in parts]
    assert not ids[0] & ids[1]
    assert (len(ids[0]), len(ids[1])) == (actual.train.lists, actual.holdout.lists)
    counted = [prudent.count(prudent.Log(part, layout="rows")) for part in parts]
    assert [counts.tally.lists for counts in counted] == [actual.train.lists, actual.holdout.lists]
    assert counted[0] + counted[1] == prudent.count(log)


def test_the_order_of_rows_and_the_number_of_threads_do_not_matter(tmp_path: Path) -> None:
    """To the byte, for a log of the same name."""
    made = []
    for number, records in enumerate([lists(20_000), lists(20_000)[::-1]]):
        log = write(records, tmp_path / "log.parquet")
        parts = prudent.split(log, tmp_path / f"{number}", engine=prudent.DuckDB(threads=number + 1))
        made.append([part.path.read_bytes() for part in (parts.train, parts.holdout)])
    assert made[0] == made[1]


def test_another_seed_is_another_split(tmp_path: Path) -> None:
    log = prudent.Log(write(lists(), tmp_path / "log.parquet"))
    held = []
    for seed in (0, 0, 1):
        prudent.split(log, tmp_path, seed=seed)
        held.append(content(tmp_path / "holdout.parquet"))
    assert held[0] == held[1]
    assert held[0] != held[2]


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_the_latest_are_held_out(tmp_path: Path, ending: str) -> None:
    log = prudent.Log(write(lists(), tmp_path / f"log.{ending}"))
    parts = tmp_path / "train.parquet", tmp_path / "holdout.parquet"
    actual = prudent.split(log, tmp_path, holdout=0.23, by="time", time="day")
    days = [{one["day"] for one in pq.read_table(part).to_pylist()} for part in parts]
    assert max(days[0]) < min(days[1])
    assert actual.holdout.lists == 80  # 20 lists a day: four days are no more than 23 %, five would be
    assert {type(day) for day in days[0]} == {str}


def test_times_in_text_files_are_numbers(tmp_path: Path) -> None:
    """9 is earlier than 10; and an impression has the time of its first row."""
    log = prudent.Log(write(rows(), tmp_path / "log.csv"), layout="rows")
    parts = tmp_path / "train.parquet", tmp_path / "holdout.parquet"
    actual = prudent.split(log, tmp_path, holdout=0.1, by="time", time="seconds")
    assert (actual.train.lists, actual.holdout.lists) == (90, 10)
    assert min(int(one["seconds"]) for one in pq.read_table(parts[1]).to_pylist()) == 271


def test_a_table_in_memory_and_odd_names_of_columns(tmp_path: Path) -> None:
    records = [{"list": f"q{i % 3}", "row": ["a"], 'cl"ick': [0], "time": i, "place": None} for i in range(50)]
    log = prudent.Log(pa.Table.from_pylist(records), context="list", items="row", clicks='cl"ick')
    parts = tmp_path / "train.parquet", tmp_path / "holdout.parquet"
    prudent.split(log, tmp_path, holdout=0.4)
    assert content(*parts) == Counter(json.dumps(one) for one in records)


def test_what_cannot_be_split(tmp_path: Path) -> None:
    log = prudent.Log(write(lists(), tmp_path / "log.parquet"))
    parts = tmp_path / "train.parquet", tmp_path / "holdout.parquet"
    with pytest.raises(UsageError, match="above 0 and below 1"):
        prudent.split(log, tmp_path, holdout=1.0)
    with pytest.raises(UsageError, match="holdout is 'a'; it is a share"):
        prudent.split(log, tmp_path, holdout="a")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"seed is 1\.5; it must be a whole number"):
        prudent.split(log, tmp_path, seed=1.5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="Did you mean 'time'"):
        prudent.split(log, tmp_path, by="times")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="--time COLUMN"):
        prudent.split(log, tmp_path, by="time")
    with pytest.raises(LogError, match="Did you mean 'day'"):
        prudent.split(log, tmp_path, by="time", time="days")
    with pytest.raises(UsageError, match="counts do not keep whole lists"):
        prudent.split(prudent.count(log), tmp_path)
    alike = write([{**one, "day": "today"} for one in lists()], tmp_path / "alike.parquet")
    with pytest.raises(LogError, match="all the same"):
        prudent.split(prudent.Log(alike), tmp_path, by="time", time="day")
    with pytest.raises(LogError, match="one side"):
        prudent.split(prudent.Log(write(lists(1), tmp_path / "one.parquet")), tmp_path)
    empty = pq.read_table(write(lists(1), tmp_path / "empty.parquet")).slice(1)
    with pytest.raises(LogError, match="not a single row"):
        prudent.split(prudent.Log(empty), tmp_path)
    missing = write([*lists(), {**lists()[0], "day": None}], tmp_path / "missing.parquet")
    with pytest.raises(LogError, match="no time in 'day'"):
        prudent.split(prudent.Log(missing), tmp_path, by="time", time="day")
    mixed = write([*lists(), {**lists()[0], "context": 7}], tmp_path / "mixed.jsonl")
    with pytest.raises(LogError, match="two names"):
        prudent.split(prudent.Log(mixed), tmp_path)
    assert not [part for part in parts if part.exists()]
    assert not list(tmp_path.glob(".*part"))


@pytest.mark.parametrize("layout", ["lists", "rows"])
def test_a_part_with_too_many_bad_lists_is_told_of(tmp_path: Path, layout: str) -> None:
    """Three bad lists are few of 400, and many of the last 80."""
    made = lists()
    if layout == "lists":
        made[-3:] = [{**one, "clicks": [0, 7]} for one in made[-3:]]
    else:
        made = [
            {"impression": i, "context": "q", "item": item, "position": k, "click": 7 if i > 396 else 0, "day": i}
            for i in range(400)
            for k, item in enumerate("ab", start=1)
        ]
    log = write(made, tmp_path / "log.parquet")
    ran = run("split", log, "--layout", layout, "--by", "time", "--time", "day", "-o", tmp_path / "parts")
    assert ran.code == 0
    held_out = tmp_path / "parts" / "holdout.parquet"
    assert f"3 of 80 lists in {held_out} are rejected (3.8%): 3 × click other than 0 or 1. Fix or" in ran.text
    assert "train.parquet are rejected" not in ran.text
    assert run("split", log, "--layout", layout, "-o", tmp_path / "parts").code == 0


def test_the_command(tmp_path: Path) -> None:
    log = write(lists(), tmp_path / "log.parquet")
    done = run("split", log, "--holdout", "0.25", "-o", tmp_path / "parts")
    assert done.code == 0
    assert "train.parquet" in done.out
    assert "Clicks per list: " in done.out
    parts = [tmp_path / "parts" / f"{name}.parquet" for name in ("train", "holdout")]
    assert sum(content(*parts).values()) == 400
    said = json.loads((tmp_path / "parts" / "holdout.parquet.manifest.json").read_text())
    assert len(said["settings"].pop("id")) == 32
    assert said["settings"] == {"part": "holdout", "by": "hash", "holdout": 0.25, "seed": 0}
    assert said["results"]["lists"] == content(parts[1]).total()
    done = run("split", log, "--by", "time", "--time", "day", "-o", tmp_path / "parts", "--json")
    parts_ = json.loads(done.out)
    assert (parts_["train"]["lists"], parts_["holdout"]["lists"]) == (320, 80)
    assert parts_["train"]["path"] == str(parts[0])
    assert run("split", log, "--by", "time", "-o", tmp_path / "parts").code == 2
    assert run("split", log, "-o", log).code == 4


# --- clicks per list of the parts ---------------------------------------------------------------------------------


def test_clicks_per_list_and_a_warning_where_they_differ(tmp_path: Path) -> None:
    clicks = [[i % 2, 0] if i < 1000 else [1, i % 2] for i in range(2000)]
    log = pa.table({"context": ["q"] * 2000, "items": [["a", "b"]] * 2000, "clicks": clicks, "day": range(2000)})
    with pytest.warns(PrudentWarning, match=r"holdout has 71\.4% more clicks per list .* check that 'day' is the time"):
        parts = prudent.split(log, tmp_path, by="time", time="day")
    assert parts.holdout.clicks_per_list == 1.5
    assert parts.train.clicks_per_list == pytest.approx((1000 * 0.5 + 600 * 1.5) / 1600)
    assert parts.z > 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts = prudent.split(log, tmp_path, seed=1)
    n, m = parts.train.lists, parts.holdout.lists
    assert (parts.train.clicks_per_list * n + parts.holdout.clicks_per_list * m) / (n + m) == pytest.approx(1.0)


def test_lists_without_clicks_do_not_differ(tmp_path: Path) -> None:
    rows = [{"context": "q", "items": ["a"], "clicks": [0], "day": i} for i in range(50)]
    assert prudent.split(pa.Table.from_pylist(rows), tmp_path, by="time", time="day").z == 0


@pytest.mark.parametrize("layout", ["lists", "rows"])
def test_a_nul_byte_does_not_become_a_name(layout: Layout, tmp_path: Path) -> None:
    """Parquet would hold it as part of the name, and the list that the text file rejects would count."""
    rows: list[dict[str, object]] = [{"context": "q", "items": ["a", "b\0"], "clicks": [1, 0]}]
    if layout == "rows":
        rows = [{"impression": 1, "context": "q\0", "item": "a", "position": 1, "click": 1}]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert prudent.check(tmp_path / "log.jsonl", layout=layout).rejected == {"NUL byte in a name": 1}
    with pytest.raises(LogError, match=r"1 lines of .*log\.jsonl have a NUL byte in a name"):
        prudent.split(tmp_path / "log.jsonl", tmp_path, layout=layout)
    assert not list(tmp_path.glob("*.parquet"))
