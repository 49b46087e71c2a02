"""Algorithm 1: counts -> evidence -> lower bounds -> lists -> Policy."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import BoolArray
from prudent.base.errors import LogError, PrudentWarning, UsageError
from prudent.base.spec import whole_number
from prudent.bounds import Bound, Scores, bounds
from prudent.click_models import ClickModel, Evidence, click_models
from prudent.click_models.base import Fitted
from prudent.counts.cells import Cells
from prudent.counts.counts import Counts
from prudent.counts.index import Index, Part
from prudent.counts.sampling import samples
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.log import Candidates
from prudent.policies.policy import Policy
from prudent.policies.ranking import Lists, as_table, best_lists, incumbent_lists, list_values
from prudent.storage.manifest import Manifest, Source

if TYPE_CHECKING:
    from prudent.engines.spark.engine import Spark


def rank(
    counts: Counts | str | PathLike[str] | Sequence[str | PathLike[str]],
    model: str | ClickModel = "auto",
    *,
    bound: str | Bound = "exposure(delta=0.5)",
    length: int | None = None,
    candidates: str | PathLike[str] | Any | None = None,
    min_lists: int = 1,
    engine: "DuckDB | Spark | None" = None,
    to: str | PathLike[str] | None = None,
    since: date | str | None = None,
    until: date | str | None = None,
    half_life: float | str | None = None,
) -> Policy:
    """Find, for every context, the list with the highest lower bound on its value.

    Where there are many contexts, position parameters and priors are learned from some of them, and then all are
    ranked part by part, so that memory does not grow with their number.

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
    engine, to
        With `prudent.Spark`, contexts are ranked where Spark runs, which needs prudent there, and the lists are written
        to the folder `to`, as part files in the order of contexts. Otherwise `to` is a file, and optional.
    since, until, half_life
        As in `prudent.Counts.read`, where counts are paths.
    """
    asked = ask(model, bound, length, min_lists)
    counts = _counts(counts, engine, since, until, half_life)
    if not isinstance(engine, DuckDB | None):
        from prudent.policies.distributed import rank_in_spark

        return rank_in_spark(counts, asked, candidates, engine, to)
    table = None if candidates is None else Candidates(candidates)
    names = counts.index if table is None else counts.number(table)
    extent = _measure(names, counts.tally.lists, asked.min_lists)
    plan = learn(asked, extent, lambda: samples(names))
    connection = names.connection.cursor()
    for part in names.parts():
        ranked = plan.rank(part)
        number = part.first_context + np.arange(part.cells.contexts)
        append(connection, "lists", ranked.listed(part), named_lists(part.first_pair, part.cells.pairs))
        append(connection, "per_context", {"number": number, **ranked.per_context})
    summed = ", ".join(f"sum({term})" for term in terms().values())
    found = connection.execute(f"select {summed} from per_context where kept").fetchall()
    sums = dict(zip(terms(), found[0], strict=True))
    scores = cache(partial(_score, connection, names, plan))
    policy = Policy(
        connection,
        manifest_of(asked, extent, plan, sums, counts.source, None if table is None else table.name),
        {"lists": "from lists", "contexts": CONTEXTS, "scores": scores},
        counts,
    )
    if to is not None:
        policy.write(to)
    return policy


def _counts(counts: Any, engine: Any, since: Any, until: Any, half_life: Any) -> Counts:
    if isinstance(counts, Counts):
        if any(days is not None for days in (since, until, half_life)):
            raise UsageError("since, until and half_life choose among files: give them to Counts.read.")
        return counts
    paths = [counts] if isinstance(counts, str | PathLike) else counts
    if not isinstance(paths, Sequence) or not paths or not all(isinstance(path, str | PathLike) for path in paths):
        raise UsageError(f"rank takes counts, not a {type(counts).__name__}: prudent.rank(prudent.count(log)).")
    return Counts.read(*paths, since=since, until=until, half_life=half_life, engine=engine)


# --- what is asked for, and of how much -------------------------------------------------------------------------------


class Asked(NamedTuple):
    """What a caller wants, checked."""

    model: ClickModel
    bound: Bound
    length: int | None
    min_lists: int


def ask(model: str | ClickModel, bound: str | Bound, length: int | None, min_lists: int) -> Asked:
    """The settings that all engines share."""
    for name, given, does in (("model", model, "learn"), ("bound", bound, "score")):
        if not isinstance(given, str) and not hasattr(given, does):
            raise UsageError(f"{name} is {given!r}; write a spelling, such as {'pbm' if does == 'learn' else 'eb'!r}.")
    return Asked(
        click_models.parse(model) if isinstance(model, str) else model,
        bounds.parse(bound) if isinstance(bound, str) else bound,
        None if length is None else whole_number("length", length, 1),
        whole_number("min_lists", min_lists, 0),
    )


class Extent(NamedTuple):
    """How much there is to rank."""

    lists: int  # logged, old ones in full
    clicks: float
    positions: int  # of the longest list
    pairs: int
    contexts: int  # that get a list
    too_few_lists: int  # contexts that are left out for that
    without_candidates: int  # and for that
    most_eligible: int  # to one context
    most_listed: int  # the same, among those that get a list


def _measure(names: Index, lists: int, min_lists: int) -> Extent:
    eligible = names.eligible_of > 0
    kept = eligible & (names.lists_of >= min_lists)
    return Extent(
        lists=lists,
        clicks=names.clicks,
        positions=names.positions,
        pairs=names.pairs,
        contexts=int(kept.sum()),
        too_few_lists=int((eligible & ~kept).sum()),
        without_candidates=int((~eligible & (names.lists_of > 0)).sum()),
        most_eligible=int(names.eligible_of.max(initial=0)),
        most_listed=int(names.eligible_of[kept].max(initial=0)),
    )


def manifest_of(
    asked: Asked,
    extent: Extent,
    plan: "Plan",
    sums: Mapping[str, Any],
    training: Source,
    candidates: str | None,
) -> Manifest:
    """The manifest of a policy; `sums` are those of `terms`."""
    return Manifest(
        "policy",
        {
            "model": str(plan.fitted.model),
            "bound": str(asked.bound),
            "asked_model": str(asked.model),
            "length": asked.length or extent.positions,
            "min_lists": asked.min_lists,
            "candidates": candidates,
        },
        {"training": training},
        {
            "fitted": {**plan.fitted.parameters, **({"prior": dict(plan.prior)} if plan.prior else {})},
            "summary": {
                "contexts": extent.contexts,
                "too_few_lists": extent.too_few_lists,
                "without_candidates": extent.without_candidates,
                "differ": int(sums["differ"]),
                "unit": plan.fitted.model.unit,
                **means(sums),
            },
        },
    )


# --- learning ---------------------------------------------------------------------------------------------------------


def learn(asked: Asked, extent: Extent, samples: Callable[[], tuple[Part, Part]]) -> "Plan":
    """What all contexts have in common; see `samples` for what it is learned from."""
    if not extent.clicks:
        raise LogError(f"Not one of the {extent.lists:,} lists has a click: there is nothing to learn from.")
    if not extent.contexts:
        raise LogError(f"No context has a candidate and {asked.min_lists:,} logged lists: there is nothing to rank.")
    # Nothing that was shown or may be shown is longer.
    length = min(asked.length or extent.positions, max(extent.most_eligible, extent.positions))
    heavy, fair = samples()
    fitted = asked.model.learn(heavy.cells, extent.positions)
    evidence = fitted.evidence(fair.cells)
    bound = asked.bound.learn(evidence, extent.pairs)
    if min(length, extent.most_listed) > extent.positions:
        warnings.warn(
            f"Some lists are longer than any in the log, which ends at position {extent.positions}: nobody has seen "
            "what happens below, and those positions add nothing to the value.",
            PrudentWarning,
            stacklevel=3,
        )
    return Plan(fitted, bound, length, asked.min_lists, bound.score(evidence).fitted)


# --- ranking some contexts --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """All it takes to rank any contexts; each of them comes out the same whichever others are with it."""

    fitted: Fitted
    bound: Bound
    length: int
    min_lists: int
    prior: Mapping[str, Any]  # what the bound has learned; fits JSON

    def score(self, cells: Cells) -> tuple[Evidence, Scores]:
        """The evidence of every pair, and what the bound makes of it."""
        evidence = self.fitted.evidence(cells)
        return evidence, self.bound.score(evidence)

    def rank(self, part: Part) -> "Ranked":
        """The best list of every context."""
        cells = part.cells
        evidence, scores = self.score(cells)
        lists = cells.lists_per_context()
        has_offer = np.bincount(cells.context[part.eligible], minlength=cells.contexts) > 0
        kept = has_offer & (lists >= self.min_lists)
        new = only(best_lists(evidence, scores, self.length, part.eligible), kept)
        incumbent = only(incumbent_lists(cells, self.length), kept)
        values = {
            name: list_values(evidence, of, attraction, self.length, cells.contexts)
            for name, of, attraction in (
                ("value", new, scores.mean),
                ("lower", new, scores.lower),
                ("incumbent_value", incumbent, scores.mean),
                ("incumbent_lower", incumbent, scores.lower),
            )
        }
        differ = differences(new, incumbent, self.length, cells.contexts)
        return Ranked(new, columns(evidence, scores), {"lists": lists, **values, "differ": differ, "kept": kept})


@dataclass(frozen=True)
class Ranked:
    """The lists of some contexts."""

    lists: Lists
    columns: Mapping[str, NDArray[Any]]  # of every pair
    per_context: Mapping[str, NDArray[Any]]

    def listed(self, part: Part) -> dict[str, NDArray[Any]]:
        """The lists as columns, with the numbers that pairs and contexts have in all."""
        new = self.lists
        numbers = {"row": part.first_pair + new.row, "number": part.first_context + new.context}
        evidence = {name: column[new.row] for name, column in self.columns.items()}
        return {**numbers, "rank": new.rank.astype(np.int32), **evidence}


def columns(evidence: Evidence, scores: Scores) -> dict[str, NDArray[Any]]:
    """What a policy shows of every pair."""
    return {
        "lower": scores.lower,
        "mean": scores.mean,
        "positive": evidence.positive,
        "negative": evidence.negative,
        "impressions": np.rint(evidence.impressions).astype(np.int64),
    }


def only(lists: Lists, kept: BoolArray) -> Lists:
    """The lists of the contexts that are kept."""
    return Lists(*(column[kept[lists.context]] for column in lists))


def differences(new: Lists, incumbent: Lists, length: int, contexts: int) -> BoolArray:
    """Whether the two lists of each context are not the same items in the same places."""
    return np.asarray(np.any(as_table(new, contexts, length) != as_table(incumbent, contexts, length), axis=1))


# --- the tables of a policy -------------------------------------------------------------------------------------------

_EVIDENCE = "lower, mean, positive, negative, impressions"
_VALUES = ("value", "lower", "incumbent_value", "incumbent_lower")
CONTEXTS = (
    f"select contexts.context, round(per_context.lists)::bigint as lists, {', '.join(_VALUES)}, differ "
    "from contexts join per_context on contexts.rowid = number where kept order by number"
)


def _whole(column: str, bits: int) -> str:
    return f"cast(cast(round({column} * {1 << bits}) as bigint) as decimal(19, 0))"


def terms(prefix: str = "") -> dict[str, str]:
    """What to sum over contexts that are kept: whole numbers, which add up the same in any order and in any engine."""
    lists = _whole(f"{prefix}lists", 20)
    values = {name: f"{lists} * {_whole(f'{prefix}{name}', 40)}" for name in _VALUES}
    return {"lists": lists, "differ": f"cast({prefix}differ as bigint)", **values}


def means(sums: Mapping[str, Any]) -> dict[str, float]:
    """The mean values of a logged list, from the sums of `terms`."""
    return {name: int(sums[name]) / max(1, int(sums["lists"])) / (1 << 40) for name in _VALUES}


def named_lists(first: int, pairs: int) -> str:
    """What `append` puts into the table `lists`, with names for numbers of so many pairs from the first one on."""
    return f"select context, rank, item, {_EVIDENCE} from {_named(first, pairs)} order by number, rank"


def named_scores(first: int, pairs: int) -> str:
    """The same for the table `scores`."""
    return f"select context, item, {_EVIDENCE} from {_named(first, pairs)} order by row"


def _named(first: int, pairs: int) -> str:
    # Part by part: one join of all pairs at the end would want more memory than the rest.
    names = f"select rowid as row, context, item from pairs where rowid >= {first} and rowid < {first + pairs}"
    return f"given join ({names}) using (row)"


def append(
    connection: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, NDArray[Any]], query: str = "from given"
) -> None:
    """Add rows to a table, which the first of them make: those given, or what a query makes of them."""
    connection.register("given", dict(columns))
    connection.execute(f"create temp table if not exists {table} as select * from ({query}) limit 0")
    connection.execute(f"insert into {table} {query}")
    connection.unregister("given")


def _score(connection: duckdb.DuckDBPyConnection, names: Index, plan: Plan) -> str:
    """Make the table of scores of all that may be shown; a query for it."""
    for part in names.parts():
        row = np.flatnonzero(part.eligible)
        scored = {name: of[row] for name, of in columns(*plan.score(part.cells)).items()}
        given = {"row": part.first_pair + row, **scored}
        append(connection, "scores", given, named_scores(part.first_pair, part.cells.pairs))
    return "from scores"
