"""A folder of days reads as the sum of its days, each with its weight, whatever happens to those who write into it."""

import json
import shutil
import sys
from collections import Counter
from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.errors import CountsError, UsageError, WriteError
from prudent.counts.days import UNIT, Chosen, Span, choose, in_force, weight
from prudent.storage.manifest import Days, Manifest
from tests import reference
from tests.command import run, run_apart
from tests.reference import LoggedList
from tests.strategies import count, logs, table

NEWEST = date(2026, 11, 15)
SMALL: list[LoggedList] = [("shoes", ("a", "b"), (1, 0)), ("shoes", ("b", "a"), (0, 1)), ("boots", ("a", "c"), (0, 0))]

spans = st.builds(
    lambda age, length: Span(NEWEST - timedelta(age + length), NEWEST - timedelta(age)),
    age=st.integers(0, 40),
    length=st.sampled_from([0, 0, 0, 1, 5, 20]),
)


def write_day(lists: list[LoggedList], folder: Path, day: object) -> prudent.Counts:
    return prudent.count(prudent.Log(table(lists)), to=folder, day=str(day))


def file_of(span: Span | str, folder: str = "counts") -> Path:
    return Path(folder) / (span.folder if isinstance(span, Span) else f"day={span}") / "counts.parquet"


def write_files(folder: Path, lists: list[LoggedList], *names: str) -> None:
    """The same counts under several names, which need not be those of days."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        count(lists).write(folder / name)


# --- which days count, and how much -------------------------------------------------------------------------------


@given(st.sets(spans, min_size=1, max_size=12))
def test_a_range_supersedes_what_lies_inside_it(actual: set[Span]) -> None:
    """The same rule, said once more by comparing each with each."""
    inside = {one for one in actual if any(one.first >= o.first and one.last <= o.last for o in actual - {one})}
    kept = actual - inside
    overlap = any(one.first <= other.last and other.first <= one.last for one in kept for other in kept - {one})
    files = [file_of(span) for span in sorted(actual)]
    if overlap:
        with pytest.raises(CountsError, match=r"day=.* and day=.* have days in common, which would count twice"):
            in_force(files)
    else:
        assert in_force(files) == [(file_of(span), span) for span in sorted(kept)]


def test_every_folder_of_days_is_read_for_itself() -> None:
    """The days of one shop do not supersede those of another."""
    files = [file_of("2026-11-01..2026-11-05", "one"), file_of("2026-11-03", "two"), Path("other/counts.parquet")]
    assert [file for file, _ in in_force(files)] == files
    parts = [file_of("2026-11-03") / f"part-{number}.parquet" for number in range(2)]  # a day in several files
    assert choose(parts).days == Days(date(2026, 11, 3), date(2026, 11, 3), 1)


@given(
    ages=st.sets(st.integers(0, 60), min_size=1, max_size=8),
    since=st.none() | st.integers(0, 70),
    until=st.none() | st.integers(0, 70),
    half_life=st.none() | st.integers(1, 30) | st.floats(0.5, 30),
    as_text=st.booleans(),
)
def test_days_and_weights_are_those_of_a_plain_loop(
    ages: set[int], since: int | None, until: int | None, half_life: float | None, as_text: bool
) -> None:
    days = sorted(NEWEST - timedelta(age) for age in ages)
    first = None if since is None else NEWEST - timedelta(since)
    last = None if until is None else NEWEST - timedelta(until)
    expected = {}
    for day in days:
        if (first is None or day >= first) and (last is None or day <= last):
            expected[day] = Fraction(1)
    if half_life is not None:
        for day in expected:
            expected[day] = Fraction(round(UNIT * 2 ** (-(max(expected) - day).days / half_life)), UNIT)
    expected = {day: weight for day, weight in expected.items() if weight > 0}

    def actual() -> Chosen:
        length = f"{half_life}d" if as_text and half_life else half_life
        since, until = (str(day) if as_text and day else day for day in (first, last))
        return choose([file_of(Span(day, day)) for day in days], since, until, length)

    if not expected:
        with pytest.raises(CountsError, match=rf"There is no day .*the days are from {days[0]} to {days[-1]}"):
            actual()
        return
    chosen = actual()
    assert chosen.files == tuple(file_of(Span(day, day)) for day in expected)
    assert chosen.days == Days(min(expected), max(expected), len(expected), first, last, half_life)
    if half_life is None:
        assert chosen.weights == ()
    else:
        assert [Fraction(weight, UNIT) for weight in chosen.weights] == list(expected.values())


def test_ages_are_counted_from_the_newest_day_that_is_read() -> None:
    files = [file_of(f"2026-11-{day:02}") for day in range(1, 16)]
    assert choose(files, since="3d").files == tuple(files[-4:])
    assert choose(files, since="3d", until="2026-11-10").files == tuple(files[6:10])
    assert choose(files, since="0d").files == (files[-1],)
    assert choose(files, until="13d").files == tuple(files[:2])
    assert choose(files, since="999999d").files == tuple(files)
    assert choose(files, since=datetime(2026, 11, 14, 7, 30)).files == tuple(files[-2:])
    assert choose(files, until="2026-11-10", half_life=2).weights[-3:] == (UNIT // 2, weight(1, 2), UNIT)
    # What rounds to nothing is left out: 22 half-lives are, 20 are not.
    assert len(choose(files, half_life=0.5).files) == 11


def test_merged_days_have_the_age_of_their_middle() -> None:
    files = [file_of("2026-11-01..2026-11-11"), file_of("2026-11-12..2026-11-15")]
    assert choose(files, half_life=3).weights == (weight(9, 3), weight(1.5, 3))
    assert choose(files).days == Days(date(2026, 11, 1), NEWEST, 15)
    assert choose(files, since="2026-11-12", until="2026-11-15").files == (files[1],)
    assert choose(files, since="2026-10-01", until="2026-11-11").files == (files[0],)
    for setting, day, possible in (
        ("since", "2026-11-02", "2026-11-01 and 2026-11-12"),
        ("since", "2026-11-11", "2026-11-01 and 2026-11-12"),
        ("until", "2026-11-01", "2026-10-31 and 2026-11-11"),
        ("until", "2026-11-14", "2026-11-11 and 2026-11-15"),
    ):
        with pytest.raises(CountsError, match=f"{setting} is {day}, in the middle of .*possible: {possible}"):
            choose(files, **{setting: day})
    with pytest.raises(CountsError, match="Make it longer"):
        choose(files[:1], half_life=0.1)


@pytest.mark.parametrize(
    "name",
    ["yesterday", "2026-13-01", "2026-11-31", "20261101", "2026-11-01..", "2026-11-02..2026-11-01",
     "2026-11-01..2026-11-01", "2026-11-01...2026-11-03", "", "2026-11-01 "],
)  # fmt: skip
def test_folders_that_are_called_otherwise(name: str) -> None:
    with pytest.raises(CountsError, match=r"is not the folder of a day\. Folders of days are called like"):
        choose([file_of(name)])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"since": "yesterday"}, "since is 'yesterday'; it must be a date such as 2026-11-15 or an age such as 30d"),
        ({"since": "2026-02-30"}, "since is '2026-02-30'"),
        ({"since": "-3d"}, "since is '-3d'"),
        ({"since": 3}, "since is 3"),
        ({"until": "d"}, "until is 'd'"),
        ({"half_life": "0d"}, "half_life is '0d'; it must be a number of days above 0, such as 14d"),
        ({"half_life": "two"}, "half_life is 'two'"),
        ({"half_life": -1}, "half_life is -1"),
        ({"half_life": float("nan")}, "half_life is nan"),
        ({"half_life": "inf"}, "half_life is 'inf'"),
        ({"half_life": []}, r"half_life is \[\]"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        choose([file_of("2026-11-15")], **settings)


# --- days on disk -------------------------------------------------------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(days=st.lists(logs(), min_size=1, max_size=4), half_life=st.sampled_from([1, 2.5, 30]))
def test_a_folder_reads_as_the_sum_of_its_days(
    days: list[list[LoggedList]], half_life: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("days") / "counts"
    expected: Counter[Any] = Counter()
    for age, lists in enumerate(reversed(days)):
        write_day(lists, folder, NEWEST - timedelta(age))
        for key, n in reference.histogram(lists).items():
            expected[key] += Fraction(n * round(UNIT * 2 ** (-age / half_life)), UNIT)  # type: ignore[assignment]
    everything = [shown for lists in days for shown in lists]
    total = prudent.Counts.read(folder)
    assert total == count(everything)
    assert total.tally.lists == len(everything)
    decayed = prudent.Counts.read(folder, half_life=half_life)
    rows = duckdb.execute(decayed.sql).fetchall()
    assert {row[:-1]: Fraction(row[-1], UNIT) for row in rows} == expected
    assert sorted(decayed.cells.n.tolist()) == sorted(map(float, expected.values()))
    assert decayed.tally == total.tally
    assert decayed.source.days == Days(NEWEST - timedelta(len(days) - 1), NEWEST, len(days), half_life=half_life)


def test_the_same_day_twice_replaces(tmp_path: Path) -> None:
    write_day(SMALL, tmp_path / "a" / "counts", "2026-11-14")
    write_day(SMALL, tmp_path / "a" / "counts", "2026-11-15")
    counts = write_day(SMALL[:1], tmp_path / "a" / "counts", date(2026, 11, 15))
    assert counts.files == (tmp_path / "a" / "counts" / "day=2026-11-15" / "counts.parquet",)
    assert prudent.Counts.read(tmp_path / "a" / "counts") == count([*SMALL, SMALL[0]])
    manifest = Manifest.read(counts.files[0], "counts")
    assert manifest is not None
    assert manifest.sources["log"].tally.lists == 1


def test_what_a_kill_leaves_is_not_read(tmp_path: Path) -> None:
    counts = write_day(SMALL, tmp_path, "2026-11-15")
    (tmp_path / "day=2026-11-14").mkdir()
    (tmp_path / "day=2026-11-14" / ".counts.parquet.1f2e.part").write_bytes(b"PAR1 half")
    (tmp_path / "day=2026-11-15" / ".prudent-spill-77").mkdir()
    (tmp_path / "day=2026-11-01..2026-11-15").mkdir()  # and stands in nobody's way
    assert prudent.Counts.read(tmp_path) == counts
    assert write_day(SMALL, tmp_path, "2026-11-14") == counts


def test_files_outside_the_days_count_without_a_date(tmp_path: Path) -> None:
    write_day(SMALL, tmp_path, "2026-11-15")
    write_files(tmp_path, SMALL[:1], "older.parquet")
    counts = prudent.Counts.read(tmp_path)
    assert counts == count([*SMALL, SMALL[0]])
    assert counts.source.days is None
    given: list[dict[str, Any]] = [{"since": "2026-11-01"}, {"until": "2026-11-20"}, {"half_life": 3}]
    for asked in given:
        with pytest.raises(CountsError, match=r"older\.parquet has no day.* Move it into a folder such as day="):
            prudent.Counts.read(tmp_path, **asked)


def test_sums_of_days(tmp_path: Path) -> None:
    """Days add like all counts; but ages that were counted from different days do not go together."""
    for day in (1, 2, 3):
        write_day(SMALL, tmp_path, f"2026-11-0{day}")
    early, late = prudent.Counts.read(tmp_path, until="2026-11-02"), prudent.Counts.read(tmp_path, since="2026-11-03")
    assert early + late == prudent.Counts.read(tmp_path)
    assert (early + late).days is None
    decayed = prudent.Counts.read(tmp_path, half_life=2)
    assert (decayed + decayed).days == decayed.days
    with pytest.raises(UsageError, match="Read both at once"):
        decayed + late


def test_folders_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CountsError, match=r"holds no counts\. Count a day into it: prudent count LOG -o .*empty --day"):
        prudent.Counts.read(tmp_path / "empty")
    write_day(SMALL, tmp_path / "counts", "2026-11-15")
    duckdb.execute(f"copy (select 1 as x) to '{tmp_path / 'counts' / 'day=2026-11-15' / 'x.parquet'}'")
    with pytest.raises(CountsError, match=r"x\.parquet does not hold counts"):
        prudent.Counts.read(tmp_path / "counts")
    write_day([(1, (2, 3), (0, 1))], tmp_path / "mixed", "2026-11-14")
    write_day(SMALL, tmp_path / "mixed", "2026-11-15")
    with pytest.raises(CountsError, match="they cannot be added"):
        prudent.Counts.read(tmp_path / "mixed")


def test_days_that_cannot_be_written(tmp_path: Path) -> None:
    log = prudent.Log(table(SMALL))
    with pytest.raises(UsageError, match="day is '15-11-2026'; it must be a date such as 2026-11-15"):
        prudent.count(log, to=tmp_path, day="15-11-2026")
    with pytest.raises(UsageError, match="Say in which folder the day 2026-11-15 goes"):
        prudent.count(log, day="2026-11-15")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"needs the folder of all days, and .*file is a file"):
        prudent.count(log, to=tmp_path / "file", day="2026-11-15")
    with pytest.raises(WriteError, match="Cannot make the folder"):
        prudent.count(log, to=tmp_path / "file" / "counts", day="2026-11-15")
    write_files(tmp_path, SMALL, "counts/day=2026-11-01..2026-11-05/counts.parquet")
    for day in (1, 3, 5):
        with pytest.raises(CountsError, match=rf"2026-11-0{day} was merged into .*day=2026-11-01\.\.2026-11-05 and"):
            write_day(SMALL, tmp_path / "counts", f"2026-11-0{day}")
    write_day(SMALL, tmp_path / "counts", "2026-11-06")
    assert prudent.Counts.read(tmp_path / "counts").tally.lists == 2 * len(SMALL)


# --- compact ------------------------------------------------------------------------------------------------------


WEEK = SMALL * sum(range(1, 8))


@pytest.fixture
def week(tmp_path: Path) -> Path:
    """Seven days of counts, of which each is another."""
    for day in range(1, 8):
        write_day(SMALL * day, tmp_path / "counts", f"2026-11-0{day}")
    return tmp_path / "counts"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_compact(week: Path) -> None:
    done = prudent.compact(week, before="2026-11-05")
    assert done.file == week / "day=2026-11-01..2026-11-04" / "counts.parquet"
    assert (done.before, done.first, done.last) == (date(2026, 11, 5), date(2026, 11, 1), date(2026, 11, 4))
    assert (done.days, done.cells_before, done.cells_after) == (4, 4 * 6, 6)
    assert done.bytes_before > done.bytes_after == done.file.stat().st_size
    kept = ["day=2026-11-01..2026-11-04", "day=2026-11-05", "day=2026-11-06", "day=2026-11-07"]
    assert names(week) == kept
    assert names(week / kept[0]) == ["counts.parquet", "counts.parquet.manifest.json"]
    after = prudent.Counts.read(week)
    assert after == count(WEEK)
    assert after.tally.lists == len(WEEK)
    assert after.days == Days(date(2026, 11, 1), date(2026, 11, 7), 7)
    bytes_ = done.file.read_bytes()
    again = prudent.compact(week, before="2026-11-05")
    assert (again.file, again.days, names(week), done.file.read_bytes()) == (None, 0, kept, bytes_)


def test_compact_grows_a_range(week: Path) -> None:
    prudent.compact(week, before="2026-11-03")
    assert prudent.compact(week, before="2d").days == 4  # the range of two, and two days
    assert names(week) == ["day=2026-11-01..2026-11-04", "day=2026-11-05", "day=2026-11-06", "day=2026-11-07"]
    # A date inside a range takes none of it; a single day has nothing to be merged with.
    assert prudent.compact(week, before="2026-11-03").file is None
    assert prudent.compact(week, before=date(2027, 1, 1)).days == 7
    assert names(week) == ["day=2026-11-01..2026-11-07"]
    assert prudent.Counts.read(week) == count(WEEK)


def test_compact_removes_what_a_kill_left_and_nothing_else(week: Path) -> None:
    merged = week / "day=2026-11-01..2026-11-03"
    write_files(week, [*SMALL * 1, *SMALL * 2, *SMALL * 3], f"{merged.name}/counts.parquet")
    (week / "day=2026-11-02" / ".counts.parquet.12ab.part").touch()
    (week / "day=2026-11-03" / "note.txt").write_text("mine")
    write_files(week, SMALL, "other/counts.parquet")
    assert prudent.Counts.read(*(week / name for name in names(week) if name != "other")) == count(WEEK)
    assert prudent.compact(week, before="2026-11-01").file is None
    assert names(week) == [merged.name, *(f"day=2026-11-0{day}" for day in range(3, 8)), "other"]
    assert names(week / "day=2026-11-03") == ["note.txt"]
    assert prudent.Counts.read(week) == count(WEEK + SMALL)


def test_compact_of_nothing(tmp_path: Path) -> None:
    write_files(tmp_path, SMALL, "counts.parquet", "sub/day=2026-11-01/counts.parquet")
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(CountsError, match="has no days to merge"):
            prudent.compact(folder, before="2026-11-05")
    with pytest.raises(UsageError, match="before is 'now'"):
        prudent.compact(tmp_path / "sub", before="now")


def test_what_cannot_be_removed_no_longer_counts(week: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.name == "counts.parquet":
            raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refuse)
        with pytest.raises(WriteError, match="It is superseded; remove it"):
            prudent.compact(week, before="2026-11-05")
    assert len(names(week)) == 8
    assert prudent.Counts.read(week) == count(WEEK)


# --- the command line ---------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three days in counts/, a log and a file."""
    monkeypatch.chdir(tmp_path)
    lists = [*SMALL * 30, *[(context, items[::-1], clicks) for context, items, clicks in SMALL] * 30]
    duckdb.from_arrow(table(lists)).write_parquet("log.parquet")
    for day in (1, 2, 3):
        ran = run("count", "log.parquet", "-o", "counts", "--day", f"2026-11-0{day}")
        assert ran.code == 0
        assert f"into counts/day=2026-11-0{day}/counts.parquet." in ran.text
        assert "Next: prudent rank counts -o policy.parquet" in ran.text
    return tmp_path


