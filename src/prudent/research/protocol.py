"""One experiment in one repetition: draw a log, learn lists from it by every method, compare them with the best."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from zlib import crc32

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.base.errors import NotIdentifiedError
from prudent.bounds import Bound
from prudent.click_models.base import ClickModel
from prudent.click_models.evidence import Evidence
from prudent.click_models.world import World, value
from prudent.click_models.world import best_lists as truly_best_lists
from prudent.counts.lists import ListBatch
from prudent.policies.baselines import Baseline, clip_for, fold
from prudent.policies.list_arrays import Lists, as_table
from prudent.policies.sweep import sweep, with_settings
from prudent.research.sources import Source

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
    baselines: Mapping[str, Baseline] = field(default_factory=dict)  # label -> the baseline that is swept over clips
    deltas: tuple[float, ...] = DELTAS  # without any, each method keeps its own
    n: int = 1_000
    label: str = ""  # of the model in tables; without it, as it is spelled
    blocks: int = 1  # of contexts, each with an error of its own: one repetition of thousands tells their spread

    @property
    def arms(self) -> list[tuple[str, float | None]]:
        """Label and δ of everything that is measured, in the order of `errors`; None where δ plays no part."""
        methods: dict[str, Bound | Baseline] = {**self.bounds, **self.baselines}
        return [(label, delta) for label, method in methods.items() for delta in self._deltas(method)]

    def _deltas(self, method: Bound | Baseline) -> tuple[float | None, ...]:
        if not self.deltas:
            return (getattr(method, "delta", None),)
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
        lists = np.concatenate(tables)
        lost = best - value(world, lists).reshape(-1, len(best))
        return np.array([block.mean(axis=1) for block in np.array_split(lost, self.blocks, axis=1)])

    def _learn(self, world: World, shown: ListBatch) -> Iterator[Lists]:
        if self.bounds:
            evidence = gather(self.model, world, shown)
            for bound in self.bounds.values():
                yield from sweep(bound, evidence, self._deltas(bound), world.length)
        if self.baselines:
            totals = fold(shown)
            most = float(totals.logged.max())  # no weight N/n is larger, so larger clips do nothing
            for baseline in self.baselines.values():
                by_clip: dict[float | None, Lists] = {}
                for delta in self._deltas(baseline):
                    clip = None if delta is None else min(clip_for(delta), most)
                    if clip not in by_clip:
                        by_clip[clip] = (baseline if clip is None else with_settings(baseline, clip=clip)).lists(totals)
                    yield by_clip[clip]


def gather(model: ClickModel, world: World, shown: ListBatch) -> Evidence:
    """The evidence of the learner; where its log does not identify the model, the learner is given the true parameter.

    That favours it over baselines: `parameter_given` counts how often it happens. Where the truth is another model,
    there is nothing to tell, and the learner takes all positions for equal.
    """
    try:
        return model.evidence(shown).ranked
    except NotIdentifiedError as reason:
        truth = world.users.pinned
        if type(truth) is not type(model):
            truth = replace(model, **{reason.parameter: (1.0,) * world.length})  # type: ignore[type-var]
        settings = {reason.parameter: getattr(truth, reason.parameter)}
        return replace(model, **settings).evidence(shown).ranked  # type: ignore[type-var]


def parameter_given(protocol: Protocol, seed: int, logs: int) -> int:
    """In how many of the first logs of a protocol its learner is given a parameter."""
    times = 0
    for repetition in range(logs if protocol.bounds else 0):
        _, shown = protocol.source.draw(protocol.n, np.random.default_rng(protocol.seed(seed, repetition)))
        try:
            protocol.model.fit(shown.cells, shown.length, shown)
        except NotIdentifiedError:
            times += 1
    return times
