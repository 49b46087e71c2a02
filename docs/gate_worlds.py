# ruff: noqa: T201 (printing is what it is for)
"""False passes of the gate in simulated worlds: `python docs/gate_worlds.py` prints the table of docs/evaluating.md.

A deployment draws a world, a training log, a holdout and the policy that posterior means of the training log rank, and
asks the gate for the true lift of that policy: every pass is an error, and as hard to avoid as possible. It then asks
for any lift: passes of policies that are better are what the gate is for. Worlds differ in how users click and in how
production chooses lists. `python docs/gate_worlds.py RUNS WORLD ...` runs some of them.
"""

import sys
import time
import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import NotIdentifiedError
from prudent.click_models import click_models
from prudent.counts.lists import ListBatch
from prudent.evaluation.estimators import parse
from prudent.evaluation.gate import decide, gate_settings
from prudent.evaluation.holdout import NEVER, Holdout, make_holdout
from prudent.evaluation.verdict import Verdict

LENGTH, ITEMS = 4, 6
RUNS = 200
EXAMINATION = np.array([1.0, 0.6, 0.4, 0.3])
CONTINUATION = np.array([0.6, 0.5, 0.4, 0.3])
# P(examined) at each position, for no click above and for the last click at positions 1, 2, 3.
BROWSING = np.array([[1, 0, 0, 0], [0.7, 0.9, 0, 0], [0.5, 0.6, 0.8, 0], [0.35, 0.45, 0.6, 0.7]])
# P(click | examined) of what attracts, and of what does not, at each position.
TRUST = np.array([[0.97, 0.9, 0.85, 0.8], [0.25, 0.12, 0.06, 0.03]])


@dataclass(frozen=True)
class World:
    """How users click, and how production chooses lists."""

    users: str = "pbm"
    contexts: int = 30
    attraction: tuple[float, float] = (1.2, 3.5)  # α and β of a Beta distribution
    taste: float = 0.0  # standard deviation of log-odds between three kinds of users, whom production knows
    drift: float = 0.0  # standard deviation of log-odds between the first and the second half, twice
    bots: float = 0.0  # share of lists that are clicked at random
    lists: int = 4_000  # in the training log, and in the holdout
    fixed: bool = False  # a context always shows one list; examination probabilities are given, as nothing shows them

    @property
    def model(self) -> str:
        """What the policy is learned with."""
        given = f"(examination={EXAMINATION.tolist()})" if self.fixed else ""
        return "dcm" if self.users == "dcm" else f"pbm{given}"

    @property
    def estimator(self) -> str:
        """What the gate decides by."""
        return f"dr(model={self.model}, clip=10)" if self.fixed else "dr(clip=10)"


WORLDS = {
    "pbm": World(),
    "dcm": World("dcm"),
    "dcm, sparse": World("dcm", contexts=120, attraction=(1.0, 12.0)),
    "ubm": World("ubm"),
    "trust bias": World("trust"),
    "drift": World(drift=0.4),
    "bots": World(bots=0.03),
    "mildly personalised": World(taste=0.5),
    "mildly personalised, 20,000 lists": World(taste=0.5, lists=20_000),
    "personalised in between": World(taste=0.7),
    "strongly personalised": World(taste=1.2),
    "one list, 30 contexts": World(fixed=True),
    "one list, 400 contexts": World(fixed=True, contexts=400),
    "one list, 1,500 contexts": World(fixed=True, contexts=1_500),
}


