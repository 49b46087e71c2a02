"""The tables of a policy in DuckDB, filled part by part, and the sums over contexts that its manifest has."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from prudent.storage.arrow import Column, listed, numbers
from prudent.storage.arrow_tables import registered
from prudent.storage.run import NameColumn

EVIDENCE = "lower, mean, nullif(upper, 'nan') as upper, nullif(stay, 'nan') as stay, positive, negative, impressions"
"""Columns of a policy from those of `prudent.policies.rank.columns`."""
_VALUES = ("value", "lower", "incumbent_value", "incumbent_lower")
CHANGES = ("differ", "unclicked", "hedged")
"""What is counted over contexts: lists that differ from the incumbent's, those of them without a click, and those that
are not the first choice of their click model."""
CONTEXTS = (
    f"select context, round(lists)::bigint as lists, {', '.join(_VALUES)}, differ, "
    "if(lists > 0, 'log', 'prior') as evidence from per_context where kept"
)
"""A query for `Policy.contexts`."""


LISTS = f"select context, rank, item, {EVIDENCE} from part"
SCORES = f"select context, item, {EVIDENCE} from part"
"""For `append`: rows of the tables `lists` and `scores`."""


Rows = Mapping[str, NDArray[Any] | NameColumn]
"""Columns by name."""
_GROUP = 122_880  # rows, of a table of DuckDB and of a Parquet file


def evened(parts: Iterable[Rows]) -> Iterator[Rows]:
    """The same rows, but each part has a multiple of `_GROUP`, except for the last: at least one part.

    Then neither a table nor a file that is made of it depends on how many rows came at a time.
    """
    held: list[Rows] = []
    rows = 0
    for part in parts:
        held.append(part)
        rows += len(next(iter(part.values())))
        if whole := rows - rows % _GROUP:
            joined = _joined(held)
            yield _cut(joined, 0, whole)
            held, rows = [_cut(joined, whole, rows)], rows - whole
    yield _joined(held)


def _joined(parts: list[Rows]) -> Rows:
    columns: dict[str, Any] = {name: [part[name] for part in parts] for name in parts[0]}
    return {
        name: NameColumn.concatenated(some) if isinstance(some[0], NameColumn) else np.concatenate(some)
        for name, some in columns.items()
    }


def _cut(part: Rows, first: int, last: int) -> Rows:
    return {
        name: column.slice(first, last) if isinstance(column, NameColumn) else column[first:last]
        for name, column in part.items()
    }


def append(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: Rows,
    query: str = "from part",
) -> None:
    """Add rows to a table, which the first call makes: these columns, or what a query makes of them as `part`."""
    batch = {name: _arrow(column) for name, column in columns.items()}
    made = connection.execute("select count(*) from duckdb_tables() where table_name = ?", [table]).fetchall()[0][0]
    with registered(connection, "part", [batch]):
        connection.execute(f"insert into {table} {query}" if made else f"create temp table {table} as {query}")


def _arrow(values: NDArray[Any] | NameColumn) -> Column:
    """Names, numbers, or lists of numbers, which are the rows of a table."""
    if isinstance(values, NameColumn):
        return values.column
    if values.ndim == 2:
        return listed(np.full(len(values), values.shape[1]), numbers(values.ravel()))
    return numbers(values)


def terms(prefix: str = "", values: Sequence[str] = (), counted: Sequence[str] = ()) -> dict[str, str]:
    """What to sum over the kept contexts: integers, whose sum is the same in any order and in any engine.

    `values` and `counted` are columns of business rules besides those of every policy.
    """
    lists = _whole(f"{prefix}lists", 20)
    weighted = {name: f"{lists} * {_whole(f'{prefix}{name}', 40)}" for name in (*_VALUES, *values)}
    changed = {name: f"cast({prefix}{name} as bigint)" for name in (*CHANGES, *counted)}
    return {"contexts": "1", "lists": lists, **changed, **weighted}


def _whole(column: str, bits: int) -> str:
    return f"cast(cast(round({column} * {1 << bits}) as bigint) as decimal(19, 0))"


def means(sums: Mapping[str, Any], names: Sequence[str] = _VALUES) -> dict[str, float]:
    """Mean values per logged list, from the sums of `terms`."""
    return {name: int(sums[name]) / max(1, int(sums["lists"])) / (1 << 40) for name in names}
