"""Several processes on one folder of days: nothing is lost, nothing is doubled."""

import fcntl
import multiprocessing
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import prudent
from prudent.base.errors import CountsError
from prudent.counts import compact as compacting
from prudent.storage import locks

DAYS = [f"2026-11-0{day}" for day in range(1, 6)]


RACES = int(os.environ.get("RACES", "1"))
"""Races of every pair of commands: 17 make 204."""


def lists(number: int) -> pa.Table:
    return pa.table({"context": ["shoes"] * number, "items": [["i1", "i2"]] * number, "clicks": [[0, 1]] * number})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five days; day k has k lists."""
    for number, day in enumerate(DAYS, start=1):
        prudent.count(lists(number), to=tmp_path / "days", day=day)
    return tmp_path / "days"


def total(folder: Path) -> int:
    counts = prudent.Counts.read(folder)
    assert int(counts.cells.n.sum()) == 2 * counts.tally.lists
    return counts.tally.lists


def recount(folder: Path, day: str, number: int) -> None:
    prudent.count(lists(number), to=folder, day=day)


def test_a_day_counted_anew_while_days_are_merged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It vanished: the merged file had the old day, and the new one was removed with it."""
    merge = compacting._merge

    def slowly(*args: Any) -> Any:
        done = merge(*args)
        with pytest.raises(BlockingIOError):
            fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_SH | fcntl.LOCK_NB)
        return done

    monkeypatch.setattr(compacting, "_merge", slowly)
    prudent.compact(folder, before="2026-11-04")
    assert total(folder) == 15
    with pytest.raises(CountsError, match="was merged into"):
        recount(folder, DAYS[1], 70)
    assert total(folder) == 15


def test_merged_while_it_was_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting takes long: whether the day was merged is decided when the file gets its name."""
    count = prudent.DuckDB.count

    def and_merge(self: prudent.DuckDB, *args: Any, **how: Any) -> Any:
        tally = count(self, *args, **how)
        prudent.compact(folder, before="2026-11-04")
        return tally

    monkeypatch.setattr(prudent.DuckDB, "count", and_merge)
    with pytest.raises(CountsError, match="was merged into"):
        recount(folder, DAYS[1], 70)
    assert total(folder) == 15
    assert not [file for file in folder.rglob("*") if file.name.endswith(".part")]


@pytest.mark.parametrize("change", ["recounted", "merged"])
def test_days_that_change_while_they_are_read(change: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tally was that of the old files, and the cells those of the new ones."""
    counts = prudent.Counts.read(folder)
    if change == "recounted":
        recount(folder, DAYS[4], 70)
    else:
        prudent.compact(folder, before="2026-11-04")
    with pytest.raises(CountsError, match=r"was replaced or removed while it was read\. Run it again"):
        prudent.rank(counts, model="cm")
    assert total(folder) == (80 if change == "recounted" else 15)


def test_a_reader_waits_for_a_merge(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.1)
    with (
        locks.locked([folder]),
        pytest.warns(prudent.PrudentWarning, match="Waiting for another process that uses"),
        pytest.raises(CountsError, match=r"Another process has been using .*days for 0 minutes"),
    ):
        prudent.Counts.read(folder)
    with locks.locked([folder], shared=True):  # readers do not wait for each other
        assert total(folder) == 15


def test_a_file_that_was_replaced_is_not_removed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file system has no locks."""
    merge = compacting._merge

    def and_recount(*args: Any) -> Any:
        done = merge(*args)
        (folder / "day=2026-11-02" / "counts.parquet").write_bytes(b"another")
        return done

    monkeypatch.setattr(compacting, "_merge", and_recount)
    with pytest.raises(CountsError, match=r"day=2026-11-02/counts\.parquet was replaced while it was merged"):
        prudent.compact(folder, before="2026-11-04")
    assert (folder / "day=2026-11-02" / "counts.parquet").read_bytes() == b"another"


def test_what_another_process_is_writing_stays(folder: Path) -> None:
    (folder / "day=2026-11-06").mkdir()
    writing = [folder / day / ".counts.parquet.12345678.part" for day in ("day=2026-11-05", "day=2026-11-06")]
    for part in writing:
        part.touch()
    prudent.compact(folder, before="2026-11-04")
    assert all(part.exists() for part in writing)


def _worker(folder: Path, task: str, start: Any, seconds: float, failures: Any, done: Any) -> None:
    start.wait(60)
    stop, number = time.monotonic() + seconds, 0
    while time.monotonic() < stop:
        number += 1
        try:
            if task == "count":
                recount(folder, DAYS[4], 5)
            elif task == "new":
                recount(folder, DAYS[3], 4)
            elif task == "compact":
                prudent.compact(folder, before=DAYS[number % 3 + 1])
            elif total(folder) != 15:
                failures.append(f"{task}: {total(folder)}")
        except CountsError as error:
            if "was merged into" not in str(error) and "replaced or removed" not in str(error):
                failures.append(f"{task}: {error}")
    done.append(number)


def _race(folder: Path, tasks: Sequence[str], seconds: float) -> None:
    with multiprocessing.Manager() as manager:
        failures, done = manager.list(), manager.list()
        spawn = multiprocessing.get_context("spawn")
        start = spawn.Barrier(len(tasks))
        workers = [spawn.Process(target=_worker, args=(folder, task, start, seconds, failures, done)) for task in tasks]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert [worker.exitcode for worker in workers] == [0] * len(tasks)
        assert list(failures) == []
        assert len(done) == len(tasks)
        assert all(done), "a task was never done: this tests nothing"
    assert total(folder) == 15


@pytest.mark.slow
def test_everything_at_once(folder: Path) -> None:
    """The bounded run: all commands on one folder, for three seconds, so that each races with each other one."""
    _race(folder, ["count", "new", "compact", "read"], 3)


@pytest.mark.slow
@pytest.mark.parametrize("other", ["count", "new", "read", "compact"])
@pytest.mark.parametrize("one", ["count", "compact", "read"])
def test_races(one: str, other: str, folder: Path) -> None:
    """Half a second of every pair of commands on one folder, RACES times."""
    for number in range(RACES):
        shutil.copytree(folder, copy := folder.parent / f"copy{number}")
        _race(copy, [one, other], 0.5)
