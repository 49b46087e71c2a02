"""The chart of tuning: regret against δ, a line for each bound."""

import re
from typing import TYPE_CHECKING, Any

from prudent.base.chart import figure, line_panel, load_extra, styles_of
from prudent.base.text import number
from prudent.bounds import bounds

if TYPE_CHECKING:
    from altair import VConcatChart as Chart

    from prudent.evaluation.tuning import Tuning

_FRAME = 2.0  # times the largest error without a δ, or else of the best setting's: what is worse is named in words


def draw_tuning(tuning: "Tuning") -> "Chart":
    """Regret against δ with a band of one standard error; a bound without δ is a line over the whole panel."""
    load_extra()
    import altair as alt

    rows: list[dict[str, Any]] = []
    flat = []
    for setting in tuning.settings:
        delta = getattr(bounds.parse(setting.bound), "delta", None)
        if delta is None:
            flat.append(setting.regret)
        for place in (0.0, 1.0) if delta is None else (delta,):
            low, high = setting.regret - setting.se, setting.regret + setting.se
            name = _without_delta(setting.bound)
            row = {"series": name, "x": place, "y": setting.regret, "low": low, "high": high, "unmarked": delta is None}
            rows.append(row)
    top = max([*flat, tuning.default.regret]) * _FRAME
    inside = [row for row in rows if row["y"] <= top] if top else rows
    highest = 1.05 * max(row["high"] for row in inside) or 1.0
    beyond: dict[str, list[float]] = {}
    for row in rows:
        if row["y"] > highest:
            beyond.setdefault(row["series"], []).append(row["y"])
    above = [f"{name} ({' to '.join({number(min(y)): 0, number(max(y)): 0})})" for name, y in beyond.items()]
    notes = [
        f"Clicks simulated from {tuning.model} as fitted to the log; {tuning.repetitions:,} repetitions.",
        f"The logged lists have a regret of {number(tuning.logged_regret, 4)}. {tuning.verdict}",
        "Shaded: ± one standard error of the mean.",
        *([f"Above the frame: {', '.join(above)}."] if above else []),
    ]
    x: Any = alt.X("x:Q", title="δ", scale=alt.Scale(domain=[0, 1], nice=False), axis=alt.Axis(tickCount=5))
    styles = styles_of(sorted({row["series"] for row in rows}))
    panel = line_panel(rows, styles, x=x, y="error V(A*) − V(Â)", domain=(0.0, highest), width=480, height=320)
    return figure([panel], "Error by bound and δ", notes, 480)


def _without_delta(bound: str) -> str:
    """The name of a bound in the legend.

    >>> [_without_delta(text) for text in ("eb(delta=0.2)", "eb(delta=0.2, pool=context)", "mle")]
    ['eb', 'eb(pool=context)', 'mle']
    """
    return re.sub(r"delta=[^,)]*(, )?", "", bound).removesuffix("()")
