"""Figures: rows of a results table in, an SVG and a PNG out; one panel per click model, as in the paper.

What every figure keeps to, so that two of them can be laid side by side:

- a method has the same colour and marker everywhere, and no two methods differ by colour alone;
- n, repetitions and data are read from the rows, so that a figure cannot state others than it shows;
- a baseline ten times worse than the rest would press the rest into one line, so a frame ends at twice the MLE's error;
  whatever lies outside is named above its panel, with its numbers.

See `prudent.base.chart` for what draws them.
"""

import math
import os
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from prudent.base.chart import AXIS, DASHES, FONT, INK, SHAPES, Style, encodings, inline, load_extra, to_png, to_svg
from prudent.base.errors import UsageError
from prudent.research.table import Row
from prudent.storage.files import replacing

if TYPE_CHECKING:
    import altair as alt
    from altair import VConcatChart as Chart


# Okabe and Ito's colours, which the colour-blind tell apart; their yellow is left out, for it is too pale for a line.
STYLES = {
    "mle": Style("#767676", "triangle-right", (6, 4)),
    "bayes": Style("#0072b2", "circle"),
    "eb": Style("#d55e00", "square"),
    "hoeffding": Style("#e69f00", "triangle-up"),
    "exposure": Style("#009e73", "diamond"),
    "ips": Style("#cc79a7", "cross"),
    "ip-ips": Style("#56b4e9", "triangle-down"),
    "pi": Style("#000000", "triangle-left", (2, 2)),
}
OTHERS = ("#882255", "#332288", "#999933", "#44aa99", "#661100")  # from Tol's muted scheme: names not in the table
SHADES = (0.0, -0.45, 0.4, -0.7, 0.6)  # of variants of one method, towards black or white

ERROR = "error V(A*) − V(Â)"
SHADED = "Shaded: ± one standard error of the mean."
KEEP = "\N{NO-BREAK SPACE}"
LABEL = 320  # pixels, the longest label beside an axis
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
        found = []
        for side, where in ((1, "▲ above the frame"), (-1, "▼ below the frame")):
            out = [mark for mark in self.marks if self.side(mark) == side]
            if out:
                found.append(f"{where}: {_ranges(out)}")
        return [*found, f"no number: {', '.join(self.missing)}"] if self.missing else found


Grid = Sequence[tuple[str, Sequence[Panel]]]  # rows of panels, each with its heading


def against_delta(rows: Iterable[Row], title: str, caption: str = "") -> "Chart":
    """Error against δ, the paper's Fig. 2: a column per click model, a row per data, logging policy and n.

    A method without a δ is a line over the whole panel. Data, n, repetitions and what the shaded areas mean are added
    below the title; ``caption`` says the rest.
    """
    rows = _checked(rows)
    import altair as alt

    grid = _grid(
        rows, ("data", "logging", "n"), lambda row: Mark(row.method, row.delta, row.error, row.se), _held_error
    )
    x = alt.X("x:Q", title="δ", scale=alt.Scale(domain=[0, 1], nice=False), axis=alt.Axis(tickCount=5))
    words = [title, _facts(rows, "data", "logging", "n", "repetitions"), caption, SHADED]
    return _lines(grid, _styles(rows, lambda row: row.method), words, x, (0, 1), ERROR)


def against_n(rows: Iterable[Row], title: str, caption: str = "") -> "Chart":
    """What a method gains over the MLE against n, the paper's Fig. 3; above zero it makes the smaller error.

    Here ``error`` of a row holds the MLE's error minus the method's on the same logs, and ``se`` the standard error of
    that difference. A frame reaches as far below zero as twice the largest gain that is no accident.
    """
    rows = _checked(rows)
    import altair as alt

    name = _naming(rows)
    grid = _grid(rows, ("data", "logging"), lambda row: Mark(name(row), row.n, row.error, row.se), _held_gain)
    sizes = sorted({row.n for row in rows})
    powers = [10**k for k in range(20) if sizes[0] <= 10**k <= sizes[-1]]
    x = alt.X(
        "x:Q",
        title="n, lists per context (log scale)",
        scale=alt.Scale(type="log", domain=[sizes[0] / 1.15, sizes[-1] * 1.15], nice=False),
        axis=alt.Axis(values=powers if len(powers) > 1 else sizes, format="~s"),
    )
    words = [title, _facts(rows, "data", "logging", "delta", "repetitions"), caption, SHADED]
    y = ["error(MLE) − error(method)", "above 0: better than MLE"]
    rule = 0.0, "no difference to MLE"
    return _lines(grid, _styles(rows, name), words, x, (sizes[0], sizes[-1]), y, rule)


