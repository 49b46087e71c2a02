"""What is left out of a log as SQL text: duplicates, totals of users, lists of bots and beyond a user's clicks.

An engine makes the relation of lists with ``user1`` and ``shown_at`` as text, null where the log names none, and adds
the columns of `measures`, then `mark`, then `beyond`. Both run the same text but for the names of functions of lists.
"""

from collections.abc import Sequence
from typing import NamedTuple

from prudent.logs.bots import FASTEST, LONG
from prudent.logs.hygiene import BEYOND, BOT, DUPLICATE


class Dialect(NamedTuple):
    """What the engines write differently."""

    length: str  # of the items
    clicks: str  # number of clicks on the list
    content: str  # items and clicks as texts
    rewards: str  # what clicks earned, as text


def measures(dialect: Dialect, *, duplicates: bool, rewards: bool = False) -> dict[str, str]:
    """Columns of a list: its length, clicks, a hash of its content, its minute, and which of equal lists it is."""
    # What earned something else is no duplicate.
    same = f"user1, shown_at, context, items, clicks{', rewards' if rewards else ''}"
    content = f"{dialect.content}{f', {dialect.rewards}' if rewards else ''}"
    known = "user1 is not null and shown_at is not null and items is not null"
    copy = f"case when {known} then row_number() over (partition by {same} order by shown_at) else 1 end"
    return {
        "length": f"coalesce({dialect.length}, 0)",
        "clicked": f"coalesce({dialect.clicks}, 0)",
        "content": f"md5(concat_ws(chr(31), cast(context as string), {content}))",
        "minute": "date_trunc('minute', try_cast(shown_at as timestamp))",
        "copy": copy if duplicates else "1",
    }


BY_MINUTE = {
    "shown": f"sum(case when length >= {LONG} then length else 0 end)",
    "clicked": f"sum(case when length >= {LONG} then clicked else 0 end)",
    "lists": "case when minute is null then 0 else count(*) end",
}
"""Aggregates of the lists of a user in a minute."""
BY_USER = {
    "shown": "cast(sum(shown) as bigint)",
    "clicked": "cast(sum(clicked) as bigint)",
    "fast": f"max(lists) > {FASTEST}",
}
"""Aggregates of the minutes of a user."""
COUNTED = "copy = 1 and user1 is not null"
"""Which lists are those of a user."""

_STEP = 1 << 32


def bot(clicking: Sequence[tuple[int, int]]) -> str:
    """The condition that a user is a bot, with the impressions and clicks of those who click too much."""
    if not clicking:
        return "fast"
    pairs = ", ".join(str(shown * _STEP + clicked) for shown, clicked in clicking)
    return f"(fast or shown * {_STEP} + clicked in ({pairs}))"


def mark(is_bot: str) -> str:
    """Why a list is left out, before clicks are capped."""
    return f"case when copy > 1 then {DUPLICATE} when {is_bot} then {BOT} else 0 end"


def beyond(clicks: int | None) -> str:
    """Why a list is left out, with the limit of a user's clicks; `why` is the former reason."""
    if clicks is None:
        return "why"
    # Lists without a user are each alone: as one group they would go to one task.
    order = (
        "partition by coalesce(user1, content), why order by content rows between unbounded preceding and current row"
    )
    return (
        f"case when why = 0 and user1 is not null and sum(clicked) over ({order}) > {clicks:d} then {BEYOND} "
        "else why end"
    )
