"""A log and a policy -> HeldOut: names become numbers in the database, and lists become arrays."""

from dataclasses import dataclass

import duckdb
import numpy as np

from prudent.base.arrays import BoolArray, IntArray
from prudent.base.errors import LogError, PolicyError
from prudent.counts.index import name_types
from prudent.counts.lists import as_batches, numbered, write_lists
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.holdout import NEVER, HeldOut, hold_out
from prudent.logs.log import Log
from prudent.policies.files import check_lists
from prudent.policies.policy import Policy
from prudent.storage.files import TemporaryFolder
from prudent.storage.manifest import Tally
from prudent.storage.quoting import file_text


@dataclass(frozen=True, eq=False)
class Read:
    """The lists of a holdout, and a database with the names of their numbers.

    The rowids of its tables ``pairs`` (context, item) and ``contexts`` are the numbers; ``policy`` has the policy.
    """

    held: HeldOut
    target: IntArray  # the policy's lists, whole
    connection: duckdb.DuckDBPyConnection
    tally: Tally
    policy_contexts: int


def read_held_out(policy: Policy, log: Log, engine: DuckDB, max_rejected: float) -> Read:
    """Read a log once: its distinct lists, beside the policy's."""
    folder = TemporaryFolder()
    chosen, lists = folder.path / "policy.parquet", folder.path / "lists.parquet"
    policy.lists().write_parquet(str(chosen))
    connection = engine.open()
    connection.execute(f"create table policy as from read_parquet({file_text(chosen)})")
    check_lists(connection, "policy")
    ((longest, contexts),) = connection.execute("select max(rank), count(distinct context) from policy").fetchall()
    if not contexts:
        raise PolicyError("The policy has no lists.")
    tally = write_lists(log, engine, lists, max_rejected=max_rejected)
    if not tally.lists:
        raise LogError(f"All {tally.bad:,} lists of {log.name} were rejected: {'; '.join(tally.reasons)}.")
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
    return Read(hold_out(shown, target, known), target, connection, tally, int(contexts))


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