def against_logging(
    rows: Iterable[Row], title: str, caption: str = "", *, quality: Mapping[str, float], axis: str = "quality γ"
) -> "Chart":
    """Error as a share of the MLE's, against a number that ``quality`` gives for each logging policy.

    The MLE is the line at 1, so its rows are needed. The shaded area is the ratio's standard error as if the two
    errors were independent; they come from the same logs, so it is rather too wide than too narrow.
    """
    rows = _checked(rows)
    import altair as alt

    def where(row: Row) -> tuple[str, int, str, str]:
        return row.data, row.n, row.model, row.logging

    mle = {where(row): row for row in rows if row.method == "mle"}
    baselines = _checked(row for row in rows if row.method != "mle")
    for row in baselines:
        if row.logging not in quality:
            raise UsageError(f"There is no quality for the logging policy {row.logging!r}: {', '.join(quality)}.")
        if where(row) not in mle:
            raise UsageError(f"There is no row of mle for {row.model} under {row.logging!r} to compare with.")

    name = _naming(baselines)
    grid = _grid(
        baselines,
        ("data", "n"),
        lambda row: Mark(name(row), quality[row.logging], *_ratio(row, mle[where(row)])),
        lambda rows: (0.0, FRAME),
    )
    low, high = min(quality[row.logging] for row in baselines), max(quality[row.logging] for row in baselines)
    margin = (high - low) / 40 or 0.5
    scale = alt.Scale(domain=[low - margin, high + margin], nice=False)
    x = alt.X("x:Q", title=_wrapped(axis, _width(grid), 11), scale=scale, axis=alt.Axis(tickCount=5))
    shaded = "Shaded: ± one standard error of the ratio, as if its two errors were independent."
    words = [title, _facts(baselines, "data", "n", "delta", "repetitions"), caption, shaded]
    y = ["error as a share of MLE’s", "below 1: better than MLE"]
    return _lines(grid, _styles(baselines, name), words, x, (low, high), y, (1.0, "as good as MLE"))


def dots(rows: Iterable[Row], title: str, caption: str = "") -> "Chart":
    """One line per method or variant, in the order given: its error with a bar of one standard error to each side."""
    rows = _checked(rows)
    name = _naming(rows)
    grid = _grid(
        rows, ("data", "logging", "n"), lambda row: Mark(name(row), None, row.error, row.se), _held_error, share=False
    )
    bars = "Bars: ± one standard error of the mean."
    if any(row.method == "mle" for row in rows):
        bars += " Dashed line: MLE."
    if len(grid[0][1]) > 1:
        bars += " Each panel has its own scale."
    words = [title, _facts(rows, "data", "logging", "n", "delta", "repetitions"), caption, bars]
    styles = _styles(rows, name)
    styles = {series: styles[series] for series in dict.fromkeys(map(name, rows))}  # sorted as given
    width = _width(grid)
    total = min(LABEL, 6 * max(map(len, styles))) + (width + 25) * len(grid[0][1])
    body = [
        _row(heading, [_dot_panel(panel, styles, width, i == 0) for i, panel in enumerate(panels)], total)
        for heading, panels in grid
    ]
    return _figure(body, words, total)


