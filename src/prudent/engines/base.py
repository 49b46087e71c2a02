"""What an engine does: count a log. DuckDB does it on one machine, Spark on many, with the same rules and results."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from prudent.logs.log import REASONS, Log
from prudent.storage.manifest import Tally, Unit


class Engine(Protocol):
    """Counts logs. The folders of both engines have the same files.

    ``engine`` is the class, ``open`` reads a log as it is, ``reject`` makes lists of it, with the faults that only rows
    have, ``count`` hands lists to the kernel, which rejects those with a fault, and writes what it counts, ``errors``
    turns the engine's errors into ours. Spark also has ``tasks``, which run the kernel where the lists are, and
    ``contexts``, which maps a function over the counts of whole contexts; on one machine `prudent.counts.index` has
    them as arrays.
    """

    def count(self, log: Log, to: Path, *, check: Callable[[Tally], object]) -> Tally:
        """Count the lists of a log that have none of the faults in `prudent.logs.log.REASONS`, and write a counts file.

        The file gets its name when it is complete and `check`, which sees the tally, raises nothing.
        """
        ...


def unit_of(log: Log) -> Unit:
    """What a tally of this log counts."""
    return "impression" if log.layout == "impressions" else "list"


def tally_of(log: Log, lists: Sequence[int]) -> Tally:
    """The tally of a log, of how many lists have which reason to be rejected, by its number; 0 is none."""
    accepted, *rejected = lists
    reasons = {reason: n for reason, n in zip(REASONS, rejected, strict=True) if n}
    return Tally(accepted, reasons, left_out=log.left_out, unit=unit_of(log), reward=log.reward or "")
