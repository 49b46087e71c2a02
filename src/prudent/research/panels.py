"""From rows of a results table to the panels of a figure: which marks a frame holds, and how far it reaches."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from prudent.base.errors import UsageError
from prudent.research.table import Row

KEEP = "\N{NO-BREAK SPACE}"
FRAME = 2.0  # a frame reaches this many times as far as the MLE's error
APART = 3.0  # panels of one row share their scale unless one would be this many times as high as another


class Mark(NamedTuple):
    """One mean with its standard error, in the place where it is drawn."""

    series: str
    x: float | None  # none: the same everywhere
    y: float
    se: float


@dataclass(frozen=True)
class Panel:
    """What one frame holds, and how far it reaches."""

    model: str
    marks: Sequence[Mark]
    missing: Sequence[str]  # series without a number
    bottom: float
    top: float

    def side(self, mark: Mark) -> int:
        """−1 below the frame, 0 inside, 1 above; an error of zero may be a rounding below it."""
        return (mark.y > self.top) - (mark.y < self.bottom - 1e-9)

    def notes(self) -> list[str]:
        """What the frame does not show."""
        if not self.marks and not self.missing:
            return ["no rows"]
        notes = []
        for side, where in ((1, "▲ above the frame"), (-1, "▼ below the frame")):
            out = [mark for mark in self.marks if self.side(mark) == side]
            if out:
                notes.append(f"{where}: {_ranges(out)}")
        return [*notes, f"no number: {', '.join(self.missing)}"] if self.missing else notes


Grid = Sequence[tuple[str, Sequence[Panel]]]  # rows of panels, each with its heading


def make_grid(
    rows: Sequence[Row],
    keys: Sequence[str],
    mark: Callable[[Row], Mark],
    held: Callable[[Sequence[Row]], tuple[float, float]],
    share: bool = True,
) -> Grid:
    """One row of panels for each combination of the keys, in the order given, and one column per click model."""
    models = list(dict.fromkeys(row.model for row in rows))
    several = [key for key in keys if len({getattr(row, key) for row in rows}) > 1]
    combined: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        combined.setdefault(tuple(getattr(row, key) for key in several), []).append(row)
    grid = []
    for values, members in combined.items():
        heading = ", ".join(fact(key, [value]) for key, value in zip(several, values, strict=True))
        panels = []
        for model in models:
            inside = [row for row in members if row.model == model]
            panels.append(_panel(model, [mark(row) for row in inside], *held(inside)))
        grid.append((heading, _on_one_scale(panels) if share else panels))
    return grid


def held_error(rows: Sequence[Row]) -> tuple[float, float]:
    """The errors that a frame must hold: up to twice that of the MLE, or all of them where there is no MLE."""
    mle = max((row.error for row in rows if row.method == "mle"), default=0.0)
    return 0.0, FRAME * mle if mle > 0 else math.inf


def held_gain(rows: Sequence[Row]) -> tuple[float, float]:
    """The differences that a frame must hold: every gain, and losses up to twice the largest sure gain."""
    gain = max((row.error - 2 * row.se for row in rows), default=0.0)
    return -FRAME * gain if gain > 0 else -math.inf, math.inf


def _panel(model: str, marks: Sequence[Mark], low: float, high: float) -> Panel:
    """A frame that holds zero, and each mean from low to high together with its standard error."""
    places = [(mark.series, mark.x) for mark in marks]
    twice = [place for place in places if places.count(place) > 1]
    if twice:
        raise UsageError(f"{model} has several rows for {twice[0][0]!r} in one place. Draw a figure for each kind.")
    good = [mark if math.isfinite(mark.se) else mark._replace(se=0.0) for mark in marks if math.isfinite(mark.y)]
    held = [mark for mark in good if low <= mark.y <= high]
    bottom = min((mark.y - mark.se for mark in held), default=0.0) if low < 0 else 0.0
    top = max((mark.y + mark.se for mark in held), default=0.0)
    bottom, top = min(0.0, 1.05 * bottom), max(0.0, 1.05 * top)
    missing = dict.fromkeys(mark.series for mark in marks if not math.isfinite(mark.y))
    return Panel(model, good, list(missing), bottom, top if top > bottom else 1.0)


def _on_one_scale(panels: Sequence[Panel]) -> list[Panel]:
    """The panels of a row with the same frame, unless that would flatten one of them."""
    heights = [panel.top - panel.bottom for panel in panels if panel.marks]
    if not heights or max(heights) > APART * min(heights):
        return list(panels)
    bottom, top = min(p.bottom for p in panels if p.marks), max(p.top for p in panels if p.marks)
    return [replace(panel, bottom=bottom, top=top) for panel in panels]


def ratio_to_mle(row: Row, mle: Row) -> tuple[float, float]:
    """The error as a share of the MLE's, and its standard error as if both were independent."""
    if not mle.error > 0:
        return math.nan, math.nan
    ratio = row.error / mle.error
    return ratio, math.hypot(row.se, ratio * mle.se) / mle.error


def facts(rows: Sequence[Row], *keys: str) -> str:
    """What all rows have in common, and their repetitions; what else varies is in the headings or on an axis."""
    facts = []
    for key in keys:
        values = sorted({getattr(row, key) for row in rows} - {None})
        if key == "n" and values == [0]:  # means over protocols of several sizes
            continue
        if len(values) == 1 or key == "repetitions":
            facts.append(fact(key, values))
    return "; ".join(facts)


def fact(key: str, values: Sequence[Any]) -> str:
    """What rows have in common in one column, in words."""
    match key:
        case "data":
            return f"{values[0]}"
        case "logging":
            return f"logging policy: {values[0]}"
        case "n":
            return f"n = {values[0]:,} lists per context"
        case "delta":
            return f"δ = {values[0]:g}"
        case _:
            many = " to ".join(dict.fromkeys(f"{value:,}" for value in (values[0], values[-1])))
            return f"{many} repetition{'' if many == '1' else 's'}"


def _ranges(marks: Sequence[Mark]) -> str:
    """Each series with its least and its largest value.

    >>> _ranges([Mark("ips", 0.1, 0.5, 0.0), Mark("pi", None, -2.0, 0.0), Mark("ips", 0.2, 0.25, 0.0)]).split()
    ['ips', '(0.25', 'to', '0.5),', 'pi', '(−2)']
    """
    values: dict[str, list[float]] = {}
    for mark in marks:
        values.setdefault(mark.series, []).append(mark.y)
    each = [f"{series} ({number(min(own), max(own))})" for series, own in values.items()]
    return ", ".join(one.replace(" ", KEEP) for one in each)


def number(low: float, high: float) -> str:
    """A number, or a range of two, with two digits."""
    return " to ".join(dict.fromkeys(f"{value:.2g}".replace("-", "−") for value in (low, high)))
