"""The figures of docs/benchmarks.md, from the results of benchmarks; `docs/benchmarks.py` draws them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import altair as alt

from prudent.base.chart import AXIS, FONT, INK

OURS, PALE, THEIRS, AIM = (
    "#0072b2",
    "#56b4e9",
    "#d55e00",
    "#000000",
)  # of Okabe and Ito's colours, which the colour-blind tell apart
MODELS = ("cm", "dcm", "pbm")
LOGS = ("long tail", "head")
BORDER = alt.ViewConfig(stroke="#bbbbbb")

Results = Mapping[str, Any]


def number(value: float | None) -> str:
    """Three significant digits."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) >= 1 else f"{value:.2g}"


def pictures(parts: Mapping[str, Results]) -> dict[str, Any]:
    """All figures that the stored results allow."""
    drawn = {"ratios": draw_ratios(list(ratios(parts)))}
    if "tail" in parts:
        drawn["table"] = draw_table(parts)
    for name, draw in (("clax", draw_clax), ("sizes", draw_sizes)):
        if name in parts:
            drawn[name] = draw(parts[name])
    return drawn


def framed(chart: Any, title: str, *subtitle: str) -> Any:
    """The shared style."""
    above = alt.Title(title, subtitle=list(subtitle), anchor="start", fontSize=15, subtitleFontSize=11, offset=12)
    return (
        chart.properties(background="white", title=above)
        .configure(font=FONT, padding=16)
        .configure_view(stroke=None)
        .configure_title(color=INK, subtitleColor="#555555", subtitlePadding=6)
        .configure_header(labelColor=INK, labelFontSize=12, labelFontWeight="bold", title=None)
        .configure_axis(labelFontSize=11, **AXIS)
    )


def chart(rows: Iterable[Mapping[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.InlineData(list(rows)))


def ratios(parts: Mapping[str, Results]) -> Iterator[dict[str, Any]]:
    """Theirs / ours, for every competitor: a bar each."""

    def bar(part: str, group: str, label: str, name: str) -> dict[str, Any]:
        figure = parts[part]["figures"][name]
        wanted = (figure["aim"] or {}).get("at_least")
        got = figure["value"]
        close = wanted is not None and got >= 0.65 * wanted  # then there is no room for words at bar and mark both
        return {
            "group": group,
            "label": label,
            "ratio": got,
            "aim": wanted,
            "end": max(got, 1, wanted if close else 0),  # where the words begin
            "words": number(got) + (f" (target {wanted:g})" if close else ""),
            "aimed": "" if close else f"target {wanted:g}" if wanted else "",
            "colour": PALE if "alone" in label else OURS,
        }

    if "clax" in parts:
        for log in LOGS:
            for model in MODELS:
                yield bar("clax", f"CLAX, {log}", model, f"{model}, {log}: CLAX / ours")
                words = f"{model}, training alone"
                yield bar("clax", f"CLAX, {log}", words, f"{model}, {log}: CLAX, training alone / ours")
    for side, group in (("loops", "Plain Python"), ("sql", "SQL by hand"), ("polars", "Polars by hand")):
        for what in ("evidence", "policy"):
            for model in (*MODELS, "ubm"):
                figure = f"{side} / ours, file to {what}, {model}"
                if "tail" in parts and figure in parts["tail"]["figures"]:
                    yield bar("tail", f"{group}, long tail", f"{what}, {model}", figure)
    if "experiments" in parts:
        for name in ("stats", "special"):
            figure = f"plain loops with scipy.{name} / ours, Fig. 2"
            yield bar("experiments", "Experiments, plain loops", f"with scipy.{name}", figure)
    if "spark" in parts:
        figure = "count to a file: Spark / DuckDB, CPU"
        if figure in parts["spark"]["figures"]:
            yield bar("spark", "Spark, local", "counting", figure)


def draw_ratios(bars: Sequence[Mapping[str, Any]]) -> Any:
    groups = list(dict.fromkeys(bar["group"] for bar in bars))
    low = min(0.8, *(0.8 * bar["ratio"] for bar in bars))
    high = 3 * max(max(bar["ratio"], bar["aim"] or 1) for bar in bars)
    ticks = [at for at in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000) if low <= at <= high]
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    panels = []
    for group in groups:
        rows = [{**bar, "one": 1} for bar in bars if bar["group"] == group]
        last = group == groups[-1]
        title = "CPU time, theirs / ours (log scale): right of 1, ours takes less" if last else None
        axis = alt.Axis(values=ticks, format="~g", labels=last, ticks=last, domain=last)

        def along(field: str, title: str | None = title, axis: alt.Axis = axis) -> alt.X:
            return alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)

        y = alt.Y(
            "label:N",
            title=None,
            sort=[row["label"] for row in rows],
            axis=alt.Axis(ticks=False, domain=False, minExtent=150, maxExtent=150, labelLimit=145),
        )
        base = chart(rows).encode(y=y)
        words = base.encode(x=along("end"), text="words:N")
        aims = chart([row for row in rows if row["aim"]]).encode(x=along("aim"), y=y)
        panels.append(
            alt.layer(
                base.mark_bar(height=13).encode(x=along("ratio"), x2="one:Q", color=alt.Color("colour:N", scale=None)),
                chart([{"at": 1}]).mark_rule(color="#555555").encode(x=along("at")),
                words.mark_text(align="left", dx=5, fontSize=11, color=INK, stroke="white", strokeWidth=4),
                words.mark_text(align="left", dx=5, fontSize=11, color=INK),
                aims.mark_tick(color=AIM, thickness=2.5, size=18, opacity=1),
                aims.mark_text(align="left", dx=5, fontSize=11, color=INK).encode(text="aimed:N"),
            ).properties(
                width=470,
                height=alt.Step(22),
                title=alt.Title(group, anchor="start", frame="group", fontSize=12, offset=4),
            )
        )
    subtitle = "Bars: measured, both sides in one run. Black marks: targets."
    return framed(alt.vconcat(*panels, spacing=10), "How many times more CPU others take", subtitle)


