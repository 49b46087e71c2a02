"""Evidence about the candidates of some contexts, from a policy and its counts; other names stay in the databases."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import PolicyError
from prudent.base.text import join_names, number, percent
from prudent.bounds import Bound, bounds
from prudent.counts.counts import Counts
from prudent.policies.explain.by_rule import ruled
from prudent.policies.explain.explanation import Candidate, Explanation, Name
from prudent.policies.explain.sentences import Known, in_words
from prudent.policies.incumbent import incumbent_lists

if TYPE_CHECKING:
    from prudent.policies.policy import Policy

Pair = tuple[Name, Name]  # context and item


def explain(
    policy: "Policy", contexts: Sequence[Name], counts: Counts | None = None, *, most: int | None = None
) -> list[Explanation]:
    """Explain the lists of some contexts of a policy.

    counts
        Those of the training log. Counts of another log tell the incumbent lists there, and nothing else.
    most
        How many candidates of each context to explain, best bound first, besides those that are listed, in the
        incumbent list, or clicked most often per view; without it, all.
    """
    scored = _Scored(policy, contexts, most)
    settings = policy.manifest.settings
    length = int(settings.get("length") or max(scored.rank.values(), default=1))
    logged = {} if counts is None else _logged(counts, contexts, [*scored.rows], length, most)
    scored.look_up([pair for pair in logged if pair not in scored.rows])
    same = counts is not None and all(
        row.impressions == (logged[pair].impressions if pair in logged else 0) for pair, row in scored.rows.items()
    )
    candidates: dict[Name, list[Candidate]] = {context: [] for context in contexts}
    for pair in dict.fromkeys([*scored.rows, *logged]):
        row, seen = scored.rows.get(pair), logged.get(pair, _NEVER)
        impressions = row.impressions if row else seen.impressions if same else None
        clicks = seen.clicks if same else None
        score = row[:4] if row and scored.bound else (None, None, None, None)
        trials = row[4:6] if row else (None, None)
        candidates[pair[0]].append(
            Candidate(pair[1], seen.incumbent, scored.rank.get(pair), impressions, clicks, *score, *trials)
        )
    intervals = any(row.upper is not None for row in scored.rows.values())
    order = "" if scored.bound is None else "lower bound" if intervals else "estimate"
    anchored = any(row.stay is not None for row in scored.rows.values())
    fitted = policy.manifest.results.get("fitted", {}) if getattr(scored.bound, "lead", "") == "prior" else {}
    lead = tuple(name for name in ("groups", "features") if name in fitted)
    reward = policy.reward
    known = Known(order, anchored, bool(order) and scored.complete, lead, bool(reward))
    notes = [*_notes(scored, settings.get("baseline"), counts, same)]
    if order == "estimate":
        notes.append(f"{scored.bound} is an estimate without a bound: there are no intervals.")
    if reward:
        notes.append(f"Bounds are of what an examination earns, by the reward {reward}.")
    rules = ruled(settings.get("rules"))
    notes += rules.notes
    if plausible := policy.manifest.results.get("plausible"):
        notes.append(
            f"The list has the best worst case under {join_names(plausible)}; the numbers are those of "
            f"{settings['model']}, which alone might list other items."
        )
    made_by = {key: str(settings[key]) for key in ("model", "bound", "baseline") if key in settings}
    worth = _worth(policy, contexts)
    return [
        Explanation(
            context,
            rules.in_words(context, in_words(rows, known)),
            made_by,
            tuple(notes),
            worth.get(context, ""),
            reward,
        )
        for context, rows in candidates.items()
    ]


def _worth(policy: "Policy", contexts: Sequence[Name]) -> dict[Name, str]:
    """Estimate and lower bound of the value of the lists, which only a policy fresh from `rank` knows."""
    summary = policy.manifest.results.get("summary", {})
    if not summary.get("level"):
        return {}
    try:
        rows = select(policy, policy.contexts(), {"context": as_column(contexts)}, "context, value, lower")
    except PolicyError:
        return {}
    level, unit = percent(summary["level"], 0), summary["unit"]
    return {
        context: f"{unit} {number(value)}, at least {number(lower)} at a level of {level}"
        for context, value, lower in rows
    }


def _notes(scored: "_Scored", baseline: str | None, counts: Counts | None, same: bool) -> Iterable[str]:
    if scored.bound is None:
        why = f"{baseline} has no bounds" if baseline else "The policy has no manifest that names its bound"
        yield f"{why}: how certain the evidence is, is not known."
    elif not scored.complete:
        yield "Only listed items have scores: give the file of all candidates' scores, too (--scores)."
    if counts is None:
        yield "The incumbent lists and their clicks are not known: give the training log or its counts (--train)."
    elif not same:
        yield "The incumbent lists are those of another log. For clicks, give the training log or its counts (--train)."


# --- from the policy --------------------------------------------------------------------------------------------------


class _Row(NamedTuple):
    lower: float
    mean: float
    upper: float | None
    stay: float | None
    positive: float
    negative: float
    impressions: int


_SCORES = "context, item, lower, mean, upper, stay, positive, negative, impressions"


class _Scored:
    """Ranks and scores of the candidates of some contexts."""

    def __init__(self, policy: "Policy", contexts: Sequence[Name], most: int | None) -> None:
        self._policy = policy
        spelling = policy.manifest.settings.get("bound")
        self.bound: Bound | None = None if spelling is None else bounds.parse(spelling)
        self.rank: dict[Pair, int] = {}
        self.rows: dict[Pair, _Row] = {}
        keys = {"context": as_column(contexts)}
        for context, item, *row, rank in select(policy, policy.lists(), keys, f"{_SCORES}, rank"):
            self.rank[context, item] = rank
            self.rows[context, item] = _Row(*row)
        try:
            policy.scores()
            self.complete = True
        except PolicyError:
            self.complete = False
            return
        best = "row_number() over (partition by context order by lower desc, mean desc, impressions desc, item)"
        self._add(keys, "" if most is None else f"qualify {best} <= {most}")

    def look_up(self, pairs: Sequence[Pair]) -> None:
        """Add the scores of these pairs too."""
        if self.complete and pairs:
            self._add({"context": as_column([one for one, _ in pairs]), "item": as_column([two for _, two in pairs])})

    def _add(self, keys: Mapping[str, NDArray[Any]], which: str = "") -> None:
        for context, item, *row in select(self._policy, self._policy.scores(), keys, _SCORES, which):
            self.rows.setdefault((context, item), _Row(*row))  # a baseline's list has what an item adds at its place


def select(
    policy: "Policy", table: duckdb.DuckDBPyRelation, keys: Mapping[str, NDArray[Any]], columns: str, which: str = ""
) -> list[Any]:
    """Columns of the rows of a policy's table with these keys."""
    policy.connection.register("keys", dict(keys))
    try:
        query = f"select {columns} from explained semi join keys using ({', '.join(keys)}) {which}"
        rows = table.query("explained", query)
        return [] if rows is None else rows.fetchall()
    finally:
        policy.connection.unregister("keys")


