# ruff: noqa: T201 (printing is what it is for)
"""What groups are worth where most contexts are rare: `python docs/tail_worlds.py` writes docs/coverage/tail.json.

Simulated worlds of 3,000 contexts, 80 % of them seen once, with 20 items each from a catalogue of 2,000 items of 100
hosts. In the worlds "groups tell", logit θ is the sum of an effect of the item, of its host and of noise in each
context, with standard deviations of 0.7, 0.5 and 0.7; in the worlds "groups are noise" it is the last alone, with 1.1.
Regret is that of each context's list, over the regret of its logged lists, by how often the context was seen.

`--tables` prints the table of docs/how-to/rare-queries.md, and draws its chart.
"""

import json
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.chart import COLOURS
from prudent.bounds import bounds
from prudent.bounds.learn_effects import learn_effects
from prudent.click_models import click_models
from prudent.click_models.evidence import Evidence
from prudent.click_models.world import World, best_lists, clicked, nameless_world, value
from prudent.counts.groups import Keys
from prudent.counts.lists import ListBatch
from prudent.policies import best_lists as ranking
from prudent.policies.list_arrays import as_table
from prudent.research.long_tail import lists_per_context
from prudent.research.protocol import gather

RESULT = Path(__file__).parent / "coverage" / "tail.json"
CHART = Path(__file__).parent / "how-to" / "rare-queries.svg"
CONTEXTS, ITEMS, LENGTH = 3_000, 20, 10
CATALOGUE, HOSTS = 2_000, 100
KINDS = {"groups tell": (0.7, 0.5, 0.7), "groups are noise": (0.0, 0.0, 1.1), "groups are opposed": (0.7, 0.5, 0.7)}
RARE = 4  # lists, up to which the effects of items and hosts are turned around in the worlds "groups are opposed"
CORRELATIONS = (0.0, 0.3, 0.5, 0.8)  # of production's score with logit θ
CLASSES = {"once": (1, 1), "2–4 times": (2, 4), "5–19 times": (5, 19), "20 times and more": (20, 10**9)}
ALONE = ("mle", "eb", "exposure", "anchored")
GROUPED = ("anchored(lead=clicks)", "anchored")
REPETITIONS = 3


def draw(kind: str, users: str, correlation: float, seed: int) -> tuple[World, ListBatch, Keys, IntArray]:
    """A world of the items that were logged, its log, the item and host of every pair, and lists of every context."""
    rng = np.random.default_rng([seed, list(KINDS).index(kind), int(100 * correlation), len(users)])
    of_item, of_host, noise = KINDS[kind]
    host = rng.integers(0, HOSTS, CATALOGUE)
    effect = of_item * rng.standard_normal(CATALOGUE) + of_host * rng.standard_normal(HOSTS)[host]
    popularity = -0.7 * np.log(np.arange(1, CATALOGUE + 1)) + rng.gumbel(size=(CONTEXTS, CATALOGUE))
    items = rng.permuted(np.argpartition(-popularity, ITEMS, axis=1)[:, :ITEMS], axis=1)
    seen = lists_per_context(CONTEXTS, rng)
    turned = np.where((seen <= RARE) & (kind == "groups are opposed"), -1, 1)
    logit = -2.2 + turned[:, None] * effect[items] + noise * rng.standard_normal(items.shape)
    standard = (logit - logit.mean()) / logit.std()
    score = correlation * standard + np.sqrt(1 - correlation**2) * rng.standard_normal(items.shape)
    fitted = click_models.parse(users).typical(LENGTH)
    world = nameless_world(np.full(CONTEXTS, ITEMS), 1 / (1 + np.exp(-logit.ravel())), score.ravel(), fitted)
    context = np.repeat(np.arange(CONTEXTS), seen)
    gain = score[context] + rng.gumbel(0, 0.5, (len(context), ITEMS))
    shown = clicked(world, np.argsort(-gain, axis=1)[:, :LENGTH] + ITEMS * context[:, None], rng)
    logged = shown.impressions > 0
    sizes = np.bincount(shown.context[logged])
    few = nameless_world(sizes, world.attraction[logged], world.score[logged], fitted)
    item = items.ravel()[logged]
    keys = Keys(("item", "host"), np.column_stack([item + 1, host[item] + 1]), (True, False))
    return few, shown.made_of(logged), keys, seen


