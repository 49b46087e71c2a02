"""What counts a log. The text of the counting query is shared; an engine only opens the log and explodes its lists."""

from pathlib import Path
from typing import Protocol

from prudent.logs.log import Log
from prudent.storage.manifest import Tally


class Engine(Protocol):
    """Counts logs."""

    def histogram(self, log: Log, query: str, target: Path) -> Tally:
        """Run `query` over the view ``impressions`` of this log and write its rows to a Parquet file.

        The view has the columns context, item, position, prev, click and more, one row per item shown in a list
        that has none of the faults in `prudent.logs.log.REASONS`; the tally says how many lists had which.
        """
        ...