def as_column(names: Sequence[Name]) -> NDArray[Any]:
    """Names as DuckDB takes them."""
    return np.array(names, object if names and isinstance(names[0], str) else None)


# --- from the log -----------------------------------------------------------------------------------------------------


class _Logged(NamedTuple):
    incumbent: int | None
    impressions: int
    clicks: float


_NEVER = _Logged(None, 0, 0.0)


def _logged(
    counts: Counts, contexts: Sequence[Name], pairs: Sequence[Pair], length: int, most: int | None
) -> dict[Pair, _Logged]:
    """Incumbent place, impressions and clicks: of these pairs, of the incumbent lists, and of the most clicked."""
    index = counts.index
    kind = index.names.kind
    if (kind == "VARCHAR") != isinstance(contexts[0], str):
        raise PolicyError(f"The contexts of the counts are {kind.lower()}, and those of the policy are not.")
    marked = np.zeros(index.contexts, bool)
    marked[list(index.find(contexts).values())] = True
    (part,) = index.only(marked)
    cells, names = part.cells, part.contexts.to_list()
    every: list[Pair] = [
        (names[number], item) for number, item in zip(cells.context.tolist(), part.items.to_list(), strict=True)
    ]
    impressions, clicks = cells.per_pair(), cells.per_pair(cells.click)
    incumbent = incumbent_lists(cells, length)
    place = np.zeros(cells.pairs, np.int64)
    place[incumbent.row] = incumbent.rank
    kept = place > 0
    if most is None:
        kept[:] = True
    else:
        kept |= _most_clicked(cells.context, impressions, clicks, length)
        wanted = set(pairs)
        kept |= np.fromiter((pair in wanted for pair in every), bool, len(every))
    kept_pairs = [every[row] for row in np.flatnonzero(kept)]
    columns = place[kept].tolist(), np.rint(impressions[kept]).astype(np.int64).tolist(), clicks[kept].tolist()
    return {pair: _Logged(at or None, n, clicked) for pair, at, n, clicked in zip(kept_pairs, *columns, strict=True)}


def _most_clicked(context: IntArray, impressions: FloatArray, clicks: FloatArray, length: int) -> BoolArray:
    """The `length` items of each context with the most clicks per view."""
    rate = np.divide(clicks, impressions, out=np.zeros_like(clicks), where=impressions > 0)
    order = np.lexsort([-impressions, -rate, context])
    size = np.bincount(context)
    place = np.arange(len(context)) - np.repeat(np.cumsum(size) - size, size)
    first = np.zeros(len(context), bool)
    first[order] = place < length
    return first & (clicks > 0)
