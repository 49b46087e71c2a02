"""Kill a command, or fill the disk, at each of its steps that change a folder, and look at what is left.

    python -m tests.crash_points FOLDER [COMMAND ...]

A step is a file that is opened for writing, a rename, a removal, or a folder that is made or removed. Inside of what
DuckDB writes itself, a limit on the size of files (RLIMIT_FSIZE) kills the command, or makes the write fail, at a byte
in the first block, in the middle, and at the end of every output. Every run is a fork of this process, which has
imported everything and has no thread. One line per command: its name, how many steps and limits it was stopped at, and
what is wrong.
"""

import json
import os
import resource
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from hashlib import md5
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
    "judge": ["judge", "{}.parquet", "-o", "out/judgments.parquet", "--model", "cm"],
    "explore": [
        *("explore", "{}-first.parquet", "--log", "{}.parquet", "--scores", "{}-scores.parquet"),
        *("-o", "out/lists.parquet", "--budget", "0.2"),
    ],
    "diff": ["diff", "one-policy.parquet", "{}-policy.parquet", "-o", "out/diff.parquet"],
    "export": ["export", "{}-policy.parquet", "-o", "out/lists.jsonl"],
    "simulate": ["simulate", "-o", "out/log.parquet", "--truth", "out/truth.parquet", "--seed", "{#}", "--lists", "50"],
    "report": ["report", "{}-policy.parquet", "--log", "holdout.parquet", "-o", "out/report.html"],
    "gate-contexts": [
        *("gate-contexts", "{}-better.parquet", "--log", "{}-parts/holdout.parquet", "-o", "out/mixed.parquet"),
        *("--estimator", "dm"),
    ],
    "verify": [
        *("verify", "{}-first.parquet", "--log", "{}.parquet", "-o", "out/metrics.json"),
        *("--promised", "0.0{#}1"),
    ],
    "compare": ["compare", "{}.parquet", "-o", "out/chart.svg", "--model", "cm", "--model", "dcm"],
    "tune": [
        *("tune", "{}-parts/train.parquet", "-o", "out/chart.svg", "--repetitions", "2", "--bound", "eb"),
        *("--delta", "0.2", "--model", "cm"),
    ],
    "reproduce": [
        *("reproduce", "top-query", "-o", "out", "--repetitions", "1", "--processes", "1", "--deltas", "0.2"),
        *("--methods", "mle,eb", "--seed", "{#}"),
    ],
    "demo": ["demo", "out", "--seed", "{#}"],
}
MOST = int(os.environ.get("STEPS", "20"))
"""Steps of a command to stop at, and so many limits on bytes: of more, every second, third and so on."""


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
        first = {"to": f"{name}-first.parquet", "scores": f"{name}-scores.parquet"}
        prudent.rank(f"{name}.parquet", model="cm", length=1, to=first["to"], scores=first["scores"])
    examination = "pbm(examination=[1, 0.7, 0.5, 0.4])"
    for number, name in enumerate(("one", "two"), start=1):  # logs whose order can be improved
        world: dict[str, Any] = {"contexts": 3, "items": (6, 8), "length": 4, "quality": -1, "exploration": 2}
        prudent.simulate(f"{name}-all.parquet", lists=3000, model=examination, seed=number, **world)
        prudent.split(f"{name}-all.parquet", f"{name}-parts")
        prudent.rank(f"{name}-parts/train.parquet", model="pbm", bound="eb", to=f"{name}-better.parquet")
    Path("out").mkdir()
    for day in range(1, 6):
        prudent.count("one.parquet", to="out/days", day=f"2026-11-0{day}")


def arguments(name: str, log: str) -> list[str]:
    return [arg.replace("{}", log).replace("{#}", str(("one", "two").index(log))) for arg in COMMANDS[name]]


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
        parquet = file.suffix == ".parquet"
        about = None if manifest is None else manifest.to_json()
        if about:
            about["settings"].pop("seconds", None)  # of an experiment
        # An output of text may have no manifest for a moment, but never that of another one.
        found[file.name] = (
            content(file)
            if manifest is None and not parquet
            else f"{content(file)} {json.dumps(about, sort_keys=True)}"
        )
    return found


def content(file: Path) -> str:
    """What is in a file, in few letters."""
    if file.suffix == ".parquet":
        rows = f"md5(string_agg(t::varchar, '' order by t::varchar)) from '{file}' as t"
        return str(duckdb.execute(f"select {rows}").fetchall()[0][0])
    raw = file.read_bytes()
    if file.suffix in (".svg", ".png"):  # with ids and dates that change
        return "whole" if raw.strip().endswith((b"</svg>", b"IEND\xaeB`\x82")) else "torn"
    return md5(raw).hexdigest()


def step(args: list[str], folder: Path, at: int, kill: bool, limit: int | None = None) -> dict[str, Any]:
    """Run a command that is killed, or has no room, at a step or a byte; how many steps there were, and its exit code.

    Beyond the limit on the size of a file, a signal comes, which kills unless it is ignored.
    """
    os.chdir(folder)
    if limit is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if kill else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
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
        first = apart(lambda: step(arguments(name, "one"), base, 0, kill=False))[1]
        assert first["code"] == 0, first
    old = apart(lambda: state(base))[1]

    copy = folder / "run"

    def attempt(
        at: int, kill: bool, limit: int | None = None
    ) -> tuple[int, dict[str, Any] | None, dict[str, str] | None]:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(base, copy)
        code, done = apart(lambda: step(arguments(name, "two"), copy, at, kill, limit))
        return code, done, apart(lambda: state(copy))[1]

    _, done, new = attempt(0, kill=False)
    assert done is not None
    assert new is not None
    if done["code"] != 0:
        return [f"{name}: {done['text']}"]
    sizes = {file.stat().st_size for file in (copy / "out").rglob("*") if file.is_file()}
    limits = sorted({limit for size in sizes for limit in (1, size // 2, size - 1)})
    limits = limits[:: -(-len(limits) // MOST)]
    stops = [(at, None) for at in range(1, done["steps"] + 1, -(-done["steps"] // MOST))]
    for at, limit in [*stops, *((0, limit) for limit in limits)]:
        for kill in (True, False):
            code, ended, found = attempt(at, kill, limit)
            where = f"{name}, {'killed' if kill else 'no room'} at {f'step {at}' if at else f'byte {limit}'}"
            # A command may need less room than the last one; a limit may be that of a file that is already there.
            killed = (KILLED,) if at else (0, -signal.SIGXFSZ)
            if kill and code not in killed:
                wrong.append(f"{where}: exit code {code}")
            if not kill and (ended is None or ended["code"] not in (0, 4)):
                wrong.append(f"{where}: {ended}")
            if found is None or not whole(name, found, old, new):
                wrong.append(f"{where}: {found}")
    print(json.dumps({"command": name, "steps": len(stops), "limits": len(limits), "wrong": wrong}), flush=True)  # noqa: T201
    return wrong


if __name__ == "__main__":
    for command in sys.argv[2:] or COMMANDS:
        check(command, Path(sys.argv[1]).resolve() / command)
