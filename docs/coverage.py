# ruff: noqa: T201 (printing is what it is for)
"""Coverage of intervals and error rates of the gate: `python docs/coverage.py` writes docs/coverage/*.json.

A run draws a world, a holdout and a policy, applies the estimators, and compares them with the ground truth.
`python docs/coverage.py NAME ...` runs some studies only; the page docs/estimators.md has their tables, which
`python docs/coverage.py --tables` prints.
"""

import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.click_models.rewards import ObservedReward
from prudent.click_models.world import World, draw, make_world
from prudent.counts.lists import ListBatch
from prudent.evaluation.direct import direct, rewards
from prudent.evaluation.estimators import parse
from prudent.evaluation.gate import decide, gate_settings
from prudent.evaluation.gate_contexts import better_lists
from prudent.evaluation.holdout import Holdout, make_holdout
from prudent.evaluation.intervals import Settings, estimate
from prudent.policies.incumbent import incumbent_lists
from prudent.policies.list_arrays import as_table

RESULTS = Path(__file__).parent / "coverage"


@dataclass(frozen=True)
class Study:
    """What is simulated, and which estimators are applied."""

    about: str
    model: str  # of the simulated users
    estimators: tuple[str, ...]
    reward: ObservedReward = "clicks"
    propensities: bool = False  # logged, or else frequencies
    policy: str = "other"  # lists of another ranker; "logged", lists like those logged; "same data", the best of these
    gate: bool = False
    contexts: int = 25
    items: int = 4
    length: int = 3
    lists: int = 4_000
    exploration: float = 3.0
    holds: bool = True  # whether the assumptions of the estimators hold
    runs: int = 1_000


_WEIGHTS = ("ips", "snips", "prefix-ips")

STUDIES = {
    "pbm": Study("position-based clicks, propensities logged", "pbm", (*_WEIGHTS, "dr"), propensities=True),
    "pbm-frequencies": Study(
        "position-based clicks, frequencies", "pbm", ("ips", "prefix-ips", "ip-ips", "pi", "dm", "dr")
    ),
    "dcm": Study("dependent clicks, propensities logged", "dcm", (*_WEIGHTS, "dr(model=dcm)"), propensities=True),
    "dcm-frequencies": Study(
        "dependent clicks, frequencies", "dcm", ("ips", "prefix-ips", "dm(model=dcm)", "dr(model=dcm)")
    ),
    "cm-any-click": Study(
        "cascade, any click, frequencies",
        "cm",
        ("ips", "prefix-ips", "dm(model=cm)", "dr(model=cm)"),
        reward="any-click",
    ),
    "few-contexts": Study(
        "three contexts, position-based clicks, frequencies", "pbm", ("prefix-ips", "ip-ips", "dm", "dr"), contexts=3
    ),
    "cascade-wrong": Study(
        "cascade, where a click hides what is below", "cm", ("ip-ips", "pi", "dm(model=pbm)"), holds=False, runs=300
    ),
    "few-repeats": Study(
        "few lists agree: 8 items, 4 positions, 2,000 lists",
        "pbm",
        ("ips", "prefix-ips", "ip-ips", "dm", "dr"),
        items=8,
        length=4,
        lists=2_000,
        holds=False,
        runs=300,
    ),
    "same-data": Study(
        "evaluated on the 1,000 lists it was trained on",
        "pbm",
        ("ips", "ip-ips", "dm", "dr"),
        policy="same data",
        lists=1_000,
        holds=False,
        runs=300,
    ),
    "gate-pbm": Study(
        "position-based clicks",
        "pbm",
        ("dr", "dr(clip=10)", "dm", "prefix-ips"),
        policy="logged",
        gate=True,
    ),
    "gate-dcm": Study(
        "dependent clicks",
        "dcm",
        ("dr", "dr(clip=10)", "dm", "prefix-ips"),
        policy="logged",
        gate=True,
    ),
    "gate-propensities": Study(
        "position-based clicks, propensities logged",
        "pbm",
        ("dr", "dr(clip=10)", "prefix-ips"),
        propensities=True,
        policy="logged",
        gate=True,
    ),
}


class Run(NamedTuple):
    """A holdout, and the ground truth of every context."""

    held: Holdout
    share: FloatArray  # of lists
    value: FloatArray  # of the policy's list
    logged: FloatArray  # of lists as they are logged


