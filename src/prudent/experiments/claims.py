"""What the paper says came out, sentence by sentence, against what comes out here.

A claim is tried on the tables that `prudent reproduce` left in a folder. Errors of two methods are compared repetition
by repetition, since both saw the same logs. At one δ a method is

- *lower* or *higher* than another if the mean difference is more than two paired standard errors from zero;
- *the same* if it is not, and two standard errors away it would still be within a tenth of the other's error;
- otherwise *unclear*: more repetitions would tell.

With few repetitions two standard errors are too few: their place is taken by as many as Student's t needs for the same
confidence (4.5 for 3 repetitions, 2.9 for 5, 2.0 from 100 on).

"For almost any δ" is for 14 of the paper's 16 (7 of 8), "for most" is for more than half. What a check makes of that
stands in its criterion, and that in the page of claims. No verdict is written down anywhere: all are computed.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise, permutations
from math import ceil, isnan, nan
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr, stdtrit

from prudent.arrays import FloatArray
from prudent.experiments.table import Arm, read_repetitions, standard_error, write_texts
from prudent.files import make_folder, manifest_path, replacing

Word = Literal["holds", "fails", "depends", "unclear"]
Order = Literal["lower", "higher", "same", "unclear"]

MARKS: Mapping[Word, str] = {"holds": "✓", "fails": "✗", "depends": "~", "unclear": "?"}

LCBS = ("bayes", "eb", "hoeffding")  # the paper's bounds; exposure is ours
LINEAR = ("ip-ips", "pi")  # rivals that take the value of a list for a sum over its items
RIVALS = ("ips", *LINEAR)
ALMOST_ANY, MOST = 7 / 8, 1 / 2
LEVEL = 0.2  # the δ that Sec. 8.3 settles on
TINY = 1e-12  # below it, a difference is rounding
NEAR = 0.1  # errors nearer than this share of one another are the same
SIMILAR = 1.25  # errors that differ by a smaller factor are similar, and by a larger one considerably different


# --- what a check is given -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Panel:
    """One panel of a figure: the errors of every method at every δ, on the same logs."""

    data: str
    logging: str
    model: str
    n: int
    errors: Mapping[tuple[str, float | None], FloatArray]

    def has(self, *methods: str) -> bool:
        """Whether all of them were measured."""
        return set(methods) <= {method for method, _ in self.errors}

    def deltas(self, *methods: str) -> list[float | None]:
        """The values of δ of these methods; one that is None where none of them has any."""
        found = {delta for method, delta in self.errors if method in methods and delta is not None}
        return [*sorted(found)] or [None]

    def at(self, method: str, delta: float | None) -> FloatArray:
        """The errors of a method at one δ, or of one that knows no δ."""
        return self.errors[(method, delta) if (method, delta) in self.errors else (method, None)]

    def near(self, method: str, level: float = LEVEL) -> float | None:
        """The δ of a method that is nearest to a level."""
        return min(self.deltas(method), key=lambda delta: abs((delta or 0) - level))

    def best(self, *methods: str) -> FloatArray:
        """The errors of the best of these methods at the δ that is best for it, on average."""
        found = [self.at(method, delta) for method in methods for delta in self.deltas(method)]
        return min(found, key=lambda errors: float(errors.mean()))


@dataclass(frozen=True, eq=False)
class Table:
    """The result of one experiment on one set of data."""

    panels: Sequence[Panel]
    facts: Mapping[str, Any] = field(default_factory=dict)  # of its manifest

    @property
    def data(self) -> str:
        """What all panels have in common of the names of their data."""
        names = [panel.data.split(", ") for panel in self.panels]
        same = [words[0] for words in zip(*names, strict=False) if len(set(words)) == 1]
        return ", ".join(same) or names[0][0]


def read_table(path: Path) -> Table:
    """The table of ``NAME.repetitions.parquet``, and what the manifest of ``NAME.parquet`` knows besides."""
    manifest = manifest_path(path.with_name(path.name.replace(".repetitions", "")))
    facts = json.loads(manifest.read_text(encoding="utf-8")) if manifest.exists() else {}
    return make_table(read_repetitions(path), facts)


def make_table(errors: Mapping[Arm, FloatArray], facts: Mapping[str, Any] | None = None) -> Table:
    """Panels from the errors of every arm."""
    panels: dict[tuple[str, str, str, int], dict[tuple[str, float | None], FloatArray]] = {}
    for arm, of in errors.items():
        panels.setdefault((arm.data, arm.logging, arm.model, arm.n), {})[arm.method, arm.delta] = of
    return Table([Panel(*key, errors=of) for key, of in panels.items()], facts or {})


# --- what a check gives back -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """What became of a claim under one set of conditions: logging, click model, method."""

    conditions: tuple[str, ...]
    word: Word
    measured: str
    on: str = "δ"  # where the word is depends


@dataclass(frozen=True)
class Check:
    """How a claim is tried."""

    criterion: str  # when it holds and when it fails, and what the numbers are
    cells: Callable[[Table], Sequence[Cell]]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, in our words."""

    sentence: str
    where: str
    experiments: tuple[str, ...]  # whose tables it is tried on
    check: Check | None  # none: no experiment here could tell
    why_not: str = ""  # where there is no check


