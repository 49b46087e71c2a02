"""The lists of a policy by the numbers that a log has for their names."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.errors import LogError, PolicyError
from prudent.counts.lists import read_whole_lists
from prudent.evaluation.target import find_target, read_lists_of
from prudent.storage.manifest import Manifest
from tests.reference import LoggedList
from tests.strategies import integer_names, logs, plain_names, table, text_names

ENGINE = prudent.DuckDB(threads=2)


def numbered(log: Any, policy: prudent.Policy, length: int) -> tuple[list[list[int]], list[bool]]:
    _, piece, _ = read_whole_lists(prudent.Log(log), ENGINE, max_rejected=0)
    target, known = find_target(read_lists_of(policy), piece.run, length)
    return target.tolist(), known.tolist()


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_as_a_plain_loop_numbers_them(data: st.DataObject) -> None:
    names = data.draw(st.sampled_from([plain_names, text_names, integer_names]))
    lists: list[LoggedList] = data.draw(logs(names))
    other = data.draw(logs(names))
    policy = {context: items for context, items, _ in [*other, *lists][:: data.draw(st.sampled_from([1, 2, -1]))]}
    made = prudent.Policy.from_table(
        pa.table({"context": list(policy), "items": list(map(list, policy.values()))}), items="items"
    )
    length = data.draw(st.integers(1, 7))
    pairs = sorted({(context, item) for context, items, _ in lists for item in items})
    contexts = sorted({context for context, _ in pairs})
    width = max(length, *map(len, policy.values()))
    expected = [
        [pairs.index((c, item)) if (c, item) in pairs else -2 for item in policy.get(c, ())]
        + [-1] * (width - len(policy.get(c, ())))
        for c in contexts
    ]
    assert numbered(table(lists), made, length) == (expected, [c in policy for c in contexts])


def test_signed_and_unsigned_names_are_the_same_numbers() -> None:
    def log(kind: Any, names: list[int]) -> pa.Table:
        columns = {"context": pa.array([7], kind), "items": pa.array([names], pa.list_(kind))}
        return pa.table({**columns, "clicks": [[0] * len(names)]})

    signed, unsigned = pa.int64(), pa.uint64()
    for mine, theirs in ((signed, unsigned), (unsigned, signed)):
        policy = prudent.Policy.from_table(log(mine, [5, 3]).drop("clicks"), items="items")
        assert numbered(log(theirs, [3, 4, 5]), policy, 1) == ([[2, 0]], [True])
    negative = prudent.Policy.from_table(log(signed, [5, -3]).drop("clicks"), items="items")
    assert numbered(log(unsigned, [3, 5]), negative, 1) == ([[1, -2]], [True])
    with pytest.raises(LogError, match="names below 0 and names of 2⁶³ or more"):
        numbered(log(unsigned, [3, 2**63]), negative, 1)


@pytest.mark.parametrize(
    "rows",
    [
        "('q', 1, 'a'), ('q', 3, 'b')",
        "('q', 1, 'a'), ('q', 1, 'b')",
        "('q', 1, 'a'), ('q', 2, 'a')",
        "('q', 1, 'a'), (null, 1, 'a')",
        "('q', 1, 'a'), ('q', 2, null)",
    ],
)
def test_what_is_no_list_is_refused(rows: str) -> None:
    connection = ENGINE.open()
    connection.execute(f"create table lists as select * from (values {rows}) as lists(context, rank, item)")
    policy = prudent.Policy(connection, Manifest("policy"), {"lists": "from lists"})
    with pytest.raises(PolicyError, match="This is no policy: 1 of its lists"):
        read_lists_of(policy)
    connection.execute("delete from lists")
    with pytest.raises(PolicyError, match="has no lists"):
        read_lists_of(policy)


def test_a_list_that_is_too_long_is_refused() -> None:
    items = np.arange(16_384).tolist()
    policy = prudent.Policy.from_table(pa.table({"context": ["q"], "items": [items]}), items="items")
    with pytest.raises(PolicyError, match=r"more than 16,383 items"):
        read_lists_of(policy)
