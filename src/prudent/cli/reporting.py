"""`prudent report`: what would change, how sure that is, and why, as one HTML file."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prudent.cli.judging import HeldOutLog, MinLift, PolicyFile, Propensity, RewardName, RewardOption
from prudent.cli.shared import (
    HalfLife,
    Json,
    MaxRejected,
    Output,
    Reading,
    Since,
    Until,
    app,
    check_output,
    counts_of,
    days_of,
    engine_of,
    files_of,
    fraction,
    open_log,
    open_log_alone,
    option,
    reads_logs,
)
from prudent.cli.show_reporting import show_report
from prudent.cli.terminal import busy, print_json

if TYPE_CHECKING:
    from prudent.counts.counts import Counts
    from prudent.logs.log import Log


@app.command("report", rich_help_panel="Judge")
@reads_logs
def report_command(
    reading: Reading,
    policy: PolicyFile,
    log: HeldOutLog,
    output: Output,
    scores: Annotated[
        Path | None, typer.Option(help="Its scores (rank --scores): what speaks for items that are not listed.")
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(help="The log or counts that it was made from: what was shown and clicked; repeatable."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Headline of the page.")] = None,
    estimator: Annotated[
        str | None,
        typer.Option("--estimator", "-e", help="What the gate asks, such as dm.", show_default="as prudent gate"),
    ] = None,
    reward: RewardOption = RewardName.clicks,
    min_lift: MinLift = 0.0,
    confidence: Annotated[float, option("--confidence", parser=fraction, help="Of intervals and of the gate.")] = 0.95,
    propensity: Propensity = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the random numbers.")] = 0,
    since: Since = None,
    until: Until = None,
    half_life: HalfLife = None,
    max_rejected: MaxRejected = 0.01,
    as_json: Json = False,
) -> None:
    """Write a report: what would change if the policy went out, how sure that is, and why.

    One HTML file that opens from disk, without a network.
    """
    from prudent.evaluation.estimators import parse
    from prudent.evaluation.evaluate import DECIDES
    from prudent.policies.policy import Policy
    from prudent.reporting import TITLE, report

    asked = parse(estimator or DECIDES)  # a typo should not wait for the reading
    read = [policy, *files_of(log), *(files_of(train) if train else []), *([scores] if scores else [])]
    check_output(output, read)
    engine = engine_of(reading)
    lists = Policy.read(policy, scores)
    held_out = replace(open_log_alone(log, reading, engine, "a report"), propensity=propensity)
    learned = None if train is None else _train(train, reading, max_rejected, days_of(since, until, half_life))
    with busy("Judging and explaining"):
        data = report(
            lists,
            held_out,
            output,
            train=learned,
            title=TITLE if title is None else title,
            estimator=asked,
            reward=reward.value,
            min_lift=min_lift,
            confidence=confidence,
            seed=seed,
            engine=engine,
            max_rejected=max_rejected,
        )
    if as_json:
        said = {name: data[name] for name in ("title", "verdict", "headline", "change", "estimates")}
        print_json({"output": str(output), "explorable": len(data["contexts"]["shown"]), **said})
    else:
        show_report(data, output)


def _train(inputs: list[str], reading: Reading, max_rejected: float, days: dict[str, str]) -> "Log | Counts":
    """The log as it is, for click models are compared on it; counts where there is no log."""
    from prudent.counts.counts import which_are_counts

    if days or which_are_counts(files_of(inputs)):
        return counts_of(inputs, reading, max_rejected, days=days)
    return open_log(inputs, reading, engine_of(reading))
