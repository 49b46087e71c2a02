"""Rows of counts in an Arrow table, sorted by their keys, as arrays: how Spark's rows enter the same functions."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from prudent.counts.cells import Cells
from prudent.counts.index import REWARDS_OF_UNITS, Part
from prudent.storage.arrow import read, stream_of
from prudent.storage.counts_file import REWARD_COLUMNS
from prudent.storage.run import NameColumn

if TYPE_CHECKING:
    import pyarrow as pa


def part_from_arrow(table: "pa.Table", unit: int, *, named: bool = False) -> "tuple[Part, pa.Array, pa.Array]":
    """The cells of these rows, with n in full lists, and the names of contexts and of items of pairs, by number.

    Rows at position 0 are candidates: they make a pair without a cell. Where there are sums of rewards, those of a pair
    add up over its rows. The part has the names only if it is `named`.
    """
    import pyarrow as pa

    from prudent.engines.spark.contexts import changes

    columns = {name: pa.concat_arrays(table[name].chunks) for name in table.column_names}
    new_context = changes(columns["context"])
    new_pair = new_context | changes(columns["item"])
    pair = np.cumsum(new_pair) - 1

    def array(name: str, kind: Any) -> Any:
        return columns[name].to_numpy(zero_copy_only=False).astype(kind)

    shown = array("position", np.int64) > 0
    cells = Cells.of_columns(
        context=(np.cumsum(new_context) - 1)[new_pair],
        pair=pair[shown],
        position=array("position", np.int64)[shown],
        prev=array("prev", np.int64)[shown],
        click=array("click", bool)[shown],
        more=array("more", bool)[shown],
        n=array("n", np.float64)[shown] / unit,
    )
    if columns.keys() >= {*REWARD_COLUMNS}:
        first = np.flatnonzero(new_pair)
        sums = [np.add.reduceat(array(name, np.int64), first) for name in REWARD_COLUMNS]
        cells = replace(cells, rewards=np.stack(sums, axis=1) / REWARDS_OF_UNITS)
    contexts = columns["context"].take(pa.array(np.flatnonzero(new_context)))
    items = columns["item"].take(pa.array(np.flatnonzero(new_pair)))
    part = Part(cells, np.bincount(pair, array("eligible", np.int64)) > 0)
    if named:
        part = part._replace(contexts=_names(contexts), items=_names(items))
    return part, contexts, items


def _names(array: "pa.Array") -> NameColumn:
    import pyarrow as pa

    capsule = pa.table({"name": array}).__arrow_c_stream__()  # the stream is gone with it
    return NameColumn.concatenated([NameColumn.of(column) for (column,) in read(stream_of(capsule))])
