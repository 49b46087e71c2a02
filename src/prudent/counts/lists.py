"""ListBatch: logged lists as arrays, for what cells do not keep: whole lists and their propensities."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol

import duckdb
import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import LogError
from prudent.counts.cells import CellCodec, Cells
from prudent.counts.max_rejected import check_tally
from prudent.engines import kernel
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.log import Log
from prudent.storage.arrow import Column, listed, numbers
from prudent.storage.arrow_tables import registered
from prudent.storage.counts_file import Piece
from prudent.storage.digest import Digest, digest_lists
from prudent.storage.manifest import Tally
from prudent.storage.run import Run, WholeLists
from prudent.storage.sketch import EVERYTHING, NOTHING, in_sample, sample_of

_MOST_PLACES = 1 << 30  # of all lists, each as long as the longest: 9 GB of arrays


@dataclass(frozen=True, eq=False)
class ListBatch:
    """Lists as they were shown and clicked, one row each; equal lists may share one row with a larger ``n``.

    An item is the number of its pair (one item of one context), so it also says which context it belongs to.
    """

    context: IntArray  # one entry per pair, ascending: the number of its context
    items: IntArray  # this and the rest: one row per list; pairs from the top down, −1 below the end of a short list
    clicks: BoolArray
    n: IntArray  # how often that list was shown and clicked in that way
    propensity: FloatArray | None = None  # of the first k items, for each k; NaN where it is not known
    rewards: FloatArray | None = None  # of the clicks

    def sample(self) -> "ListBatch":
        """The whole lists that there are: all of these, where counts keep some."""
        return self

    def bootstrapped(self, random: np.random.Generator, size: float = 1.0) -> "ListBatch":
        """The lists of a bootstrapped log of this relative size: each count is drawn from a Poisson distribution."""
        n = random.poisson(size * self.n)
        kept = n > 0
        propensity = None if self.propensity is None else self.propensity[kept]
        return ListBatch(self.context, self.items[kept], self.clicks[kept], n[kept], propensity)

    @property
    def length(self) -> int:
        """K: positions of the longest list there may be."""
        return int(self.items.shape[1])

    @property
    def list_context(self) -> IntArray:
        """The context of each list."""
        return self.context[self.items[:, 0]]

    @property
    def impressions(self) -> IntArray:
        """How often each pair was shown."""
        inside = self.items >= 0
        weight = np.broadcast_to(self.n[:, None], self.items.shape)[inside]
        return np.bincount(self.items[inside], weight, minlength=len(self.context)).astype(np.int64)

    def made_of(self, kept: BoolArray) -> "ListBatch":
        """The lists made of these pairs alone; pairs and contexts are numbered anew."""
        rows = np.append(kept, True)[self.items].all(axis=1)
        number = np.append(np.cumsum(kept) - 1, -1)  # −1, below the end of a short list, stays −1
        _, context = np.unique(self.context[kept], return_inverse=True)
        propensity = None if self.propensity is None else self.propensity[rows]
        return ListBatch(context, number[self.items[rows]], self.clicks[rows], self.n[rows], propensity)

    @cached_property
    def cells(self) -> Cells:
        """The cells that an engine would count in these lists."""
        position = np.arange(1, self.length + 1)
        last_click = np.maximum.accumulate(np.where(self.clicks, position, 0), axis=1)
        prev = np.zeros_like(last_click)
        prev[:, 1:] = last_click[:, :-1]
        inside = self.items >= 0
        codec = CellCodec.up_to(self.length)
        more = last_click[:, -1:] > position
        cell = codec.encode(self.items.astype(np.int64), position, prev, self.clicks, more)[inside]
        weight = np.broadcast_to(self.n[:, None], inside.shape)[inside]
        span = len(self.context) * codec.span
        if span <= 16 * cell.size:  # few possible cells: a table of them is cheaper than sorting what occurs
            table = np.bincount(cell, weight, minlength=span)
            cell = np.flatnonzero(table)
            n = table[cell]
        else:
            cell, n = sorted_histogram(cell, weight)
        return codec.decode(cell, n.astype(np.float64, copy=False), self.context)

    @property
    def whole_lists(self) -> WholeLists:
        """The same without propensities, by the place of each item in its context; equal lists may be several."""
        inside = self.items >= 0
        first = np.searchsorted(self.context, self.list_context)
        return WholeLists(
            self.list_context.astype(np.uint32),
            inside.sum(axis=1).astype(np.uint32),
            (self.items - first[:, None])[inside].astype(np.uint32),
            self.clicks[inside],
            self.n.astype(np.uint64),
        )


def sorted_histogram(keys: IntArray, weight: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct keys in their order, and the sum of the weights of each."""
    if weight.sum() <= 2 * len(keys):  # most weigh 1: to sort each as often as it weighs takes a fifth of the time
        keys = np.sort(np.repeat(keys, weight))
        first = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1)) if len(keys) else np.zeros(0, np.int64)
        return keys[first], np.diff(first, append=len(keys))
    order = np.argsort(keys)
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    return keys[first], np.add.reduceat(weight[order], first)


