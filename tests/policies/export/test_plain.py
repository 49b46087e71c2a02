"""Files are read back as what was written, by readers that are not ours."""

import csv
import io
import json
import math
from pathlib import Path

import pandas
import pytest

from prudent.policies.files import COLUMNS
from tests.policies.export.policies import HOSTILE, NUMBERED, Lists, exported, policy_of

with_nul: Lists = {**HOSTILE, "NUL \0 here": ["a\0b", "\0"]}
every = pytest.mark.parametrize("lists", [with_nul, NUMBERED, {}], ids=["text", "integers", "nothing"])


@every
def test_json_lines(lists: Lists, tmp_path: Path) -> None:
    """As text sorts by its bytes; names come back with the type that they had."""
    policy = policy_of(tmp_path, lists)
    content = exported(policy, "jsonl", tmp_path)
    lines = [json.loads(line, parse_constant=pytest.fail) for line in content.decode().split("\n")[:-1]]
    assert [(line["context"], line["items"]) for line in lines] == [(context, policy[context]) for context in policy]
    assert [line["context"] for line in lines] == sorted(lists, key=lambda c: c.encode() if isinstance(c, str) else c)
    bounds = [
        None if math.isinf(lower) else lower for *_, lower in policy.lists().select("context, rank, lower").fetchall()
    ]
    assert [lower for line in lines for lower in line["lower"]] == bounds


@every
def test_csv(lists: Lists, tmp_path: Path) -> None:
    policy = policy_of(tmp_path, lists)
    content = exported(policy, "csv", tmp_path).decode()
    header, *rows = csv.reader(io.StringIO(content, newline=""), strict=True)
    assert tuple(header) == COLUMNS
    kinds = [type(value) for value in (policy.lists().fetchall() or [()])[0]]
    assert [
        tuple(kind(cell) for kind, cell in zip(kinds, row, strict=True)) for row in rows
    ] == policy.lists().fetchall()


def test_csv_as_rfc_4180_has_it(tmp_path: Path) -> None:
    """Text stands in quotes and integers do not: "7" is not 7."""
    lists: Lists = {'a "b", c': ["7", "x\ny"]}
    assert exported(policy_of(tmp_path, lists), "csv", tmp_path) == (
        b"context,rank,item,lower,mean,upper,stay,positive,negative,impressions\r\n"
        b'"a ""b"", c",1,"7",0.1,1.0,2.0,3.0,1.0,0.14285714285714285,9\r\n'
        b'"a ""b"", c",2,"x\ny",0.3333333333333333,0.5,1.0,1.5,2.0,0.2857142857142857,9\r\n'
    )
    numbered = exported(policy_of(tmp_path, {7: [8]}), "csv", tmp_path)
    assert numbered.splitlines()[1].startswith(b"7,1,8,")


def test_pandas_reads_the_same(tmp_path: Path) -> None:
    lists: Lists = {'it\'s, "so"': ["a\nb", "ü"], "b": ["c"]}
    policy = policy_of(tmp_path, lists)
    exported(policy, "csv", tmp_path)
    frame = pandas.read_csv(tmp_path / "exported", keep_default_na=False)
    assert list(frame.itertuples(index=False, name=None)) == policy.lists().fetchall()
