"""`prudent evaluate`, `gate` and `split`: the value of a policy on lists it was not trained on."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

import prudent
from prudent.base.errors import UsageError
from prudent.base.text import plain, several
from prudent.cli.options import (
    By,
    Holdout,
    HoldoutLog,
    Interval,
    Json,
    LogOptions,
    Logs,
    MaxRejected,
    MinLift,
    PolicyFile,
    Propensity,
    Replicates,
    Reward,
    Seed,
    Time,
    command,
    fraction,
    option,
)
from prudent.cli.output import busy, out, print_json, print_table, say, say_next, say_wrapped

if TYPE_CHECKING:
    from prudent.evaluation.evaluate import Evaluation


@command("evaluate", "Evaluate")
def evaluate_command(
    policy: PolicyFile,
    holdout: HoldoutLog,
    log: LogOptions,
    estimator: Annotated[
        list[str] | None,
        option(
            "--estimator",
            "-e",
            help="{estimators}; e.g. 'ips(clip=50)', 'dm(model=dcm)'; repeatable. [dim]Default: most of these.[/dim]",
        ),
    ] = None,
    reward: Reward = "clicks",
    confidence: Annotated[float, option("--confidence", parser=fraction, help="Confidence level of intervals.")] = 0.95,
    interval: Interval = "bootstrap",
    replicates: Replicates = 200,
    seed: Seed = 0,
    propensity: Propensity = None,
    max_rejected: MaxRejected = 0.01,
    as_json: Json = False,
) -> None:
    """Estimate the value of a policy's lists on a holdout.

    Each estimator gives a value and a lift over the logged lists, with intervals, or the reason why it cannot.
    """
    with busy("Evaluating"):
        evaluation = prudent.evaluate(
            prudent.Policy.read(policy),
            log.open(holdout, propensity=propensity),
            **({"estimators": estimator} if estimator else {}),
            reward=reward,
            confidence=confidence,
            interval=interval,
            replicates=replicates,
            seed=seed,
            engine=log.engine,
            max_rejected=max_rejected,
        )
    if as_json:
        print_json(evaluation.to_json())
        return
    _show_evaluation(evaluation)
    if any(estimate.known for estimate in evaluation):
        options = [*log.again(), *(["--propensity", propensity] if propensity else [])]
        options += ["--reward", reward] if reward != "clicks" else []
        say_next("prudent", "gate", policy, *(word for name in holdout for word in ("--log", name)), *options)


@command("gate", "Evaluate")
def gate_command(
    policy: PolicyFile,
    holdout: HoldoutLog,
    log: LogOptions,
    min_lift: MinLift = 0.0,
    confidence: Annotated[float, option("--confidence", parser=fraction, help="Confidence level, one-sided.")] = 0.95,
    estimator: Annotated[
        str, option("--estimator", "-e", help="The estimator that decides: {estimators}.")
    ] = "dr(clip=10)",
    reward: Reward = "clicks",
    interval: Interval = "bootstrap",
    replicates: Replicates = 200,
    seed: Seed = 0,
    min_support: Annotated[
        float, option("--min-support", parser=fraction, help="Unknown if support is below this share of lists.")
    ] = 0.5,
    acknowledge: Annotated[
        list[str] | None,
        option("--acknowledge", help="A refusal that you take the responsibility for: click-model; repeatable."),
    ] = None,
    per_context: Annotated[
        bool,
        option(
            "--per-context",
            help="Decide per context: the new list where a click model finds it better with this confidence, else the "
            "incumbent list. Exit code 0 if any list is new.",
        ),
    ] = False,
    output: Annotated[Path | None, option("--output", "-o", help="With --per-context: the mixed policy.")] = None,
    propensity: Propensity = None,
    max_rejected: MaxRejected = 0.01,
    as_json: Json = False,
) -> None:
    """Decide whether to roll out a policy, by exit code.

    0 if its lift over the logged lists is above the minimum, with this confidence; else 1: it is not, or the holdout
    cannot tell.
    """
    from prudent.logs.formats import find_files
    from prudent.storage.files import check_output

    if per_context != (output is not None):
        raise UsageError("--per-context and -o FILE, the mixed policy to write, go together: set both or neither.")
    if output is not None:
        if (interval, replicates, seed) != ("bootstrap", 200, 0):
            raise UsageError(
                "--per-context compares lists under a click model: --interval, --replicates and --seed do not apply."
            )
        check_output(output, [policy, *find_files(holdout)])
    with busy("Evaluating"):
        opened = log.open(holdout, propensity=propensity)
        lists = prudent.Policy.read(policy)
        if output is None:
            verdict = prudent.gate(
                lists,
                opened,
                min_lift=min_lift,
                confidence=confidence,
                estimator=estimator,
                reward=reward,
                interval=interval,
                replicates=replicates,
                seed=seed,
                min_support=min_support,
                acknowledge=acknowledge or (),
                engine=log.engine,
                max_rejected=max_rejected,
            )
            decided, why, content = verdict.verdict, verdict.sentence, verdict.to_json()
        else:
            mixture = prudent.gate_contexts(
                lists,
                opened,
                min_lift=min_lift,
                confidence=confidence,
                estimator=estimator,
                reward=reward,
                min_support=min_support,
                acknowledge=acknowledge or (),
                engine=log.engine,
                max_rejected=max_rejected,
            )
            if mixture.verdict != "unknown":
                mixture.policy.write(output)
            decided, why, content = mixture.verdict, mixture.why, mixture.to_json()
    if as_json:
        print_json(content)
    else:
        out.print(f"[bold {_COLOURS[decided]}]{decided}[/]  {escape(plain(why))}", soft_wrap=True)
        if output is not None and decided != "unknown":
            say(f"The mixed policy is in {output}.")
    raise typer.Exit(0 if decided == "pass" else 1)


_COLOURS = {"pass": "green", "fail": "red", "unknown": "yellow"}


@command("split", "Evaluate")
def split_command(
    logs: Logs,
    log: LogOptions,
    output: Annotated[Path, option("--output", "-o", help="Folder for train.parquet and holdout.parquet.")] = Path("."),
    holdout: Holdout = 0.2,
    by: By = "hash",
    time: Time = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Split a log into a training log and a holdout."""
    opened = log.open(logs)
    with busy("Splitting"):
        parts = prudent.split(opened, output, holdout=holdout, by=by, time=time, seed=seed, engine=log.engine)
    train, held = parts.train, parts.holdout
    if as_json:
        print_json({"train": asdict(train), "holdout": asdict(held)})
        return
    say(f"Wrote {several(train.lists, 'list')} to {train.path} and {held.lists:,} to {held.path}.")
    say(f"Clicks per list: {train.clicks_per_list:.4f} and {held.clicks_per_list:.4f}.")
    say_next("prudent", "rank", train.path, "-o", "policy.parquet", *([] if log.format else log.again()))


def _show_evaluation(evaluation: "Evaluation") -> None:
    columns, rows = evaluation.table()
    say_wrapped(evaluation.title)
    if rows:
        print_table(columns, rows, wide=True)
    for note in evaluation.notes:
        say_wrapped(note)
    say("")
    say_wrapped(evaluation.verdict)
