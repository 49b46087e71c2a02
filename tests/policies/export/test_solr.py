"""elevate.xml is what the documentation of Solr asks for; there is no server to ask here.

https://solr.apache.org/guide/solr/latest/query-guide/query-elevation-component.html
"""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from prudent.base.errors import PolicyError
from tests.policies.export.policies import Lists, exported, policy_of

SHOP: Lists = {"tent": ["t2", "t1"], 'a "b" & <c>\n': ["x\ty", "'"]}


def test_every_context_is_a_query_with_its_documents_in_order(tmp_path: Path) -> None:
    content = exported(policy_of(tmp_path, SHOP), "solr", tmp_path)
    assert content.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\n<elevate>\n')
    root = ElementTree.fromstring(content)
    assert root.tag == "elevate"
    assert {(one.tag, tuple(one.attrib)) for one in root} == {("query", ("text",))}
    assert {(doc.tag, tuple(doc.attrib)) for one in root for doc in one} == {("doc", ("id",))}
    assert {one.attrib["text"]: [doc.attrib["id"] for doc in one] for one in root} == SHOP


@pytest.mark.parametrize("name", ["", "\x1b[31m", "a\x00b", "\x0b", "\ufffe", "\uffff"])
def test_what_xml_cannot_hold_is_refused(name: str, tmp_path: Path) -> None:
    for lists in ({name: ["a"]}, {"a": [name]}):
        with pytest.raises(PolicyError, match="is empty or has a character that XML cannot hold"):
            exported(policy_of(tmp_path, lists), "solr", tmp_path)  # type: ignore[arg-type]
