"""Kill a command, or fill the disk, at each of its steps that change a folder, and look at what is left.

    python -m tests.crash_points FOLDER [COMMAND ...]

A step is a file that is opened for writing, a rename, a removal, or a folder that is made or removed; what DuckDB
writes itself goes to hidden files, and has such steps before and after it. Every run is a fork of this process, which
has imported everything and has no thread. One line per command: its name, how many steps it has, and what is wrong.
"""

import json
import os
import shutil
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import prudent
from prudent.storage.manifest import Manifest
from tests.command import run

KILLED = 137
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_STEPS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
# {} is the log, that of the old output or that of the new one.
COMMANDS: dict[str, list[str]] = {
    "count": ["count", "{}.parquet", "-o", "out/counts.parquet"],
    "day": ["count", "{}.parquet", "-o", "out/days", "--day", "2026-11-02"],
    "compact": ["compact", "out/days", "--before", "2026-11-04"],
    "split": ["split", "{}.parquet", "-o", "out"],
    "rank": ["rank", "{}.parquet", "-o", "out/policy.parquet", "--scores", "out/scores.parquet", "--model", "cm"],
    "diff": ["diff", "one-policy.parquet", "{}-policy.parquet", "-o", "out/diff.parquet"],
    "export": ["export", "{}-policy.parquet", "-o", "out/lists.jsonl"],
    "simulate": ["simulate", "-o", "out/log.parquet", "--truth", "out/truth.parquet", "--seed", "{#}", "--lists", "50"],
    "report": ["report", "{}-policy.parquet", "--log", "holdout.parquet", "-o", "out/report.html"],
}


def apart(task: Callable[[], Any]) -> tuple[int, Any]:
    """Run a task in a fork; its exit code, and what it returns."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        code = 70
        try:
            os.close(read)
            answer = json.dumps(task()).encode()
            with os.fdopen(write, "wb") as pipe:
                pipe.write(answer)
            code = 0
        except BaseException:  # a traceback is what this looks for
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, json.loads(answer) if answer else None


def prepare(folder: Path) -> None:
    """Two logs, a holdout, policies of both, and five days."""
    os.chdir(folder)
    warnings.simplefilter("ignore")
    for number, name in enumerate(("one", "two", "holdout"), start=1):
        duckdb.execute(
            f"copy (select 'c' || i % 5 as context, [i % {number + 2}, 5, 6] as items, "
            f"[i % 2, i % 3 // 2, 0] as clicks from range({200 + number}) t(i)) to '{name}.parquet'"
        )
        prudent.rank(f"{name}.parquet", model="cm", to=f"{name}-policy.parquet")
    Path("out").mkdir()
    for day in range(1, 6):
        prudent.count("one.parquet", to="out/days", day=f"2026-11-0{day}")


def arguments(name: str, log: str) -> list[str]:
    return [arg.replace("{}", log).replace("{#}", str(len(log))) for arg in COMMANDS[name]]


def state(folder: Path) -> dict[str, str]:
    """What a reader finds: rows and provenance of every output, and the sum of all days."""
    os.chdir(folder)
    warnings.simplefilter("ignore")
    found = {}
    for file in sorted(Path("out").iterdir()):
        if file.name[0] == "." or file.name.endswith(".manifest.json"):
            continue
        if file.is_dir():
            counts = prudent.Counts.read(file)
            found[file.name] = f"{counts.tally.lists} {counts.cells.n.sum()} {len(counts.cells.n)}"
            continue
        manifest = Manifest.read(file)
        rows = f"md5(string_agg(t::varchar, '' order by t::varchar)) from '{file}' as t"
        parquet = file.suffix == ".parquet"
        content = duckdb.execute(f"select {rows}").fetchall()[0][0] if parquet else file.read_text(encoding="utf-8")
        about = None if manifest is None else manifest.to_json()
        # An output of text may have no manifest for a moment, but never that of another one.
        found[file.name] = repr(content) if manifest is None and not parquet else f"{content!r} {about}"
    return found


def step(args: list[str], folder: Path, at: int, kill: bool) -> dict[str, Any]:
    """Run a command that is killed, or has no room, at a step; how many steps there were, and its exit code."""
    os.chdir(folder)
    taken = 0

    def hook(event: str, details: tuple[Any, ...]) -> None:
        nonlocal taken
        changes = event in _STEPS or (event == "open" and isinstance(details[2], int) and details[2] & _WRITING)
        if not changes or not isinstance(details[0], str | os.PathLike):
            return
        if not os.path.abspath(os.fspath(details[0])).startswith(f"{folder}/out"):
            return
        taken += 1
        if taken == at and kill:
            os._exit(KILLED)
        if taken == at:
            raise OSError(28, "No space left on device", os.fspath(details[0]))

    sys.addaudithook(hook)
    done = run(*args)
    return {"steps": taken, "code": done.code, "text": done.text}


def whole(name: str, found: dict[str, str], old: dict[str, str], new: dict[str, str]) -> bool:
    """Whether every output is the old one or the new one, with its own provenance, and none is missing."""

    def known(file: str, content: str) -> bool:
        return any(
            content == state.get(file, "") or state.get(file, "").startswith(f"{content} ") for state in (old, new)
        )

    return {*old} <= {*found} <= {*old, *new} and all(known(file, content) for file, content in found.items())


def check(name: str, folder: Path) -> list[str]:
    """What is wrong after a kill or a full disk at any step of a command."""
    wrong: list[str] = []
    base = folder / "base"
    base.mkdir(parents=True)
    assert apart(lambda: prepare(base))[0] == 0
    if name not in ("compact", "day"):
        assert apart(lambda: step(arguments(name, "one"), base, 0, kill=False))[1]["code"] == 0
    old = apart(lambda: state(base))[1]

    def attempt(at: int, kill: bool) -> tuple[int, dict[str, Any] | None, dict[str, str] | None]:
        copy = folder / "run"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(base, copy)
        code, done = apart(lambda: step(arguments(name, "two"), copy, at, kill))
        return code, done, apart(lambda: state(copy))[1]

    _, done, new = attempt(0, kill=False)
    assert done is not None
    assert new is not None
    if done["code"] != 0:
        return [f"{name}: {done['text']}"]
    for at in range(1, done["steps"] + 1):
        for kill in (True, False):
            code, ended, found = attempt(at, kill)
            where = f"{name}, {'killed' if kill else 'no room'} at step {at}"
            if kill and code != KILLED:
                wrong.append(f"{where}: exit code {code}")
            if not kill and (ended is None or ended["code"] not in (0, 4)):
                wrong.append(f"{where}: {ended}")
            if found is None or not whole(name, found, old, new):
                wrong.append(f"{where}: {found}")
    print(json.dumps({"command": name, "steps": done["steps"], "wrong": wrong}), flush=True)  # noqa: T201
    return wrong


if __name__ == "__main__":
    for command in sys.argv[2:] or COMMANDS:
        check(command, Path(sys.argv[1]).resolve() / command)
