"""Rules are what the documentation of Elasticsearch asks for, within its limits; there is no server to ask here.

Limits: 100 rules in a ruleset, up to 1,000 by xpack.applications.rules.max_rules_per_ruleset; 100 documents in a rule;
10 rulesets in a search (https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-query-rules-put-ruleset).
"""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import prudent
from prudent.base.errors import PolicyError, PrudentWarning, UsageError
from prudent.policies.export.elasticsearch_rules import ElasticsearchRules
from tests.policies.export.policies import HOSTILE, NUMBERED, Lists, exported, policy_of

TEXT: Lists = {context: [item for item in items if item] for context, items in HOSTILE.items()}  # no _id is empty


def rulesets(content: bytes, limit: int = 100) -> dict[str, list[dict[str, Any]]]:
    """The requests, checked against the documented schema."""
    lines = content.decode().split("\n")
    assert lines.pop() == ""
    actual = {}
    for request, body in zip(lines[::2], lines[1::2], strict=True):
        path = re.fullmatch(r"PUT /_query_rules/([A-Za-z0-9._-]+)", request)
        assert path, request
        (rules,) = json.loads(body).values()
        assert list(json.loads(body)) == ["rules"]
        assert 1 <= len(rules) <= limit
        assert len({rule["rule_id"] for rule in rules}) == len(rules)
        for rule in rules:
            assert set(rule) == {"rule_id", "type", "criteria", "actions"}
            assert rule["type"] == "pinned"
            assert isinstance(rule["rule_id"], str)
            for criterion in rule["criteria"]:
                assert set(criterion) == {"type", "metadata", "values"}
                assert criterion["type"] == "exact"
                assert all(isinstance(value, str) for value in criterion["values"])
            assert list(rule["actions"]) == ["ids"]
            assert 1 <= len(rule["actions"]["ids"]) <= 100
            assert all(isinstance(item, str) for item in rule["actions"]["ids"])
        actual[path[1]] = rules
    assert len(actual) == len(lines) / 2
    return actual


def pinned(sets: dict[str, list[dict[str, Any]]], metadata: str, value: str) -> list[list[str]]:
    """What a search pins, rule by rule."""
    return [
        rule["actions"]["ids"]
        for rules in sets.values()
        for rule in rules
        if all(one["metadata"] == metadata and value in one["values"] for one in rule["criteria"])
    ]


@pytest.mark.parametrize("lists", [TEXT, NUMBERED], ids=["text", "integers"])
def test_every_query_pins_its_list(lists: Lists, tmp_path: Path) -> None:
    sets = rulesets(exported(policy_of(tmp_path, lists), "elasticsearch-rules", tmp_path))
    for context, items in lists.items():
        assert pinned(sets, "user_query", str(context)) == [list(map(str, items))]
    assert not pinned(sets, "user_query", "unheard of")


@pytest.mark.parametrize(("rules", "sizes"), [(100, [100, 100, 50]), (1, [1] * 250), (250, [250]), (249, [249, 1])])
def test_rules_are_split_at_the_limit(rules: int, sizes: list[int], tmp_path: Path) -> None:
    """In the order of contexts, and the manifest says which ruleset has which."""
    lists: Lists = {f"query {i:03}": [f"item {i}"] for i in range(250)}
    target = ElasticsearchRules(name="shop", metadata="q", rules=rules)
    if len(sizes) > 10:
        with pytest.warns(PrudentWarning, match="There are 250 rulesets, and one search names at most 10"):
            manifest = prudent.export(policy_of(tmp_path, lists), tmp_path / "exported", format=target)
    else:
        manifest = prudent.export(policy_of(tmp_path, lists), tmp_path / "exported", format=target)
    sets = rulesets((tmp_path / "exported").read_bytes(), rules)
    assert list(sets) == [f"shop-{number}" for number in range(1, len(sizes) + 1)]
    assert [len(one) for one in sets.values()] == sizes
    for context, items in lists.items():
        (told,) = [one for one in manifest.results["rulesets"] if one["first"] <= context <= one["last"]]
        assert pinned({"": sets[told["ruleset_id"]]}, "q", str(context)) == [list(items)]
    assert [one["rules"] for one in manifest.results["rulesets"]] == sizes
    assert all(before["last"] < after["first"] for before, after in pairwise(manifest.results["rulesets"]))


def test_a_list_of_a_hundred_is_pinned_and_a_longer_one_refused(tmp_path: Path) -> None:
    lists: Lists = {"q": [f"i{i}" for i in range(100)]}
    assert pinned(
        rulesets(exported(policy_of(tmp_path, lists), "elasticsearch-rules", tmp_path)), "user_query", "q"
    ) == [lists["q"]]
    with pytest.raises(UsageError, match=r"has 101 items, and Elasticsearch pins 100\. Rank again with --length 100"):
        exported(policy_of(tmp_path, {"q": [*lists["q"], "more"]}), "elasticsearch-rules", tmp_path)


@pytest.mark.parametrize("item", ["", "x" * 513, "ü" * 257])
def test_what_is_no_id_is_refused(item: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="is not a valid _id"):
        exported(policy_of(tmp_path, {"q": [item]}), "elasticsearch-rules", tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"name": name} for name in ("a/b", "", "?x", 7)),
        {"metadata": ""},
        *({"rules": rules} for rules in (0, 1001, 1.5, "many")),
    ],
)
def test_wrong_usage(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ElasticsearchRules(**wrong)
