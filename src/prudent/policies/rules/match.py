"""Which pairs of a log the rules name: their names, once, as the numbers of pairs and of groups."""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from prudent.base.arrays import BoolArray, IntArray
from prudent.base.errors import LogError, RulesError
from prudent.base.text import visible
from prudent.counts.index import Part
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import INTEGERS, name_as, opened
from prudent.logs.log import Table
from prudent.policies.rules.rules import Named, Rules
from prudent.storage.arrow import numbers
from prudent.storage.arrow_tables import registered
from prudent.storage.run import NameColumn

_FLAGS = ("exclude", "bury")


@dataclass(frozen=True)
class Marks:
    """What rules say of the pairs of a part."""

    excluded: BoolArray
    buried: BoolArray
    position: IntArray  # that the pair is pinned to; 0 for none
    groups: Mapping[str, IntArray]  # of each column of at_most: the number of the pair's value; -1 for none


@dataclass(frozen=True, eq=False)
class BoundRules:
    """Rules with their names in the types of a log; it can be sent to the tasks of Spark."""

    rules: Rules
    everywhere: Mapping[str, Any]  # item, exclude, bury, position: of items that are named without a context
    somewhere: Mapping[str, Any]  # the same, with the context
    members: Mapping[str, Any]  # item, and the number of its value in every column of at_most

    def marks(self, part: Part) -> Marks:
        """The pairs of a part that rules name, and their groups."""
        connection = DuckDB().open()
        pairs, item = part.cells.pairs, part.items.column
        excluded, buried, position = np.zeros(pairs, bool), np.zeros(pairs, bool), np.zeros(pairs, np.int64)
        rows: dict[str, Any] = {"row": np.arange(pairs)}
        for table in (self.everywhere, self.somewhere):
            if not len(table["exclude"]):
                continue
            batch, on = {"row": numbers(rows["row"]), "item": item}, "item"
            if "context" in table:
                batch |= {"number": numbers(part.cells.context)}
                on = "number, item"
                table = _numbered(connection, table, part.contexts)
            found = _join(connection, batch, table, on, "row, exclude, bury, position")
            excluded[found["row"]] |= found["exclude"]
            buried[found["row"]] |= found["bury"]
            position[found["row"]] = np.maximum(position[found["row"]], found["position"])
        groups = {column: np.full(pairs, -1) for column in self.rules.at_most}
        if groups:
            batch = {"row": numbers(rows["row"]), "item": item}
            found = _join(connection, batch, self.members, "item", f"row, {', '.join(_codes(self.rules))}")
            for code, values in zip(_codes(self.rules), groups.values(), strict=True):
                values[found["row"]] = found[code]
        return Marks(excluded, buried, position, groups)


def _codes(rules: Rules) -> list[str]:
    """The columns of numbers, whose names are ours and not those of a stranger's table."""
    return [f"group{number}" for number, _ in enumerate(rules.at_most, start=1)]


def _join(
    connection: duckdb.DuckDBPyConnection, batch: Mapping[str, Any], table: Mapping[str, Any], on: str, columns: str
) -> dict[str, Any]:
    named = {
        name: values.column if isinstance(values, NameColumn) else numbers(values) for name, values in table.items()
    }
    with registered(connection, "pairs", [batch]), registered(connection, "named", [named]):
        query = f"select {columns} from pairs join named using ({on})"
        return {name: np.asarray(values) for name, values in connection.execute(query).fetchnumpy().items()}


def _numbered(
    connection: duckdb.DuckDBPyConnection, table: Mapping[str, Any], contexts: NameColumn
) -> Mapping[str, Any]:
    """The rows whose context is one of these, with its number."""
    known = {"number": numbers(np.arange(len(contexts))), "context": contexts.column}
    row = {"context": table["context"], "entry": np.arange(len(table["exclude"]))}
    found = _join(connection, known, row, "context", "number, entry")
    rest = {name: values for name, values in table.items() if name != "context"}
    taken = {
        name: v.take(found["entry"]) if isinstance(v, NameColumn) else v[found["entry"]] for name, v in rest.items()
    }
    return {**taken, "number": found["number"]}


# --- names in the types of the log ------------------------------------------------------------------------------------


def bind(rules: Rules, context: str, item: str) -> BoundRules:
    """The rules for a log whose contexts and items have these types of DuckDB's; the groups are read."""
    kinds = {"context": context, "item": item}
    everywhere = [one for named in (rules.exclude, rules.bury, rules.pin) for one in named if one.context is None]
    somewhere = [one for named in (rules.exclude, rules.bury, rules.pin) for one in named if one.context is not None]
    flat = _table(rules, everywhere, {"item": item}), _table(rules, somewhere, kinds)
    return BoundRules(rules, *flat, _members(rules, item) if rules.at_most else {})


