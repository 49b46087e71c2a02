"""`prudent explore`: variants of lists that teach most, at a bounded loss."""

from pathlib import Path
from typing import Annotated, Literal

import typer

import prudent
from prudent.cli.log_options import LogOptions
from prudent.cli.options import (
    DayOptions,
    Json,
    MaxRejected,
    PolicyFile,
    To,
    command,
    only_set,
    option,
    share_of,
)
from prudent.cli.output import busy, print_json, print_table, say, say_next, say_wrapped


@command("explore", "Rank")
def explore_command(
    policy: PolicyFile,
    log: Annotated[
        list[str],
        option(
            "--log", metavar="LOG", help="The log or counts that the policy was made from; files, globs; repeatable."
        ),
    ],
    scores: Annotated[Path, typer.Option(help="Scores of every candidate, written by prudent rank --scores.")],
    to: To,
    columns: LogOptions,
    days: DayOptions,
    budget: Annotated[
        float | None,
        option("--budget", parser=share_of, help="Share of the policy's value that exploring may lose: 0.01 or 1%."),
    ] = None,
    goal: Annotated[
        Literal["both", "positions", "items"] | None,
        option(
            "--goal", metavar="NAME", help="What to learn: examination of positions, items shown too little, or both."
        ),
    ] = None,
    lists: Annotated[
        int | None,
        option("--lists", help="Number of lists that will be shown. [dim]Default: as many as the log has.[/dim]"),
    ] = None,
    confidence: Annotated[
        float | None, option("--confidence", parser=share_of, help="Confidence level of the upper limit of the loss.")
    ] = None,
    max_rejected: MaxRejected = None,
    as_json: Json = False,
) -> None:
    """Choose variants of each list, with probabilities, that teach most at a bounded loss.

    Log the probability of what is shown: prudent evaluate --propensity is then unbiased.
    """
    settings = only_set(budget=budget, goal=goal, lists=lists, confidence=confidence, max_rejected=max_rejected)
    with busy("Exploring"):
        made = prudent.explore(
            policy, log, scores=scores, to=to, engine=columns.engine, **settings, **days.settings, **columns.settings
        )
    if as_json:
        print_json(made.manifest.to_json())
        return
    say_wrapped(f"{made.title}.")
    say()
    print_table(*made.table())
    for note in made.notes:
        say_wrapped(note)
    say()
    say(f"The lists are in {to}.")
    say_next("prudent", "export", to, "-o", to.with_suffix(".jsonl"))
