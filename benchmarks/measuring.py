"""Measure processes, take medians, write results."""

import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # more of them spin while they wait


@dataclass(frozen=True)
class Run:
    """What one process took, its children included."""

    cpu: float  # seconds, all cores together
    wall: float
    peak: float  # resident memory in GB; of the largest one, where there are children


@dataclass(frozen=True)
class Figure:
    """A number, with a limit where there is one."""

    value: float
    at_most: float | None = None
    at_least: float | None = None

    @property
    def aim(self) -> str:
        if self.at_most is not None:
            return f"<= {self.at_most:g}"
        return f">= {self.at_least:g}" if self.at_least is not None else ""

    @property
    def missed(self) -> bool:
        low = self.at_least is not None and self.value < self.at_least
        return low or (self.at_most is not None and self.value > self.at_most)


# --- measuring -------------------------------------------------------------------------------------------------------


def measure(work: Callable[..., Any], *arguments: object, env: Mapping[str, str] | None = None) -> tuple[Run, Any]:
    """Run a function of this package in a process of its own; what it took, and what it returned (by way of JSON).

    Whatever takes memory is done this way, for a process starts with the peak of the one that started it.
    """
    command = [sys.executable, "-m", "benchmarks.measuring", work.__module__, work.__name__, *map(str, arguments)]
    return run(command, env)


def run(command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> tuple[Run, Any]:
    """Run a command whose last line of output is JSON, or that prints nothing."""
    with tempfile.TemporaryFile("w+") as output:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, cwd=ROOT, env={**os.environ, **(env or {})})
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            process.terminate()
            raise
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        output.seek(0)
        lines = output.read().splitlines()
    taken = Run(used.ru_utime + used.ru_stime, wall, used.ru_maxrss * 1024 / 1e9)
    return taken, json.loads(lines[-1]) if lines else None


def median(runs: Sequence[Run]) -> Run:
    return Run(*(statistics.median(getattr(run, field) for run in runs) for field in ("cpu", "wall", "peak")))


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Of the straight line through log y over log x: 1 where y grows in proportion to x, 2 with its square."""
    import math

    return statistics.linear_regression([math.log(at) for at in x], [math.log(value) for value in y]).slope


def rounds(default: int) -> int:
    """Number of rounds: the environment variable ROUNDS, or the default."""
    return int(os.environ.get("ROUNDS", default))


@contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder, in BENCH_DIR where that is set."""
    with tempfile.TemporaryDirectory(prefix="prudent-bench-", dir=os.environ.get("BENCH_DIR")) as name:
        yield Path(name)


def say(text: str) -> None:
    print(f"{datetime.now():%H:%M:%S}  {text}", flush=True)


# --- writing down ----------------------------------------------------------------------------------------------------


def report(
    part: str,
    *,
    about: Mapping[str, Any],
    took: Mapping[str, Run],
    figures: Mapping[str, Figure],
    packages: Sequence[str] = (),
    versions: Mapping[str, str] | None = None,
    rows: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Print the results and write them to a dated file."""
    now = datetime.now(UTC)
    known = {name: version(name) for name in ("prudent", "duckdb", "numpy", "scipy", *packages)} | dict(versions or {})
    print(f"\n{part}: {', '.join(f'{key} {shown}' for key, shown in about.items())}")
    print(", ".join(f"{name} {shown}" for name, shown in known.items()), "\n")
    width = max(map(len, [*took, *figures])) + 2
    print(f"{'work':{width}}{'CPU s':>10}{'wall s':>10}{'peak GB':>10}")
    for work, one in took.items():
        print(f"{work:{width}}{one.cpu:10.2f}{one.wall:10.2f}{one.peak:10.2f}")
    print(f"\n{'figure':{width}}{'is':>10}{'aim':>10}")
    for name, figure in figures.items():
        print(f"{name:{width}}{figure.value:10.3f}{figure.aim:>10}{'  missed' if figure.missed else ''}")
    content = {
        "part": part,
        "date": now.isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": {
            "cores": os.cpu_count(),
            "load": round(os.getloadavg()[2], 1),  # of the last 15 minutes, the measured work included
            "memory": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),  # GB
            "processor": platform.machine(),
            "python": platform.python_version(),
        },
        "versions": known,
        "about": dict(about),
        "took": {work: {key: rounded(of) for key, of in asdict(one).items()} for work, one in took.items()},
        "figures": {
            name: {
                "value": rounded(figure.value),
                "aim": {key: of for key, of in asdict(figure).items() if key != "value" and of is not None} or None,
            }
            for name, figure in figures.items()
        },
    } | ({"rows": [{key: rounded(shown) for key, shown in row.items()} for row in rows]} if rows else {})
    RESULTS.mkdir(exist_ok=True)
    target = RESULTS / f"{now:%Y-%m-%d}-{part}.json"
    target.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"\nWritten to {target.relative_to(ROOT)}\n", flush=True)


def rounded(value: Any) -> Any:
    """Five digits, which is more than timings have."""
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def commit() -> str | None:
    """What was measured: the commit, with a plus where files differ from it; nothing outside a checkout."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "src") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


if __name__ == "__main__":
    module, name, *arguments = sys.argv[1:]
    returned = getattr(importlib.import_module(module), name)(*arguments)
    print(json.dumps(returned))