def test_rank_a_folder(folder: Path) -> None:
    assert run("count", "counts", "-o", "all.parquet").code == 0
    for name in ("counts", "all.parquet", "counts/*/counts.parquet"):
        assert run("rank", name, "-o", "policy.parquet", "--scores", "scores.parquet").code == 0
        written = [duckdb.execute(f"from '{file}.parquet'").fetchall() for file in ("policy", "scores")]
        if name == "counts":
            expected = written
        assert written == expected
    ran = run("rank", "counts", "-o", "policy.parquet", "--since", "1d", "--until", "2026-11-03", "--half-life", "1d")
    assert "Read: 2 days from 2026-11-02 to 2026-11-03, with a half-life of 1 day." in ran.text
    policy = prudent.Policy.read("policy.parquet")
    second, third = date(2026, 11, 2), date(2026, 11, 3)
    assert policy.manifest.sources["training"].days == Days(second, third, 2, second, third, 1.0)
    assert policy.manifest.sources["training"].tally.lists == 360
    shown = policy.lists().filter("context = 'boots'").select("sum(impressions)").fetchall()
    assert shown == [(60 * 2 * 1.5,)]  # 60 lists of 2 items, in full and half


def test_the_same_days_give_the_same_bytes(folder: Path) -> None:
    for name in ("one.parquet", "two.parquet"):
        assert run("rank", "counts", "-o", name, "--half-life", "2").code == 0
    assert Path("one.parquet").read_bytes() == Path("two.parquet").read_bytes()