class Simulation:
    """A world with its attractions, drawn by a seed."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.random = world, np.random.default_rng(seed)
        shape = world.contexts, ITEMS
        self.attraction = logit(self.random.beta(*world.attraction, shape).clip(0.01, 0.95))
        taste = self.random.normal(size=(3, *shape))
        self.taste = world.taste * (taste - taste.mean(axis=0))
        self.drift = world.drift * self.random.normal(size=shape)
        self.scores = 0.7 * self.attraction + self.random.normal(0, 0.5, shape)
        self.frequency = self.random.dirichlet(np.full(world.contexts, 2.0))

    def lists(self, n: int) -> tuple[IntArray, FloatArray, IntArray]:
        """Contexts, the attraction of all items for the users who come, and what production shows them."""
        context = self.random.choice(self.world.contexts, n, p=self.frequency)
        user, late = self.random.integers(0, 3, n), self.random.integers(0, 2, n)
        theta = expit(
            self.attraction[context] + self.taste[user, context] + self.drift[context] * (2 * late - 1)[:, None]
        )
        score = self.scores[context] + self.taste[user, context]
        if not self.world.fixed:
            score += self.random.gumbel(0, 0.7, theta.shape)
        return context, theta, np.argsort(-score, axis=1)[:, :LENGTH]

    def value(self, theta: FloatArray) -> float:
        """Expected clicks per list, by the last click that users may have made."""
        state = np.zeros((len(theta), LENGTH + 1))
        state[:, 0], value = 1.0, 0.0
        for k in range(LENGTH):
            rate = self.rate(theta[:, k], k)
            hit = np.sum(state * rate, axis=1)
            value += float(hit.mean())
            state = state * (1 - rate)
            state[:, k + 1] += hit * (CONTINUATION[k] if self.world.users == "dcm" else 1.0)
        return value

    def rate(self, theta: FloatArray, k: int) -> FloatArray:
        """P(click at k), for each position of the last click and 0 for none."""
        one = np.ones(LENGTH + 1)
        if self.world.users == "ubm":
            return theta[:, None] * np.append(BROWSING[k], 0.0)
        if self.world.users == "trust":
            return (EXAMINATION[k] * (theta * TRUST[0, k] + (1 - theta) * TRUST[1, k]))[:, None] * one
        return (theta * (1.0 if self.world.users == "dcm" else EXAMINATION[k]))[:, None] * one

    def clicks(self, theta: FloatArray) -> BoolArray:
        """Clicks on lists of this attraction."""
        lists = np.arange(len(theta))
        clicks, last, reads = np.zeros(theta.shape, bool), np.zeros(len(theta), int), np.ones(len(theta), bool)
        for k in range(LENGTH):
            clicks[:, k] = reads & (self.random.random(len(theta)) < self.rate(theta[:, k], k)[lists, last])
            last = np.where(clicks[:, k], k + 1, last)
            if self.world.users == "dcm":
                reads &= ~clicks[:, k] | (self.random.random(len(theta)) < CONTINUATION[k])
        bots = self.random.random(len(theta)) < self.world.bots
        clicks[bots] = self.random.random((int(bots.sum()), LENGTH)) < 0.5
        return clicks

    def log(self, n: int) -> ListBatch:
        """A log; the items of all contexts have numbers."""
        context, theta, order = self.lists(n)
        clicks = self.clicks(np.take_along_axis(theta, order, axis=1))
        pairs = np.repeat(np.arange(self.world.contexts), ITEMS)
        return ListBatch(pairs, context[:, None] * ITEMS + order, clicks, np.ones(n, np.int64))

    def policy(self, log: ListBatch) -> IntArray:
        """The items of each context with the highest posterior means, best first."""
        try:
            evidence = click_models.parse(self.world.model).fit(log.cells, LENGTH).evidence(log.cells)
        except NotIdentifiedError:
            evidence = click_models.parse("dcm").fit(log.cells, LENGTH).evidence(log.cells)
        rate = evidence.positive.sum() / evidence.expected.sum()
        means = (evidence.positive + 3 * rate) / (evidence.expected + 3)
        means = np.where(log.impressions > 0, means, -1.0)
        return np.argsort(-means.reshape(-1, ITEMS), axis=1, kind="stable")[:, :LENGTH]


class Deployment(NamedTuple):
    """Verdicts of the gate, and the true lift."""

    border: Verdict  # where the true lift is asked for
    any_lift: Verdict
    acknowledged: Verdict  # any lift, with confounding acknowledged
    lift: float


def deploy(world: World, seed: int) -> Deployment:
    """One deployment."""
    simulation = Simulation(world, seed)
    policy, log = simulation.policy(simulation.log(world.lists)), simulation.log(world.lists)
    context, theta, order = simulation.lists(60_000)
    shown, ours = (simulation.value(np.take_along_axis(theta, lists, axis=1)) for lists in (order, policy[context]))
    lift = ours / shown - 1
    settings = replace(gate_settings(lift, 0.95, "clicks", seed=seed), replicates=100)
    held, estimator = hold(log, policy), parse(world.estimator)
    border, any_lift, acknowledged = (
        decide(held, estimator, settings, least, acknowledge=words)
        for least, words in ((lift, ()), (0.0, ()), (0.0, "confounding"))
    )
    return Deployment(border, any_lift, acknowledged, lift)


def hold(log: ListBatch, policy: IntArray) -> Holdout:
    """The log beside the policy, without contexts and items that it does not show."""
    seen = log.impressions > 0
    number = np.where(seen, np.cumsum(seen) - 1, NEVER)
    there = np.unique(log.list_context)
    target = number[there[:, None] * ITEMS + policy[there]]
    _, context = np.unique(log.context[seen], return_inverse=True)
    return make_holdout(ListBatch(context, number[log.items], log.clicks, log.n), target)


def row(name: str, world: World, runs: int) -> str:
    """One line of the table."""
    deployments = [deploy(world, seed) for seed in range(runs)]
    gates = [one.border for one in deployments]
    bias = [one.border.estimate.lift - one.lift for one in deployments if one.border.estimate.lift is not None]
    above = [(one.border.estimate.lift_low or -1.0) > one.lift for one in deployments]
    tests = [one.confounding for one in gates if one.confounding is not None]
    found = [test.found for test in tests]
    size, hidden = ([getattr(test, name) for test in tests] for name in ("bias", "hidden"))
    trust = [any("trust bias" in reason for reason in one.reasons) for one in gates]
    unknown, passed = ([one.verdict == word for one in gates] for word in ("unknown", "pass"))
    better = [one for one in deployments if one.lift > 0]
    verdicts = [[one.any_lift.passed for one in better], [one.acknowledged.passed for one in better]]
    passes = [f"{np.mean(column):.1%}" if better else "–" for column in verdicts]
    shares = " | ".join(f"{np.mean(column):.1%}" for column in (size, hidden, above, found, trust, unknown, passed))
    return f"| {name} | {np.mean(bias):+.1%} | {shares} | {len(better) / runs:.0%} | {' | '.join(passes)} |"


HEAD = (
    "| world | bias of the lift | bias by the test | bias it may hide | lower limit above the truth | confounding "
    "found | trust bias found | unknown | false passes | better policies | of these pass | confounding acknowledged |"
)


def main() -> None:
    """The table."""
    warnings.simplefilter("ignore")
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    print(HEAD)
    print("|---" * (HEAD.count("|") - 1) + "|")
    for name in sys.argv[2:] or WORLDS:
        started = time.perf_counter()
        print(row(name, WORLDS[name], runs), flush=True)
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
