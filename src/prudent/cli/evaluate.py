"""`prudent evaluate`, `gate`, `gate-contexts` and `split`: the value of a policy on lists it was not trained on."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from rich.markup import escape

import prudent
from prudent.base.text import plain, several
from prudent.cli.log_options import LogOptions, LogReward
from prudent.cli.options import (
    AnyReward,
    AnyRewardGateOptions,
    By,
    GateOptions,
    Holdout,
    HoldoutLog,
    Interval,
    Json,
    Logs,
    MaxRejected,
    OneSided,
    PolicyFile,
    Propensity,
    Replicates,
    Seed,
    Segment,
    Time,
    command,
    fraction,
    only_set,
    option,
)
from prudent.cli.output import Decided, busy, out, print_json, print_table, say, say_next, say_wrapped

if TYPE_CHECKING:
    from prudent.evaluation.evaluate import Evaluation
    from prudent.evaluation.verdict import Outcome


@command("evaluate", "Evaluate")
def evaluate_command(
    policy: PolicyFile,
    log: HoldoutLog,
    columns: LogOptions,
    estimator: Annotated[
        list[str] | None,
        option(
            "--estimator", "-e", metavar="NAME", help="{estimators}; e.g. 'ips(clip=50)', 'dm(model=dcm)'; repeatable."
        ),
    ] = None,
    reward: AnyReward = None,
    confidence: Annotated[
        float | None, option("--confidence", parser=fraction, help="Confidence level of intervals.")
    ] = None,
    interval: Interval = None,
    replicates: Replicates = None,
    seed: Seed = None,
    propensity: Propensity = None,
    segment: Segment = None,
    max_rejected: MaxRejected = None,
    as_json: Json = False,
) -> None:
    """Estimate the value of a policy's lists on a holdout.

    Each estimator gives a value and a lift over the logged lists, with intervals, or the reason why it cannot.
    """
    settings = only_set(estimator=estimator, reward=reward, confidence=confidence, interval=interval, seed=seed)
    settings |= only_set(replicates=replicates, propensity=propensity, segment=segment, max_rejected=max_rejected)
    with busy("Evaluating"):
        evaluation = prudent.evaluate(policy, log, engine=columns.engine, **settings, **columns.settings)
    if as_json:
        print_json(evaluation.to_json())
        return
    _show_evaluation(evaluation)
    if any(estimate.known for estimate in evaluation):
        options = [*columns.again(), *(["--propensity", propensity] if propensity else [])]
        options += [word for name in segment or [] for word in ("--segment", name)]
        options += ["--reward", reward] if reward else []
        say_next("prudent", "gate", policy, *(word for name in log for word in ("--log", name)), *options)


@command("gate", "Evaluate")
def gate_command(
    policy: PolicyFile,
    log: HoldoutLog,
    columns: LogOptions,
    rule: AnyRewardGateOptions,
    estimator: Annotated[
        str | None, option("--estimator", "-e", help="The estimator that decides: {estimators}.")
    ] = None,
    confidence: OneSided = None,
    interval: Interval = None,
    replicates: Replicates = None,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Decide whether to roll out a policy, by exit code.

    0 if its lift over the logged lists is above the minimum, with this confidence; else 1: it is not, or the holdout
    cannot tell.
    """
    settings = only_set(estimator=estimator, confidence=confidence, interval=interval, replicates=replicates, seed=seed)
    with busy("Evaluating"):
        verdict = prudent.gate(policy, log, engine=columns.engine, **settings, **rule.settings, **columns.settings)
    _exit(verdict.verdict, verdict.sentence, verdict.to_json() if as_json else None, *map(str, verdict.segments))


@command("gate-contexts", "Evaluate")
def gate_contexts_command(
    policy: PolicyFile,
    log: HoldoutLog,
    to: Annotated[Path, option("--to", "-o", help="The mixed policy to write.")],
    columns: LogOptions,
    rule: GateOptions,
    estimator: Annotated[
        str | None, option("--estimator", "-e", help="An estimator with the click model to compare under: dm, dr.")
    ] = None,
    confidence: OneSided = None,
    as_json: Json = False,
) -> None:
    """Decide context by context, and write a mixed policy.

    It has the new list where a click model finds it better with this confidence, else the incumbent list. Exit code 0 if any list is new; else 1.
    """  # noqa: E501 (a line break here would be one in a terminal)
    settings = only_set(estimator=estimator, confidence=confidence) | rule.settings | columns.settings
    with busy("Evaluating"):
        mixture = prudent.gate_contexts(policy, log, to=to, engine=columns.engine, **settings)
    written = [*map(str, mixture.segments), *([] if mixture.mixed is None else [f"The mixed policy is in {to}."])]
    _exit(mixture.verdict, mixture.why, mixture.to_json() if as_json else None, *written)


_COLOURS = {"pass": "green", "fail": "red", "unknown": "yellow"}


def _exit(decided: "Outcome", why: str, content: dict[str, Any] | None, *more: str) -> NoReturn:
    """Print a decision, as JSON where there is some, and exit by it."""
    if content is not None:
        print_json(content)
    else:
        out.print(f"[bold {_COLOURS[decided]}]{decided}[/]  {escape(plain(why))}", soft_wrap=True)
        for line in more:
            say(line)
    raise Decided(0 if decided == "pass" else 1)


@command("split", "Evaluate")
def split_command(
    logs: Logs,
    log: LogOptions,
    to: Annotated[Path | None, option("--to", "-o", help="Folder for train.parquet and holdout.parquet.")] = None,
    holdout: Holdout = None,
    by: By = None,
    time: Time = None,
    seed: Seed = None,
    reward: LogReward = None,
    as_json: Json = False,
) -> None:
    """Split a log into a training log and a holdout."""
    settings = only_set(to=to, holdout=holdout, by=by, time=time, seed=seed, reward=reward)
    with busy("Splitting"):
        parts = prudent.split(logs, engine=log.engine, **settings, **log.settings)
    train, held = parts.train, parts.holdout
    if as_json:
        print_json({"train": asdict(train), "holdout": asdict(held), "reward": parts.reward})
        return
    say(f"Wrote {several(train.lists, 'list')} to {train.path} and {held.lists:,} to {held.path}.")
    say(f"Clicks per list: {train.clicks_per_list:.4f} and {held.clicks_per_list:.4f}.")
    again = [*([] if log.format else log.again()), *(["--reward", parts.reward] if parts.reward else [])]
    say_next("prudent", "rank", train.path, "-o", "policy.parquet", *again)


def _show_evaluation(evaluation: "Evaluation") -> None:
    columns, rows = evaluation.table()
    say_wrapped(evaluation.title)
    if rows:
        print_table(columns, rows, wide=True)
    for note in evaluation.notes:
        say_wrapped(note)
    say("")
    say_wrapped(evaluation.verdict)