def save(chart: "Chart", path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Write ``PATH.svg`` and ``PATH.png``, each whole or not at all; the same chart gives the same bytes."""
    svg, png = Path(f"{os.fspath(path)}.svg"), Path(f"{os.fspath(path)}.png")
    picture = to_svg(chart)
    pixels = to_png(picture)
    with replacing(svg) as part:
        part.write_text(picture, encoding="utf-8")
    with replacing(png) as part:
        part.write_bytes(pixels)
    return svg, png


# From rows to panels.


def _checked(rows: Iterable[Row]) -> list[Row]:
    found = list(rows)
    if not found:
        raise UsageError("There are no rows to draw.")
    load_extra()
    return found


def _grid(
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
        heading = ", ".join(_fact(key, [value]) for key, value in zip(several, values, strict=True))
        panels = []
        for model in models:
            inside = [row for row in members if row.model == model]
            panels.append(_panel(model, [mark(row) for row in inside], *held(inside)))
        grid.append((heading, _on_one_scale(panels) if share else panels))
    return grid


def _held_error(rows: Sequence[Row]) -> tuple[float, float]:
    """The errors that a frame must hold: up to twice that of the MLE, or all of them where there is no MLE."""
    mle = max((row.error for row in rows if row.method == "mle"), default=0.0)
    return 0.0, FRAME * mle if mle > 0 else math.inf


def _held_gain(rows: Sequence[Row]) -> tuple[float, float]:
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


def _ratio(row: Row, mle: Row) -> tuple[float, float]:
    if not mle.error > 0:
        return math.nan, math.nan
    ratio = row.error / mle.error
    return ratio, math.hypot(row.se, ratio * mle.se) / mle.error


# From names to looks and words.


def _naming(rows: Sequence[Row]) -> Callable[[Row], str]:
    """What tells the lines of a figure apart: the method, and δ where the figure has several."""
    several = len({row.delta for row in rows} - {None}) > 1
    return lambda row: f"{row.method}, δ = {row.delta:g}" if several and row.delta is not None else row.method


def _styles(rows: Sequence[Row], name: Callable[[Row], str]) -> dict[str, Style]:
    """The look of each series, known methods first; variants of one method wear its colour in other shades."""
    families: dict[str, dict[str, str]] = {known: {} for known in STYLES}
    for row in sorted(rows, key=lambda row: "(" in row.method):  # so that the plain spelling has the plain colour
        families.setdefault(row.method.partition("(")[0], {})[name(row)] = row.method
    strangers = [family for family in families if family not in STYLES]
    found = {}
    for family, members in families.items():
        if family in STYLES:
            style = STYLES[family]
        else:
            i = strangers.index(family)
            style = Style(OTHERS[i % len(OTHERS)], SHAPES[i % len(SHAPES)])
        for k, series in enumerate(members):
            found[series] = style if k == 0 else _variant(style, k)
    return found


def _variant(style: Style, k: int) -> Style:
    shape = SHAPES[(SHAPES.index(style.shape) + k) % len(SHAPES)]
    return Style(_shade(style.colour, SHADES[k % len(SHADES)]), shape, DASHES[k % len(DASHES)])


def _shade(colour: str, amount: float) -> str:
    """A colour moved towards white, or by a negative amount towards black.

    >>> _shade("#0072b2", 0.5), _shade("#0072b2", -0.5)
    ('#80b9d9', '#003959')
    """
    end = 255 if amount > 0 else 0
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{math.floor(part + abs(amount) * (end - part) + 0.5):02x}" for part in parts)


def _facts(rows: Sequence[Row], *keys: str) -> str:
    """What all rows have in common, and their repetitions; what else varies is in the headings or on an axis."""
    facts = []
    for key in keys:
        values = sorted({getattr(row, key) for row in rows} - {None})
        if key == "n" and values == [0]:  # means over protocols of several sizes
            continue
        if len(values) == 1 or key == "repetitions":
            facts.append(_fact(key, values))
    return "; ".join(facts)


def _fact(key: str, values: Sequence[Any]) -> str:
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
    each = [f"{series} ({_number(min(found), max(found))})" for series, found in values.items()]
    return ", ".join(one.replace(" ", KEEP) for one in each)


def _number(low: float, high: float) -> str:
    return " to ".join(dict.fromkeys(f"{value:.2g}".replace("-", "−") for value in (low, high)))


def _wrapped(text: str, width: float, size: float) -> list[str]:
    """Lines of about that width, with letters a good half as wide as they are high."""
    letters = max(12, int(width / (0.52 * size)))
    lines = textwrap.wrap(text, letters, break_on_hyphens=False, max_lines=8, placeholder=" …")
    return [line.replace(KEEP, " ") for line in lines]


# From panels to charts.


def _lines(
    grid: Grid,
    styles: Mapping[str, Style],
    words: Sequence[str],
    x: "alt.X",
    span: tuple[float, float],
    y: str | list[str],
    rule: tuple[float, str] | None = None,
) -> "Chart":
    """All panels with the legend they share; the legend also explains the rule, if there is one."""
    width = _width(grid)
    moving = {mark.series for _, panels in grid for panel in panels for mark in panel.marks if mark.x is not None}
    legend = [(series, style, series in moving) for series, style in styles.items()]
    if rule:
        legend.insert(0, (rule[1], STYLES["mle"], False))
    total = (width + 45) * len(grid[0][1])
    body = [_legend(legend, total)]
    for heading, panels in grid:
        charts = [_line_panel(panel, styles, x, span, y if i == 0 else None, rule) for i, panel in enumerate(panels)]
        titles = _panel_titles(panels, width)
        sized = [
            chart.properties(width=width, height=round(width * 0.8), title=above)
            for chart, above in zip(charts, titles, strict=True)
        ]
        body.append(_row(heading, sized, total))
    if any(len({(panel.bottom, panel.top) for panel in panels}) > 1 for _, panels in grid):
        words = [
            *words[:-1],
            f"{words[-1]} Panels of a row share their vertical scale only where their errors are of one size.",
        ]
    return _figure(body, words, total)


def _line_panel(
    panel: Panel,
    styles: Mapping[str, Style],
    x: "alt.X",
    span: tuple[float, float],
    y: str | list[str] | None,
    rule: tuple[float, str] | None,
) -> Any:
    import altair as alt

    order = list(styles)  # also from back to front: the MLE lies below the others
    marks = sorted(panel.marks, key=lambda mark: (order.index(mark.series), mark.x or 0.0))
    # The band of a series that is out of the frame altogether might still reach into it: leave all of it out.
    inside = {mark.series for mark in marks if panel.side(mark) == 0}
    marks = [mark for mark in marks if mark.series in inside]
    points = [
        {"series": mark.series, "x": place, "y": mark.y, "low": mark.y - mark.se, "high": mark.y + mark.se}
        for mark in marks
        for place in (span if mark.x is None else (mark.x,))
    ]
    own = [
        {"series": mark.series, "x": mark.x, "y": mark.y}
        for mark in marks  # chosen here, for the chart would clip a marker on the edge in half
        if mark.x is not None and panel.side(mark) == 0
    ]

    def up(field: str) -> alt.Y:
        scale = alt.Scale(domain=[panel.bottom, panel.top], nice=False)
        return alt.Y(f"{field}:Q", title=y, scale=scale, axis=alt.Axis(tickCount=5))

    colour, dash, shape = encodings(styles)
    base = inline(points).encode(x=x, color=colour)
    return alt.layer(
        inline([{"y": rule[0]}] if rule else []).mark_rule(**_reference()).encode(y=up("y")),
        base.mark_area(opacity=0.18, clip=True).encode(y=up("low"), y2="high:Q"),
        base.mark_line(strokeWidth=1.6, clip=True).encode(y=up("y"), strokeDash=dash),
        inline(own).mark_point(filled=True, size=26, opacity=1).encode(x=x, y=up("y"), color=colour, shape=shape),
    )


def _dot_panel(panel: Panel, styles: Mapping[str, Style], width: int, first: bool) -> Any:
    """Horizontal, for the names of variants are long; what is out of the frame stands at its edge, in its line."""
    import altair as alt

    inside = [mark for mark in panel.marks if panel.side(mark) == 0]
    points = [{"series": m.series, "y": m.y, "low": m.y - m.se, "high": m.y + m.se} for m in inside]
    words = [
        {"series": m.series, "text": f"{_number(m.y, m.y)} {'→' if panel.side(m) > 0 else '←'}"}
        for m in panel.marks
        if m not in inside
    ]
    words += [{"series": series, "text": "no number"} for series in panel.missing]

    def along(field: str) -> alt.X:
        scale = alt.Scale(domain=[panel.bottom, panel.top], nice=False)
        return alt.X(f"{field}:Q", title=ERROR, scale=scale, axis=alt.Axis(tickCount=4, labelOverlap=True))

    y = alt.Y(
        "series:N",
        title=None,
        scale=alt.Scale(domain=list(styles)),
        axis=alt.Axis(grid=True, ticks=False, domain=False, labels=first, labelLimit=LABEL, labelPadding=8),
    )
    colour, _, _ = encodings(styles)
    base = inline(points).encode(y=y, color=colour)
    aside = inline(words).encode(y=y, x=alt.value(width - 4), text="text:N")
    return alt.layer(
        inline([{"y": m.y} for m in inside if m.series == "mle"]).mark_rule(**_reference()).encode(x=along("y")),
        base.mark_rule(strokeWidth=2, clip=True).encode(x=along("low"), x2="high:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(x=along("y")),
        aside.mark_text(align="right", fontSize=10, stroke="white", strokeWidth=5),  # keeps the grid off the letters
        aside.mark_text(align="right", fontSize=10, color=INK),
    ).properties(width=width, height=alt.Step(22), title=alt.Title(panel.model, limit=width))


def _legend(entries: Sequence[tuple[str, Style, bool]], width: int) -> Any:
    """Line, marker and name of each series, as Vega does not draw it: its legend has the dash or the marker."""
    import altair as alt

    places, left, line = [], 0, 0
    for name, _, _ in entries:
        needed = 50 + 6 * len(name)
        if left and left + needed > width:
            left, line = 0, line + 1
        places.append({"series": name, "left": left, "middle": left + 15, "right": left + 30, "y": line})
        left += needed
    marked_places = [place for place, (_, _, marked) in zip(places, entries, strict=True) if marked]

    def at(field: str) -> alt.X:
        return alt.X(f"{field}:Q", axis=None, scale=alt.Scale(domain=[0, width], nice=False))

    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[line + 0.5, -0.5], nice=False))
    colour, dash, shape = encodings({name: style for name, style, _ in entries})
    base = inline(places).encode(y=y)
    return alt.layer(
        base.mark_rule(strokeWidth=1.6, aria=False).encode(x=at("left"), x2="right:Q", color=colour, strokeDash=dash),
        inline(marked_places)
        .mark_point(filled=True, size=40, opacity=1, aria=False)
        .encode(x=at("middle"), y=y, color=colour, shape=shape),
        base.mark_text(align="left", dx=6, fontSize=11, limit=width - 40, color=INK).encode(
            x=at("right"), text="series:N"
        ),
    ).properties(width=width, height=18 * (line + 1), view=alt.ViewConfig(stroke=None))


def _panel_titles(panels: Sequence[Panel], width: int) -> "list[alt.Title]":
    """Each model with its panel's notes, filled up so that the names of the models stand in one line."""
    import altair as alt

    notes = [[line for note in panel.notes() for line in _wrapped(note, width, 10)] for panel in panels]
    lines = max(map(len, notes))
    return [
        alt.Title(panel.model, limit=width, subtitle=note + [" "] * (lines - len(note)) if lines else alt.Undefined)
        for panel, note in zip(panels, notes, strict=True)
    ]


def _row(heading: str, panels: Sequence[Any], width: int) -> Any:
    import altair as alt

    row = alt.hconcat(*panels, spacing=18)
    if not heading:
        return row
    return row.properties(title=alt.Title(_wrapped(heading, width, 12), fontSize=12, anchor="start", offset=8))


def _figure(body: Sequence[Any], words: Sequence[str], width: int) -> "Chart":
    """The title, what was measured and how, then the panels; all in one plain look."""
    import altair as alt

    title, *rest = words
    above = alt.Title(
        _wrapped(title, width, 15),
        subtitle=[line for text in rest for line in _wrapped(text, width, 11)],
        anchor="start",
        fontSize=15,
        subtitleFontSize=11,
        subtitleColor="#555555",
        subtitlePadding=6,
        offset=14,
    )
    chart: Chart = (
        alt.vconcat(*body, spacing=22)
        .properties(background="white", title=above)
        .resolve_scale(color="independent", shape="independent", strokeDash="independent")  # the legend has the rule
        .configure(font=FONT, padding=16)
        .configure_view(stroke="#bbbbbb")
        .configure_title(color=INK, fontSize=12, subtitleFontSize=10, subtitleColor="#a03000", subtitlePadding=3)
        .configure_axis(labelFontSize=10, labelFlush=False, **AXIS)
    )
    return chart


def _reference() -> dict[str, Any]:
    """The look of a rule that stands for the MLE."""
    return {"color": STYLES["mle"].colour, "strokeDash": list(STYLES["mle"].dash), "strokeWidth": 1.6}


def _width(grid: Grid) -> int:
    """Of one panel: the fewer there are, the wider."""
    return {1: 380, 2: 290}.get(len(grid[0][1]), 220)
