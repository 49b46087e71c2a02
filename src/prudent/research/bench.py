"""Input and output of every experiment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from prudent.base.errors import UsageError, did_you_mean
from prudent.bounds import Bound, bounds
from prudent.click_models import ClickModel, click_models
from prudent.policies.baselines import Baseline, baselines
from prudent.research.data import MIN_IMPRESSIONS, ClickLog, LabelSet
from prudent.research.laboratory import Laboratory
from prudent.research.protocol import DELTAS, Protocol
from prudent.research.sources import FittedTruth, Source, YandexLike, fit_truth, keep_frequent, uniform
from prudent.research.table import Results, Row

MODELS: Mapping[str, ClickModel] = {kind: click_models.parse(kind) for kind in ("cm", "dcm", "pbm")}
KINDS = tuple(MODELS)
METHODS = ("mle", "bayes", "eb", "hoeffding", "exposure", "ips", "ip-ips", "pi")
"""The lines of every figure: the paper's, and `exposure`, which is ours."""


@dataclass(frozen=True, eq=False)
class Bench:
    """Where experiments are done: with which data, which methods, how often."""

    lab: Laboratory
    clicks: ClickLog | None = None  # without it, synthetic Yandex-like queries
    labels: LabelSet | None = None  # without them, synthetic labels
    repetitions: int | None = None  # without it, as many as each experiment thinks fit
    deltas: tuple[float, ...] = DELTAS
    methods: tuple[str, ...] = METHODS

    @cached_property
    def bounds(self) -> dict[str, Bound]:
        """The bounds among the methods, and the MLE, with which all are compared."""
        return {name: bounds.parse(name) for name in dict.fromkeys(("mle", *self.methods)) if _word(name) in bounds}

    @cached_property
    def baselines(self) -> dict[str, Baseline]:
        """The baselines among the methods."""
        return {name: baselines.parse(name) for name in self.methods if _word(name) in baselines}

    def times(self, default: int) -> int:
        """Number of repetitions, with the experiment's default."""
        return self.repetitions or default

    def queries(self, kind: str, logging: str, contexts: int = 10) -> tuple[str, Source]:
        """What tables call the data, and where the logs come from: the most frequent contexts, or synthetic ones."""
        if self.clicks is None:
            source = YandexLike(kind, contexts=contexts)
            return f"Yandex-like, {_count(contexts)}", source if logging == "production" else uniform(source)
        lists = keep_frequent(self.clicks.top(contexts), MIN_IMPRESSIONS)
        contexts = int(lists.context[-1]) + 1  # a context whose items were all shown rarely is not among them
        world = fit_truth(lists, kind)
        name = f"Yandex, {_count(contexts)}"
        return name, FittedTruth(world, lists, logging)  # type: ignore[arg-type]

    def sweep(self, data: str, logging: str, source: Source, model: str, n: int = 1_000, **more: Any) -> Protocol:
        """All methods at all δ."""
        settings = {"bounds": self.bounds, "baselines": self.baselines, "deltas": self.deltas, **more}
        return Protocol(data, logging, source, click_models.parse(model), n=n, **settings)


def _word(spelling: str) -> str:
    return spelling.partition("(")[0].strip()


def _count(contexts: int) -> str:
    return "the most frequent query" if contexts == 1 else f"{contexts} most frequent queries"


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an experiment found."""

    rows: Sequence[Row]
    results: Sequence[Results]
    chart: Callable[[], Any] | None = None  # drawn only where there is something to draw with
    notes: Sequence[str] = ()  # what to know besides: choices made on the way
    facts: Mapping[str, Any] = field(default_factory=dict)  # the same for machines; fits JSON
    page: str = ""  # Markdown, where a table says more than a figure


def check_methods(methods: Sequence[str]) -> None:
    """Methods as a user gave them; an unknown one is an error before anything is run."""
    for method in methods:
        if _word(method) not in bounds and _word(method) not in baselines:
            hint = did_you_mean(_word(method), METHODS)
            raise UsageError(f"There is no method {method!r}.{hint} Known: {', '.join(METHODS)}, hierarchical.")
        (bounds if _word(method) in bounds else baselines).parse(method)
        if "delta=" in method or "clip=" in method:
            raise UsageError(f"{method}: δ, and with it the clip of a baseline, is swept. Set it with --deltas.")
