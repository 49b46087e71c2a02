"""The paper's experiments, one function for each figure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.base.errors import UsageError
from prudent.base.numerics.paired import standard_error
from prudent.bounds import Bound, EmpiricalBayes, bounds
from prudent.click_models.world import World, best_value
from prudent.research import figures
from prudent.research.bench import KINDS, Bench, Outcome
from prudent.research.data import MIN_IMPRESSIONS, synthetic_log
from prudent.research.protocol import Protocol, gather
from prudent.research.sources import (
    FittedTruth,
    HeldOutClicks,
    LabelledQueries,
    LabelsLike,
    Source,
    YandexLike,
    fit_truth,
    keep_common,
    keep_frequent,
)
from prudent.research.table import Results, Row

LOGGINGS = ("production", "uniform")
"""Sec. 8.1 says both that lists come from the log and that items are chosen at random. It decides the result."""

SIZES = (50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000)
GRIDS = (1, 2, 5, 10, 20)

LIKE = {
    "yahoo": ("Yahoo-like", 24, (0.26, 0.36, 0.28, 0.08, 0.02)),
    "mslr": ("MSLR-like", 120, (0.52, 0.32, 0.13, 0.02, 0.01)),
    "istella": ("Istella-like", 315, (0.96, 0.01, 0.01, 0.01, 0.01)),
}
"""Synthetic label sets: documents of a query, and the shares of labels 0 to 4."""


QUERIES = 5_000
"""Labelled queries of a repetition, where there are as many."""

BLOCK = 250
"""Queries whose mean error counts as one observation, where there are thousands of them."""


def top_queries(bench: Bench, contexts: int = 10) -> Outcome:
    """Fig. 2: all methods against δ, three click models, the ten most frequent queries."""
    protocols = [
        bench.sweep(data, logging, source, kind)
        for logging in LOGGINGS
        for kind in KINDS
        for data, source in [bench.queries(kind, logging, contexts)]
    ]
    outcome = _against_delta(bench.lab.run(protocols, bench.times(500)), "All methods on frequent queries (Fig. 2)")
    return replace(outcome, facts={"truth": _truths(protocols)})


def _truths(protocols: Sequence[Protocol]) -> dict[str, dict[str, Any]]:
    """Of every click model that was fitted to a real log: p or λ, the value of the best lists, items of each query."""
    return {
        source.kind: {
            "position": [round(value, 4) for value in _positions(source.world)],
            "best_value": round(best_value(source.world), 4),
            "items": np.diff(source.world.offsets).tolist(),
        }
        for source in (protocol.source for protocol in protocols)
        if isinstance(source, FittedTruth)
    }


def top_query(bench: Bench) -> Outcome:
    """App. C: the same on the most frequent query alone, which no average over queries can skew."""
    outcome = top_queries(bench, contexts=1)
    title = "All methods on the most frequent query (App. C)"
    return replace(outcome, chart=lambda: figures.against_delta(outcome.rows, title, what_is_real(outcome.results)))


def less_frequent(bench: Bench) -> Outcome:
    """App. C: dcm on ever more queries, each less frequent than those before."""
    most = bench.clicks.size if bench.clicks is not None else 100
    sizes = [size for size in (10, 20, 50, 100) if size <= most] or [most]
    protocols = [
        bench.sweep(data, logging, source, "dcm")
        for logging in LOGGINGS
        for size in sizes
        for data, source in [bench.queries("dcm", logging, size)]
    ]
    results = bench.lab.run(protocols, bench.times(50))
    rows = [row for result in results for row in result.rows()]
    # In the figure a panel is a number of queries; in the table that is part of the name of the data.
    panels = [replace(row, data=data, model=size) for row in rows for data, _, size in [row.data.partition(", ")]]
    title = "Less frequent queries, dcm (App. C)"
    return Outcome(rows, results, lambda: figures.against_delta(panels, title, what_is_real(results)))


def sample_size(bench: Bench) -> Outcome:
    """Fig. 3: δ is chosen on the past and applied to the future, for logs of 50 to 500,000 lists."""
    swept = {name: bound for name, bound in bench.bounds.items() if hasattr(bound, "delta")}
    if not swept:
        raise UsageError("sample-size chooses a δ, and none of these methods has one. Add one that has, such as eb.")
    past = [
        bench.sweep(data, "past", source, kind, bounds=swept, baselines={}) for kind, data, source in _days(bench, 0)
    ]
    chosen: dict[str, dict[str, float]] = {}
    before: dict[str, dict[str, Any]] = {}
    for result in bench.lab.run(past, bench.times(100), stage="past"):
        means = dict(zip(result.protocol.arms, result.errors.mean(axis=0), strict=True))
        kind = result.protocol.source.kind
        chosen[kind] = {name: min(bench.deltas, key=lambda delta: float(means[name, delta])) for name in swept}
        before[kind] = {name: _above_best(result, name, delta) for name, delta in chosen[kind].items()}
    learners: dict[str, Bound] = {"mle": bounds.parse("mle"), **swept}
    future = [
        bench.sweep(data, "production", source, kind, n, bounds=learners, baselines={}, deltas=tuple(wanted))
        for kind, data, source in _days(bench, 1)
        for wanted in [sorted(set(chosen[kind].values()))]
        for n in SIZES
    ]
    results = bench.lab.run(future, bench.times(100), stage="future")
    rows, gains = [], []
    for result in results:
        deltas = chosen[result.protocol.source.kind]
        rows += [row for row in result.rows() if row.delta == deltas.get(row.method)]
        gains += [result.difference("mle", name, delta) for name, delta in deltas.items()]
    # In the figure a method is one line, whatever its δ in each panel; which δ that was stands in the notes.
    lines = [replace(row, delta=None) for row in gains]
    notes = [
        f"{kind}: δ chosen on the past: " + ", ".join(f"{delta:g} for {name}" for name, delta in deltas.items())
        for kind, deltas in chosen.items()
    ]
    title = "How far the error falls below the MLE's, by sample size (Fig. 3)"
    caption = f"{what_is_real(results)} δ was chosen on earlier clicks than those it is applied to."
    return Outcome(
        rows, results, lambda: figures.against_n(lines, title, caption), notes, {"delta": chosen, "past": before}
    )


def _above_best(result: Results, method: str, best: float) -> dict[str, Any]:
    """How far the error at each δ is above that at the best, with paired standard errors: how sure the choice was."""
    above = [result.of(method, delta) - result.of(method, best) for delta in result.protocol.deltas]
    return {
        "deltas": list(result.protocol.deltas),
        "above": [float(more.mean()) for more in above],
        "se": [_or_none(standard_error(more)) for more in above],
        "repetitions": len(result.errors),
    }


def _or_none(number: float) -> float | None:
    return None if np.isnan(number) else number


def _days(bench: Bench, part: int) -> list[tuple[str, str, Source]]:
    """The past (0) or the future (1) of every click model: kind, name, source."""
    if bench.clicks is None:
        # The past and the future of synthetic data are two draws of it. Lists are resampled from 2,000, as from a log.
        return [(kind, f"Yandex-like, {('past', 'future')[part]}", YandexLike(kind, pool=2_000)) for kind in KINDS]
    lists = keep_frequent(bench.clicks.top(10, slice(0, 1) if part == 0 else slice(1, 3)), MIN_IMPRESSIONS)
    name = f"Yandex, {('earlier', 'later')[part]} part, {lists.context[-1] + 1} queries"
    return [(kind, name, FittedTruth(fit_truth(lists, kind), lists)) for kind in KINDS]


def cross_validation(bench: Bench) -> Outcome:
    """App. C: the truth is fitted to the early days, the learner sees real clicks of the late ones."""
    log = bench.clicks or synthetic_log(bench.lab.seed)
    train, test = keep_common(log.top(10, slice(0, 2)), log.top(10, slice(2, 3)), MIN_IMPRESSIONS)
    data = f"{'Yandex' if bench.clicks else 'a simulated log'}, later clicks, {test.context[-1] + 1} queries"
    protocols = [bench.sweep(data, "production", HeldOutClicks(fit_truth(train, kind), test), kind) for kind in KINDS]
    return _against_delta(
        bench.lab.run(protocols, bench.times(200)),
        "Clicks of later days, graded by a model of earlier ones (App. C)",
    )


def grid_label(m: int) -> str:
    """What tables call empirical Bayes with a grid of m × m priors."""
    return f"eb, {m} × {m} grid"


def prior_grid(bench: Bench) -> Outcome:
    """App. C: empirical Bayes on dcm, with grids of 1, 2, 5, 10 and 20 powers of two."""
    grids = {grid_label(m): EmpiricalBayes(grid=tuple(2.0**i for i in range(m))) for m in GRIDS}
    learners: dict[str, Bound] = {"mle": bounds.parse("mle"), **grids}
    protocols = [
        bench.sweep(data, logging, source, "dcm", bounds=learners, baselines={})
        for logging in LOGGINGS
        for data, source in [bench.queries("dcm", logging)]
    ]
    results = bench.lab.run(protocols, bench.times(200))
    priors = {protocol.logging: _priors(protocol, bench.lab.seed, bench.times(20)) for protocol in protocols}
    notes = [
        f"Priors found in {sum(counter.values())} logs, {logging}, {name}: "
        + ", ".join(f"{prior} {times}×" for prior, times in counter.items())
        for logging, of_grid in priors.items()
        for name, counter in of_grid.items()
    ]
    outcome = _against_delta(results, "Empirical Bayes with larger grids, dcm (App. C)")
    return replace(outcome, notes=notes, facts={"priors": priors})


def _priors(protocol: Protocol, seed: int, repetitions: int) -> dict[str, dict[str, int]]:
    """Which priors each bound that fits one finds in the first 20 logs of a protocol, and in how many of them."""
    priors: dict[str, Counter[str]] = {}
    for repetition in range(min(20, repetitions)):
        world, shown = protocol.source.draw(protocol.n, np.random.default_rng(protocol.seed(seed, repetition)))
        evidence = gather(protocol.model, world, shown)
        for name, bound in protocol.bounds.items():
            fitted = bound.score(evidence).fitted
            if fitted:
                priors.setdefault(name, Counter())[f"Beta({fitted['alpha']:g}, {fitted['beta']:g})"] += 1
    return {name: dict(counter.most_common()) for name, counter in priors.items()}


def misspecified(bench: Bench) -> Outcome:
    """Fig. 4: users click by one model, the learner believes in another."""
    protocols = [
        bench.sweep(data, logging, source, learner, label=f"{learner} on clicks of {truth}")
        for logging in LOGGINGS
        for truth, learner in (("pbm", "dcm"), ("dcm", "pbm"))
        for data, source in [bench.queries(truth, logging)]
    ]
    return _against_delta(bench.lab.run(protocols, bench.times(200)), "Learning by the wrong click model (Fig. 4)")


def yahoo(bench: Bench) -> Outcome:
    """Fig. 5: clicks made of the labels of Yahoo! C14."""
    return _labelled(bench, "yahoo", "Yahoo! C14 (Fig. 5)")


def mslr(bench: Bench) -> Outcome:
    """Fig. 6: clicks made of the labels of MSLR-WEB."""
    return _labelled(bench, "mslr", "MSLR-WEB (Fig. 6)")


def istella(bench: Bench) -> Outcome:
    """Fig. 7: clicks made of the labels of Istella."""
    return _labelled(bench, "istella", "Istella (Fig. 7)")


def _labelled(bench: Bench, name: str, title: str) -> Outcome:
    queries = QUERIES if bench.labels is None else min(QUERIES, len(bench.labels.sizes))
    protocols = [
        bench.sweep(data, f"Dirichlet per {per}", source, kind, n=100, blocks=max(1, queries // BLOCK))
        for per in ("query", "list")
        for kind in KINDS
        for data, source in [_labels(bench, name, kind, per)]
    ]
    results = bench.lab.run(protocols, bench.times(max(1, QUERIES // queries)), chunk=1)
    return _against_delta(results, f"Clicks made of relevance labels: {title}")


def _labels(bench: Bench, name: str, kind: str, per: str) -> tuple[str, Source]:
    like, documents, mix = LIKE[name]
    if bench.labels is None:
        return f"{like}, {QUERIES:,} queries", LabelsLike(kind, documents, mix, QUERIES, per)  # type: ignore[arg-type]
    queries = min(QUERIES, len(bench.labels.sizes))
    source = LabelledQueries(kind, bench.labels.label, bench.labels.sizes, queries, per)  # type: ignore[arg-type]
    # Not the names of the files: the random numbers depend on this one.
    return f"{like.removesuffix('-like')} labels, {queries:,} queries", source


def _against_delta(results: list[Results], title: str) -> Outcome:
    rows: list[Row] = [row for result in results for row in result.rows()]
    return Outcome(rows, results, lambda: figures.against_delta(rows, title, what_is_real(results)))


def what_is_real(results: Sequence[Results]) -> str:
    """What a reader of a figure has to know about its data, and about δ where there are baselines."""
    remarks = list(dict.fromkeys(result.protocol.source.real for result in results))
    if any(result.protocol.baselines for result in results):
        remarks.append("For ips and ip-ips δ stands for a clip, as in the paper's table.")
    if any(result.protocol.blocks > 1 for result in results):
        remarks.append(f"Standard errors are over blocks of {BLOCK} queries.")
    return " ".join(remarks)


QUALITIES = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)


def logging_quality(bench: Bench) -> Outcome:
    """Ours: production rankers from opposed to users' taste, through blind, to good: where pessimism pays and harms."""
    protocols = [
        bench.sweep("Yandex-like, 10 most frequent queries", f"quality {quality:g}", YandexLike(kind, quality), kind)
        for quality in QUALITIES
        for kind in KINDS
    ]
    results = bench.lab.run(protocols, bench.times(100))
    rows = [row for result in results for row in result.rows()]
    low, middle = (min(bench.deltas, key=lambda delta: abs(delta - level)) for level in (0.2, 0.5))
    shown = [row for row in rows if row.delta in (None, middle if row.method.startswith("exposure") else low)]
    quality = {f"quality {quality:g}": quality for quality in QUALITIES}
    title = "Where pessimism pays, by the quality of logging"
    return Outcome(
        rows,
        results,
        lambda: figures.against_logging(shown, title, what_is_real(results), quality=quality),
    )


def _positions(world: World) -> list[float]:
    """λ or p of every position; λ = 0 of cm."""
    users = world.users
    parameter: FloatArray = getattr(users, "continuation", getattr(users, "examination", np.zeros(users.positions)))
    return list(parameter.tolist())
