"""What counts a log. The text of the counting query is shared; an engine only opens the log and explodes its lists."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from prudent.logs.log import Log


@dataclass(frozen=True)
class Tally:
    """What went through an engine: lists that were counted, and lists that were not, by reason.

    ``left_out`` is what a reader of `prudent.logs.readers` did not turn into lists at all, such as clicks outside them.
    """

    lists: int
    rejected: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.lists + other.lists, _sum(self.rejected, other.rejected), _sum(self.left_out, other.left_out))

    @property
    def bad(self) -> int:
        """Lists that were rejected, whatever the reason."""
        return sum(self.rejected.values())

    @property
    def share_rejected(self) -> float:
        """Rejected lists as a share of all."""
        return self.bad / max(1, self.bad + self.lists)


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {why: one.get(why, 0) + other.get(why, 0) for why in [*one, *other]}


class Engine(Protocol):
    """Counts logs."""

    def histogram(self, log: Log, query: str, target: Path) -> Tally:
        """Run `query` over the view ``impressions`` of this log and write its rows to a Parquet file.

        The view has the columns context, item, position, prev, click and more, one row per item shown in a list
        that has none of the faults in `prudent.logs.log.REASONS`; the tally says how many lists had which.
        """
        ...
