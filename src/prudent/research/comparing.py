"""Comparing methods on the same logs: whose error is lower, and how sure that is.

Errors of two methods are compared repetition by repetition, since both saw the same logs. At one δ a method is

- *lower* or *higher* than another if the mean difference is more than two paired standard errors from zero;
- *the same* if it is not, and two standard errors away it would still be within a tenth of the other's error;
- otherwise *unclear*: more repetitions would tell.

With few repetitions two standard errors are too few: their place is taken by as many as Student's t needs for the same
confidence (4.5 for 3 repetitions, 2.9 for 5, 2.0 from 100 on).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, isnan
from pathlib import Path
from typing import Any, Literal

from prudent.base.arrays import FloatArray
from prudent.base.numerics.paired import paired_difference, two_sigma
from prudent.research.table import Arm, read_repetitions
from prudent.storage.manifest import Manifest

Word = Literal["holds", "fails", "depends", "unclear"]
Order = Literal["lower", "higher", "same", "unclear"]

ALMOST_ANY_DELTA, MOST_DELTAS = 7 / 8, 1 / 2
NEGLIGIBLE_SHARE = 0.1  # errors nearer than this share of one another are the same


# --- tables ----------------------------------------------------------------------------------------------------------


def nearest(deltas: Sequence[float | None], level: float) -> float | None:
    """The δ that is nearest to a level."""
    return min(deltas, key=lambda delta: abs((delta or 0) - level))


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
        deltas = {delta for method, delta in self.errors if method in methods and delta is not None}
        return [*sorted(deltas)] or [None]

    def at(self, method: str, delta: float | None) -> FloatArray:
        """The errors of a method at one δ, or of one that knows no δ."""
        return self.errors[(method, delta) if (method, delta) in self.errors else (method, None)]

    def near(self, method: str, level: float) -> float | None:
        """The δ of a method that is nearest to a level."""
        return nearest(self.deltas(method), level)

    def best(self, *methods: str) -> FloatArray:
        """The errors of the best of these methods at the δ that is best for it, on average."""
        candidates = [self.at(method, delta) for method in methods for delta in self.deltas(method)]
        return min(candidates, key=lambda errors: float(errors.mean()))


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
    manifest = Manifest.read(path.with_name(path.name.replace(".repetitions", "")), "experiment")
    facts = {} if manifest is None else {**manifest.settings, **manifest.results}
    return make_table(read_repetitions(path), facts)


def make_table(errors: Mapping[Arm, FloatArray], facts: Mapping[str, Any] | None = None) -> Table:
    """Panels from the errors of every arm."""
    panels: dict[tuple[str, str, str, int], dict[tuple[str, float | None], FloatArray]] = {}
    for arm, of_arm in errors.items():
        panels.setdefault((arm.data, arm.logging, arm.model, arm.n), {})[arm.method, arm.delta] = of_arm
    return Table([Panel(*key, errors=of_panel) for key, of_panel in panels.items()], facts or {})


# --- comparing -------------------------------------------------------------------------------------------------------


def compare(errors: FloatArray, others: FloatArray) -> Order:
    """Whether errors are lower than those of another method on the same logs."""
    mean, error = paired_difference(errors, others)
    twice = two_sigma(len(errors)) * error
    if abs(mean) > twice:
        return "lower" if mean < 0 else "higher"
    return "same" if abs(mean) + twice <= NEGLIGIBLE_SHARE * float(others.mean()) else "unclear"


def judge(orders: Sequence[Order], share: float) -> Word:
    """Whether enough of them are lower; it fails where too many are not, whatever the unclear ones may be."""
    needed = ceil(share * len(orders)) if share > MOST_DELTAS else len(orders) // 2 + 1
    lower, unclear = orders.count("lower"), orders.count("unclear")
    not_lower = len(orders) - lower - unclear
    too_many = len(orders) // 2 + 1 if share > MOST_DELTAS else len(orders) - needed + 1
    if lower >= needed:
        return "holds"
    if not_lower >= too_many:
        return "fails"
    return "unclear" if lower + unclear >= needed or not_lower + unclear >= too_many else "depends"


def between(ratio: tuple[float, float], repetitions: int, low: float, high: float) -> Word:
    """Whether a ratio is between two limits, by more than two standard errors."""
    value, twice = ratio[0], two_sigma(repetitions) * ratio[1]
    if (low == 0 or low <= value - twice) and value + twice <= high:  # no error is below 0
        return "holds"
    return "fails" if value + twice < low or value - twice > high else "unclear"


def show(ratio: tuple[float, float]) -> str:
    """A ratio with its standard error, as text."""
    return "–" if isnan(ratio[0]) else f"{ratio[0]:.2f}±{ratio[1]:.2f}"
