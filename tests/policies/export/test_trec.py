"""Runs are read by the tools that measure rankings, in the order of the policy."""

from pathlib import Path
from typing import Any

import ir_measures
import pytest
from ir_measures import RR

from prudent.base.errors import PolicyError, UsageError
from prudent.policies.export.trec import TrecRun
from tests.policies.export.policies import NUMBERED, Lists, exported, policy_of

MANY: Lists = {f"q{i}": [f"d{(i * 7 + k * 13) % 1000}" for k in range(200)] for i in range(5)}


def run_in(path: Path) -> list[Any]:
    return list(ir_measures.read_trec_run(str(path)))  # type: ignore[no-untyped-call]


def read(path: Path) -> dict[str, list[str]]:
    """As all of them do: by score, and by nothing else."""
    actual: dict[str, list[tuple[float, str]]] = {}
    for line in run_in(path):
        actual.setdefault(line.query_id, []).append((line.score, line.doc_id))
    assert all(len({score for score, _ in pairs}) == len(pairs) for pairs in actual.values())
    return {query: [item for _, item in sorted(pairs, reverse=True)] for query, pairs in actual.items()}


@pytest.mark.parametrize("lists", [MANY, NUMBERED, {"ünï": ["日本", "'\"\\"]}], ids=["long", "integers", "unicode"])
def test_is_read_in_the_order_of_the_policy(lists: Lists, tmp_path: Path) -> None:
    """Although bounds go up and down in it, and some are too near to each other for 24 bits."""
    exported(policy_of(tmp_path, lists), "trec-run", tmp_path)
    assert read(tmp_path / "exported") == {str(query): list(map(str, items)) for query, items in lists.items()}


def test_lines(tmp_path: Path) -> None:
    content = exported(policy_of(tmp_path, {"b": ["x", "y"], "a": ["z"]}), "trec-run(tag=mine)", tmp_path)
    assert content == b"a Q0 z 1 1 mine\nb Q0 x 1 2 mine\nb Q0 y 2 1 mine\n"


def test_is_measured(tmp_path: Path) -> None:
    exported(policy_of(tmp_path, {"a": ["x", "y", "z"], "b": ["x", "y", "z"]}), "trec-run", tmp_path)
    relevant = [ir_measures.Qrel("a", "z", 1), ir_measures.Qrel("b", "x", 1)]
    assert ir_measures.calc_aggregate([RR], relevant, run_in(tmp_path / "exported")) == {
        RR: pytest.approx((1 / 3 + 1) / 2)
    }


@pytest.mark.parametrize("space", [*" \t\n\r\v\f\0", "\x1c", "\x85", "\xa0", "\u2003", "\u2028", "\u3000"])
def test_spaces_are_refused(space: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"The item .* has spaces .* Give items other ids"):
        exported(policy_of(tmp_path, {"a": [f"x{space}y"]}), "trec-run", tmp_path)
    with pytest.raises(PolicyError, match=r"The context .* has spaces .* trec-run\(contexts=numbered\)"):
        exported(policy_of(tmp_path, {f"x{space}y": ["a"]}), "trec-run", tmp_path)


def test_whatever_python_splits_at_is_refused(tmp_path: Path) -> None:
    spaces = [chr(code) for code in range(0x3100) if len(f"x{chr(code)}y".split()) > 1]
    lists: Lists = {f"x{space}y": ["a"] for space in spaces}
    with pytest.raises(PolicyError, match=rf"\(and {len(spaces) - 1} others\) has spaces"):
        exported(policy_of(tmp_path, lists), "trec-run", tmp_path)


def test_an_empty_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="The item '' has spaces or is empty"):
        exported(policy_of(tmp_path, {"a": [""]}), "trec-run", tmp_path)


def test_numbers_are_those_of_the_lines_of_json(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, {"running shoes": ["x"], "hats": ["y"], "ä": ["z"]})
    exported(policy, "trec-run(contexts=numbered)", tmp_path)
    numbered = read(tmp_path / "exported")
    assert [numbered[str(number)] for number, _ in enumerate(policy, start=1)] == [["y"], ["x"], ["z"]]
    assert exported(policy, "jsonl", tmp_path).decode().splitlines()[2].startswith('{"context":"ä"')


@pytest.mark.parametrize("wrong", [{"tag": "a b"}, {"tag": ""}, {"tag": 7}, {"contexts": "hashed"}])
def test_wrong_usage(wrong: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        TrecRun(**wrong)
