"""`prudent evaluate`, `gate` and `split`: what a policy is worth on lists that it has not learned from."""

from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prudent.base.errors import UsageError
from prudent.cli.shared import (
    By,
    ByOption,
    Holdout,
    Json,
    MaxRejected,
    Reading,
    Time,
    app,
    check_parquet,
    columns_of,
    engine_of,
    files_of,
    fraction,
    open_log_alone,
    option,
    reads_logs,
)
from prudent.cli.show_judging import show_evaluation, show_mixture, show_verdict
from prudent.cli.terminal import busy, plain, print_json, say, say_next, several

if TYPE_CHECKING:
    from prudent.engines.duckdb.engine import DuckDB
    from prudent.logs.log import Log


class RewardName(StrEnum):
    """What a list is worth."""

    clicks = "clicks"
    any_click = "any-click"


class IntervalKind(StrEnum):
    """Where intervals come from."""

    bootstrap = "bootstrap"
    bernstein = "bernstein"


PolicyFile = Annotated[Path, typer.Argument(metavar="POLICY", help="The policy, as prudent rank wrote it.")]
HeldOutLog = Annotated[
    list[str],
    option("--log", help="Held-out click logs, which the policy has not learned from: files, globs; repeatable."),
]
MinLift = Annotated[
    float, option("--min-lift", parser=fraction, help="Pass if the lift is above this: 0.01 is 1 % more.")
]
RewardOption = Annotated[RewardName, option("--reward", help="Clicks on a list, or whether it has any.")]
IntervalOption = Annotated[
    IntervalKind, option("--interval", help="Bootstrap, or a guarantee for clipped weights and a propensity column.")
]
Replicates = Annotated[int, option("--replicates", min=20, help="Replicates of the bootstrap.")]
Seed = Annotated[int, option("--seed", min=0, help="Of the bootstrap: same seed, same interval.")]
Propensity = Annotated[
    str | None,
    option(
        "--propensity",
        panel="Log",
        help="Column of the probability of the list: a number, or one for each position. "
        "[dim]Default: frequencies.[/dim]",
    ),
]


@app.command("evaluate", rich_help_panel="Judge")
@reads_logs
def evaluate_command(
    policy: PolicyFile,
    log: HeldOutLog,
    reading: Reading,
    estimator: Annotated[
        list[str] | None,
        option(
            "--estimator",
            "-e",
            help="ips, ips(clip=50), snips, prefix-ips, ip-ips, pi, dm, dm(model=dcm), dr, dr(clip=10); repeatable. "
            "[dim]Default: most of these.[/dim]",
        ),
    ] = None,
    reward: RewardOption = RewardName.clicks,
    confidence: Annotated[float, option("--confidence", parser=fraction, help="Of the intervals.")] = 0.95,
    interval: IntervalOption = IntervalKind.bootstrap,
    replicates: Replicates = 200,
    seed: Seed = 0,
    propensity: Propensity = None,
    max_rejected: MaxRejected = 0.01,
    as_json: Json = False,
) -> None:
    """Estimate what a policy's lists would earn, on lists it has not learned from.

    Each estimator gives a value and a lift over what was logged, with intervals, or says that it cannot tell.
    """
    from prudent.evaluation.evaluate import DEFAULTS, evaluate
    from prudent.policies.policy import Policy

    held_out, engine = _held_out(log, reading, propensity, "evaluating")
    with busy("Evaluating"):
        found = evaluate(
            Policy.read(policy),
            held_out,
            estimator or DEFAULTS,
            reward=reward.value,
            confidence=confidence,
            interval=interval.value,
            replicates=replicates,
            seed=seed,
            engine=engine,
            max_rejected=max_rejected,
        )
    if as_json:
        print_json(found.as_json())
    else:
        show_evaluation(found)
        if not any(estimate.tells for estimate in found):
            return
        said = [*columns_of(reading), *(["--propensity", propensity] if propensity else [])]
        rewarded = ["--reward", reward.value] if reward != RewardName.clicks else []
        say_next("prudent", "gate", policy, *(word for name in log for word in ("--log", name)), *rewarded, *said)


