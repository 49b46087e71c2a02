"""Charts drawn by Altair, readable on light and dark pages; files get a white background.

Altair and vl-convert are the extra ``report`` and load on first use. Nothing is fetched while drawing. A name is never
part of an expression: it is data, and becomes escaped text of an SVG or pixels of a PNG.
"""

import re
import textwrap
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from prudent.base.errors import UsageError
from prudent.base.text import plain

if TYPE_CHECKING:
    import altair as alt
    from altair import VConcatChart as Chart

ENDINGS = (".svg", ".png")
"""Of the files that a chart can be written to."""


class Style(NamedTuple):
    """How a series looks: three differences, each of which is enough to tell it from the others."""

    colour: str
    shape: str
    dash: tuple[int, ...] = (1, 0)  # a gap of 0: a solid line


# Okabe and Ito's colours, which the colour-blind tell apart, without the two that vanish on a white or a dark page.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-left", "triangle-right")
DASHES = ((1, 0), (8, 2), (4, 2, 1, 2), (3, 3), (8, 2, 1, 2))
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"  # the first is inside vl-convert: the same on every machine

NEUTRAL = "#7b7b7b"  # at least 4:1 against white and against the #111111 of dark notebooks
INK = "#333333"  # on white


def axis_colours(ink: str, grid: str) -> dict[str, Any]:
    """How axes look, for `configure_axis`."""
    return {
        "gridColor": grid,
        "domainColor": "#888888",
        "tickColor": "#888888",
        "labelColor": ink,
        "titleColor": ink,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
    }


AXIS = axis_colours(INK, "#e5e5e5")
"""Axes on white."""


