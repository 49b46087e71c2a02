"""The sums of rewards of all pairs in DuckDB, beside the kernel, which counts clicks: both see the same lists.

Pairs are sorted by the names of contexts and items, as runs are, so that the n-th pair of the one is that of the other.
A task of Spark adds up those of its lists, and the sums of several tasks are added up like those of lists.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np

from prudent.base.errors import LogError
from prudent.storage.arrow import read, stream_of
from prudent.storage.counts_file import MOST_REWARDS, REWARD_COLUMNS, REWARDS_TOO_LARGE, Piece
from prudent.storage.quoting import file_text, text
from prudent.storage.run import NameColumn

SUMS = "sum(reward) as reward, sum(reward::hugeint * reward) as reward_squares"
"""Of rewards in thousandths."""


def write_rewards(connection: duckdb.DuckDBPyConnection, to: Path) -> None:
    """Add up the rewards of the accepted lists in the view `checked`, and write a row for each pair."""
    connection.execute(f"create temp table rewarded as {sums_of('checked')}")
    check_sums(connection, "rewarded")
    rows = "select context, item, reward::bigint as reward, reward_squares::bigint as reward_squares from rewarded"
    connection.execute(f"copy ({rows}) to {text(to)} (format parquet)")
    connection.execute("drop table rewarded")


def sums_of(checked: str) -> str:
    """A row for each pair of the accepted lists in a relation."""
    shown = f"select context, unnest(items) as item, unnest(rewards) as reward from {checked} where reason = 0"
    return f"select context, item, {SUMS} from ({shown}) group by context, item"


def merge_rewards(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], to: Path) -> None:
    """Write the sums of several files as one."""
    parts = f"from read_parquet([{', '.join(map(file_text, files))}])"
    connection.execute(f"create temp table rewarded as {parts}")
    write_sums(connection, to)
    check_sums(connection, f"read_parquet({file_text(to)})")
    connection.execute("drop table rewarded")


def write_sums(connection: duckdb.DuckDBPyConnection, to: Path) -> None:
    """Add up the sums in the table `rewarded`, and write a row for each pair; what does not fit is `MOST_REWARDS`."""
    fitting = ", ".join(f"least(sum({name}), {MOST_REWARDS})::bigint as {name}" for name in REWARD_COLUMNS)
    rows = f"select context, item, {fitting} from rewarded group by context, item"
    connection.execute(f"copy ({rows}) to {text(to)} (format parquet)")


def check_sums(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Raise where a sum does not leave room for that of many files."""
    ((most,),) = connection.execute(f"select max(greatest(reward, reward_squares)) from {table}").fetchall()
    if most is not None and most >= MOST_REWARDS:
        raise LogError(REWARDS_TOO_LARGE)


def with_rewards(connection: duckdb.DuckDBPyConnection, pieces: Iterable[Piece], file: Path) -> Iterator[Piece]:
    """The pieces, in the order of contexts, with the sums in a file; it has the same pairs."""
    ahead = _Sums(connection, file)
    for piece in pieces:
        rewards = ahead.take(piece.run.items)
        yield Piece(replace(piece.run, rewards=rewards), piece.lists)
    ahead.close()


class _Sums:
    """The sums of consecutive pairs."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, file: Path) -> None:
        rows = connection.sql(
            f"select item, reward, reward_squares from read_parquet({file_text(file)}) order by context, item"
        )
        self._capsule = rows.__arrow_c_stream__()
        self._batches = read(stream_of(self._capsule))
        self._items: list[NameColumn] = []
        self._sums = np.zeros((0, 2), np.int64)

    def take(self, items: NameColumn) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """Those of the next pairs, which have these items."""
        while len(self._sums) < len(items) and (batch := next(self._batches, None)) is not None:
            self._items.append(NameColumn.of(batch[0]))
            more = np.stack([column.values.astype(np.int64) for column in batch[1:]], axis=1)
            self._sums = np.concatenate([self._sums, more])
        if not len(items):
            return self._sums[:0]
        names = NameColumn.concatenated(self._items)
        taken, rest = names.slice(0, len(items)), names.slice(len(items), len(names))
        if len(names) < len(items) or not _same(taken, items):
            raise RuntimeError("the kernel and DuckDB counted other lists")
        sums, self._sums, self._items = self._sums[: len(items)], self._sums[len(items) :], [rest]
        return sums

    def close(self) -> None:
        """All of them have been taken."""
        if len(self._sums) or next(self._batches, None) is not None:
            raise RuntimeError("the kernel and DuckDB counted other lists")


def _same(one: NameColumn, other: NameColumn) -> bool:
    if one.ends is None or other.ends is None:
        return np.array_equal(one.values, other.values)
    return np.array_equal(one.ends, other.ends) and np.array_equal(
        one.values[: one.ends[-1]], other.values[: other.ends[-1]]
    )
