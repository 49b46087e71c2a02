"""Groupings of items and contexts: automatic ones, and columns of tables.

An automatic grouping needs no table:

- ``item``: the item itself, in all contexts that have it.
- ``host``: the host of an item that is a URL, without ``www.``.
- ``query``: the context in its normal form: lower case, words without punctuation, sorted.

Each grouping of contexts is two: the level of all pairs of the group, and the item within the group. Nothing is looked
up by name: a name is a key of 64 bits, `prudent.engines.kernel.keys_of`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from unicodedata import category, normalize

import duckdb
import numpy as np

from prudent.base.arrays import IntArray
from prudent.base.errors import LogError, UsageError, did_you_mean
from prudent.counts.groups import NO_GROUP, Keys
from prudent.counts.index import Part, typed_names
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import opened
from prudent.engines.kernel import derived_keys, find, keys_of
from prudent.engines.kernel.names import hashed
from prudent.logs.contexts import context_columns
from prudent.logs.log import Table
from prudent.storage.arrow import numbers, read, stream_of
from prudent.storage.arrow_tables import registered
from prudent.storage.database import Database
from prudent.storage.run import NameColumn

_URL = (
    r"^(?:(?:[A-Za-z][A-Za-z0-9+.-]*:)?//(?:[^/@?#]*@)?)?(?:[wW]{3}\.)?"
    r"([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)(?:[:/?#]|\z)"
)
_HOST = f"lower(regexp_extract(name, '{_URL}', 1))"
_WORDS = (
    r"array_to_string(list_sort(list_filter(regexp_split_to_array(lower(nfc_normalize(name)), '[^\pL\pN]+'), "
    "lambda word: word <> '')), ' ')"
)
Lookup = Callable[[NameColumn], IntArray]
"""The key of the group of each name."""


@dataclass(frozen=True)
class Derived:
    """The group of a name is a text made of it; none where that is empty, or where names are integers.

    Without SQL, a name is a group of its own.
    """

    expression: str | None  # in SQL, of `name`
    one: Callable[[str], str]  # the same for a few names: a query takes longer than a request may
    what: str = "names"  # the same in the kernel

    def __call__(self, names: NameColumn) -> IntArray:
        """By the kernel; in SQL what it does not know, each distinct name once."""
        if self.expression is None:
            return keys_of(names)
        if names.ends is None:
            return np.full(len(names), NO_GROUP)
        found, known = derived_keys(names, self.what)
        rest = np.flatnonzero(~known)
        if len(rest):
            found[rest] = self._in_sql(names.take(rest))
        return found

    def _in_sql(self, names: NameColumn) -> IntArray:
        _, first, number = np.unique(keys_of(names), return_index=True, return_inverse=True)
        distinct = {"number": numbers(np.arange(len(first))), "name": names.take(first).column}
        with Database().connect() as connection, registered(connection, "names", [distinct]):
            found = connection.sql(f"select {self.expression} as part from names order by number")
            (texts,) = _columns(found)
        return keys_unless_empty(texts)[number]

    def few(self, names: Sequence[str | int]) -> IntArray:
        """The keys of a few names."""
        if self.expression is None:
            return keys_of(NameColumn.of_names(names))
        return keys_of_texts([self.one(name) if isinstance(name, str) else "" for name in names])


def _host(url: str) -> str:
    found = _URL_PATTERN.match(url)
    return found[1].lower() if found else ""


_URL_PATTERN = re.compile(_URL.replace(r"\z", r"\Z"))


def _normal_form(query: str) -> str:
    """Words in lower case, sorted; letters one by one, as SQL does it, where Python knows endings and ligatures."""
    letters = [letter.lower()[0] if category(letter)[0] in "LN" else " " for letter in normalize("NFC", query)]
    return " ".join(sorted("".join(letters).split(" "))).strip()


OF_ITEMS: Mapping[str, Derived] = {"item": Derived(None, str), "host": Derived(_HOST, _host, "host")}
OF_CONTEXTS: Mapping[str, Derived] = {"query": Derived(_WORDS, _normal_form, "words")}
"""Automatic groupings."""


@dataclass(frozen=True, eq=False)
class Listed:
    """The group of a name is looked up in a column of a table."""

    names: IntArray  # keys, ascending
    groups: IntArray

    def __call__(self, names: NameColumn) -> IntArray:
        """Names that are not in the table have no group."""
        at = find(self.names, keys_of(names))
        return np.where(at < 0, NO_GROUP, self.groups[at])


def keys_unless_empty(texts: NameColumn) -> IntArray:
    """The key of each text; empty text has none."""
    empty = np.zeros(len(texts), bool) if texts.ends is None else np.diff(texts.ends, prepend=0) == 0
    return np.where(empty, NO_GROUP, keys_of(texts))


def _columns(relation: duckdb.DuckDBPyRelation) -> list[NameColumn]:
    """The columns of a query; it has a row."""
    capsule = relation.__arrow_c_stream__()  # the stream is gone with it
    batches = [[NameColumn.of(column) for column in batch] for batch in read(stream_of(capsule))]
    return [NameColumn.concatenated(column) for column in zip(*batches, strict=True)]


@dataclass(frozen=True)
class Groupings:
    """What groups the pairs of a log; one that is empty groups nothing."""

    of_items: Mapping[str, Lookup] = field(default_factory=dict)
    of_contexts: Mapping[str, Lookup] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)  # for the manifest
    used: frozenset[str] | None = None  # names of those that tell something; the others have no keys; None: all

    def __bool__(self) -> bool:
        return bool(self.of_items or self.of_contexts)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the signals: each grouping of items, then each of contexts and of items within it."""
        within = [name for context in self.of_contexts for name in (context, f"{context} × item")]
        return (*self.of_items, *within)

    def _uses(self, name: str) -> bool:
        return self.used is None or name in self.used

    def keys(self, part: Part) -> Keys:
        """The groups of the pairs of some contexts, which are numbered as in `part`."""
        context = part.cells.context
        columns, alone = [], []
        none = np.full(len(context), NO_GROUP)
        for name, lookup in self.of_items.items():
            columns.append(lookup(part.items) if self._uses(name) else none)
            alone.append(name == "item")
        for name, lookup in self.of_contexts.items():
            level, within = self._uses(name), self._uses(f"{name} × item")
            group = lookup(part.contexts)[context] if level or within else none
            columns += [group if level else none, combined(group, keys_of(part.items)) if within else none]
            alone += [False, True]
        first, last = (int(keys_of(part.contexts.slice(at, at + 1))[0]) for at in (0, len(part.contexts) - 1))
        return Keys(self.names, np.array(columns).T, tuple(alone), (first, last, len(context)))


