# ruff: noqa: T201 (printing is what it is for)
"""How often bounds are above the truth: `python docs/bound_coverage.py` writes docs/coverage/bounds.json.

For each click model 12 worlds of 40 contexts with 12 items and 4 positions, θ ~ Beta(1.2, 5), and 50 logs of each: a
new θ and a new log each time. In half of the worlds production does not know θ, so that Beta(1.2, 5) is the right
prior however often an item was shown; in the others it shows better items more often. The tables of the page
docs/bound-coverage.md are printed by `python docs/bound_coverage.py --tables`.
"""

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.bounds import bounds
from prudent.click_models import click_models
from prudent.click_models.base import FittedModel
from prudent.click_models.simulate import draw, make_world, pairs_of
from prudent.counts.lists import ListBatch
from prudent.policies.best_lists import best_lists, list_values
from prudent.policies.list_bound import list_lower_bounds

RESULT = Path(__file__).parent / "coverage" / "bounds.json"
MODELS = {"cm": "cm", "dcm": "dcm", "pbm": "pbm(examination=[1, 0.6, 0.4, 0.3])", "pbm, p fitted": "pbm"}
BOUNDS = {
    "bayes(delta=0.2, alpha=1.2, beta=5)": 0.1,
    "eb(delta=0.2)": 0.1,
    "exposure(delta=0.2)": 0.1,
    "hierarchical(delta=0.2)": 0.1,
    "anchored(delta=0.2)": 0.1,
    "bayes(delta=0.5, alpha=1.2, beta=5)": 0.25,
    "anchored(delta=0.5)": 0.25,
    "hoeffding(delta=0.1)": 0.1,
    "clopper-pearson(delta=0.1)": 0.1,
    "anytime(delta=0.1, alpha=1.2, beta=5)": 0.1,
}
COUNTED = ("all items", "chosen items", "first item", "value of lower bounds", "list bound")
CONTEXTS, LENGTH, WORLDS, LOGS = 40, 4, 12, 50


def log_of(model: str, world: int, log: int) -> tuple[FloatArray, FittedModel, ListBatch]:
    """θ, the users and a log: worlds differ in how production ranks and explores, and in how much was logged."""
    users = "pbm(examination=[1, 0.6, 0.4, 0.3])" if model.startswith("pbm") else model
    quality = 0.0 if world < WORLDS // 2 else 1.0
    exploration, lists = (0.5, 1.0, 2.0)[world % 3], (4_000, 16_000)[world // 3 % 2]
    truth = make_world(
        users,
        contexts=CONTEXTS,
        items=(12, 12),
        length=LENGTH,
        quality=quality,
        exploration=exploration,
        zipf=0.7,
        seed=1_000 * world + log,
    )
    drawn = next(draw(truth, lists, seed=log, chunk=lists))
    batch = ListBatch(pairs_of(truth), drawn.items, drawn.clicks > 0, np.ones(lists, np.int64))
    return truth.attraction, truth.users, batch


def measure(model: str, spelling: str, logs: int = LOGS) -> dict[str, list[float]]:
    """The shares of items, or of lists, whose bound is above the truth, in each world."""
    bound = bounds.parse(spelling)
    above = np.zeros((len(COUNTED), WORLDS, logs))
    for world in range(WORLDS):
        for log in range(logs):
            theta, users, batch = log_of(model, world, log)
            fitted = click_models.parse(MODELS[model]).fit(batch.cells, LENGTH)
            evidence = fitted.evidence(batch.cells)
            scores = bound.score(evidence)
            lists = best_lists(evidence, scores, LENGTH)
            wrong = scores.lower > theta
            listed = evidence, lists
            truth = list_values(replace(evidence, fitted=users), lists, theta, LENGTH, CONTEXTS)
            above[:, world, log] = (
                wrong.mean(),
                wrong[lists.row].mean(),
                wrong[lists.row[lists.rank == 1]].mean(),
                np.mean(list_values(*listed, scores.lower, LENGTH, CONTEXTS) > truth),
                np.mean(list_lower_bounds(*listed, scores, LENGTH, CONTEXTS) > truth),
            )
    return {name: one.mean(axis=1).tolist() for name, one in zip(COUNTED, above, strict=True)}


def table(worlds: slice) -> str:
    """Means over some worlds, and the worst of them in brackets."""
    head = f"| click model | bound | promised | {' | '.join(COUNTED)} |"
    lines = [head, "|" + "---|" * (head.count("|") - 1)]
    for model, rows in json.loads(RESULT.read_text(encoding="utf-8")).items():
        for spelling, shares in rows.items():
            own = [shares[name][worlds] for name in COUNTED]
            cells = [f"{np.mean(one):.3f} ({max(one):.3f})" for one in own]
            lines.append(f"| {model} | `{spelling}` | {BOUNDS[spelling]:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure all bounds under all click models."""
    if sys.argv[1:] == ["--tables"]:
        print(table(slice(WORLDS // 2)), table(slice(WORLDS // 2, WORLDS)), sep="\n\n")
        return
    warnings.simplefilter("ignore")
    RESULT.parent.mkdir(exist_ok=True)
    result: dict[str, dict[str, dict[str, list[float]]]] = {}
    for model in MODELS:
        for spelling in BOUNDS:
            result.setdefault(model, {})[spelling] = measure(model, spelling)
            print(model, spelling, result[model][spelling], flush=True)
            RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