@dataclass(frozen=True)
class Verdict:
    """A claim after a trial."""

    claim: str
    where: str
    data: str
    experiment: str
    measured: str
    verdict: str  # begins with holds, fails, depends, unclear or not tried

    @property
    def word(self) -> str:
        """The verdict without its conditions."""
        return self.verdict.partition(":")[0].partition(" on ")[0]


def sum_up(cells: Sequence[Cell]) -> str:
    """One verdict for all conditions; where they differ, it says which conditions make the difference.

    >>> sum_up([Cell(("production", "cm"), "holds", ""), Cell(("uniform", "cm"), "fails", "")])
    'depends: production holds; uniform fails'
    """
    words = {cell.word for cell in cells}
    if len(words) == 1:
        on = {cell.on for cell in cells}
        return f"depends on {on.pop()}" if words == {"depends"} and len(on) == 1 else words.pop()
    head = "unclear" if len(words - {"unclear"}) == 1 else "depends"
    orders = permutations(_that_vary([cell.conditions for cell in cells]))
    text = min((_told([(tuple(c.conditions[i] for i in order), c.word) for c in cells]) for order in orders), key=len)
    return f"{head}: {text if len(text) <= 100 else _counted(cells)}"


def _that_vary(conditions: Sequence[tuple[str, ...]]) -> list[int]:
    return [i for i, values in enumerate(zip(*conditions, strict=True)) if len(set(values)) > 1]


def _told(cells: Sequence[tuple[tuple[str, ...], str]]) -> str:
    """The words by their conditions, with what is the same for several conditions said once."""
    if len({word for _, word in cells}) == 1:
        return cells[0][1]
    parts: dict[str, list[str]] = {}
    for value in dict.fromkeys(conditions[0] for conditions, _ in cells):
        below = [(conditions[1:], word) for conditions, word in cells if conditions[0] == value]
        parts.setdefault(_told(below), []).append(value)
    return "; ".join(
        f"{', '.join(values)} {f'({below})' if ' ' in below else below}" for below, values in parts.items()
    )


def _counted(cells: Sequence[Cell]) -> str:
    """How often each word was said, under each of the first conditions."""
    parts = []
    for value in dict.fromkeys(cell.conditions[0] for cell in cells):
        words = [cell.word for cell in cells if cell.conditions[0] == value]
        each = ", ".join(f"{word} {words.count(word)}" for word in MARKS if word in words)
        parts.append(f"{value} {each} of {len(words)}")
    return "; ".join(parts)


def tell(cells: Iterable[Cell]) -> str:
    """What was measured under each set of conditions.

    >>> tell([Cell(("production", "cm", method), "holds", "16/16") for method in ("bayes", "eb")])
    'production cm: bayes ✓ 16/16, eb ✓ 16/16'
    """
    cells, parts, before = list(cells), [], ""
    if len({cell.conditions[-1] for cell in cells}) == 1 and all(len(cell.conditions) > 2 for cell in cells):
        cells = [replace(cell, conditions=cell.conditions[:-1]) for cell in cells]  # it goes without saying
    for (first, *more), group in groupby(cells, key=lambda cell: cell.conditions[:-1] or ("",)):
        head = " ".join([first] * (first != before) + more)
        told = ", ".join(f"{cell.conditions[-1]} {MARKS[cell.word]} {cell.measured}" for cell in group)
        parts.append(f"{head}: {told}" if head else told)
        before = first
    return "; ".join(parts)


# --- comparing -------------------------------------------------------------------------------------------------------


def compare(errors: FloatArray, others: FloatArray) -> Order:
    """Whether errors are lower than those of another method on the same logs."""
    mean, twice = _difference(errors, others)
    if abs(mean) > twice:
        return "lower" if mean < 0 else "higher"
    return "same" if abs(mean) + twice <= NEAR * float(others.mean()) else "unclear"


def _difference(errors: FloatArray, others: FloatArray) -> tuple[float, float]:
    """Mean, and two standard errors of it."""
    difference = errors - others
    difference = np.where(np.abs(difference) < TINY, 0.0, difference)  # the same lists, added up in another order
    return float(difference.mean()), two(len(difference)) * standard_error(difference)


def two(repetitions: int) -> float:
    """How many standard errors are as good as two of many repetitions.

    >>> [round(two(n), 1) for n in (3, 5, 20, 500)]
    [4.5, 2.9, 2.1, 2.0]
    """
    return float(stdtrit(repetitions - 1, ndtr(2.0))) if repetitions > 1 else nan


