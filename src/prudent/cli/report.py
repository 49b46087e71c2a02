"""`prudent report` and `export`: a policy for people and for the program that serves it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import prudent
from prudent.base.text import number, several
from prudent.cli.options import (
    DayOptions,
    HoldoutLog,
    Json,
    LogOptions,
    MaxRejected,
    Memory,
    MinLift,
    Output,
    PolicyFile,
    Propensity,
    Reward,
    Seed,
    Threads,
    command,
    fraction,
    option,
)
from prudent.cli.output import busy, print_json, say, say_wrapped

if TYPE_CHECKING:
    from prudent.counts.counts import Counts
    from prudent.logs.log import Log


@command("report", "Evaluate")
def report_command(
    policy: PolicyFile,
    holdout: HoldoutLog,
    output: Output,
    log: LogOptions,
    days: DayOptions,
    scores: Annotated[
        Path | None, typer.Option(help="Scores of the policy (rank --scores), which explain items that are not listed.")
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(help="Log or counts the policy was trained on, for impressions and clicks; repeatable."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Headline of the page.")] = None,
    estimator: Annotated[
        str, option("--estimator", "-e", help="The estimator of the gate: {estimators}.")
    ] = "dr(clip=10)",
    reward: Reward = "clicks",
    min_lift: MinLift = 0.0,
    confidence: Annotated[
        float, option("--confidence", parser=fraction, help="Confidence level of the intervals and the gate.")
    ] = 0.95,
    propensity: Propensity = None,
    seed: Seed = 0,
    max_rejected: MaxRejected = 0.01,
    as_json: Json = False,
) -> None:
    """Write an HTML report: what would change, how certain, and why.

    One file that opens from disk, without a network.
    """
    from prudent.counts.source import as_counts, counted_files
    from prudent.evaluation.estimators import parse
    from prudent.logs.formats import find_files
    from prudent.storage.files import check_output

    gate_estimator = parse(estimator)  # a typo should not wait for the reading
    read = [policy, *find_files(holdout), *(find_files(train) if train else []), *([scores] if scores else [])]
    check_output(output, read, parquet=False)
    with busy("Evaluating and explaining"):
        opened = log.open(holdout, propensity=propensity)
        trained: Log | Counts | None = None
        if train is not None and not counted_files(train) and not days.settings:
            trained = log.open(train)
        elif train is not None:
            trained = as_counts(train, engine=log.engine, max_rejected=max_rejected, **days.settings, **log.settings)
        data = prudent.report(
            prudent.Policy.read(policy, scores),
            opened,
            to=output,
            train=trained,
            **({} if title is None else {"title": title}),
            estimator=gate_estimator,
            reward=reward,
            min_lift=min_lift,
            confidence=confidence,
            seed=seed,
            engine=log.engine,
            max_rejected=max_rejected,
        )
    contexts, change = data["contexts"], data["change"]
    if as_json:
        parts = {name: data[name] for name in ("title", "verdict", "headline", "change", "estimates")}
        print_json({"output": str(output), "explorable": len(contexts["shown"]), **parts})
        return
    say(f"{data['verdict']['word']}: {data['verdict']['why']}")
    if not change["holdout"]:
        say("No context of the policy is in the holdout, so the incumbent lists are unknown.")
    elif change["differ"] is not None:
        say(f"{change['differ']:,} of {several(change['contexts'], 'list')} differ from the incumbent.")
    say(f"{len(contexts['shown']):,} of {several(contexts['total'], 'context')} can be explored one by one.")
    for note in contexts["notes"]:
        say_wrapped(note)
    say()
    say(f"The report is in {output} ({number(output.stat().st_size / 1e6, 1)} MB). Open it in a browser.")


@command("export", "Serve")
def export_command(
    policy: PolicyFile,
    output: Output,
    format: Annotated[str, option("--format", help="{exports}; with settings: 'sql(table=lists)'.")] = "jsonl",
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Write the lists for the program that serves them."""
    from prudent.policies.export import parse
    from prudent.storage.files import check_output

    target = parse(format)  # a typo should not wait for the reading
    check_output(output, [policy], parquet=False)
    with busy("Exporting"):
        manifest = prudent.export(policy, output, format=target, engine=prudent.DuckDB(memory, threads))
    if as_json:
        print_json(manifest.to_json())
        return
    written = manifest.results
    rulesets = f" in {several(len(written['rulesets']), 'ruleset')}" if "rulesets" in written else ""
    items = several(written["items"], "item")
    say(f"Wrote {several(written['contexts'], 'list')}, {items} in all{rulesets}, to {output}.")
    if load := target.load(output):
        say(f"Next: {load}")
