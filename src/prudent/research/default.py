"""Which bound to use where nobody chose one: the bounds at their own δ, on 57 protocols.

A default has to work on logs of every kind. It is judged by its mean error over many protocols, and by its worst ratio
to the error of the maximum likelihood estimate, since a default may not do harm. The worst of 57 ratios is mostly the
noisiest one where repetitions are few: it is printed from 50 repetitions on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import exp, isnan, log, sqrt
from typing import Any

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.base.numerics.paired import standard_error
from prudent.bounds import Bound, Scores, bounds
from prudent.bounds.exposure import centred_exposure
from prudent.click_models import ClickModel, DependentClick, Evidence
from prudent.counts.lists import ListBatch
from prudent.research import figures
from prudent.research.bench import MODELS, Bench, Outcome
from prudent.research.data import MIN_IMPRESSIONS, LabelSet
from prudent.research.paper import LIKE, QUALITIES
from prudent.research.protocol import Protocol, gather
from prudent.research.sources import (
    FittedTruth,
    LabelledQueries,
    LabelsLike,
    Source,
    YandexLike,
    fit_truth,
    keep_frequent,
    uniform,
)
from prudent.research.table import Results, Row, paired_ratio

BOUNDS: Mapping[str, Bound] = {
    name: bounds.parse(name) for name in ("mle", "hoeffding", "eb", "exposure", "hierarchical", "anchored")
}
REFERENCE = ("exposure", 0.5)
REPETITIONS = 50
"""Repetitions by default, and the fewest from which a worst ratio is quoted."""

_QUERIES = {"Yahoo-like": 100, "MSLR-like": 60, "Istella-like": 30}  # of a repetition: similar costs

# The ground truth of a real log is fitted by the paper's own counts for dcm: with tail=em λ comes out near 1, where a
# list is worth nothing and no error could be measured.
_TRUTHS: Mapping[str, ClickModel] = {**MODELS, "dcm": DependentClick(tail="truncate")}


def default(bench: Bench) -> Outcome:
    """Compare all bounds on all protocols; the logs of a repetition are the same for all of them."""
    yandex = None if bench.clicks is None else keep_frequent(bench.clicks.top(10), MIN_IMPRESSIONS)
    floor_seed = 10 * bench.lab.seed + FLOOR_SEED
    every = [with_floor(protocol, FLOOR_LOGS, floor_seed) for protocol in protocols(yandex, bench.labels)]
    results = bench.lab.run(every, bench.times(REPETITIONS), chunk=5)
    rows = [row for result in results for row in result.rows()]
    summaries = summarise(results)
    page = f"{len(every)} protocols, {rows[0].repetitions} repetitions:\n\n{markdown(summaries)}\n\n{groups(results)}\n"
    means = mean_rows(results)
    title = f"Mean error of every bound over {len(every)} protocols"
    return Outcome(
        rows,
        results,
        lambda: figures.dots(means, title),
        facts={"methods": list(BOUNDS), "summary": [_for_json(summary) for summary in summaries]},
        page=page,
    )


def _for_json(summary: "Summary") -> dict[str, Any]:
    """JSON knows no NaN, which a single repetition has for an error."""
    return {key: None if isinstance(value, float) and isnan(value) else value for key, value in asdict(summary).items()}


def mean_rows(results: Sequence[Results]) -> list[Row]:
    """The mean error of every arm over the protocols of each click model; n is 0, since it differs among them."""
    means = []
    for kind in MODELS:
        of_kind = [result for result in results if result.protocol.label == kind]
        everywhere = [arm for arm in of_kind[0].protocol.arms if all(arm in r.protocol.arms for r in of_kind)]
        for arm in everywhere:  # the floor is not, and would be a mean over other protocols
            error, se = _mean([result.of(*arm) for result in of_kind])
            means.append(Row("all data", "all", kind, arm[0], arm[1], 0, error, se, len(of_kind[0].errors)))
    return means


# --- the protocols ---------------------------------------------------------------------------------------------------


def protocols(
    yandex: ListBatch | None = None, labels: LabelSet | None = None, bounds: Mapping[str, Bound] = BOUNDS
) -> list[Protocol]:
    """All 57 of them, K = 4; 6 fewer without Yandex's lists (cut to 4 positions), and 6 without labels of MSLR.

    24 synthetic, 21 of a logging whose quality varies, 6 of real lists with clicks by a fitted truth, and 6 of real
    labels. Logging of quality 2 is the production one of the first six: it counts twice.
    """
    every = []
    for kind, model in MODELS.items():

        def add(data: str, logging: str, source: Source, n: int, kind: str = kind, model: ClickModel = model) -> None:
            every.append(Protocol(data, logging, source, model, bounds, deltas=(), n=n, label=kind))

        add("Yandex-like", "uniform", uniform(YandexLike(kind)), 1_000)
        add("Yandex-like", "production", YandexLike(kind), 1_000)
        for name, documents, mix in LIKE.values():
            add(name, "per query", LabelsLike(kind, documents, mix, _QUERIES[name], "query"), 100)
            add(name, "per list", LabelsLike(kind, documents, mix, _QUERIES[name], "list"), 100)
        for quality in QUALITIES:
            add("Yandex-like", f"γ = {quality:g}", YandexLike(kind, quality), 1_000)
        if yandex is not None:
            truth = FittedTruth(fit_truth(yandex, _TRUTHS[kind]), yandex)
            for n in (200, 1_000):
                add("Yandex", "production", truth, n)
        if labels is not None:
            add("Labelled queries", "per query", LabelledQueries(kind, labels.label, labels.sizes, per="query"), 100)
            add("Labelled queries", "per list", LabelledQueries(kind, labels.label, labels.sizes, per="list"), 100)
    return every


# --- a floor ---------------------------------------------------------------------------------------------------------

FLOOR_SEED = 3
FLOOR_LOGS = 15  # of each protocol, from which the true prior is learned
_TAIL = np.geomspace(0.05, 0.001, 10)
_LEVELS = np.sort(np.concatenate([_TAIL, np.linspace(0.1, 0.9, 17), 1 - _TAIL]))
"""Where exposure is cut into groups; narrow at both ends, where the best items are."""
_VALUES = 30  # of a continuous θ, closer together where it is large: these decide the best lists


@dataclass(frozen=True, eq=False)
class KnownPrior(Bound):
    """Posterior mean under the true distribution of θ at every exposure: a floor, since no log contains it.

    Ranking by posterior means is best where the prior is right: for independent θ the expected V is a function of their
    means, and grows with each. What is known here is P(θ | x) for the x of `exposure`, from logs of the same protocol
    drawn for the purpose. It is no strict floor: who knows more, such as the level of a context, or corrects the counts
    of dcm and pbm, whose trials are estimates, could do better still.
    """

    edges: FloatArray  # between groups of x
    theta: FloatArray  # values that θ may have
    chance: FloatArray  # P(θ | x): a row for each group

    @classmethod
    def of(cls, protocol: Protocol, repetitions: int = FLOOR_LOGS, seed: int = FLOOR_SEED) -> "KnownPrior":
        """What is true of the logs of a protocol, on average over some of them."""
        exposure, attraction = [], []
        for repetition in range(repetitions):
            random = np.random.default_rng(protocol.seed(seed, repetition))
            world, shown = protocol.source.draw(protocol.n, random)
            exposure.append(centred_exposure(gather(protocol.model, world, shown)))
            # A learner who fits p puts its maximum at 1, and sees θ as so much smaller.
            scale = getattr(world.users, "examination", np.ones(1)).max()
            attraction.append(scale * world.attraction)
        x, theta = np.concatenate(exposure), np.concatenate(attraction)
        values = np.unique(theta.round(9))
        if values.size > _VALUES:
            values = np.unique(np.quantile(theta, 1 - np.linspace(1, 0.02, _VALUES) ** 2))
        edges = np.unique(np.quantile(x, _LEVELS))
        nearest = np.searchsorted((values[1:] + values[:-1]) / 2, theta)
        group = np.searchsorted(edges, x)
        table = np.bincount(group * values.size + nearest, minlength=(edges.size + 1) * values.size)
        counted = table.reshape(-1, values.size) + 1e-3  # nothing is impossible for not having happened
        return cls(edges, values, counted / counted.sum(axis=1, keepdims=True))

    def score(self, evidence: Evidence) -> Scores:
        """Bayes' rule on the grid of θ."""
        group = np.searchsorted(self.edges, centred_exposure(evidence))
        log_chance = np.log(self.chance)[group]
        log_chance += evidence.positive[:, None] * np.log(self.theta) + evidence.negative[:, None] * np.log1p(
            -self.theta
        )
        chance = np.exp(log_chance - log_chance.max(axis=1, keepdims=True))
        mean = chance @ self.theta / chance.sum(axis=1)
        return Scores(mean, mean)


