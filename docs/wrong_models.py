# ruff: noqa: T201 (printing is what it is for)
"""What a wrong click model costs: `python docs/wrong_models.py` prints the tables of docs/wrong-models.md.

Logs are simulated from each registered click model, and lists are learned from each log with every one of them, with
``auto`` and with ``robust``. Regret is the share of the best lists' value, under the true model, that the learned lists
lack. `python docs/wrong_models.py TRAIN TEST` instead compares likelihood with concordance on two parts of a log of
Yandex: of two items of a query that the test part showed at the same position, which was clicked more often?
"""

import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.base.errors import NotIdentifiedError, PrudentWarning
from prudent.bounds import DEFAULT_BOUND, bounds
from prudent.click_models import click_models
from prudent.click_models.likelihood import posterior_mean
from prudent.click_models.selection import candidates, choose, compare_lists, names
from prudent.click_models.world import World, best_value, clicked, draw, make_world, value
from prudent.counts.lists import ListBatch, read_lists
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.readers import read_yandex
from prudent.policies.best_lists import best_lists
from prudent.policies.incumbent import incumbent_lists
from prudent.policies.list_arrays import Lists, as_table
from prudent.policies.robust_lists import View, robust_lists

LOGS, LISTS = 20, 8_000
FEWEST = 50  # impressions of both items of a pair at one position
CONTEXTS, ITEMS, LENGTH = 50, (15, 30), 6


def regrets(world: World, lists: ListBatch, learners: Sequence[str], bound: str) -> dict[str, float]:
    """The regret of each learner, of ``auto`` and ``robust``, and of the logged lists, as shares of the best value.

    And by how much the held-out log-likelihood per list of each learner is behind the best, in nats.
    """
    views = {}
    for name in learners:
        with suppress(NotIdentifiedError):  # ccm and dbn, where no list has two clicks
            views[name] = _view(lists, name, bound)
    learned = {name: best_lists(*view, LENGTH) for name, view in views.items()}
    choice = choose(lists)
    plausible = [str(model) for model in choice.plausible] or [str(choice.model)]
    learned["auto"] = learned["robust"] = learned[str(choice.model)]
    if len(plausible) > 1:
        incumbent = incumbent_lists(lists.cells, LENGTH)
        size = LENGTH, len(world.contexts)
        learned["robust"] = robust_lists(
            [views[name] for name in plausible], [learned[name] for name in plausible], incumbent, *size
        )
    worth = {name: _value(world, ranked) for name, ranked in learned.items()}
    worth["logged lists"] = float(value(world, lists.items).mean())
    scores = {} if choice.comparison is None else {one.model: one.behind for one in choice.comparison.scores}
    behind = {f"{name} behind": np.nan if scores.get(name) is None else float(scores[name] or 0) for name in learners}
    columns = [*learners, "auto", "robust", "logged lists"]
    return {name: 1 - worth.get(name, np.nan) / best_value(world) for name in columns} | behind


def _view(lists: ListBatch, learner: str, bound: str) -> View:
    evidence = click_models.parse(learner).evidence(lists).ranked
    return View(evidence, bounds.parse(bound).score(evidence))


def _value(world: World, lists: Lists) -> float:
    return float(np.sum(world.share * value(world, as_table(lists, len(world.contexts), LENGTH))))


def study(bound: str, logs: int = LOGS, lists: int = LISTS) -> Mapping[str, Mapping[str, FloatArray]]:
    """Regrets on each log, by true model and learner."""
    learners, found = names(), {}
    for truth in learners:
        rows = []
        for seed in range(logs):
            world = make_world(truth, contexts=CONTEXTS, items=ITEMS, length=LENGTH, seed=seed)
            items = np.concatenate([chunk.items for chunk in draw(world, lists, seed=seed + 1_000)])
            rows.append(regrets(world, clicked(world, items, np.random.default_rng(seed)), learners, bound))
        found[truth] = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return found


def print_regrets(found: Mapping[str, Mapping[str, FloatArray]]) -> None:
    """Regrets in per cent, with the paired standard error of the difference to the true model."""
    columns = [name for name in next(iter(found.values())) if not name.endswith(" behind")]
    print(f"| clicks by | {' | '.join(f'`{name}`' for name in columns)} |\n|{'---|' * (len(columns) + 1)}")
    for truth, of_learner in found.items():
        cells = []
        for name in columns:
            difference = of_learner[name] - of_learner[truth]
            error = difference.std(ddof=1) / len(difference) ** 0.5
            spread = "" if name == truth else f" ± {100 * error:.2f}"
            cells.append("–" if np.isnan(difference).any() else f"{100 * of_learner[name].mean():.2f}{spread}")
        print(f"| `{truth}` | {' | '.join(cells)} |")
    print("\nMean and largest excess over the true model, in points, over logs of other models:\n")
    for name in columns:
        others = [truth for truth in found if truth != name]
        excess = np.array([(found[truth][name] - found[truth][truth]).mean() for truth in others])
        worst = others[int(np.nanargmax(excess))]
        print(f"- {name}: {100 * np.nanmean(excess):.2f}, {100 * np.nanmax(excess):.2f} (`{worst}`)")
    right = np.mean([of_learner[truth].mean() for truth, of_learner in found.items()])
    auto = np.mean([of_learner["auto"].mean() for of_learner in found.values()])
    print(f"\nauto: {auto / right - 1:+.1%} of the true model's regret, on average over models.\n")


