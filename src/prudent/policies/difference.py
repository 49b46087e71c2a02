"""Difference: the result of comparing two policies."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

import duckdb

from prudent.base.results import Result
from prudent.base.text import Column, Columns, Rows, several
from prudent.storage.files import replacing
from prudent.storage.manifest import Manifest
from prudent.storage.parquet import write_parquet

_COLUMNS = (
    Column("context", object),
    Column("item", object),
    Column("old_rank", int),
    Column("new_rank", int),
    Column("old_lower", float),
    Column("new_lower", float),
    Column("old_impressions", int),
    Column("new_impressions", int),
    Column("why", str),
)


class Setting(NamedTuple):
    """An entry in which the manifests of the two policies differ."""

    name: str  # such as bound or training.days.half_life
    old: Any
    new: Any


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Result):
    """Two policies, compared.

    ``settings`` come first: where the two were made differently, that can explain everything else. ``contexts`` is the
    number of lists in ``old`` and ``new``, and how many are the ``same``, ``changed``, ``gone`` or ``appeared``;
    ``items`` the same for distinct items, in the lists or, with scores, among the candidates; ``renamed`` how many of
    both look like one under two names; ``why`` how many items changed their place for each reason:

    - *more evidence* or *less evidence*, with a *higher estimate* or *lower estimate*: its own bound moved it; it has
      more or fewer impressions than before, and its mean rose or fell;
    - *narrower interval*, *wider interval*: its own bound moved it although its mean did not, because there is more or
      less evidence, or another fit;
    - *same evidence, other fit*: its own bound moved it, with as many impressions as before;
    - *only others moved*: its own bound is unchanged;
    - *longer lists*, *shorter lists*, *other places*: no bound moved past another; lists are longer, shorter, or
      filled in another order;
    - *others moved more*: its own bound alone would not have moved it, those of the others would;
    - *production or other items moved*: the same, in lists that start from the incumbent;
    - *new item*, *gone*: it was not a candidate before, or is none now;
    - *not listed before*, *no longer listed*: one of the above, but only scores could tell which;
    - *new context*, *context gone* and, with scores, *too few lists before*, *too few lists now*.
    """

    settings: tuple[Setting, ...]
    contexts: Mapping[str, int]
    items: Mapping[str, int]
    why: Mapping[str, int]
    renamed: Mapping[str, int]
    scored: bool  # whether the evidence of every candidate was known
    connection: duckdb.DuckDBPyConnection

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the changes."""
        return _COLUMNS

    def rows(self) -> Rows:
        """The changes, as in `changes`."""
        return self.changes().fetchall()

    def relation(self) -> duckdb.DuckDBPyRelation:
        """The changes, as in `changes`."""
        return self.changes()

    def changes(self) -> duckdb.DuckDBPyRelation:
        """Every item that changed its place: both ranks, lower bounds and impressions, and why."""
        return self.connection.sql("from changes")

    def affected(self) -> duckdb.DuckDBPyRelation:
        """Every context whose list changed, the most shown first, with the impressions of its most shown item."""
        return self.connection.sql(
            "select context, case when old_size = 0 then 'appeared' when new_size = 0 then 'gone' else 'changed' end "
            "as change, impressions from compared where changed order by impressions desc, context"
        )

    def renamed_contexts(self) -> duckdb.DuckDBPyRelation:
        """Contexts that look like one under two names: one is gone, one appeared, and their lists are alike."""
        return self.connection.sql("from renamed_contexts order by places desc, old")

    def renamed_items(self) -> duckdb.DuckDBPyRelation:
        """Items that look like one under two names: one is gone everywhere, one appeared in its places."""
        return self.connection.sql("from renamed_items order by places desc, old")

    def sample(self, contexts: int) -> dict[str, list[dict[str, Any]]]:
        """What looks renamed, and the changes of the most shown contexts, at most so many of each."""
        affected = records(self.affected().limit(contexts))
        for one in affected:
            changes = "select * exclude (context) from changes where context = ? order by new_rank, old_rank"
            one["changes"] = records(self.connection.sql(changes, params=[one["context"]]))
        return {
            "renamed_contexts": records(self.renamed_contexts().limit(contexts)),
            "renamed_items": records(self.renamed_items().limit(contexts)),
            "affected": affected,
        }

    @property
    def manifest(self) -> Manifest:
        """The settings that differ, and the numbers."""
        return Manifest(
            "difference",
            results={
                "settings": [setting._asdict() for setting in self.settings],
                "contexts": dict(self.contexts),
                "items": dict(self.items),
                "why": dict(self.why),
                "renamed": dict(self.renamed),
            },
        )

    def write(self, path: str | PathLike[str]) -> None:
        """Write all changes to a Parquet file, with a manifest beside it."""
        with replacing(path) as part:
            write_parquet(self.connection, "from changes", part, footer=self.manifest.footer)
        self.manifest.write(path)

    @property
    def title(self) -> str:
        """How many lists changed."""
        many = self.contexts
        lists = several(many["new"], "list")
        return f"Difference: of {lists}, {many['changed']:,} changed and {many['appeared']:,} are new"

    def table(self) -> tuple[Columns, Rows]:
        """How many items changed their place for each reason."""
        return [Column("why items changed their place", str), Column("items", int)], list(self.why.items())


def records(table: duckdb.DuckDBPyRelation) -> list[dict[str, Any]]:
    """The rows of a table, each by the names of its columns."""
    return [dict(zip(table.columns, row, strict=True)) for row in table.fetchall()]