class Counted(Protocol):
    """Something that has cells, and whole lists of some contexts: counts in files, or lists in memory."""

    @property
    def cells(self) -> Cells:
        """The histogram as arrays."""
        ...

    def sample(self) -> ListBatch:
        """The whole lists that are kept."""
        ...


# --- from the counting kernel -----------------------------------------------------------------------------------------


def batch_of(pieces: Iterable[Piece], dtype: type[np.signedinteger[Any]] = np.int64) -> ListBatch:
    """The whole lists of some pieces as arrays; pairs and contexts that have lists are numbered."""
    sizes, firsts, found = list[IntArray](), list[IntArray](), list[WholeLists]()
    numbered = 0
    for run, lists in pieces:
        sampled = np.unique(lists.context)
        size = run.pairs[sampled].astype(np.int64)
        first = numbered + np.cumsum(size) - size
        firsts.append(first[np.searchsorted(sampled, lists.context)])
        sizes.append(size)
        found.append(lists)
        numbered += int(size.sum())
    pairs_of = np.concatenate(sizes)
    length = np.concatenate([lists.size for lists in found]).astype(np.int64)
    shape = len(length), int(length.max(initial=0))
    check_places(length)
    inside = np.arange(shape[1]) < length[:, None]
    items, clicks = np.full(shape, -1, dtype), np.zeros(shape, bool)
    items[inside] = np.repeat(np.concatenate(firsts), length) + np.concatenate([lists.items for lists in found])
    clicks[inside] = np.concatenate([lists.clicks for lists in found])
    n = np.concatenate([lists.n for lists in found]).astype(np.int64)
    return ListBatch(np.repeat(np.arange(len(pairs_of)), pairs_of), items, clicks, n)


def check_places(length: IntArray) -> None:
    """Raise where arrays of lists of these lengths would take too much memory."""
    lists, longest = len(length), int(length.max(initial=0))
    if lists * longest > _MOST_PLACES:
        raise LogError(
            f"{lists:,} different lists and one of {longest:,} positions need {lists * longest * 9 >> 30:,} GB of "
            f"memory. Most have at most {int(np.quantile(length, 0.99)):,} positions: reject longer ones with "
            "max_positions= (--max-positions)."
        )


def named_lists(piece: Piece) -> dict[str, Column]:
    """The same as columns of names: context, items, clicks and n."""
    run, lists = piece
    pair = np.repeat(run.first_pair[lists.context], lists.size) + lists.items
    return {
        "context": run.contexts.take(lists.context).column,
        "items": listed(lists.size, run.items.take(pair).column),
        "clicks": listed(lists.size, numbers(lists.clicks)),
        "n": numbers(lists.n.view(np.int64)),
    }


# --- from a log -------------------------------------------------------------------------------------------------------


def read_whole_lists(
    log: Log, engine: DuckDB, *, max_rejected: float, most: int | None = None
) -> tuple[Tally, Piece, str]:
    """See `DuckDB.whole_lists`; an error where too many lists are rejected."""
    return engine.whole_lists(log, check=partial(check_tally, log=log, max_rejected=max_rejected), most=most)


def read_lists(
    logs: Sequence[Log], engine: DuckDB, *, max_rejected: float, length: int | None = None, most: int | None = None
) -> tuple[list[ListBatch], list[Tally]]:
    """The lists of logs, cut after `length` positions, as arrays whose numbers are those of all names together.

    Where the logs have more than `most` lists, a sample of contexts becomes arrays, with all of their lists
    (`prudent.storage.sketch`); the tallies are those of whole logs.
    """
    found = [read_whole_lists(log, engine, max_rejected=max_rejected, most=most) for log in logs]
    tallies, pieces = [tally for tally, _, _ in found], [piece for _, piece, _ in found]
    check_same_kinds(logs, pieces)
    least = min(threshold for _, _, threshold in found)
    if len(logs) > 1:
        pieces = sample_together(engine, pieces, most, least)
    return numbered_together([cut(piece, length) for piece in pieces]), tallies


def check_same_kinds(logs: Sequence[Log], pieces: Sequence[Piece]) -> None:
    """Raise where logs with these lists name contexts or items by different types."""
    for log, piece in zip(logs, pieces, strict=True):
        if name_kinds(piece.run) != name_kinds(pieces[0].run):
            mine, theirs = (" and ".join(name_kinds(one.run)) for one in (pieces[0], piece))
            raise LogError(
                f"{logs[0].name} names its contexts and items by {mine}, {log.name} by {theirs}: they have nothing in "
                "common."
            )


