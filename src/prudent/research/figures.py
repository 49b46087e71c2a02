"""Figures: rows of a results table in, an SVG and a PNG out; one panel per click model, as in the paper.

What every figure keeps to, so that two of them can be laid side by side:

- a method has the same colour and marker everywhere, and no two methods differ by colour alone;
- n, repetitions and data are read from the rows, so that a figure cannot state others than it shows;
- a baseline ten times worse than the rest would press the rest into one line, so a frame ends at twice the MLE's error;
  whatever lies outside is named above its panel, with its numbers.

See `prudent.base.chart` for what draws them.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from prudent.base.chart import load_extra, to_png, to_svg
from prudent.base.errors import UsageError
from prudent.research.drawing import (
    ERROR,
    LABEL,
    dot_panel,
    draw_lines,
    make_figure,
    make_styles,
    naming,
    panel_width,
    row_of_panels,
    wrapped,
)
from prudent.research.panels import FRAME, Mark, facts, held_error, held_gain, make_grid, ratio_to_mle
from prudent.research.table import Row
from prudent.storage.files import replacing

if TYPE_CHECKING:
    from altair import VConcatChart as Chart

SHADED = "Shaded: ± one standard error of the mean."


def against_delta(rows: Iterable[Row], title: str, caption: str = "") -> "Chart":
    """Error against δ, the paper's Fig. 2: a column per click model, a row per data, logging policy and n.

    A method without a δ is a line over the whole panel. Data, n, repetitions and what the shaded areas mean are added
    below the title; ``caption`` says the rest.
    """
    rows = _checked(rows)
    import altair as alt

    grid = make_grid(
        rows, ("data", "logging", "n"), lambda row: Mark(row.method, row.delta, row.error, row.se), held_error
    )
    x = alt.X("x:Q", title="δ", scale=alt.Scale(domain=[0, 1], nice=False), axis=alt.Axis(tickCount=5))
    words = [title, facts(rows, "data", "logging", "n", "repetitions"), caption, SHADED]
    return draw_lines(grid, make_styles(rows, lambda row: row.method), words, x, (0, 1), ERROR)


def against_n(rows: Iterable[Row], title: str, caption: str = "") -> "Chart":
    """What a method gains over the MLE against n, the paper's Fig. 3; above zero it makes the smaller error.

    Here ``error`` of a row holds the MLE's error minus the method's on the same logs, and ``se`` the standard error of
    that difference. A frame reaches as far below zero as twice the largest gain that is no accident.
    """
    rows = _checked(rows)
    import altair as alt

    name = naming(rows)
    grid = make_grid(rows, ("data", "logging"), lambda row: Mark(name(row), row.n, row.error, row.se), held_gain)
    sizes = sorted({row.n for row in rows})
    powers = [10**k for k in range(20) if sizes[0] <= 10**k <= sizes[-1]]
    x = alt.X(
        "x:Q",
        title="n, lists per context (log scale)",
        scale=alt.Scale(type="log", domain=[sizes[0] / 1.15, sizes[-1] * 1.15], nice=False),
        axis=alt.Axis(values=powers if len(powers) > 1 else sizes, format="~s"),
    )
    words = [title, facts(rows, "data", "logging", "delta", "repetitions"), caption, SHADED]
    y = ["error(MLE) − error(method)", "above 0: better than MLE"]
    rule = 0.0, "no difference to MLE"
    return draw_lines(grid, make_styles(rows, name), words, x, (sizes[0], sizes[-1]), y, rule)


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

    name = naming(baselines)
    grid = make_grid(
        baselines,
        ("data", "n"),
        lambda row: Mark(name(row), quality[row.logging], *ratio_to_mle(row, mle[where(row)])),
        lambda rows: (0.0, FRAME),
    )
    low, high = min(quality[row.logging] for row in baselines), max(quality[row.logging] for row in baselines)
    margin = (high - low) / 40 or 0.5
    scale = alt.Scale(domain=[low - margin, high + margin], nice=False)
    x = alt.X("x:Q", title=wrapped(axis, panel_width(grid), 11), scale=scale, axis=alt.Axis(tickCount=5))
    shaded = "Shaded: ± one standard error of the ratio, as if its two errors were independent."
    words = [title, facts(baselines, "data", "n", "delta", "repetitions"), caption, shaded]
    y = ["error as a share of MLE’s", "below 1: better than MLE"]
    return draw_lines(grid, make_styles(baselines, name), words, x, (low, high), y, (1.0, "as good as MLE"))


def dots(rows: Iterable[Row], title: str, caption: str = "") -> "Chart":
    """One line per method or variant, in the order given: its error with a bar of one standard error to each side."""
    rows = _checked(rows)
    name = naming(rows)
    grid = make_grid(
        rows, ("data", "logging", "n"), lambda row: Mark(name(row), None, row.error, row.se), held_error, share=False
    )
    bars = "Bars: ± one standard error of the mean."
    if any(row.method == "mle" for row in rows):
        bars += " Dashed line: MLE."
    if len(grid[0][1]) > 1:
        bars += " Each panel has its own scale."
    words = [title, facts(rows, "data", "logging", "n", "delta", "repetitions"), caption, bars]
    styles = make_styles(rows, name)
    styles = {series: styles[series] for series in dict.fromkeys(map(name, rows))}  # sorted as given
    width = panel_width(grid)
    total = min(LABEL, 6 * max(map(len, styles))) + (width + 25) * len(grid[0][1])
    body = [
        row_of_panels(heading, [dot_panel(panel, styles, width, i == 0) for i, panel in enumerate(panels)], total)
        for heading, panels in grid
    ]
    return make_figure(body, words, total)


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


def _checked(rows: Iterable[Row]) -> list[Row]:
    listed = list(rows)
    if not listed:
        raise UsageError("There are no rows to draw.")
    load_extra()
    return listed
