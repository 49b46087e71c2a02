"""One experiment in one repetition: draw a log, learn lists from it by every method, compare them with the best."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from zlib import crc32

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray
from prudent.base.errors import NotIdentifiedError
from prudent.bounds import Bound, Scores
from prudent.bounds.bayes import PosteriorBound, Prior, posterior_scores
from prudent.click_models import ClickModel, Evidence
from prudent.click_models.position_based import PositionBased, per_position, separate_positions
from prudent.click_models.simulate import World, value
from prudent.click_models.simulate import best_lists as truly_best_lists
from prudent.counts.lists import ListBatch
from prudent.policies.baselines import Baseline, clip_for, fold
from prudent.policies.ranking import Lists, as_table, best_lists
from prudent.research.sources import Source

_T = TypeVar("_T")

DELTAS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.35, 0.45, 0.5, 0.55, 0.65, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
"""The 16 values of δ for which Sec. 8.3 prints a clip."""


@dataclass(frozen=True)
class Protocol:
    """What is repeated: logs of one source, n lists for each context, and what learns from them.

    `data` and `logging` are what tables call the source. The random numbers of a repetition depend on them, on the kind
    of clicks and on n, but not on who learns: two protocols that differ in the learner alone see the same logs.
    """

    data: str
    logging: str
    source: Source
    model: ClickModel  # that the learner believes in
    bounds: Mapping[str, Bound]  # label -> the bound that is swept over δ
    baselines: Mapping[str, Baseline] = field(default_factory=dict)  # label -> the rival that is swept over clips
    deltas: tuple[float, ...] = DELTAS
    n: int = 1_000
    label: str = ""  # of the model in tables; without it, as it is spelled
    blocks: int = 1  # of contexts, each with an error of its own: one repetition of thousands tells their spread

    @property
    def arms(self) -> list[tuple[str, float | None]]:
        """Label and δ of everything that is measured, in the order of `errors`; None where δ plays no part."""
        methods: dict[str, Bound | Baseline] = {**self.bounds, **self.baselines}
        return [(label, delta) for label, method in methods.items() for delta in self._deltas(method)]

    def _deltas(self, method: Bound | Baseline) -> tuple[float | None, ...]:
        return self.deltas if hasattr(method, "delta") or hasattr(method, "clip") else (None,)

    def seed(self, seed: int, repetition: int) -> np.random.SeedSequence:
        """Of the random numbers of one repetition."""
        key = f"{self.data}|{self.logging}|{self.source.kind}|{self.n}"
        return np.random.SeedSequence(seed, spawn_key=(crc32(key.encode()), repetition))

    def errors(self, seed: int, repetition: int) -> FloatArray:
        """V(A*) − V(Â) of every arm, averaged over contexts: a row for each block of them."""
        world, shown = self.source.draw(self.n, np.random.default_rng(self.seed(seed, repetition)))
        best = value(world, truly_best_lists(world))
        tables = [as_table(lists, len(best), world.length) for lists in self._learn(world, shown)]
        found = np.concatenate(tables)
        lost = best - value(world, found).reshape(-1, len(best))
        return np.array([of.mean(axis=1) for of in np.array_split(lost, self.blocks, axis=1)])

    def _learn(self, world: World, shown: ListBatch) -> Iterator[Lists]:
        if self.bounds:
            evidence = gather(self.model, world, shown)
            for bound in self.bounds.values():
                yield from sweep(bound, evidence, self._deltas(bound), world.length)
        if self.baselines:
            totals = fold(shown)
            most = float(totals.logged.max())  # no weight N/n is larger, so larger clips do nothing
            for rival in self.baselines.values():
                found: dict[float | None, Lists] = {}
                for delta in self._deltas(rival):
                    clip = None if delta is None else min(clip_for(delta), most)
                    if clip not in found:
                        found[clip] = (rival if clip is None else with_settings(rival, clip=clip)).lists(totals)
                    yield found[clip]


def gather(model: ClickModel, world: World, shown: ListBatch) -> Evidence:
    """What the learner counts; where its log does not link the positions of lists, pbm is told their examination.

    That favours it over baselines, told nothing: `told` counts how often it happens. Where users do not click by
    position there is no examination to tell, and the learner takes all positions for equal.
    """
    try:
        return model.evidence(shown)
    except NotIdentifiedError:
        examination = world.position if world.kind == "pbm" else np.ones(world.length)
        return with_settings(model, examination=tuple(examination.tolist())).evidence(shown)


def told(protocol: Protocol, seed: int, logs: int) -> int:
    """In how many of the first logs of a protocol its learner has to be told the examination of positions."""
    times = 0
    if not (isinstance(protocol.model, PositionBased) and protocol.bounds):
        return times
    for repetition in range(logs):
        _, shown = protocol.source.draw(protocol.n, np.random.default_rng(protocol.seed(seed, repetition)))
        pair, position, often, _ = per_position(shown.cells)
        times += len(separate_positions(pair, position, often, shown.length)) > 1
    return times


def sweep(bound: Bound, evidence: Evidence, deltas: tuple[float | None, ...], length: int) -> Iterator[Lists]:
    """The best lists by one bound at each δ."""
    if not isinstance(bound, PosteriorBound):
        scores = [(bound if delta is None else with_settings(bound, delta=delta)).score(evidence) for delta in deltas]
        yield from best_lists_of_each(evidence, scores, length)
        return
    prior = bound.prior(evidence)
    alpha, beta = (np.broadcast_to(of, evidence.context.shape) for of in prior[:2])
    rows = np.flatnonzero(_may_be_chosen(evidence, alpha + evidence.positive, beta + evidence.negative, length))
    few = replace(evidence, **{name: getattr(evidence, name)[rows] for name in _PER_PAIR})
    own = Prior(alpha[rows], beta[rows])
    scores = [posterior_scores(few, own, bound.delta if delta is None else delta) for delta in deltas]
    for lists in best_lists_of_each(few, scores, length):
        yield lists._replace(row=rows[lists.row])


_PER_PAIR = ("context", "item", "positive", "negative", "impressions")


def best_lists_of_each(evidence: Evidence, scores: Sequence[Scores], length: int) -> Iterator[Lists]:
    """The best lists by each of several scores, found in one go: another δ is as good as another context."""
    times, pairs = len(scores), len(evidence.context)
    contexts = int(evidence.context[-1]) + 1
    number = np.repeat(np.arange(times), pairs)
    tiled: dict[str, Any] = {name: np.tile(getattr(evidence, name), times) for name in _PER_PAIR}
    stacked = replace(evidence, **{**tiled, "context": tiled["context"] + number * contexts})
    lower, mean = (np.concatenate([getattr(score, name) for score in scores]) for name in ("lower", "mean"))
    found = best_lists(stacked, Scores(lower, mean), length)
    ends = np.searchsorted(found.context, np.arange(1, times) * contexts)
    for k, (row, context, rank) in enumerate(zip(*(np.split(column, ends) for column in found), strict=True)):
        yield Lists(row - k * pairs, context - k * contexts, rank)


def _may_be_chosen(evidence: Evidence, alpha: FloatArray, beta: FloatArray, length: int) -> BoolArray:
    """Leave out the pairs that at least K others of their context beat at every δ; quantiles cost more than all else.

    Beta(α, β) has larger quantiles, and a larger mean, the larger α and the smaller β. Where both are equal,
    impressions and then the number decide, as in ranking.
    """
    # Most documents of a query were never seen. All have the same posterior, and the first K of them are taken.
    unseen = evidence.impressions == 0
    before = np.cumsum(unseen) - unseen
    first = np.searchsorted(evidence.context, evidence.context)  # where its context starts
    keep = np.asarray(~unseen | (before - before[first] < length))
    row = np.flatnonzero(keep)
    row = row[np.lexsort((-evidence.impressions[row], evidence.context[row]))]  # stable: then by number
    size = np.bincount(evidence.context[row])
    start = np.cumsum(size) - size
    width = 1 << np.ceil(np.log2(np.maximum(size, 1))).astype(int)  # of the tables that similar contexts share
    for w in np.unique(width[size > length]).tolist():
        crowded = np.flatnonzero((width == w) & (size > length))
        for some in np.array_split(crowded, -(-len(crowded) * w * w // _AT_ONCE)):
            inside = np.arange(w) < size[some, None]
            of = row[np.minimum(start[some, None] + np.arange(w), len(row) - 1)]
            a, b = np.where(inside, alpha[of], -np.inf), np.where(inside, beta[of], np.inf)
            # [context, i, j]: whether i is as good as j. Of two that are so to each other, the one that comes first is.
            good = (a[:, :, None] >= a[:, None, :]) & (b[:, :, None] <= b[:, None, :])
            beats = good & ~(good.swapaxes(1, 2) & np.tri(w, dtype=bool))
            keep[of[inside]] = (np.count_nonzero(beats, axis=1) < length)[inside]
    return keep


_AT_ONCE = 4_000_000  # comparisons of pairs held at a time: 4 MB


def with_settings(method: _T, **settings: Any) -> _T:
    """The same method with other settings; every registered one is a frozen dataclass, which protocols cannot say."""
    return replace(method, **settings)  # type: ignore[type-var]