def numbered_together(pieces: Sequence[Piece]) -> list[ListBatch]:
    """The lists of several logs as arrays whose numbers are those of all names together."""
    if len(pieces) == 1:
        return [batch_of(pieces)]
    run, places = kernel.merge([piece.run for piece in pieces], [1] * len(pieces))
    context = np.repeat(np.arange(len(run.pairs)), run.pairs)
    batches = [batch_of([piece]) for piece in pieces]
    return [
        ListBatch(context, np.append(place.astype(np.int64), -1)[batch.items], batch.clicks, batch.n)
        for place, batch in zip(places, batches, strict=True)
    ]


def sample_together(
    engine: DuckDB, pieces: Sequence[Piece], most: int | None, threshold: str = EVERYTHING
) -> list[Piece]:
    """The sample of all pieces together, each of which is complete below the threshold."""
    if most is None or (threshold == EVERYTHING and sum(int(piece.lists.n.sum()) for piece in pieces) <= most):
        return list(pieces)
    with engine.connect() as connection:
        pieces = [piece.only(in_sample(connection, piece.run.contexts, threshold)) for piece in pieces]
        run, places = kernel.merge([piece.run for piece in pieces], [1] * len(pieces))
        context = np.repeat(np.arange(len(run.pairs)), run.pairs)
        lists = np.zeros(len(run.pairs), np.int64)
        for piece, place in zip(pieces, places, strict=True):
            np.add.at(lists, context[place[piece.run.first_pair[:-1]]][piece.lists.context], piece.lists.n)
        threshold, _ = sample_of(connection, run.contexts, lists, most)
        return [piece.only(in_sample(connection, piece.run.contexts, threshold)) for piece in pieces]


def name_kinds(run: Run) -> list[str]:
    """The types of contexts and items; names of different types are never equal."""
    kinds = {"VARCHAR": "text", "UBIGINT": "unsigned integers", "BIGINT": "integers"}
    return [kinds[names.kind] for names in (run.contexts, run.items)]


def cut(piece: Piece, length: int | None) -> Piece:
    """The lists without what is below so many positions, and the pairs that are still in them."""
    run, lists = piece
    if length is None or not np.any(lists.size > length):
        return piece
    pair = np.repeat(run.first_pair[lists.context], lists.size) + lists.items
    kept = np.arange(len(pair)) - np.repeat(np.cumsum(lists.size) - lists.size, lists.size) < length
    there = np.bincount(pair[kept], minlength=len(run.cells)) > 0
    before = np.append(0, np.cumsum(there))
    place = before[pair[kept]] - np.repeat(before[run.first_pair[lists.context]], np.minimum(lists.size, length))
    whole = WholeLists(
        lists.context,
        np.minimum(lists.size, length).astype(np.uint32),
        place.astype(np.uint32),
        lists.clicks[kept],
        lists.n,
    )
    items = run.items.take(np.flatnonzero(there))
    pairs = np.diff(before[run.first_pair]).astype(np.uint32)
    return Piece(replace(run, items=items, pairs=pairs, cells=run.cells[there]), kernel.distinct(whole))


def digest_of(piece: Piece, engine: DuckDB) -> Digest | None:
    """The digest of a log, of which these are the whole lists."""
    lists = np.bincount(piece.lists.context, piece.lists.n, minlength=len(piece.run.pairs)).astype(np.int64)
    with engine.connect() as connection:
        threshold, _ = sample_of(connection, piece.run.contexts, lists)
        if threshold == NOTHING:
            return None
        with lists_below(connection, piece, threshold):
            return digest_lists(connection, "from lists", threshold)


@contextmanager
def lists_below(connection: duckdb.DuckDBPyConnection, piece: Piece, threshold: str) -> Iterator[None]:
    """A block in which DuckDB knows as `lists`, to be read once, those of the contexts below a threshold."""
    chosen = in_sample(connection, piece.run.contexts, threshold)
    few = Piece(piece.run, piece.lists.where(chosen[piece.lists.context]))
    with registered(connection, "lists", [named_lists(few)]):
        yield


def name_tables(connection: duckdb.DuckDBPyConnection, names: Run) -> None:
    """Make the tables `contexts` (number, context) and `pairs` (number, context, item) of names."""
    rows = np.repeat(np.arange(len(names.pairs)), names.pairs)
    contexts = {"number": numbers(np.arange(len(names.pairs))), "context": names.contexts.column}
    pairs = {
        "number": numbers(np.arange(len(rows))),
        "context": names.contexts.take(rows).column,
        "item": names.items.column,
    }
    for name, columns in (("contexts", contexts), ("pairs", pairs)):
        with registered(connection, "names", [columns]):
            connection.execute(f"create temp table {name} as from names")
