# ruff: noqa: T201 (printing is what it is for)
"""What features are worth where most contexts are rare: `python docs/feature_worlds.py` writes coverage/features.json.

The worlds of docs/tail_worlds.py, 3,000 contexts of which 80 % are seen once, with features in place of groups. In the
worlds "features tell", logit θ is the sum of what an item's price (bent), rating (a line, and missing for a fifth) and
category (of 12) and a match of the pair say, and of noise in each context, with standard deviations of 0.86 and 0.7. In
the worlds "features are noise" it is the last alone, with 1.1, and in the worlds "a feature leaks" one of them is the
number of clicks of the pair in the very log.

`--tables` prints the table of docs/how-to/features.md.
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
from prudent.bounds import bounds
from prudent.bounds.feature_models import feature_models
from prudent.bounds.features import SIGNAL, cross_fit, knows_clicks, target_of
from prudent.click_models import click_models
from prudent.click_models.evidence import Evidence
from prudent.click_models.world import World, best_lists, clicked, nameless_world, value
from prudent.counts.feature_columns import Categorical, Feature, Numeric
from prudent.counts.groups import Signals
from prudent.counts.lists import ListBatch
from prudent.policies import best_lists as ranking
from prudent.policies.list_arrays import as_table
from prudent.research.long_tail import lists_per_context
from prudent.research.protocol import gather

RESULT = Path(__file__).parent / "coverage" / "features.json"
CONTEXTS, ITEMS, LENGTH, CATALOGUE, CATEGORIES = 3_000, 20, 10, 2_000, 12
KINDS = ("features tell", "features are noise", "a feature leaks")
CORRELATIONS = (0.0, 0.3, 0.5, 0.8)  # of production's score with logit θ
CLASSES = {"once": (1, 1), "2–4 times": (2, 4), "5–19 times": (5, 19), "20 times and more": (20, 10**9)}
MODELS = ("ridge", "lightgbm")
REPETITIONS, FOLDS = 3, 5


def draw(kind: str, users: str, correlation: float, seed: int) -> tuple[World, ListBatch, list[Feature], IntArray]:
    """A world of the items that were logged, its log, their features, and the lists of every context."""
    rng = np.random.default_rng([seed, KINDS.index(kind), int(100 * correlation), len(users), 7])
    price, rating = rng.lognormal(3, 1, CATALOGUE), rng.standard_normal(CATALOGUE)
    category, of_category = rng.integers(0, CATEGORIES, CATALOGUE), rng.standard_normal(CATEGORIES)
    popularity = -0.7 * np.log(np.arange(1, CATALOGUE + 1)) + rng.gumbel(size=(CONTEXTS, CATALOGUE))
    items = rng.permuted(np.argpartition(-popularity, ITEMS, axis=1)[:, :ITEMS], axis=1)
    match = rng.standard_normal(items.shape)
    away = np.log(price) - 3
    effect = 0.5 * rating + 0.4 * of_category[category] - 0.3 * (away**2 - 1) / np.sqrt(2)
    explained = (effect[items] + 0.5 * match) * (kind == "features tell")
    noise = 0.7 if kind == "features tell" else 1.1
    logit = -2.2 + explained + noise * rng.standard_normal(items.shape)
    seen = lists_per_context(CONTEXTS, rng)
    standard = (logit - logit.mean()) / logit.std()
    score = correlation * standard + np.sqrt(1 - correlation**2) * rng.standard_normal(items.shape)
    fitted = click_models.parse(users).typical(LENGTH)
    world = nameless_world(np.full(CONTEXTS, ITEMS), 1 / (1 + np.exp(-logit.ravel())), score.ravel(), fitted)
    context = np.repeat(np.arange(CONTEXTS), seen)
    gain = score[context] + rng.gumbel(0, 0.5, (len(context), ITEMS))
    shown = clicked(world, np.argsort(-gain, axis=1)[:, :LENGTH] + ITEMS * context[:, None], rng)
    logged = shown.impressions > 0
    few = nameless_world(np.bincount(shown.context[logged]), world.attraction[logged], world.score[logged], fitted)
    item = items.ravel()[logged]
    rating = np.where(rng.random(CATALOGUE) < 0.2, np.nan, rating)
    features: list[Feature] = [
        Numeric("price", price[item]),
        Numeric("rating", rating[item]),
        Categorical("category", category[item], tuple(f"c{number}" for number in range(CATEGORIES))),
        Numeric("match", match.ravel()[logged]),
    ]
    shown = shown.made_of(logged)
    if kind == "a feature leaks":
        clicks = np.bincount(shown.items.ravel(), shown.clicks.ravel(), len(item))
        features.append(Numeric("clicks", clicks))
    return few, shown, features, seen


def with_features(evidence: Evidence, features: list[Feature], model: str) -> Evidence:
    """The evidence with the signal of features, unless it is found to know the clicks."""
    prior = bounds.parse("anchored").learn(evidence, len(evidence.context)).ungrouped
    assert prior is not None
    fold = np.random.default_rng(0).integers(0, FOLDS, evidence.context.max() + 1)[evidence.context]
    fitted = cross_fit(feature_models.parse(model), features, target_of(evidence, prior.of(evidence), fold), FOLDS)
    if fitted is None:
        return evidence
    known = replace(evidence, signals=Signals((SIGNAL,), fitted.signal(features, fold)[:, None]))
    rule = bounds.parse("anchored").learn(known, len(known.context)).ungrouped
    assert rule is not None
    after = rule.of(known)
    return evidence if knows_clicks(known, np.asarray(after.alpha / (after.alpha + after.beta))) else known


def regrets(world: World, shown: ListBatch, features: list[Feature], learner: str) -> Iterator[tuple[str, FloatArray]]:
    """The regret of every context: of its logged lists, and of the lists with and without features."""
    best = value(world, best_lists(world))
    logged = np.bincount(shown.list_context, best[shown.list_context] - value(world, shown.items))
    yield "logged", logged / np.bincount(shown.list_context)
    evidence = gather(click_models.parse(learner), world, shown)

    def regret(name: str, of: Evidence) -> FloatArray:
        lists = ranking.best_lists(of, bounds.parse(name).score(of), LENGTH)
        return np.asarray(best - value(world, as_table(lists, len(best), LENGTH)))

    yield "anchored", regret("anchored", evidence)
    for model in MODELS:
        known = with_features(evidence, features, model)
        yield f"anchored, {model}", regret("anchored", known)
        if model == "ridge":
            yield f"anchored(lead=clicks), {model}", regret("anchored(lead=clicks)", known)


def measure(repetitions: int) -> list[dict[str, Any]]:
    """One row for each world, method and class of contexts: the mean regret over that of logged lists."""
    rows = []
    for kind, users, correlation, seed in product(KINDS, ("pbm", "dcm"), CORRELATIONS, range(repetitions)):
        world, shown, features, seen = draw(kind, users, correlation, seed)
        found = dict(regrets(world, shown, features, users))
        for name, (least, most) in CLASSES.items():
            some = (seen >= least) & (seen <= most)
            for method, regret in found.items():
                ratio = float(regret[some].mean() / found["logged"][some].mean())
                at = {"kind": kind, "users": users, "correlation": correlation, "seed": seed}
                rows.append({**at, "seen": name, "method": method, "ratio": ratio})
        print(kind, users, correlation, seed, file=sys.stderr)
    return rows


def ratios_of(rows: list[dict[str, Any]], kind: str, method: str, seen: str) -> FloatArray:
    """The ratios of one cell of the table."""
    return np.array([r["ratio"] for r in rows if (r["kind"], r["method"], r["seen"]) == (kind, method, seen)])


def table(rows: list[dict[str, Any]]) -> str:
    """Mean ratios with their standard errors, over all worlds of a kind, and the worst loss to the list without."""
    lines = [f"| worlds | features by | {' | '.join(CLASSES)} | worst |", "|---" * (3 + len(CLASSES)) + "|"]
    methods = list(dict.fromkeys(row["method"] for row in rows if row["method"] != "logged"))
    for kind, method in product(KINDS, methods):
        cells, worst = [], -1.0
        for seen in CLASSES:
            ratios, without = (ratios_of(rows, kind, name, seen) for name in (method, "anchored"))
            cells.append(f"{ratios.mean():.3f} ± {ratios.std(ddof=1) / np.sqrt(len(ratios)):.3f}")
            worst = max(worst, float(np.max(ratios / without - 1)))
        bound, _, model = method.partition(", ")
        by = f"`{model}`{'' if bound == 'anchored' else f', `{bound}`'}" if model else "none"
        lines.append(f"| {kind} | {by} | {' | '.join(cells)} | {100 * worst:+.1f} % |")
    return "\n".join(lines)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if "--tables" not in sys.argv:
        RESULT.write_text(json.dumps(measure(REPETITIONS), indent=0) + "\n", encoding="utf-8")
    print(table(json.loads(RESULT.read_text(encoding="utf-8"))))
