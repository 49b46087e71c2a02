"""`prudent judge`: relevance judgments from clicks."""

from typing import Annotated

import typer

import prudent
from prudent.base.text import percent, several
from prudent.cli.log_options import LogOptions
from prudent.cli.options import DayOptions, Inputs, Json, MaxRejected, Model, To, command, only_set, option
from prudent.cli.output import busy, print_json, print_table, say, say_next, say_wrapped


@command("judge", "Rank")
def judge_command(
    inputs: Inputs,
    to: To,
    log: LogOptions,
    days: DayOptions,
    model: Model = None,
    bound: Annotated[
        str | None, typer.Option(help="Bound with a posterior, whose interval is shown; e.g. 'eb(delta=0.05)'.")
    ] = None,
    thresholds: Annotated[
        str | None,
        option(
            "--thresholds",
            metavar="A,B,C,D",
            help="Attractions that grades 1 to 4 start at. [dim]Default: quantiles of this log.[/dim]",
        ),
    ] = None,
    candidates: Annotated[
        str | None, typer.Option(help="File with columns context and item: the items to judge.")
    ] = None,
    max_rejected: MaxRejected = None,
    as_json: Json = False,
) -> None:
    """Grade every item of every context by its clicks, for evaluation and training.

    Logs are counted on this machine; counts may be those that Spark wrote.
    """
    settings = only_set(
        model=model, bound=bound, thresholds=thresholds, candidates=candidates, max_rejected=max_rejected
    )
    with busy("Judging"):
        judgments = prudent.judge(inputs, engine=log.engine, to=to, **settings, **days.settings, **log.settings)
    if as_json:
        print_json(judgments.manifest.to_json())
        return
    tally = judgments.manifest.sources["training"].tally
    say(f"{judgments.title}, from {several(tally.lists, f'logged {tally.unit}')}.")
    say()
    print_table(*judgments.table())
    say_wrapped(f"Mean probability that a grade is right: {percent(judgments.summary['confidence'], 0)}.")
    say()
    say(f"The judgments are in {to}.")
    say_next("prudent", "export", to, "-o", to.with_suffix(".qrels"))
