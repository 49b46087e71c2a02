"""Time and memory of counting and ranking, from a hundred thousand to ten million lists."""

from pathlib import Path

from benchmarks.limits import MEMORY, count, rank, shape
from benchmarks.logs import CONTEXTS, SIZES, make_log
from benchmarks.measuring import Figure, Run, folder, measure, median, report, rounds, say, slope

WORK = (count, rank)
GROWTH = 1.15  # of CPU per list, from a million lists to ten


def main() -> None:
    taken: dict[tuple[str, str], list[Run]] = {(work.__name__, name): [] for work in WORK for name in SIZES}
    rows = []
    with folder() as target:
        places = {name: target / name for name in SIZES}
        for name, place in places.items():
            say(f"Making a log of {SIZES[name]:,} lists ...")
            place.mkdir()
            measure(make_log, place / "log.parquet", SIZES[name], CONTEXTS)
        for number in range(rounds(3)):  # all sizes in turn, so that a busy hour slows all of them
            for name, place in places.items():
                say(f"Round {number + 1}, {name} ...")
                for work in WORK:
                    taken[work.__name__, name].append(measure(work, place / "log.parquet", place)[0])
        took = {key: median(runs) for key, runs in taken.items()}
        for name, place in places.items():
            _, counted = measure(shape, place / "counts.parquet")
            rows.append(describe(name, place, counted, {work.__name__: took[work.__name__, name] for work in WORK}))
    report(
        "sizes",
        about={"rounds": rounds(3), "memory": MEMORY},
        took={f"{work}, {name}": run for (work, name), run in took.items()},
        figures=compare(took),
        rows=rows,
    )


def describe(name: str, place: Path, counted: dict[str, int], took: dict[str, Run]) -> dict[str, object]:
    """Input, output and cost of one size."""
    lists = SIZES[name]
    size = (place / "counts.parquet").stat().st_size
    return {
        "lists": lists,
        **counted,
        "bytes per list": (place / "log.parquet").stat().st_size / lists,
        "bytes per row of counts": size / counted["rows"],
        "rows of counts per list": counted["rows"] / lists,
        **{f"{work}: {key}": getattr(run, key) for work, run in took.items() for key in ("cpu", "wall", "peak")},
    }


def compare(took: dict[tuple[str, str], Run]) -> dict[str, Figure]:
    figures = {}
    for work, verb in (("count", "counting"), ("rank", "ranking")):
        runs = [took[work, name] for name in SIZES]
        sizes = list(SIZES.values())
        million, ten = (took[work, name].cpu / SIZES[name] for name in ("1m", "10m"))
        figures[f"{verb}: CPU per list, 10m / 1m"] = Figure(ten / million, at_most=GROWTH)
        figures[f"{verb}: slope of CPU against lists"] = Figure(slope(sizes, [run.cpu for run in runs]))
        figures[f"{verb}: slope of peak memory against lists"] = Figure(slope(sizes, [run.peak for run in runs]))
    return figures