def _table(rules: Rules, named: list[Named], kinds: Mapping[str, str]) -> dict[str, Any]:
    rows = list(dict.fromkeys((one.item, one.context) for one in named))
    which = {kind: {(one.item, one.context) for one in getattr(rules, kind)} for kind in _FLAGS}
    pins = {(one.item, one.context): one.position for one in rules.pin}
    names: dict[str, list[Any]] = {"item": [item for item, _ in rows], "context": [context for _, context in rows]}
    return {
        **{name: _names(names[name], name, kind) for name, kind in kinds.items()},
        **{kind: np.array([row in which[kind] for row in rows], bool) for kind in _FLAGS},
        "position": np.array([pins.get(row, 0) for row in rows], np.int64),
    }


def _names(names: list[Any], meaning: str, kind: str) -> NameColumn:
    """Names as a column of the log's type."""
    text = kind == "VARCHAR"
    for name in names:
        if isinstance(name, str) != text:
            ours = "text" if text else "integers"
            raise RulesError(
                f"The rules name the {meaning} {visible(repr(name))}, but the log's {meaning}s are {ours}."
            )
    if not text:
        dtype = np.uint64 if kind == "UBIGINT" else np.int64
        try:
            return NameColumn(np.array(names, dtype))
        except OverflowError:
            raise RulesError(
                f"The rules name a {meaning} that does not fit the log's, which are {kind.lower()}."
            ) from None
    raw = [name.encode() for name in names]
    ends = np.cumsum([len(one) for one in raw], dtype=np.int64)
    return NameColumn(np.frombuffer(b"".join(raw), np.uint8), ends)


@dataclass(frozen=True, eq=False)
class _Groups(Table):
    """The items with their groups: one row per item."""

    source: Any
    groups: Mapping[str, str]  # our name of a group -> its column

    @property
    def columns(self) -> dict[str, str]:
        """The item, and the groups."""
        return {"item": "item", **self.groups}

    def _remedy(self, *meanings: str) -> str:
        return "The groups of the rules are a table with a column item and one for each group of at_most."


def _members(rules: Rules, kind: str) -> dict[str, Any]:
    """Every item of the table of groups, with the number of its value in each column; -1 for none."""
    codes = _codes(rules)
    if isinstance(rules.item_groups, str) and not os.path.exists(rules.item_groups):  # a name, and no pattern
        raise RulesError(f"The groups of the rules are not there: there is no file {visible(rules.item_groups)}.")
    table, connection = _Groups(rules.item_groups, dict(zip(codes, rules.at_most, strict=True))), DuckDB().open()
    ranks = (f"if({code} is null, 0, dense_rank() over (order by {code} nulls last)) - 1 as {code}" for code in codes)
    with opened(connection, table) as source:
        theirs = source.types["item"]
        name = name_as("item", theirs, table)
        if (theirs in INTEGERS) == (kind == "VARCHAR") and source.kind != "csv":
            raise LogError(f"The item of {table.name} is {theirs.lower()}, but the log's is {kind.lower()}.")
        cast = f"try_cast({name} as {kind})" if kind != "VARCHAR" else name
        connection.execute(f"create temp table members as select {cast} as name, {', '.join(ranks)} from source")
    query = "select count(*) - count(distinct name) from members"
    ((wrong,),) = connection.execute(query).fetchall()
    if wrong:
        raise RulesError(
            f"{table.name} has {wrong:,} rows whose item is missing, is of another type than the log's or was named "
            "before: the groups of the rules have one row per item."
        )
    found = connection.execute(f"select name, {', '.join(codes)} from members order by name").fetchnumpy()
    names = np.asarray(found["name"]).tolist()
    members = {code: np.asarray(found[code], np.int64) for code in codes}
    _check_pins_fit(rules, dict(zip(names, zip(*(members[code].tolist() for code in codes), strict=True), strict=True)))
    return {"item": _names(names, "item", kind), **members}


def _check_pins_fit(rules: Rules, groups: Mapping[Any, tuple[int, ...]]) -> None:
    """Raise where more items of one group are pinned in a context than a list may have."""
    by_context: dict[Any, set[Any]] = {}
    for one in rules.pin:
        by_context.setdefault(one.context, set()).add(one.item)
    everywhere = by_context.get(None, set())
    for context, own in by_context.items():
        pinned = everywhere | own
        for number, (column, most) in enumerate(rules.at_most.items()):
            held = Counter(groups[item][number] for item in pinned if item in groups and groups[item][number] >= 0)
            if max(held.values(), default=0) > most:
                at = "" if context is None else f" in {context!r}"
                raise RulesError(
                    f"The rules contradict each other: {max(held.values())} items of one {column} are pinned{at}, and "
                    f"a list has at most {most}. Keep one of the two."
                )
