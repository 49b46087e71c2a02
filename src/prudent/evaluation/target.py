"""The lists of a policy by the numbers that a log has for their names."""

from dataclasses import replace

import numpy as np

from prudent.base.arrays import BoolArray, IntArray
from prudent.base.errors import LogError, PolicyError
from prudent.engines import kernel
from prudent.evaluation.holdout import NEVER
from prudent.policies.files import check_lists
from prudent.policies.policy import Policy
from prudent.storage.counts_file import Piece
from prudent.storage.run import LONGEST, NameColumn, Run

_LETTERS = {"VARCHAR": "u", "UBIGINT": "L", "BIGINT": "l"}


def read_lists_of(policy: Policy) -> Piece:
    """The lists of a policy, as if each had been logged once; raise where it has none, or they cannot be lists."""
    lists = policy.lists()
    kinds = [_name_type(str(lists.types[lists.columns.index(name)])) for name in ("context", "item")]
    context, item = (f"{name}::{kind}" for name, kind in zip(("context", "item"), kinds, strict=True))
    grouped = lists.aggregate(
        f"{context} as context, list({item} order by rank) as items, list(rank::bigint order by rank) as ranks",
        "context",
    )
    rows = grouped.project(
        "context, items, list_transform(items, lambda item: 0::tinyint), "
        "(ranks <> range(1, len(items) + 1))::integer, 1::bigint"
    )
    (counted, *_) = kernel.count(
        rows.__arrow_c_stream__(),
        "".join(_LETTERS[kind] for kind in kinds) + "c",
        budget=1 << 62,
        max_positions=LONGEST,
        text_files=False,
        choose=lambda run, lists: np.ones(len(lists), bool),
    )
    if counted.tally[1:].any():
        check_lists(policy.connection, f"({lists.sql_query()})")
        raise PolicyError(f"A list of this policy has more than {LONGEST:,} items.")
    if not len(counted.run.pairs):
        raise PolicyError("The policy has no lists.")
    return Piece(counted.run.names, counted.lists.copy())


def _name_type(kind: str) -> str:
    return kind if kind in _LETTERS else "BIGINT" if "INT" in kind else "VARCHAR"


def find_target(policy: Piece, names: Run, length: int) -> tuple[IntArray, BoolArray]:
    """The policy's list of every context of a log with these names, and whether it has one.

    Lists are at least so long: −1 stands below their ends, and `NEVER` for an item that the context never showed.
    """
    theirs, mine = _of_one_kind(names, policy.run)
    run, (of_log, of_policy) = kernel.merge([theirs, mine], [1, 1])
    context = np.repeat(np.arange(len(run.pairs)), run.pairs)
    number = np.full(len(run.pairs), -1)
    number[context[of_log[names.first_pair[:-1]]]] = np.arange(len(names.pairs))
    pair_of = np.full(len(run.cells), NEVER)
    pair_of[of_log] = np.arange(len(of_log))
    lists = policy.lists  # one of each context, in their order
    size = lists.size.astype(np.int64)
    row = number[context[of_policy[mine.first_pair[:-1]]]]
    target = np.full((len(names.pairs), max(length, int(size.max()))), -1)
    known = np.zeros(len(names.pairs), bool)
    known[row[row >= 0]] = True
    pair = pair_of[of_policy[np.repeat(mine.first_pair[lists.context], size) + lists.items]]
    place, there = np.arange(len(pair)) - np.repeat(np.cumsum(size) - size, size), np.repeat(row, size)
    target[there[there >= 0], place[there >= 0]] = pair[there >= 0]
    return target, known


def _of_one_kind(one: Run, other: Run) -> tuple[Run, Run]:
    """The same names, where some are signed and some are unsigned integers."""
    contexts, items = _joined(one.contexts, other.contexts), _joined(one.items, other.items)
    return replace(one, contexts=contexts[0], items=items[0]), replace(other, contexts=contexts[1], items=items[1])


def _joined(one: NameColumn, other: NameColumn) -> tuple[NameColumn, NameColumn]:
    if one.kind == other.kind:
        return one, other
    least, most = (end(int(end(names.values)) for names in (one, other)) for end in (min, max))
    if least < 0 and most >> 63:
        raise LogError("Policy and log have names below 0 and names of 2⁶³ or more: no type of integers has both.")
    dtype = np.int64 if least < 0 else np.uint64
    return NameColumn(one.values.astype(dtype)), NameColumn(other.values.astype(dtype))
