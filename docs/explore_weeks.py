# ruff: noqa: T201 (printing is what it is for)
"""What `prudent explore` predicts against what happens in simulated worlds: standard errors of p, losses, and regret.

    python docs/explore_weeks.py weeks [RUNS]
    python docs/explore_weeks.py nights [RUNS [FIRST]]

A week: a world with a log of production, a policy ranked from it, and its exploration for one week more. Its lists are
drawn with their probabilities and clicked. p is fitted to them alone and, for comparison, to both logs together. The
predicted and the realised standard error of p are those of all weeks together; the loss is by the true attractions.

Nights: every night lists are ranked anew from all logs so far, and explored for the next night. Instead of by
`prudent.explore`, exploration may be ε-greedy (with probability ε, a random candidate replaces the last item) or
Thompson sampling (with probability ε, a list of the highest draws from the posteriors). Each night these may lose as
much in truth as `prudent.explore` did on the mean of its nights, and what they did not lose before: ε is chosen for
that, with the truth at hand. Regret is that of the lists that are learned after the last night.
Runs have the seeds from 0, or nights from FIRST, each with a line of its own.
"""

import sys
import warnings
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import prudent
from prudent.click_models.world import World, best_value, clicked, draw, make_world, value
from prudent.policies.exploration.situation import Situation, read_situation

WEEK = 20_000
NIGHTS, NIGHT = 30, 1_000  # lists of one night
MODEL = "pbm"


def as_table(world: World, context: np.ndarray, items: np.ndarray, clicks: np.ndarray) -> pa.Table:
    """Lists as a log, by the names of the world."""
    length = pa.array(np.arange(len(items) + 1) * items.shape[1], pa.int32())
    return pa.table(
        {
            "context": world.contexts[context],
            "items": pa.ListArray.from_arrays(length, pa.array(world.items[items].ravel())),
            "clicks": pa.ListArray.from_arrays(length, pa.array(clicks.astype(np.int8).ravel())),
        }
    )


class Served(NamedTuple):
    """Lists with probabilities, in the order of contexts."""

    context: np.ndarray
    items: np.ndarray  # pair numbers of the world
    probability: np.ndarray

    def shown(self, world: World, lists: int, rng: np.random.Generator) -> pa.Table:
        """A log of so many of them."""
        context = rng.choice(len(world.contexts), lists, p=world.share)
        upto = np.cumsum(self.probability)
        first = np.searchsorted(self.context, context)
        start = upto[first] - self.probability[first]
        row = np.searchsorted(upto, start + rng.random(lists) * (1 - 1e-6), side="right")
        return as_table(world, context, self.items[row], clicked(world, self.items[row], rng).clicks)

    def value(self, world: World) -> float:
        """True value per list."""
        return float(np.sum(world.share[self.context] * self.probability * value(world, self.items)))


def lists_of(world: World, relation: Any) -> Served:
    """The rows of a policy or an exploration, in the numbers of a world."""
    rows = relation.fetchnumpy()
    number = np.full(int(world.items.max()) + 1, -1)
    number[world.items] = np.arange(len(world.items))
    items = number[np.asarray(rows["item"])].reshape(-1, world.length)
    probability = np.asarray(rows.get("probability", np.ones(len(rows["rank"]))))[:: world.length]
    return Served(np.asarray(rows["context"])[:: world.length].astype(np.int64), items, probability)


# --- weeks ------------------------------------------------------------------------------------------------------------


class Week(NamedTuple):
    """Predicted and realised."""

    now: float  # overall standard error of p by the log
    predicted: np.ndarray  # standard error of each p by the week
    error: np.ndarray  # of each p, fitted to the week alone
    together: np.ndarray  # the same, fitted to both logs
    expected: float
    at_most: float
    loss: float


def week(seed: int, exploration: float = 0.3, budget: float = 0.01, goal: str = "both") -> Week:
    """One week in a world whose production explores with noise of this size."""
    world = make_world(
        MODEL, contexts=60, items=(8, 20), length=5, zipf=0.7, quality=0.7, exploration=exploration, seed=seed
    )
    log = as_table(world, *next(draw(world, WEEK, seed, WEEK)))
    policy = prudent.rank(log, MODEL)
    made = prudent.explore(policy, budget=budget, goal=goal)  # type: ignore[arg-type]
    served = lists_of(world, made.relation())
    after = served.shown(world, WEEK, np.random.default_rng([seed, 2]))
    truth = world.users.predict(np.ones((1, world.length)))[0]
    errors = []
    for table in (after, pa.concat_tables([log, after])):
        cells = prudent.count(table).cells
        errors.append(np.array(prudent.click_models.parse(MODEL).fit(cells, 5).parameters["examination"]) - truth)
    worth = lists_of(world, policy.lists()).value(world)
    positions, loss = made.summary["positions"], made.summary["loss"]
    return Week(
        positions["now"],
        np.array(positions["standard_errors"]),
        *errors,
        loss["expected"],
        loss["at_most"],
        (worth - served.value(world)) / worth,
    )


def mean_square(errors: list[np.ndarray]) -> float:
    """The root mean square of the errors of p, but for that of the first position."""
    return float(np.sqrt(np.mean(np.array(errors)[:, 1:] ** 2)))


