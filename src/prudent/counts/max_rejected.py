"""How many rejected lists a log may have before reading it stops."""

from prudent.base.errors import LogError, UsageError
from prudent.logs.log import Log
from prudent.storage.manifest import Tally

MAX_REJECTED = 0.01
"""Share of rejected lists above which the log, or the way it is read, is wrong rather than some of its lists."""


def check_max_rejected(max_rejected: float) -> None:
    """Raise where it is no share."""
    if not isinstance(max_rejected, int | float) or not 0 <= max_rejected <= 1:
        raise UsageError(f"max_rejected is {max_rejected}; it is a share, between 0 and 1.")


def check_tally(tally: Tally, log: Log, max_rejected: float) -> None:
    """Raise where a log has no lists, or more than `max_rejected` of them are rejected."""
    everything = tally.lists + tally.rejected_lists
    if everything == 0:
        raise LogError(f"{log.name} has no lists: there is not a single row in it.")
    if tally.share_rejected > max_rejected:
        raise LogError(
            f"{tally.rejected_lists:,} of {everything:,} lists in {log.name} are rejected "
            f"({tally.share_rejected:.1%}, more than max_rejected={max_rejected:g} (--max-rejected) allows): "
            f"{'; '.join(tally.reasons)}."
        )
