"""What each of our readings of the paper changes: the same logs, counted and ranked by the other reading as well.

The other readings live here and nowhere else: none is registered, so nobody ranks by one without meaning to. Those that
are settings of a registered method, like ``dcm(tail=truncate)``, are used as they are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal, NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.base.spec import check_clip
from prudent.bounds import Bound, EmpiricalBayes, Exposure, Hoeffding, Mle, Scores
from prudent.bounds.base import check_delta
from prudent.bounds.mle import click_rate
from prudent.click_models import Cascade, ClickModel, DependentClick, Evidence, PositionBased
from prudent.click_models.dependent_click import FittedDependentClick
from prudent.click_models.evidence import make_evidence
from prudent.counts.cells import Cells
from prudent.counts.lists import Counted
from prudent.policies.baselines import Baseline, Totals
from prudent.policies.baselines.base import (
    Choice,
    best_placed,
    clipped_rate,
    first_of_best,
    incumbent_values,
)
from prudent.policies.baselines.item_position_ips import ItemPositionIps
from prudent.policies.list_arrays import Lists
from prudent.research import figures
from prudent.research.bench import MODELS as OURS
from prudent.research.bench import Bench, Outcome
from prudent.research.data import ClickLog
from prudent.research.paper import LOGGINGS
from prudent.research.protocol import Protocol
from prudent.research.sources import FittedTruth, fit_truth, keep_frequent
from prudent.research.table import Results, Row, paired_ratio

# --- the other readings: click models --------------------------------------------------------------------------------


@dataclass(frozen=True)
class CascadeAsPrinted(Cascade):
    """``cm`` by the formulas of App. A: n₊ has later clicks too, and the clicked impression is also a failure."""

    def evidence(self, counts: Counted) -> Evidence:
        """All clicks against all impressions with no click above them."""
        cells, fitted = counts.cells, self.fit(counts.cells, counts.cells.positions)
        return make_evidence(fitted, cells, cells.per_pair(cells.click), cells.per_pair(cells.prev == 0))


@dataclass(frozen=True)
class DependentClickAsPrinted(DependentClick):
    """``dcm`` by the formula of App. A: every impression without a click is a failure, below the last click too."""

    tail: Literal["em", "truncate"] = "truncate"

    def evidence(self, counts: Counted) -> Evidence:
        """Clicks against all other impressions."""
        cells, fitted = counts.cells, self.fit(counts.cells, counts.cells.positions)
        return make_evidence(fitted, cells, cells.per_pair(cells.click), cells.per_pair(~cells.click))


@dataclass(frozen=True)
class PlacedByContinuation(DependentClick):
    """Our ``dcm``, but the best item stands where fewest clicks are followed by another: that is mostly the end."""

    def evidence(self, counts: Counted) -> Evidence:
        """The evidence of ``dcm``, with the weights 1 − λ̂ₖ of App. A and placement by them."""
        continuation = printed_continuation(counts.cells)
        evidence = DependentClick().evidence(counts)
        return replace(evidence, fitted=FittedDependentClick(self, len(continuation), continuation))


def printed_continuation(cells: Cells) -> FloatArray:
    """λ̂ₖ = clicks at k with another below / clicks at k, so 0 at the last position; where nobody clicked, 1/2."""
    clicked, onward = (
        np.bincount(cells.position[where], cells.n[where], minlength=cells.positions + 1)[1:]
        for where in (cells.click, cells.click & cells.more)
    )
    return np.asarray(np.divide(onward, clicked, out=np.full(cells.positions, 0.5), where=clicked > 0))


# --- bounds ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClippedHoeffding(Bound):
    """``hoeffding``, but never below 0, so that all rarely seen items are tied there.

    By our rule ties go to the higher mean, which ranks them as the MLE does. With ``by_chance`` the item's number
    decides, which is random in experiments: what a plain sort does.
    """

    delta: float = 0.2
    by_chance: bool = False

    def __post_init__(self) -> None:
        check_delta(self.delta)

    def score(self, evidence: Evidence) -> Scores:
        """The bound, clipped; 0 without evidence."""
        lower, mean = (getattr(Hoeffding(self.delta).score(evidence), name) for name in ("lower", "mean"))
        return Scores(np.maximum(lower, 0.0), -evidence.item.astype(float) if self.by_chance else mean)


@dataclass(frozen=True)
class GuessingMle(Bound):
    """``mle``, but with some other number than 0 for items without evidence; the paper names none."""

    unseen: float

    def score(self, evidence: Evidence) -> Scores:
        """The estimate, or the guess."""
        estimate = np.where(evidence.examined > 0, click_rate(evidence), self.unseen)
        return Scores(estimate, estimate)


# --- baselines -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RepeatingItemPositionIps(Baseline):
    """``ip-ips`` as Sec. 8.2 describes it: the best item of each position, though it may stand at another already.

    Only the first place of a repeated item is kept, counted from the top, and the others stay empty: who has seen an
    item gains nothing by seeing it again.
    """

    clip: float = inf

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def choose(self, totals: Totals) -> Choice:
        """The best item of each position; of equals the one that was shown there most often."""
        placed = totals.placed
        estimate = clipped_rate(placed.clicks, placed.n, totals.logged[totals.context[placed.pair]], self.clip)
        row, group, _ = totals.by_place
        best = row[first_of_best(group, estimate[row])]
        _, first = np.unique(placed.pair[best], return_index=True)
        best = best[np.sort(first)]
        pair = placed.pair[best]
        lists = Lists(pair, totals.context[pair], placed.position[best] + 1)
        highest = np.maximum(best_placed(placed, estimate, totals.pairs), 0)
        return Choice(lists, estimate[best], highest, incumbent_values(totals, estimate))


# --- the experiment --------------------------------------------------------------------------------------------------

DELTAS = (0.2, 0.5)

LISTS, FEW_LISTS = 1_000, 100
"""Lists of each context. Some readings matter only where there are few, and bounds are wide."""


MODELS: Mapping[str, Mapping[str, ClickModel]] = {
    "cm": {"counts as printed": CascadeAsPrinted()},
    "dcm": {
        "counts as printed": DependentClickAsPrinted(),
        "tail=truncate": DependentClick(tail="truncate"),
        "placed by printed λ": PlacedByContinuation(),
    },
    "pbm": {"counts as printed": PositionBased(counts="weighted"), "solver=als": PositionBased(solver="als")},
}
"""Other readings of each click model; ``counts as printed`` of pbm is ``counts=weighted``."""

LEARNERS: Mapping[str, Bound] = {"mle": Mle(), "eb": EmpiricalBayes(), "exposure": Exposure()}
"""What learns from every click model."""

BOUNDS: Mapping[str, Mapping[str, Bound]] = {
    "hoeffding": {
        "clipped at 0": ClippedHoeffding(),
        "clipped at 0, ties by chance": ClippedHoeffding(by_chance=True),
    },
    "mle": {"0.5 for unseen items": GuessingMle(0.5), "1 for unseen items": GuessingMle(1.0)},
    "eb": {"grid from 2 to 1024": EmpiricalBayes(grid=tuple(2.0**i for i in range(1, 11)))},
}
"""Other readings of each bound."""

READINGS_OF_BASELINES: Mapping[str, Mapping[str, Baseline]] = {"ip-ips": {"with repeats": RepeatingItemPositionIps()}}
"""Other readings of each baseline."""

MISREAD = "cm on clicks of pbm"
"""Cascade users click once; which clicks count matters only for users who click again."""


class Ratio(NamedTuple):
    """The error by another reading divided by that by ours, in one place."""

    reading: str
    model: str
    method: str
    delta: float | None
    logging: str
    n: int
    ratio: float
    se: float


def readings(bench: Bench) -> Outcome:
    """Ours: the error by every other reading, beside the error by ours on the same logs.

    At δ = .2 and .5, with the methods that a reading is about; `--deltas` and `--methods` change nothing here.
    """
    protocols = [protocol for logging in LOGGINGS for protocol in _protocols(bench, logging)]
    truths = [] if bench.clicks is None else _truths(bench, bench.clicks)
    results = bench.lab.run([*protocols, *truths], bench.times(80))
    compared, truth = results[: len(protocols)], results[len(protocols) :]
    ratios = list(_ratios(compared))
    title = "What each of our readings changes"
    caption = "exposure at δ = 0.5, everything else at δ = 0.2. In brackets: another reading than ours."
    shown = [row for method in _AT for result in compared for row in _shown(result, method)]
    return Outcome(
        [row for result in results for row in result.rows()],
        results,
        lambda: figures.dots(shown, title, caption),
        [*_notes(ratios), *_truth_notes(compared, truth)],
        {"ratios": [_for_json(ratio) for ratio in ratios], "methods": list(_AT), "deltas": [0.2, 0.5]},
    )


def _protocols(bench: Bench, logging: str) -> Iterator[Protocol]:
    """Ours of each kind with all bounds, and after it the other readings of the click model."""
    bounds = {**LEARNERS, "hoeffding": Hoeffding()} | {
        f"{method}, {reading}": bound for method, others in BOUNDS.items() for reading, bound in others.items()
    }
    baselines = {"ip-ips": ItemPositionIps()} | {
        f"{method}, {reading}": baseline
        for method, others in READINGS_OF_BASELINES.items()
        for reading, baseline in others.items()
    }
    for kind, model in OURS.items():
        data, source = bench.queries(kind, logging)
        yield Protocol(data, logging, source, model, bounds, baselines, DELTAS, LISTS, kind)
        yield Protocol(data, logging, source, model, bounds, baselines, DELTAS, FEW_LISTS, kind)
        for reading, other in MODELS[kind].items():
            yield Protocol(data, logging, source, other, LEARNERS, {}, DELTAS, LISTS, f"{kind}, {reading}")
    yield Protocol(data, logging, source, OURS["cm"], LEARNERS, {}, DELTAS, LISTS, MISREAD)
    for reading, other in MODELS["cm"].items():
        yield Protocol(data, logging, source, other, LEARNERS, {}, DELTAS, LISTS, f"{MISREAD}, {reading}")


def _truths(bench: Bench, log: ClickLog) -> Iterator[Protocol]:
    """The truth that is fitted to every item of a real log, however rarely it was shown."""
    for kind, model in OURS.items():
        data, _ = bench.queries(kind, "production")
        lists = keep_frequent(log.top(10), 1)
        source = FittedTruth(fit_truth(lists, kind), lists)
        yield Protocol(f"{data}, truth of every item", "production", source, model, LEARNERS, {}, DELTAS, LISTS, kind)


# --- what came out ---------------------------------------------------------------------------------------------------

_AT = {"mle": None, "eb": 0.2, "exposure": 0.5, "hoeffding": 0.2, "ip-ips": 0.2}  # δ in the notes and the figure


def _ratios(results: list[Results]) -> Iterator[Ratio]:
    """Every other reading against ours, click models first."""
    ours = {_place(result): result for result in results if "," not in result.protocol.label}
    for result in results:
        model, logging, n = _place(result)
        if "," in result.protocol.label:
            for arm in result.protocol.arms:
                pair = paired_ratio(result.of(*arm), ours[model, logging, n].of(*arm))
                yield Ratio(result.protocol.label, model, *arm, logging, n, *pair)
    for (model, logging, n), result in ours.items():
        for label, delta in result.protocol.arms:
            method, _, reading = label.partition(", ")
            if reading:
                pair = paired_ratio(result.of(label, delta), result.of(method, delta))
                yield Ratio(label, model, method, delta, logging, n, *pair)


def _place(result: Results) -> tuple[str, str, int]:
    """What two readings must share to be compared: click model, logging, lists."""
    protocol = result.protocol
    return protocol.label.partition(", ")[0], protocol.logging, protocol.n


def _notes(ratios: list[Ratio]) -> Iterator[str]:
    """One sentence for each reading."""
    yield (
        "Each other reading multiplies the error by the numbers below, on the same logs: above 1 ours is better. "
        "After ± stands one paired standard error; exposure is at δ = 0.5, everything else at δ = 0.2. An item "
        "that a list repeats counts once, at its first place."
    )
    for reading in dict.fromkeys(ratio.reading for ratio in ratios):
        places: dict[str, list[Ratio]] = {}
        for ratio in sorted(ratios, key=lambda ratio: -ratio.n):
            if ratio.reading == reading and ratio.delta == _AT[ratio.method]:
                places.setdefault(f"{ratio.n:,} {ratio.logging} lists", []).append(ratio)
        yield f"{reading}: {'; '.join(f'{_words(own)} on {place}' for place, own in places.items())}."


def _words(ratios: list[Ratio]) -> str:
    """Ratios, and whose they are: of methods where the click model is read otherwise, else of click models."""
    if {_number(ratio.ratio, ratio.se) for ratio in ratios} == {"1.00 ± 0.00"}:
        return "no change"
    names = [ratio.method if ratio.reading.startswith(ratio.model) else ratio.model for ratio in ratios]
    return ", ".join(f"{_number(one.ratio, one.se)} ({name})" for name, one in zip(names, ratios, strict=True))


def _number(value: float, se: float) -> str:
    if np.isnan(value):
        return "no number, for ours has no error,"
    return f"{value:.2f}" if np.isnan(se) else f"{value:.2f} ± {se:.2f}"


def _truth_notes(compared: list[Results], truth: list[Results]) -> Iterator[str]:
    """How much pessimism gains by either truth: their errors themselves are of different lists."""
    frequent = {_place(result): result for result in compared}
    for every in truth:
        kind = every.protocol.label
        gains = [
            _number(*paired_ratio(result.of("eb", 0.2), result.of("mle")))
            for result in (every, frequent[_place(every)])
        ]
        yield (
            f"{kind}, truth of every item: eb at δ = 0.2 has {gains[0]} times the error of mle; "
            f"with the truth of frequent items it has {gains[1]} times."
        )


def _shown(result: Results, method: str) -> Iterator[Row]:
    """The rows of a method that the figure has room for: a panel for each click model, a line for each reading."""
    model, _, reading = result.protocol.label.partition(", ")
    if result.protocol.n != LISTS or model not in OURS:
        return
    for row in result.rows():
        name, _, other = row.method.partition(", ")
        if (name, row.delta) == (method, _AT[method]):
            # In brackets: the figure gives all readings of a method the colour of that method.
            line = f"{method}({reading or other})" if reading or other else method
            yield replace(row, model=model, method=line, delta=None)


def _for_json(ratio: Ratio) -> dict[str, Any]:
    columns = ratio._asdict()
    return {name: None if value != value else value for name, value in columns.items()}
