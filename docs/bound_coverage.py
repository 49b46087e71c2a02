# ruff: noqa: T201 (printing is what it is for)
"""How often bounds are above the truth: `python docs/bound_coverage.py` writes docs/coverage/bounds.json.

For each click model 12 worlds of 40 contexts with 12 items and 4 positions, θ ~ Beta(1.2, 5), and 50 logs of each: a
new θ and a new log each time. In half of the worlds production does not know θ, so that Beta(1.2, 5) is the right
prior however often an item was shown; in the others it shows better items more often. The tables of the page
docs/bound-coverage.md are printed by `python docs/bound_coverage.py --tables`, that on half-lives by `--half-life`, and
that on the δ of `anchored`, which takes ten minutes, by `--deltas`.
"""

import json
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.bounds import bounds
from prudent.click_models import click_models
from prudent.click_models.base import FittedModel
from prudent.click_models.evidence import Evidence
from prudent.click_models.world import draw, make_world, pairs_of
from prudent.counts.lists import ListBatch
from prudent.policies.best_lists import best_lists, list_values
from prudent.policies.list_bound import list_lower_bounds
from prudent.research import default, long_tail

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


def half_life(delta: float = 0.1, days: int = 60, logs: int = 4_000) -> Iterator[str]:
    """Bounds that hold at every θ where days weigh less the older they are, and the one of Maurer and Pontil (2009).

    Its rewards are w·Y in [0, 1], with the weight w of a day: the only rewards here that are not 0 or 1.
    """
    random = np.random.default_rng(0)
    for theta, per_day in product((0.05, 0.3), (2, 20, 200)):
        weight = 0.5 ** (np.arange(days) / 7)
        clicks = random.binomial(per_day, theta, (logs, days))
        positive, squares = clicks @ weight, clicks @ weight**2
        n, impressions = per_day * weight.sum(), per_day * days
        variance = (squares / impressions - (positive / impressions) ** 2) * impressions / (impressions - 1)
        width = np.sqrt(2 * variance * np.log(2 / delta) / impressions)
        width += 7 * np.log(2 / delta) / (3 * (impressions - 1))
        context = np.zeros(logs, np.int64)
        seen = {"positive": positive, "negative": n - positive, "expected": np.full(logs, n)}
        evidence = Evidence(
            context=context,
            item=np.arange(logs),
            impressions=seen["expected"],
            squares=seen["expected"],
            discounted=seen["expected"],
            hazard=seen["expected"],
            fitted=click_models.parse("cm").typical(1),
            **seen,
        )
        lower = {
            name: bounds.parse(f"{name}(delta={delta})").lower(evidence) for name in ("hoeffding", "clopper-pearson")
        }
        lower["empirical Bernstein"] = (positive / impressions - width) * impressions / n
        cells = [f"{np.mean(one):.3f} ({np.mean(one > theta):.3f})" for one in lower.values()]
        yield f"| {theta:g} | {per_day} | {' | '.join(cells)} |"


def deltas(repetitions: int = 50) -> Iterator[str]:
    """`anchored` at three δ: on the simulated protocols of `default`, and in one long-tail world of each kind."""
    arms = {str(delta): bounds.parse(f"anchored(delta={delta})") for delta in (0.25, 0.5, 0.75)}
    both = {"mle": bounds.parse("mle"), "exposure": bounds.parse("exposure"), **arms}
    errors = np.array(
        [[one.errors(11, r)[0] for r in range(repetitions)] for one in default.protocols(bounds=both)]
    )  # protocol, repetition, arm
    worlds = [(one.data.partition(",")[0], one.errors(0, 0)[0]) for one in long_tail.protocols(arms)]
    for k, name in enumerate(arms):
        own = 10**4 * errors[..., k + 2]
        against = (own - 10**4 * errors[..., 1]).mean(axis=0)
        worst = (own.mean(axis=1) / errors[..., 0].mean(axis=1)).max() / 10**4
        ratio: dict[str, list[float]] = {}
        for logging, regret in worlds:
            ratio.setdefault(logging, []).append(regret[k + 2] / regret[0])
        safe = " | ".join(f"{np.mean(r):.3f}, {np.sum(np.array(r) <= 1)} of {len(r)}" for r in ratio.values())
        se = against.std(ddof=1) / repetitions**0.5
        yield f"| {name} | {own.mean():.0f} | {against.mean():.1f} ± {se:.1f} | {worst:.2f} | {safe} |"


def main() -> None:
    """Measure all bounds under all click models."""
    studies = {"--half-life": half_life, "--deltas": deltas}
    if sys.argv[1:] and sys.argv[1] in studies:
        warnings.simplefilter("ignore")
        print(*studies[sys.argv[1]](), sep="\n")
        return
    if sys.argv[1:] == ["--tables"]:
        print(table(slice(WORLDS // 2)), table(slice(WORLDS // 2, WORLDS)), sep="\n\n")
        return
    if sys.argv[1:]:  # not a study of five minutes that overwrites the last one
        sys.exit(__doc__)
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
