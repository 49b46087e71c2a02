"""What an engine does: count a log. DuckDB does it on one machine, Spark on many, with the same rules and results."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from prudent.logs.log import Log
from prudent.storage.manifest import Tally


class Engine(Protocol):
    """Counts logs. The folders of both engines have the same files.

    ``engine`` is the class, ``open`` reads a log as it is, ``reject`` finds and counts the lists to reject by the
    rules of `prudent.engines.sql.rules`, ``count`` runs the counting query and writes its rows, ``errors`` turns the
    engine's errors into ours. Spark also has ``contexts``, which maps a function over the counts of whole contexts; on
    one machine `prudent.counts.index` has them as arrays.
    """

    def count(self, log: Log, query: str, to: Path, *, check: Callable[[Tally], object]) -> Tally:
        """Run `query` over the relation ``impressions`` of a log and write its rows to a Parquet file.

        The relation has the columns context, item, position, prev, click and more, one row per item shown in a list
        that has none of the faults in `prudent.logs.log.REASONS`. The file gets its name when it is complete and
        `check`, which sees the tally, raises nothing.
        """
        ...
