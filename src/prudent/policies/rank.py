"""Algorithm 1: counts -> evidence -> lower bounds -> lists -> Policy."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import LogError, PrudentWarning, UsageError
from prudent.base.spec import whole_number
from prudent.bounds import DEFAULT_BOUND, Bound, Scores, bounds
from prudent.click_models import ClickModel, Evidence, click_models
from prudent.click_models.base import FittedModel
from prudent.click_models.selection import Choice, resolve
from prudent.counts.cells import Cells
from prudent.counts.count import as_counts
from prudent.counts.counts import Counts
from prudent.counts.index import Index, Part
from prudent.counts.max_rejected import MAX_REJECTED
from prudent.counts.sampling import samples
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.formats import find_files, is_paths
from prudent.logs.log import Candidates
from prudent.policies.best_lists import best_lists, list_values
from prudent.policies.incumbent import incumbent_lists
from prudent.policies.list_arrays import Lists, as_table
from prudent.policies.list_bound import list_lower_bounds
from prudent.policies.policy import Policy
from prudent.policies.tables import CONTEXTS, append, means, named_lists, named_scores, terms
from prudent.storage.files import check_output
from prudent.storage.filesystem import has_scheme
from prudent.storage.manifest import Manifest, Source

if TYPE_CHECKING:
    from prudent.engines.spark.engine import Spark


def rank(
    source: Any,
    model: str | ClickModel = "auto",
    *,
    bound: str | Bound = DEFAULT_BOUND,
    length: int | None = None,
    candidates: str | PathLike[str] | Any | None = None,
    min_lists: int = 1,
    max_moves: int | None = None,
    engine: "DuckDB | Spark | None" = None,
    to: str | PathLike[str] | None = None,
    since: date | str | None = None,
    until: date | str | None = None,
    half_life: float | str | None = None,
    scores: str | PathLike[str] | None = None,
    max_rejected: float = MAX_REJECTED,
    **log: Any,
) -> Policy:
    """Find, for every context, the list of the highest pessimistic value: that of the lower bounds of its items.

    ``source`` is counts or a log: `Counts`, a `Log`, a table, or paths of either; `log` are arguments of `as_log`, such
    as the names of columns.

    Of many contexts, a bounded sample is enough to fit position parameters and priors. All are then ranked part by
    part, so that memory does not grow with their number.

    model, bound
        A spelling such as ``"pbm"`` or ``"bayes(delta=0.1)"``, or the object that it stands for.
    length
        Maximum length of a list; by default that of the longest logged list. Positions below it have weight 0, since
        the log has no data on them.
    candidates
        A table of ``context`` and ``item`` with exactly the eligible items; those that were never logged have no
        evidence. By default, all items that the log shows. Other logged items still count as evidence: withdrawing an
        item does not change the scores of the rest.
    min_lists
        Contexts with fewer logged lists are left out, so that the caller keeps its own ranking there.
    max_moves
        Positions that an item may rise above its place in the incumbent list, for ``anchored``; by default any.
    engine, to
        With `prudent.Spark`, contexts are ranked where Spark runs, which needs prudent there, and the lists are written
        to the folder `to`, as part files in the order of contexts. Otherwise `to` is a file, and optional; ``scores``
        is a file for the scores of every candidate.
    since, until, half_life
        As in `prudent.Counts.read`, where the source is files of counts.
    max_rejected
        As in `prudent.count`, where the source is a log.

    >>> import prudent, pyarrow as pa
    >>> lists = [{"query": "shoes", "items": ["i1", "i2"], "clicks": [0, 1]}] * 9
    >>> policy = prudent.rank(pa.Table.from_pylist(lists), "cm", context="query")
    >>> policy["shoes"]
    ['i2', 'i1']
    """
    request = check_request(model, bound, length, min_lists, max_moves)
    if to is not None and isinstance(engine, DuckDB | None):
        check_outputs(source, candidates, to, scores)
    elif scores is not None:
        raise UsageError("scores= (--scores) are written beside a local file of lists: set to=, without Spark.")
    days: dict[str, Any] = {"since": since, "until": until, "half_life": half_life}
    counts = as_counts(source, engine=engine, max_rejected=max_rejected, **days, **log)
    if not isinstance(engine, DuckDB | None):
        from prudent.policies.distributed import rank_in_spark

        return rank_in_spark(counts, request, candidates, engine, to)
    table = None if candidates is None else Candidates(candidates)
    names = counts.index if table is None else counts.number(table)
    extent = _measure(names, counts.tally.lists, request.min_lists)
    plan = learn(request, extent, counts, lambda: samples(names))
    connection = names.connection.cursor()
    for part in names.parts():
        ranked = plan.rank(part)
        number = part.first_context + np.arange(part.cells.contexts)
        append(connection, "lists", ranked.listed(part), named_lists(part.first_pair, part.cells.pairs))
        append(connection, "per_context", {"number": number, **ranked.per_context})
    summed = ", ".join(f"sum({term})" for term in terms().values())
    row = connection.execute(f"select {summed} from per_context where kept").fetchall()[0]
    sums = dict(zip(terms(), row, strict=True))
    scored = cache(partial(_score, connection, names, plan))
    policy = Policy(
        connection,
        manifest_of(request, extent, plan, sums, counts.training, None if table is None else table.name),
        {"lists": "from lists", "contexts": CONTEXTS, "scores": scored},
        counts,
    )
    if to is not None:
        policy.write(to, scores)
    return policy


def check_outputs(source: Any, candidates: Any, to: str | PathLike[str], scores: str | PathLike[str] | None) -> None:
    """Raise before the work where the files of a policy cannot be written, or replace what is read."""
    if has_scheme(fspath(to)):
        raise UsageError(
            f"{to} is not a path on this machine. Spark writes there: engine=prudent.Spark(...) (--engine spark)."
        )
    read = [file for table in (source, candidates) if is_paths(table) for file in find_files(table)]
    check_output(to, read)
    if scores is not None:
        check_output(scores, [*read, to])


# --- the request, and how much there is to rank -----------------------------------------------------------------------


class Request(NamedTuple):
    """Checked arguments of `rank`."""

    model: ClickModel
    bound: Bound
    length: int | None
    min_lists: int
    max_moves: int | None


def check_request(
    model: str | ClickModel, bound: str | Bound, length: int | None, min_lists: int, max_moves: int | None
) -> Request:
    """The arguments that all engines share, checked."""
    return Request(
        click_models.resolve(model),
        bounds.resolve(bound),
        None if length is None else whole_number("length", length, 1),
        whole_number("min_lists", min_lists, 0),
        None if max_moves is None else whole_number("max_moves", max_moves, 0),
    )


def _choose(model: ClickModel, counts: Counts) -> Choice:
    """The click model, chosen by the lists that counts keep where it is `auto`."""
    choice = resolve(model, counts.sample)
    if choice.note:
        warnings.warn(f"{choice.note} Using {choice.model} instead.", PrudentWarning, stacklevel=3)
    return choice


class Extent(NamedTuple):
    """How much there is to rank."""

    lists: int  # logged, unweighted
    clicks: float
    positions: int  # of the longest list
    pairs: int
    contexts: int  # that get a list
    too_few_lists: int  # contexts left out because of min_lists
    without_candidates: int  # contexts left out because no item is eligible
    most_eligible: int  # items in one context
    most_listed: int  # the same, among contexts that get a list


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
    request: Request,
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
            "bound": str(request.bound),
            "asked_model": str(request.model),
            "length": request.length or extent.positions,
            "min_lists": request.min_lists,
            "max_moves": request.max_moves,
            "candidates": candidates,
        },
        {"training": training},
        {
            "fitted": {
                **{name: values.tolist() for name, values in plan.fitted.parameters.items()},
                **({"prior": dict(plan.prior)} if plan.prior else {}),
            },
            **({"doubt": plan.fitted.doubt} if plan.fitted.doubt else {}),
            "comparison": plan.choice.to_json(),
            "summary": {
                "contexts": extent.contexts,
                "too_few_lists": extent.too_few_lists,
                "without_candidates": extent.without_candidates,
                "differ": int(sums["differ"]),
                "unclicked": int(sums["unclicked"]),
                "unit": plan.fitted.model.unit,
                "level": None if plan.list_level is None else 1 - plan.list_level,
                **means(sums),
            },
        },
    )


# --- learning ---------------------------------------------------------------------------------------------------------


def learn(request: Request, extent: Extent, counts: Counts, samples: Callable[[], tuple[Part, Part]]) -> "Plan":
    """Fit what all contexts share, from the two samples of `prudent.counts.sampling`."""
    if not extent.clicks:
        raise LogError(f"Not one of the {extent.lists:,} lists has a click: there is nothing to learn from.")
    if not extent.contexts:
        raise LogError(f"No context has a candidate and {request.min_lists:,} logged lists: there is nothing to rank.")
    # No logged or eligible list is longer.
    length = min(request.length or extent.positions, max(extent.most_eligible, extent.positions))
    choice = _choose(request.model, counts)
    heavy, fair = samples()
    fitted = choice.model.fit(heavy.cells, extent.positions)
    if fitted.doubt:
        warnings.warn(fitted.doubt, PrudentWarning, stacklevel=3)
    evidence = fitted.evidence(fair.cells)
    bound = request.bound.learn(evidence, extent.pairs)
    if min(length, extent.most_listed) > extent.positions:
        warnings.warn(
            f"Some lists are longer than any in the log, which ends at position {extent.positions}: the log has no "
            "data on the positions below, and they add nothing to the value.",
            PrudentWarning,
            stacklevel=3,
        )
    scores = bound.score(evidence.select(evidence.context == evidence.context[:1]))  # what kind of scores they are
    if request.max_moves is not None and scores.anchor is None:
        raise UsageError(f"{request.bound} does not start from the incumbent list: max_moves needs bound=anchored.")
    return Plan(
        choice, fitted, bound, length, request.min_lists, request.max_moves, bound.fitted(evidence), scores.list_level
    )


# --- ranking some contexts --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """All it takes to rank any contexts; the list of one does not depend on which others are ranked with it."""

    choice: Choice
    fitted: FittedModel
    bound: Bound
    length: int
    min_lists: int
    max_moves: int | None
    prior: Mapping[str, Any]  # fitted by the bound; plain JSON
    list_level: float | None  # as in `Scores`

    def score(self, cells: Cells) -> tuple[Evidence, Scores]:
        """The evidence of every pair, and its scores."""
        evidence = self.fitted.evidence(cells)
        return evidence, self.bound.score(evidence)

    def rank(self, part: Part) -> "Ranked":
        """The best list of every context."""
        cells = part.cells
        evidence, scores = self.score(cells)
        lists = cells.lists_per_context()
        has_candidates = np.bincount(cells.context[part.eligible], minlength=cells.contexts) > 0
        kept = has_candidates & (lists >= self.min_lists)
        new = only(best_lists(evidence, scores, self.length, part.eligible, self.max_moves), kept)
        incumbent = only(incumbent_lists(cells, self.length), kept)
        size = self.length, cells.contexts
        other = differences(new, incumbent, *size)

        def worth(lists: Lists) -> dict[str, FloatArray]:
            return {
                "value": list_values(evidence, lists, scores.mean, *size),
                "lower": list_lower_bounds(evidence, lists, scores, *size),
            }

        values, old = worth(new), worth(only(incumbent, other))
        incumbent_values = {f"incumbent_{name}": np.where(other, old[name], value) for name, value in values.items()}
        clicked = np.bincount(cells.context[cells.pair], cells.n * cells.click, minlength=cells.contexts) > 0
        per_context = {
            "lists": lists,
            **values,
            **incumbent_values,
            "differ": other & clicked,  # the rest is no evidence, but how a bound treats items without a click
            "unclicked": other & ~clicked,
            "kept": kept,
        }
        return Ranked(new, columns(evidence, scores, new.row), per_context)


@dataclass(frozen=True)
class Ranked:
    """The lists of some contexts."""

    lists: Lists
    columns: Mapping[str, NDArray[Any]]  # of every listed item
    per_context: Mapping[str, NDArray[Any]]

    def listed(self, part: Part) -> dict[str, NDArray[Any]]:
        """The lists as columns; pairs and contexts are numbered over all parts."""
        new = self.lists
        numbers = {"row": part.first_pair + new.row, "number": part.first_context + new.context}
        return {**numbers, "rank": new.rank.astype(np.int32), **self.columns}


def columns(evidence: Evidence, scores: Scores, rows: IntArray) -> dict[str, NDArray[Any]]:
    """The columns of a policy for some pairs; NaN where a bound has no interval or no anchor."""
    none = np.full(len(rows), np.nan)
    return {
        "lower": scores.lower[rows],
        "mean": scores.mean[rows],
        "upper": none if scores.upper is None else scores.upper(rows),
        "stay": none if scores.anchor is None else scores.anchor.stay(rows),
        "positive": evidence.positive[rows],
        "negative": evidence.negative[rows],
        "impressions": np.rint(evidence.impressions[rows]).astype(np.int64),
    }


def only(lists: Lists, kept: BoolArray) -> Lists:
    """The lists of the kept contexts."""
    return Lists(*(column[kept[lists.context]] for column in lists))


def differences(new: Lists, incumbent: Lists, length: int, contexts: int) -> BoolArray:
    """Whether the two lists of each context differ in an item or its place."""
    return np.asarray(np.any(as_table(new, contexts, length) != as_table(incumbent, contexts, length), axis=1))


def _score(connection: duckdb.DuckDBPyConnection, names: Index, plan: Plan) -> str:
    """Make the table of scores of all candidates; a query for it."""
    for part in names.parts():
        row = np.flatnonzero(part.eligible)
        rows = {"row": part.first_pair + row, **columns(*plan.score(part.cells), row)}
        append(connection, "scores", rows, named_scores(part.first_pair, part.cells.pairs))
    return "from scores"
