"""HoldoutLog: a policy and a log as arrays; names become numbers in a database."""

import warnings
from dataclasses import dataclass, fields, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from prudent.base.arrays import BoolArray, IntArray
from prudent.base.errors import LogError, PolicyError, PrudentWarning, UsageError
from prudent.click_models.base import ClickModel, click_models
from prudent.counts.counts import Counts
from prudent.counts.index import name_types
from prudent.counts.lists import as_batches, list_columns, numbered, write_lists
from prudent.counts.max_rejected import check_max_rejected
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.confounding_by_segment import SegmentedLists, SegmentTest, detect_by_segments
from prudent.evaluation.holdout import NEVER, Holdout, make_holdout
from prudent.evaluation.leakage import find_leakage, find_same_lists
from prudent.logs.log import Log, as_log
from prudent.policies.files import check_lists
from prudent.policies.policy import Policy, as_policy
from prudent.storage.digest import Digest, digest_lists
from prudent.storage.files import TemporaryFolder, writing_temporary
from prudent.storage.manifest import Manifest, Tally
from prudent.storage.quoting import file_text, text
from prudent.storage.sketch import below, sample_threshold

PolicyLike = Policy | str | PathLike[str]
"""A policy or the path of one."""


@dataclass(frozen=True, eq=False)
class HoldoutLog:
    """A policy, a log it is evaluated on, its lists as arrays, and a database with the names of their numbers.

    The rowids of its tables ``pairs`` (context, item) and ``contexts`` are the numbers; ``policy`` has the policy.
    """

    policy: Policy
    log: Log
    lists: Holdout
    target: IntArray  # the policy's lists, whole
    connection: duckdb.DuckDBPyConnection
    tally: Tally
    policy_contexts: int
    leakage: str  # why the log is no holdout for the policy; empty where there is no reason
    digest: Digest | None  # of the log
    segmented: SegmentedLists | None = None  # a sample of contexts, where the log names segments

    @cached_property
    def segments(self) -> tuple[SegmentTest, ...]:
        """Whether the segments that the log names confound clicks; none where it has propensities."""
        if self.segmented is None or self.log.propensity is not None:
            return ()
        return detect_by_segments(self.segmented, self.log.segments)


def open_holdout(
    policy: PolicyLike, log: Any, engine: DuckDB | None, max_rejected: float, **columns: Any
) -> HoldoutLog:
    """The policy and the lists of the log, which are read once; `columns` are arguments of `as_log`."""
    policy = as_policy(policy)
    if isinstance(log, Counts):
        raise UsageError("Evaluating needs the log: counts do not keep whole lists.")
    log = as_log(log, engine=engine, **columns)
    check_max_rejected(max_rejected)
    holdout = _read(policy, log, engine or DuckDB(), max_rejected)
    if holdout.tally.rejected_lists:
        every = holdout.tally.lists + holdout.tally.rejected_lists
        reasons = "; ".join(holdout.tally.reasons)
        message = f"{holdout.tally.rejected_lists:,} of {every:,} lists were rejected: {reasons}."
        warnings.warn(message, PrudentWarning, stacklevel=3)
    return holdout


