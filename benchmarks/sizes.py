"""Time and memory of counting and ranking the long tail, from a hundred thousand to ten million lists."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import work
from benchmarks.agreement import shape
from benchmarks.logs import CONTEXTS, SIZES, make_log
from benchmarks.measuring import Figure, Run, folder, measure, median, report, rounds, say, slope

WORK: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "scan": (work.scan, ()),
    "count": (work.count, ()),
    "rank": (work.rank, ()),
    "policy": (work.policy, ("auto",)),
}
GROWTH = 1.10  # of CPU per list, from a million lists to ten
MOST_MEMORY = {("policy", "1m"): 0.8, ("count", "10m"): 1.0, ("rank", "10m"): 1.0, ("policy", "10m"): 1.0}  # GB


def main() -> None:
    taken: dict[tuple[str, str], list[Run]] = {(one, name): [] for one in WORK for name in SIZES}
    with folder() as target:
        places = {name: target / name for name in SIZES}
        for name, place in places.items():
            say(f"Making a log of {SIZES[name]:,} lists ...")
            place.mkdir()
            measure(make_log, place / "log.parquet", SIZES[name], CONTEXTS["tail"])
        for number in range(rounds(3)):  # all sizes in turn, so that a busy hour slows all of them
            for name, place in places.items():
                for one, (function, arguments) in WORK.items():
                    say(f"Round {number + 1}, {name}: {one}")
                    taken[one, name].append(measure(function, place / "log.parquet", "lists", place, *arguments)[0])
        took = {key: median(runs) for key, runs in taken.items()}
        rows = [describe(name, place, {one: took[one, name] for one in WORK}) for name, place in places.items()]
    report(
        "sizes",
        about={"rounds": rounds(3), "memory": work.MEMORY},
        took={f"{one}, {name}": run for (one, name), run in took.items()},
        figures=compare(took),
        rows=rows,
    )


def describe(name: str, place: Path, took: dict[str, Run]) -> dict[str, object]:
    """Input, output and cost of one size."""
    lists, counts = SIZES[name], place / "counts.parquet"
    _, counted = measure(shape, counts)
    return {
        "lists": lists,
        **counted,
        "bytes per list": (place / "log.parquet").stat().st_size / lists,
        "bytes per row of counts": counts.stat().st_size / counted["cells"],
        "rows of counts per list": counted["cells"] / lists,
        **{f"{one}: {key}": getattr(run, key) for one, run in took.items() for key in ("cpu", "wall", "peak")},
    }


def compare(took: dict[tuple[str, str], Run]) -> dict[str, Figure]:
    figures = {}
    for one, verb in (("count", "counting"), ("rank", "ranking"), ("policy", "file to policy")):
        runs = [took[one, name] for name in SIZES]
        sizes = list(SIZES.values())
        million, ten = (took[one, name].cpu / SIZES[name] for name in ("1m", "10m"))
        figures[f"{verb}: CPU per list, 10m / 1m"] = Figure(ten / million, at_most=GROWTH)
        for name in ("1m", "10m"):
            figures[f"{verb}: peak memory at {name}, GB"] = Figure(
                took[one, name].peak, at_most=MOST_MEMORY.get((one, name))
            )
        figures[f"{verb}: slope of CPU against lists"] = Figure(slope(sizes, [run.cpu for run in runs]))
        figures[f"{verb}: slope of peak memory against lists"] = Figure(slope(sizes, [run.peak for run in runs]))
    return figures
