"""Where most contexts were seen once: the lists of each bound against the lists that production showed.

Most contexts of real logs are rare: of a rare context a log has production's order and hardly a click. A policy that
forgets the order where evidence is thin is worse than production there. Each world has 4,000 contexts, of which 80 %
have one list and the others 2 to 1,000, and users who click by pbm or dcm; the learner believes in one of the two.
Contexts count equally: weighted by their lists, the frequent ones would decide.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.numerics.paired import standard_error
from prudent.bounds import Bound, bounds
from prudent.click_models import click_models
from prudent.click_models.world import World, best_lists, clicked, nameless_world, value
from prudent.counts.lists import ListBatch
from prudent.policies.incumbent import incumbent_lists
from prudent.policies.list_arrays import as_table
from prudent.policies.sweep import sweep
from prudent.research import figures
from prudent.research.bench import Bench, Outcome
from prudent.research.protocol import Protocol, gather
from prudent.research.sources import Source
from prudent.research.table import Results, Row

LENGTH, ITEMS = 10, 20  # of a list, of a context
SEEN_ONCE = 0.8  # share of contexts
MOST_LISTS = 1_000  # of a context
KINDS = ("pbm", "dcm")
CORRELATIONS: Mapping[str, tuple[float, ...]] = {
    "informative": (0.3, 0.45, 0.65, 0.8),
    "uninformative": (0.0,),
    "opposed": (-0.3, -0.8),
}
"""Of production scores with logit θ."""
ATTRACTIONS = ((1.0, 8.0), (0.5, 10.0))  # (a, b) of θ ~ Beta(a, b): one click in two lists, and one in five
EXPLORATIONS = (0.1, 0.5)  # scale of the Gumbel noise of a list, in standard deviations of production scores
BOUNDS: Mapping[str, Bound] = {
    name: bounds.parse(name) for name in ("mle", "hoeffding", "eb", "exposure", "hierarchical", "anchored")
}
REPETITIONS = 3  # worlds of each kind: 192 informative ones, 48 uninformative and 96 opposed


@dataclass(frozen=True)
class LongTail(Source):
    """Contexts of which most were seen once; the production score is logit θ with noise, standardised."""

    kind: str
    correlation: float
    attraction: tuple[float, float]
    exploration: float
    contexts: int = 4_000

    real: ClassVar[str] = "Synthetic data: all simulated."

    def draw(self, n: int, random: np.random.Generator) -> tuple[World, ListBatch]:
        """A ground truth and its log; `n` is ignored, since contexts differ in how often they were seen."""
        theta = random.beta(*self.attraction, (self.contexts, ITEMS)).clip(1e-6, 1 - 1e-6)
        logit = np.log(theta) - np.log1p(-theta)
        logit = (logit - logit.mean()) / logit.std()
        noise = random.standard_normal(theta.shape)
        score = self.correlation * logit + np.sqrt(1 - self.correlation**2) * noise
        users = click_models.parse(self.kind).typical(LENGTH)
        world = nameless_world(np.full(self.contexts, ITEMS), theta.ravel(), score.ravel(), users)
        context = np.repeat(np.arange(self.contexts), lists_per_context(self.contexts, random))
        gain = score[context] + random.gumbel(0, self.exploration, (len(context), ITEMS))
        items = np.argsort(-gain, axis=1)[:, :LENGTH] + ITEMS * context[:, None]
        return world, clicked(world, items, random)


def lists_per_context(contexts: int, random: np.random.Generator) -> IntArray:
    """One list for most contexts; of the others, one in m has at least 2m, up to a limit."""
    frequent = np.minimum(2 / (1 - random.random(contexts)), MOST_LISTS).astype(np.int64)
    return np.where(random.random(contexts) < SEEN_ONCE, 1, frequent)


@dataclass(frozen=True)
class LongTailProtocol(Protocol):
    """Regret of every bound, of the incumbent lists and of the logged lists themselves, averaged over contexts.

    All lists, the best ones too, are made of logged items: a user who names no candidates gets no others.
    """

    @property
    def arms(self) -> list[tuple[str, float | None]]:
        """Logged and incumbent lists, then the bounds."""
        return [("logged", None), ("incumbent", None), *super().arms]

    def errors(self, seed: int, repetition: int) -> FloatArray:
        """V(A*) − V(Â) of every arm, averaged over contexts."""
        world, shown = _logged_items(*self.source.draw(self.n, np.random.default_rng(self.seed(seed, repetition))))
        best = value(world, best_lists(world))
        logged = best[shown.list_context] - value(world, shown.items)
        regrets = [np.bincount(shown.list_context, logged) / np.bincount(shown.list_context)]
        regrets += [best - value(world, table) for table in self._tables(world, shown)]
        return np.array([[regret.mean() for regret in regrets]])

    def _tables(self, world: World, shown: ListBatch) -> Iterator[IntArray]:
        contexts = len(world.contexts)
        yield as_table(incumbent_lists(shown.cells, LENGTH), contexts, LENGTH)
        evidence = gather(self.model, world, shown)
        for bound in self.bounds.values():
            (lists,) = sweep(bound, evidence, self._deltas(bound), LENGTH)
            yield as_table(lists, contexts, LENGTH)


def _logged_items(world: World, shown: ListBatch) -> tuple[World, ListBatch]:
    """The same without the items that no list has."""
    logged = shown.impressions > 0
    sizes = np.bincount(shown.context[logged])
    return nameless_world(sizes, world.attraction[logged], world.score[logged], world.users), shown.made_of(logged)


def protocols(bounds: Mapping[str, Bound] = BOUNDS) -> list[LongTailProtocol]:
    """Every kind of world, by users, learner, what production knows, attraction and exploration."""
    return [
        LongTailProtocol(
            f"{logging}, θ ~ Beta{attraction}, exploration {exploration:g}",
            f"correlation {correlation:g}",
            LongTail(users, correlation, attraction, exploration),
            click_models.parse(learner),
            bounds,
            deltas=(),
            n=0,
            label=learner if learner == users else f"{learner} on clicks of {users}",
        )
        for logging, correlations in CORRELATIONS.items()
        for users, learner, correlation in product(KINDS, KINDS, correlations)
        for attraction, exploration in product(ATTRACTIONS, EXPLORATIONS)
    ]


def long_tail(bench: Bench) -> Outcome:
    """How often, and by how much, the lists of each bound are better than those that production showed."""
    results = bench.lab.run(protocols(), bench.times(REPETITIONS), chunk=1)
    rows = [row for result in results for row in result.rows()]
    page = f"{_safety(results)}\n\n{_by_kind(results)}\n"
    title = "Mean regret where 80 % of contexts were seen once"
    facts = {"methods": list(BOUNDS), "safety": {arm: _facts(results, arm) for arm in _methods(results)}}
    return Outcome(rows, results, lambda: figures.dots(mean_rows(results), title), facts=facts, page=page)


# --- tables -----------------------------------------------------------------------------------------------------------


def mean_rows(results: Sequence[Results]) -> list[Row]:
    """The mean regret of every arm, for each kind of production, over all its worlds."""
    means = []
    for logging in CORRELATIONS:
        worlds = np.concatenate([result.errors for result in _of_logging(results, logging)])
        for (method, delta), errors in zip(results[0].protocol.arms, worlds.T, strict=True):
            se = standard_error(errors)
            means.append(Row("long tail", "all", logging, method, delta, 0, float(errors.mean()), se, len(errors)))
    return means


def ratios(results: Sequence[Results], method: str) -> FloatArray:
    """Regret as a share of that of the logged lists, one for each world."""
    own = [name for name, _ in results[0].protocol.arms].index(method)
    return np.concatenate([result.errors[:, own] / result.of("logged") for result in results])


def _methods(results: Sequence[Results]) -> list[str]:
    return [name for name, _ in results[0].protocol.arms[1:]]


def _of_logging(results: Sequence[Results], logging: str) -> list[Results]:
    return [result for result in results if result.protocol.data.startswith(f"{logging},")]


def _facts(results: Sequence[Results], method: str) -> dict[str, dict[str, float]]:
    """How many worlds are no worse than logged, of how many, with the mean and the worst ratio."""
    facts = {}
    for logging in CORRELATIONS:
        share = ratios(_of_logging(results, logging), method)
        facts[logging] = {
            "worlds": len(share),
            "no_worse": int((share <= 1).sum()),
            "mean": float(share.mean()),
            "worst": float(share.max()),
        }
    return facts


def _safety(results: Sequence[Results]) -> str:
    """A line for each bound: worlds no worse than logged, the mean ratio with its standard error, and the worst one."""
    names = [f"{name}: no worse | mean ratio | worst" for name in CORRELATIONS]
    lines = [f"| lists by | {' | '.join(names)} |", "|---" * (1 + 3 * len(names)) + "|"]
    for method in _methods(results):
        cells = []
        for logging, fact in _facts(results, method).items():
            se = standard_error(ratios(_of_logging(results, logging), method))
            cells += [
                f"{fact['no_worse']} of {fact['worlds']}",
                f"{fact['mean']:.3f} ± {se:.3f}",
                f"{fact['worst']:.2f}",
            ]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _by_kind(results: Sequence[Results], methods: tuple[str, ...] = ("incumbent", "exposure", "anchored")) -> str:
    """The same by users, learner and correlation, for a few bounds."""
    groups: dict[tuple[str, str], list[Results]] = {}
    for result in results:
        groups.setdefault((result.protocol.label, result.protocol.logging), []).append(result)
    names = [f"{name}: no worse | mean ratio" for name in methods]
    lines = [f"| learner | production | {' | '.join(names)} |", "|---" * (2 + 2 * len(names)) + "|"]
    for (label, logging), members in groups.items():
        cells = []
        for method in methods:
            share = ratios(members, method)
            cells += [f"{(share <= 1).sum()} of {len(share)}", f"{share.mean():.3f}"]
        lines.append(f"| {label} | {logging} | {' | '.join(cells)} |")
    return "\n".join(lines)
