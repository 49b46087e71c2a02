"""What a policy and its counts know of some contexts. Names stay in their databases until few are left."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import PolicyError
from prudent.bounds import Bound, Mle, Scores, bounds
from prudent.bounds.bayes import PosteriorBound
from prudent.counts.counts import Counts
from prudent.policies.explain.base import Candidate, Explanation, Name
from prudent.policies.explain.sentences import Known, in_words
from prudent.policies.ranking import incumbent_lists

if TYPE_CHECKING:
    from prudent.policies.policy import Policy

Pair = tuple[Name, Name]  # context and item


def explain(
    policy: "Policy", contexts: Sequence[Name], counts: Counts | None = None, most: int | None = None
) -> list[Explanation]:
    """Explain the lists of some contexts that the policy has.

    counts
        Of the log that the policy came from. Those of another log tell what was mostly shown there, and nothing else.
    most
        How many candidates to look at in each context, best bound first, besides those that are listed, were mostly
        shown, or are clicked most often per view; without it, all.
    """
    found = _Found(policy, contexts, most)
    length = int(policy.manifest.settings.get("length") or max(found.rank.values(), default=1))
    shown = {} if counts is None else _shown(counts, contexts, [*found.rows], length, most)
    found.look_up([pair for pair in shown if pair not in found.rows])
    same = counts is not None and all(
        row.impressions == (shown[pair].impressions if pair in shown else 0) for pair, row in found.rows.items()
    )
    upper = found.upper()
    candidates: dict[Name, list[Candidate]] = {context: [] for context in contexts}
    for pair in dict.fromkeys([*found.rows, *shown]):
        row, seen = found.rows.get(pair), shown.get(pair, _NEVER)
        impressions = row.impressions if row else seen.impressions if same else None
        clicks = seen.clicks if same else None
        score = (row.lower, row.mean, upper.get(pair)) if row and found.bound else (None, None, None)
        trials = row[2:4] if row else (None, None)
        candidates[pair[0]].append(
            Candidate(pair[1], seen.incumbent, found.rank.get(pair), impressions, clicks, *score, *trials)
        )
    believes = isinstance(found.bound, PosteriorBound)
    order = "" if found.bound is None else "estimate" if isinstance(found.bound, Mle) else "lower bound"
    known = Known(order, bool(order) and found.scored, believes)
    notes = tuple(_notes(policy, found, counts, same))
    settings = policy.manifest.settings
    made_by = {key: str(settings[key]) for key in ("model", "bound", "method") if key in settings}
    return [Explanation(context, in_words(of, known), made_by, notes) for context, of in candidates.items()]


def _notes(policy: "Policy", found: "_Found", counts: Counts | None, same: bool) -> Iterable[str]:
    if found.bound is None:
        by = policy.manifest.settings.get("method")
        why = f"{by} makes no bounds" if by else "The policy has no manifest beside it that names its bound"
        yield f"{why}: there is nothing to say about how sure an item is."
    elif not found.scored:
        yield "Only listed items have scores: give the file of all candidates' scores, too."
    if counts is None:
        yield "What was mostly shown and clicked is not known: give the log or the counts it came from."
    elif not same:
        yield (
            "Other lists than those that the policy came from tell what was mostly shown. For clicks, give the log or "
            "the counts it came from."
        )
    if isinstance(found.bound, Mle):
        yield "mle is an estimate without any caution: there are no intervals."


# --- the side of the policy -------------------------------------------------------------------------------------------


class _Row(NamedTuple):
    lower: float
    mean: float
    positive: float
    negative: float
    impressions: int


_SCORES = "context, item, lower, mean, positive, negative, impressions"


class _Found:
    """What the policy says of some contexts and candidates."""

    def __init__(self, policy: "Policy", contexts: Sequence[Name], most: int | None) -> None:
        self._policy = policy
        spelled = policy.manifest.settings.get("bound")
        self.bound: Bound | None = None if spelled is None else bounds.parse(spelled)
        self.rank: dict[Pair, int] = {}
        self.rows: dict[Pair, _Row] = {}
        asked = {"context": as_column(contexts)}
        for context, item, *row, rank in self._select(policy.lists(), asked, f"{_SCORES}, rank"):
            self.rank[context, item] = rank
            self.rows[context, item] = _Row(*row)
        try:
            policy.scores()
            self.scored = True
        except PolicyError:
            self.scored = False
            return
        best = "row_number() over (partition by context order by lower desc, mean desc, impressions desc, item)"
        self._add(asked, "" if most is None else f"qualify {best} <= {most}")

    def look_up(self, pairs: Sequence[Pair]) -> None:
        """Add what is known of these pairs too."""
        if self.scored and pairs:
            self._add({"context": as_column([one for one, _ in pairs]), "item": as_column([two for _, two in pairs])})

    def upper(self) -> dict[Pair, float]:
        """Where the interval of each pair ends, where the bound has one."""
        prior = self._policy.manifest.results.get("fitted", {}).get("prior", {})
        lower, mean, positive, negative = np.array([row[:4] for row in self.rows.values()], float).reshape(-1, 4).T
        upper = None
        if self.bound is not None:
            with suppress(KeyError):  # a manifest that does not tell the prior
                upper = self.bound.upper(Scores(lower, mean, prior), positive, negative)
        return {} if upper is None else dict(zip(self.rows, upper.tolist(), strict=True))

    def _add(self, asked: Mapping[str, NDArray[Any]], which: str = "") -> None:
        for context, item, *row in self._select(self._policy.scores(), asked, _SCORES, which):
            self.rows.setdefault((context, item), _Row(*row))  # of a rival, a list has what the item adds there

    def _select(
        self, table: duckdb.DuckDBPyRelation, asked: Mapping[str, NDArray[Any]], columns: str, which: str = ""
    ) -> list[Any]:
        connection = self._policy.connection
        connection.register("asked", dict(asked))
        try:
            query = f"select {columns} from explained semi join asked using ({', '.join(asked)}) {which}"
            found = table.query("explained", query)
            return [] if found is None else found.fetchall()
        finally:
            connection.unregister("asked")


def as_column(names: Sequence[Name]) -> NDArray[Any]:
    """Names as DuckDB takes them."""
    return np.array(names, object if names and isinstance(names[0], str) else None)


# --- the side of the log ----------------------------------------------------------------------------------------------


class _Shown(NamedTuple):
    incumbent: int | None
    impressions: int
    clicks: float


_NEVER = _Shown(None, 0, 0.0)


def _shown(
    counts: Counts, contexts: Sequence[Name], asked: Sequence[Pair], length: int, most: int | None
) -> dict[Pair, _Shown]:
    """The incumbent place, impressions and clicks of the pairs that are asked for, incumbent, or clicked most often."""
    names = counts.index
    cursor = names.connection.cursor()
    kind = str(cursor.table("contexts").types[0])
    if (kind == "VARCHAR") != isinstance(contexts[0], str):
        raise PolicyError(f"The contexts of the counts are {kind.lower()}, and those of the policy are not.")
    cursor.register("asked", {"context": as_column(contexts)})
    found = cursor.execute("select rowid from contexts semi join asked using (context)").fetchnumpy()["rowid"]
    marked = np.zeros(names.contexts, bool)
    marked[found] = True
    number = np.flatnonzero(np.repeat(marked, names.pairs_of))
    cells = names.some(marked).cells
    impressions, clicks = cells.per_pair(), cells.per_pair(cells.click)
    incumbent = incumbent_lists(cells, length)
    place = np.zeros(cells.pairs, np.int64)
    place[incumbent.row] = incumbent.rank
    kept = place > 0
    if most is None:
        kept[:] = True
    else:
        kept |= _most_clicked(cells.context, impressions, clicks, length)
        cursor.register(
            "pair", {"context": as_column([one for one, _ in asked]), "item": as_column([two for _, two in asked])}
        )
        rows = cursor.execute("select rowid from pairs semi join pair using (context, item)").fetchnumpy()["rowid"]
        kept[np.searchsorted(number, rows)] = True
    cursor.register("kept", {"row": number[kept]})
    pairs = cursor.execute(
        "select context, item from pairs where rowid in (select row from kept) order by rowid"
    ).fetchall()
    columns = place[kept].tolist(), np.rint(impressions[kept]).astype(np.int64).tolist(), clicks[kept].tolist()
    return {pair: _Shown(at or None, shown, clicked) for pair, at, shown, clicked in zip(pairs, *columns, strict=True)}


def _most_clicked(context: IntArray, impressions: FloatArray, clicks: FloatArray, length: int) -> BoolArray:
    """The `length` items of each context that were clicked most often per view."""
    rate = np.divide(clicks, impressions, out=np.zeros_like(clicks), where=impressions > 0)
    order = np.lexsort([-impressions, -rate, context])
    size = np.bincount(context)
    place = np.arange(len(context)) - np.repeat(np.cumsum(size) - size, size)
    first = np.zeros(len(context), bool)
    first[order] = place < length
    return first & (clicks > 0)