def ratio(errors: FloatArray, others: FloatArray) -> tuple[float, float]:
    """Of two mean errors on the same logs, with its standard error."""
    base = float(others.mean())
    if not base > TINY:
        return nan, nan
    found = float(errors.mean()) / base
    return found, standard_error(errors - found * others) / base


def judge(orders: Sequence[Order], share: float) -> Word:
    """Whether enough of them are lower; it fails where too many are not, whatever the unclear ones may be."""
    needed = ceil(share * len(orders)) if share > MOST else len(orders) // 2 + 1
    lower, unclear = orders.count("lower"), orders.count("unclear")
    not_lower = len(orders) - lower - unclear
    too_many = len(orders) // 2 + 1 if share > MOST else len(orders) - needed + 1
    if lower >= needed:
        return "holds"
    if not_lower >= too_many:
        return "fails"
    return "unclear" if lower + unclear >= needed or not_lower + unclear >= too_many else "depends"


def between(found: tuple[float, float], repetitions: int, low: float, high: float) -> Word:
    """Whether a ratio is between two limits, by more than two standard errors."""
    value, twice = found[0], two(repetitions) * found[1]
    if (low == 0 or low <= value - twice) and value + twice <= high:  # no error is below 0
        return "holds"
    return "fails" if value + twice < low or value - twice > high else "unclear"


def _show(found: tuple[float, float]) -> str:
    return "–" if isnan(found[0]) else f"{found[0]:.2f}±{found[1]:.2f}"


# --- kinds of checks -------------------------------------------------------------------------------------------------

Label = Callable[[Panel], str]


def _model(panel: Panel) -> str:
    return panel.model


def _size(panel: Panel) -> str:
    return panel.data.rpartition(", ")[2]


def lower_than(
    others: Sequence[str],
    share: float,
    methods: Sequence[str] = LCBS,
    models: Sequence[str] = (),
    label: Label = _model,
) -> Check:
    """Methods whose error is below that of all others, at the same δ, for a share of all δ."""

    def cells(table: Table) -> Iterator[Cell]:
        for panel, method in _pairs(table, methods, others, models):
            deltas = panel.deltas(method, *others)
            orders = [_worst([compare(panel.at(method, d), panel.at(other, d)) for other in others]) for d in deltas]
            level = panel.near(method) if panel.near(method) is not None else _level(deltas)
            best = min((panel.at(other, level) for other in others), key=lambda errors: float(errors.mean()))
            measured = f"{orders.count('lower')}/{len(deltas)} {_show(ratio(panel.at(method, level), best))}"
            yield Cell((panel.logging, label(panel), method), judge(orders, share), measured)

    extent = "at least 7 of 8 values" if share > MOST else "more than half of the values"
    names = "the MLE" if tuple(others) == ("mle",) else f"each of {', '.join(others)}"
    return Check(
        f"Holds if the error is lower than that of {names} for {extent} of δ; fails if it is the same or higher for "
        + ("more than half" if share > MOST else "half or more")
        + f". Numbers: for how many δ it is lower, and its ratio to the lowest of the others at δ = {LEVEL:g}.",
        lambda table: list(cells(table)),
    )


def higher_than_mle(methods: Sequence[str], loggings: Sequence[str]) -> Check:
    """Methods that do harm at most δ."""

    def cells(table: Table) -> Iterator[Cell]:
        for panel, method in _pairs(table, methods, ("mle",)):
            if panel.logging in loggings:
                deltas = panel.deltas(method)
                orders = [compare(panel.at("mle", d), panel.at(method, d)) for d in deltas]
                found = ratio(panel.at(method, panel.near(method)), panel.at("mle", None))
                measured = f"{orders.count('lower')}/{len(deltas)} {_show(found)}"
                yield Cell((panel.logging, panel.model, method), judge(orders, MOST), measured)

    return Check(
        "Holds if the error is higher than the MLE's for more than half of the values of δ; fails if it is the same or "
        f"lower for half or more. Numbers: for how many δ it is higher, and its ratio to the MLE's at δ = {LEVEL:g}.",
        lambda table: list(cells(table)),
    )


def ratio_within(
    methods: Sequence[str],
    low: float,
    high: float,
    models: Sequence[str] = (),
    level: float | None = LEVEL,
    loggings: Sequence[str] = (),
) -> Check:
    """Methods whose error, at one δ or at their best, is some share of the MLE's."""

    def cells(table: Table) -> Iterator[Cell]:
        for panel, method in _pairs(table, methods, ("mle",), models):
            if not loggings or panel.logging in loggings:
                errors = panel.best(method) if level is None else panel.at(method, panel.near(method, level))
                found = ratio(errors, panel.best("mle"))
                yield Cell((panel.logging, panel.model, method), between(found, len(errors), low, high), _show(found))

    limits = f"at most {high:g}" if low == 0 else f"at least {low:g}" if high == np.inf else f"from {low:g} to {high:g}"
    return Check(
        f"Holds if the error{'' if level is None else f' at δ = {level:g}'} is {limits} times the MLE's, by two "
        "standard errors; fails if it is not, by as much. Numbers: that ratio"
        + (", at the δ that is best for the method." if level is None else "."),
        lambda table: list(cells(table)),
    )


