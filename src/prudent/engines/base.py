"""What an engine does: count a log. DuckDB does it on one machine, Spark on many, with the same rules and results."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from prudent.logs.log import Log
from prudent.storage.manifest import Tally


class Engine(Protocol):
    """Counts logs. The folders of both engines have the same files.

    ``engine`` is the class, ``open`` reads a log as it is, ``reject`` finds the lists to reject by the rules of
    `prudent.engines.sql.rules`, ``count`` hands lists to the kernel and writes what it counts, ``errors`` turns the
    engine's errors into ours. Spark also has ``tasks``, which run the kernel where the lists are, and ``contexts``,
    which maps a function over the counts of whole contexts; on one machine `prudent.counts.index` has them as arrays.
    """

    def count(self, log: Log, to: Path, *, check: Callable[[Tally], object]) -> Tally:
        """Count the lists of a log that have none of the faults in `prudent.logs.log.REASONS`, and write a counts file.

        The file gets its name when it is complete and `check`, which sees the tally, raises nothing.
        """
        ...
