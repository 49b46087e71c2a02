"""`prudent.report`: the verdict, the estimates and the lists behind them, in one HTML file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any, cast

from prudent.base.errors import LogError
from prudent.base.spec import check_share
from prudent.click_models.check import check
from prudent.click_models.compare import compare_read
from prudent.click_models.comparison import Comparison
from prudent.click_models.rewards import observed
from prudent.click_models.selection import names
from prudent.counts.count import as_counts, count, count_with_lists, counted_files
from prudent.counts.counts import Counts
from prudent.counts.lists_with_columns import list_columns
from prudent.counts.max_rejected import MAX_REJECTED, check_max_rejected, check_tally
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.estimators import Estimator, estimators, parse
from prudent.evaluation.evaluate import DECIDES, DEFAULTS, evaluate_holdout
from prudent.evaluation.gate import gate_holdout, gate_settings
from prudent.evaluation.holdout_log import HoldoutLog, PolicyLike, read_holdout
from prudent.evaluation.intervals import Settings, measure
from prudent.evaluation.refusals import MIN_SUPPORT, read_acknowledged
from prudent.logs.formats import find_files
from prudent.logs.log import Log, as_log
from prudent.policies.policy import Policy, as_policy
from prudent.reporting.changes import traffic, winners_and_losers
from prudent.reporting.labels import Labels
from prudent.reporting.period import read_period
from prudent.reporting.render import render
from prudent.reporting.segments import estimate_segments
from prudent.reporting.summarize import summarize
from prudent.storage.counts_file import Piece
from prudent.storage.files import TemporaryFolder, check_output, replacing
from prudent.storage.manifest import Tally
from prudent.storage.run import REWARD_UNITS

__all__ = ["TITLE", "render", "report", "summarize"]

TITLE = "Should these lists be deployed?"
MOST_COMPARED = 100_000
"""Lists that click models are compared on, of a sample of contexts: twice as many as ``auto`` is chosen on."""


def report(
    policy: PolicyLike,
    log: Any,
    *,
    to: str | PathLike[str],
    scores: str | PathLike[str] | None = None,
    train: Any = None,
    since: date | str | None = None,
    until: date | str | None = None,
    half_life: float | str | None = None,
    names: Any = None,
    remote_images: bool = False,
    time: str | None = None,
    title: str = TITLE,
    estimator: str | Estimator = DECIDES,
    reward: str = "clicks",
    min_lift: float = 0.0,
    min_support: float = MIN_SUPPORT,
    acknowledge: Sequence[str] | str = (),
    personalised: bool = False,
    confidence: float = 0.95,
    seed: int = 0,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
    **columns: Any,
) -> dict[str, Any]:
    """Write one HTML file with the verdict of the gate, all estimates and the lists; the same as data comes back.

    Each log is read once, the training log with the reward that the policy was ranked by, whatever `reward` is: lists
    are rejected as they were for the policy.

    policy, log
        Objects or paths. The log is a holdout: the policy was not trained on it. `columns` are arguments of `as_log`,
        such as the names of the columns of both logs, and a ``segment`` as in `prudent.gate`, by which the lift is also
        shown.
    scores
        Where the policy is a path, the file of its scores, which explain items that are not listed.
    train, since, until, half_life
        The training log, or its counts and their days, as in `prudent.rank`; a policy fresh from `rank` has them.
        Without them, incumbent lists come from the holdout, and clicks of single items are not shown.
    names
        A path or table with the column ``item`` and any of ``name``, ``image`` (a file in the folder of the table) and
        ``link``; a row with a ``context`` in place of an item names that. With `remote_images` images may also be
        addresses, which a browser loads whenever the page is opened.
    time
        Column of the time in both logs, for their first and last day.
    estimator, min_lift, min_support, acknowledge, personalised
        As in `prudent.gate`.
    reward, confidence, seed
        As in `prudent.evaluate`. What an item earns is in the unit that the policy was ranked by.

    >>> import prudent, pyarrow as pa, tempfile
    >>> log = [{"context": "shoes", "items": ["i1", "i2"], "clicks": [0, 1]}] * 9
    >>> policy = prudent.Policy.from_table(pa.Table.from_pylist(log[:1]), items="items")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = prudent.report(policy, pa.Table.from_pylist(log), to=f"{folder}/report.html")
    >>> data["verdict"]["verdict"]
    'unknown'
    """
    chosen = estimators.resolve(estimator)
    kind, named = observed(reward)
    settings = Settings(kind, confidence, seed=seed)
    gate_by = gate_settings(min_lift, confidence, kind, seed=seed)
    check_share("min_support", min_support)
    read_acknowledged(acknowledge)
    check_max_rejected(max_rejected)
    engine, folder = engine or DuckDB(), TemporaryFolder()
    policy = as_policy(policy, scores)
    log = log if isinstance(log, Counts) else as_log(log, engine=engine, **named, **columns)
    days = {name: value for name, value in (("since", since), ("until", until), ("half_life", half_life)) if value}
    train = _open_training(train, policy.reward or None, engine, max_rejected, days, columns)
    read = [file for one in (log, train) if isinstance(one, Log) and one.in_files for file in find_files(one.names)]
    labels = Labels(names, remote_images=remote_images, engine=engine)
    counted_from = train.files if isinstance(train, Counts) else ()
    check_output(to, [*policy.files, *read, *counted_from, *labels.files], parquet=False)
    logs = {"holdout": log, "training log": train}
    periods = {what: read_period(one, time, engine) for what, one in logs.items() if time and isinstance(one, Log)}

    # One after the other, so that what each step needs is not in memory together.
    counts, lists = policy.counts, list[tuple[Piece, str]]()  # of the training log
    if isinstance(train, Log):
        counts, sample = _count_with_lists(train, engine, max_rejected, MOST_COMPARED)
        lists.append(sample)
    elif train is not None:
        counts = train
    if train is not None and counts is not None:
        _check_train(policy, counts)
    health = None if counts is None else check(counts)
    holdout, counted, accepted = _holdout(policy, log, engine, max_rejected, folder, counts is None)
    shown = cast(Counts, counted) if counts is None else counts  # the holdout was counted where there are no others
    comparison = _compare(policy, holdout, train if isinstance(train, Log) else None, lists, engine)
    every = {str(one): one for one in (*map(parse, DEFAULTS), chosen)}
    measured = measure(holdout.lists, list(every.values()), settings)
    evaluation = evaluate_holdout(holdout, measured, settings)
    measured = [one for one in measured if str(one.estimator) == str(chosen)]
    verdict = gate_holdout(holdout, chosen, gate_by, min_lift, min_support, acknowledge, personalised, measured[0])
    shares, changes = traffic(holdout.lists), winners_and_losers(holdout, chosen, kind)
    segments = [] if accepted is None else estimate_segments(policy, holdout.log, accepted, engine, chosen, settings)
    del holdout
    data = summarize(
        policy,
        shown,
        health or check(shown),
        evaluation,
        verdict,
        comparison,
        title,
        counts is not None,
        labels=labels,
        shares=shares,
        changes=changes,
        segments=segments,
        periods=periods,
    )
    with replacing(to) as part:
        part.write_text(render(data), encoding="utf-8")
    return data


def _open_training(
    train: Any,
    reward: str | None,
    engine: DuckDB,
    max_rejected: float,
    days: Mapping[str, Any],
    columns: Mapping[str, Any],
) -> Log | Counts | None:
    """The training log, whose whole lists are compared too, with the reward of the policy; or counts."""
    own = {name: value for name, value in columns.items() if name not in ("propensity", "segment")}
    own |= {} if reward is None else {"reward": reward}
    if train is None:
        return None
    if isinstance(train, Log):
        return replace(train, reward=reward)
    if isinstance(train, Counts) or days or counted_files(train):
        return as_counts(train, engine=engine, max_rejected=max_rejected, **days, **own)
    return as_log(train, engine=engine, **own)


def _read_once(log: Log, engine: DuckDB, max_rejected: float, to: Path) -> tuple[Log, Tally]:
    """The accepted lists of a log in a temporary Parquet file, which all steps read in its place, and the tally."""
    in_units = f"list_transform(rewards, lambda reward: reward / {REWARD_UNITS}) as rewards"
    lists = "shown" if log.reward is None else f"(select * replace ({in_units}) from shown)"
    tally = engine.lists(log, f"select {list_columns(log)}, 1 as n from {lists}", to)
    tally = replace(tally, left_out={**log.left_out, **tally.left_out})
    check_tally(tally, log, max_rejected)
    if not tally.lists:
        raise LogError(f"All {tally.rejected_lists:,} lists of {log.name} were rejected: {'; '.join(tally.reasons)}.")
    propensity = None if log.propensity is None else "propensity"
    reward = None if log.reward is None else "rewards"
    segments, names = tuple(log.segments), tuple(log.names)
    return Log(str(to), propensity=propensity, reward=reward, segment=segments, origin=names), tally


def _count_with_lists(
    log: Log, engine: DuckDB, max_rejected: float, most: int | None = None
) -> tuple[Counts, tuple[Piece, str]]:
    """The counts and a sample of the whole lists of a log, read once."""
    counts, lists, threshold = count_with_lists(log, engine, max_rejected=max_rejected, most=most)
    if not (tally := counts.tally).lists:
        raise LogError(f"All {tally.rejected_lists:,} lists of {log.name} were rejected: {'; '.join(tally.reasons)}.")
    return counts, (lists, threshold)


def _holdout(
    policy: Policy, log: Any, engine: DuckDB, max_rejected: float, folder: TemporaryFolder, counted: bool
) -> tuple[HoldoutLog, Counts | None, Path | None]:
    """The holdout, read once; its counts where they are needed; and a file of its accepted lists if it has segments."""
    if not isinstance(log, Log) or not (counted or log.segments):
        return read_holdout(policy, log, engine, max_rejected), None, None  # which explains why counts will not do
    if log.propensity is None and log.reward is None and not log.segments:
        counts, (lists, _) = _count_with_lists(log, engine, max_rejected)
        return read_holdout(policy, log, engine, max_rejected, read=(counts.tally, lists)), counts, None
    file = folder.path / "holdout.parquet"
    accepted, tally = _read_once(log, engine, max_rejected, file)
    holdout = replace(read_holdout(policy, accepted, engine, max_rejected), log=log, tally=tally)
    if not counted:
        return holdout, None, file
    clicks = count(replace(accepted, reward=None), engine=engine)  # which is all that is shown of them
    return holdout, replace(clicks, tally=tally, origin=tuple(log.names)), file


def _check_train(policy: Policy, counts: Counts) -> None:
    """The training log has as many lists as the policy was trained on, and the same reward."""
    training = policy.manifest.sources.get("training")
    if training is None:
        return
    if counts.tally.reward != training.tally.reward:
        mine, theirs = (f"rewards ({one})" if one else "clicks" for one in (training.tally.reward, counts.tally.reward))
        raise LogError(
            f"The policy was ranked by {mine}, and {', '.join(counts.origin)} was counted by {theirs}. Pass the counts "
            "that it was ranked from, or the training log."
        )
    if counts.tally.lists != (lists := training.tally.lists):
        raise LogError(
            f"The policy was trained on {lists:,} lists, and {', '.join(counts.origin)} has {counts.tally.lists:,}: "
            "another log. Pass the training log, or none."
        )


def _compare(
    policy: Policy, holdout: HoldoutLog, train: Log | None, lists: list[tuple[Piece, str]], engine: DuckDB
) -> Comparison | str:
    """Click models compared on the holdout, the policy's own among them; or why they are not."""
    model = policy.manifest.settings.get("model")
    models = list(dict.fromkeys([*names(), *([model] if model else [])]))
    logs = [holdout.log] if train is None else [train, holdout.log]
    try:
        return compare_read(logs, [*lists, holdout.sample(MOST_COMPARED)], models, engine, MOST_COMPARED)
    except LogError as reason:  # such as too few lists; the rest of the report does not need it
        return str(reason)
