"""`prudent.report`: the verdict, the estimates and the lists behind them, in one HTML file."""

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from prudent.base.errors import LogError
from prudent.click_models.check import check
from prudent.click_models.compare import compare
from prudent.click_models.comparison import Comparison
from prudent.click_models.rewards import ObservedReward
from prudent.click_models.selection import names
from prudent.counts.counts import Counts, count
from prudent.counts.max_rejected import MAX_REJECTED, check_max_rejected, check_tally
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.estimators import Estimator, estimators, parse
from prudent.evaluation.evaluate import DECIDES, DEFAULTS, evaluate_holdout
from prudent.evaluation.gate import decide, gate_settings
from prudent.evaluation.holdout_log import HoldoutLog, PolicyLike, open_holdout
from prudent.evaluation.intervals import Settings
from prudent.logs.formats import find_files
from prudent.logs.log import Log, as_log
from prudent.policies.policy import Policy, as_policy
from prudent.reporting.render import render
from prudent.reporting.summarize import summarize
from prudent.storage.files import TemporaryFolder, check_not_read, check_target, replacing
from prudent.storage.manifest import Tally

__all__ = ["TITLE", "render", "report", "summarize"]

TITLE = "Should these lists be deployed?"


def report(
    policy: PolicyLike,
    log: Any,
    *,
    to: str | PathLike[str],
    train: Any = None,
    title: str = TITLE,
    estimator: str | Estimator = DECIDES,
    reward: ObservedReward = "clicks",
    min_lift: float = 0.0,
    confidence: float = 0.95,
    seed: int = 0,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
) -> dict[str, Any]:
    """Write one HTML file with the verdict of the gate, all estimates and the lists; the same as data comes back.

    Each log is read once.

    policy, log
        Objects or paths. The log is a holdout: the policy was not trained on it.
    train
        The training log, or its counts; a policy fresh from `rank` has them. Without them, incumbent lists come from
        the holdout, and clicks of single items are not shown.
    estimator, min_lift
        As in `prudent.gate`.
    reward, confidence, seed
        As in `prudent.evaluate`.
    """
    policy, log = as_policy(policy), log if isinstance(log, Counts) else as_log(log)
    train = train if train is None or isinstance(train, Counts) else as_log(train)
    check_target(to)
    check_not_read(to, policy.files)
    for source in (log, train):
        if isinstance(source, Log) and source.in_files:
            check_not_read(to, find_files(source.names))
    chosen = estimators.resolve(estimator)
    settings = Settings(reward, confidence, seed=seed)
    gate_by = gate_settings(min_lift, confidence, reward, seed=seed)
    check_max_rejected(max_rejected)
    engine, folder = engine or DuckDB(), TemporaryFolder()

    holdout_log, holdout = _holdout(policy, log, engine, max_rejected, folder.path / "holdout.parquet")
    every = {str(one): one for one in (*map(parse, DEFAULTS), chosen)}
    evaluation = evaluate_holdout(holdout, list(every.values()), settings)
    verdict = decide(holdout.lists, chosen, gate_by, min_lift, leakage=holdout.leakage)

    training: Log | None = None
    counts = policy.counts
    if isinstance(train, Log):
        training, tally = _read_once(train, engine, max_rejected, folder.path / "training.parquet")
        counts = replace(count(training, engine), tally=tally, origin=tuple(train.names))
    elif train is not None:
        counts = train
    if train is not None and counts is not None:
        _check_train(policy, counts)
    trained = counts is not None
    if counts is None:
        counts = replace(count(holdout_log, engine), tally=holdout.tally, origin=tuple(holdout.log.names))
    comparison = _compare(policy, holdout_log, training, engine)
    data = summarize(policy, counts, check(counts), evaluation, verdict, comparison, title, trained)
    with replacing(to) as part:
        part.write_text(render(data), encoding="utf-8")
    return data


def _read_once(log: Log, engine: DuckDB, max_rejected: float, to: Path) -> tuple[Log, Tally]:
    """The accepted lists of a log in a temporary Parquet file, which all steps read in its place, and the tally."""
    columns = "context, items, clicks" + ("" if log.propensity is None else ", propensity")
    tally = engine.lists(log, f"select {columns}, 1 as n from shown", to)  # noqa: S608 (fixed names)
    tally = replace(tally, left_out=log.left_out)
    check_tally(tally, log, max_rejected)
    if not tally.lists:
        raise LogError(f"All {tally.bad:,} lists of {log.name} were rejected: {'; '.join(tally.reasons)}.")
    propensity = None if log.propensity is None else "propensity"
    return Log(str(to), propensity=propensity, origin=tuple(log.names)), tally


def _holdout(policy: Policy, log: Any, engine: DuckDB, max_rejected: float, to: Path) -> tuple[Log, HoldoutLog]:
    """The holdout, read once, with the names and the tally of the log itself."""
    if not isinstance(log, Log):
        return log, open_holdout(policy, log, engine, max_rejected)  # which explains why counts will not do
    accepted, tally = _read_once(log, engine, max_rejected, to)
    holdout = open_holdout(policy, accepted, engine, max_rejected)
    return accepted, replace(holdout, log=log, tally=tally)


def _check_train(policy: Policy, counts: Counts) -> None:
    """The training log has as many lists as the policy was trained on."""
    training = policy.manifest.sources.get("training")
    if training is not None and counts.tally.lists != (lists := training.tally.lists):
        raise LogError(
            f"The policy was trained on {lists:,} lists, and {', '.join(counts.origin)} has {counts.tally.lists:,}: "
            "another log. Pass the training log, or none."
        )


def _compare(policy: Policy, log: Log, train: Log | None, engine: DuckDB) -> Comparison | str:
    """Click models compared on the holdout, the policy's own among them; or why they are not."""
    model = policy.manifest.settings.get("model")
    models = list(dict.fromkeys([*names(), *([model] if model else [])]))
    try:
        if train is None:
            return compare(log, models=models, engine=engine)
        return compare(train, log, models=models, engine=engine)
    except LogError as reason:  # such as too few lists; the rest of the report does not need it
        return str(reason)