def print_likelihoods(found: Mapping[str, Mapping[str, FloatArray]]) -> None:
    """Nats behind the best model, and regret beyond that of the true model."""
    learners = [*found]
    print(f"| clicks by | {' | '.join(f'`{name}`' for name in learners)} |\n|{'---|' * (len(learners) + 1)}")
    for truth, of_learner in found.items():
        cells = []
        for name in learners:
            behind = of_learner[f"{name} behind"]
            excess = 100 * (of_learner[name] - of_learner[truth]).mean()
            nats = "excluded" if np.isnan(behind).all() else f"{np.nanmean(behind):.3f}"
            cells.append("–" if np.isnan(excess) else f"{nats}, {excess:+.2f}")
        print(f"| `{truth}` | {' | '.join(cells)} |")


def concordance(theta: FloatArray, test: ListBatch) -> FloatArray:
    """For each context: pairs of items that the model orders as their clicks at one position do, and all such pairs."""
    cells = test.cells
    key = cells.pair * (test.length + 1) + cells.position
    shown = np.bincount(key, cells.n, minlength=len(test.context) * (test.length + 1)).reshape(len(test.context), -1)
    clicked = np.bincount(key[cells.click], cells.n[cells.click], minlength=shown.size).reshape(shown.shape)
    found = np.zeros((cells.contexts, 2))
    for position in range(1, test.length + 1):
        often = np.flatnonzero(shown[:, position] >= FEWEST)
        rate = clicked[often, position] / shown[often, position]
        one, two = np.triu_indices(often.size, 1)
        same = (test.context[often[one]] == test.context[often[two]]) & (rate[one] != rate[two])
        one, two = one[same], two[same]
        agree = np.sign(theta[often[one]] - theta[often[two]]) == np.sign(rate[one] - rate[two])
        np.add.at(found, test.context[often[one]], np.stack([agree, np.ones_like(agree)], axis=1).astype(float))
    return found


def print_concordance(train: str, test: str) -> None:
    """Likelihood and concordance of every model, with standard errors by leaving out one query at a time."""
    logs = [read_yandex(path) for path in (train, test)]
    (fitted, held_out), _ = read_lists(logs, DuckDB(), max_rejected=1.0)
    comparison = compare_lists(fitted, held_out, candidates())
    found = {}
    for model in candidates():
        evidence = model.evidence(fitted)
        found[str(model)] = concordance(posterior_mean(evidence.positive, evidence.negative), held_out)
    best = found[str(comparison.winner)]
    print("| model | log-likelihood per list | concordance | difference |\n|---|---|---|---|")
    for name, pairs in found.items():
        likelihood = comparison[name].log_likelihood
        shown = "excluded" if likelihood is None else f"{likelihood:.3f}".replace("-", "−")
        share, error = leave_one_out(pairs[:, 0], pairs[:, 1])
        apart, its_error = leave_one_out(pairs[:, 0] - best[:, 0], pairs[:, 1])
        apart_text = "" if name == comparison.winner else f"{apart:+.3f} ± {its_error:.3f}".replace("-", "−")
        print(f"| `{name}` | {shown} | {share:.3f} ± {error:.3f} | {apart_text} |")
    print(f"\n{best[:, 1].sum():,.0f} pairs of items, {len(best)} queries.")


def leave_one_out(part: FloatArray, every: FloatArray) -> tuple[float, float]:
    """A ratio of sums, with its standard error by leaving out one query at a time."""
    left_out = (part.sum() - part) / np.maximum(every.sum() - every, 1)
    return float(part.sum() / every.sum()), float(((len(left_out) - 1) * left_out.var()) ** 0.5)


def main() -> None:
    """Print the tables."""
    warnings.simplefilter("ignore", PrudentWarning)  # dcm contradicts logs that it did not make
    if len(sys.argv) == 3:
        print_concordance(*sys.argv[1:])
        return
    for bound in (DEFAULT_BOUND, "eb(delta=0.5)"):
        found = study(bound)
        print(f"\n{bound}\n")
        print_regrets(found)
        print_likelihoods(found)


if __name__ == "__main__":
    main()