def _read(policy: Policy, log: Log, engine: DuckDB, max_rejected: float) -> HoldoutLog:
    """Read a log once: its distinct lists, beside the policy's."""
    folder = TemporaryFolder()
    chosen, lists = folder.path / "policy.parquet", folder.path / "lists.parquet"
    with writing_temporary(folder.path):
        policy.lists().write_parquet(str(chosen))
    connection = engine.open()
    connection.execute(f"create table policy as from read_parquet({file_text(chosen)})")
    check_lists(connection, "policy")
    ((longest, contexts),) = connection.execute("select max(rank), count(distinct context) from policy").fetchall()
    if not contexts:
        raise PolicyError("The policy has no lists.")
    tally = write_lists(log, engine, lists, max_rejected=max_rejected)
    segmented = _read_segments(engine, log, lists) if log.segments and tally.lists else None
    if not tally.lists:
        raise LogError(f"All {tally.rejected_lists:,} lists of {log.name} were rejected: {'; '.join(tally.reasons)}.")
    mine, theirs = (
        " and ".join(kind.removeprefix("unsigned ") for kind in name_types(connection, file, item))
        for file, item in ((chosen, "item"), (lists, "items[1]"))
    )
    if mine != theirs:
        raise LogError(
            f"The policy names its contexts and items by {mine}, {log.name} by {theirs}: they have none in common."
        )
    weighed = log.propensity is not None
    (shown,) = as_batches(connection, [numbered(lists)], weighed=weighed, dtype=np.int32)  # half the memory
    target, known = _target(connection, max(int(longest), shown.length))
    lists_of_log = make_holdout(shown, target, known, trained_model(policy.manifest, shown.length))
    whole = f"from read_parquet({file_text(lists)})"
    leakage = find_leakage(policy.manifest, log, tally.lists) or find_same_lists(policy.manifest, connection, whole)
    digest = digest_lists(connection, whole)
    return HoldoutLog(policy, log, lists_of_log, target, connection, tally, int(contexts), leakage, digest, segmented)


_SEGMENTED_LISTS = 100_000


def _read_segments(engine: DuckDB, log: Log, lists: Path) -> SegmentedLists:
    """Take the segments out of a file of distinct lists; they come back beside lists of a sample of contexts."""
    connection = engine.open()
    whole = f"read_parquet({file_text(lists)})"
    contexts = f"select context, sum(n) as lists from {whole} group by context"
    sample = below(sample_threshold(connection, contexts, _SEGMENTED_LISTS))
    number = f"row_number() over (order by {list_columns(log)}) - 1"
    connection.execute(f"create table sample as select *, {number} as list from {whole} where {sample}")
    (batch,) = as_batches(connection, ["sample"])
    ranks = ", ".join(f"dense_rank() over (order by {name}) - 1" for name in log.segments)
    values = connection.execute(f"select {ranks} from sample order by list").fetchnumpy()
    keys = list_columns(replace(log, segment=()))
    part = lists.with_suffix(".part")
    with writing_temporary(lists.parent):
        connection.execute(
            f"copy (select {keys}, sum(n)::bigint as n from {whole} group by {keys}) to {text(part)} (format parquet)"
        )
    part.replace(lists)
    return SegmentedLists(batch, np.stack([column.astype(np.int64) for column in values.values()], axis=1))


def trained_model(manifest: Manifest, length: int) -> ClickModel | None:
    """The policy's click model with its fitted parameters as settings; None where it has none for this many positions.

    >>> made = Manifest("policy", {"model": "pbm"}, results={"fitted": {"examination": [1.0, 0.6], "prior": {}}})
    >>> str(trained_model(made, 2))
    'pbm(examination=[1, 0.6])'
    """
    spelled, fitted = manifest.settings.get("model"), manifest.results.get("fitted", {})
    try:
        model: Any = click_models.parse(str(spelled))
        known = {one.name: fitted[one.name] for one in fields(model) if one.name in fitted}
        enough = known and all(len(values) >= length for values in known.values())
        return replace(model, **known) if enough else None
    except (UsageError, TypeError):  # made elsewhere, or by a model that is not installed
        return None


def _target(connection: duckdb.DuckDBPyConnection, length: int) -> tuple[IntArray, BoolArray]:
    """The policy's list of every context, and whether it has one."""
    found = connection.execute(
        f"select contexts.rowid as number, rank - 1 as place, coalesce(pairs.rowid, {NEVER}) as pair "
        "from policy join contexts using (context) left join pairs using (context, item) "
        f"where rank <= {length:d}"
    ).fetchnumpy()
    ((contexts,),) = connection.execute("select count(*) from contexts").fetchall()
    target, known = np.full((contexts, length), -1), np.zeros(contexts, bool)
    target[found["number"], found["place"]] = found["pair"]
    known[found["number"]] = True
    return target, known
