"""`prudent compare` and `tune`: which click model, which bound, by the log itself."""

from pathlib import Path
from typing import Annotated, Any

import typer

from prudent.cli.shared import (
    MODEL,
    By,
    ByOption,
    Holdout,
    Json,
    MaxRejected,
    Reading,
    Time,
    app,
    check_output,
    columns_of,
    engine_of,
    files_of,
    open_log_alone,
    option,
    reads_logs,
)
from prudent.cli.show_comparing import show_comparison, show_tuning
from prudent.cli.terminal import busy, counting_down, plain, print_json, say, say_next

Logs = Annotated[list[str], typer.Argument(metavar="LOG", help="Click logs (Parquet, JSON Lines, CSV; globs).")]
Chart = Annotated[
    Path | None, option("--output", "-o", help="Also draw a chart: NAME.svg or NAME.png (needs prudent\\[report]).")
]
Seed = Annotated[int, typer.Option(min=0, help="Of the random numbers.")]


@app.command("compare", rich_help_panel="Judge")
@reads_logs
def compare_command(
    reading: Reading,
    logs: Logs,
    test: Annotated[
        list[str] | None,
        typer.Option(help="Score on this log instead, such as that of later days; repeatable."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Model to compare; repeatable.", show_default="cm, dcm, pbm"),
    ] = None,
    holdout: Holdout = 0.2,
    by: ByOption = By.hash,
    time: Time = None,
    length: Annotated[int | None, typer.Option(min=1, help="Cut lists after so many positions.")] = None,
    seed: Seed = 0,
    output: Chart = None,
    max_rejected: MaxRejected = 0.01,
    as_json: Json = False,
) -> None:
    """Say which click model foresees held-out clicks best.

    Each is fitted to one part of the log and scored on the other: log-likelihood per list, perplexity, and click rates by position, foreseen and observed.
    """  # noqa: E501 (a line break here would be one in a terminal)
    from prudent.click_models.compare import MODELS, compare, read_models

    models = read_models(model or MODELS)  # a typo should not wait
    if output is not None:
        _check_chart(output, [*files_of(logs), *files_of(test or logs)])
    engine = engine_of(reading)
    log = open_log_alone(logs, reading, engine, "compare")
    later = open_log_alone(test, reading, engine, "compare") if test else None
    with busy("Comparing"):
        found = compare(log, later, models, holdout, by.value, time, seed, length, engine, max_rejected)
    if output is not None:
        _write_chart(found.chart(), output)
    if as_json:
        print_json(found.as_json())
        return
    show_comparison(found)
    if output is not None:
        say(f"\nThe chart is in {plain(str(output))}.")
    chosen = ["--model", found.winner] if found.clear else []  # without one, rank chooses
    say_next("prudent", "rank", *logs, "-o", "policy.parquet", *columns_of(reading), *chosen)


@app.command("tune", rich_help_panel="Judge")
@reads_logs
def tune_command(
    reading: Reading,
    logs: Logs,
    test: Annotated[list[str] | None, typer.Option(help="Later lists to confirm the choice on; repeatable.")] = None,
    bound: Annotated[
        list[str] | None,
        typer.Option(
            help="Bound to try, at every δ, or at one: 'eb(delta=0.3)'; repeatable.",
            show_default="exposure, eb, hoeffding, mle",
        ),
    ] = None,
    delta: Annotated[
        list[float] | None,
        typer.Option(help="δ to try bounds at; repeatable.", show_default="0.05 to 1"),
    ] = None,
    model: Annotated[str, typer.Option(help="That clicks follow: auto, cm, dcm or pbm.")] = MODEL,
    length: Annotated[
        int | None, typer.Option(min=1, help="Items per list. [dim]Default: as the longest logged list.[/dim]")
    ] = None,
    repetitions: Annotated[int, typer.Option(min=2, help="Logs to try every setting on.")] = 20,
    holdout: Holdout = 0.2,
    by: ByOption = By.hash,
    time: Time = None,
    seed: Seed = 0,
    output: Chart = None,
    max_rejected: MaxRejected = 0.01,
    as_json: Json = False,
) -> None:
    """Choose the bound and its δ on logs like this one of which everything is known.

    Clicks are drawn from a model fitted to the past, on the lists that were logged; each setting ranks what was clicked, and its lists are compared with the best ones. Later lists confirm the choice.
    """  # noqa: E501 (a line break here would be one in a terminal)
    from prudent.click_models import parse
    from prudent.evaluation.tune import BOUNDS, DEFAULT, DELTAS, tune
    from prudent.evaluation.tune.logs import read_arms

    bounds, deltas = bound or BOUNDS, delta or DELTAS
    read_arms(bounds, deltas)  # a typo should not wait
    model_ = parse(model)
    if output is not None:
        _check_chart(output, [*files_of(logs), *files_of(test or logs)])
    engine = engine_of(reading)
    log = open_log_alone(logs, reading, engine, "tune")
    later = open_log_alone(test, reading, engine, "tune") if test else None
    with counting_down() as watch:
        found = tune(
            log,
            later,
            bounds,
            deltas,
            model_,
            length,
            repetitions,
            holdout,
            by.value,
            time,
            seed,
            engine,
            max_rejected,
            progress=lambda done, total: watch("Trying", done, total),
        )
    if output is not None:
        _write_chart(found.chart(), output)
    if as_json:
        print_json(found.as_json())
        return
    show_tuning(found)
    if output is not None:
        say(f"\nThe chart is in {plain(str(output))}.")
    chosen = [] if found.choice == DEFAULT else ["--bound", found.choice]
    say_next("prudent", "rank", *logs, "-o", "policy.parquet", *columns_of(reading), *chosen)


def _check_chart(output: Path, others: list[Path]) -> None:
    from prudent.base.chart import check_chart

    check_chart(output)
    check_output(output, others)


def _write_chart(chart: Any, output: Path) -> None:
    from prudent.base.chart import render_chart
    from prudent.storage.files import replacing

    with replacing(output) as part:
        part.write_bytes(render_chart(chart, output))
