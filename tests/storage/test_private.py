"""Private stays private: what others may not read, they cannot, whatever happens to the writer."""

import os
import signal
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import prudent
from prudent.storage import parquet
from prudent.storage.checksum import seal
from prudent.storage.database import Database
from prudent.storage.files import replacing
from tests.command import PROCESS, run


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_replaces_a_file_is_as_private(tmp_path: Path) -> None:
    target = tmp_path / "policy.parquet"
    for kept in (0o600, 0o640, 0o664):
        target.touch()
        target.chmod(kept)
        if os.geteuid() == 0:
            os.chown(target, 12, 34)
        with replacing(target) as part:
            part.write_text("new")
        assert mode(target) == kept
        if os.geteuid() == 0:
            assert (target.stat().st_uid, target.stat().st_gid) == (12, 34)


@pytest.mark.parametrize("day", [False, True])
def test_what_is_not_yet_in_place_is_private(day: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files in the making had the mode of the umask, beside a target that nobody else may read."""
    log = pa.table({"context": ["c"] * 9, "items": [["a", "b"]] * 9, "clicks": [[0, 1]] * 9})
    to: dict[str, Any] = {"to": tmp_path / "days", "day": "2026-11-01"} if day else {"to": tmp_path / "counts.parquet"}
    target = prudent.count(log, **to).files[0]
    target.chmod(0o600)
    open_to_others: list[str] = []
    steps = []

    def look(file: Path, mark: str) -> None:
        writing = [path for path in target.parent.rglob("*") if ".part" in str(path) and path.is_file()]
        steps.append(len(writing))
        for path in writing:
            above = [folder for folder in path.parents if target.parent in folder.parents]
            if mode(path) & 0o077 and not any(mode(folder) & 0o077 == 0 for folder in above):
                open_to_others.append(path.name)
        seal(file, mark)

    monkeypatch.setattr(parquet, "seal", look)
    prudent.count(log, **to)
    assert steps == [1], "nothing was being written: this tests nothing"
    assert open_to_others == []
    assert mode(target) == 0o600


def test_spill_folders(tmp_path: Path) -> None:
    with Database(memory="20MB", threads=1).connect(spill=tmp_path) as connection:
        connection.execute("create table big as select i, md5(i::varchar) from range(1000000) t(i)")
        (private,) = tmp_path.iterdir()
        assert mode(private) == 0o700
        assert list(private.rglob("*")), "nothing spills: this tests nothing"
    assert list(tmp_path.iterdir()) == []
    connection = Database().open()
    ((spill,),) = connection.execute("select current_setting('temp_directory')").fetchall()
    assert mode(Path(spill).parent) == 0o700


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_of_a_command_that_is_stopped(number: signal.Signals, tmp_path: Path) -> None:
    for folder in ("tmp", "out"):
        (tmp_path / folder).mkdir()
    args = ["simulate", "-o", "out/log.parquet", "--lists", "50000000", "--contexts", "50"]
    with subprocess.Popen(
        [*PROCESS, *args],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # also where the tests run under nohup
    ) as process:
        while not list((tmp_path / "out").iterdir()) and process.poll() is None:
            time.sleep(0.05)
        time.sleep(0.2)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, b"Traceback" in err) == (128 + number, False)
    assert [*(tmp_path / "out").iterdir(), *(tmp_path / "tmp").iterdir()] == []


@pytest.mark.parametrize("command", ["evaluate", "gate", "export", "compare"])
def test_no_room_for_temporary_files(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("log", "holdout"):
        duckdb.execute(
            "copy (select 'c' || i % 9 as context, ['a', 'b', 'c'] as items, [i % 2, i % 3 // 2, 0] as clicks "
            f"from range(300) t(i)) to '{tmp_path / name}.parquet'"
        )
    policy, log = tmp_path / "policy.parquet", tmp_path / "holdout.parquet"
    prudent.rank(tmp_path / "log.parquet", model="cm", to=policy)
    monkeypatch.setattr("tempfile.tempdir", "/proc/no-such-folder")
    args: list[object] = [policy, "--log", log]
    if command in ("export", "compare"):
        args = [policy, "-o", tmp_path / "lists.jsonl"] if command == "export" else [log]
    done = run(command, *args)
    assert (done.code, "Set TMPDIR to another" in done.text) == (4, True), done.text