def show_weeks(runs: int) -> None:
    """The table of weeks."""
    for exploration, goal in ((0.05, "positions"), (0.05, "both"), (0.3, "both")):
        weeks = [week(seed, exploration, goal=goal) for seed in range(runs)]
        predicted, realised = mean_square([one.predicted for one in weeks]), mean_square([one.error for one in weeks])
        together = np.mean([one.together[1:] for one in weeks], axis=0)
        loss = np.array([[one.expected, one.loss, one.at_most] for one in weeks])
        print(
            f"noise {exploration}, {goal}: standard error of p {np.mean([one.now for one in weeks]):.4f} by the log; "
            f"by the week predicted {predicted:.4f}, realised {realised:.4f}, ratio {realised / predicted:.3f}; "
            f"bias of a fit to both logs {together.round(4).tolist()}; loss expected {loss[:, 0].mean():.3%}, "
            f"true {loss[:, 1].mean():.3%}, limit {loss[:, 2].mean():.3%}, within it "
            f"{np.sum(loss[:, 1] <= loss[:, 2])} of {runs}, above the budget {np.sum(loss[:, 1] > 0.01)}",
            flush=True,
        )


# --- nights -----------------------------------------------------------------------------------------------------------

RIVALS = ("none", "epsilon-greedy", "Thompson sampling")


def nights(seed: int, budget: float = 0.01) -> dict[str, tuple[float, float]]:
    """Of each way to explore, regret after the last night and mean loss per night, as shares of the best value."""
    world = make_world(MODEL, contexts=30, items=(10, 16), length=5, zipf=0.7, quality=0.5, exploration=0.3, seed=seed)
    first = as_table(world, *next(draw(world, 3 * NIGHT, seed, 3 * NIGHT)))
    best, found = best_value(world), {}
    allowance = 0.0  # the mean loss of explore, which the others are given
    for way in ("explore", *RIVALS):
        rng = np.random.default_rng([seed, 3])
        log, left, lost = first, 0.0, []
        for _ in range(NIGHTS):
            policy = prudent.rank(log, MODEL)
            own = lists_of(world, policy.lists())
            worth = own.value(world)
            if way == "explore":
                made = prudent.explore(policy, budget=budget, goal="items", lists=NIGHT)
                served = lists_of(world, made.relation())
                lost.append((worth - served.value(world)) / best)
                shown = served.shown(world, NIGHT, rng)
            else:
                context = rng.choice(len(world.contexts), 4 * NIGHT, p=world.share)
                other = explored(world, policy, own, context, way, rng)
                cost = float(np.mean(value(world, own.items[context]) - value(world, other))) / best
                left += allowance
                share = min(1.0, max(0.0, left / cost)) if cost > 0 else 1.0
                left -= share * cost
                tried = rng.random(NIGHT) < share
                items = np.where(tried[:, None], other[:NIGHT], own.items[context[:NIGHT]])
                lost.append(share * cost)
                shown = as_table(world, context[:NIGHT], items, clicked(world, items, rng).clicks)
            log = pa.concat_tables([log, shown])
        learned = lists_of(world, prudent.rank(log, MODEL).lists()).value(world)
        found[way] = (1 - learned / best, float(np.mean(lost)))
        allowance = max(0.0, found["explore"][1])
    return found


def explored(
    world: World, policy: prudent.Policy, own: Served, context: np.ndarray, way: str, rng: np.random.Generator
) -> np.ndarray:
    """A list for each of these contexts, as a rival would explore if it always did."""
    items = own.items[context]
    if way == "none":
        return items
    assert policy.counts is not None
    situation: Situation = read_situation(policy, policy.counts)
    names = situation.connection.execute("select item from candidates order by pair").fetchnumpy()["item"]
    number = np.full(int(world.items.max()) + 1, -1)
    number[world.items] = np.arange(len(world.items))
    of_world = number[np.asarray(names)]
    width = int(np.bincount(situation.context).max())
    first = np.searchsorted(situation.context, np.arange(situation.contexts))
    size = np.bincount(situation.context)
    pair = np.minimum(first[:, None] + np.arange(width), len(of_world) - 1)
    inside = np.arange(width) < size[:, None]
    listed = np.isin(pair, situation.table)
    if way == "epsilon-greedy":
        key = np.where((inside & ~listed)[context], rng.random((len(context), width)), -1.0)
        chosen = np.argmax(key, axis=1)
        changed = items.copy()
        free = key[np.arange(len(context)), chosen] >= 0
        changed[free, -1] = of_world[pair[context[free], chosen[free]]]
        return changed
    mean, strength = situation.mean[pair][context], situation.strength[pair][context]
    drawn = np.where(inside[context], rng.beta(mean * strength, (1 - mean) * strength), -1.0)
    order = np.argsort(-drawn, axis=1, kind="stable")[:, : world.length]
    return of_world[pair[context[:, None], order]]


def show_nights(runs: int, first: int = 0) -> None:
    """Regrets of each world, their means, and their differences from that of `prudent.explore` in the same worlds."""
    every = []
    for seed in range(first, first + runs):
        every.append(nights(seed))
        print(f"world {seed}: " + ", ".join(f"{way} {one[0]:.2%}" for way, one in every[-1].items()), flush=True)
    ours = np.array([one["explore"][0] for one in every])
    for way in every[0]:
        regret = np.array([one[way][0] for one in every])
        more = regret - ours
        print(
            f"{way}: regret {regret.mean():.3%}, above explore's by {more.mean():.3%} "
            f"(standard error {more.std(ddof=1) / np.sqrt(runs):.3%}), lost per night "
            f"{np.mean([one[way][1] for one in every]):.3%}",
            flush=True,
        )


def main() -> None:
    """Print the tables."""
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", prudent.PrudentWarning)
        if sys.argv[1] == "weeks":
            show_weeks(runs)
        else:
            show_nights(runs, int(sys.argv[3]) if len(sys.argv) > 3 else 0)


if __name__ == "__main__":
    main()
