"""The lists of a policy as a mapping: a query per context and, after some lookups, all of them in memory."""

from abc import abstractmethod
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from dataclasses import dataclass, field
from itertools import groupby
from operator import index
from typing import Any, SupportsIndex

import duckdb

from prudent.base.errors import UnknownContextError, did_you_mean
from prudent.logs.contexts import context_name

Name = str | int
_SUGGEST_AMONG = 5_000  # contexts among which a misspelled one is searched
_LOOKUPS, _ROWS = 20, 2_000_000  # after so many queries, lists of at most so many rows are kept in memory


@dataclass(frozen=True, eq=False, repr=False)
class Lookup(Mapping[Name, list[Name]]):
    """Contexts with their lists of items, in the order of contexts."""

    connection: duckdb.DuckDBPyConnection
    # the number of lookups and, after some, the lists
    _memory: dict[str, Any] = field(default_factory=dict, init=False)

    @property
    @abstractmethod
    def _lists(self) -> str:
        """The query of the lists: context, rank, item."""

    def __getitem__(self, context: str | SupportsIndex | tuple[str | int, ...]) -> list[Name]:
        items = self._find(context)
        if not items:
            raise UnknownContextError(self._unknown(_named(context)))
        return items

    def get(self, context: str | SupportsIndex | tuple[str | int, ...], default: Any = None) -> Any:
        """The list of a context, or `default`, such as the list of your own ranking."""
        return self._find(context) or default

    def __contains__(self, context: object) -> bool:
        return bool(self._find(context))

    def __eq__(self, other: object) -> bool:
        """Whether another policy, or a mapping, has the same lists."""
        if not isinstance(other, Mapping):
            return NotImplemented
        return dict(self.items()) == dict(other.items())

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[Name]:
        query = f"select context from ({self._lists}) where rank = 1 order by context"
        return iter([context for (context,) in self.connection.execute(query).fetchall()])

    def __len__(self) -> int:
        query = f"select count(distinct context) from ({self._lists})"
        return int(self.connection.execute(query).fetchall()[0][0])

    def items(self) -> ItemsView[Name, list[Name]]:
        """Contexts with their lists, read once from the first to the last."""
        return _Items(self)

    def values(self) -> ValuesView[list[Name]]:
        """The lists, in the order of contexts."""
        return _Values(self)

    def _read_lists(self) -> Iterator[tuple[Name, list[Name]]]:
        query = f"select context, item from ({self._lists}) order by context, rank"
        for context, pairs in groupby(self.connection.execute(query).fetchall(), key=lambda row: row[0]):
            yield context, [item for _, item in pairs]

    def _find(self, context: object) -> list[Name]:
        context = _named(context)
        if not isinstance(context, str):
            try:  # NumPy's integers are as good as Python's; True is no name
                context = index(context) if not isinstance(context, bool) else None  # type: ignore[arg-type]
            except TypeError:
                return []
        if context is None or isinstance(context, str) != self._named_by_text:
            return []  # 7 is not '7'
        if (lists := self._in_memory()) is not None:
            return list(lists.get(context, ()))
        query = f"select item from ({self._lists}) where context = ? order by rank"
        try:
            return [item for (item,) in self.connection.execute(query, [context]).fetchall()]
        except duckdb.Error:  # a number of more than 64 bits, or text that is no UTF-8: nothing is called that
            return []

    def _in_memory(self) -> dict[Name, list[Name]] | None:
        """All lists, after some lookups and unless they are too many: a query per context would make dict() slow."""
        memory = self._memory
        memory["lookups"] = memory.get("lookups", 0) + 1
        if memory["lookups"] == _LOOKUPS:
            rows = self.connection.execute(f"select count(*) from ({self._lists})").fetchall()[0][0]
            memory["lists"] = dict(self._read_lists()) if rows <= _ROWS else None
        return memory.get("lists")

    def _unknown(self, context: str | SupportsIndex) -> str:
        if isinstance(context, str) != self._named_by_text:
            kind = "text" if self._named_by_text else "integers"
            return f"No list for {context!r}: contexts are {kind} in this policy, and 7 is not '7'."
        few = isinstance(context, str) and len(self) <= _SUGGEST_AMONG  # more would take longer than a miss may
        near = did_you_mean(str(context), (str(name) for name in self)) if few else ""
        return f"No list for {context!r}.{near} Keep your own ranking there."

    @property
    def _named_by_text(self) -> bool:
        if "text" not in self._memory:
            self._memory["text"] = str(self.connection.sql(self._lists).types[0]) == "VARCHAR"
        return bool(self._memory["text"])


class _Items(ItemsView[Name, list[Name]]):
    _mapping: Lookup

    def __iter__(self) -> Iterator[tuple[Name, list[Name]]]:
        return self._mapping._read_lists()


class _Values(ValuesView[list[Name]]):
    _mapping: Lookup

    def __iter__(self) -> Iterator[list[Name]]:
        return (items for _, items in self._mapping._read_lists())


def _named(context: Any) -> Any:
    """A context of several columns by its name."""
    return context_name(*context) if isinstance(context, tuple) else context
