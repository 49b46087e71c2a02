"""A digest of the lists of a log: hashes of a sample of them, by which another log with the same lists is recognised.

The sample has the contexts of `prudent.storage.sketch` and, of their distinct lists, those with the smallest hashes.
The hash is of context, items and clicks, so that neither order, format nor name of a file changes it. A log is compared
by counting its lists in the same contexts, below the same hash.
"""

import base64
import re
from dataclasses import dataclass
from functools import cached_property

import duckdb
import numpy as np

from prudent.base.arrays import IntArray
from prudent.storage.sketch import EVERYTHING, NOTHING, below, sample_threshold

MOST = 4_096
"""Distinct lists in a digest."""
_DIGITS = 10  # of the hash: two of 4,096 lists have the same once in 100,000 logs
_TEXT = re.compile(r"(g|[0-9a-f]{32}):(g|[0-9a-f]{10}):([A-Za-z0-9+/]*={0,2})")
_HASH = (
    "left(md5(concat_ws(chr(30), context::varchar, array_to_string(items::varchar[], chr(31)), "
    f"array_to_string(clicks::integer[]::varchar[], ''))), {_DIGITS})"
)
_SIZE = _DIGITS // 2 + 4  # bytes of an entry: the hash, and how often it occurs


@dataclass(frozen=True)
class Digest:
    """Which lists are in the sample, and how often each occurs, as text that fits a manifest."""

    text: str

    def __post_init__(self) -> None:
        matched = _TEXT.fullmatch(self.text)
        if matched is None or len(matched[3]) % 4 or len(base64.b64decode(matched[3])) % _SIZE:
            raise ValueError("the digest of its lists is damaged")

    @property
    def contexts(self) -> str:
        """The hash below which contexts are in the sample."""
        return self.text.split(":")[0]

    @property
    def below(self) -> str:
        """The hash below which lists are in the sample."""
        return self.text.split(":")[1]

    @cached_property
    def lists(self) -> dict[str, int]:
        """How often each list occurs, by its hash."""
        raw = base64.b64decode(self.text.split(":")[2])
        rows = (raw[first : first + _SIZE] for first in range(0, len(raw), _SIZE))
        return {row[:5].hex(): int.from_bytes(row[5:], "little") for row in rows}

    def counted(self, connection: duckdb.DuckDBPyConnection, lists: str) -> tuple[IntArray, IntArray]:
        """How often each list of the sample occurs in the digest, and among other lists; one occurs at least once."""
        other = dict(_hashes(connection, lists, self.contexts, f"hash < '{self.below}'"))
        every = sorted({*self.lists, *other})
        both = [[found.get(name, 0) for name in every] for found in (self.lists, other)]
        return np.array(both[0], np.int64), np.array(both[1], np.int64)


def digest_lists(connection: duckdb.DuckDBPyConnection, lists: str, threshold: str | None = None) -> Digest | None:
    """The digest of lists, where `lists` is a query for context, items, clicks and n; None where there are none.

    `threshold` is that of their contexts, where they are a sample already.
    """
    if threshold is None:
        threshold = sample_threshold(connection, f"select context, sum(n) as lists from ({lists}) group by context")
    if threshold == NOTHING:
        return None
    found = _hashes(connection, lists, threshold, f"true order by hash limit {MOST + 1}")
    last = found[MOST][0] if len(found) > MOST else EVERYTHING
    raw = b"".join(bytes.fromhex(name) + min(n, (1 << 32) - 1).to_bytes(4, "little") for name, n in found[:MOST])
    return Digest(f"{threshold}:{last}:{base64.b64encode(raw).decode()}")


def _hashes(connection: duckdb.DuckDBPyConnection, lists: str, threshold: str, condition: str) -> list[tuple[str, int]]:
    hashed = f"select {_HASH} as hash, n from ({lists}) where {below(threshold)}"
    grouped = f"select hash, sum(n)::bigint as n from ({hashed}) group by hash"
    return connection.execute(f"select hash, n from ({grouped}) where {condition}").fetchall()
