"""HoldoutLog: a policy and a log as arrays."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import duckdb
import numpy as np

from prudent.base.arrays import IntArray
from prudent.base.errors import LogError, PrudentWarning, UsageError
from prudent.base.results import ArrowStream
from prudent.counts.counts import Counts
from prudent.counts.lists import batch_of, digest_of, name_kinds, name_tables, read_whole_lists
from prudent.counts.lists_with_columns import ListsWithColumns, read_with_columns
from prudent.counts.max_rejected import check_max_rejected
from prudent.engines import kernel
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.confounding_by_segment import SegmentedLists, SegmentTest, detect_by_segments
from prudent.evaluation.holdout import Holdout, make_holdout
from prudent.evaluation.leakage import find_leakage, find_same_lists
from prudent.evaluation.selection import find_selection
from prudent.evaluation.target import find_target, read_lists_of
from prudent.logs.log import Log, as_log
from prudent.policies.policy import Policy, as_policy
from prudent.policies.trained_model import trained_model
from prudent.storage.counts_file import Piece
from prudent.storage.digest import Digest
from prudent.storage.manifest import Tally
from prudent.storage.run import Run
from prudent.storage.sketch import sample_of

PolicyLike = Policy | str | PathLike[str]
"""A policy or the path of one."""


@dataclass(frozen=True, eq=False)
class HoldoutLog:
    """A policy, a log it is evaluated on, its lists as arrays, and the names of their numbers."""

    policy: Policy
    log: Log
    lists: Holdout
    target: IntArray  # the policy's lists, whole
    names: Run  # of contexts and pairs
    engine: DuckDB
    tally: Tally
    policy_contexts: int
    leakage: str  # why the log is no holdout for the policy; empty where there is no reason
    digest: Digest | None  # of the log
    segmented: SegmentedLists | None = None  # a sample of contexts, where the log names segments

    def sample(self, most: int) -> tuple[Piece, str]:
        """The lists as they were read, without propensities; of more than `most`, a sample of contexts.

        The threshold of the sample comes second (`prudent.storage.sketch`).
        """
        with self.engine.connect() as connection:
            threshold, chosen = sample_of(connection, self.names.contexts, self.lists.logged, most)
        whole = self.lists.only(chosen).lists.whole_lists
        return Piece(self.names if chosen.all() else self.names.only(chosen), kernel.distinct(whole)), threshold

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """A database with the policy in the table ``policy``, and the names of `name_tables`."""
        connection = self.engine.open()
        name_tables(connection, self.names)
        connection.register("given", ArrowStream(self.policy.lists()))
        connection.execute("create table policy as from given")
        connection.unregister("given")
        return connection

    @cached_property
    def selection(self) -> str:
        """Why its lists do not stand for all that were logged; empty where there is no sign of it."""
        lists = int(self.lists.logged[self.lists.known].sum())
        return find_selection(self.policy, self.names.contexts, self.log, self.tally, lists)

    @cached_property
    def segments(self) -> tuple[SegmentTest, ...]:
        """Whether the segments that the log names confound clicks; none where it has propensities."""
        if self.segmented is None or self.log.propensity is not None:
            return ()
        return detect_by_segments(self.segmented, self.log.segments)


def open_holdout(
    policy: PolicyLike, log: Any, engine: DuckDB | None, max_rejected: float, **columns: Any
) -> HoldoutLog:
    """The policy and the lists of the log, which are read once, with a warning where some are rejected.

    `columns` are arguments of `as_log`.
    """
    holdout = read_holdout(policy, log, engine, max_rejected, **columns)
    if holdout.tally.rejected_lists:
        every = holdout.tally.lists + holdout.tally.rejected_lists
        reasons = "; ".join(holdout.tally.reasons)
        message = f"{holdout.tally.rejected_lists:,} of {every:,} lists were rejected: {reasons}."
        warnings.warn(message, PrudentWarning, stacklevel=3)
    return holdout


def read_holdout(
    policy: PolicyLike,
    log: Any,
    engine: DuckDB | None,
    max_rejected: float,
    read: tuple[Tally, Piece] | None = None,
    **columns: Any,
) -> HoldoutLog:
    """The same without a warning. `read` is the tally of the log and its whole lists, where these were read already."""
    policy = as_policy(policy)
    if isinstance(log, Counts):
        raise UsageError("Evaluating needs the log: counts do not keep whole lists.")
    log = as_log(log, engine=engine, **columns)
    check_max_rejected(max_rejected)
    return _read(policy, log, engine or DuckDB(), max_rejected, read)


def _read(
    policy: Policy, log: Log, engine: DuckDB, max_rejected: float, read: tuple[Tally, Piece] | None
) -> HoldoutLog:
    """Read a log once: its distinct lists, beside the policy's."""
    chosen = read_lists_of(policy)
    tally, found = _read_lists(log, engine, max_rejected) if read is None else _as_found(*read)
    if found is None:
        raise LogError(f"All {tally.rejected_lists:,} lists of {log.name} were rejected: {'; '.join(tally.reasons)}.")
    names, shown, segmented = found
    mine, theirs = (
        " and ".join(kind.removeprefix("unsigned ") for kind in name_kinds(run)) for run in (chosen.run, names)
    )
    if mine != theirs:
        raise LogError(
            f"The policy names its contexts and items by {mine}, {log.name} by {theirs}: they have none in common."
        )
    target, known = find_target(chosen, names, shown.length)
    held = make_holdout(shown, target, known, trained_model(policy.manifest, shown.length))
    piece = Piece(names, shown.whole_lists)
    leakage = find_leakage(policy.manifest, log, tally.lists) or find_same_lists(policy.manifest, engine, piece)
    digest = digest_of(piece, engine)
    contexts = len(chosen.run.pairs)
    by_segment = None if segmented is None else SegmentedLists(*segmented)
    return HoldoutLog(policy, log, held, target, names, engine, tally, contexts, leakage, digest, by_segment)


def _read_lists(log: Log, engine: DuckDB, max_rejected: float) -> tuple[Tally, ListsWithColumns | None]:
    """The tally of a log, and its lists; None where all were rejected."""
    if log.propensity is not None or log.reward is not None or log.segments:
        return read_with_columns(log, engine, max_rejected=max_rejected)
    tally, piece, _ = read_whole_lists(log, engine, max_rejected=max_rejected)
    return _as_found(tally, piece)


def _as_found(tally: Tally, piece: Piece) -> tuple[Tally, ListsWithColumns | None]:
    if not tally.lists:
        return tally, None
    return tally, ListsWithColumns(piece.run, batch_of([piece], np.int32), None)