def _pairs(
    table: Table, methods: Sequence[str], others: Sequence[str], models: Sequence[str] = ()
) -> Iterator[tuple[Panel, str]]:
    """Panels of these models, with each method that they have measured along with all others."""
    for panel in table.panels:
        if not models or panel.model in models:
            yield from ((panel, method) for method in methods if panel.has(method, *others))


def _worst(orders: Sequence[Order]) -> Order:
    rank: tuple[Order, ...] = ("higher", "same", "unclear", "lower")
    return min(orders, key=rank.index)


def _level(deltas: Sequence[float | None]) -> float | None:
    return min(deltas, key=lambda delta: abs((delta or 0) - LEVEL))


# --- checks that are made for one claim ------------------------------------------------------------------------------


def _rivals_keep_up(table: Table) -> list[Cell]:
    found = []
    for panel in table.panels:
        methods = [method for method in LINEAR if panel.has(method)]
        bounds = [method for method in LCBS if panel.has(method)]
        if panel.model == "pbm" and methods and bounds:
            of = ratio(panel.best(*methods), panel.best(*bounds))
            found.append(Cell((panel.logging,), between(of, len(panel.best(*methods)), 0, SIMILAR), _show(of)))
    return found


rivals_keep_up = Check(
    f"Holds if the best linear rival, at its best clip, has at most {SIMILAR:g} times the error of the best bound "
    "at its best δ, by two standard errors; fails if it has more, by as much. Numbers: that ratio.",
    _rivals_keep_up,
)


def _gain_mostly_at_one(table: Table) -> list[Cell]:
    found = []
    for panel in table.panels:
        if not panel.has("eb", "bayes") or 1.0 not in panel.deltas("eb"):
            continue
        gains = {delta: panel.at("bayes", delta) - panel.at("eb", delta) for delta in panel.deltas("eb")}
        best = max(gains, key=lambda delta: float(gains[delta].mean()))
        order = compare(panel.at("eb", 1.0), panel.at("bayes", 1.0))
        behind, twice = _difference(gains[best], gains[1.0])
        word: Word = "unclear" if order == "unclear" else "fails"
        if order == "lower":
            word = "holds" if best == 1.0 or behind <= twice else "fails"
        of = ratio(panel.at("eb", 1.0), panel.at("bayes", 1.0))
        found.append(Cell((panel.logging, panel.model), word, f"{_show(of)}, largest at δ = {best:g}"))
    return found


gain_mostly_at_one = Check(
    "Holds if at δ = 1 the error of eb is lower than that of bayes, and no other δ has a larger gain by two standard "
    "errors; fails otherwise. Numbers: eb's error as a share of bayes' at δ = 1, and the δ with the largest gain.",
    _gain_mostly_at_one,
)


def _comparable(table: Table) -> list[Cell]:
    found = []
    for logging in dict.fromkeys(panel.logging for panel in table.panels):
        panels = [panel for panel in table.panels if panel.logging == logging]
        for panel in panels[1:]:
            for method in LCBS:
                if panels[0].has(method, "mle") and panel.has(method, "mle"):
                    few, many = (_over_all_delta(one, method) for one in (panels[0], panel))
                    change = many[0] - few[0], float(np.hypot(many[1], few[1]))
                    word = between(change, len(panel.best("mle")), -np.inf, 0.15)
                    found.append(Cell((logging, _size(panel), method), word, f"{few[0]:.2f} → {_show(many)}"))
    return found


def _over_all_delta(panel: Panel, method: str) -> tuple[float, float]:
    errors = np.mean([panel.at(method, delta) for delta in panel.deltas(method)], axis=0)
    return ratio(errors, panel.best("mle"))


comparable = Check(
    "Holds if the error as a share of the MLE's, averaged over δ, is at most 0.15 above that with the ten most "
    "frequent queries, by two standard errors; fails if it is further above, by as much. Numbers: that share with "
    "ten, and with more.",
    _comparable,
)


def _chosen_delta(table: Table) -> list[Cell]:
    found = []
    for model, of in table.facts.get("past", {}).items():
        if LEVEL in of.get("bayes", {}).get("deltas", []):
            past = of["bayes"]
            above, se = (past[name][past["deltas"].index(LEVEL)] for name in ("above", "se"))
            best = past["deltas"][past["above"].index(0)]
            word: Word = "holds" if best == LEVEL else "fails" if above > two(past["repetitions"]) * se else "unclear"
            found.append(Cell((model,), word, f"δ = {best:g}"))
    return found


chosen_delta = Check(
    f"Holds if {LEVEL:g} is the δ at which bayes had the lowest mean error on the past; fails if its error is above "
    "the lowest by two paired standard errors. Numbers: the δ of the lowest.",
    _chosen_delta,
)


