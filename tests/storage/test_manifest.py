"""One typed manifest: what is written is read back, and anything else is an error that names the file."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prudent.base.errors import ManifestError
from prudent.storage.manifest import Days, Manifest, Source, Tally

FULL = Manifest(
    "policy",
    {"model": "pbm", "bound": "eb", "length": 3, "candidates": None},
    {"training": Source(("a", "b"), Tally(7, {"no context": 1}), Days(date(2026, 1, 2), date(2026, 1, 3), 2))},
    {"summary": {"value": 0.1}, "fitted": {"examination": (1.0, 0.5)}},
)
SOURCE = Source(("a",), Tally(1)).to_json()

numbers = st.integers(0, 2**63 - 1)
names = st.text(st.characters(exclude_categories=["Cs"]))
tallies = st.builds(Tally, numbers, st.dictionaries(names, numbers), st.dictionaries(names, numbers))
days = st.builds(Days, st.dates(), st.dates(), numbers, st.none() | st.dates(), st.none(), st.none() | st.just(7.0))
sources = st.builds(Source, st.lists(names).map(tuple), tallies, st.none() | days)
plain = st.dictionaries(names, st.recursive(st.none() | st.booleans() | numbers | names, st.lists, max_leaves=5))


@given(st.builds(Manifest, st.just("counts"), plain, st.dictionaries(names, sources), plain))
def test_written_and_read_back(manifest: Manifest) -> None:
    assert Manifest.from_text(manifest.to_text(), "x", "counts") == manifest


def test_beside_its_output(tmp_path: Path) -> None:
    assert Manifest.read(tmp_path / "policy.parquet") is None
    FULL.write(tmp_path / "policy.parquet")
    assert Manifest.read(tmp_path / "policy.parquet", "policy") == FULL


def broken(change: dict[str, Any]) -> str:
    return json.dumps({**FULL.to_json(), **change})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[1]", "manifest has to be an object"),
        ('{"name": "package", "version": 1}', "it was not written by prudent"),
        (broken({"schema": 2}), "it has schema 2, and this prudent reads schema 1"),
        (broken({"kind": "counts"}), "it is of kind counts"),
        (broken({"kind": ["policy"]}), r"its kind is \['policy'\]"),
        (broken({"settings": []}), "settings has to be an object"),
        (broken({"results": None}), "results has to be an object"),
        (broken({"results": {"fitted": "x"}}), "fitted has to be an object"),
        (broken({"results": {"summary": []}}), "summary has to be an object"),
        (broken({"results": {"summary": {"differ": "x"}}}), "summary has to have numbers"),
        (broken({"settings": {"length": "3"}}), "length has to be a whole number"),
        (broken({"settings": {"bound": 7}}), "bound has to be text"),
        (broken({"sources": {"training": 1}}), "source has to be an object"),
        (broken({"sources": {"training": {"inputs": "a"}}}), "inputs have to be a list of names"),
        (broken({"sources": {"training": {"inputs": ["a"]}}}), "rejected has to be an object"),
        (broken({"sources": {"training": {**SOURCE, "lists": 1.5}}}), "have to be whole numbers"),
        (broken({"sources": {"training": {**SOURCE, "days": {"first": 1}}}}), "Invalid isoformat string"),
        (broken({"sources": {"training": {**SOURCE, "days": {}}}}), "days have no first or no last day"),
    ],
)
def test_what_is_no_manifest(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "policy.parquet.manifest.json").write_text(text)
    with pytest.raises(ManifestError, match=rf"parquet\.manifest\.json is not a manifest of kind policy: .*{why}"):
        Manifest.read(tmp_path / "policy.parquet", "policy")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.manifest.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ManifestError, match=r"Cannot read .*x\.manifest\.json"):
        Manifest.read(tmp_path / "x")


def test_tallies_add() -> None:
    both = Tally(1, {"no context": 2}) + Tally(3, {"no context": 1, "empty list": 4}, {"clicks": 1})
    assert both == Tally(4, {"no context": 3, "empty list": 4}, {"clicks": 1})
    assert both.reasons == ["4 × empty list", "3 × no context"]