def test_check_a_folder(folder: Path) -> None:
    everything = json.loads(run("check", "counts", "--json").out)
    decayed = json.loads(run("check", "counts", "--half-life", "1", "--json").out)
    assert (everything["lists"], everything["clicks"], decayed["lists"]) == (540, 360, 540)
    assert decayed["clicks"] == 120 * 1.75
    for share in ("ctr", "without_click", "several_clicks", "moving_impressions"):
        assert decayed[share] == pytest.approx(everything[share])


def test_compact_on_the_command_line(folder: Path) -> None:
    ran = run("compact", "counts", "--before", "2026-11-03")
    assert ran.code == 0
    assert "Merged 2 days, 2026-11-01 to 2026-11-02, into counts/day=2026-11-01..2026-11-02/counts.parquet." in ran.text
    assert "cells 24 12" in ran.text
    assert (
        run("compact", "counts", "--before", "0d").text
        == "Nothing to merge: fewer than two days are before 2026-11-03."
    )
    done = json.loads(run("compact", "counts", "--before", "2027-01-01", "--json").out)
    assert (done["file"], done["days"]) == ("counts/day=2026-11-01..2026-11-03/counts.parquet", 3)
    assert names(folder / "counts") == ["day=2026-11-01..2026-11-03"]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (
            ["count", "log.parquet", "-o", "counts"],
            2,
            "counts is a folder. Set the day of these lists",
        ),
        (["count", "log.parquet", "-o", "x.parquet", "--day", "2026-11-04"], 2, "needs the folder of all days"),
        (
            ["count", "log.parquet", "-o", "log.parquet", "--day", "2026-11-04"],
            2,
            "log.parquet is a file",
        ),
        (["count", "log.parquet", "-o", "counts", "--day", "4.11."], 2, "day is '4.11.'; it must be a date"),
        (["count", "counts/day=2026-11-01", "-o", "counts", "--day", "2026-11-01"], 2, "is inside"),
        (["rank", "counts", "-o", "x.parquet", "--since", "soon"], 2, "since is 'soon'"),
        (["rank", "counts", "-o", "x.parquet", "--half-life", "0"], 2, "half_life is '0'"),
        (
            ["rank", "counts", "-o", "x.parquet", "--since", "2026-12-01"],
            3,
            "There is no day from 2026-12-01",
        ),
        (
            ["rank", "log.parquet", "-o", "x.parquet", "--half-life", "7d"],
            2,
            "half_life (--half-life) applies to counts by day. Count",
        ),
        (["check", "log.parquet", "--since", "7d"], 2, "since (--since) applies to counts by day"),
        (
            ["rank", "log.parquet", "-o", "x.parquet", "--baseline", "ips", "--until", "1d"],
            2,
            "--baseline does not work with --until",
        ),
        (["compact", "counts"], 2, "Missing option '--before'"),
        (["compact", "counts", "--before", "ever"], 2, "before is 'ever'"),
        (["compact", "nowhere", "--before", "1d"], 3, "nowhere has no days to merge"),
    ],
)
def test_wrong_usage(folder: Path, args: list[str], code: int, said: str) -> None:
    before = sorted(folder.rglob("*"))
    ran = run(*args)
    assert ran.code == code
    assert said in ran.text
    assert sorted(folder.rglob("*")) == before