def _gains(table: Table) -> Iterator[tuple[str, dict[int, FloatArray]]]:
    """Of each model and n: how far the error of bayes, at the δ of the past, is below the MLE's."""
    for model, pairs in _mle_and_bayes(table):
        yield model, {n: mle - bayes for n, (mle, bayes) in pairs.items()}


def _mle_and_bayes(table: Table) -> Iterator[tuple[str, dict[int, tuple[FloatArray, FloatArray]]]]:
    """The errors behind these, of the MLE and of bayes."""
    for model, of in table.facts.get("delta", {}).items():
        panels = [panel for panel in table.panels if panel.model == model and panel.has("mle", "bayes")]
        if "bayes" in of and panels:
            yield model, {panel.n: (panel.at("mle", None), panel.at("bayes", of["bayes"])) for panel in panels}


def _beats_mle_later(table: Table) -> list[Cell]:
    found = []
    for model, pairs in _mle_and_bayes(table):
        orders = [compare(bayes, mle) for mle, bayes in pairs.values()]
        found.append(Cell((model,), judge(orders, MOST), f"{orders.count('lower')}/{len(orders)}", "n"))
    return found


beats_mle_later = Check(
    "Holds if bayes, at the δ chosen on the past, has a lower error than the MLE on later data for more than half "
    "of the sample sizes n; fails if it has the same or a higher one for half or more. Numbers: for how many n it "
    "is lower.",
    _beats_mle_later,
)


def _peak(gains: Mapping[int, FloatArray]) -> int:
    return max(gains, key=lambda n: float(gains[n].mean()))


def _beyond(more: FloatArray, less: FloatArray) -> float:
    """How far one mean is above another, of other logs, in standard errors of the difference; above 2 it is clear."""
    spread = float(np.hypot(standard_error(more), standard_error(less))) * two(min(len(more), len(less))) / 2
    distance = float(more.mean() - less.mean())
    return distance / spread if spread > 0 else nan if isnan(spread) else np.inf * distance if distance else 0.0


def _largest_at(table: Table) -> list[Cell]:
    found = []
    for model, gains in _gains(table):
        peak, claimed = _peak(gains), 100_000
        if claimed in gains:
            behind = _beyond(gains[peak], gains[claimed])
            word: Word = "holds" if peak == claimed else "unclear" if not behind > 2 else "fails"
            found.append(Cell((model,), word, _gain(peak, gains) + f", {_gain(claimed, gains)}"))
    return found


def _gain(n: int, gains: Mapping[int, FloatArray]) -> str:
    return f"{gains[n].mean():.4f}±{standard_error(gains[n]):.4f} at n = {n:,}"


largest_at = Check(
    "Holds if the gain of bayes over the MLE is largest at n = 100,000; fails if it is larger elsewhere by two "
    "standard errors. Numbers: MLE's error minus that of bayes, where it is largest, and at 100,000.",
    _largest_at,
)


def _sweet_spot(table: Table) -> list[Cell]:
    found = []
    for model, gains in _gains(table):
        peak, ends = _peak(gains), (min(gains), max(gains))
        beyond = [_beyond(gains[peak], gains[end]) for end in ends]
        word: Word = "holds" if all(b > 2 for b in beyond) else "unclear"
        if peak in ends or not gains[peak].mean() > 0:
            word = "fails"
        found.append(Cell((model,), word, ", ".join(_gain(n, gains) for n in (ends[0], peak, ends[1]))))
    return found


sweet_spot = Check(
    "Holds if the gain of bayes over the MLE is largest between the smallest and the largest n, and larger than "
    "at both by two standard errors; fails if it is largest at one of them, or nowhere above zero. Numbers: MLE's "
    "error minus that of bayes at the smallest n, where it is largest, and at the largest n.",
    _sweet_spot,
)


def _grid(m: int) -> str:
    return f"eb, {m} × {m} grid"


def _spread(panel: Panel, method: str) -> FloatArray:
    """The error at the worst δ minus that at the best, repetition by repetition."""
    by_delta = sorted(panel.deltas(method), key=lambda delta: float(panel.at(method, delta).mean()))
    return panel.at(method, by_delta[-1]) - panel.at(method, by_delta[0])


def _more_robust(table: Table) -> list[Cell]:
    found = []
    for panel in table.panels:
        grids = [m for m in (1, 2, 5, 10) if panel.has(_grid(m))]
        if grids[:1] != [1] or grids[-1] != 10:
            continue
        spreads = [_spread(panel, _grid(m)) for m in grids]
        whole = compare(spreads[-1], spreads[0])
        rises = any(compare(b, a) == "higher" for a, b in pairwise(spreads))
        word: Word = "unclear" if whole == "unclear" else "fails"
        if whole == "lower":
            word = "depends" if rises else "holds"
        measured = " → ".join(f"{spread.mean():.4f}±{standard_error(spread):.4f}" for spread in spreads)
        found.append(Cell((panel.logging,), word, measured, "the grid"))
    return found


