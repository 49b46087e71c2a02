# ruff: noqa: T201 (printing is what it is for)
"""What a wrong click model costs: `python docs/wrong_models.py` prints a table of docs/comparing.md.

Logs are simulated from each registered click model, and lists are learned from each log with every one of them and with
``auto``. Regret is the share of the best lists' value, under the true model, that the learned lists lack.
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
from prudent.policies.list_arrays import as_table

LOGS, LISTS = 20, 8_000
CONTEXTS, ITEMS, LENGTH = 50, (15, 30), 6


def regrets(world: World, lists: ListBatch, learners: Sequence[str], bound: str) -> dict[str, float]:
    """The regret of each learner and of ``auto``, and of the logged lists, as shares of the best value."""
    best = best_value(world)
    learned = {name: _value_learned(world, lists, name, bound) for name in learners}
    learned["auto"] = learned[str(choose(lists).model)]
    learned["logged"] = float(value(world, lists.items).mean())
    return {name: 1 - worth / best for name, worth in learned.items()}


def _value_learned(world: World, lists: ListBatch, learner: str, bound: str) -> float:
    evidence = click_models.parse(learner).evidence(lists)
    ranked = best_lists(evidence, bounds.parse(bound).score(evidence), LENGTH)
    table = as_table(ranked, len(world.contexts), LENGTH)
    return float(np.sum(world.share * value(world, table)))


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