@app.command("gate", rich_help_panel="Judge")
@reads_logs
def gate_command(
    policy: PolicyFile,
    log: HeldOutLog,
    reading: Reading,
    min_lift: MinLift = 0.0,
    confidence: Annotated[
        float, option("--confidence", parser=fraction, help="That the lift is at least what it says; one-sided.")
    ] = 0.95,
    estimator: Annotated[str, option("--estimator", "-e", help="The estimator that decides.")] = "dr(clip=10)",
    reward: RewardOption = RewardName.clicks,
    interval: IntervalOption = IntervalKind.bootstrap,
    replicates: Replicates = 200,
    seed: Seed = 0,
    min_support: Annotated[
        float,
        option("--min-support", parser=fraction, help="Say no where less of the lists can be told about."),
    ] = 0.5,
    per_context: Annotated[
        bool,
        option(
            "--per-context",
            help="Decide in each context: its new list where that is better with this confidence, under a click model, "
            "else what was mostly shown. Exit code 0 if there is any new list.",
        ),
    ] = False,
    output: Annotated[Path | None, option("--output", "-o", help="With --per-context: the mixed policy.")] = None,
    propensity: Propensity = None,
    max_rejected: MaxRejected = 0.01,
    as_json: Json = False,
) -> None:
    """Say whether a policy may go out: exit code 0 if its lift is above the least with this confidence, 1 if not."""
    from prudent.evaluation.gate import gate
    from prudent.evaluation.rollout import gate_contexts
    from prudent.policies.policy import Policy

    if per_context != (output is not None):
        raise UsageError("--per-context writes a mixed policy: give both, --per-context and -o FILE, or neither.")
    held_out, engine = _held_out(log, reading, propensity, "the gate")
    if output is not None:
        if (interval, replicates, seed, min_support) != (IntervalKind.bootstrap, 200, 0, 0.5):
            raise UsageError(
                "--per-context compares lists under a click model and has no use for --interval, --replicates, --seed "
                "and --min-support: leave them out."
            )
        model = _model_of(estimator)
        check_parquet(output, [policy, *files_of(log)])
        with busy("Comparing lists"):
            mixture = gate_contexts(
                Policy.read(policy),
                held_out,
                min_lift,
                confidence,
                model,
                reward=reward.value,
                engine=engine,
                max_rejected=max_rejected,
            )
            mixture.policy.write(output)
        show_mixture(mixture, output, as_json)
        raise typer.Exit(0 if mixture.passed else 1)
    with busy("Judging"):
        verdict = gate(
            Policy.read(policy),
            held_out,
            min_lift,
            confidence,
            estimator,
            reward=reward.value,
            interval=interval.value,
            replicates=replicates,
            seed=seed,
            min_support=min_support,
            engine=engine,
            max_rejected=max_rejected,
        )
    show_verdict(verdict, as_json)
    raise typer.Exit(0 if verdict.passed else 1)


def _model_of(estimator: str) -> str:
    """The click model of an estimator that has one."""
    from prudent.evaluation.estimators import parse

    model = getattr(parse(estimator), "model", None)
    if model is None:
        raise UsageError(f"--per-context compares lists under a click model: --estimator dm or dr, not {estimator}.")
    return str(model)


def _held_out(log: list[str], reading: Reading, propensity: str | None, what: str) -> "tuple[Log, DuckDB]":
    engine = engine_of(reading)
    held_out = open_log_alone(log, reading, engine, what)
    return (held_out if propensity is None else replace(held_out, propensity=propensity)), engine


@app.command("split", rich_help_panel="Judge")
@reads_logs
def split_command(
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT", help="Click logs: files, globs.")],
    reading: Reading,
    output: Annotated[Path, option("--output", "-o", help="Folder for train.parquet and holdout.parquet.")] = Path("."),
    holdout: Holdout = 0.2,
    by: ByOption = By.hash,
    time: Time = None,
    seed: Annotated[int, option("--seed", min=0, help="Another seed, another split by hash.")] = 0,
    as_json: Json = False,
) -> None:
    """Split a log into lists to learn from and lists to judge by."""
    from prudent.counts.split import split
    from prudent.storage.files import make_folder

    engine = engine_of(reading)
    log = open_log_alone(inputs, reading, engine, "splitting")
    folder = make_folder(output)
    train, held = folder / "train.parquet", folder / "holdout.parquet"
    for target in (train, held):
        check_parquet(target, files_of(inputs))
    with busy("Splitting"):
        found = split(log, train, held, holdout, by.value, time, seed, engine)
    if as_json:
        print_json(asdict(found))
        return
    lists = several(found.train, "list")
    say(f"Wrote {lists} to {plain(str(train))} and {found.holdout:,} to {plain(str(held))}.")
    say_next("prudent", "rank", train, "-o", "policy.parquet", *([] if reading.format else columns_of(reading)))
