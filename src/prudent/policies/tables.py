"""The tables of a policy in DuckDB, filled part by part, and the sums over contexts that its manifest has."""

from collections.abc import Mapping
from typing import Any

import duckdb
from numpy.typing import NDArray

_EVIDENCE = "lower, mean, nullif(upper, 'nan') as upper, nullif(stay, 'nan') as stay, positive, negative, impressions"
_VALUES = ("value", "lower", "incumbent_value", "incumbent_lower")
CONTEXTS = (
    f"select contexts.context, round(per_context.lists)::bigint as lists, {', '.join(_VALUES)}, differ "
    "from contexts join per_context on contexts.rowid = number where kept order by number"
)
"""A query for `Policy.contexts`."""


def append(
    connection: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, NDArray[Any]], query: str = "from part"
) -> None:
    """Add rows to a table, which the first call makes: these columns, or what a query makes of them as `part`."""
    connection.register("part", dict(columns))
    connection.execute(f"create temp table if not exists {table} as select * from ({query}) limit 0")
    connection.execute(f"insert into {table} {query}")
    connection.unregister("part")


def named_lists(first: int, pairs: int) -> str:
    """For `append`: rows of the table `lists`, with names for the numbers of `pairs` pairs from `first` on."""
    return f"select context, rank, item, {_EVIDENCE} from {_named(first, pairs)} order by number, rank"


def named_scores(first: int, pairs: int) -> str:
    """The same for the table `scores`."""
    return f"select context, item, {_EVIDENCE} from {_named(first, pairs)} order by row"


def _named(first: int, pairs: int) -> str:
    # Part by part: one join of all pairs at the end would need more memory than the rest.
    names = f"select rowid as row, context, item from pairs where rowid >= {first} and rowid < {first + pairs}"
    return f"part join ({names}) using (row)"


def terms(prefix: str = "") -> dict[str, str]:
    """What to sum over the kept contexts: integers, whose sum is the same in any order and in any engine."""
    lists = _whole(f"{prefix}lists", 20)
    values = {name: f"{lists} * {_whole(f'{prefix}{name}', 40)}" for name in _VALUES}
    changed = {name: f"cast({prefix}{name} as bigint)" for name in ("differ", "unclicked")}
    return {"lists": lists, **changed, **values}


def _whole(column: str, bits: int) -> str:
    return f"cast(cast(round({column} * {1 << bits}) as bigint) as decimal(19, 0))"


def means(sums: Mapping[str, Any]) -> dict[str, float]:
    """Mean values per logged list, from the sums of `terms`."""
    return {name: int(sums[name]) / max(1, int(sums["lists"])) / (1 << 40) for name in _VALUES}
