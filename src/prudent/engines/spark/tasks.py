"""What a task of Spark does in a Python worker: count its lists.

Needs pyarrow.
"""

import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import numpy as np
import pyarrow as pa

from prudent.base.arrays import BoolArray, IntArray
from prudent.engines import kernel
from prudent.engines.duckdb.rewards import with_rewards
from prudent.engines.kernel.merging import merge_pieces
from prudent.engines.spark.rewards import Rewards
from prudent.logs.log import REASONS
from prudent.storage.arrow import numbers
from prudent.storage.arrow_tables import Table
from prudent.storage.counts_file import Piece, file_columns, write_counts_file
from prudent.storage.database import Database
from prudent.storage.run import Run, starts_list
from prudent.storage.sketch import EVERYTHING, in_sample, sample_of

_BUDGET = 200_000_000  # bytes of lists that are counted at a time: a worker has little memory
_ROWS = 10_000  # contexts that go back to Spark at a time


def count_to_files(
    batches: Iterator[pa.RecordBatch], max_positions: int, text_files: bool, folder: str | None
) -> Iterator[pa.RecordBatch]:
    """Batches of context, items, clicks, fault, copies and, where the log has them, rewards to counts files.

    There is a row for each file, and one for the tally.

    They are in the folder or, without one, the contents of their rows. Where lists have rewards, so is a file with the
    sums of them, which belong to all runs of the task.
    """
    with tempfile.TemporaryDirectory() as aside, Database().connect() as connection:

        def new_file() -> Path:
            return Path(folder or aside, f"{uuid4().hex}.parquet")

        def row(file: Path, rewards: bool) -> pa.RecordBatch:
            return _run_row(None if folder else file.read_bytes(), file.name, rewards, None)

        counting = _Counting(batches, connection, max_positions, text_files)
        for piece, threshold in counting:
            file = new_file()
            write_counts_file(connection, file, [piece], source=None, threshold=threshold)
            yield row(file, rewards=False)
        if counting.rewards is not None:
            file = new_file()
            counting.rewards.write(file)
            yield row(file, rewards=True)
        yield _run_row(None, None, False, counting.tally.tolist())


def _run_row(content: bytes | None, name: str | None, rewards: bool, tally: list[int] | None) -> pa.RecordBatch:
    fields = [
        ("content", pa.binary()),
        ("name", pa.string()),
        ("rewards", pa.bool_()),
        ("tally", pa.list_(pa.int64())),
    ]
    return pa.record_batch([[content], [name], [rewards], [tally]], schema=pa.schema(fields))


def count_batches(batches: Iterator[pa.RecordBatch], max_positions: int, text_files: bool) -> Iterator[pa.RecordBatch]:
    """The same batches to batches of counts, and how many lists each context has.

    The last row has no context, but the tally.
    """
    with tempfile.TemporaryDirectory() as aside, Database().connect() as connection:
        counting = _Counting(batches, connection, max_positions, text_files)
        runs = list(counting)
        if not runs:
            return
        # Below the lowest threshold of its runs, and so below that of all tasks, the sample of a task is complete.
        threshold = min(threshold for _, threshold in runs)
        sources = [iter([piece]) for piece, _ in runs]
        pieces = merge_pieces(sources, lambda names: in_sample(connection, names, threshold))
        if counting.rewards is not None:
            file = Path(aside, "rewards.parquet")
            counting.rewards.write(file)
            pieces = with_rewards(connection.cursor(), pieces, file)
        for piece in pieces:
            for start in range(0, max(len(piece.run.pairs), 1), _ROWS):
                counts = _as_table(piece.slice(start, min(start + _ROWS, len(piece.run.pairs))))
                yield from counts.to_batches()
        last = [[None]] * (len(counts.schema) - 1) + [[counting.tally.tolist()]]
        yield pa.record_batch(last, schema=counts.schema)


class _Counting:
    """The runs of the lists of a task, each with the threshold of its sample, and the tally, once all are counted."""

    def __init__(
        self,
        batches: Iterator[pa.RecordBatch],
        connection: duckdb.DuckDBPyConnection,
        max_positions: int,
        text_files: bool,
    ) -> None:
        self._batches, self._connection = batches, connection
        self._limits: dict[str, Any] = {"max_positions": max_positions, "text_files": text_files}
        self._threshold = EVERYTHING  # of the sample of the run that comes next
        self.tally = np.zeros(len(REASONS) + 1, np.int64)
        self.rewards: Rewards | None = None  # once all are counted, where lists have them

    def __iter__(self) -> Iterator[tuple[Piece, str]]:
        first = next(self._batches, None)
        if first is None:
            return
        batches: Iterator[pa.RecordBatch] = chain([first], self._batches)
        if "rewards" in first.schema.names:
            self.rewards = Rewards(self._connection, first.schema, **self._limits)
            batches = map(self.rewards.take, batches)
            first = next(batches)
            batches = chain([first], batches)
        reader = pa.RecordBatchReader.from_batches(first.schema, batches)
        context, items, clicks = first.schema.types[:3]
        types = "".join(map(_letter, (context, items.value_type, clicks.value_type)))
        stream = reader.__arrow_c_stream__()
        for counted in kernel.count(stream, types, budget=_BUDGET, **self._limits, choose=self._sample):
            self.tally += counted.tally
            yield Piece(counted.run, counted.lists), self._threshold
            self._threshold = EVERYTHING

    def _sample(self, run: Run, lists: IntArray) -> BoolArray:
        self._threshold, chosen = sample_of(self._connection, run.contexts, lists)
        return chosen


def _letter(kind: pa.DataType) -> str:
    return {"int64": "l", "int32": "i", "int16": "s", "int8": "c"}.get(str(kind), "u")


def _as_table(piece: Piece) -> pa.Table:
    top = np.where(starts_list(piece.run.code), piece.run.n.view(np.int64), 0)
    lists = np.add.reduceat(top, piece.run.first_cell[:-1])
    table = pa.table(Table([{**file_columns(piece), "lists": numbers(lists)}]))
    schema = pa.schema([pa.field(field.name, _narrow(field.type)) for field in table.schema])
    table = table.cast(schema).combine_chunks()
    return table.append_column("tally", pa.nulls(len(table), pa.list_(pa.int64())))


def _narrow(kind: pa.DataType) -> pa.DataType:
    """The type with offsets of 32 bits, which is Spark's."""
    if pa.types.is_large_list(kind):
        return pa.list_(_narrow(kind.value_type))
    return pa.string() if pa.types.is_large_string(kind) else kind
