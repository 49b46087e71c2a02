"""Click models by `prudent` against CLAX, which trains them by gradients: the same lists, time and accuracy of both.

CLAX lives in an environment of its own, which is made here once. It is given what it would have to make first: every
(context, item) pair is a number already, for both sides. And it gets a tenth of the lists on top, to know when to stop.
"""

import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.logs import SIZES, contexts, size, world
from benchmarks.measuring import Figure, Run, folder, measure, median, report, rounds, run, say

LOGS = {"long tail": "tail", "head": "head"}
AIMS = {"pbm": 25, "cm": 25, "dcm": 25}
ERRORS = {"rmse": "θ", "rmse_often": "θ where often shown", "rmse_position": "p or λ"}
REQUIREMENTS = Path(__file__).with_name("clax-requirements.txt")
TRAINING = ("-m", "benchmarks.clax_training")


# --- the work of our side --------------------------------------------------------------------------------------------


def make_lists(target: str, kind: str, contexts: str, lists: str) -> None:
    """A log, the same for CLAX, lists for early stopping, and the truth. Names are numbers of pairs."""
    from dataclasses import replace

    import duckdb
    import numpy as np

    from prudent.click_models.simulate import write_log

    place, true = Path(target), world(kind, int(contexts))
    numbered = replace(true, items=np.arange(len(true.items), dtype=np.int32))
    write_log(numbered, int(lists), place / "log.parquet", seed=1)
    write_log(numbered, int(lists) // 10, place / "held-out.parquet", seed=2)
    for number, name in enumerate(("log", "held-out")):
        duckdb.execute(
            "copy (select context as query_id, list_transform(items, lambda item: item + 1) as query_doc_ids, clicks "
            f"from '{place}/{name}.parquet') to '{place}/part-{number}.parquet' (format parquet, compression zstd)"
        )
    np.savez(place / "truth.npz", attraction=true.attraction, position=_position(true.users))


def fit(log: str, kind: str) -> float:
    """From the log to θ of every pair; CPU seconds of what comes after the counts are in memory."""
    import time

    import prudent

    counts = prudent.count(prudent.Log(log))
    _ = counts.cells
    started = time.process_time()
    _fitted(counts, kind)
    return time.process_time() - started


def grade_ours(target: str, kind: str) -> dict[str, Any]:
    """How far θ and the position parameters are from the truth."""
    import numpy as np

    import prudent
    from benchmarks.grading import OFTEN, grade

    counts = prudent.count(prudent.Log(Path(target) / "log.parquet"))
    evidence, theta = _fitted(counts, kind)
    truth = np.load(Path(target) / "truth.npz")
    attraction = truth["attraction"][counts.pairs.fetchnumpy()["item"]]
    position = _position(evidence.fitted)
    shown = evidence.impressions
    errors = grade(kind, theta, position, attraction, truth["position"], shown)
    return {"pairs": len(theta), "often": int((shown >= OFTEN).sum()), **errors}


def _position(users: Any) -> Any:
    """p of pbm, λ of dcm; 0 for cm, where reading ends with the first click."""
    import numpy as np

    return getattr(users, "examination", getattr(users, "continuation", np.zeros(users.positions)))


def _fitted(counts: Any, kind: str) -> tuple[Any, Any]:
    """Evidence, and the posterior mean under the default bound's prior: the column ``mean`` of a policy."""
    import prudent

    evidence = prudent.click_models.parse(kind).evidence(counts)
    prior = prudent.bounds.Exposure().prior(evidence)
    return evidence, (prior.alpha + evidence.positive) / (prior.alpha + prior.beta + evidence.examined)


# --- the other side --------------------------------------------------------------------------------------------------


def environment() -> Path:
    """The Python that has CLAX; its environment is made when first asked for, and again when what it holds changes."""
    place = Path(os.environ.get("CLAX_VENV", Path(sys.prefix) / "bench-clax"))
    stamp = place / "requirements.txt"
    wanted = REQUIREMENTS.read_text(encoding="utf-8")
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        say("Making an environment for CLAX: several gigabytes, for it brings PyTorch ...")
        subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
        subprocess.run([place / "bin" / "pip", "install", "--quiet", "-r", REQUIREMENTS], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return place / "bin" / "python"


# --- together --------------------------------------------------------------------------------------------------------


def main() -> None:
    python = environment()
    comparisons = []
    for name, log in LOGS.items():
        for kind in AIMS:
            with folder() as target:
                say(f"{kind}, {name}: making {SIZES[size()]:,} lists ...")
                measure(make_lists, target, kind, contexts(SIZES[size()], log), SIZES[size()])
                comparisons.append(compare(python, target, kind, name))
    report(
        "clax" if size() == "1m" else f"clax-{size()}",
        about={"lists": SIZES[size()], "rounds": rounds(3)},
        took={work: run for one in comparisons for work, run in one.took.items()},
        figures={figure: value for one in comparisons for figure, value in one.figures.items()},
        versions=comparisons[-1].versions,
        rows=[row for one in comparisons for row in one.rows],
    )


class Compared(NamedTuple):
    """One model on one log."""

    took: dict[str, Run]
    figures: dict[str, Figure]
    rows: list[dict[str, Any]]
    versions: dict[str, str]


def compare(python: Path, target: Path, kind: str, name: str) -> Compared:
    """Both sides in turn; then CLAX as its examples have it, once, and how accurate we are."""
    where = f"{kind}, {name}"
    ours, fits, training = [], [], []
    for number in range(rounds(3)):
        say(f"{where}: round {number + 1} ...")
        one, fitted = measure(fit, target / "log.parquet", kind)
        whole, trained = run([python, *TRAINING, target, kind, "arrays"])
        ours.append(one)
        fits.append(fitted)
        training.append(Run(**trained["training"], peak=whole.peak))
    say(f"{where}: CLAX as its examples have it ...")
    documented, read = run([python, *TRAINING, target, kind, "documented"])
    _, grades = measure(grade_ours, target, kind)

    total, alone, fitting = median(ours), median(training), statistics.median(fits)
    left = trained["left"]
    best = min(range(len(trained["losses"])), key=trained["losses"].__getitem__, default=None)
    what = {"model": kind, "log": name}
    return Compared(
        took={
            f"{where}: ours": total,
            f"{where}: CLAX": documented,
            f"{where}: CLAX, training alone": alone,
        },
        figures={
            f"{where}: CLAX / ours": Figure(
                documented.cpu / total.cpu, at_least=AIMS[kind] if name == "long tail" else None
            ),
            f"{where}: CLAX, training alone / ours": Figure(alone.cpu / total.cpu),
            f"{where}: CLAX, training alone / our fit alone": Figure(alone.cpu / fitting),
            **{
                f"{where}: our error of {words} / CLAX's": Figure(grades[key] / left[key], at_most=1.0)
                for key, words in ERRORS.items()
                if left[key] is not None
            },
        },
        rows=[
            {**what, "side": "ours", **grades, "cpu": total.cpu, "fit": fitting},
            *(
                {**what, "side": "CLAX", "epoch": epoch, "best": epoch - 1 == best, **at}
                for epoch, at in enumerate(trained["epochs"], start=1)
            ),
            {**what, "side": "CLAX, left", **left, "cut": trained["cut"], "epochs as in examples": read["epochs"]},
        ],
        versions=trained["versions"],
    )