more_robust = Check(
    "Spread is the error at the worst δ minus that at the best. Holds if it is lower with the 10 × 10 grid than with "
    "1 × 1, and no step between them makes it higher; depends on the grid if a step does; fails if it is not lower. "
    "Numbers: the spread with grids of 1, 2, 5 and 10 values.",
    _more_robust,
)


def _same_beyond_ten(table: Table) -> list[Cell]:
    found = []
    for logging, priors in table.facts.get("priors", {}).items():
        ten, twenty = priors.get(_grid(10), {}), priors.get(_grid(20), {})
        logs = sum(ten.values())
        if logs and twenty:
            same = sum(min(times, twenty.get(prior, 0)) for prior, times in ten.items())
            word: Word = "holds" if same == logs else "fails" if 2 * same < logs else "depends"
            found.append(Cell((logging,), word, f"{same} of {logs}", "the log"))
    return found


same_beyond_ten = Check(
    "Holds if grids of 10 and of 20 values find the same priors in all the logs that were looked at; fails if in fewer "
    "than half. Numbers: in how many.",
    _same_beyond_ten,
)


def _prior_found(table: Table) -> list[Cell]:
    found = []
    for logging, of in table.facts.get("priors", {}).items():
        priors: dict[str, int] = of.get(_grid(10), {})
        logs, hits = sum(priors.values()), priors.get("Beta(1, 8)", 0)
        if logs:
            word: Word = "holds" if 2 * hits > logs else "fails" if 10 * hits < logs else "depends"
            mostly, times = next(iter(priors.items()))
            found.append(Cell((logging,), word, f"{hits} of {logs}, mostly {mostly} ({times})", "the log"))
    return found


prior_found = Check(
    "Holds if the 10 × 10 grid leads to Beta(1, 8) in more than half of the logs; fails if in fewer than a tenth. The "
    "stand-in's attractions are drawn from Beta(1, 8), so with uniform lists it only shows that the search works. "
    "Numbers: in how many logs, and what was found most often.",
    _prior_found,
)


def _better_logging(table: Table) -> list[Cell]:
    found = []
    of = {(panel.logging, panel.model): panel for panel in table.panels if panel.has(*LCBS)}
    for logging, model in of:
        if logging == "quality 2" and ("quality 0", model) in of:
            for method in LCBS:
                good, blind = (of[name, model] for name in ("quality 2", "quality 0"))
                errors = [panel.at(method, panel.near(method)) for panel in (good, blind)]
                beyond = _beyond(errors[1], errors[0])
                word: Word = "holds" if beyond > 2 else "fails" if beyond < -2 else "unclear"
                measured = " against ".join(f"{e.mean():.4f}±{standard_error(e):.4f}" for e in errors)
                found.append(Cell((model, method), word, measured))
    return found


better_logging = Check(
    f"Holds if the error at δ = {LEVEL:g} is lower with a good production ranker (quality 2) than with uniform lists "
    "(quality 0), by two standard errors; fails if it is higher. Numbers: both errors.",
    _better_logging,
)


# --- the claims ------------------------------------------------------------------------------------------------------

_LABELS = ("yahoo", "mslr", "istella")
_WRONG, _OPPOSITE = "dcm on clicks of pbm", "pbm on clicks of dcm"
_HARMFUL = ("quality -2", "quality -1")

