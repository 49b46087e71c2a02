"""How a claim is tried on a table: under each set of conditions it holds, fails, depends or is unclear.

"For almost any δ" is for 14 of the paper's 16 (7 of 8), "for most" is for more than half. What a check makes of that
stands in its criterion, and that in the page of claims.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from prudent.research.comparing import (
    MOST_DELTAS,
    Order,
    Panel,
    Table,
    Word,
    between,
    compare,
    judge,
    nearest,
    show,
)
from prudent.research.table import paired_ratio

LCBS = ("bayes", "eb", "hoeffding")  # the paper's bounds; exposure is ours
LINEAR = ("ip-ips", "pi")  # baselines that take the value of a list for a sum over its items
BASELINES = ("ips", *LINEAR)
LEVEL = 0.2  # the δ that Sec. 8.3 settles on
SIMILAR = 1.25  # errors that differ by a smaller factor are similar, and by a larger one considerably different


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
    each: Callable[[Table], Iterator[Cell]]

    def cells(self, table: Table) -> list[Cell]:
        """What became of the claim under each set of conditions of the table."""
        return list(self.each(table))


# --- kinds of checks -------------------------------------------------------------------------------------------------

Label = Callable[[Panel], str]


def _model(panel: Panel) -> str:
    return panel.model


def number_of_queries(panel: Panel) -> str:
    """The part of the name of its data that says how many."""
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
            level = nearest(deltas, LEVEL)
            best = min((panel.at(other, level) for other in others), key=lambda errors: float(errors.mean()))
            measured = f"{orders.count('lower')}/{len(deltas)} {show(paired_ratio(panel.at(method, level), best))}"
            yield Cell((panel.logging, label(panel), method), judge(orders, share), measured)

    extent = "at least 7 of 8 values" if share > MOST_DELTAS else "more than half of the values"
    names = "the MLE" if tuple(others) == ("mle",) else f"each of {', '.join(others)}"
    return Check(
        f"Holds if the error is lower than that of {names} for {extent} of δ; fails if it is the same or higher for "
        + ("more than half" if share > MOST_DELTAS else "half or more")
        + f". Numbers: for how many δ it is lower, and its ratio to the lowest of the others at δ = {LEVEL:g}.",
        cells,
    )


def higher_than_mle(methods: Sequence[str], loggings: Sequence[str]) -> Check:
    """Methods that do harm at most δ."""

    def cells(table: Table) -> Iterator[Cell]:
        for panel, method in _pairs(table, methods, ("mle",)):
            if panel.logging in loggings:
                deltas = panel.deltas(method)
                orders = [compare(panel.at("mle", d), panel.at(method, d)) for d in deltas]
                ratio = paired_ratio(panel.at(method, panel.near(method, LEVEL)), panel.at("mle", None))
                measured = f"{orders.count('lower')}/{len(deltas)} {show(ratio)}"
                yield Cell((panel.logging, panel.model, method), judge(orders, MOST_DELTAS), measured)

    return Check(
        "Holds if the error is higher than the MLE's for more than half of the values of δ; fails if it is the same or "
        f"lower for half or more. Numbers: for how many δ it is higher, and its ratio to the MLE's at δ = {LEVEL:g}.",
        cells,
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
                ratio = paired_ratio(errors, panel.best("mle"))
                yield Cell((panel.logging, panel.model, method), between(ratio, len(errors), low, high), show(ratio))

    limits = f"at most {high:g}" if low == 0 else f"at least {low:g}" if high == np.inf else f"from {low:g} to {high:g}"
    return Check(
        f"Holds if the error{'' if level is None else f' at δ = {level:g}'} is {limits} times the MLE's, by two "
        "standard errors; fails if it is not, by as much. Numbers: that ratio"
        + (", at the δ that is best for the method." if level is None else "."),
        cells,
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