def with_floor(protocol: Protocol, repetitions: int = FLOOR_LOGS, seed: int = FLOOR_SEED) -> Protocol:
    """The protocol with `KnownPrior` among its bounds, unless its truth is a single real one, which has no prior."""
    if isinstance(protocol.source, FittedTruth):
        return protocol
    return replace(protocol, bounds={**protocol.bounds, "floor": KnownPrior.of(protocol, repetitions, seed)})


# --- what came out ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """One bound at one δ over all protocols that measured it."""

    method: str
    delta: float | None
    protocols: int
    repetitions: int
    error: float  # mean over protocols of the mean error
    against_reference: float  # minus that of the reference on the same logs; below 0: better
    se: float  # of that difference, paired
    ratio: float  # to the error of mle, geometric mean over protocols
    worst: float  # the largest of these ratios
    worst_limit: float  # upper end of its 95 % interval; that it is the largest of many is not allowed for
    worst_protocol: str


def summarise(results: Sequence[Results], reference: tuple[str, float | None] = REFERENCE) -> list[Summary]:
    """A row for every arm, in the order of the protocols' own."""
    arms = dict.fromkeys(arm for result in results for arm in result.protocol.arms)
    return [_summary(arm, [r for r in results if arm in r.protocol.arms], reference) for arm in arms]


