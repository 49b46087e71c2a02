"""DuckDB: counts logs on one machine, out of core."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from prudent.engines.duckdb.count import (
    hold_counts,
    hold_with_lists,
    read_whole_lists,
    write_counts,
    write_lists,
)
from prudent.logs.log import Log
from prudent.storage.counts_file import Held, Piece
from prudent.storage.database import Database, memory_limit
from prudent.storage.manifest import Tally

_KEPT = 400_000_000  # bytes of counts that stay in memory, at most
_SHARE = 0.3  # of the memory, for the same


@dataclass(frozen=True)
class DuckDB(Database):
    """The engine on one machine. ``memory`` caps it, e.g. ``"1GB"``; what does not fit spills beside the output.

    >>> import prudent
    >>> prudent.DuckDB(memory="1GB", threads=2)
    DuckDB(memory='1GB', threads=2)
    """

    def count(self, log: Log, to: Path, *, check: Callable[[Tally], object]) -> Tally:
        """See `Engine.count`."""
        return write_counts(self, log, to, check)

    def hold(self, log: Log, to: Path, *, check: Callable[[Tally], object]) -> tuple[Tally, Held | None]:
        """The same, but counts that fit into memory are returned and not written; `to` is in a temporary folder."""
        return hold_counts(self, log, to, check, self.room())

    def hold_with_lists(
        self, log: Log, to: Path, *, check: Callable[[Tally], object], most: int | None = None
    ) -> tuple[Tally, Held | None, Piece, str]:
        """`hold` and `whole_lists` in one pass over the log."""
        return hold_with_lists(self, log, to, check, most=self.room(), most_lists=most)

    def whole_lists(
        self, log: Log, *, check: Callable[[Tally], object], most: int | None = None
    ) -> tuple[Tally, Piece, str]:
        """The tally of a log, and its whole lists with the names of contexts and items, but without cells.

        Of more than `most` lists they are a sample of contexts with all of their lists; the threshold of the sample
        comes third (`prudent.storage.sketch`).
        """
        return read_whole_lists(self, log, check, most)

    def room(self) -> int:
        """Bytes of counts that may stay in memory; more are read anew for every pass."""
        with self.connect() as connection:
            return min(_KEPT, int(_SHARE * memory_limit(connection)))

    def lists(self, log: Log, query: str, to: Path, *, length: int | None = None, where: str = "true") -> Tally:
        """Run `query` over the view ``shown`` of this log and write its rows to a Parquet file.

        The view has the columns context, items, clicks and, where the log names them, propensity and segments: one row
        per accepted list, cut after `length` positions. The column n of the query is how often a list occurs. `where`
        is a condition on the context.
        """
        return write_lists(self, log, query, to, length=length, where=where)
