"""Which contexts a sample of whole lists has: a bottom-k sketch, so that samples of parts add up to that of the whole.

Contexts are ordered by the md5 of their names, an order that has nothing to do with their content and is the same in
every engine. A sample has all lists of the first contexts that together have at most so many lists, and of at least
`FEWEST_CONTEXTS` contexts. Its threshold is the hash of the first context that is left out: the sample is complete
below it.

Every context below the threshold of the whole is also below that of each part, because it has no more lists there. So
the sample of several parts is what lies below the smallest of their thresholds, cut once more by the same rule.
"""

import duckdb
import numpy as np

from prudent.base.arrays import BoolArray, IntArray
from prudent.storage.arrow import numbers
from prudent.storage.arrow_tables import registered
from prudent.storage.run import NameColumn

SAMPLE_LISTS = 50_000
"""Lists that counts keep whole: enough to choose a click model, and few beside the cells of a large log."""
FEWEST_CONTEXTS = 5
"""Contexts that a sample has at least, however many lists they have: one context cannot stand for all."""
NOTHING, EVERYTHING = "", "g"
"""Thresholds of samples without any context and with all of them: hashes are hexadecimal digits."""


def below(threshold: str, text_type: str = "varchar") -> str:
    """In SQL, whether a context is below a threshold."""
    return f"md5(cast(context as {text_type})) < '{threshold}'"


def sample_threshold(connection: duckdb.DuckDBPyConnection, contexts: str, most: int = SAMPLE_LISTS) -> str:
    """The threshold of a sample of at most so many lists; `contexts` is a query for context and lists."""
    # A context has at least one list, so that no more than these can decide.
    limit = max(most, FEWEST_CONTEXTS) + 1
    first = f"select md5(cast(context as varchar)) as hash, lists from ({contexts}) order by hash limit {limit}"
    ((threshold,),) = connection.execute(
        "select min(hash) from (select hash, sum(lists) over (order by hash) as upto, "
        f"row_number() over (order by hash) as place from ({first})) where upto > {most} and place > {FEWEST_CONTEXTS}"
    ).fetchall()
    return threshold or EVERYTHING


def sample_of(
    connection: duckdb.DuckDBPyConnection, contexts: NameColumn, lists: IntArray, most: int | None = None
) -> tuple[str, BoolArray]:
    """The threshold of the sample of these contexts, which have so many lists each, and which contexts it has."""
    most = SAMPLE_LISTS if most is None else most
    if len(contexts) and lists.sum() <= most:
        return EVERYTHING, np.ones(len(contexts), bool)
    with registered(connection, "sizes", [{"context": contexts.column, "lists": numbers(lists)}]):
        threshold = sample_threshold(connection, "from sizes", most)
    return threshold, in_sample(connection, contexts, threshold)


def in_sample(connection: duckdb.DuckDBPyConnection, contexts: NameColumn, threshold: str) -> BoolArray:
    """Which contexts are below a threshold."""
    if threshold == EVERYTHING:
        return np.ones(len(contexts), bool)
    chosen = np.zeros(len(contexts), bool)
    with registered(connection, "contexts", [{"context": contexts.column, "row": numbers(np.arange(len(contexts)))}]):
        found = connection.execute(f"select row from contexts where {below(threshold)}").fetchnumpy()["row"]
    chosen[found] = True
    return chosen