def combined(group: IntArray, item: IntArray) -> IntArray:
    """The key of an item within a group of contexts."""
    mixed = hashed(group * 3 + item)
    return np.where(group == NO_GROUP, NO_GROUP, np.where(mixed == NO_GROUP, 1, mixed))


def keys_of_texts(groups: Sequence[Any]) -> IntArray:
    """The keys of groups by their names; None and empty text are no group."""
    return keys_unless_empty(NameColumn.of_names(["" if group is None else str(group) for group in groups]))


NO_GROUPINGS = Groupings()


class GroupBy(NamedTuple):
    """What a caller groups by."""

    groups: Sequence[str] | str = ()
    item_groups: Any = None
    context_groups: Any = None
    context: Sequence[str] = ("context",)  # the columns that name contexts in `context_groups`

    @property
    def nothing(self) -> bool:
        """Whether there are no groups at all."""
        return not self.groups and self.item_groups is None and self.context_groups is None


UNGROUPED = GroupBy()


def open_groupings(by: GroupBy, engine: DuckDB, named: tuple[str, str]) -> Groupings:
    """The automatic groupings of these names, and one for each column of the tables.

    ``named`` are DuckDB's types of the log's contexts and items.
    """
    groups, item_groups, context_groups, context = by
    names = [name.strip() for name in groups.split(",") if name.strip()] if isinstance(groups, str) else list(groups)
    for name in names:
        if name not in OF_ITEMS and name not in OF_CONTEXTS:
            known = [*OF_ITEMS, *OF_CONTEXTS]
            raise UsageError(
                f"There is no grouping {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}; others are "
                "columns of item_groups (--item-groups) or context_groups (--context-groups)."
            )
    of_items: dict[str, Lookup] = {name: derived for name, derived in OF_ITEMS.items() if name in names}
    of_contexts: dict[str, Lookup] = {name: derived for name, derived in OF_CONTEXTS.items() if name in names}
    settings: dict[str, Any] = {"groups": [*of_items, *of_contexts]} if names else {}
    for key, source, kind, into in (
        ("item", item_groups, named[1], of_items),
        ("context", context_groups, named[0], of_contexts),
    ):
        if source is not None:
            table = GroupTable(source, key, context if key == "context" else (key,))
            for name, lookup in _read(engine, table, kind).items():
                if name in (*of_items, *of_contexts):
                    raise UsageError(f"There are two groupings {name!r}: rename the column of {table.name}.")
                into[name] = lookup
            settings[f"{key}_groups"] = table.name
    return Groupings(of_items, of_contexts, settings)