def draw_table(parts: Mapping[str, Results]) -> Any:
    """From the file to a policy, on each log, as multiples of its bare scan."""
    logs = [log for log in ("tail", "integers", "rows", "real", "head") if log in parts]
    rows = []
    for log in logs:
        took = parts[log]["took"]
        scan = took["scan"]["cpu"]
        works = ["count", *(f"policy, {model}" for model in MODELS), "polars: policy, cm", "sql: policy, cm"]
        works += ["loops: policy, cm", "loops: policy, dcm"]
        for work in works:
            if work in took:
                side, _, rest = work.rpartition(": ")
                label = f"{rest.partition(', ')[0]}, {rest.partition(', ')[2]}" if ", " in rest else "count"
                rows.append(
                    {
                        "log": log,
                        "label": f"{side}: {label}" if side else label,
                        "ratio": took[work]["cpu"] / scan,
                        "words": number(took[work]["cpu"] / scan),
                        "colour": THEIRS if side else OURS,
                    }
                )
    labels = list(dict.fromkeys(row["label"] for row in rows))
    high = 1.6 * max(row["ratio"] for row in rows)
    ticks = [at for at in (1, 2, 5, 10, 20, 50, 100, 200) if at <= high]
    scale = alt.Scale(type="log", domain=[1, high], nice=False)
    panels = []
    for at, log in enumerate(logs):
        here = [{**row, "one": 1} for row in rows if row["log"] == log]
        y = alt.Y(
            "label:N",
            title=None,
            sort=labels,
            scale=alt.Scale(domain=labels),
            axis=alt.Axis(ticks=False, domain=False, labels=at == 0, labelLimit=160),
        )
        x = alt.X("ratio:Q", title=None, scale=scale, axis=alt.Axis(values=ticks, format="~g"))
        base = chart(here).encode(y=y)
        panels.append(
            alt.layer(
                base.mark_bar(height=12).encode(x=x, x2="one:Q", color=alt.Color("colour:N", scale=None)),
                base.mark_text(align="left", dx=4, fontSize=11, color=INK).encode(x=x, text="words:N"),
            ).properties(
                width=150,
                height=alt.Step(20),
                title=alt.Title(log, anchor="start", frame="group", fontSize=12, offset=4),
            )
        )
    return framed(
        alt.hconcat(*panels, spacing=18),
        "CPU time from the file, as a multiple of the bare scan (log scale)",
        "Blue: prudent, with its default bound. Orange: by hand, with Hoeffding's.",
    )


