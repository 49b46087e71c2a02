"""`prudent plan` and `verify`: how large a test has to be, and whether lists keep their promise after the launch."""

from pathlib import Path
from typing import Annotated

from rich.markup import escape

import prudent
from prudent.base.text import plain
from prudent.cli.log_options import LogOptions
from prudent.cli.options import (
    HoldoutLog,
    Json,
    MaxRejected,
    PolicyFile,
    Reward,
    Seed,
    command,
    fraction,
    only_set,
    option,
    share_of,
)
from prudent.cli.output import Decided, busy, out, print_json, print_table, say, say_wrapped

_COLOURS = {"ok": "green", "alert": "red", "unknown": "yellow"}


@command("plan", "Evaluate")
def plan_command(
    policy: PolicyFile,
    log: HoldoutLog,
    columns: LogOptions,
    lift: Annotated[
        float | None,
        option("--lift", parser=share_of, help="Lift to find. [dim]Default: the estimate of prudent evaluate.[/dim]"),
    ] = None,
    drop: Annotated[
        float | None, option("--drop", parser=share_of, help="Drop below the promise for verify to find.")
    ] = None,
    share: Annotated[
        float | None, option("--share", parser=share_of, help="Share of the traffic in the arm of the policy.")
    ] = None,
    days: Annotated[float | None, option("--days", help="Days that the log covers, for numbers of days.")] = None,
    estimator: Annotated[
        str | None, option("--estimator", "-e", help="The estimator of the lift: {estimators}.")
    ] = None,
    reward: Reward = None,
    confidence: Annotated[float | None, option("--confidence", parser=fraction, help="Confidence level.")] = None,
    power: Annotated[
        float | None, option("--power", parser=fraction, help="Probability that the test finds it.")
    ] = None,
    seed: Seed = None,
    max_rejected: MaxRejected = None,
    as_json: Json = False,
) -> None:
    """Plan how many lists and days a test of a policy takes.

    An A/B test, team-draft interleaving, and verify after the launch.
    """
    settings = only_set(lift=lift, drop=drop, share=share, days=days, estimator=estimator, reward=reward)
    settings |= only_set(confidence=confidence, power=power, seed=seed, max_rejected=max_rejected)
    with busy("Planning"):
        found = prudent.plan(policy, log, engine=columns.engine, **settings, **columns.settings)
    if as_json:
        print_json(found.to_json())
        return
    say_wrapped(f"{found.title}.")
    print_table(*found.table())
    for note in found.notes:
        say_wrapped(note)


@command("verify", "Evaluate")
def verify_command(
    policy: PolicyFile,
    log: Annotated[
        list[str], option("--log", metavar="LOG", help="All lists since the launch: files, globs; repeatable.")
    ],
    columns: LogOptions,
    to: Annotated[
        Path | None, option("--to", "-o", help="Write metrics: NAME.json, or NAME.prom for Prometheus.")
    ] = None,
    promised: Annotated[
        float | None,
        option("--promised", help="Promised reward per list. [dim]Default: the estimates of the policy.[/dim]"),
    ] = None,
    tolerance: Annotated[
        float | None, option("--tolerance", parser=share_of, help="Share by which lists may earn less.")
    ] = None,
    reward: Reward = None,
    confidence: Annotated[
        float | None, option("--confidence", parser=fraction, help="Confidence level, over all nights together.")
    ] = None,
    max_rejected: MaxRejected = None,
    as_json: Json = False,
) -> None:
    """Compare what lists earn after the launch with what was promised.

    May run every night. Exit code 0 while the promise is kept; else 1, also where no list of the policy was shown.
    """
    settings = only_set(to=to, promised=promised, tolerance=tolerance, reward=reward, confidence=confidence)
    with busy("Verifying"):
        found = prudent.verify(
            policy, log, engine=columns.engine, **settings, **only_set(max_rejected=max_rejected), **columns.settings
        )
    if as_json:
        print_json(found.to_json())
    else:
        out.print(
            f"[bold {_COLOURS[found.verdict]}]{found.verdict}[/]  {escape(plain(found.sentence))}", soft_wrap=True
        )
        if found.drifts:
            print_table(*found.table())
        if to is not None:
            say(f"The metrics are in {to}.")
    raise Decided(0 if found else 1)