@dataclass(frozen=True, eq=False)
class GroupTable(Table):
    """One row per item or context, with its group in each of the other columns."""

    source: Any
    key: str  # item or context
    key_columns: Sequence[str]  # of which there are several where they make one context
    groupings: tuple[str, ...] = ()  # the other columns
    found: list[str] = field(default_factory=list)  # all columns, known when it was opened

    def check_columns(self, columns: Iterable[str], where: str) -> None:
        """Besides what is asked for, remember what there is."""
        self.found[:] = columns = list(columns)
        super().check_columns(columns, where)

    @property
    def columns(self) -> dict[str, str]:
        """The key and, once known, the groupings."""
        key = context_columns(self.key_columns) if self.key == "context" else {self.key: self.key}
        return {**key, **{f"g{number}": name for number, name in enumerate(self.groupings)}}

    def _remedy(self, *meanings: str) -> str:
        named = ", ".join(self.key_columns)
        return f"A table of {self.key} groups has the column {named}, and a column for each grouping."


def _read(engine: DuckDB, table: GroupTable, kind: str) -> dict[str, Lookup]:
    """The groupings in the columns of a table."""
    with engine.connect() as first, opened(first, table):
        groupings = tuple(name for name in table.found if name not in table.key_columns)
    if not groupings:
        raise LogError(f"{table.name} has no groupings: besides {table.key}, it needs a column for each.")
    table = GroupTable(table.source, table.key, table.key_columns, groupings)
    connection = engine.open()
    columns = [f"g{number}" for number in range(len(groupings))]
    with opened(connection, table) as source:
        (name,), wrong = typed_names(source, table, f"{table.key} groups", {table.key: kind})
        texts = ", ".join(f"coalesce({column}::varchar, '') as {column}" for column in columns)
        connection.execute(f"create table grouped as select distinct {name}, {texts} from source")
        ((bad, rows, distinct),) = connection.execute(
            f"select (select count(*) from source where {' or '.join(wrong)}), count(*), count(distinct {table.key}) "
            "from grouped"
        ).fetchall()
    if bad:
        raise LogError(f"{bad:,} rows of {table.name} have no {table.key}, or one that is not of the log's type.")
    if not rows:
        raise LogError(f"{table.name} has no rows.")
    if rows > distinct:
        raise LogError(
            f"{table.name} has several groups of one grouping for {rows - distinct:,} of its {table.key}s. Keep one."
        )
    rows_of = connection.sql(f"select {table.key}, {', '.join(columns)} from grouped")
    names, *groups = _columns(rows_of)
    keys = keys_of(names)
    order = np.argsort(keys)
    return {
        grouping: Listed(keys[order], keys_unless_empty(texts)[order])
        for grouping, texts in zip(groupings, groups, strict=True)
    }