def draw_clax(results: Results) -> Any:
    rows = results["rows"]
    body = []
    for log in LOGS:
        panels = []
        for model in MODELS:
            here = [row for row in rows if (row["model"], row["log"]) == (model, log)]
            ours = [
                {"cpu": row["cpu"], "rmse": row["rmse"], "words": "prudent"} for row in here if row["side"] == "ours"
            ]
            epochs = [row for row in here if row["side"] == "CLAX"]
            path = [{"cpu": row["cpu"], "rmse": row["rmse"], "epoch": str(row["epoch"])} for row in epochs]
            seconds = [row["cpu"] for row in (*ours, *path)]
            errors = [row["rmse"] for row in (*ours, *path)]
            ends = [min(seconds) / 1.5, max(seconds) * 1.7]
            x = alt.X(
                "cpu:Q",
                title="CPU s (log scale)",
                scale=alt.Scale(type="log", domain=ends, nice=False),
                axis=alt.Axis(values=[at for at in (1, 2, 5, 10, 20, 50, 100, 200, 500) if ends[0] <= at <= ends[1]]),
            )
            pad = (max(errors) - min(errors)) / 4  # room for words
            y = alt.Y(
                "rmse:Q",
                title="root mean square error of θ" if model == MODELS[0] else None,
                scale=alt.Scale(domain=[min(errors) - pad, max(errors) + pad / 2], nice=False),
                axis=alt.Axis(tickCount=5, format=".3f"),
            )
            curve, point = chart(path).encode(x=x, y=y), chart(ours).encode(x=x, y=y)
            first = chart([{**path[0], "words": "CLAX, epoch 1"}]).encode(x=x, y=y, text="words:N")
            panels.append(
                alt.layer(
                    curve.mark_line(color=THEIRS, strokeWidth=1.6),
                    curve.mark_point(color=THEIRS, filled=True, size=38, opacity=1, shape="square"),
                    first.mark_text(align="left", dx=8, fontSize=10, color=THEIRS),
                    chart([{**path[-1], "words": path[-1]["epoch"]}])
                    .encode(x=x, y=y, text="words:N")
                    .mark_text(align="left", dx=7, fontSize=10, color=THEIRS),
                    point.mark_point(color=OURS, filled=True, size=110, opacity=1, shape="diamond"),
                    point.mark_text(align="center", dy=16, fontSize=11, fontWeight="bold", color=OURS).encode(
                        text="words:N"
                    ),
                ).properties(width=205, height=165, title=alt.Title(f"{model}, {log}", fontSize=12), view=BORDER)
            )
        body.append(alt.hconcat(*panels, spacing=62, bounds="flush"))
    return framed(
        alt.vconcat(*body, spacing=20),
        "Accuracy against time: lower and further left is better",
        "Squares: CLAX after each epoch, training alone. Diamond: prudent, the whole process from file to θ.",
        "Errors are weighted by impressions. Each panel has its own scales.",
    )


def draw_sizes(results: Results) -> Any:
    rows = results["rows"]
    panels = []
    for key, words in (("cpu", "CPU seconds"), ("peak", "peak memory, GB")):
        points = [
            {"lists": row["lists"], "y": row[f"{work}: {key}"], "work": verb}
            for row in rows
            for work, verb in (("count", "counting"), ("rank", "ranking"))
        ]
        values = [point["y"] for point in points]
        x = alt.X(
            "lists:Q",
            title="lists (log scale)",
            scale=alt.Scale(type="log", domain=[rows[0]["lists"] / 1.4, rows[-1]["lists"] * 14], nice=False),
            axis=alt.Axis(values=[row["lists"] for row in rows], format="~s"),
        )
        ends = [min(values) / 1.6, max(values) * 1.6]
        ticks = [at for at in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if ends[0] <= at <= ends[1]]
        y = alt.Y(
            "y:Q",
            title=f"{words} (log scale)",
            scale=alt.Scale(type="log", domain=ends, nice=False),
            axis=alt.Axis(values=ticks, format="~g"),
        )
        colour = alt.Color("work:N", legend=None, scale=alt.Scale(domain=["counting", "ranking"], range=[OURS, THEIRS]))
        shape = alt.Shape(
            "work:N", legend=None, scale=alt.Scale(domain=["counting", "ranking"], range=["circle", "square"])
        )
        what = "CPU" if key == "cpu" else "peak memory"
        words = sorted(
            (
                {**point, "words": f"{point['work']}, slope {slope(results, point['work'], what):.2f}"}
                for point in points
                if point["lists"] == rows[-1]["lists"]
            ),
            key=lambda point: float(point["y"]),
        )
        near = words[-1]["y"] < 1.25 * words[0]["y"]  # then one line goes below its point, and the other above
        base = chart(points).encode(x=x, y=y, color=colour)
        panels.append(
            alt.layer(
                base.mark_line(strokeWidth=1.8),
                base.mark_point(filled=True, size=55, opacity=1).encode(shape=shape),
                *(
                    chart([point])
                    .encode(x=x, y=y, color=colour, text="words:N")
                    .mark_text(align="left", dx=9, dy=dy if near else 0, fontSize=11)
                    for point, dy in zip(words, (6, -6), strict=True)
                ),
            ).properties(width=330, height=240, view=BORDER)
        )
    return framed(
        alt.hconcat(*panels, spacing=30),
        "Time and memory against size",
        "A slope of 1 is in proportion to the number of lists; below 1, a list costs less in a larger log.",
    )


def slope(results: Results, verb: str, what: str) -> float:
    return float(results["figures"][f"{verb}: slope of {what} against lists"]["value"])
