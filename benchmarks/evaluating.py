"""Evaluating a policy on a million holdout lists, with the default replicates and estimators, and reporting on it."""

from pathlib import Path

from benchmarks import work
from benchmarks.logs import SIZES, contexts, make_log, size
from benchmarks.measuring import Figure, Run, folder, measure, median, report, rounds, say

MEMORY = "400MB"  # of DuckDB; the arrays come on top of it


def split(log: str, target: str) -> None:
    """Into halves: the training log is as long as the holdout."""
    import prudent

    prudent.split(log, target, holdout=0.5, engine=prudent.DuckDB(memory=MEMORY))


def evaluate(log: str, target: str) -> int:
    """As `prudent evaluate` does it; returns the number of holdout lists."""
    import prudent

    policy = prudent.Policy.read(Path(target) / "policy.parquet")
    evaluation = prudent.evaluate(policy, prudent.Log(log), replicates=200, engine=prudent.DuckDB(memory=MEMORY))
    return evaluation[0].lists


def report_on(log: str, target: str) -> None:
    """As `prudent report` does it."""
    import prudent

    place = Path(target)
    prudent.report(
        place / "policy.parquet",
        prudent.Log(log),
        to=place / "report.html",
        train=place / "counts.parquet",
        engine=prudent.DuckDB(memory=MEMORY),
    )


def main() -> None:
    lists = SIZES[size()]
    taken: dict[str, list[Run]] = {"split": [], "evaluate": [], "report": []}
    with folder() as target:
        say(f"Making a log of {2 * lists:,} lists ...")
        measure(make_log, target / "log.parquet", 2 * lists, contexts(lists))
        for number in range(rounds(3)):
            say(f"Round {number + 1} ...")
            taken["split"].append(measure(split, target / "log.parquet", target)[0])
            if number == 0:
                for function, arguments in ((work.count, ()), (work.policy, ("auto",))):
                    measure(function, target / "train.parquet", "lists", target, *arguments)
            run, held_out = measure(evaluate, target / "holdout.parquet", target)
            taken["evaluate"].append(run)
            taken["report"].append(measure(report_on, target / "holdout.parquet", target)[0])
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
