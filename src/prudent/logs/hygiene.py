"""What to leave out of a log, where it names users: duplicates, bots, and lists beyond so many clicks of a user.

A duplicate is a list like another one of the same user and time, with the same context, items and clicks; in the layout
``rows``, where a list has an id, it is also a row like another one in everything that the log names. Of these, one is
kept. Then bots are found, as `prudent.logs.bots` says, and all of their lists left out. Then, with ``max_user_clicks``,
a user's lists are put in an order that depends on their content alone, by a hash, and left out from where the clicks on
them exceed the limit: with and without clicks, so that click rates stay as they are. Lists without a user are kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prudent.base.errors import UsageError, did_you_mean
from prudent.base.spec import whole_number
from prudent.base.text import several

if TYPE_CHECKING:
    from prudent.logs.log import Log

VISIT = {"user1": "user", "shown_at": "shown_at"}
"""Columns about the visit of a list, by what they mean (``user`` is a word of SQL), and the settings that name them."""
LEAVING_OUT = ("leave_out", "max_user_clicks")
"""Settings of a log that leave out lists of it."""
KINDS = ("duplicates", "bots")
"""What `leave_out` may have."""

DUPLICATE, BOT, BEYOND = 1, 2, 3
"""Why a list is left out, as a number; 0 is none."""


@dataclass(frozen=True)
class Findings:
    """What is left out, in words, how many users there are, and how many of them are bots."""

    left_out: Mapping[str, int]
    users: int
    bots: int
    times: bool  # whether the log names times that can be read

    def __str__(self) -> str:
        found = [f"{n:,} {what}" for what, n in self.left_out.items()]
        bots = f" ({several(self.bots, 'user')} of {self.users:,})" if self.bots else ""
        unknown = (
            "" if self.times else " Without times (--shown-at), lists per minute and repeats of a list are unknown."
        )
        if not found:
            return f"No duplicate and no bot among {several(self.users, 'user')}.{unknown}"
        kinds = [kind for kind in KINDS if any(kind.removesuffix("s") in what for what in self.left_out)]
        options = " ".join(f"--leave-out {kind}" for kind in kinds)
        leave = "leaves" if len(kinds) == 1 else "leave"
        return f"Of {several(self.users, 'user')}: {' and '.join(found)}{bots}; {options} {leave} them out.{unknown}"


def everything_of(log: "Log") -> "Log":
    """The log with all that can be found in it to leave out."""
    duplicates = log.layout == "rows" or None not in (log.user, log.shown_at)
    kinds = {"duplicates": duplicates, "bots": log.user is not None}
    return replace(log, leave_out=tuple(kind for kind, known in kinds.items() if known))


def kinds_left_out(log: "Log") -> tuple[str, ...]:
    """What to leave out, each kind once."""
    return tuple(dict.fromkeys([log.leave_out] if isinstance(log.leave_out, str) else log.leave_out))


def leaves_out(log: "Log") -> bool:
    """Whether anything of a log is left out on request."""
    return bool(kinds_left_out(log)) or log.max_user_clicks is not None


def left_out(log: "Log", lists: Mapping[int, int], rows: int = 0) -> dict[str, int]:
    """How much is left out, in words: of lists by the number of the reason, and of duplicate rows."""
    words = {
        DUPLICATE: "duplicate lists",
        BOT: "lists of bots",
        BEYOND: f"lists beyond {log.max_user_clicks} clicks of a user",
    }
    found = {"duplicate rows": rows} | {word: lists.get(code, 0) for code, word in words.items()}
    return {word: n for word, n in found.items() if n}


def check_hygiene(log: "Log") -> None:
    """Raise where a log does not name what is needed to leave out what it asks to."""
    for kind in kinds_left_out(log):
        if kind not in KINDS:
            raise UsageError(f"Cannot leave out {kind!r}.{did_you_mean(str(kind), KINDS)} Known: {', '.join(KINDS)}.")
    if log.layout == "impressions" and (leaves_out(log) or log.user or log.shown_at):
        raise UsageError(
            "Users are of whole lists, which the layout 'impressions' has not: leave out user and leave_out."
        )
    if log.max_user_clicks is not None:
        whole_number("max_user_clicks", log.max_user_clicks, 1)
    if log.user is None and ("bots" in kinds_left_out(log) or log.max_user_clicks is not None):
        raise UsageError("Name the column of the user or the session: user=... (--user).")
    if "duplicates" in kinds_left_out(log) and log.layout == "lists" and None in (log.user, log.shown_at):
        raise UsageError(
            "Equal lists are duplicates only where the user and the time are the same too: name user=... (--user) and "
            "shown_at=... (--shown-at)."
        )
