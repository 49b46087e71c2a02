"""Tables of features: of items, of contexts, or of pairs of both, as far as they have the columns of the names.

A column of numbers is numeric, one of text, booleans or an enumeration has levels. A value that is missing, NaN or
empty text is none, as are all values of what a table does not name. Nothing is looked up by name: a name is a key of
64 bits, `prudent.engines.kernel.names.hashed`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np

from prudent.base.arrays import IntArray
from prudent.base.errors import LogError, UsageError
from prudent.base.text import several
from prudent.counts.feature_columns import MISSING, MOST_LEVELS, Categorical, Feature, Features, Numeric, in_range, take
from prudent.counts.groupings import combined, keys_unless_empty
from prudent.counts.groups import NO_GROUP
from prudent.counts.index import Part, typed_names
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import INTEGERS, OpenTable, opened
from prudent.engines.kernel import find, keys_of
from prudent.logs.contexts import context_columns
from prudent.logs.log import Table
from prudent.storage.arrow import read, stream_of
from prudent.storage.run import NameColumn

MOST_COLUMNS = 100
"""Features, in all tables; a model of more is better fitted elsewhere, and its prediction a feature here."""
_NUMBERS = (*INTEGERS, "HUGEINT", "UHUGEINT", "FLOAT", "DOUBLE")
FOLDS = 5
"""Of contexts, by their names."""
_NONE = {True: "'nan'::double", False: "''"}  # of a feature that is numeric, or not


@dataclass(frozen=True, eq=False)
class FeatureTable(Table):
    """One row per item, per context, or per pair of both, with a feature in each of the other columns."""

    source: Any
    context: Sequence[str]  # the columns that name a context
    found: list[str] = field(default_factory=list)  # all columns, known when it was opened

    def check_columns(self, columns: Iterable[str], where: str) -> None:
        """Which of the columns are names, and which are features."""
        columns = list(columns)
        for column in columns:
            twins = [other for other in columns if other.casefold() == column.casefold()]
            if len(twins) > 1:
                raise LogError(f"{where} has {len(twins)} columns named {column!r}, ignoring case. Rename all but one.")
        if not self.found:
            named = [name for name in self.context if name in columns]
            if (named and len(named) < len(self.context)) or not (named or "item" in columns):
                raise LogError(
                    f"{where} names neither items nor contexts: a table of features has the column item, or "
                    f"{' and '.join(self.context)}, or all of them. It has: {', '.join(columns) or 'no columns'}."
                )
            self.found[:] = columns
        if odd := sorted(set(columns) ^ set(self.found)):
            raise LogError(
                f"{where} has other columns than the files before it in {self.name}: {', '.join(odd)[:200]} "
                f"{'is' if len(odd) == 1 else 'are'} not in all of them. Name tables one by one (--features)."
            )
        super().check_columns(columns, where)

    @property
    def keys(self) -> dict[str, str]:
        """What its columns of names mean."""
        context = context_columns(self.context) if set(self.context) <= set(self.found) else {}
        return {**context, **({"item": "item"} if "item" in self.found else {})}

    @property
    def features(self) -> list[str]:
        """The other columns."""
        return [name for name in self.found if name not in self.keys.values()]

    @property
    def columns(self) -> dict[str, str]:
        """Names and features; none before it is opened."""
        return {**self.keys, **{f"f{number}": name for number, name in enumerate(self.features)}}


@dataclass(frozen=True, eq=False)
class KeyedFeatures:
    """The features in one table, by key; one row more, the last, has none of them."""

    of_item: bool
    of_context: bool
    keys: IntArray  # ascending
    columns: Features

    def rows(self, part: Part, context: IntArray, item: IntArray) -> IntArray:
        """The row of every pair; −1 for those that are not in the table; `context` are keys of contexts."""
        if not self.of_item:
            return find(self.keys, context)[part.cells.context]
        return find(self.keys, combined(context[part.cells.context], item) if self.of_context else item)


@dataclass(frozen=True, eq=False)
class FeatureTables:
    """All tables of features of a log."""

    tables: tuple[KeyedFeatures, ...]
    sources: tuple[str, ...]  # for the manifest

    @property
    def nbytes(self) -> int:
        """Memory of its arrays."""
        return sum(table.keys.nbytes * (1 + len(table.columns)) for table in self.tables)

    @property
    def columns(self) -> list[Feature]:
        """All features, of no pair."""
        none = np.zeros(0, np.int64)
        return [feature for table in self.tables for feature in take(table.columns, none)]

    def rows(self, part: Part) -> list[IntArray]:
        """The rows of every pair in each of the tables."""
        context, item = keys_of(part.contexts), np.zeros(0, np.int64)
        if any(table.of_item for table in self.tables):
            item = keys_of(part.items)
        return [table.rows(part, context, item) for table in self.tables]

    def of(self, rows: Sequence[IntArray]) -> list[Feature]:
        """The features of pairs by their rows."""
        return [feature for table, some in zip(self.tables, rows, strict=True) for feature in take(table.columns, some)]


def folds(contexts: NameColumn) -> IntArray:
    """The fold of each context, by its name: the same in any log and engine."""
    return (keys_of(contexts).view(np.uint64) >> np.uint64(17)).astype(np.int64) % FOLDS


def tables_of(sources: Any) -> list[Any]:
    """The tables of features, of which there may be one or a sequence."""
    return list(sources) if isinstance(sources, Sequence) and not isinstance(sources, str) else [sources]


def read_features(sources: Any, context: Sequence[str], engine: DuckDB, named: tuple[str, str]) -> FeatureTables:
    """The tables of features; ``named`` are DuckDB's types of the log's contexts and items."""
    tables = [FeatureTable(source, context) for source in tables_of(sources)]
    if not tables:
        raise UsageError("features is empty: give a table, or leave it out.")
    keyed = tuple(_read(engine, table, dict(zip(("context", "item"), named, strict=True))) for table in tables)
    seen: dict[str, str] = {}
    for table, source in zip(keyed, tables, strict=True):
        for feature in table.columns:
            if feature.name in seen:
                raise LogError(f"{seen[feature.name]} and {source.name} both have a feature {feature.name!r}.")
            seen[feature.name] = source.name
    if len(seen) > MOST_COLUMNS:
        raise LogError(
            f"There are {len(seen)} features, and at most {MOST_COLUMNS} can be used. Leave some out, or make the "
            "prediction of a model of your own a feature."
        )
    return FeatureTables(keyed, tuple(table.name for table in tables))


def _read(engine: DuckDB, table: FeatureTable, kinds: dict[str, str]) -> KeyedFeatures:
    connection = engine.open()
    with opened(connection, table) as source:
        keys = list(dict.fromkeys(meaning.rstrip("0123456789") for meaning in table.keys))
        if not table.features:
            raise LogError(f"{table.name} has no features: besides {' and '.join(keys)}, it needs a column for each.")
        names, wrong = typed_names(source, table, "features", {key: kinds[key] for key in keys})
        typed = [_typed(connection, source, table, f"f{number}") for number in range(len(table.features))]
        columns = ", ".join([*names, *(f"{text} as f{number}" for number, (text, _) in enumerate(typed))])
        wrongly = " or ".join(wrong)
        connection.execute(f"create temp table wide as select {columns}, ({wrongly}) as wrong from source")
    ((rows, bad),) = connection.execute("select count(*), count_if(wrong) from wide").fetchall()
    if bad:
        raise LogError(
            f"{bad:,} rows of {table.name} have no {' or '.join(keys)}, or one that is not of the log's type."
        )
    if not rows:
        raise LogError(f"{table.name} has no rows.")
    names_of, columns_of = _fetch(connection, keys, [numeric for _, numeric in typed])
    own = [keys_of(column) for column in names_of]
    key = own[0] if len(own) == 1 else combined(*own)
    order = np.argsort(key)  # no key is there twice
    key = key[order]
    twins = np.flatnonzero(key[1:] == key[:-1])
    if len(twins):
        example = " and ".join(
            f"{what} {column[int(order[twins[0]])]!r:.100}" for what, column in zip(keys, names_of, strict=True)
        )
        raise LogError(
            f"{table.name} has {several(len(twins) + 1, 'row')} or more for the same {' and '.join(keys)}, such as "
            f"{example}: keep one for each."
        )
    last = np.append(order, -1)
    made: list[Feature] = []
    for number, (name, (_, numeric)) in enumerate(zip(table.features, typed, strict=True)):
        column = columns_of[number]
        feature = _numeric(table, name, column) if numeric else _categorical(connection, name, f"f{number}", column)
        made.append(feature.take(last))
    return KeyedFeatures("item" in keys, "context" in keys, key, made)


def _fetch(
    connection: duckdb.DuckDBPyConnection, keys: Sequence[str], numeric: Sequence[bool]
) -> tuple[list[NameColumn], list[NameColumn]]:
    """The names and the features of all rows; NaN or empty text where there is none."""
    none = (f"coalesce(f{number}, {_NONE[one]}) as f{number}" for number, one in enumerate(numeric))
    capsule = connection.sql(f"select {', '.join([*keys, *none])} from wide").__arrow_c_stream__()  # gone with it
    batches = [[NameColumn.of(column) for column in batch] for batch in read(stream_of(capsule))]
    columns = [NameColumn.concatenated(column) for column in zip(*batches, strict=True)]
    return columns[: len(keys)], columns[len(keys) :]


def _typed(
    connection: duckdb.DuckDBPyConnection, source: OpenTable, table: FeatureTable, column: str
) -> tuple[str, bool]:
    """A column as SQL, and whether it is numeric: in files of text, one of which every value is a number."""
    kind, name = source.types[column], table.columns[column]
    if kind in _NUMBERS or kind.startswith("DECIMAL"):
        return f"{column}::double", True
    if kind == "VARCHAR" and source.kind in ("csv", "jsonl"):
        ((odd, nested),) = connection.execute(
            f"select count_if({column} is not null and try_cast({column} as double) is null), "
            f"count_if({column}[1] in ('{{', '[') and json_valid({column})) from source"
        ).fetchall()
        if nested and source.kind == "jsonl":
            raise LogError(f"The feature {name!r} of {table.name} has lists or objects: use numbers, text or booleans.")
        return (column, False) if odd else (f"try_cast({column} as double)", True)
    if kind in ("VARCHAR", "BOOLEAN", "UUID") or kind.startswith("ENUM"):
        return f"{column}::varchar", False
    raise LogError(
        f"The feature {name!r} of {table.name} is {kind.lower():.60}: use numbers, text or booleans, or leave it out."
    )


def _numeric(table: FeatureTable, name: str, column: NameColumn) -> Numeric:
    if infinite := int(np.isinf(column.values).sum()):
        raise LogError(
            f"The feature {name!r} of {table.name} has {several(infinite, 'infinite number')}: leave them empty."
        )
    return in_range(name, np.append(column.values, np.nan))


def _categorical(connection: duckdb.DuckDBPyConnection, name: str, column: str, texts: NameColumn) -> Categorical:
    rows = connection.execute(
        f"select {column} from wide where {column} <> '' group by {column} "
        f"order by count(*) desc, {column} limit {MOST_LEVELS}"
    ).fetchall()
    levels = tuple(level for (level,) in rows)
    own, codes = keys_unless_empty(texts), np.full(len(texts) + 1, MISSING)
    if levels:
        known = keys_of(NameColumn.of_names(levels))
        order = np.argsort(known)
        at = np.minimum(np.searchsorted(known[order], own), len(levels) - 1)
        codes[:-1] = np.where(known[order][at] == own, order[at], len(levels))
        codes[:-1][own == NO_GROUP] = MISSING
    return Categorical(name, codes, levels)