# --- killed -------------------------------------------------------------------------------------------------------

NURSERY = """
import os, random, shutil, signal, sys, time
from pathlib import Path
import duckdb
import prudent
import prudent.counts.compact, prudent.counts.counts

folder, kills = Path(sys.argv[1]), int(sys.argv[2])
LISTS = {"a": 3, "b": 5}  # a day is of one kind: so many lists of a context called like it, and rejected ones
BAD = {"a": 1, "b": 2}

def child(task):  # a process of its own, forked before there is any thread; its exit code is what it found
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(task() or 0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(255)
    return pid

def result(task):
    _, status = os.waitpid(child(task), 0)
    assert os.WIFEXITED(status) and os.WEXITSTATUS(status) < 255, "a task failed"
    return os.WEXITSTATUS(status)

def killed(task, least, most):  # seconds
    pid = child(task)
    while not (folder / "ready").exists():
        time.sleep(0.001)
    time.sleep(random.uniform(least, most))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    (folder / "ready").unlink()

def write(kind, day):
    good = ", ".join([f"('{kind}', ['x', 'y'], [1, 0])"] * LISTS[kind])
    bad = ", ".join([f"('{kind}', ['x', 'x'], [1, 0])"] * BAD[kind])
    with duckdb.connect() as connection:
        log = connection.sql(f"select * from (values {good}, {bad}) t(context, items, clicks)")
        prudent.count(prudent.Log(log), engine=prudent.DuckDB(threads=1), to=folder / "counts", max_rejected=1, day=day)

def look():  # how many days are of kind a and b, as 16 * a + b
    counts = prudent.Counts.read(folder / "counts", engine=prudent.DuckDB(threads=1))
    found = dict(duckdb.sql(f"select context, sum(n)::int // 2 from ({counts.sql}) group by context").fetchall())
    a, b = (found.get(kind, 0) // LISTS[kind] for kind in "ab")
    assert {kind: found.get(kind, 0) for kind in "ab"} == {"a": 3 * a, "b": 5 * b}, found
    assert counts.tally.lists == 3 * a + 5 * b, (counts.tally, a, b)
    assert sum(counts.tally.rejected.values()) == a + 2 * b, (counts.tally, a, b)
    return 16 * a + b

random.seed(7)
"""
COUNTING = """
def replace_for_ever():
    (folder / "ready").touch()
    while True:
        write("b", "2026-11-01")
        write("a", "2026-11-01")

def append():
    (folder / "ready").touch()
    write("b", f"2026-11-{a + b + 1:02}")

a, b = 1, 0  # days of each kind, of which the first changes its kind
started = time.perf_counter()
result(lambda: write("a", "2026-11-01"))
taken = time.perf_counter() - started
for number in range(kills):
    replacing = number % 3 > 0
    killed(replace_for_ever if replacing else append, 0, (2 if replacing else 1.2) * taken)
    seen = divmod(result(look), 16)
    assert seen in ([(1, a + b - 1), (0, a + b)] if replacing else [(a, b), (a, b + 1)]), seen
    print("replacing" if replacing else "appending", seen != (a, b), flush=True)
    a, b = seen
"""
COMPACTING = """
def run():
    (folder / "ready").touch()
    prudent.compact(folder / "counts", "2026-11-05", engine=prudent.DuckDB(threads=1))

for day in range(1, 7):
    result(lambda: write("ab"[day % 2], f"2026-11-0{day}"))
shutil.copytree(folder / "counts", folder / "fresh")
started = time.perf_counter()
result(run)
(folder / "ready").unlink()
taken = time.perf_counter() - started
for _ in range(kills):
    shutil.rmtree(folder / "counts")
    shutil.copytree(folder / "fresh", folder / "counts")
    killed(run, 0.7 * taken, 1.3 * taken)
    there = [path for path in (folder / "counts").glob("*/*.parquet")]
    merged = any(".." in path.parent.name for path in there)
    assert result(look) == 16 * 3 + 3
    print("merged" if merged else "not merged", len(there), flush=True)
    taken *= 0.8 if merged else 1.25  # whatever else the machine does meanwhile, some kills come early and some late
    assert result(run) == 0 and result(look) == 16 * 3 + 3
    (folder / "ready").unlink()
    assert len(list((folder / "counts").glob("*/*.parquet"))) == 3
"""


