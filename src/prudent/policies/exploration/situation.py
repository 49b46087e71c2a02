"""What is known before exploring: the lists of a policy, the posterior of every candidate, and traffic."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import duckdb
import numpy as np
from scipy.special import betainc, ndtri

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import PolicyError, UsageError
from prudent.base.results import ArrowStream
from prudent.bounds import bounds
from prudent.click_models.base import FittedModel, click_models
from prudent.counts.counts import Counts
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import INTEGERS
from prudent.policies.policy import Policy
from prudent.policies.trained_model import model_of, trained_model
from prudent.storage.arrow import numbers
from prudent.storage.arrow_tables import registered
from prudent.storage.run import NameColumn

_OTHERWISE = "rank the log again, by prudent rank"
_HALVINGS = 24  # of the strength of a posterior, between these two
_WEAKEST, _STRONGEST = 0.05, 1e8


@dataclass(frozen=True, eq=False)
class Situation:
    """Pairs are numbered by context and item, contexts by name; `table` has those of each list, −1 below its end."""

    connection: duckdb.DuckDBPyConnection  # with the table `candidates`: the names of pairs by `pair`, their number
    fitted: FittedModel
    learned: bool  # whether the parameters of the click model were fitted
    table: IntArray
    lists: FloatArray  # logged, of each context
    all_lists: float  # logged, also of contexts without a list
    context: IntArray  # of each pair
    mean: FloatArray  # this and the next: of the posterior of each pair
    strength: FloatArray

    @property
    def contexts(self) -> int:
        """How many contexts have a list."""
        return len(self.table)

    @property
    def length(self) -> int:
        """Positions of the longest list."""
        return int(self.table.shape[1])

    @cached_property
    def deviation(self) -> FloatArray:
        """Standard deviation of the posterior of each pair."""
        return np.asarray(np.sqrt(self.mean * (1 - self.mean) / (self.strength + 1)))

    @cached_property
    def value(self) -> FloatArray:
        """The estimated value of each list."""
        return self.fitted.value(self.attraction(self.table))

    @cached_property
    def slopes(self) -> FloatArray:
        """By how much the value of each list grows with the attraction at each position."""
        return self.slopes_of(self.table)

    @cached_property
    def examination(self) -> FloatArray:
        """The probability that each position of each list is examined."""
        attraction = self.attraction(self.table)
        clicked = self.fitted.predict(attraction)
        return np.divide(clicked, attraction, out=np.zeros_like(clicked), where=attraction > 0)

    def attraction(self, lists: IntArray) -> FloatArray:
        """The estimates of the items of lists, 0 where there is none."""
        return np.append(self.mean, 0.0)[lists]

    def slopes_of(self, lists: IntArray) -> FloatArray:
        """The derivative of the value of lists by the attraction at each position.

        It is exact where the value is linear in each, and otherwise the mean slope from 0 to the estimate.
        """
        attraction = self.attraction(lists)
        value, slopes = self.fitted.value(attraction), np.zeros(lists.shape)
        for k in range(lists.shape[1]):
            without = attraction.copy()
            without[:, k] = 0
            there = attraction[:, k]
            slopes[:, k] = np.divide(value - self.fitted.value(without), there, out=slopes[:, k], where=there > 0)
        return slopes


def read_situation(policy: Policy, counts: Counts) -> Situation:
    """The situation of a policy that `prudent.rank` made, with its scores and the counts that it was made from."""
    level = _check(policy)
    connection = DuckDB().open()
    with _registered(connection, policy):
        _check_names(connection, counts)
        # Estimates of 0 and 1 are no means of a posterior with two parameters.
        connection.execute(
            "create temp table candidates as select row_number() over (order by context, item) - 1 as pair, "
            "dense_rank() over (order by context) - 1 as number, context, item, rank, mean, lower "
            "from (select scored.context, scored.item, listed.rank, least(greatest(scored.mean, 1e-9), 1 - 1e-9) "
            "as mean, scored.lower from scored left join listed using (context, item) "
            "where scored.context in (select context from listed)) order by pair"
        )
        ((listed, found),) = connection.execute(
            "select (select count(*) from listed), (select count(rank) from candidates)"
        ).fetchall()
    if listed != found:
        raise PolicyError(
            f"{listed - found:,} items of the policy have no scores: they are not the scores of this policy. Write "
            "both at once, with prudent rank --scores."
        )
    rows = connection.execute("select number, rank, mean, lower from candidates order by pair").fetchnumpy()
    context, mean, lower = (np.asarray(rows[name]) for name in ("number", "mean", "lower"))
    rank = np.ma.filled(rows["rank"], 0).astype(np.int64)
    table = np.full((int(context.max(initial=-1)) + 1, int(rank.max(initial=1))), -1)
    table[context[rank > 0], rank[rank > 0] - 1] = np.flatnonzero(rank > 0)
    index = counts.index
    with registered(connection, "logged", [{"context": index.names.column, "lists": numbers(index.lists_of)}]):
        logged = connection.execute(
            "select coalesce(any_value(lists), 0.0)::double as lists from candidates left join logged using (context) "
            "group by number order by number"
        ).fetchnumpy()["lists"]
    if not logged.any():
        raise PolicyError(
            "None of the contexts of the policy is in the log: it is not the log that the policy was made from."
        )
    positions = max(table.shape[1], index.positions)
    return Situation(
        connection,
        model_of(policy.manifest, positions, _OTHERWISE),
        trained_model(policy.manifest, positions) is not None,
        table,
        np.asarray(logged, np.float64),
        float(index.lists_of.sum()),
        context.astype(np.int64),
        mean,
        posterior_strength(mean, lower, 1 - level),
    )


def _check(policy: Policy) -> float:
    """Raise unless a policy has posteriors; the level of their lower bounds."""
    settings, summary = policy.manifest.settings, policy.manifest.results.get("summary", {})
    if "model" not in settings or "bound" not in settings:
        raise PolicyError(
            "The policy has no estimates that exploration could be priced with: it was not made by prudent rank, or "
            "its manifest is missing."
        )
    level = summary.get("level")
    if not bounds.parse(settings["bound"]).posterior or level is None or not 0.5 < level < 1:
        names = [name for name in bounds if bounds[name].posterior]
        raise PolicyError(
            f"{settings['bound']} has no posterior, and what exploration costs would not be known. Rank by "
            f"{', '.join(names[:-1])} or {names[-1]}, with a delta below 1."
        )
    click_models.parse(settings["model"])
    return float(level)


@contextmanager
def _registered(connection: duckdb.DuckDBPyConnection, policy: Policy) -> Iterator[None]:
    """A block in which the lists and scores of a policy are the views `listed` and `scored`."""
    if not policy.has_scores:
        raise UsageError("Exploring takes the scores of all candidates: name their file, scores= (--scores).")
    for name, relation in (("given_lists", policy.lists()), ("given_scores", policy.scores())):
        connection.register(name, ArrowStream(relation))
        connection.execute(f"create temp table {name.replace('given', 'kept')} as from {name}")
        connection.unregister(name)
    connection.execute("create temp view listed as from kept_lists")
    connection.execute("create temp view scored as from kept_scores")
    try:
        yield
    finally:
        connection.execute("drop view listed; drop view scored; drop table kept_lists; drop table kept_scores")


def _check_names(connection: duckdb.DuckDBPyConnection, counts: Counts) -> None:
    kinds = dict(row[:2] for row in connection.execute("describe listed").fetchall())
    theirs = counts.index.names.kind
    if (kinds["context"] in INTEGERS) != (theirs in INTEGERS):
        raise PolicyError(
            f"The policy names its contexts by {kinds['context'].lower()}, and the log by {theirs.lower()}: it is not "
            "the log that the policy was made from."
        )


def posterior_strength(mean: FloatArray, lower: FloatArray, level: float) -> FloatArray:
    """α + β of the Beta distributions with these means, of which a share `level` lies below `lower`.

    Found by halving, since that share falls with the strength of a posterior: for means up to 1 − `level`. Above, two
    strengths may do, and either is found.
    """
    low, high = np.full(len(mean), np.log(_WEAKEST)), np.full(len(mean), np.log(_STRONGEST))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        strength = np.exp(middle)
        wide = betainc(mean * strength, (1 - mean) * strength, np.clip(lower, 0, 1)) > level
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    return np.asarray(np.exp(low))


def normal_quantile(confidence: float) -> float:
    """The quantile of the standard normal distribution."""
    return float(ndtri(confidence))


def known_contexts(situation: Situation, contexts: NameColumn) -> BoolArray:
    """Which contexts of the situation are among these."""
    with registered(situation.connection, "wanted", [{"context": contexts.column}]):
        found = situation.connection.execute(
            "select distinct number from candidates where context in (select context from wanted)"
        ).fetchnumpy()
    known = np.zeros(situation.contexts, bool)
    known[np.asarray(found["number"], np.int64)] = True
    return known


def spare(situation: Situation) -> BoolArray:
    """Which pairs are candidates that are not in a list."""
    free = np.ones(len(situation.mean), bool)
    free[situation.table[situation.table >= 0]] = False
    return free
