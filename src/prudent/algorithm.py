"""Algorithm 1: counts -> evidence -> lower bounds -> lists -> Policy."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from operator import index
from os import PathLike
from typing import Any, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from prudent import __version__
from prudent.arrays import BoolArray, IntArray
from prudent.bounds import Bound, bounds
from prudent.click_models import ClickModel, Evidence, click_models
from prudent.click_models.base import number_items
from prudent.counts import Counts
from prudent.engines.sources import INTEGERS, name_as, opened
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
        never logged enter unseen. Without it, whatever the log showed. What the log says of the others still
        counts as evidence: withdrawing an item does not change the scores of those that stay.
    min_lists
        Contexts with fewer logged lists are left out, so that the caller keeps its own ranking there.
    """
    model = click_models.parse(model) if isinstance(model, str) else model
    bound = bounds.parse(bound) if isinstance(bound, str) else bound
    if not isinstance(counts, Counts):
        raise UsageError(f"rank takes counts, not a {type(counts).__name__}: prudent.rank(prudent.count(log)).")
    length = None if length is None else whole_number("length", length, 1)
    min_lists = whole_number("min_lists", min_lists, 0)
    cells = counts.cells
    if not cells.click.any():
        raise LogError(f"Not one of the {counts.tally.lists:,} lists has a click: there is nothing to learn from.")
    connection = counts.connection.cursor()
    known = _know(connection, counts, candidates)
    evidence = _extend(model.evidence(counts), known)
    scores = bound.score(evidence)
    asked = length or cells.positions
    most = int(np.bincount(known.context[known.offered]).max())
    length = min(asked, max(most, cells.positions))  # nothing that was shown or may be shown is longer

    logged = _logged_lists(connection, counts)
    has_offer = np.bincount(known.context[known.offered], minlength=len(logged)) > 0
    kept = has_offer & (logged >= min_lists)
    if not kept.any():
        raise LogError(f"No context has a candidate and {min_lists:,} logged lists: there is nothing to rank.")
    new = only(best_lists(evidence, scores, length, known.offered), kept)
    usual = only(_usual(counts, known, length), kept)
    if new.rank.max() > cells.positions:
        warnings.warn(
            f"Some lists are longer than any in the log, which ends at position {cells.positions}: nobody has seen "
            "what happens below, and those positions add nothing to the value.",
            PrudentWarning,
            stacklevel=2,
        )
    values = {
        name: list_values(evidence, lists, attraction, length, len(kept))
        for name, lists, attraction in (
            ("value", new, scores.mean),
            ("lower", new, scores.lower),
            ("usual_value", usual, scores.mean),
            ("usual_lower", usual, scores.lower),
        )
    }
    differ = differences(new, usual, length, len(kept))
    columns = {
        "lower": scores.lower,
        "mean": scores.mean,
        "positive": evidence.positive,
        "negative": evidence.negative,
        "impressions": evidence.impressions,
    }
    register(connection, new, columns, {name: column[new.row] for name, column in columns.items()}, known.offered)
    connection.register("per_context", {"lists": logged, **values, "differ": differ, "kept": kept})
    share = np.where(kept, logged, 0) / max(1, logged[kept].sum())
    provenance = {
        "prudent": __version__,
        "model": str(evidence.model),
        "bound": str(bound),
        "asked_model": str(model),
        "length": asked,
        "min_lists": min_lists,
        "candidates": Candidates(candidates).name if candidates is not None else None,
        "counts": {
            "inputs": list(counts.origin),
            "lists": counts.tally.lists,
            "rejected": dict(counts.tally.rejected),
            "left_out": dict(counts.tally.left_out),
        },
        "fitted": {**evidence.fitted, **({"prior": dict(scores.fitted)} if scores.fitted else {})},
        "summary": {
            "contexts": int(kept.sum()),
            "too_few_lists": int((has_offer & ~kept).sum()),
            "without_candidates": int((~has_offer & (logged > 0)).sum()),
            "differ": int(differ[kept].sum()),
            "unit": evidence.model.unit,
            **{name: float(np.sum(share * of)) for name, of in values.items()},
        },
    }
    return Policy(connection, provenance, QUERIES, counts)


_EVIDENCE = "lower, mean, positive, negative, impressions"
QUERIES = {  # of a policy's tables, over what `register` makes, `known`, `known_contexts` and `per_context`
    "lists": "from lists",
    "scores": f"select context, item, {_EVIDENCE} from known positional join scored where offered",
    "contexts": "select context, lists, value, lower, usual_value, usual_lower, differ "
    "from known_contexts positional join per_context where kept",
}


def whole_number(name: str, number: Any, least: int) -> int:
    """A setting that counts something."""
    try:
        number = index(number)  # NumPy's integers are as good as Python's
    except TypeError:
        raise UsageError(f"{name} is {number!r}; it must be a whole number.") from None
    if number < least:
        raise UsageError(f"{name} is {number}; it must be a whole number, at least {least}.")
    return int(number)


class _Known(NamedTuple):
    """What is in the log or among the candidates, sorted by context and item: one entry per row of `known`."""

    pair: IntArray  # its number in the counts; −1 was never logged
    context: IntArray  # number of the context
    offered: BoolArray  # whether it may be shown


