"""Old or new, and whole: whatever happens to the writer."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

import prudent
from prudent.base.errors import WriteError
from prudent.logs.formats import find_files
from prudent.storage.files import check_target, make_folder, manifest_path, reason, replacing
from prudent.storage.manifest import Manifest
from tests.command import run, run_apart, run_process


def listing(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def write_half(target: Path, error: BaseException) -> None:
    with replacing(target) as part:
        part.write_text("half")
        raise error


# --- replacing ----------------------------------------------------------------------------------------------------


def test_takes_the_place_of_the_old(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    with replacing(target) as part:
        part.write_text("new")
        assert target.read_text() == "old"
        assert target.parent in part.parents  # on the same disk, so that renaming is one step
    assert listing(tmp_path) == {"out.txt": b"new"}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_vanishes_when_the_writer_fails(tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "out.txt").write_text("old")
    with pytest.raises(error):
        write_half(tmp_path / "out.txt", error())
    assert listing(tmp_path) == {"out.txt": b"old"}


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        duckdb.IOException('IO Error: {"exception_message":"Could not write file","errno":"28"}'),
        duckdb.OutOfMemoryException("Out of Memory Error: No space left on device"),
    ],
)
def test_full_disk_is_told_in_few_words(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(WriteError, match=r"Cannot write .*out\.txt: .*No space left on device\. What was there"):
        write_half(tmp_path / "out.txt", error)
    assert listing(tmp_path) == {}


def test_writer_that_wrote_nothing(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="No such file"), replacing(tmp_path / "out.txt"):
        pass


def test_others_may_read_the_output(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("")
    with replacing(tmp_path / "out.txt") as part:
        part.write_text("new")
    assert (tmp_path / "out.txt").stat().st_mode == (tmp_path / "plain.txt").stat().st_mode


def test_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.txt").symlink_to(tmp_path / "real" / "file.txt")
    with replacing(tmp_path / "link.txt") as part:
        part.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert listing(tmp_path / "real") == {"file.txt": b"new"}


def test_long_and_foreign_names(tmp_path: Path) -> None:
    for name in ("x" * 240, "語" * 80):
        with replacing(tmp_path / name) as part:
            part.write_text("new")
        assert (tmp_path / name).read_text() == "new"


def test_duckdb_writes_to_the_hidden_file(tmp_path: Path) -> None:
    """Over a file that exists it would write to a third one, tmp_*, which a kill would leave in plain sight."""
    with replacing(tmp_path / "out.parquet") as part:
        assert not part.exists()
        assert part.name.startswith(".")
        assert part.suffix == ".part"
        with duckdb.connect() as connection:
            connection.execute(f"copy (select 1 as x) to '{part}' (format parquet)")
        assert list(tmp_path.rglob("*")) == [part.parent, part]


def test_targets_that_cannot_be(tmp_path: Path) -> None:
    for target, said in (
        (tmp_path, "it is a folder"),
        (tmp_path / "no" / "out.txt", "there is no folder .*no. Make it first"),
        (Path("/dev/null"), "not a regular file"),
        (tmp_path / os.fsdecode(b"\xff"), "its name is not UTF-8"),
    ):
        with pytest.raises(WriteError, match=said):
            check_target(target)
        with pytest.raises(WriteError, match=said), replacing(target):
            pytest.fail("too late")
    assert Path("/dev/null").is_char_device()


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(WriteError, match="no permission to write in"):
        check_target(tmp_path / "out.txt")


def test_manifest_lies_beside_its_output(tmp_path: Path) -> None:
    path = Manifest("counts", {"name": "café", "n": 1}).write(tmp_path / "out.parquet")
    assert path == manifest_path(tmp_path / "out.parquet") == tmp_path / "out.parquet.manifest.json"
    assert json.loads(path.read_text(encoding="utf-8"))["settings"] == {"name": "café", "n": 1}


def test_reason_of_an_error_without_a_number() -> None:
    assert reason(duckdb.IOException("IO Error: it broke.\nmore")) == "IO Error: it broke"
    assert reason(OSError("odd")) == "odd"


# --- killed -------------------------------------------------------------------------------------------------------

KILLS = 100
NURSERY = """
import os, random, signal, sys, time
from pathlib import Path
from prudent.engines.duckdb.engine import DuckDB
from prudent.policies.policy import Policy
from prudent.storage.manifest import Manifest

folder, kills = Path(sys.argv[1]), int(sys.argv[2])
target = folder / "policy.parquet"

def policies(connection):
    for name, seed in (("old", 1), ("new", 2)):
        connection.execute(
            f"create table {name} as select 'c' || (i // 5) as context, i % 5 + 1 as rank, 'a' || i as item, "
            f"sin(i * {seed}) as lower, cos(i * {seed}) as mean, 1.0 as upper, 0.5 as stay, "
            "1.0 as positive, 1.0 as negative, 2 as impressions "
            "from range(40000) t(i) order by i"
        )
        yield Policy(connection, Manifest("policy", {"which": name}), {"lists": f"from {name}"})

