"""Algorithm 1: counts -> evidence -> lower bounds -> lists -> Policy."""

import warnings
from dataclasses import replace
from os import PathLike
from typing import Any

import duckdb
import numpy as np

from prudent import __version__
from prudent.bounds import Bound, Scores, bounds
from prudent.click_models import ClickModel, Evidence, click_models
from prudent.click_models.base import IntArray, number_items
from prudent.counts import BoolArray, Counts
from prudent.engines.sources import opened
from prudent.errors import LogError, PrudentWarning, UsageError
from prudent.log import Candidates
from prudent.policy import Policy
from prudent.ranking import Lists, best_lists, list_values, usual_lists


def rank(
    counts: Counts,
    model: str | ClickModel = "auto",
    bound: str | Bound = "exposure(delta=0.5)",
    length: int | None = None,
    candidates: str | PathLike[str] | Any | None = None,
    min_lists: int = 1,
) -> Policy:
    """Find, for every context, the list with the highest lower bound on its value.

    model, bound
        A spelling such as ``"pbm"`` or ``"bayes(delta=0.1)"``, or the object that it stands for.
    length
        How many items a list has at most; without it, as many as the longest logged list. Positions below the
        longest logged list weigh nothing: nobody has seen what happens there.
    candidates
        A table of ``context`` and ``item`` that says what may be shown, no less and no more; items that were
        never logged enter unseen. Without it, whatever the log showed.
    min_lists
        Contexts with fewer logged lists are left out, so that the caller keeps its own ranking there.
    """
    model = click_models.parse(model) if isinstance(model, str) else model
    bound = bounds.parse(bound) if isinstance(bound, str) else bound
    if length is not None and length < 1:
        raise UsageError(f"length is {length}; a list has at least 1 position.")
    cells = counts.cells
    if not cells.click.any():
        raise LogError(f"Not one of the {counts.tally.lists:,} lists has a click: there is nothing to learn from.")
    length = length or cells.positions
    connection = counts.connection.cursor()
    row_pair = _offer(connection, counts, candidates)
    evidence = _reindex(model.evidence(counts), row_pair, _numbered(connection))
    scores = bound.score(evidence)

    logged = _logged_lists(connection, counts)
    kept = logged >= min_lists
    new = _only(best_lists(evidence, scores, length), kept)
    if new.rank.max(initial=0) > cells.positions:
        warnings.warn(
            f"Some lists are longer than any in the log, which ends at position {cells.positions}: nobody has seen "
            "what happens below, and those positions add nothing to the value.",
            PrudentWarning,
            stacklevel=2,
        )
    usual = _only(_usual(counts, evidence, row_pair, length), kept)
    value, lower, before = (
        list_values(evidence, lists, attraction, length, len(kept))
        for lists, attraction in ((new, scores.mean), (new, scores.lower), (usual, scores.mean))
    )
    differ = _differ(new, usual, length, len(kept))
    _register(connection, evidence, scores, new)
    connection.register(
        "per_context",
        {"lists": logged, "value": value, "lower": lower, "usual": before, "differ": differ, "kept": kept},
    )
    share = np.where(kept, logged, 0) / max(1, logged[kept].sum())
    provenance = {
        "prudent": __version__,
        "model": str(evidence.model),
        "bound": str(bound),
        "length": length,
        "min_lists": min_lists,
        "candidates": Candidates(candidates).name if candidates is not None else None,
        "counts": {
            "inputs": list(counts.origin),
            "lists": counts.tally.lists,
            "rejected": dict(counts.tally.rejected),
        },
        "fitted": {**evidence.fitted, **({"prior": dict(scores.fitted)} if scores.fitted else {})},
        "summary": {
            "contexts": int(kept.sum()),
            "left_out": int((~kept).sum()),
            "differ": int(differ[kept].sum()),
            "value": float(np.sum(share * value)),
            "lower": float(np.sum(share * lower)),
            "usual": float(np.sum(share * before)),
        },
    }
    return Policy(connection, provenance, _QUERIES, counts)


_EVIDENCE = "lower, mean, positive, negative, impressions"
_QUERIES = {
    "lists": "from lists",
    "scores": f"select context, item, {_EVIDENCE} from offered positional join scored",
    "contexts": "select context, lists, value, lower, usual, differ from offered_contexts positional join per_context "
    "where kept",
}