def _summary(arm: tuple[str, float | None], results: Sequence[Results], reference: tuple[str, float | None]) -> Summary:
    errors = [result.of(*arm) for result in results]
    difference, se = _mean([error - result.of(*reference) for error, result in zip(errors, results, strict=True)])
    ratios = [paired_ratio(error, result.of("mle")) for error, result in zip(errors, results, strict=True)]
    worst = max(range(len(results)), key=lambda i: ratios[i][0])
    return Summary(
        *arm,
        protocols=len(results),
        repetitions=min(len(error) for error in errors),
        error=_mean(errors)[0],
        against_reference=difference,
        se=se,
        ratio=exp(sum(log(max(ratio, 1e-12)) for ratio, _ in ratios) / len(results)),
        worst=ratios[worst][0],
        worst_limit=ratios[worst][0] + 1.96 * ratios[worst][1],
        worst_protocol=name(results[worst].protocol),
    )


def name(protocol: Protocol) -> str:
    """Of a protocol, in a line of text."""
    return f"{protocol.data} {protocol.logging} {protocol.label} n={protocol.n}"


def markdown(rows: Sequence[Summary]) -> str:
    """The table for the results page; errors are × 10⁴."""
    most = max(row.protocols for row in rows)
    head = "| bound | δ | mean error | against exposure(.5) | ratio to MLE | worst ratio | where |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    for row in rows:
        delta = "" if row.delta is None else f"{row.delta:g}"
        difference = f"{row.against_reference * 1e4:+.1f} ± {row.se * 1e4:.1f}"
        enough = row.repetitions >= REPETITIONS
        worst = f"{row.worst:.2f} (≤ {row.worst_limit:.2f})" if enough else "too few repetitions"
        method = row.method if row.protocols == most else f"{row.method} ({row.protocols} protocols)"
        where = row.worst_protocol if enough else ""
        cells = [method, delta, f"{row.error * 1e4:.1f}", difference, f"{row.ratio:.2f}", worst, where]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def groups(results: Sequence[Results]) -> str:
    """A table of the mean error × 10⁴ by data and logging policy, over click models, against the reference."""
    first = results[0].protocol
    arms = [arm for arm in first.arms if arm not in (REFERENCE, ("mle", None)) and arm[0] in first.bounds]
    arms = [arm for arm in arms if all(arm in result.protocol.arms for result in results)]
    lines = [
        f"| data | logging | n | mle | {REFERENCE[0]} | {' | '.join(name for name, _ in arms)} |",
        "|---" * (5 + len(arms)) + "|",
    ]
    by_logging: dict[tuple[str, str, int], list[Results]] = {}
    for result in results:
        protocol = result.protocol
        by_logging.setdefault((protocol.data, protocol.logging, protocol.n), []).append(result)
    for (data, logging, n), members in by_logging.items():
        base = [f"{_mean([one.of(*arm) for one in members])[0] * 1e4:.0f}" for arm in (("mle", None), REFERENCE)]
        gaps = [_mean([one.of(*arm) - one.of(*REFERENCE) for one in members]) for arm in arms]
        cells = [data, logging, f"{n:,}", *base, *(f"{gap * 1e4:+.1f} ± {se * 1e4:.1f}" for gap, se in gaps)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(errors: Sequence[FloatArray]) -> tuple[float, float]:
    """The mean over protocols of mean errors, and its standard error."""
    se = sqrt(sum(standard_error(one) ** 2 for one in errors)) / len(errors)
    return float(np.mean([one.mean() for one in errors])), se