CLAIMS: Sequence[Claim] = (
    Claim(
        "Acting on lower bounds outperforms the MLE and all IPS methods.",
        "Abstract, Sec. 1 and 9",
        ("top-queries", *_LABELS),
        lower_than(("mle", *RIVALS), MOST),
    ),
    Claim(
        "Lower bounds err less where logging is near optimal than where it is uniform.",
        "Sec. 7",
        ("logging-quality",),
        better_logging,
    ),
    Claim(
        "For almost any δ, in all click models, the error is lower than the MLE's.",
        "Sec. 8.3, top 10 queries; Sec. 9",
        ("top-queries",),
        lower_than(("mle",), ALMOST_ANY),
    ),
    Claim(
        "In cm and dcm, lower bounds outperform all rivals that assume linearity.",
        "Sec. 8.3, top 10 queries",
        ("top-queries",),
        lower_than(LINEAR, ALMOST_ANY, models=("cm", "dcm")),
    ),
    Claim(
        "In pbm, the linear rivals can perform about as well as lower bounds.",
        "Sec. 8.3, top 10 queries",
        ("top-queries",),
        rivals_keep_up,
    ),
    Claim(
        "A prior fitted by empirical Bayes improves upon Beta(1, 1).",
        "Sec. 8.3, top 10 queries",
        ("top-queries",),
        lower_than(("bayes",), MOST, methods=("eb",)),
    ),
    Claim(
        "The fitted prior improves upon Beta(1, 1) mostly at δ = 1.",
        "App. C, finding prior",
        ("top-queries",),
        gain_mostly_at_one,
    ),
    Claim(
        "The same is seen on the most frequent query alone.",
        "App. C, most frequent query",
        ("top-query",),
        lower_than(("mle",), ALMOST_ANY),
    ),
    Claim(
        "With less frequent queries too, lower bounds have a lower error than the MLE (dcm).",
        "App. C, less frequent queries",
        ("less-frequent",),
        lower_than(("mle",), MOST, label=_size),
    ),
    Claim(
        "With less frequent queries the improvements are comparable (dcm).",
        "App. C, less frequent queries",
        ("less-frequent",),
        comparable,
    ),
    Claim(
        "With less frequent queries cm and pbm behave alike.",
        "App. C, less frequent queries",
        (),
        None,
        "less-frequent has dcm only",
    ),
    Claim(
        "The δ that minimises the Bayesian bound's error on the past is 0.2.",
        "Sec. 8.3, more realistic comparison",
        ("sample-size",),
        chosen_delta,
    ),
    Claim(
        "With δ learned from the past, the Bayesian bound beats the MLE on later data.",
        "Sec. 8.3, more realistic comparison",
        ("sample-size",),
        beats_mle_later,
    ),
    Claim(
        "The largest improvement is at n = 100,000.",
        "Sec. 8.3, more realistic comparison",
        ("sample-size",),
        largest_at,
    ),
    Claim(
        "There is a sweet spot: smaller and larger samples gain less.",
        "Sec. 8.3, more realistic comparison",
        ("sample-size",),
        sweet_spot,
    ),
    Claim(
        "Learning clicks of pbm by dcm, Bayesian bounds have half the MLE's error.",
        "Sec. 8.3, robustness",
        ("misspecified",),
        ratio_within(("bayes", "eb"), 0, 0.55, models=(_WRONG,)),
    ),
    Claim(
        "Learning clicks of pbm by dcm, linear rivals do better than the MLE and all bounds.",
        "Sec. 8.3, robustness",
        ("misspecified",),
        lower_than(("mle", *LCBS), MOST, methods=LINEAR, models=(_WRONG,)),
    ),
    Claim(
        "Learning clicks of dcm by pbm, the MLE is comparable to the other baselines.",
        "Sec. 8.3, robustness",
        ("misspecified",),
        ratio_within(RIVALS, 1 / SIMILAR, SIMILAR, models=(_OPPOSITE,), level=None),
    ),
    Claim(
        "Learning clicks of dcm by pbm, lower bounds consistently outperform all baselines.",
        "Sec. 8.3, robustness",
        ("misspecified",),
        lower_than(("mle", *RIVALS), ALMOST_ANY, models=(_OPPOSITE,)),
    ),
    Claim(
        "Lower bounds are more robust than the MLE to a wrong click model.",
        "Sec. 8.3, robustness; Sec. 9",
        ("misspecified",),
        lower_than(("mle",), MOST),
    ),
    Claim(
        "On Yahoo, MSLR and Istella, lower bounds outperform the MLE for most δ.",
        "Sec. 8.4",
        _LABELS,
        lower_than(("mle",), MOST),
    ),
    Claim(
        "On Yahoo, MSLR and Istella, lower bounds outperform the other baselines for most δ.",
        "Sec. 8.4",
        _LABELS,
        lower_than(RIVALS, MOST),
    ),
    Claim(
        "On Yahoo, MSLR and Istella, the improvements over the MLE are major: a fifth or more.",
        "Sec. 8.4",
        _LABELS,
        ratio_within(LCBS, 0, 0.8),
    ),
    Claim(
        "Other sample sizes and list lengths give similar results on these sets.",
        "Sec. 8.4",
        (),
        None,
        "no experiment here varies them",
    ),
    Claim(
        "With all ten positions the improvements are there, but less pronounced.",
        "Sec. 8.1",
        (),
        None,
        "all experiments here have four positions",
    ),
    Claim(
        "On real clicks of later days, Bayesian bounds outperform all baselines.",
        "App. C, cross-validation",
        ("cross-validation",),
        lower_than(("mle", *RIVALS), MOST, methods=("bayes", "eb")),
    ),
    Claim(
        "On real clicks of later days, lower bounds are still better than the MLE.",
        "App. C, cross-validation",
        ("cross-validation",),
        lower_than(("mle",), MOST),
    ),
    Claim(
        "There, linear rivals do considerably worse in cm and dcm.",
        "App. C, cross-validation",
        ("cross-validation",),
        ratio_within(LINEAR, SIMILAR, np.inf, models=("cm", "dcm"), level=None),
    ),
    Claim(
        "Other splits into earlier and later days do not change these results much.",
        "App. C, cross-validation",
        (),
        None,
        "the split is fixed here",
    ),
    Claim(
        "Larger grids for the prior make the error more robust against δ, up to ten values.",
        "App. C, finding prior",
        ("prior-grid",),
        more_robust,
    ),
    Claim(
        "Beyond ten values the same prior is found.",
        "App. C, finding prior",
        ("prior-grid",),
        same_beyond_ten,
    ),
    Claim(
        "The prior that is found for attraction is Beta(1, 8).",
        "App. C, finding prior",
        ("prior-grid",),
        prior_found,
    ),
    Claim(
        "The prior that is found for λ is Beta(1, 64).",
        "App. C, finding prior",
        (),
        None,
        "no prior is put on λ here",
    ),
    Claim(
        "With lists drawn uniformly the paper's bounds gain less than a tenth on the MLE.",
        "ours",
        ("top-queries", "logging-quality"),
        ratio_within(LCBS, 0.9, np.inf, loggings=("uniform", "quality 0")),
    ),
    Claim(
        "Where users' favourites were shown least, the paper's bounds do harm.",
        "ours",
        ("logging-quality",),
        higher_than_mle(LCBS, _HARMFUL),
    ),
    Claim(
        "exposure at δ = 0.5 has at most 1.1 times the MLE's error.",
        "ours",
        ("top-queries", "top-query", "misspecified", "cross-validation", *_LABELS, "logging-quality"),
        ratio_within(("exposure",), 0, 1.1, level=0.5),
    ),
)
"""In the order of the paper; the last ones are ours."""


