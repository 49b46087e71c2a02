"""From panels to charts: the look of every method, the legend, and frames with lines or dots."""

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from prudent.base.chart import AXIS, DASHES, FONT, INK, SHAPES, Style, encodings, inline
from prudent.research.panels import KEEP, Grid, Panel, number
from prudent.research.table import Row

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
LABEL = 320  # pixels, the longest label beside an axis


def naming(rows: Sequence[Row]) -> Callable[[Row], str]:
    """What tells the lines of a figure apart: the method, and δ where the figure has several."""
    several = len({row.delta for row in rows} - {None}) > 1
    return lambda row: f"{row.method}, δ = {row.delta:g}" if several and row.delta is not None else row.method


def make_styles(rows: Sequence[Row], name: Callable[[Row], str]) -> dict[str, Style]:
    """The look of each series, known methods first; variants of one method wear its colour in other shades."""
    families: dict[str, dict[str, str]] = {known: {} for known in STYLES}
    for row in sorted(rows, key=lambda row: "(" in row.method):  # so that the plain spelling has the plain colour
        families.setdefault(row.method.partition("(")[0], {})[name(row)] = row.method
    unknown = [family for family in families if family not in STYLES]
    styles = {}
    for family, members in families.items():
        if family in STYLES:
            style = STYLES[family]
        else:
            i = unknown.index(family)
            style = Style(OTHERS[i % len(OTHERS)], SHAPES[i % len(SHAPES)])
        for k, series in enumerate(members):
            styles[series] = style if k == 0 else _variant(style, k)
    return styles


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


def wrapped(text: str, width: float, size: float) -> list[str]:
    """Lines of about that width, with letters a good half as wide as they are high."""
    letters = max(12, int(width / (0.52 * size)))
    lines = textwrap.wrap(text, letters, break_on_hyphens=False, max_lines=8, placeholder=" …")
    return [line.replace(KEEP, " ") for line in lines]


def draw_lines(
    grid: Grid,
    styles: Mapping[str, Style],
    words: Sequence[str],
    x: "alt.X",
    span: tuple[float, float],
    y: str | list[str],
    rule: tuple[float, str] | None = None,
) -> "Chart":
    """All panels with the legend they share; the legend also explains the rule, if there is one."""
    width = panel_width(grid)
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
        body.append(row_of_panels(heading, sized, total))
    if any(len({(panel.bottom, panel.top) for panel in panels}) > 1 for _, panels in grid):
        words = [
            *words[:-1],
            f"{words[-1]} Panels of a row share their vertical scale only where their errors are of one size.",
        ]
    return make_figure(body, words, total)


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


def dot_panel(panel: Panel, styles: Mapping[str, Style], width: int, first: bool) -> Any:
    """Horizontal, for the names of variants are long; what is out of the frame stands at its edge, in its line."""
    import altair as alt

    inside = [mark for mark in panel.marks if panel.side(mark) == 0]
    points = [{"series": m.series, "y": m.y, "low": m.y - m.se, "high": m.y + m.se} for m in inside]
    words = [
        {"series": m.series, "text": f"{number(m.y, m.y)} {'→' if panel.side(m) > 0 else '←'}"}
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

    notes = [[line for note in panel.notes() for line in wrapped(note, width, 10)] for panel in panels]
    lines = max(map(len, notes))
    return [
        alt.Title(panel.model, limit=width, subtitle=note + [" "] * (lines - len(note)) if lines else alt.Undefined)
        for panel, note in zip(panels, notes, strict=True)
    ]


def row_of_panels(heading: str, panels: Sequence[Any], width: int) -> Any:
    """Panels side by side, below their heading."""
    import altair as alt

    row = alt.hconcat(*panels, spacing=18)
    if not heading:
        return row
    return row.properties(title=alt.Title(wrapped(heading, width, 12), fontSize=12, anchor="start", offset=8))


def make_figure(body: Sequence[Any], words: Sequence[str], width: int) -> "Chart":
    """The title, what was measured and how, then the panels; all in one plain look."""
    import altair as alt

    title, *rest = words
    above = alt.Title(
        wrapped(title, width, 15),
        subtitle=[line for text in rest for line in wrapped(text, width, 11)],
        anchor="start",
        fontSize=15,
        subtitleFontSize=11,
        subtitleColor="#555555",
        subtitlePadding=6,
        offset=14,
    )
    # All at once: every method of a chart copies the whole of it, which takes longer than to draw it.
    alone = alt.ScaleResolveMap(color="independent", shape="independent", strokeDash="independent")
    chart: Chart = alt.vconcat(
        *body,
        spacing=22,
        background="white",
        title=above,
        resolve=alt.Resolve(scale=alone),  # the legend has the rule
        config=alt.Config(
            font=FONT,
            padding=16,
            view=alt.ViewConfig(stroke="#bbbbbb"),
            title=alt.TitleConfig(
                color=INK, fontSize=12, subtitleFontSize=10, subtitleColor="#a03000", subtitlePadding=3
            ),
            axis=alt.AxisConfig(labelFontSize=10, labelFlush=False, **AXIS),
        ),
    )
    return chart


def _reference() -> dict[str, Any]:
    """The look of a rule that stands for the MLE."""
    return {"color": STYLES["mle"].colour, "strokeDash": list(STYLES["mle"].dash), "strokeWidth": 1.6}


def panel_width(grid: Grid) -> int:
    """Of one panel: the fewer there are, the wider."""
    return {1: 380, 2: 290}.get(len(grid[0][1]), 220)
