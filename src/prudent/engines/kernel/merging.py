"""The sum of counts that are sorted: pieces of several files or spilled runs, merged as they are read."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import BoolArray
from prudent.base.errors import CountsError
from prudent.engines import kernel
from prudent.storage.counts_file import MOST_REWARDS, REWARDS_TOO_LARGE, Piece, pieces_in, write_counts_file
from prudent.storage.files import writing_temporary
from prudent.storage.run import NameColumn, Run, WholeLists
from prudent.storage.sketch import in_sample

_MOST_FILES = 16  # that are merged at a time: each of them holds a piece in memory


def merge_files(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[Path],
    threshold: str,
    folder: Path,
    *,
    weights: Sequence[int] | None = None,
    unit: int = 1,
    read: Callable[[duckdb.DuckDBPyConnection, Path], Iterator[Piece]] = pieces_in,
) -> Iterator[Piece]:
    """The sum of counts files, whose sample ends at a threshold; sums of a few files each are put into a folder.

    `unit` is that of the weights: the weight of a file that counts in full.
    """
    aside = connection.cursor()

    def merged(files: Sequence[Path], weights: Sequence[int] | None, unit: int) -> Iterator[Piece]:
        sources = [read(connection.cursor(), file) for file in files]
        return merge_pieces(sources, lambda contexts: in_sample(aside, contexts, threshold), weights, unit)

    while len(files) > _MOST_FILES:
        few = [slice(first, first + _MOST_FILES) for first in range(0, len(files), _MOST_FILES)]
        names = [folder / f"sum{len(files)}-{part.start}.parquet" for part in few]
        for part, name in zip(few, names, strict=True):
            pieces = merged(files[part], None if weights is None else weights[part], unit)
            with writing_temporary(folder):
                write_counts_file(connection.cursor(), name, pieces, source=None, threshold=threshold)
        files, weights, unit, read = names, None, 1, pieces_in
    yield from merged(files, weights, unit)


def merge_pieces(
    sources: Sequence[Iterator[Piece]],
    sampled: Callable[[NameColumn], BoolArray],
    weights: Sequence[int] | None = None,
    unit: int = 1,
) -> Iterator[Piece]:
    """The sum of the sources; every impression counts as often as the weight of its source says, every list once.

    All are sorted by context: what lies up to the smallest of the last contexts that were read is complete. `sampled`
    tells which contexts are in the sample of all.
    """
    weights = weights or (1,) * len(sources)
    sources = [(_cut(piece, sampled) for piece in source) for source in sources]
    ahead = [next(source) for source in sources]
    if len(sources) == 1 and weights[0] == unit == 1:
        yield ahead[0]
        yield from sources[0]
        return
    empty = ahead
    done = False
    while True:
        for at, source in enumerate(sources):
            while not len(ahead[at].run.pairs) and (piece := next(source, None)) is not None:
                ahead[at] = piece
        here = [at for at, piece in enumerate(ahead) if len(piece.run.pairs)]
        if not here:
            break
        last: Any = min(ahead[at].run.contexts.raw(-1) for at in here)
        ends = [bisect_right(range(len(ahead[at].run.pairs)), last, key=ahead[at].run.contexts.raw) for at in here]
        parts = [ahead[at].slice(0, end) for at, end in zip(here, ends, strict=True)]
        for at, end in zip(here, ends, strict=True):
            ahead[at] = ahead[at].slice(end, len(ahead[at].run.pairs))
        done = True
        yield merge(parts, [weights[at] for at in here], unit)
    if not done:
        yield empty[0]


def _cut(piece: Piece, sampled: Callable[[NameColumn], BoolArray]) -> Piece:
    if not len(piece.lists.n):
        return piece
    return Piece(piece.run, piece.lists.where(sampled(piece.run.contexts)[piece.lists.context]))


def merge(pieces: Sequence[Piece], weights: Sequence[int], unit: int = 1) -> Piece:
    """The sum of pieces that fit into memory together; lists count once."""
    if len(pieces) == 1 and weights[0] == unit == 1:
        return pieces[0]
    if sum(int(piece.run.n.max(initial=0)) * weight for piece, weight in zip(pieces, weights, strict=True)) >> 63:
        raise CountsError(
            "A cell has so many impressions that they cannot be weighed: read the counts without weights."
        )
    run, places = kernel.merge([piece.run for piece in pieces], weights)
    run = replace(run, rewards=_merged_rewards(pieces, run, places, weights, unit))
    numbered = [renumbered(piece, run, place) for piece, place in zip(pieces, places, strict=True)]
    return Piece(run, kernel.distinct(WholeLists.concatenated(numbered)))


def _merged_rewards(
    pieces: Sequence[Piece], run: Run, places: Sequence[NDArray[Any]], weights: Sequence[int], unit: int
) -> NDArray[np.int64] | None:
    """The sums of rewards of the merged pairs; a weight below the unit is a share of them, rounded for each piece.

    So they stay whole numbers, whose sum is the same in any order. They keep their own unit: that of weights would not
    leave enough room for squares.
    """
    if all(piece.run.rewards is None for piece in pieces):
        return None
    total = np.zeros((len(run.cells), 2), np.int64)
    about = np.zeros(total.shape)
    for piece, place, weight in zip(pieces, places, weights, strict=True):
        if piece.run.rewards is not None:
            whole, rest = np.divmod(piece.run.rewards, unit)
            share = whole * weight + (rest * weight + unit // 2) // unit
            total[place] += share  # a piece has each pair once
            about[place] += share
    if about.max(initial=0) > MOST_REWARDS:
        raise CountsError(REWARDS_TOO_LARGE)
    return total


def renumbered(piece: Piece, run: Run, place: NDArray[np.uint32]) -> WholeLists:
    """The lists of a piece by the numbers of the merged run, in which its pairs have these places."""
    lists, first = piece.lists, piece.run.first_pair.astype(np.uint32)
    context_of_pair = np.repeat(np.arange(len(run.pairs), dtype=np.uint32), run.pairs)
    context = context_of_pair[place[first[:-1]]][lists.context]
    items = place[np.repeat(first[lists.context], lists.size) + lists.items]
    items -= np.repeat(run.first_pair.astype(np.uint32)[context], lists.size)
    return replace(lists, context=context, items=items)
