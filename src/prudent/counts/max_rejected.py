"""How many rejected lists a log may have before reading it stops."""

from prudent.base.errors import LogError, UsageError
from prudent.logs.hygiene import leaves_out
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
    if everything == 0 and leaves_out(log) and tally.left_out:
        out = " and ".join(f"{n:,} {what}" for what, n in tally.left_out.items())
        raise LogError(f"Not one {tally.unit} of {log.name} is left: {out} were left out, as you asked.")
    if everything == 0:
        raise LogError(f"{log.name} has no {tally.unit}s: there is not a single row in it.")
    if tally.share_rejected > max_rejected:
        raise LogError(
            f"{tally.rejected_lists:,} of {everything:,} {tally.unit}s in {log.name} are rejected "
            f"({tally.share_rejected:.1%}, more than max_rejected={max_rejected:g} (--max-rejected) allows): "
            f"{'; '.join(tally.reasons)}.{rejection_hint(tally, log)}"
        )


def rejection_hint(tally: Tally, log: Log) -> str:
    """What the log may have instead, by the most frequent reason, after a space; nothing is ever guessed."""
    reason = max(tally.rejected, key=lambda one: tally.rejected[one])
    flags = log.clicked_items is None and log.clicked_positions is None
    zero = "If positions count from 0: first_position=0 (--first-position 0)."
    hints = {
        "clicks missing": "If lists without a click have no value there, write an empty list.",
        "positions other than 1, 2, 3, ...": _gaps(log) if log.layout == "rows" else zero if log.first_position else "",
        "click outside its list": zero if log.clicked_positions and log.first_position else "",
    }
    if log.layout == "lists" and flags:
        other = (
            f"If {log.clicks!r} has what was clicked rather than a 0 or 1 for each item: clicked_items= "
            "(--clicked-items) or clicked_positions= (--clicked-positions)."
        )
        hints |= dict.fromkeys(("items and clicks differ in length", "click other than 0 or 1"), other)
    return f" {hints[reason]}" if hints.get(reason) else ""


def _gaps(log: Log) -> str:
    zero = "If positions count from 0: first_position=0 (--first-position 0). " if log.first_position else ""
    return f"{zero}If only some items of a list were logged: layout='impressions' (--layout impressions)."
