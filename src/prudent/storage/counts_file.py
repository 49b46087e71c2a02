"""Counts files: one Parquet file with the counts of a log, a sample of its lists, and, in the footer, what they are of.

A row is a context, in the order of their names. All that is known about it is in lists, one after the other:

===========  ===========================================================================
column       content
===========  ===========================================================================
context      its name
items        the names of the items that were shown there, sorted
cells        how many cells each item has
code         of each cell: ``position << 16 | prev << 2 | click << 1 | more``
n            of each cell: how often the item was shown in that way
list_n       of each whole list: how often it was shown and clicked in that way
list_length  of each whole list: its positions
list_items   of each position of each whole list: the place of its item in ``items``, from 0
list_clicks  of each position of each whole list: whether it was clicked
===========  ===========================================================================

Where the log has rewards, and only there, two more follow, in thousandths:

==============  ========================================================================
column          content
==============  ========================================================================
reward          of each item: the sum of the rewards of its clicks
reward_squares  of each item: the sum of their squares
==============  ========================================================================

``position`` is from 1, ``prev`` the position of the last click above or 0, ``click`` whether the item was clicked,
``more`` whether there is a click below. Of single impressions, whose lists are not known, ``prev`` is their own
position, which no list has, and ``more`` is 0. Whole lists are those of the contexts of the sample
(`prudent.storage.sketch`), null elsewhere. `cells_query` is a query for one row per cell.

The footer has the version of the layout (``prudent_counts``), the `Tally` as JSON (``prudent_tally``), the manifest
(``prudent_manifest``), a checksum of all bytes (``prudent_checksum``), and the threshold of the sample
(``prudent_sample``), which is empty where a file keeps no lists. Spark cannot write keys of its own into a footer: its
files have the version and the threshold in the metadata of the column ``n``, under the same names, no checksum, and
their tally in the manifest of their folder, ``_manifest.json``.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np

from prudent.base.arrays import BoolArray
from prudent.base.errors import CountsError
from prudent.storage.arrow import Column, ListColumn, StreamError, listed, numbers, read, stream_of
from prudent.storage.arrow_tables import registered
from prudent.storage.checksum import CHECKSUM, is_damaged
from prudent.storage.manifest import Manifest, Source, Tally
from prudent.storage.parquet import footer_entry, read_footer, write_parquet
from prudent.storage.quoting import file_text
from prudent.storage.run import LONGEST, NameColumn, Run, WholeLists
from prudent.storage.sketch import NOTHING, SAMPLE_LISTS, below, sample_threshold

COUNTS_VERSION = 4
"""Version of the layout; raised when a column changes its meaning."""
CELL_COLUMNS = ("context", "items", "cells", "code", "n")
LIST_COLUMNS = ("list_n", "list_length", "list_items", "list_clicks")
COLUMNS = (*CELL_COLUMNS, *LIST_COLUMNS)
REWARD_COLUMNS = ("reward", "reward_squares")
"""Columns of counts with rewards alone."""
MOST_REWARDS = 1 << 62
"""The sum of an item, or of its squares, that leaves no room for those of many files."""
REWARDS_TOO_LARGE = (
    "The rewards of an item are too large to be added up. Give them in a larger unit, such as seconds for milliseconds."
)

VERSION, SAMPLE = "prudent_counts", "prudent_sample"
_TALLY = "prudent_tally"
OF_ALL_ROWS = (_TALLY, CHECKSUM)
"""Entries that no longer hold where rows are left out."""
_CELLS_OF_A_GROUP = 1_000_000  # that are written, and later read, at a time
_CONTEXTS = 2_048  # that DuckDB takes at a time: a group has a multiple of them


class Footer(NamedTuple):
    """What a counts file holds."""

    tally: Tally | None  # None in the files of Spark
    threshold: str  # of the sample


class Piece(NamedTuple):
    """Consecutive contexts of counts, and whole lists of those in the sample."""

    run: Run
    lists: WholeLists

    def slice(self, first: int, last: int) -> "Piece":
        """The contexts from `first` up to but not including `last`."""
        return Piece(self.run.slice(first, last), self.lists.slice(first, last))

    def only(self, contexts: BoolArray) -> "Piece":
        """Some of the contexts, with their lists."""
        if contexts.all():
            return self
        lists = self.lists.where(contexts[self.lists.context])
        number = (np.cumsum(contexts) - 1).astype(np.uint32)
        return Piece(self.run.only(contexts), replace(lists, context=number[lists.context]))

    @staticmethod
    def concatenated(pieces: "Sequence[Piece]") -> "Piece":
        """Pieces of consecutive contexts, one after the other."""
        if len(pieces) == 1:
            return pieces[0]
        before = np.cumsum([0, *(len(piece.run.pairs) for piece in pieces[:-1])], dtype=np.uint32)
        lists = [
            replace(piece.lists, context=piece.lists.context + first)
            for piece, first in zip(pieces, before, strict=True)
        ]
        return Piece(Run.concatenated([piece.run for piece in pieces]), WholeLists.concatenated(lists))


class Held(NamedTuple):
    """The counts of a log in memory, in place of a file."""

    piece: Piece
    threshold: str  # of the sample


# --- writing ----------------------------------------------------------------------------------------------------------


def write_counts_file(
    connection: duckdb.DuckDBPyConnection,
    target: Path,
    pieces: Iterable[Piece],
    *,
    source: Source | None,
    threshold: str = NOTHING,
) -> None:
    """Write a counts file: at least one piece. How contexts were cut into pieces does not change a byte.

    `source` is what was counted, for the tally and the manifest in the footer; None where only this process reads it.
    """
    entries = {VERSION: str(COUNTS_VERSION), SAMPLE: threshold}
    if source is not None:
        entries |= {_TALLY: json.dumps(source.tally.to_json()), **counts_manifest(source).footer}
    later = iter(pieces)
    first = [next(later)]
    while sum(len(piece.run.pairs) for piece in first) < _CONTEXTS and (piece := next(later, None)) is not None:
        first.append(piece)
    # A file of this process is merged with others, of each of which a group is in memory.
    rows = _CONTEXTS if source is None else _rows_of_a_group(Piece.concatenated(first).run)
    groups = _evened(chain(first, later), rows)
    connection.execute("set preserve_insertion_order = true")
    with registered(connection, "pieces", map(file_columns, groups)):
        write_parquet(connection, "from pieces", target, footer=entries, row_group=rows)


def _rows_of_a_group(run: Run) -> int:
    """By the first contexts, which are the same however they were counted."""
    contexts = min(_CONTEXTS, len(run.pairs))
    cells = run.first_cell[contexts] / max(contexts, 1)
    rows = int(np.clip(_CELLS_OF_A_GROUP / max(cells, 1.0), _CONTEXTS, 122_880))
    return rows - rows % _CONTEXTS


def _evened(pieces: Iterable[Piece], rows: int) -> Iterator[Piece]:
    """The same contexts, so many in each piece but the last: at least one piece."""
    held: list[Piece] = []
    number, empty = 0, True
    for piece in pieces:
        held.append(piece)
        number += len(piece.run.pairs)
        if whole := number - number % rows:
            joined = Piece.concatenated(held)
            yield from (joined.slice(first, first + rows) for first in range(0, whole, rows))
            held, number, empty = [joined.slice(whole, number)], number - whole, False
    if number or empty:
        yield Piece.concatenated(held)


def file_columns(piece: Piece) -> dict[str, Column]:
    """The columns of a counts file."""
    run, lists = piece
    contexts = len(run.pairs)
    per_context = np.append(0, np.cumsum(run.cells, dtype=np.int64))[np.append(0, np.cumsum(run.pairs, dtype=np.int64))]
    number = np.bincount(lists.context, minlength=contexts)
    length = np.bincount(lists.context, lists.size, minlength=contexts).astype(np.int64)
    sampled = number > 0
    rewards = {} if run.rewards is None else dict(zip(REWARD_COLUMNS, run.rewards.T, strict=True))
    return {
        "context": run.contexts.column,
        "items": listed(run.pairs, run.items.column),
        "cells": listed(run.pairs, numbers(run.cells.view(np.int32))),
        "code": listed(np.diff(per_context), numbers(run.code.view(np.int32))),
        "n": listed(np.diff(per_context), numbers(run.n.view(np.int64))),
        "list_n": listed(number, numbers(lists.n.view(np.int64)), sampled),
        "list_length": listed(number, numbers(lists.size.view(np.int32)), sampled),
        "list_items": listed(length, numbers(lists.items.view(np.int32)), sampled),
        "list_clicks": listed(length, numbers(lists.clicks), sampled),
        **{name: listed(run.pairs, numbers(np.ascontiguousarray(values))) for name, values in rewards.items()},
    }


# --- reading ----------------------------------------------------------------------------------------------------------

_TYPES = {
    **dict.fromkeys(("cells", "code", "list_length", "list_items"), "integer[]"),
    **dict.fromkeys(("n", "list_n", *REWARD_COLUMNS), "bigint[]"),
    "list_clicks": "boolean[]",
}


def read_pieces(connection: duckdb.DuckDBPyConnection, file: Path, *, sampled: bool = False) -> Iterator[Piece]:
    """The pieces of a counts file, in its order; raise where they cannot be counts.

    Where `sampled`, only those contexts that are in the sample.
    """
    try:
        yield from pieces_in(connection, file, "list_n is not null" if sampled else "true")
    except duckdb.OutOfMemoryException:
        raise
    except (duckdb.Error, StreamError) as error:
        raise CountsError(f"{file} is damaged: {str(error).splitlines()[0]}. Count the log again.") from error


def check_bytes(file: Path, footer: Mapping[str, str]) -> None:
    """Raise where a counts file is not as it was written; files of Spark, which have no tally, have no checksum."""
    if is_damaged(file, sealed=_TALLY in footer):
        raise CountsError(f"{file} is damaged: its bytes are not those that were written. Count the log again.")


def pieces_in(connection: duckdb.DuckDBPyConnection, file: Path, where: str = "true") -> Iterator[Piece]:
    """The same for a file that only this process reads, and that may have no footer of ours."""
    source = f"read_parquet({file_text(file)}, hive_partitioning = false)"
    names = dict(zip(("context", "items"), connection.sql(f"select context, items from {source}").types, strict=True))
    types = {**_TYPES, **{name: _name_type(str(kind)) for name, kind in names.items()}}
    has_rewards = {*REWARD_COLUMNS} <= {*connection.sql(f"from {source}").columns}
    columns = ", ".join(f"{name}::{types[name]}" for name in (*COLUMNS, *(REWARD_COLUMNS if has_rewards else ())))
    rows = connection.sql(f"select {columns} from {source} where {where}")
    capsule = rows.__arrow_c_stream__()
    empty = True
    for batch in read(stream_of(capsule)):
        empty = False
        yield _piece(batch)
    if empty:
        yield empty_piece(*(str(kind).removesuffix("[]") for kind in rows.types[:2]), rewards=has_rewards)


def _name_type(kind: str) -> str:
    """Names are text or integers of 64 bits, also where another program wrote smaller ones."""
    element = kind.removesuffix("[]")
    return (element if element in ("VARCHAR", "UBIGINT") else "BIGINT") + kind[len(element) :]


def empty_piece(context: str, item: str, *, rewards: bool = False) -> Piece:
    """A piece without contexts, for names of these types of DuckDB."""
    names = {
        "VARCHAR": NameColumn(np.zeros(0, np.uint8), np.zeros(0, np.int64)),
        "UBIGINT": NameColumn(_NONE.view(np.uint64)),
    }
    whole = NameColumn(_NONE)
    few, many = _NONE.astype(np.uint32), _NONE.view(np.uint64)
    none = np.zeros((0, 2), np.int64) if rewards else None
    run = Run(names.get(context, whole), names.get(item, whole), few, few, few, many, none)
    return Piece(run, WholeLists(few, few, few, few.astype(bool), many))


_NONE = np.zeros(0, np.int64)


def _piece(batch: Sequence[Column]) -> Piece:
    """The arrays of a batch, copied: it is gone when the next one is asked for."""
    context, *lists = batch
    if not all(column.valid.all() for column in (*batch[: len(CELL_COLUMNS)], *batch[len(COLUMNS) :])):
        raise StreamError("a context has no counts")
    pairs, cells, code, n, number, length, items, clicks, *rewards = (ListColumn.of(column) for column in lists)
    same = [(cells, pairs), (n, code), (length, number), (items, clicks), *((one, pairs) for one in rewards)]
    if any(np.any(one.size != other.size) for one, other in same) or np.any(code.size != pairs.sums(cells.values)):
        raise StreamError("its columns differ in length")
    if np.any(items.size != number.sums(length.values)):
        raise StreamError("its columns differ in length")
    run = Run(
        contexts=NameColumn.of(context),
        items=NameColumn.of(pairs.child),
        pairs=pairs.size.astype(np.uint32),
        cells=cells.values.astype(np.uint32),
        code=code.values.astype(np.uint32),
        n=n.values.astype(np.uint64),
        rewards=np.stack([one.values.astype(np.int64) for one in rewards], axis=1) if rewards else None,
    )
    whole = WholeLists(
        context=np.repeat(np.arange(len(number.size), dtype=np.uint32), number.size),
        size=length.values.astype(np.uint32),
        items=items.values.astype(np.uint32),
        clicks=clicks.values.astype(bool),
        n=number.values.astype(np.uint64),
    )
    _check(run, whole)
    return Piece(run, whole)


def _check(run: Run, lists: WholeLists) -> None:
    """Raise where these cannot be counts, whoever wrote them."""
    position, prev = run.code >> 16, run.code >> 2 & LONGEST
    n = run.n.view(np.int64)
    wrong = np.count_nonzero((n < 1) | (position < 1) | (position > LONGEST) | (prev > position))
    if wrong:
        raise StreamError(f"{wrong:,} of its cells have a position, prev or n that cannot be")
    if not run.pairs.all() or not run.cells.all():
        raise StreamError("a context has no items, or an item no cells: that cannot be")
    if run.rewards is not None and run.rewards.min(initial=0) < 0:
        raise StreamError("some of its rewards are below 0")
    places = run.pairs[np.repeat(lists.context, lists.size)]
    if np.any(lists.n.view(np.int64) < 1) or np.any(lists.items >= places):
        raise StreamError("some of its lists cannot be")


def common_threshold(connection: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> str:
    """The threshold of the sample of several files together."""
    threshold = min(counts_footer(read_footer(connection, file), str(file)).threshold for file in files)
    if threshold == NOTHING or len(files) == 1:
        return threshold
    source = f"read_parquet([{', '.join(map(file_text, files))}], hive_partitioning = false)"
    contexts = (
        f"select context, sum(list_sum(list_n)) as lists from {source} "
        f"where list_n is not null and {below(threshold)} group by context"
    )
    return min(threshold, sample_threshold(connection, contexts, SAMPLE_LISTS))


def cells_query(source: str, n: str = "n") -> str:
    """In DuckDB's SQL, one row per cell of counts files: context, item, position, prev, click, more and n."""
    item = "unnest(flatten(list_transform(list_zip(items, cells), lambda one: repeat([one[1]], one[2]::bigint))))"
    return (
        "select context, item, (code >> 16)::integer as position, (code >> 2 & 16383)::integer as prev, "
        "(code & 2) > 0 as click, (code & 1) > 0 as more, n "
        f"from (select context, {item} as item, unnest(code) as code, unnest({n}) as n from {source})"
    )


# --- footers ----------------------------------------------------------------------------------------------------------


def counts_manifest(source: Source) -> Manifest:
    """The manifest of counts."""
    return Manifest("counts", sources={"log": source})


def counts_version(footer: Mapping[str, str]) -> str | None:
    """The version of the counts in a file, or None where it holds none."""
    return footer_entry(footer, VERSION)


def counts_footer(footer: Mapping[str, str], file: str) -> Footer:
    """What a counts file of this version holds; an error where it is none."""
    version = counts_version(footer)
    if version is None:
        raise CountsError(f"{file} does not hold counts. Make them with: prudent count LOG -o COUNTS")
    if version != str(COUNTS_VERSION):
        raise CountsError(
            f"{file} has counts of version {version}; this prudent reads version {COUNTS_VERSION}. Count the log again."
        )
    try:
        tally = Tally.from_json(json.loads(footer[_TALLY])) if _TALLY in footer else None
    except ValueError as error:
        raise CountsError(f"{file} is marked as counts, but its tally is damaged. Count the log again.") from error
    return Footer(tally, footer_entry(footer, SAMPLE) or NOTHING)