def simulate(study: Study, seed: int) -> Run:
    """One world with its lists, and a policy."""
    size, items, length = study.contexts, study.items, study.length
    world = _world(study, seed)
    drawn = list(draw(world, study.lists, seed=seed))
    shown = np.concatenate([part.items for part in drawn])
    clicks = np.concatenate([part.clicks for part in drawn]).astype(bool)
    context = np.repeat(np.arange(size), items)
    first = np.arange(size)[:, None] * items
    random = np.random.default_rng([seed, 1])
    if study.policy == "other":
        score = np.log(world.attraction / (1 - world.attraction)) + random.normal(size=len(context))
    elif study.policy == "logged":
        score = world.score + random.gumbel(0, study.exploration, len(context))
    else:
        one = np.ones(length)
        weight = world.users.predict(one) if study.model == "pbm" else one
        looked = np.bincount(shown.ravel(), np.broadcast_to(weight, shown.shape).ravel(), minlength=len(context))
        score = np.bincount(shown.ravel(), clicks.ravel(), minlength=len(context)) / np.maximum(looked, 1e-9)
    target = first + np.argsort(-score.reshape(size, items), axis=1)[:, :length]
    orders = np.array(list(permutations(range(items), length)))
    every = (first[:, :, None] + orders[None]).reshape(-1, length)
    earned = rewards(world.users, world.attraction[every], study.reward).sum(axis=1) * steps(world, study, every)[:, -1]
    return Run(
        make_holdout(
            ListBatch(
                context,
                shown,
                clicks,
                np.ones(len(shown), np.int64),
                steps(world, study, shown) if study.propensities else None,
            ),
            target,
        ),
        world.share,
        rewards(world.users, world.attraction[target], study.reward).sum(axis=1),
        np.bincount(context[every[:, 0]], earned),
    )


def _world(study: Study, seed: int) -> World:
    return make_world(
        study.model,
        contexts=study.contexts,
        items=(study.items, study.items),
        length=study.length,
        zipf=0.5,
        exploration=study.exploration,
        seed=seed,
    )


