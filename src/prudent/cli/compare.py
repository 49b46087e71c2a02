"""`prudent compare` and `tune`: the click model and the bound that suit a log."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import prudent
from prudent.base.text import Column, number, several
from prudent.cli.log_options import LogOptions
from prudent.cli.options import (
    By,
    Chart,
    Holdout,
    Json,
    Length,
    Logs,
    MaxRejected,
    Model,
    Seed,
    Time,
    command,
    only_set,
)
from prudent.cli.output import busy, print_json, print_table, progress_bar, say, say_next, say_wrapped

if TYPE_CHECKING:
    from prudent.click_models.comparison import Comparison
    from prudent.evaluation.tuning import Tuning

Test = Annotated[list[str] | None, typer.Option(help="Log to hold out instead, such as later days; repeatable.")]
_POSITIONS = 20  # in a table


@command("compare", "Evaluate")
def compare_command(
    logs: Logs,
    log: LogOptions,
    test: Test = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Click model to compare: {click_models}; repeatable.", show_default="all")
    ] = None,
    holdout: Holdout = None,
    by: By = None,
    time: Time = None,
    length: Annotated[int | None, typer.Option(help="Cut lists after this position.")] = None,
    seed: Seed = None,
    to: Chart = None,
    max_rejected: MaxRejected = None,
    as_json: Json = False,
) -> None:
    """Compare click models on held-out lists.

    Each is fitted to one part of the log and scored on the other: log-likelihood per list, perplexity, and predicted and observed click rates by position.
    """  # noqa: E501 (a line break here would be one in a terminal)
    settings = only_set(holdout=holdout, by=by, time=time, seed=seed, length=length, max_rejected=max_rejected)
    with busy("Comparing"):
        comparison = prudent.compare(
            logs, test or None, model=model or None, to=to, engine=log.engine, **settings, **log.settings
        )
    if as_json:
        print_json(comparison.to_json())
        return
    _show_comparison(comparison)
    _say_chart(to)
    chosen = ["--model", comparison.winner] if comparison.clear else []
    say_next("prudent", "rank", *logs, "-o", "policy.parquet", *log.again(), *chosen)


@command("tune", "Evaluate")
def tune_command(
    logs: Logs,
    log: LogOptions,
    test: Test = None,
    bound: Annotated[
        list[str] | None,
        typer.Option(help="Bound to try, at every δ or at one: 'eb(delta=0.3)'; repeatable. Known: {bounds}."),
    ] = None,
    delta: Annotated[list[float] | None, typer.Option(help="δ to try bounds at; repeatable.")] = None,
    model: Model = None,
    length: Length = None,
    repetitions: Annotated[int | None, typer.Option(help="Simulated logs to try every setting on.")] = None,
    holdout: Holdout = None,
    by: By = None,
    time: Time = None,
    seed: Seed = None,
    to: Chart = None,
    max_rejected: MaxRejected = None,
    as_json: Json = False,
) -> None:
    """Tune the bound and δ on logs simulated from yours.

    A click model fitted to the training lists simulates clicks on the logged lists; each setting ranks from them, and its lists are compared with the best ones. The held-out lists confirm the choice.
    """  # noqa: E501 (a line break here would be one in a terminal)
    settings = only_set(bound=bound, delta=delta, model=model, length=length, repetitions=repetitions)
    settings |= only_set(holdout=holdout, by=by, time=time, seed=seed, max_rejected=max_rejected)
    with progress_bar() as update:
        tuning = prudent.tune(
            logs,
            test or None,
            to=to,
            engine=log.engine,
            progress=lambda done, total: update("Tuning", done, total),
            **settings,
            **log.settings,
        )
    if as_json:
        print_json(tuning.to_json())
        return
    _show_tuning(tuning)
    _say_chart(to)
    chosen = [] if tuning.choice == tuning.default.bound else ["--bound", tuning.choice]
    say_next("prudent", "rank", *logs, "-o", "policy.parquet", *log.again(), *chosen)


def _say_chart(to: Path | None) -> None:
    if to is not None:
        say()
        say(f"The chart is in {to}.")


def _show_comparison(comparison: "Comparison") -> None:
    say(comparison.title)
    say()
    print_table(*comparison.table())
    say_wrapped(
        "Log-likelihood per list: higher is better. Perplexity: 1 is perfect, 2 is a coin flip; cond.: given the "
        "clicks above. In brackets: click-through rates, for reference."
    )
    for remark in comparison.remarks:
        say_wrapped(remark)
    # As many columns as a terminal has room for: the two click-through rates are in the table above.
    scored = [score for score in comparison.scores if score.predicted_ctr and not score.reference]
    rates = {"observed": comparison.observed_ctr} | {score.model: score.predicted_ctr for score in scored}
    _show_by_position("click-through rate by position", rates)
    _show_by_position("perplexity by position", {score.model: score.by_position for score in scored})
    say()
    say_wrapped(comparison.verdict)


def _show_tuning(tuning: "Tuning") -> None:
    say_wrapped(tuning.title)
    say_wrapped(f"Regret: V(A*) − V(Â); of the logged lists: {number(tuning.logged_regret, 4)}.")
    say()
    print_table(*tuning.table())
    say()
    for note in tuning.notes:
        say_wrapped(note)


def _show_by_position(title: str, values: Mapping[str, Sequence[float | None]]) -> None:
    if not values:
        return
    positions = max(map(len, values.values()))
    columns = [Column("position", str), *(Column(name, float) for name in values)]
    rows = [
        (str(k + 1), *(by[k] if k < len(by) else None for by in values.values()))
        for k in range(min(positions, _POSITIONS))
    ]
    say()
    print_table(columns, rows, title=title)
    if positions > _POSITIONS:
        say(f"... and {several(positions - _POSITIONS, 'more position')} (--json has them all)")
