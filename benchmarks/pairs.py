"""Ranking a hundred million (context, item) pairs of counts within 3 GB.

No log is drawn for this: the counts are made directly, as logs would leave them. Every context has 50 items in 5 groups
of ten. A group is shown in one order without a click, and in another order, in which every item stands three places
lower, with one click; each as often as a hash says. So every pair has two cells, the cells of all positions of a list
agree, and items stand at two positions each, which is what identifies a position-based model.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.logs import megabytes
from benchmarks.measuring import Figure, folder, measure, report, say

if TYPE_CHECKING:
    from prudent.base.arrays import IntArray
    from prudent.storage.counts_file import Piece
    from prudent.storage.run import NameColumn

PAIRS = int(os.environ.get("PAIRS", 100_000_000))
MEMORY, MOST_MEMORY, MOST_CPU = "2GB", 3.0, 120.0  # what is asked for; GB and CPU seconds that may be seen
ITEMS, LENGTH, LOWER = 50, 10, 3  # of a context, of a list, and how much lower an item stands in the second order
AT_ONCE = 20_000  # contexts that are made at a time


def names(prefix: bytes, numbers: "IntArray") -> "NameColumn":
    """A prefix and nine digits: as text they are in the order of the numbers."""
    from prudent.storage.run import NameColumn

    digits = numbers[:, None] // 10 ** np.arange(8, -1, -1) % 10 + ord("0")
    start = np.broadcast_to(np.frombuffer(prefix, np.uint8), (len(numbers), len(prefix)))
    text = np.hstack([start, digits.astype(np.uint8)])
    return NameColumn(text.ravel(), np.arange(1, len(numbers) + 1) * text.shape[1])


def pieces(pairs: int) -> "Iterator[Piece]":
    """Two cells for each pair, in the order of their codes."""
    from prudent.storage.counts_file import Piece, empty_piece
    from prudent.storage.run import Run

    for first in range(0, pairs // ITEMS, AT_ONCE):
        contexts = np.arange(first, min(first + AT_ONCE, pairs // ITEMS))
        pair = (contexts[:, None] * ITEMS + np.arange(ITEMS)).ravel()
        random = np.random.default_rng(first)
        clicked, skips, clicks = (
            np.repeat(random.integers(1, most + 1, len(pair) // LENGTH), LENGTH) for most in (LENGTH, 40, 40)
        )
        position = pair % LENGTH + 1
        lower = (pair % LENGTH + LOWER) % LENGTH + 1
        skipped = position << 16
        after = lower << 16 | np.where(clicked < lower, clicked, 0) << 2 | (clicked == lower) << 1 | (clicked > lower)
        code, n = np.stack([skipped, after], axis=1), np.stack([skips, clicks], axis=1)
        order = np.argsort(code, axis=1)
        run = Run(
            names(b"query ", contexts),
            names(b"item-", pair),
            np.full(len(contexts), ITEMS, np.uint32),
            np.full(len(pair), 2, np.uint32),
            np.take_along_axis(code, order, axis=1).ravel().astype(np.uint32),
            np.take_along_axis(n, order, axis=1).ravel().astype(np.uint64),
        )
        yield Piece(run, empty_piece("VARCHAR", "VARCHAR").lists)


def make_counts(target: str, pairs: str) -> None:
    """A file of counts like any other."""
    import duckdb

    from prudent.storage.counts_file import write_counts_file
    from prudent.storage.manifest import Source, Tally

    lists = sum(piece.run.lists for piece in pieces(int(pairs)))
    with duckdb.connect(config={"memory_limit": MEMORY}) as connection:
        write_counts_file(connection, Path(target), pieces(int(pairs)), source=Source((), Tally(lists)))


def rank(counts: str, policy: str) -> None:
    prudent = Path(sys.executable).with_name("prudent")
    subprocess.run([prudent, "rank", counts, "-o", policy, "--memory", MEMORY], check=True, stdout=sys.stderr)


def main() -> None:
    with folder() as target:
        counts, policy = target / "counts.parquet", target / "policy.parquet"
        say(f"Making counts of {PAIRS:,} pairs ...")
        made, _ = measure(make_counts, counts, PAIRS)
        say(f"Ranking {PAIRS // ITEMS:,} contexts; the file has {megabytes(counts):,.0f} MB ...")
        ranked, _ = measure(rank, counts, policy)
        shape = {"contexts": PAIRS // ITEMS, "pairs": PAIRS, "rows": 2 * PAIRS}
        sizes = {"MB of counts": round(megabytes(counts)), "MB of lists": round(megabytes(policy))}
    report(
        "pairs" if PAIRS == 100_000_000 else "pairs-fewer",
        about={**shape, **sizes, "memory": MEMORY},
        took={"make_counts": made, "rank": ranked},
        figures={
            f"peak memory of ranking under {MEMORY}, GB": Figure(ranked.peak, at_most=MOST_MEMORY),
            "ranking, CPU seconds": Figure(ranked.cpu, at_most=MOST_CPU if PAIRS == 100_000_000 else None),
            "CPU microseconds per pair": Figure(1e6 * ranked.cpu / PAIRS),
        },
    )