def child(task):  # a process of its own, forked before there is any thread
    pid = os.fork()
    if pid == 0:
        with DuckDB(threads=1).connect() as connection:
            task(*policies(connection))
        os._exit(0)
    return pid

def write_once(old, new):
    old.write(folder / "old")
    new.write(folder / "new")
    old.write(target)

def write_for_ever(old, new):
    (folder / "ready").touch()
    while True:
        new.write(target)
        old.write(target)

os.waitpid(child(write_once), 0)
whole = {(folder / name).read_bytes(): name for name in ("old", "new")}
manifests = {(folder / f"{name}.manifest.json").read_bytes() for name in ("old", "new")}
random.seed(4)
for _ in range(kills):
    pid = child(write_for_ever)
    while not (folder / "ready").exists():
        time.sleep(0.001)
    time.sleep(random.uniform(0, 0.05))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    (folder / "ready").unlink()
    assert (folder / "policy.parquet.manifest.json").read_bytes() in manifests, "a manifest in pieces"
    print(whole[target.read_bytes()], flush=True)
"""


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path: Path) -> None:
    done = run_apart([sys.executable, "-c", NURSERY, tmp_path, KILLS], timeout=400)
    assert done.returncode == 0, done.stderr
    seen = done.stdout.split()
    assert len(seen) == KILLS
    assert set(seen) == {"old", "new"}
    left = [path for path in tmp_path.iterdir() if path.name.endswith(".part")]
    assert left, "no kill came while a file was being written: this tests nothing"
    assert all(path.name.startswith(".") for path in left)
    assert {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")} == {
        *("old", "old.manifest.json", "new", "new.manifest.json", "policy.parquet", "policy.parquet.manifest.json")
    }
    # Neither the folder nor a glob gives the leftovers to a reader.
    assert find_files(tmp_path) == find_files(tmp_path / "*.parquet") == [tmp_path / "policy.parquet"]
    assert len(prudent.Policy.read(tmp_path / "policy.parquet")) == 8000


# --- no room ------------------------------------------------------------------------------------------------------

LIMITED = """
import resource, signal, sys
from prudent.cli import main

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing more is an error then, and not the end
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))
try:
    main()
finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""
ROOM = 64 << 10


@contextmanager
def full_disk(folder: Path) -> Iterator[bool]:
    """A folder on a disk of its own with little room, where we may make one; where not, files are limited instead."""
    mounted = (
        os.name == "posix"
        and os.geteuid() == 0
        and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(folder)], capture_output=True, check=False
        ).returncode
        == 0
    )
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture(scope="module")
def big_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of which neither counts nor lists fit into `ROOM`."""
    folder = tmp_path_factory.mktemp("log")
    duckdb.execute(
        "copy (select md5((i % 3000)::varchar) as context, [md5(i::varchar), md5((i + 1)::varchar)] as items, "
        f"[1, 0] as clicks from range(6000) t(i)) to '{folder / 'log.parquet'}'"
    )
    assert run("count", folder / "log.parquet", "-o", folder / "counts.parquet").code == 0
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ["count", "log.parquet", "-o", "{}"],
        ["count", "counts.parquet", "-o", "{}"],
        ["rank", "counts.parquet", "-o", "{}", "--model", "cm", "--bound", "bayes"],
        ["simulate", "-o", "{}", "--lists", "20000", "--contexts", "50"],
    ],
    ids=["count", "add", "rank", "simulate"],
)
def test_full_disk(big_log: Path, tmp_path: Path, command: list[str]) -> None:
    small = tmp_path / "small"
    small.mkdir()
    target = small / "out.parquet"
    args = [str(target) if arg == "{}" else arg for arg in command]

    target.write_text("old")
    done = run_apart([sys.executable, "-c", LIMITED, ROOM, *args], timeout=120, cwd=big_log)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == f"Error: Cannot write {target}: File too large. What was there before is untouched.\n"
    assert listing(small) == {"out.parquet": b"old"}

    with full_disk(small) as mounted:
        if mounted:
            target.write_text("old")
            ran = run_process(*args, folder=big_log)
            assert (ran.code, ran.out) == (4, "")
            assert ran.err == f"Error: Cannot write {target}: {os.strerror(errno.ENOSPC)}. " + (
                "What was there before is untouched.\n"
            )
            assert listing(small) == {"out.parquet": b"old"}


def test_a_folder_is_made_or_the_reason_why_not_is_told(tmp_path: Path) -> None:
    assert make_folder(tmp_path / "new" / "folder").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(WriteError, match=r"Cannot make the folder .*file: File exists"):
        make_folder(tmp_path / "file")
