"""The report: what would change, how sure that is, and why, in one HTML file."""

from os import PathLike
from typing import Any

from prudent.base.errors import LogError
from prudent.click_models.check import check
from prudent.click_models.compare import MODELS, Comparison, compare
from prudent.counts.counts import Counts, count
from prudent.counts.rejected import MAX_REJECTED
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.estimate import judge
from prudent.evaluation.estimators import Estimator, parse
from prudent.evaluation.estimators import estimators as known
from prudent.evaluation.evaluate import DECIDES, DEFAULTS, Evaluation, ask, manifest_of, open_held_out
from prudent.evaluation.gate import ask_gate, decide, refuse
from prudent.evaluation.holdout import Reward
from prudent.evaluation.leakage import not_held_out
from prudent.logs.formats import find_files
from prudent.logs.log import Log
from prudent.policies.policy import Policy
from prudent.reporting.render import render
from prudent.reporting.summarize import summarize
from prudent.storage.files import check_not_read, check_target, replacing

__all__ = ["TITLE", "render", "report", "summarize"]

TITLE = "Should these lists go out?"


def report(
    policy: Policy,
    log: Log,
    to: str | PathLike[str],
    train: Log | Counts | None = None,
    title: str = TITLE,
    estimator: str | Estimator = DECIDES,
    reward: Reward = "clicks",
    min_lift: float = 0.0,
    confidence: float = 0.95,
    seed: int = 0,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
) -> dict[str, Any]:
    """Write one HTML file that tells what would change if the policy went out; what it shows comes back as a dict.

    log
        Lists that the policy has not learned from: what it would earn is judged by them.
    train
        The log that the policy came from, or its counts; a policy fresh from `rank` has them. Without them, the
        held-out log tells what was mostly shown, and what was clicked is not known.
    estimator, min_lift
        What the gate asks, and for how much: see `prudent.gate`.
    reward, confidence, seed
        Of the estimates: see `prudent.evaluate`.
    """
    check_target(to)
    if isinstance(policy, Policy):
        check_not_read(to, policy.files)
    for read_here in (log, train):
        if isinstance(read_here, Log) and read_here.in_files:
            check_not_read(to, find_files(read_here.names))
    chosen = known.resolve(estimator)
    # What `evaluate` and `gate` do, with the log read once for both.
    asked = ask(reward, confidence, seed=seed)
    asked_by_gate = ask_gate(min_lift, confidence, reward, seed=seed)
    read = open_held_out(policy, log, engine, max_rejected)
    estimators = {str(one): one for one in (*map(parse, DEFAULTS), chosen)}
    evaluation = Evaluation(judge(read.held, list(estimators.values()), asked), manifest_of(read, log, asked))
    verdict = decide(read.held, chosen, asked_by_gate, min_lift)
    verdict = refuse(verdict, not_held_out(policy.manifest, log, read.tally.lists))
    counts = count(train, engine, max_rejected=max_rejected) if isinstance(train, Log) else train or policy.counts
    if isinstance(train, Log | Counts):
        _check_train(policy, counts)
    heard = counts if counts is not None else count(log, engine, max_rejected=max_rejected)
    comparison = _compare(policy, log, train if isinstance(train, Log) else None, engine, max_rejected)
    data = summarize(policy, heard, check(heard), evaluation, verdict, comparison, title, trained=counts is not None)
    with replacing(to) as part:
        part.write_text(render(data), encoding="utf-8")
    return data


def _check_train(policy: Policy, counts: Counts | None) -> None:
    """What is said to be the log that the policy came from has as many lists as that had."""
    training = policy.manifest.sources.get("training")
    if counts is not None and training is not None and counts.tally.lists != (lists := training.tally.lists):
        raise LogError(
            f"The policy came from {lists:,} lists, and {', '.join(counts.origin)} has {counts.tally.lists:,}: that is "
            "another log. Give the one it came from, or none."
        )


def _compare(
    policy: Policy, log: Log, train: Log | None, engine: DuckDB | None, max_rejected: float
) -> Comparison | str:
    """How well click models foresee the held-out lists, the policy's own among them; or why nobody knows."""
    settings = policy.manifest.settings
    models = dict.fromkeys([*MODELS, *([settings["model"]] if "model" in settings else [])])
    try:
        if train is None:
            return compare(log, models=list(models), engine=engine, max_rejected=max_rejected)
        return compare(train, log, list(models), engine=engine, max_rejected=max_rejected)
    except LogError as reason:  # too few lists, say, for a thing that is beside the point
        return str(reason)
