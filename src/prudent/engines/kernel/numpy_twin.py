"""What the kernel does, with NumPy: for machines without a compiler, and for the tests of both."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.engines.kernel.counted import Choose, Counted, Types, chosen
from prudent.engines.kernel.names import Integers, Texts, group, names_of
from prudent.logs.log import CODE, REASONS
from prudent.storage.arrow import Column, StreamError, read
from prudent.storage.run import NameColumn, Run, WholeLists

Names = Texts | NDArray[np.int64] | NDArray[np.uint64]
Bools = NDArray[np.bool_]


def count(
    stream: Any, types: Types, *, budget: int, max_positions: int, text_files: bool, choose: Choose
) -> Iterator[Counted]:
    """Count a stream, one `Counted` for each budget of bytes."""
    with closing(read(stream)) as batches:
        exhausted = False
        while not exhausted:
            taken: list[list[Column]] = []
            left = budget
            while left > 0 and not exhausted:
                batch = next(batches, None)
                exhausted = batch is None
                if batch is not None:
                    taken.append([_copy(column) for column in batch])
                    items = batch[1].child
                    left -= 64 * len(batch[0].valid) + 32 * len(items.valid if items else ())  # as in the kernel
            yield replace(_count(taken or [_no_rows(types)], max_positions, text_files, choose), last=exhausted)


def _count(batches: Sequence[Sequence[Column]], max_positions: int, text_files: bool, choose: Choose) -> Counted:
    columns = list(zip(*batches, strict=True))
    context, fault, copies = _values(columns[0]), _values(columns[3]), _values(columns[4])
    items, clicks = _lists_of(columns[1]), _lists_of(columns[2])
    reason = np.where(fault.valid, np.maximum(fault.numbers, 0), 0)
    if reason.max(initial=0) > len(REASONS):
        raise StreamError("a fault without a reason")
    lists = len(reason)
    _reject(reason, ~context.valid, "context missing")
    _reject(reason, ~items.valid | (items.size == 0), "empty list")
    _reject(reason, ~clicks.valid | (clicks.size != items.size), "items and clicks differ in length")
    _reject(reason, items.size > max_positions, "too many positions")
    whole = reason == 0
    row, element = _elements(items, whole)
    _, at = _elements(clicks, whole)
    value = clicks.elements.numbers[at]
    _reject(reason, _any(~items.elements.valid[element], row, lists), "item missing")
    _reject(reason, _any(~clicks.elements.valid[at] | (value & 1 != value), row, lists), "click other than 0 or 1")
    row, element, value = (array[reason[row] == 0] for array in (row, element, value))

    number, context_row = np.zeros(lists, np.int64), np.flatnonzero(reason == 0)
    number[context_row], first = group(_take(context.names, context_row), np.zeros(len(context_row), np.int64))
    context_row = context_row[first]
    pair, pair_element = group(_take(items.elements.names, element), number[row])
    element_of_pair, context_of_pair = element[pair_element], number[row[pair_element]]
    listed = np.sort(row * len(pair_element) + pair)
    twice = listed[1:][listed[1:] == listed[:-1]] // max(len(pair_element), 1)
    _reject(reason, np.bincount(twice, minlength=lists) > 0, "duplicate item in a list")
    if text_files:
        nul = _any(_has_nul(_take(items.elements.names, element)), row, lists) | _has_nul(context.names)
        _reject(reason, nul, "NUL byte in a name")
    tally = np.zeros(len(REASONS) + 1, np.int64)
    np.add.at(tally, reason, np.where(copies.valid, copies.numbers, 0))

    row, pair, value = (array[reason[row] == 0] for array in (row, pair, value))
    cell, n = _histogram(pair << np.int64(32) | _codes(row, value == 1))
    shown, cells = _histogram(cell >> np.int64(32), sorted_already=True)
    present, pairs = _histogram(context_of_pair[shown], sorted_already=True)
    run = Run(
        contexts=_column(_take(context.names, context_row[present])),
        items=_column(_take(items.elements.names, element_of_pair[shown])),
        pairs=pairs.astype(np.uint32),
        cells=cells.astype(np.uint32),
        code=(cell & np.int64(0xFFFFFFFF)).astype(np.uint32),
        n=n.astype(np.uint64),
    )
    accepted = np.flatnonzero(reason == 0)
    # From here on, contexts and pairs have their numbers in the run.
    in_context = np.searchsorted(present, number[accepted])
    list_chosen = chosen(choose, run, np.bincount(in_context))[in_context]
    kept = np.flatnonzero(list_chosen)
    positions = np.repeat(list_chosen, items.size[accepted])
    place = np.searchsorted(shown, pair[positions])
    size = items.size[accepted[kept]]
    place -= np.repeat((np.cumsum(pairs) - pairs)[in_context[kept]], size)
    lists_shown = WholeLists(
        context=in_context[kept].astype(np.uint32),
        size=size.astype(np.uint32),
        items=place.astype(np.uint32),
        clicks=value[positions] == 1,
        n=np.ones(len(kept), np.uint64),
    )
    return Counted(run, distinct(lists_shown), tally)


def distinct(lists: WholeLists) -> WholeLists:
    """The same lists, sorted, and equal ones as one: texts of four bytes per item, four of 0, and one per click."""
    context, size, items = (array.astype(np.int64) for array in (lists.context, lists.size, lists.items))
    start = np.cumsum(size) - size
    within = np.arange(len(items)) - np.repeat(start, size)
    length = 5 * size + 4
    text_start = np.cumsum(length) - length
    data = np.zeros(int(length.sum()) + 8, np.uint8)
    first = np.repeat(text_start, size)
    data[(first + 4 * within)[:, None] + np.arange(4)] = (items + 1).astype(">u4").view(np.uint8).reshape(-1, 4)
    data[first + 4 * np.repeat(size + 1, size) + within] = lists.clicks
    number, list_ = group(Texts(data, text_start, length), context)
    size = size[list_]
    position = np.arange(size.sum()) + np.repeat(start[list_] - np.cumsum(size) + size, size)
    n = np.zeros(len(list_), np.uint64)
    np.add.at(n, number, lists.n)
    return WholeLists(
        context=context[list_].astype(np.uint32),
        size=size.astype(np.uint32),
        items=items[position].astype(np.uint32),
        clicks=lists.clicks[position],
        n=n,
    )


def merge(runs: Sequence[Run], weights: Sequence[int]) -> tuple[Run, list[NDArray[np.uint32]]]:
    """The sum of runs whose names are of one kind, and where the pairs of each are in it."""
    contexts = names_of(NameColumn.concatenated([run.contexts for run in runs]))
    items = names_of(NameColumn.concatenated([run.items for run in runs]))
    pairs, cells, code = (np.concatenate([getattr(run, name) for run in runs]) for name in ("pairs", "cells", "code"))
    n = np.concatenate([run.n * np.uint64(weight) for run, weight in zip(runs, weights, strict=True)])
    context, context_row = group(contexts, np.zeros(len(pairs), np.int64))
    within = np.repeat(context, pairs)
    pair, pair_row = group(items, within)
    key = np.repeat(pair, cells) << np.int64(32) | code
    order = np.argsort(key, kind="stable")
    cell, times = _histogram(key[order], sorted_already=True)
    ends = np.cumsum([len(run.cells) for run in runs])
    places = np.split(pair.astype(np.uint32), ends[:-1])
    merged = Run(
        contexts=_column(_take(contexts, context_row)),
        items=_column(_take(items, pair_row)),
        pairs=np.bincount(within[pair_row], minlength=len(context_row)).astype(np.uint32),
        cells=np.bincount(cell >> np.int64(32), minlength=len(pair_row)).astype(np.uint32),
        code=(cell & np.int64(0xFFFFFFFF)).astype(np.uint32),
        n=np.add.reduceat(n[order], np.cumsum(times) - times) if len(n) else n,
    )
    return merged, places


def _codes(row: Integers, click: Bools) -> Integers:
    """The code of each impression; those of a list follow each other."""
    index = np.arange(len(row))
    new = np.ones(len(row), bool)
    new[1:] = row[1:] != row[:-1]
    top = np.maximum.accumulate(np.where(new, index, 0))
    last = np.maximum.accumulate(np.where(click, index + 1, 0))  # of the whole log: one more than its index
    prev = np.where(new, 0, np.maximum(np.append(0, last[:-1]) - top, 0))
    end = np.append(np.flatnonzero(new)[1:], len(row)) if len(row) else index
    more = np.repeat(last[end - 1], np.diff(np.append(np.flatnonzero(new), len(row)))) > index + 1
    return (index - top + 1) << 16 | prev << 2 | click.astype(np.int64) << 1 | more


def _histogram(keys: Integers, sorted_already: bool = False) -> tuple[Integers, Integers]:
    keys = keys if sorted_already else np.sort(keys)
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.zeros(0, np.int64)
    return keys[first], np.diff(np.append(first, len(keys)))


def _reject(reason: Integers, where: Bools, why: str) -> None:
    reason[(reason == 0) & where] = CODE[why]


def _any(fault: Bools, row: Integers, lists: int) -> Bools:
    """Whether one of the elements of each list has a fault."""
    return np.bincount(row[fault], minlength=lists) > 0


# --- columns of all batches -------------------------------------------------------------------------------------------


class _Values(NamedTuple):
    valid: Bools
    names: Names

    @property
    def numbers(self) -> Integers:
        return _NONE if isinstance(self.names, Texts) else self.names.astype(np.int64)


class _Lists(NamedTuple):
    valid: Bools
    start: Integers  # of each list: its first element
    size: Integers
    elements: _Values


_NONE = np.zeros(0, np.int64)


def _copy(column: Column) -> Column:
    """A column that outlives its batch."""
    return replace(column, values=column.values.copy(), child=column.child and _copy(column.child))


def _no_rows(types: Types) -> list[Column]:
    def column(form: str) -> Column:
        if form == "u":
            return Column(form, np.zeros(0, bool), np.zeros(0, np.uint8), np.zeros(1, np.int64))
        return Column(form, np.zeros(0, bool), np.zeros(0, np.uint64 if form == "L" else np.int64))

    lists = [
        Column("+l", np.zeros(0, bool), np.zeros(0), np.zeros(1, np.int64), column(form))
        for form in (types.item, types.click)
    ]
    return [column(types.context), *lists, column("i"), column("l")]


def _values(columns: Sequence[Column]) -> _Values:
    valid = np.concatenate([column.valid for column in columns])
    values = [column.values for column in columns]
    if columns[0].offsets is None:
        return _Values(valid, np.concatenate(values))
    start, size = _spans(columns, values)
    return _Values(valid, Texts(np.concatenate([*values, np.zeros(8, np.uint8)]), start, size))


def _lists_of(columns: Sequence[Column]) -> _Lists:
    elements = [column.child for column in columns if column.child]
    spans = _spans(columns, [column.valid for column in elements])
    return _Lists(np.concatenate([column.valid for column in columns]), *spans, _values(elements))


def _spans(columns: Sequence[Column], below: Sequence[NDArray[Any]]) -> tuple[Integers, Integers]:
    """Where texts or lists begin in what is below them, and their sizes."""
    offsets = [column.offsets for column in columns if column.offsets is not None]
    base = np.cumsum([0, *map(len, below[:-1])])
    start = [column[:-1] + add for column, add in zip(offsets, base, strict=True)]
    return np.concatenate(start), np.concatenate([np.diff(column) for column in offsets])


def _elements(lists: _Lists, chosen: Bools) -> tuple[Integers, Integers]:
    """The list and the place of each element of the chosen lists."""
    size = np.where(chosen, lists.size, 0)
    row = np.repeat(np.arange(len(size)), size)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size) + lists.start[row]


def _take(names: Names, rows: Integers) -> Names:
    return names.take(rows) if isinstance(names, Texts) else names[rows]


def _column(names: Names) -> NameColumn:
    if not isinstance(names, Texts):
        return NameColumn(names)
    ends = np.cumsum(names.size)
    byte = np.arange(ends[-1] if len(ends) else 0) + np.repeat(names.start - ends + names.size, names.size)
    return NameColumn(names.data[byte], ends)


def _has_nul(names: Names) -> Bools:
    if not isinstance(names, Texts):
        return np.zeros(len(names), bool)
    before = np.append(0, np.cumsum(names.data == 0))
    has: Bools = before[names.start + names.size] > before[names.start]
    return has


def highest(
    starts: IntArray, keys: Sequence[FloatArray], length: int, eligible: BoolArray
) -> tuple[IntArray, IntArray]:
    """The rows of each group that are highest by some keys, and how many."""
    group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    row = np.flatnonzero(eligible & _within_reach(starts, np.where(eligible, keys[0], -np.inf), length))
    row = row[np.lexsort([*(-key[row] for key in reversed(keys)), group[row]])]  # stable
    size = np.bincount(group[row], minlength=len(starts) - 1)
    place = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)
    return row[place < length], np.minimum(size, length)


def _within_reach(starts: IntArray, key: FloatArray, length: int) -> BoolArray:
    """Whether a row reaches the highest keys of its group: no other needs sorting."""
    keep = np.ones(len(key), bool)
    start, size = starts[:-1], np.diff(starts)
    # Groups of similar size share one padded table, so that the padding is less than the data.
    width = 1 << np.ceil(np.log2(np.maximum(size, 1))).astype(int)
    for w in np.unique(width[size > length]):
        crowded = np.flatnonzero((width == w) & (size > length))
        row = start[crowded, None] + np.arange(w)
        inside = np.arange(w) < size[crowded, None]
        table = np.where(inside, key[np.minimum(row, len(key) - 1)], -np.inf)
        least = np.partition(table, w - length, axis=1)[:, w - length]
        keep[row[inside]] = (table >= least[:, None])[inside]
    return keep


def fold(
    sizes: NDArray[np.uint32], code: NDArray[np.uint32], n: FloatArray, tables: Sequence[FloatArray], stride: int
) -> list[FloatArray]:
    """Weighted sums of the cells of each group."""
    at = (code >> 16).astype(np.int64) * stride + (code & 65535)
    if int(sizes.sum(dtype=np.int64)) != len(code) or at.max(initial=-1) >= len(tables[0]):
        raise ValueError("sizes, or codes, that go too far")
    group = np.repeat(np.arange(len(sizes)), sizes)
    return [np.bincount(group, table[at] * n, minlength=len(sizes)).astype(float, copy=False) for table in tables]


_NODES = 8
_SCALE = (-1 / 5040, 1 / 720, -1 / 240, 1 / 144, -1 / 144, 1 / 240, -1 / 720, 1 / 5040)
_CHUNK = 8_192  # places at a time: arrays of 64 kB stay in the cache


def read_tables(tables: Sequence[FloatArray], row: FloatArray, column: FloatArray) -> list[FloatArray]:
    """The values of several tables of one shape between their nodes."""
    values = [np.zeros(len(row)) for _ in tables]
    columns = tables[0].shape[1]
    for start in range(0, len(row), _CHUNK):
        some = slice(start, start + _CHUNK)
        r, c = np.floor(row[some]), np.floor(column[some])
        by_row, by_column = _weights(row[some] - r), _weights(column[some] - c)
        first = (r.astype(np.int64) - 3) * columns + c.astype(np.int64) - 3
        for table, value in zip(tables, values, strict=True):
            flat = table.ravel()
            for k, outer in enumerate(by_row):
                inner = np.zeros(len(first))
                for j, weight in enumerate(by_column):
                    inner += weight * flat[first + k * columns + j]
                value[some] += outer * inner
    return values


def _weights(at: FloatArray) -> list[FloatArray]:
    """Lagrange's weights of the nodes −3 … 4 at places from 0 to 1; every product in the order of the kernel."""
    below = [np.ones_like(at)]
    for k in range(1, _NODES):
        below.append(below[-1] * (at - (k - 4)))
    weights, above = [], np.ones_like(at)
    for k in reversed(range(_NODES)):
        weights.append(below[k] * above * _SCALE[k])
        above = above * (at - (k - 3))
    return weights[::-1]
