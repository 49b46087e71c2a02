"""What a task of Spark does in a Python worker: count the lists of its contexts.

Needs pyarrow.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from prudent.base.arrays import BoolArray, IntArray
from prudent.engines import kernel
from prudent.engines.kernel.merging import merge_pieces
from prudent.storage.arrow import numbers
from prudent.storage.arrow_tables import Table
from prudent.storage.counts_file import Piece, file_columns
from prudent.storage.database import Database
from prudent.storage.run import Run
from prudent.storage.sketch import EVERYTHING, in_sample, sample_of

_BUDGET = 200_000_000  # bytes of lists that are counted at a time: a worker has little memory
_ROWS = 10_000  # contexts that go back to Spark at a time


def count_batches(batches: Iterator[pa.RecordBatch], max_positions: int) -> Iterator[pa.RecordBatch]:
    """Batches of context, items, clicks, fault and copies to batches of counts, and how many lists each context has."""
    first = next(batches, None)
    if first is None:
        return
    reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
    context, items, clicks = first.schema.types[:3]
    types = "".join(map(_letter, (context, items.value_type, clicks.value_type)))
    thresholds: list[str] = []
    with Database().connect() as connection:

        def sample(run: Run, lists: IntArray) -> BoolArray:
            threshold, chosen = sample_of(connection, run.contexts, lists)
            thresholds.append(threshold)
            return chosen

        stream = reader.__arrow_c_stream__()
        limits: dict[str, Any] = {"budget": _BUDGET, "max_positions": max_positions, "text_files": False}
        runs = [iter([Piece(one.run, one.lists)]) for one in kernel.count(stream, types, **limits, choose=sample)]
        # Below the lowest threshold of its runs, and so below that of all tasks, the sample of a task is complete.
        threshold = min(thresholds, default=EVERYTHING)
        for piece in merge_pieces(runs, lambda names: in_sample(connection, names, threshold)):
            for start in range(0, len(piece.run.pairs), _ROWS):
                yield _as_batch(piece.slice(start, min(start + _ROWS, len(piece.run.pairs))))


def _letter(kind: pa.DataType) -> str:
    return {"int64": "l", "int32": "i"}.get(str(kind), "u")


def _as_batch(piece: Piece) -> pa.RecordBatch:
    top = np.where(piece.run.code >> 16 == 1, piece.run.n.view(np.int64), 0)
    lists = np.add.reduceat(top, piece.run.first_cell[:-1])
    table = pa.table(Table([{**file_columns(piece), "lists": numbers(lists)}]))
    schema = pa.schema([pa.field(field.name, _narrow(field.type)) for field in table.schema])
    (batch,) = table.cast(schema).combine_chunks().to_batches()
    return batch


def _narrow(kind: pa.DataType) -> pa.DataType:
    """The type with offsets of 32 bits, which is Spark's."""
    if pa.types.is_large_list(kind):
        return pa.list_(_narrow(kind.value_type))
    return pa.string() if pa.types.is_large_string(kind) else kind
