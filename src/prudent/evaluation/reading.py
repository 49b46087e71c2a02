"""A log and a policy -> HeldOut: names become numbers in the database, lists become arrays, some at a time."""

from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import LogError, PolicyError
from prudent.counts.counts import check_tally
from prudent.counts.lists import ListBatch
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.holdout import NEVER, HeldOut, hold_out
from prudent.logs.log import Log
from prudent.policies.policy import Policy, check_lists
from prudent.storage.files import TemporaryFolder
from prudent.storage.manifest import Tally
from prudent.storage.quoting import file_text

_CHUNK = 250_000  # lists that become arrays at a time


@dataclass(frozen=True, eq=False)
class Read:
    """Held-out lists, and the database that knows the names of their numbers.

    It has the tables ``pairs`` (context, item) and ``contexts``, which their rowids number, and ``policy``.
    """

    held: HeldOut
    target: IntArray  # the policy's lists, whole
    connection: duckdb.DuckDBPyConnection
    tally: Tally
    policy_contexts: int


def read_held_out(policy: Policy, log: Log, engine: DuckDB, max_rejected: float) -> Read:
    """Read a log once: its distinct lists, beside the policy's."""
    folder = TemporaryFolder()
    given, lists = folder.path / "policy.parquet", folder.path / "lists.parquet"
    policy.lists().write_parquet(str(given))
    connection = engine.open()
    run = connection.execute
    run(f"create table policy as from read_parquet({file_text(given)})")
    check_lists(connection, "policy")
    found = run("select max(rank), count(distinct context) from policy").fetchall()
    longest, contexts = (int(number or 0) for number in found[0])
    if not contexts:
        raise PolicyError("The policy has no lists.")
    tally = replace(engine.lists(log, _query(log), lists), left_out=log.left_out)
    check_tally(tally, log, max_rejected)
    if not tally.lists:
        raise LogError(f"All {tally.bad:,} lists of {log.name} were rejected: {'; '.join(tally.reasons)}.")
    _check_names(connection, lists, log)
    run(
        "create table pairs as select distinct context, item "
        f"from (select context, unnest(items) as item from read_parquet({file_text(lists)})) order by context, item"
    )
    run("create table contexts as select distinct context from pairs order by context")
    shown, propensity = _arrays(connection, lists, log.propensity is not None)
    target, known = _target(connection, max(longest, shown.length))
    return Read(hold_out(shown, target, known, propensity), target, connection, tally, contexts)


def _query(log: Log) -> str:
    keys = "context, items, clicks" + ("" if log.propensity is None else ", propensity")
    return f"select {keys}, count(*) as n from shown group by {keys}"


def _check_names(connection: duckdb.DuckDBPyConnection, lists: Path, log: Log) -> None:
    """7 is not '7'."""
    kinds = []
    for query in (
        "select context, item from policy",
        f"select context, items[1] from read_parquet({file_text(lists)})",
    ):
        described = connection.execute(f"describe {query}").fetchall()
        kinds.append(["text" if row[1] == "VARCHAR" else "integers" for row in described])
    if kinds[0] != kinds[1]:
        policy, others = (" and ".join(kind) for kind in kinds)
        raise LogError(
            f"The policy names its contexts and items by {policy}, {log.name} by {others}: they have none in common."
        )


def _arrays(connection: duckdb.DuckDBPyConnection, file: Path, weighed: bool) -> tuple[ListBatch, FloatArray | None]:
    run = connection.execute
    source = f"read_parquet({file_text(file)}, file_row_number = true)"
    sizes = run("select count(*) as n from pairs group by context order by context").fetchnumpy()["n"]
    counted = run(f"select n, len(items) as length from {source} order by file_row_number").fetchnumpy()
    n, lengths = counted["n"].astype(np.int64), counted["length"]
    shape = len(n), int(lengths.max(initial=0))
    items, clicks = np.full(shape, -1, np.int32), np.zeros(shape, bool)
    propensity = np.full(shape, np.nan) if weighed else None
    for first in range(0, len(n), _CHUNK):
        some = f"(from {source} where file_row_number >= {first} and file_row_number < {first + _CHUNK})"
        found = run(
            "select list, position, pairs.rowid as pair, click from ("
            "select file_row_number as list, context, unnest(items) as item, "
            f"unnest(range(len(items))) as position, unnest(clicks) = 1 as click from {some}"
            ") join pairs using (context, item)"
        ).fetchnumpy()
        items[found["list"], found["position"]] = found["pair"]
        clicks[found["list"], found["position"]] = found["click"]
        if propensity is not None:
            # One number is of the whole list, which ends there.
            found = run(
                "select file_row_number as list, unnest(propensity) as p, "
                "unnest(range(len(items) - len(propensity), len(items))) as position "
                f"from {some}"
            ).fetchnumpy()
            given = np.ma.filled(found["p"].astype(float), np.nan)
            propensity[found["list"], found["position"]] = given
            upto = slice(first, first + _CHUNK)
            steps = ~np.isnan(propensity[upto, 0]) | (lengths[upto] == 1)
            propensity[upto][steps] = np.cumprod(propensity[upto][steps], axis=1)
    context = np.repeat(np.arange(len(sizes)), sizes)
    return ListBatch(context, items, clicks, n), propensity  # type: ignore[arg-type]


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
