"""Work × log: from the file to evidence and to a policy, ours and what else one would write, on one log after another.

Each log is a part with results of its own, so that one can be measured again without the others.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks import work
from benchmarks.agreement import agree
from benchmarks.logs import CONTEXTS, LOGS, SIZES, LogKind, contexts, make_log, size
from benchmarks.measuring import Figure, Run, folder, measure, median, report, rounds, say

MODELS = ("cm", "dcm", "pbm", "ubm")  # which others are compared with; ours are all that are registered
LIKE_OTHERS = f"hoeffding(delta={work.DELTA})"
ROUNDS_OF_EM = 50  # of plain loops
EM = "EM"  # how many of them are run; they take the same time each, and the rest is calculated

SCAN_AIMS = {"cm": 4.0, "pbm": 4.5, "dcm": 5.0}  # file -> policy over the bare scan, on the long tail
LOOP_AIMS = {"cm": 12.0, "dcm": 12.0, "pbm": 500.0}  # plain loops over ours, file -> evidence

Work = tuple[Callable[..., Any], tuple[str, ...]]


def models() -> list[str]:
    """Every registered click model, with its default settings."""
    from prudent.click_models.selection import candidates

    return [str(model) for model in candidates()]


def works(log: LogKind) -> dict[str, Work]:
    """What is measured on a log, by name."""
    _, registered = measure(models)
    todo: dict[str, Work] = {"scan": (work.scan, ()), "count": (work.count, ())}
    for model in registered:
        todo[f"evidence, {model}"] = (work.evidence, (work.OURS.get(model, model),))
        todo[f"policy, {model}"] = (work.policy, (model,))
    todo["policy like others, cm"] = (work.policy, ("cm", LIKE_OTHERS))
    for other in ("sql", "polars"):
        for what in ("evidence", "policy"):
            todo[f"{other}: {what}, cm"] = (getattr(work, f"{other}_{what}"), ())
    if log.layout == "lists" and log.names == "text":
        for model in ("cm", "dcm"):
            todo[f"loops: evidence, {model}"] = (work.loop_evidence, (model,))
            todo[f"loops: policy, {model}"] = (work.loop_policy, (model,))
        for model in ("pbm", "ubm"):
            todo[f"loops: evidence, {model}"] = (work.loop_evidence, (model, os.environ.get(EM, "2")))
    return todo


def main(name: str) -> None:
    log, lists = LOGS[name], SIZES[size()]
    todo = works(log)
    taken: dict[str, list[Run]] = {one: [] for one in todo}
    with folder() as target:
        say(f"{name}: making a log of {lists:,} lists ...")
        file = target / "log.parquet"
        number = contexts(lists, log.contexts) if log.contexts in CONTEXTS else 0
        measure(make_log, file, lists, number, log.contexts, log.names, log.layout)
        for at in range(rounds(5)):
            for one, (function, arguments) in todo.items():
                if at and function is work.loop_evidence and len(arguments) > 1:
                    continue  # EM takes minutes: once is enough
                say(f"{name}, round {at + 1}: {one}")
                run, returned = measure(function, file, log.layout, target, *arguments)
                taken[one].append(_all_rounds(run, returned, arguments) if len(arguments) > 1 and returned else run)
        say(f"{name}: comparing results ...")
        _, about = measure(agree, file, log.layout, target)
        megabytes = {"MB of log": file, "MB of counts": target / "counts.parquet"}
        about |= {words: place.stat().st_size / 1e6 for words, place in megabytes.items()}
    took = {one: median(runs) for one, runs in taken.items()}
    report(
        name if size() == "1m" else f"{name}-{size()}",
        about={"lists": lists, **about, "rounds": rounds(5), "rounds of EM": ROUNDS_OF_EM, "memory": work.MEMORY},
        took=took,
        figures=figures(took, about, name),
        packages=("polars",),
    )


def _all_rounds(run: Run, seconds: Mapping[str, float], arguments: tuple[str, ...]) -> Run:
    """The run with all rounds of EM, of which a few were measured."""
    more = (ROUNDS_OF_EM - int(arguments[1])) * seconds["round"]
    return Run(run.cpu + more, run.wall + more, run.peak)


def figures(took: Mapping[str, Run], about: Mapping[str, Any], name: str) -> dict[str, Figure]:
    """Ratios of CPU, with targets where the long tail has them."""
    tail = name == "tail"
    scan, pbm = took["scan"].cpu, took["evidence, pbm"].cpu
    found: dict[str, Figure] = {"counting / bare scan": Figure(took["count"].cpu / scan)}
    for one, run in took.items():
        side, _, rest = one.rpartition(": ")
        what, _, model = rest.partition(", ")
        if side:
            mine = took["policy like others, cm" if what == "policy" and model == "cm" else rest]
            wanted = LOOP_AIMS.get(model) if tail and (side, what) == ("loops", "evidence") else None
            found[f"{side} / ours, file to {what}, {model}"] = Figure(run.cpu / mine.cpu, at_least=wanted)
        elif what == "policy":
            wanted = SCAN_AIMS.get(model) if tail else None
            found[f"file to policy / bare scan, {model}"] = Figure(run.cpu / scan, at_most=wanted)
        elif what == "evidence" and model != "pbm":
            most = 2.0 if tail else None
            found[f"file to evidence, {model} / pbm"] = Figure(run.cpu / pbm, at_most=most)
    peak = max(run.peak for one, run in took.items() if one.startswith("policy, "))
    found["peak memory of file to policy, GB"] = Figure(peak, at_most=0.8 if tail else None)
    if tail:
        found["counts, MB"] = Figure(about["MB of counts"], at_most=35.0)
    if name == "head":
        found["file to policy, pbm, CPU seconds"] = Figure(took["policy, pbm"].cpu, at_most=2.5)
    return found
