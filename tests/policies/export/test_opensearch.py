"""Requests are what the bulk API of OpenSearch asks for; there is no server to ask here.

https://docs.opensearch.org/latest/api-reference/document-apis/bulk/
"""

import json
from pathlib import Path

import pytest

from prudent.base.errors import PolicyError, UsageError
from prudent.policies.export.opensearch import OpenSearch
from tests.policies.export.policies import Lists, exported, policy_of


def test_every_context_is_an_action_and_a_document(tmp_path: Path) -> None:
    lists: Lists = {2**60 + 1: [2**61 + 1, 7], 5: [7]}
    content = exported(policy_of(tmp_path, lists), "opensearch(index=shop-7)", tmp_path)
    lines = [json.loads(line) for line in content.decode().split("\n")[:-1]]
    assert content.endswith(b"\n")  # or the last line would not be read
    assert lines[::2] == [{"index": {"_index": "shop-7", "_id": name}} for name in ("5", str(2**60 + 1))]
    assert [(one["context"], one["items"]) for one in lines[1::2]] == [
        ("5", ["7"]),
        (str(2**60 + 1), [str(2**61 + 1), "7"]),
    ]
    assert all(set(one) == {"context", "items", "lower"} for one in lines[1::2])


@pytest.mark.parametrize("index", ["Shop", "_shop", "-shop", "a b", "", 7, "a" * 300, "a/b", "a*"])
def test_an_index_that_opensearch_would_refuse_is_an_error(index: object) -> None:
    with pytest.raises(UsageError, match="an index has lower-case letters"):
        OpenSearch(index)  # type: ignore[arg-type]


@pytest.mark.parametrize("context", ["", "é" * 257])
def test_a_context_that_is_no_id_is_refused(context: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="which has 1 to 512 bytes"):
        exported(policy_of(tmp_path, {context: ["a"]}), "opensearch", tmp_path)
    assert exported(policy_of(tmp_path, {"é" * 256: ["a"]}), "opensearch", tmp_path)