def _offer(connection: duckdb.DuckDBPyConnection, counts: Counts, candidates: Any | None) -> IntArray:
    """Make the table `offered`, sorted by context and item, and say which pair each row is; −1 was never logged."""
    if candidates is None:
        connection.execute("create temp view offered as select rowid as row, context, item from pairs")
        connection.execute("create temp view offered_contexts as select context from contexts")
        return np.arange(counts.cells.pairs)
    with opened(connection, Candidates(candidates)) as source:
        names = []
        for column in ("context", "item"):
            (kind,) = connection.execute(f"select typeof({column}) from pairs limit 1").fetchall()[0]
            given = source.types[column]
            if (given == "VARCHAR") != (kind == "VARCHAR") and source.kind != "csv":
                raise LogError(f"The candidates' {column} is {given.lower()}, but the log's is {kind.lower()}.")
            names.append(f"cast({column} as {kind}) as {column}")  # CSV is all text; everything else agrees
        connection.execute(
            f"create temp table candidates as select distinct {', '.join(names)} from source "
            "where context is not null and item is not null order by context, item"
        )
    connection.execute("create temp view offered as select rowid as row, context, item from candidates")
    if not connection.execute("select count(*) from offered").fetchall()[0][0]:
        raise LogError(f"{Candidates(candidates).name} offers no candidate: it has no row with a context and an item.")
    connection.execute(
        "create temp table offered_contexts as select context from offered group by context order by context"
    )
    found = connection.execute(
        "select coalesce(pairs.rowid, -1) as pair from offered left join pairs using (context, item) order by row"
    )
    return np.asarray(found.fetchnumpy()["pair"], np.int64)


def _numbered(connection: duckdb.DuckDBPyConnection) -> IntArray:
    """The number of the context of each row of the offer."""
    size = connection.execute("select count(*) as n from offered group by context order by context").fetchnumpy()["n"]
    return np.repeat(np.arange(len(size)), size)


def _reindex(evidence: Evidence, row_pair: IntArray, context: IntArray) -> Evidence:
    """The evidence of what is offered; what was never logged has none."""
    seen = row_pair >= 0
    return replace(
        evidence,
        context=context,
        item=number_items(context),
        positive=np.where(seen, evidence.positive[row_pair], 0.0),
        negative=np.where(seen, evidence.negative[row_pair], 0.0),
        impressions=np.where(seen, evidence.impressions[row_pair], 0),
    )


def _logged_lists(connection: duckdb.DuckDBPyConnection, counts: Counts) -> IntArray:
    """Logged lists of each offered context."""
    found = connection.execute(
        "select coalesce(contexts.rowid, -1) as number from offered_contexts left join contexts using (context) "
        "order by offered_contexts.context"
    ).fetchnumpy()["number"]
    return np.where(found >= 0, counts.cells.lists_per_context()[found], 0)


def _usual(counts: Counts, evidence: Evidence, row_pair: IntArray, length: int) -> Lists:
    """What was mostly shown, of what is offered, in the numbers of the offer."""
    row_of = np.full(counts.cells.pairs, -1)
    row_of[row_pair[row_pair >= 0]] = np.flatnonzero(row_pair >= 0)
    usual = usual_lists(counts.cells, length, offered=row_of >= 0)
    row = row_of[usual.row]
    return Lists(row, evidence.context[row], usual.rank)


def _only(lists: Lists, kept: BoolArray) -> Lists:
    return Lists(*(column[kept[lists.context]] for column in lists))


def _differ(new: Lists, usual: Lists, length: int, contexts: int) -> BoolArray:
    """Whether the two lists of each context are not the same items in the same places."""
    tables = []
    for lists in (new, usual):
        table = np.full((contexts, length), -1)
        table[lists.context, lists.rank - 1] = lists.row
        tables.append(table)
    return np.asarray(np.any(tables[0] != tables[1], axis=1))


def _register(connection: duckdb.DuckDBPyConnection, evidence: Evidence, scores: Scores, lists: Lists) -> None:
    """Make the tables `scored`, one row per offer, and `lists`."""
    columns = {
        "lower": scores.lower,
        "mean": scores.mean,
        "positive": evidence.positive,
        "negative": evidence.negative,
        "impressions": evidence.impressions,
    }
    connection.register("scored", columns)
    chosen = {name: column[lists.row] for name, column in columns.items()}
    connection.register("chosen", {"row": lists.row, "rank": lists.rank.astype(np.int32), **chosen})
    connection.execute(
        f"create temp table lists as select context, rank, item, {_EVIDENCE} "
        "from chosen join offered using (row) order by context, rank"
    )