def steps(world: World, study: Study, lists: IntArray) -> FloatArray:
    """The propensity of the first k items of lists, for each k: each next item with exp(score / exploration)."""
    weight = np.exp(world.score / study.exploration)
    of = np.bincount(np.repeat(np.arange(study.contexts), study.items), weight)
    chosen = weight[lists]
    above = np.hstack([np.zeros((len(lists), 1)), np.cumsum(chosen, axis=1)[:, :-1]])
    return np.cumprod(chosen / (of[lists[:, 0] // study.items][:, None] - above), axis=1)


class Outcome(NamedTuple):
    """The result of one estimator in one run."""

    answered: bool
    value_covered: bool = False
    lift_covered: bool = False
    off: float = 0.0  # estimated lift − true lift
    reach: float = 0.0  # half of the interval of the lift
    support: float = 0.0


def try_intervals(study: Study, seed: int) -> list[Outcome]:
    """One run of a study of intervals."""
    run = simulate(study, seed)
    estimators = [parse(spelling) for spelling in study.estimators]
    results = []
    estimates = estimate(run.held, estimators, Settings(study.reward, seed=seed))
    for estimator, one in zip(estimators, estimates, strict=True):
        if one.value is None or one.lift is None:
            results.append(Outcome(False))
            continue
        counted = estimator.contributions(run.held, study.reward).counted
        contexts = np.zeros(run.held.contexts, bool)
        contexts[run.held.context[counted]] = True
        share = run.share * contexts / run.share[contexts].sum()
        value, lift = np.sum(share * run.value), np.sum(share * run.value) / np.sum(share * run.logged) - 1
        results.append(
            Outcome(
                True,
                bool(one.low <= value <= one.high),  # type: ignore[operator]
                bool(one.lift_low <= lift <= one.lift_high),  # type: ignore[operator]
                float(one.lift - lift),
                float(one.lift_high - one.lift_low) / 2,  # type: ignore[operator]
                one.support,
            )
        )
    return results


class Passed(NamedTuple):
    """Whether a policy passed the gate."""

    lift: float  # the true one
    worse: bool  # passed a gate with a minimum lift of 0
    border: bool  # passed one whose minimum is the true lift


def try_gate(study: Study, seed: int) -> list[Passed] | None:
    """One run of a study of the gate; None where the policy is not worse."""
    run = simulate(study, seed)
    lift = float(np.sum(run.share * run.value) / np.sum(run.share * run.logged) - 1)
    if lift >= 0:
        return None
    asked = gate_settings(0.0, 0.95, study.reward, "bootstrap", 200, seed)
    results = []
    for spelling in study.estimators:
        verdict = decide(run.held, parse(spelling), asked, 0.0)
        least = verdict.estimate.lift_low
        results.append(Passed(lift, verdict.passed, least is not None and least > lift))
    return results


def measure(name: str, runs: int | None = None, processes: int = 1) -> dict[str, object]:
    """Rates over all runs of a study."""
    study = STUDIES[name]
    runs = runs or study.runs
    outcomes: list[Any] = []
    seed = 0
    with ProcessPoolExecutor(processes) as pool:
        while len(outcomes) < runs:  # only policies that are truly worse count
            seeds = range(seed, seed + 20)
            batch = (pool.map if processes > 1 else map)(try_gate if study.gate else try_intervals, [study] * 20, seeds)
            outcomes += [outcome for outcome in batch if outcome is not None]
            seed = seeds.stop
    outcomes = outcomes[:runs]
    rows: dict[str, dict[str, float]] = {}
    for number, spelling in enumerate(study.estimators):
        own = [outcome[number] for outcome in outcomes]
        if study.gate:
            rows[spelling] = {
                "mean_lift": float(np.mean([one.lift for one in own])),
                "passed": float(np.mean([one.worse for one in own])),
                "passed_border": float(np.mean([one.border for one in own])),
            }
            continue
        own = [one for one in own if one.answered]
        names = ("value_covered", "lift_covered", "off", "reach", "support")
        rows[spelling] = {key: float(np.mean([getattr(one, key) for one in own])) for key in names} if own else {}
        rows[spelling]["answered"] = len(own) / len(outcomes)
    return {"about": study.about, "holds": study.holds, "gate": study.gate, "runs": len(outcomes), "estimators": rows}


def choose(name: str) -> dict[str, float]:
    """The gate per context, in the world of a study: how many lists go out, and how many of these are worse."""
    study = replace(STUDIES[name], lists=20_000)
    contexts = better = worse = could = 0
    for seed in range(200):
        run = simulate(study, seed)
        held = run.held
        usual = as_table(incumbent_lists(held.shown().cells, held.length), held.contexts, held.length)
        world = _world(study, seed)
        before = rewards(world.users, world.attraction[usual], study.reward).sum(axis=1)
        sure, _ = better_lists(direct(held, "auto", study.reward), usual, 0.95, 0.0)
        contexts += len(sure)
        better += int(sure.sum())
        worse += int((sure & (run.value < before)).sum())
        could += int((run.value > before).sum())
    return {"contexts": contexts, "truly_better": could, "went_out": better, "worse": worse}


def tables() -> dict[str, str]:
    """The tables of the page, by name, from the stored results."""
    results = {name: json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")) for name in STUDIES}
    heads = {
        "holds": "| simulated | estimator | value covered | lift covered | bias of the lift | interval, ± | support |",
        "fails": "| simulated | estimator | value covered | lift covered | bias of the lift | interval, ± | support |",
        "gate": "| simulated | estimator | true lift, mean | passed | passed at the border |",
    }
    rows: dict[str, list[str]] = {name: [head, "|" + "---|" * (head.count("|") - 1)] for name, head in heads.items()}
    for result in results.values():
        kind = "gate" if result["gate"] else "holds" if result["holds"] else "fails"
        for number, (spelling, of) in enumerate(result["estimators"].items()):
            cells = [result["about"] if number == 0 else "", f"`{spelling}`"]
            if result["gate"]:
                cells += [_percent(of["mean_lift"]), f"{of['passed']:.1%}", f"{of['passed_border']:.1%}"]
            else:
                cells += [f"{of['value_covered']:.1%}", f"{of['lift_covered']:.1%}", _percent(of["off"])]
                cells += [_percent(of["reach"]).lstrip("+"), f"{of['support']:.0%}"]
            rows[kind].append(f"| {' | '.join(cells)} |")
    head = "| simulated | contexts | new list truly better | went out | of these truly worse |"
    lines = [head, "|---|---|---|---|---|"]
    for name, of in json.loads((RESULTS / "per-context.json").read_text(encoding="utf-8")).items():
        out = f"{of['went_out']:,} | {of['worse'] / of['went_out']:.1%}"
        lines.append(f"| {STUDIES[name].about} | {of['contexts']:,} | {of['truly_better']:,} | {out} |")
    return {name: "\n".join(lines) for name, lines in {**rows, "contexts": lines}.items()}


def _percent(lift: float) -> str:
    return f"{100 * lift:+.1f} %".replace("-", "−")


def main() -> None:
    """Run the named studies, or all, and write their results."""
    if sys.argv[1:] == ["--tables"]:
        print("\n\n".join(tables().values()))
        return
    RESULTS.mkdir(exist_ok=True)
    for name in sys.argv[1:] or [*STUDIES, "per-context"]:
        if name == "per-context":
            chosen = {study: choose(study) for study in ("pbm-frequencies", "dcm-frequencies")}
            (RESULTS / f"{name}.json").write_text(json.dumps(chosen, indent=2) + "\n", encoding="utf-8")
            continue
        result = measure(name, processes=int(os.environ.get("PROCESSES", "1")))
        (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        print(name, json.dumps(result["estimators"]), flush=True)


if __name__ == "__main__":
    main()
