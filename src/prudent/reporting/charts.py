"""How results look in a figure, drawn by Altair.

Altair and vl-convert are the extra ``report`` and load on first use.
"""

import re
import textwrap
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prudent.base.errors import UsageError
from prudent.bounds import bounds
from prudent.research.figures import (
    AXIS,
    DASHES,
    FONT,
    INK,
    OTHERS,
    SHAPES,
    Style,
    against_delta,
    load_extra,
    to_svg,
)
from prudent.research.table import Row
from prudent.storage.files import replacing

if TYPE_CHECKING:
    from altair import VConcatChart as Chart

    from prudent.click_models.compare.results import Comparison
    from prudent.evaluation.tune.results import Tuning

ENDINGS = (".svg", ".png")
"""Of the files that a chart can be written to."""

OBSERVED = Style("#000000", "circle")
MODEL_STYLES = {
    "cm": Style("#0072b2", "triangle-up"),
    "dcm": Style("#d55e00", "square"),
    "pbm": Style("#009e73", "diamond"),
    "CTR by item": Style("#767676", "cross", (4, 3)),
    "CTR by position": Style("#767676", "triangle-down", (2, 2)),
}
"""How models look wherever they are drawn, in Okabe and Ito's colours."""


def check_chart(path: str | PathLike[str]) -> None:
    """Find out before the long work whether a chart can be written there."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise UsageError(f"A chart is written as {' or '.join(ENDINGS)}, by the name of the file: {path} is neither.")
    load_extra()


def write_chart(chart: "Chart", path: str | PathLike[str]) -> None:
    """Write a chart as SVG or PNG, by the ending of the name; the same chart gives the same bytes."""
    check_chart(path)
    import vl_convert

    picture = to_svg(chart)
    svg = Path(path).suffix.lower() == ".svg"
    with replacing(path) as part:
        part.write_bytes(picture.encode() if svg else vl_convert.svg_to_png(picture, scale=2))


def draw_comparison(comparison: "Comparison") -> "Chart":
    """See `Comparison.chart`."""
    load_extra()
    import altair as alt

    styles = _styles([score.model for score in comparison.scores])
    styles["observed"] = OBSERVED
    likelihood: list[dict[str, Any]] = [
        {"model": score.model, "value": score.log_likelihood, "label": f"{score.log_likelihood:.3f}".replace("-", "−")}
        for score in comparison.scores
        if score.log_likelihood is not None
    ]
    perplexity = [
        {"model": score.model, "position": position, "value": value}
        for score in comparison.scores
        for position, value in enumerate(score.by_position, start=1)
        if value is not None
    ]
    ctr = [
        {"model": name, "position": position, "value": value}
        for name, values in [
            *((s.model, s.predicted_ctr) for s in comparison.scores),
            ("observed", comparison.observed_ctr),
        ]
        for position, value in enumerate(values, start=1)
    ]
    colour, dash, shape = _looks(styles)
    line = alt.Y(
        "model:N", sort=[row["model"] for row in likelihood], title=None, axis=alt.Axis(labelLimit=200, ticks=False)
    )
    dots = _chart(likelihood).encode(
        y=line,
        x=alt.X(
            "value:Q",
            title="log-likelihood per list (right is better)",
            axis=alt.Axis(tickCount=8),
            scale=alt.Scale(zero=False, padding=30),
        ),
    )
    above = alt.layer(
        dots.mark_point(filled=True, size=80, opacity=1).encode(color=colour, shape=shape),
        dots.mark_text(dy=-11, fontSize=10, color=INK).encode(text="label:N"),
    ).properties(width=620, height=alt.Step(32))
    below = alt.hconcat(
        _by_position(perplexity, "perplexity (lower is better)", (colour, dash, shape), zero=False),
        _by_position(ctr, "click rate, foreseen and observed", (colour, dash, shape), zero=True),
        spacing=30,
    )
    parts = f"Fitted to {comparison.train_lists:,} lists, scored on {comparison.test_lists:,} others."
    whys = [f"{score.model}: {score.why}" for score in comparison.scores if score.why]
    return _figure([above, below], "How well click models foresee clicks", [parts, comparison.verdict, *whys], 620)


def draw_tuning(tuning: "Tuning") -> "Chart":
    """See `Tuning.chart`."""
    rows = [
        Row(
            data=f"Clicks drawn from {tuning.model} as it was fitted",
            logging="the lists of the log",
            model=tuning.model,
            method=_without_delta(setting.bound),
            delta=getattr(bounds.parse(setting.bound), "delta", None),
            n=0,
            error=setting.error,
            se=setting.se,
            repetitions=tuning.repetitions,
        )
        for setting in tuning.settings
    ]
    logged = f"The logged lists have an error of {tuning.logged_error:.3g}. {tuning.verdict}"
    return against_delta(rows, "Error by bound and δ", logged)


def _without_delta(bound: str) -> str:
    """What a bound is called in a legend.

    >>> [_without_delta(text) for text in ("eb(delta=0.2)", "eb(delta=0.2, pool=context)", "mle")]
    ['eb', 'eb(pool=context)', 'mle']
    """
    return re.sub(r"delta=[^,)]*(, )?", "", bound).removesuffix("()")


def _by_position(rows: Sequence[Mapping[str, Any]], title: str, looks: tuple[Any, Any, Any], zero: bool) -> Any:
    import altair as alt

    colour, dash, shape = looks
    base = _chart(rows).encode(
        x=alt.X("position:O", title="position", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
        y=alt.Y("value:Q", title=title, scale=alt.Scale(zero=zero)),
        color=colour,
    )
    return alt.layer(
        base.mark_line(strokeWidth=1.6).encode(strokeDash=dash),
        base.mark_point(filled=True, size=34, opacity=1).encode(shape=shape),
    ).properties(width=285, height=220)


def _styles(names: Sequence[str]) -> dict[str, Style]:
    """The look of each model; variants look like nobody else."""
    variants = [name for name in names if name not in MODEL_STYLES]
    looks = {
        name: Style(OTHERS[i % len(OTHERS)], SHAPES[-1 - i % len(SHAPES)], DASHES[1 + i % (len(DASHES) - 1)])
        for i, name in enumerate(variants)
    }
    return {name: looks.get(name) or MODEL_STYLES[name] for name in names}


def _chart(rows: Sequence[Mapping[str, Any]]) -> Any:
    import altair as alt

    return alt.Chart(alt.InlineData(list(rows)))


def _looks(styles: Mapping[str, Style]) -> tuple[Any, Any, Any]:
    """Colour, dash and shape of each model; what all three have in common is one legend."""
    import altair as alt

    def scale(looks: Sequence[Any]) -> alt.Scale:
        return alt.Scale(domain=list(styles), range=looks)

    legend = alt.Legend(title=None, orient="bottom", columns=4, labelLimit=200, symbolSize=60)
    return (
        alt.Color("model:N", legend=legend, scale=scale([style.colour for style in styles.values()])),
        alt.StrokeDash("model:N", legend=legend, scale=scale([list(style.dash) for style in styles.values()])),
        alt.Shape("model:N", legend=legend, scale=scale([style.shape for style in styles.values()])),
    )


def _figure(body: Sequence[Any], title: str, words: Sequence[str], width: int) -> "Chart":
    import altair as alt

    lines = [line for text in words for line in textwrap.wrap(text, width // 6)]
    chart: Chart = (
        alt.vconcat(*body, spacing=24)
        .properties(
            background="white",
            title=alt.Title(title, subtitle=lines, anchor="start", fontSize=15, subtitleFontSize=11, offset=14),
        )
        .configure(font=FONT, padding=16)
        .configure_view(stroke="#bbbbbb")
        .configure_title(color=INK, subtitleColor="#555555", subtitlePadding=6)
        .configure_axis(labelFontSize=10, **AXIS)
    )
    return chart
