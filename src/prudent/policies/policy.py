"""Policy: one ranked list per context, each item with its evidence; read, write, show."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, SupportsIndex

import duckdb

from prudent.base.errors import PolicyError, UsageError
from prudent.base.results import Result
from prudent.base.text import Column, Columns, Rows, several
from prudent.counts.count import as_counts
from prudent.counts.counts import Counts
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.formats import find_files
from prudent.policies.files import COLUMNS, check_same_manifest, open_lists, open_table, read_manifest, read_scores
from prudent.policies.fitted_prior import FittedPrior, NewList, UnreadPrior, read_prior
from prudent.policies.lookup import Lookup, Name
from prudent.storage.files import check_not_read, replacing
from prudent.storage.locks import unchanged
from prudent.storage.manifest import Manifest
from prudent.storage.parquet import write_parquet

if TYPE_CHECKING:
    from prudent.policies.explain import Explanation

_COLUMNS = (
    Column("context", object),
    Column("rank", int),
    Column("item", object),
    *(Column(name, float) for name in COLUMNS[3:-1]),
    Column("impressions", int),
)


@dataclass(frozen=True, eq=False, repr=False)
class Policy(Lookup, Result):
    """One ranked list per context, each item with its evidence: a mapping from contexts to lists of items.

    ``policy["running shoes"]`` is a list of item names and ``policy.get("running shoes", mine)`` falls back to
    another; contexts iterate in their order. `lists`, `scores`, `contexts` and `changes` return DuckDB relations;
    ``to_frame()`` makes a data frame of the lists. A policy read from a file has its lists, the scores if their file
    was named, and no contexts.

    >>> import duckdb, prudent
    >>> lists = duckdb.sql("select 'shoes' as query, ['i1', 'i2'] as shown")
    >>> policy = prudent.Policy.from_table(lists, context="query", items="shown")
    >>> dict(policy)
    {'shoes': ['i1', 'i2']}
    >>> prudent.Policy.from_table(policy.to_frame()) == policy
    True
    """

    manifest: Manifest  # model, bound and other settings, and what it was trained on
    # lists, scores, contexts -> a query for each, or what makes its table and returns it; lists come in their order
    _tables: Mapping[str, str | Callable[[], str]]
    counts: Counts | None = None  # that it was ranked from
    files: tuple[Path, ...] = ()  # that it was read from
    prior: FittedPrior | UnreadPrior | None = None  # what ranks contexts that the log does not have

    @classmethod
    def read(cls, path: str | PathLike[str], scores: str | PathLike[str] | None = None) -> "Policy":
        """Read a policy from its file, or from the folder of files that Spark wrote.

        ``scores`` is the file of every candidate's scores, if they were written too.
        """
        connection = DuckDB().open()
        with unchanged(find_files([path]), PolicyError):  # lists and manifest are of one file
            file, files = open_lists(connection, path)
            tables, manifest = {"lists": "from lists"}, read_manifest(file)
            prior = read_prior(connection, file)
        if scores is not None:
            tables["scores"] = read_scores(connection, scores)
            check_same_manifest(scores, str(file), manifest)
            files = [*files, *find_files([scores])]
        # Absolute, for the working directory may change.
        return cls(connection, manifest, tables, files=tuple(one.resolve() for one in files), prior=prior)

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        context: str = "context",
        item: str | None = None,
        rank: str | None = None,
        items: str | None = None,
    ) -> "Policy":
        """A policy from lists made elsewhere, to evaluate, compare or export them.

        ``table`` is a path or a pandas, Polars, Arrow or DuckDB table with a row per ``context``, ``item`` and ``rank``
        (from 1), or with a row per context and its list in the column ``items``. Such a policy has no evidence, unless
        the table is that of another policy, as `to_frame` makes it.
        """
        if items is not None and (item is not None or rank is not None):
            raise UsageError("Name the column of lists, items=..., or the two columns item=... and rank=..., not both.")
        columns = {"items": items} if items else {"item": item or "item", "rank": rank or "rank"}
        connection = DuckDB().open()
        files = open_table(connection, table, {"context": context, **columns})
        return cls(connection, Manifest("policy", prudent=""), {"lists": "from lists"}, files=files)

    def write(self, path: str | PathLike[str], scores: str | PathLike[str] | None = None) -> None:
        """Write the lists to a Parquet file with its manifest beside it and, if named, the scores to another."""
        for table, target, order in (("lists", path, ""), ("scores", scores, "order by context, item")):
            if target is not None:
                check_not_read(target, () if self.counts is None else self.counts.files)
                with replacing(target) as part:
                    rows = f"from ({self._query(table)}) {order}"
                    prior = self.prior.footer if self.prior and table == "lists" else {}
                    write_parquet(self.connection, rows, part, footer={**self.manifest.footer, **prior})
                self.manifest.write(target)

    def lists(self) -> duckdb.DuckDBPyRelation:
        """The chosen lists: context, rank, item, lower, mean, upper, stay, positive, negative, impressions."""
        return self.connection.sql(self._query("lists"))

    def scores(self) -> duckdb.DuckDBPyRelation:
        """Every candidate with its evidence: the columns of `lists` without the rank."""
        return self.connection.sql(self._query("scores"))

    @property
    def has_scores(self) -> bool:
        """Whether `scores` are known: those of a policy from a file are in another."""
        return "scores" in self._tables

    def contexts(self) -> duckdb.DuckDBPyRelation:
        """One row per context.

        ``lists`` is how many were logged; ``value`` the estimated value of the new list, and ``lower`` its lower bound,
        at the ``level`` of the manifest's summary: about so many lists, or more, are worth at least that
        (`prudent.policies.list_bound`). ``incumbent_value`` and ``incumbent_lower`` are those of the incumbent list;
        ``differ`` is whether the two lists do. ``evidence`` is ``log``, or ``prior`` for a context that the log does
        not have.
        """
        return self.connection.sql(self._query("contexts"))

    def changes(self) -> duckdb.DuckDBPyRelation:
        """The rows of `contexts` whose list has another value, with its ``first_item``; the largest change first."""
        query = (
            f"select contexts.*, item as first_item from ({self._query('contexts')}) as contexts "
            f"join ({self._query('lists')}) as lists on lists.context = contexts.context and rank = 1 "
            "where differ and value <> incumbent_value "
            "order by abs(value - incumbent_value) * contexts.lists desc, contexts.context"
        )
        return self.connection.sql(query)

    def rank_new(
        self,
        context: str | SupportsIndex,
        candidates: Sequence[str | int],
        features: Mapping[str, Any] = MappingProxyType({}),
    ) -> NewList:
        """The candidates of a context that the log does not have, best first, by the fitted prior alone.

        It needs no log: the prior is in the policy's file, with the totals of the groups that were examined most.
        ``features`` are groups that the names do not tell: for a grouping of items one group for each candidate, for
        one of contexts a single group. Ties keep the order of the candidates, which may be production's.

        >>> import prudent, pyarrow as pa
        >>> lists = [{"query": f"q{i}", "items": ["i1", "i2"], "clicks": [0, i % 2]} for i in range(90)]
        >>> policy = prudent.rank(pa.Table.from_pylist(lists), "cm", context="query", groups="item")
        >>> policy.rank_new("a new query", ["i1", "i2"]).items
        ['i1', 'i2']
        """
        if self.prior is None and self.reward:
            raise PolicyError(
                f"This policy has no fitted prior: it was ranked by the reward {self.reward}. Requests are ranked by a "
                "policy that was ranked by clicks."
            )
        if self.prior is None:
            raise PolicyError("This policy has no fitted prior. Rank with bound=anchored, and read its own file.")
        return self.prior.rank(context if isinstance(context, str) else index(context), candidates, features)

    def explain(self, context: str | SupportsIndex, *, counts: Any = None) -> "Explanation":
        """Why the list of a context is what it is, beside the incumbent list.

        A policy read from a file does not have the counts it came from: without them, the incumbent list and the
        number of clicks are not known. ``counts`` are those of the training log, as an object or a path, or that log.
        """
        from prudent.policies.explain import explain

        self[context]  # known, or an error with the nearest name
        name = context if isinstance(context, str) else index(context)
        return explain(self, [name], self.counts if counts is None else as_counts(counts))[0]

    @property
    def _lists(self) -> str:
        return self._query("lists")

    def _query(self, table: str) -> str:
        if table not in self._tables:
            raise PolicyError(f"This policy has no {table}: they come with a policy fresh from prudent.rank.")
        query = self._tables[table]
        return query if isinstance(query, str) else query()

    @property
    def reward(self) -> str:
        """What its numbers are of, in place of clicks: the reward that it was ranked by; empty for clicks."""
        training = self.manifest.sources.get("training")
        return training.tally.reward if training else ""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the lists."""
        return _COLUMNS

    def rows(self) -> Rows:
        """The lists, item by item, in the order of contexts and ranks."""
        return self.relation().fetchall()

    def relation(self) -> duckdb.DuckDBPyRelation:
        """The lists as a DuckDB relation."""
        return self.connection.sql(f"from ({self._query('lists')}) order by context, rank")

    @property
    def title(self) -> str:
        """How many lists it has, and what made them."""
        settings = self.manifest.settings
        made_by = ", ".join(str(settings[key]) for key in ("model", "bound", "baseline") if key in settings)
        return f"Policy for {several(len(self), 'context')}{made_by and f' by {made_by}'}"

    def table(self) -> tuple[Columns, Rows]:
        """The lists of the contexts that were shown most, the most shown first."""
        rows = self._most_shown(3)
        known = [
            column
            for column, values in zip(_COLUMNS, zip(*rows, strict=True), strict=True)
            if any(value is not None for value in values)
        ]
        kept = [_COLUMNS.index(column) for column in known]
        return known, [[row[i] for i in kept] for row in rows]

    def _most_shown(self, contexts: int) -> list[tuple[Any, ...]]:
        lists = self._query("lists")
        return self.connection.execute(
            f"select lists.* from ({lists}) as lists join (select context, sum(impressions) as shown from ({lists}) "
            f"group by context order by shown desc nulls last, context limit {contexts}) as most using (context) "
            "order by shown desc nulls last, context, rank"
        ).fetchall()

    def __repr__(self) -> str:
        lists: dict[Name, list[str]] = {}
        for context, _, item, *_ in self._most_shown(5):
            lists.setdefault(context, []).append(repr(item))
        shown = [
            f"  {context!r}: [{', '.join(items[:4])}{', ...' if len(items) > 4 else ''}]"
            for context, items in lists.items()
        ]
        return "\n".join([self.title, *shown, *(["  ..."] if len(self) > len(lists) else [])])

    __str__ = __repr__


def as_policy(source: Policy | str | PathLike[str], scores: str | PathLike[str] | None = None) -> Policy:
    """The policy, or the one in a file, with its scores from another."""
    if isinstance(source, str | PathLike):
        return Policy.read(source, scores)
    if scores is not None:
        raise UsageError("scores is a file of the scores of a policy in another file: Policy.read(path, scores).")
    if isinstance(source, Policy):
        return source
    raise UsageError(f"A {type(source).__name__} is not a policy: give a Policy or the path of one.")
