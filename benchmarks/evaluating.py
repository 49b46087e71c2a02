"""Evaluating a policy on a million holdout lists, with the default replicates and estimators, and reporting on it."""

import subprocess
import sys
from pathlib import Path

from benchmarks import work
from benchmarks.logs import SIZES, contexts, make_log, size
from benchmarks.measuring import Figure, Run, folder, measure, median, report, rounds, say

MEMORY = "400MB"  # of DuckDB; the arrays come on top of it


def split(log: str, target: str) -> int:
    """Into halves: the training log is as long as the holdout. Returns the number of lists of the holdout."""
    import prudent

    return prudent.split(log, target, holdout=0.5, engine=prudent.DuckDB(memory=MEMORY)).holdout.lists


def evaluate(log: str, target: str) -> None:
    command("evaluate", f"{target}/policy.parquet", "--log", log)


def report_on(log: str, target: str) -> None:
    """With the counts of the training log."""
    place = Path(target)
    policy, counts, to = (place / name for name in ("policy.parquet", "counts.parquet", "report.html"))
    command("report", policy, "--log", log, "--train", counts, "--to", to)


def command(*arguments: str | Path) -> None:
    """The command as people run it."""
    prudent = Path(sys.executable).with_name("prudent")
    subprocess.run([prudent, *arguments, "--memory", MEMORY], check=True, stdout=sys.stderr)


def main() -> None:
    lists = SIZES[size()]
    taken: dict[str, list[Run]] = {"split": [], "evaluate": [], "report": []}
    with folder() as target:
        say(f"Making a log of {2 * lists:,} lists ...")
        measure(make_log, target / "log.parquet", 2 * lists, contexts(lists))
        for number in range(rounds(3)):
            say(f"Round {number + 1} ...")
            run, held_out = measure(split, target / "log.parquet", target)
            taken["split"].append(run)
            if number == 0:
                for function, arguments in ((work.count, ()), (work.policy, ("auto",))):
                    measure(function, target / "train.parquet", "lists", target, *arguments)
            for name, one in (("evaluate", evaluate), ("report", report_on)):
                taken[name].append(measure(one, target / "holdout.parquet", target)[0])
    took = {work: median(runs) for work, runs in taken.items()}
    report(
        "evaluate" if size() == "1m" else f"evaluate-{size()}",
        about={"held-out lists": held_out, "replicates": 200, "memory of DuckDB": MEMORY, "rounds": rounds(3)},
        took=took,
        figures={
            "evaluating, seconds": Figure(took["evaluate"].wall, at_most=60.0),
            "evaluating, CPU seconds": Figure(took["evaluate"].cpu, at_most=12.0),
            "peak memory of evaluating, GB": Figure(took["evaluate"].peak, at_most=1.0),
            "reporting, CPU seconds": Figure(took["report"].cpu, at_most=25.0),
            "peak memory of reporting, GB": Figure(took["report"].peak, at_most=1.0),
        },
    )
