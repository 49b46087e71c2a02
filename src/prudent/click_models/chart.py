"""The chart of a comparison of click models."""

from typing import TYPE_CHECKING, Any

from prudent.base.chart import (
    NEUTRAL,
    Style,
    encodings,
    figure,
    inline,
    legend_below,
    line_panel,
    load_extra,
    styles_of,
)
from prudent.base.text import number

if TYPE_CHECKING:
    from altair import VConcatChart as Chart

    from prudent.click_models.comparison import Comparison


def draw_comparison(comparison: "Comparison") -> "Chart":
    """Log-likelihood, perplexity by position, and click rates by position, predicted and observed."""
    load_extra()
    import altair as alt

    scores = comparison.scores
    styles = styles_of(sorted(score.model for score in scores if not score.reference))
    looks = (Style(NEUTRAL, "cross", (4, 3)), Style(NEUTRAL, "triangle-down", (2, 2)))
    styles |= dict(zip((score.model for score in scores if score.reference), looks, strict=False))
    styles["observed"] = Style(NEUTRAL, "circle")
    likelihood = [
        {"series": score.model, "value": score.log_likelihood, "label": number(score.log_likelihood)}
        for score in scores
        if score.log_likelihood is not None
    ]
    perplexity = [
        {"series": score.model, "position": position, "y": value}
        for score in scores
        for position, value in enumerate(score.by_position, start=1)
        if value is not None
    ]
    click_rates = [
        {"series": name, "position": position, "y": value}
        for name, values in [*((s.model, s.predicted_ctr) for s in scores), ("observed", comparison.observed_ctr)]
        for position, value in enumerate(values, start=1)
    ]
    colour, _, shape = encodings(styles, legend_below())
    dots = inline(likelihood).encode(
        y=alt.Y(
            "series:N",
            sort=[str(row["series"]) for row in likelihood],
            title=None,
            axis=alt.Axis(labelLimit=200, ticks=False),
        ),
        x=alt.X(
            "value:Q",
            title="log-likelihood per list (higher is better)",
            axis=alt.Axis(tickCount=8),
            scale=alt.Scale(zero=False, padding=30),
        ),
    )
    above = alt.layer(
        dots.mark_point(filled=True, size=80, opacity=1).encode(color=colour, shape=shape),
        dots.mark_text(dy=-11, fontSize=10).encode(text="label:N"),
    ).properties(width=620, height=alt.Step(32))
    x: Any = alt.X("position:O", title="position", axis=alt.Axis(labelAngle=0, labelOverlap=True))
    below = alt.hconcat(
        line_panel(perplexity, styles, x=x, y="perplexity (lower is better)", zero=False),
        line_panel(click_rates, styles, x=x, y="click rate, predicted and observed"),
        spacing=30,
    )
    parts = f"Fitted to {comparison.train_lists:,} lists, scored on {comparison.test_lists:,} others."
    reasons = [f"{score.model}: {score.why}" for score in scores if score.why]
    notes = [parts, comparison.verdict, *reasons]
    return figure([above, below], "Click models on held-out lists", notes, 620)