def regrets(world: World, shown: ListBatch, keys: Keys, learner: str) -> Iterator[tuple[str, FloatArray]]:
    """The regret of every context: of its logged lists, and of the lists by each bound."""
    best = value(world, best_lists(world))
    logged = np.bincount(shown.list_context, best[shown.list_context] - value(world, shown.items))
    yield "logged", logged / np.bincount(shown.list_context)
    evidence = gather(click_models.parse(learner), world, shown)

    def regret(name: str, of: Evidence) -> FloatArray:
        lists = ranking.best_lists(of, bounds.parse(name).score(of), LENGTH)
        return np.asarray(best - value(world, as_table(lists, len(best), LENGTH)))

    for name in ALONE:
        yield name, regret(name, evidence)
    prior = bounds.parse("anchored").learn(evidence, len(evidence.context)).ungrouped
    assert prior is not None
    signals = learn_effects(prior, [(evidence, keys)]).of(evidence, keys)
    for name in GROUPED:
        yield f"{name}, groups", regret(name, replace(evidence, signals=signals))


def measure(repetitions: int) -> list[dict[str, Any]]:
    """One row for each world, method and class of contexts: the mean regret over that of logged lists."""
    rows = []
    for kind, users, correlation, seed in product(KINDS, ("pbm", "dcm"), CORRELATIONS, range(repetitions)):
        world, shown, keys, seen = draw(kind, users, correlation, seed)
        found = dict(regrets(world, shown, keys, users))
        for name, (least, most) in CLASSES.items():
            some = (seen >= least) & (seen <= most)
            for method, regret in found.items():
                ratio = float(regret[some].mean() / found["logged"][some].mean())
                at = {"kind": kind, "users": users, "correlation": correlation, "seed": seed}
                rows.append({**at, "seen": name, "method": method, "ratio": ratio})
        print(kind, users, correlation, seed, file=sys.stderr)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Mean ratios with their standard errors, over all worlds of a kind."""
    methods = [*ALONE, *(f"{name}, groups" for name in GROUPED)]
    lines = [f"| worlds | bound | {' | '.join(CLASSES)} |", "|---" * (2 + len(CLASSES)) + "|"]
    for kind, method in product(KINDS, methods):
        cells = []
        for seen in CLASSES:
            ratios = ratios_of(rows, kind, method, seen)
            cells.append(f"{ratios.mean():.3f} ± {ratios.std(ddof=1) / np.sqrt(len(ratios)):.3f}")
        lines.append(f"| {kind} | `{method}` | {' | '.join(cells)} |".replace(", groups`", "` with groups"))
    return "\n".join(lines)


def ratios_of(rows: list[dict[str, Any]], kind: str, method: str, seen: str) -> FloatArray:
    """The ratios of one cell of the table."""
    return np.array([r["ratio"] for r in rows if (r["kind"], r["method"], r["seen"]) == (kind, method, seen)])


def chart(rows: list[dict[str, Any]]) -> None:
    """The gain by how often a context was seen, where groups tell."""
    import altair as alt

    alone = {name: name for name in ("eb", "exposure", "anchored")}
    names = {**{f"{name}, groups": f"{name}, with groups" for name in reversed(GROUPED)}, **alone}
    points = [
        {"seen": seen, "method": label, "gain": float(1 - ratios_of(rows, "groups tell", method, seen).mean())}
        for (method, label), seen in product(names.items(), CLASSES)
    ]
    order = list(names.values())
    drawn = (
        alt.Chart(alt.Data(values=points))
        .mark_line(point=True)
        .encode(
            x=alt.X("seen:O", sort=list(CLASSES), title="how often the context was seen", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("gain:Q", title="share of production's regret that is gone", axis=alt.Axis(format="%")),
            color=alt.Color("method:N", sort=order, title=None, scale=alt.Scale(range=[*COLOURS])),
            strokeDash=alt.StrokeDash("method:N", sort=order, legend=None),
        )
        .properties(width=480, height=260)
        .configure_legend(labelLimit=250)
    )
    drawn.save(str(CHART))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if "--tables" not in sys.argv:
        RESULT.write_text(json.dumps(measure(REPETITIONS), indent=0) + "\n", encoding="utf-8")
    stored = json.loads(RESULT.read_text(encoding="utf-8"))
    print(table(stored))
    chart(stored)
