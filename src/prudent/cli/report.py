"""`prudent report` and `export`: a policy for people and for the program that serves it."""

from pathlib import Path
from typing import Annotated

import typer

import prudent
from prudent.base.text import number, several
from prudent.cli.log_options import LogOptions
from prudent.cli.options import (
    AnyRewardGateOptions,
    DayOptions,
    HoldoutLog,
    Json,
    Memory,
    PolicyFile,
    Seed,
    Threads,
    To,
    command,
    fraction,
    only_set,
    option,
)
from prudent.cli.output import busy, print_json, say, say_wrapped


@command("report", "Evaluate")
def report_command(
    policy: PolicyFile,
    log: HoldoutLog,
    to: To,
    columns: LogOptions,
    days: DayOptions,
    *,
    scores: Annotated[
        Path | None, typer.Option(help="Scores of the policy (rank --scores), which explain items that are not listed.")
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(help="Log or counts the policy was trained on, for impressions and clicks; repeatable."),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(
            help="File with the column item and any of name, image (a file beside it) and link; a row with a context "
            "in place of an item names that."
        ),
    ] = None,
    remote_images: Annotated[
        bool, typer.Option("--remote-images", help="Images may be addresses: the browser loads them with the page.")
    ] = False,
    time: Annotated[str | None, option("--time", help="Column of the time in the logs, for their dates.")] = None,
    title: Annotated[str | None, typer.Option(help="Headline of the page.")] = None,
    estimator: Annotated[
        str | None, option("--estimator", "-e", help="The estimator of the gate: {estimators}.")
    ] = None,
    confidence: Annotated[
        float | None, option("--confidence", parser=fraction, help="Confidence level of the intervals and the gate.")
    ] = None,
    rule: AnyRewardGateOptions,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Write an HTML report: what would change, how certain, and why.

    One file that opens from disk, without a network.
    """
    settings = only_set(
        scores=scores,
        train=train,
        names=names,
        remote_images=remote_images,
        time=time,
        title=title,
        estimator=estimator,
        confidence=confidence,
        seed=seed,
    )
    settings |= rule.settings | days.settings | columns.settings
    with busy("Evaluating and explaining"):
        data = prudent.report(policy, log, to=to, engine=columns.engine, **settings)
    contexts, change = data["contexts"], data["change"]
    if as_json:
        parts = {name: data[name] for name in ("title", "verdict", "headline", "change", "estimates")}
        print_json({"output": str(to), "explorable": len(contexts["shown"]), **parts})
        return
    say(f"{data['verdict']['word']}: {data['verdict']['why']}")
    for line in data["verdict"]["acknowledged"]:
        say(f"Acknowledged: {line}")
    if not change["holdout"]:
        say("No context of the policy is in the holdout, so the incumbent lists are unknown.")
    elif change["differ"] is not None:
        say(f"{change['differ']:,} of {several(change['contexts'], 'list')} differ from the incumbent.")
    say(f"{len(contexts['shown']):,} of {several(contexts['total'], 'context')} can be explored one by one.")
    for note in contexts["notes"]:
        say_wrapped(note)
    say()
    say(f"The report is in {to} ({number(to.stat().st_size / 1e6, 1)} MB). Open it in a browser.")


@command("export", "Serve")
def export_command(
    policy: Annotated[Path, typer.Argument(metavar="POLICY", help="Policy, exploration or judgments.")],
    to: To,
    format: Annotated[
        str | None,
        option(
            "--format",
            help="{exports}; of judgments: {judgments}. With settings: 'sql(table=lists)'. "
            "[dim]Default: by the file's name.[/dim]",
        ),
    ] = None,
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Write lists, or judgments, for the program that reads them."""
    with busy("Exporting"):
        manifest = prudent.export(policy, to, format=format, engine=prudent.DuckDB(memory, threads))
    if as_json:
        print_json(manifest.to_json())
        return
    from prudent.policies.export import parse
    from prudent.policies.judgments.formats import judgment_formats

    written = manifest.results
    if "judgments" in manifest.settings:
        contexts = several(written["contexts"], "context")
        say(f"Wrote judgments of {several(written['items'], 'item')} in {contexts} to {to}.")
        if load := judgment_formats.parse(manifest.settings["format"]).load(to):
            say(f"Next: {load}")
        return
    rulesets = f" in {several(len(written['rulesets']), 'ruleset')}" if "rulesets" in written else ""
    items = several(written["items"], "item")
    if "exploration" in manifest.settings:
        lists = several(written["lists"], "list")
        say(f"Wrote {lists} of {several(written['contexts'], 'context')}, {items} in all, to {to}.")
        if load := parse(manifest.settings["format"]).load(to):
            say(f"Next: {load}")
        return
    say(f"Wrote {several(written['contexts'], 'list')}, {items} in all{rulesets}, to {to}.")
    if load := parse(manifest.settings["format"]).load(to):
        say(f"Next: {load}")
