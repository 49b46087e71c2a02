"""What counts a log. The text of the counting query is shared; an engine only opens the log and explodes its lists."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from prudent.log import Log


@dataclass(frozen=True)
class Tally:
    """What went through an engine: lists that were counted, and lists that were not, by reason."""

    lists: int
    rejected: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: "Tally") -> "Tally":
        reasons = [*self.rejected, *(reason for reason in other.rejected if reason not in self.rejected)]
        both = {reason: self.rejected.get(reason, 0) + other.rejected.get(reason, 0) for reason in reasons}
        return Tally(self.lists + other.lists, both)

    @property
    def bad(self) -> int:
        """Lists that were rejected, whatever the reason."""
        return sum(self.rejected.values())

    @property
    def share_bad(self) -> float:
        """Rejected lists as a share of all."""
        return self.bad / max(1, self.bad + self.lists)


class Engine(Protocol):
    """Counts logs."""

    def histogram(self, log: Log, query: str, target: Path) -> Tally:
        """Run `query` over the view ``impressions`` of this log and write its rows to a Parquet file.

        The view has the columns context, item, position, prev, click and more, one row per item shown in a list
        that has none of the faults in `prudent.log.REASONS`; the tally says how many lists had which.
        """
        ...