def styles_of(names: Sequence[str]) -> dict[str, Style]:
    """A style for each name, in their order; more names than colours differ by shape and dash too."""
    return {
        name: Style(COLOURS[i % len(COLOURS)], SHAPES[i % len(SHAPES)], DASHES[min(i // len(COLOURS), len(DASHES) - 1)])
        for i, name in enumerate(dict.fromkeys(names))
    }


def inline(rows: Sequence[Mapping[str, object]]) -> "alt.Chart":
    """A chart of these rows, which are part of it."""
    import altair as alt

    return alt.Chart(alt.InlineData(tuple(rows)))  # a list would be copied, row by row, with every chart around it


def encodings(styles: Mapping[str, Style], legend: Any = None) -> tuple[Any, Any, Any]:
    """Colour, dash and shape of the field ``series``; sharing one legend, or without one."""
    import altair as alt

    def scale(values: Sequence[Any]) -> alt.Scale:
        return alt.Scale(domain=tuple(styles), range=tuple(values))  # not lists: as above

    return (
        alt.Color("series:N", legend=legend, scale=scale([style.colour for style in styles.values()])),
        alt.StrokeDash("series:N", legend=legend, scale=scale([style.dash for style in styles.values()])),
        alt.Shape("series:N", legend=legend, scale=scale([style.shape for style in styles.values()])),
    )


def legend_below() -> "alt.Legend":
    """One legend for colour, dash and shape."""
    import altair as alt

    return alt.Legend(title=None, orient="bottom", columns=4, labelLimit=200, symbolSize=60, symbolOpacity=1)


def line_panel(
    rows: Sequence[Mapping[str, Any]],
    styles: Mapping[str, Style],
    *,
    x: "alt.X",
    y: str,
    domain: tuple[float, float] | None = None,
    zero: bool = True,
    width: int = 285,
    height: int = 220,
) -> Any:
    """Lines of ``series`` over ``x`` with their points; a band where rows have ``low`` and ``high``."""
    import altair as alt

    scale = alt.Scale(zero=zero) if domain is None else alt.Scale(domain=list(domain), nice=False)
    colour, dash, shape = encodings(styles, legend_below())

    def up(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title=y, scale=scale)

    base = inline(rows).encode(x=x, color=colour)
    # Left out here, for the chart would clip a marker on the edge in half.
    top = float("inf") if domain is None else domain[1]
    own = [row for row in rows if not row.get("unmarked") and row["y"] <= top]
    points = inline(own).encode(x=x, y=up("y"), color=colour, shape=shape)
    layers = [
        base.mark_line(strokeWidth=1.6, clip=True).encode(y=up("y"), strokeDash=dash),
        points.mark_point(filled=True, size=34, opacity=1),
    ]
    if any("low" in row for row in rows):
        layers.insert(0, base.mark_area(opacity=0.18, clip=True).encode(y=up("low"), y2="high:Q"))
    return alt.layer(*layers).properties(width=width, height=height)


def figure(panels: Sequence[Any], title: str, notes: Sequence[str], width: int) -> "Chart":
    """Panels below each other under one title, in colours that are readable on light and dark pages."""
    import altair as alt

    lines = [line for text in notes for line in textwrap.wrap(text, width // 6)]
    chart: Chart = (
        alt.vconcat(*panels, spacing=24)
        .properties(
            background="transparent",
            title=alt.Title(title, subtitle=lines, anchor="start", fontSize=15, subtitleFontSize=11, offset=14),
        )
        .configure(font=FONT, padding=16)
        .configure_view(stroke="#888888", strokeOpacity=0.6)
        .configure_title(color=NEUTRAL, subtitleColor=NEUTRAL, subtitlePadding=6)
        .configure_legend(labelColor=NEUTRAL)
        .configure_text(color=NEUTRAL)
        .configure_axis(labelFontSize=10, gridOpacity=0.3, **axis_colours(NEUTRAL, "#888888"))
    )
    return chart


def _on_white(spec: dict[str, Any]) -> dict[str, Any]:
    """The specification of a chart for paper: a transparent background becomes white, and text dark."""
    if spec.get("background") != "transparent":
        return spec
    config = {key: dict(value) if isinstance(value, dict) else value for key, value in spec.get("config", {}).items()}
    for part, colours in (
        ("title", {"color": INK, "subtitleColor": "#555555"}),
        ("legend", {"labelColor": INK}),
        ("text", {"color": INK}),
        ("axis", {**AXIS, "gridOpacity": 1}),
    ):
        config[part] = {**config.get(part, {}), **colours}
    return {**spec, "background": "white", "config": config}


# --- files ------------------------------------------------------------------------------------------------------------


def load_extra() -> None:
    """Fail with the command that installs what draws charts, where it is missing."""
    try:
        import altair  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise UsageError("Charts need altair and vl-convert-python: pip install 'prudent[report]'") from error


def check_chart(path: str | PathLike[str]) -> None:
    """Fail, before the long work, where a chart cannot be written to this file."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise UsageError(f"A chart is written as {' or '.join(ENDINGS)}, by the name of the file: {path} is neither.")
    load_extra()


def render_chart(chart: Any, path: str | PathLike[str]) -> bytes:
    """The content of a file of this name: SVG or PNG. The same chart gives the same bytes."""
    check_chart(path)
    picture = to_svg(chart)
    return picture.encode() if Path(path).suffix.lower() == ".svg" else to_png(picture)


def to_svg(chart: Any) -> str:
    """The chart as the text of an SVG; no element of it fetches or runs anything."""
    load_extra()
    import vl_convert

    spec = _printable(_on_white(chart.to_dict(validate=False)))  # each part was validated when it was made
    picture = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])  # none: nothing may be fetched
    # vl-convert numbers its clip paths through the life of a process. Text holds no "<" and attributes no quotes, so
    # this finds tags alone.
    numbers: dict[str, int] = {}
    return re.sub(
        r'(<[^<>]*? (?:clip-path="url\(#|id=")clip)(\d+)',
        lambda match: f"{match[1]}{numbers.setdefault(match[2], len(numbers))}",
        picture,
    )


def to_png(picture: str) -> bytes:
    """An SVG as a PNG of twice its size."""
    import vl_convert

    return bytes(vl_convert.svg_to_png(picture, scale=2))


def _printable(spec: Any) -> Any:
    """The same with control characters escaped: vl-convert does not refuse them, it aborts the whole process."""
    if isinstance(spec, dict):
        return {key: _printable(value) for key, value in spec.items()}
    if isinstance(spec, list | tuple):
        return [_printable(value) for value in spec]
    return plain(spec) if isinstance(spec, str) else spec