def nursery(script: str, folder: Path, kills: int) -> list[str]:
    done = run_apart([sys.executable, "-c", NURSERY + script, folder, kills], timeout=400)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_day_killed_at_any_moment(tmp_path: Path) -> None:
    seen = nursery(COUNTING, tmp_path, kills=50)
    assert len(seen) == 50
    assert {"replacing True", "replacing False"} <= set(seen), "kills came too early or too late: this tests nothing"
    assert list(tmp_path.rglob(".*.part")), "no kill came while a file was being written: this tests nothing"


@pytest.mark.slow
def test_compact_killed_at_any_moment(tmp_path: Path) -> None:
    seen = nursery(COMPACTING, tmp_path, kills=15)
    assert len(seen) == 15
    assert {line.rpartition(" ")[0] for line in seen} == {"merged", "not merged"}


# --- what a folder holds ----------------------------------------------------------------------------------------------


def test_what_is_hidden_does_not_count(tmp_path: Path) -> None:
    """As Spark leaves it when it is killed."""
    day = write_day(SMALL, tmp_path / "counts", "2026-11-01")
    for hidden in (".day=2026-11-01.abcd.part", "day=2026-11-01/.prudent-1", "day=2026-11-01/_temporary"):
        (tmp_path / "counts" / hidden).mkdir()
        shutil.copy(day.files[0], tmp_path / "counts" / hidden / "part-0.parquet")
    assert prudent.Counts.read(tmp_path / "counts") == day


def test_a_day_behind_a_symbolic_link_counts_once(tmp_path: Path) -> None:
    write_day(SMALL, tmp_path / "elsewhere", "2026-11-01")
    write_day(SMALL, tmp_path / "counts", "2026-11-02")
    (tmp_path / "counts" / "day=2026-11-01").symlink_to(tmp_path / "elsewhere" / "day=2026-11-01")
    (tmp_path / "counts" / "day=2026-11-02" / "loop").symlink_to(tmp_path / "counts")
    actual = prudent.Counts.read(tmp_path / "counts")
    assert [file.parent.name for file in actual.files] == ["day=2026-11-01", "day=2026-11-02"]


def test_a_day_that_spark_wrote_is_not_doubled(tmp_path: Path) -> None:
    day = write_day(SMALL, tmp_path / "counts", "2026-11-01")
    day.files[0].rename(day.files[0].with_name("part-00000.parquet"))
    with pytest.raises(CountsError, match="other files than"):
        write_day(SMALL, tmp_path / "counts", "2026-11-01")