def _know(connection: duckdb.DuckDBPyConnection, counts: Counts, candidates: Any | None) -> _Known:
    """Make the views `known` and `known_contexts` of all names there are."""
    if candidates is None:
        connection.execute("create temp view known as select rowid as row, context, item from pairs")
        connection.execute("create temp view known_contexts as select context from contexts")
        everything = np.arange(counts.cells.pairs)
        return _Known(everything, counts.cells.context, np.ones(len(everything), bool))
    table = Candidates(candidates)
    with opened(connection, table) as source:
        names, wrong = [], ["odd"] if source.kind == "jsonl" else []
        for column in ("context", "item"):
            ((kind,),) = connection.execute(f"select typeof({column}) from pairs limit 1").fetchall()
            given = name_as(column, source.types[column], table)
            if (source.types[column] in INTEGERS) == (kind == "VARCHAR"):
                if source.kind != "csv":
                    theirs = source.types[column].lower()
                    raise LogError(f"The candidates' {column} is {theirs}, but the log's is {kind.lower()}.")
                given = f"case when regexp_full_match({given}, '[+-]?[0-9]+') then try_cast({given} as {kind}) end"
            names.append(f"{given} as {column}")
            wrong.append(f"({given}) is null")
        ((bad,),) = connection.execute(f"select count(*) from source where {' or '.join(wrong)}").fetchall()
        if bad:
            raise LogError(f"{bad:,} rows of {table.name} have no context or item that the log's could equal.")
        connection.execute(f"create temp table candidates as select distinct {', '.join(names)} from source")
    # What was logged and is not offered stays: it is evidence about the others, and about what used to be shown.
    connection.execute(
        "create temp table either as "
        "select context, item, coalesce(pair, -1) as pair, coalesce(offered, false) as offered "
        "from (select rowid as pair, context, item from pairs) "
        "full outer join (select true as offered, context, item from candidates) using (context, item) "
        "order by context, item"
    )
    connection.execute("create temp view known as select rowid as row, context, item from either")
    connection.execute("create temp table known_contexts as select distinct context from either order by context")
    found = connection.execute("select pair, offered from either order by rowid").fetchnumpy()
    if not found["offered"].any():
        raise LogError(f"{table.name} offers no candidate: it has no rows.")
    return _Known(found["pair"], _numbered(connection), found["offered"])


def _numbered(connection: duckdb.DuckDBPyConnection) -> IntArray:
    """The number of the context of each row of `known`."""
    size = connection.execute("select count(*) as n from known group by context order by context").fetchnumpy()["n"]
    return np.repeat(np.arange(len(size)), size)


def _extend(evidence: Evidence, known: _Known) -> Evidence:
    """The evidence of all that is known; what was never logged has none."""
    seen = known.pair >= 0
    return replace(
        evidence,
        context=known.context,
        item=number_items(known.context),
        positive=np.where(seen, evidence.positive[known.pair], 0.0),
        negative=np.where(seen, evidence.negative[known.pair], 0.0),
        impressions=np.where(seen, evidence.impressions[known.pair], 0),
    )


def _logged_lists(connection: duckdb.DuckDBPyConnection, counts: Counts) -> IntArray:
    """Logged lists of each known context."""
    found = connection.execute(
        "select coalesce(contexts.rowid, -1) as number from known_contexts left join contexts using (context) "
        "order by known_contexts.context"
    ).fetchnumpy()["number"]
    return np.where(found >= 0, counts.cells.lists_per_context()[found], 0)


def _usual(counts: Counts, known: _Known, length: int) -> Lists:
    """What was mostly shown, in the numbers of what is known."""
    usual = usual_lists(counts.cells, length)
    row = np.flatnonzero(known.pair >= 0)[usual.row]  # both are sorted by name
    return Lists(row, known.context[row], usual.rank)


def only(lists: Lists, kept: BoolArray) -> Lists:
    """The lists of the contexts that are kept."""
    return Lists(*(column[kept[lists.context]] for column in lists))


def differences(new: Lists, usual: Lists, length: int, contexts: int) -> BoolArray:
    """Whether the two lists of each context are not the same items in the same places."""
    tables = []
    for lists in (new, usual):
        table = np.full((contexts, length), -1)
        table[lists.context, lists.rank - 1] = lists.row
        tables.append(table)
    return np.asarray(np.any(tables[0] != tables[1], axis=1))


def register(
    connection: duckdb.DuckDBPyConnection,
    lists: Lists,
    scored: Mapping[str, NDArray[Any]],
    listed: Mapping[str, NDArray[Any]],
    offered: BoolArray,
) -> None:
    """Make the tables `scored`, one row per row of `known`, and `lists`."""
    connection.register("scored", {**scored, "offered": offered})
    connection.register("chosen", {"row": lists.row, "rank": lists.rank.astype(np.int32), **listed})
    connection.execute(
        f"create temp table lists as select context, rank, item, {_EVIDENCE} "
        "from chosen join known using (row) order by context, rank"
    )
