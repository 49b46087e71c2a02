# ruff: noqa: T201 (printing is what it is for)
"""What a wrong click model costs: `python docs/wrong_models.py` prints a table of docs/comparing.md.

Logs are simulated from each registered click model, and lists are learned from each log with every one of them, with
``auto`` and with ``robust``. Regret is the share of the best lists' value, under the true model, that the learned lists
lack.
"""

import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.base.errors import PrudentWarning
from prudent.bounds import DEFAULT_BOUND, bounds
from prudent.click_models import click_models
from prudent.click_models.selection import choose, names
from prudent.click_models.world import World, best_value, clicked, draw, make_world, value
from prudent.counts.lists import ListBatch
from prudent.policies.best_lists import best_lists
from prudent.policies.incumbent import incumbent_lists
from prudent.policies.list_arrays import Lists, as_table
from prudent.policies.robust_lists import View, robust_lists

LOGS, LISTS = 20, 8_000
CONTEXTS, ITEMS, LENGTH = 50, (15, 30), 6


def regrets(world: World, lists: ListBatch, learners: Sequence[str], bound: str) -> dict[str, float]:
    """The regret of each learner, of ``auto`` and ``robust``, and of the logged lists, as shares of the best value."""
    views = {name: _view(lists, name, bound) for name in learners}
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
    return {name: 1 - earned / best_value(world) for name, earned in worth.items()}


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


def main() -> None:
    """Print a table for the default bound and for one that ranks by evidence alone."""
    warnings.simplefilter("ignore", PrudentWarning)  # dcm contradicts logs that it did not make
    for bound in (DEFAULT_BOUND, "eb(delta=0.5)"):
        found = study(bound)
        columns = list(next(iter(found.values())))
        print(
            f"\n{bound}: regret in % of the best value, and paired standard error of the difference to the true model\n"
        )
        print(f"| clicks by | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
        for truth, of_learner in found.items():
            cells = []
            for name in columns:
                difference = of_learner[name] - of_learner[truth]
                error = difference.std(ddof=1) / len(difference) ** 0.5
                spread = "" if name == truth else f" ± {100 * error:.2f}"
                cells.append(f"{100 * of_learner[name].mean():.2f}{spread}")
            print(f"| `{truth}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