# --- trying them -----------------------------------------------------------------------------------------------------


def try_claims(folders: Sequence[Path], claims: Sequence[Claim] = CLAIMS) -> list[Verdict]:
    """Every claim on every table of its experiments that is in one of the folders."""
    tables: dict[Path, Table] = {}  # each is read once
    found: list[Verdict] = []
    for claim in claims:
        said = len(found)
        for name in claim.experiments:
            for folder in folders:
                file = folder / f"{name}.repetitions.parquet"
                if claim.check is not None and file.exists():
                    table = tables[file] = tables.get(file) or read_table(file)
                    found.append(try_claim(claim, name, table))
        if len(found) == said:
            how = claim.why_not or f"run prudent reproduce {claim.experiments[0]} -o {folders[0]}"
            experiment = ", ".join(claim.experiments)
            found.append(Verdict(claim.sentence, claim.where, "", experiment, "", f"not tried: {how}"))
    return found


def folders_in(folder: Path) -> list[Path]:
    """A folder and those right inside it, where results may lie."""
    inside = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [folder, *(path for path in inside if not path.name.startswith("."))]


def try_claim(claim: Claim, experiment: str, table: Table) -> Verdict:
    """One claim on one table."""
    cells = claim.check.cells(table) if claim.check is not None else []
    verdict = sum_up(cells) if cells else "not tried: the table does not have what it takes"
    return Verdict(claim.sentence, claim.where, table.data, experiment, tell(cells), verdict)


def write_claims(verdicts: Sequence[Verdict], folder: Path) -> None:
    """Write ``claims.csv``, ``claims.parquet`` and ``claims.md``."""
    make_folder(folder)
    names = ("claim", "where", "data", "experiment", "measured", "verdict")
    write_texts({name: [getattr(verdict, name) for verdict in verdicts] for name in names}, folder / "claims.parquet")
    with replacing(folder / "claims.md") as part:
        part.write_text(f"# The claims of the paper\n\n{markdown(verdicts)}", encoding="utf-8")


def markdown(verdicts: Sequence[Verdict], claims: Sequence[Claim] = CLAIMS) -> str:
    """A table of verdicts, and below it what was measured and how it was judged."""
    criteria = {claim.sentence: claim.check.criterion for claim in claims if claim.check is not None}
    groups = [(sentence, list(of)) for sentence, of in groupby(verdicts, key=lambda verdict: verdict.claim)]
    lines = ["| | claim | where | tried on | verdict |", "|---|---|---|---|---|"]
    for number, (sentence, of) in enumerate(groups, 1):
        for i, one in enumerate(of):
            first = (str(number), sentence, one.where) if i == 0 else ("", "", "")
            on = f"{one.data} (`{one.experiment}`)" if one.data else ""
            lines.append(f"| {' | '.join(first)} | {on} | {one.verdict} |")
    lines += ["", "## What was measured", "", LEGEND, ""]
    for number, (sentence, of) in enumerate(groups, 1):
        if not any(one.measured for one in of):
            continue
        lines += [f"**{number}. {sentence}** {criteria.get(sentence, '')}", ""]
        lines += [f"- {one.data} (`{one.experiment}`), *{one.word}*: {one.measured}" for one in of]
        lines.append("")
    return "\n".join(lines)


LEGEND = (
    "Marks: ✓ holds, ✗ fails, ~ depends on δ (or on what else is said), ? too few repetitions to tell. "
    "Numbers after ± are one standard error, paired where both methods saw the same logs."
)
