# ruff: noqa: T201 (printing is what it is for)
"""False alarms of `prudent verify` over sixty nights, and how soon it finds a drop, in simulated worlds.

    python docs/verify_nights.py [RUNS]

Every run draws a world, ranks a log of it, and serves the lists of the policy for sixty nights to the users of that
world; `verify` runs after every night on all lists since the launch. With a drop, every click is lost with a
probability of 5 %, from the first night on; `plan` foretells from a holdout of production in how many nights that is
found in 80 % of cases.
"""

import sys
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import prudent
from prudent.click_models.world import World, clicked, draw, make_world
from prudent.evaluation.holdout_log import open_holdout
from prudent.evaluation.promise import promise_of
from prudent.evaluation.sample_size import NIGHTLY
from prudent.evaluation.verify import Kept

NIGHTS, LISTS = 60, 500  # of one night
TRAINING = 60_000
WORLDS = ("pbm", "dcm(continuation=[0.6, 0.7, 0.75, 0.8, 0.85])", "ubm")


class Launch(NamedTuple):
    """What happened in one run."""

    foretold: int | None  # nights
    night: int | None  # of the first alert
    promised: float  # by what they earn on average, without the drop


def launches(model: str, runs: int, drop: float, first: int = 0) -> Iterator[Launch]:
    """So many runs in worlds of one kind."""
    for seed in range(first, first + runs):
        yield launch(make_world(model, contexts=50, items=(8, 20), length=5, zipf=0.7, seed=seed), drop, seed)


def launch(world: World, drop: float, seed: int) -> Launch:
    """One launch in a world."""
    rng = np.random.default_rng([seed, 1])
    training = as_table(world, *next(draw(world, TRAINING, seed, TRAINING)))
    holdout = as_table(world, *next(draw(world, 20_000, seed + 10_000, 20_000)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", prudent.PrudentWarning)
        policy = prudent.rank(training)
        plan = prudent.plan(policy, holdout, lift=0.05, drop=0.05, days=20_000 / LISTS)
    number = {int(name): row for row, name in enumerate(world.items)}
    served = np.full((len(world.contexts), world.length), -1)
    for context, items in policy.items():
        served[int(context), : len(items)] = [number[int(item)] for item in items]
    context = rng.choice(len(world.contexts), NIGHTS * LISTS, p=world.share)
    clicks = clicked(world, served[context], rng).clicks & (rng.random((len(context), world.length)) >= drop)
    after = open_holdout(policy, as_table(world, context, served[context], clicks), None, 0.01)
    promise = promise_of(after, "clicks")
    names = [row[0] for row in after.connection.execute("select context from contexts order by rowid").fetchall()]
    place = np.full(len(world.contexts), -1)
    place[names] = np.arange(len(names))
    context, earned = place[context], clicks.sum(axis=1).astype(float)
    night = None
    for until in range(LISTS, len(context) + 1, LISTS):
        one = np.ones(until, np.int64)
        if Kept.of(promise, context[:until], earned[:until], one, world.length, 0.95, 0.0).broken:
            night = until // LISTS
            break
    value = world.users.value(np.append(world.attraction, 0.0)[served], "clicks")[names]
    share = world.share[names]
    return Launch(plan[NIGHTLY].days, night, float(share @ promise.value / (share @ value)))


def as_table(world: World, context: np.ndarray, items: np.ndarray, clicks: np.ndarray) -> pa.Table:
    """Lists as a log, by the names of the world."""
    shown = [row[row >= 0] for row in items]
    return pa.table(
        {
            "context": world.contexts[context],
            "items": pa.array([world.items[row] for row in shown]),
            "clicks": pa.array([row[: len(one)].astype(np.int8) for row, one in zip(clicks, shown, strict=True)]),
        }
    )


def main() -> None:
    """Print both tables."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for model in WORLDS:
        kept = list(launches(model, runs, 0.0))
        dropped = list(launches(model, runs, 0.05, first=runs))
        alarms = sum(one.night is not None for one in kept)
        in_time = sum(one.night is not None and one.night <= (one.foretold or 0) for one in dropped)
        ratio = np.array([one.promised for one in kept])
        foretold = np.median([one.foretold or np.inf for one in dropped])
        found = np.median([one.night or np.inf for one in dropped])
        print(
            f"{model.partition('(')[0]}: {alarms} of {runs} with a false alarm in {NIGHTS} nights; {in_time} of {runs} "
            f"drops found in the nights foretold (medians: foretold {foretold:.0f}, found {found:.0f}); promised by "
            f"true {ratio.mean():.4f}, standard deviation {ratio.std():.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
