"""One typed manifest: what is written is read back, and anything else is an error that names the file."""

import glob
import json
import os
import time
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import prudent
from prudent.base.errors import ManifestError
from prudent.storage.manifest import Days, Kind, Manifest, Source, Tally
from tests.command import run
from tests.footers import forge_manifest

FULL = Manifest(
    "policy",
    {"model": "pbm", "bound": "eb", "length": 3, "candidates": None},
    {"training": Source(("a", "b"), Tally(7, {"no context": 1}), Days(date(2026, 1, 2), date(2026, 1, 3), 2))},
    {"summary": {"value": 0.1}, "fitted": {"examination": (1.0, 0.5)}},
)
SOURCE = Source(("a",), Tally(1)).to_json()
DAYS = {"first": "2026-01-02", "last": "2026-01-03"}


def deep(levels: int) -> dict[str, Any]:
    return {} if levels == 0 else {"inside": deep(levels - 1)}


numbers = st.integers(0, 2**63 - 1)
names = st.text(st.characters(exclude_categories=["Cs"]))
tallies = st.builds(Tally, numbers, st.dictionaries(names, numbers), st.dictionaries(names, numbers))
days = st.builds(Days, st.dates(), st.dates(), numbers, st.none() | st.dates(), st.none(), st.none() | st.just(7.0))
sources = st.builds(Source, st.lists(names).map(tuple), tallies, st.none() | days)
plain = st.dictionaries(names, st.recursive(st.none() | st.booleans() | numbers | names, st.lists, max_leaves=5))


@given(st.builds(Manifest, st.just("experiment"), plain, st.dictionaries(names, sources), plain))
def test_written_and_read_back(manifest: Manifest) -> None:
    assert Manifest.from_text(manifest.to_text(), "x", "experiment") == manifest


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
        ("[" * 100_000, "it is nested too deep"),
        ('{"prudent": "1", "prudent": "2"}', "the key 'prudent' is there twice"),
        ("[1]", "manifest has to be an object"),
        ('{"name": "package", "version": 1}', "it was not written by prudent"),
        (broken({"schema": 2}), "it has schema 2, and this prudent reads schema 1"),
        (broken({"kind": "export"}), "it is of kind export"),
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
        (broken({"sources": {"training": {**SOURCE, "days": {**DAYS, "number": 1e400}}}}), "no number Infinity"),
        (broken({"sources": {"training": {**SOURCE, "days": {**DAYS, "number": "2"}}}}), "have to be numbers"),
        (broken({"sources": {"training": {**SOURCE, "lists": -1}}}), "have to be whole numbers, at least 0"),
        (broken({"sources": {"training": {**SOURCE, "rejected": {"empty": -1}}}}), "at least 0"),
        (broken({"results": {"fitted": {"prior": {"a": ["x"]}}}}), "fitted has to have numbers"),
        (broken({"results": {"summary": {"differ": [1]}}}), "summary has to have numbers"),
        (broken({"results": {"summary": {"unit": 7}}}), "unit has to be text"),
        (broken({"results": {"deep": deep(21)}}), "nested more than 20 deep"),
        (broken({"settings": {"length": -1}}), "length has to be a whole number"),
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


@pytest.mark.parametrize("kind", ["counts", "split"])
def test_what_is_made_of_a_log_names_it(kind: Kind) -> None:
    with pytest.raises(ManifestError, match="it names no log"):
        Manifest.from_text(Manifest(kind).to_text(), "x")


def test_what_is_no_file(tmp_path: Path) -> None:
    """A named pipe would be read for ever, and a folder or an endless file is an error that names it."""
    pipe, folder, endless = (tmp_path / f"{name}.parquet.manifest.json" for name in ("pipe", "folder", "endless"))
    os.mkfifo(pipe)
    folder.mkdir()
    with endless.open("wb") as file:
        file.truncate(1 << 30)
    for name in ("pipe", "folder", "endless"):
        with pytest.raises(ManifestError, match=rf"^Cannot read .*{name}\.parquet\.manifest\.json: "):
            Manifest.read(tmp_path / f"{name}.parquet")


# --- what stands in a manifest is believed by nobody --------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A policy, and a holdout."""
    tmp_path = tmp_path_factory.mktemp("trained")
    for name in ("log", "holdout"):
        duckdb.execute(
            f"copy (select 'c' || i % 9 as context, ['a', 'b', 'c'] as items, [i % 2, i % 3 // 2, 0] as clicks "
            f"from range(300) t(i)) to '{tmp_path / name}.parquet'"
        )
    prudent.rank(tmp_path / "log.parquet", model="cm", to=tmp_path / "policy.parquet")
    return tmp_path / "policy.parquet", tmp_path / "holdout.parquet"


@pytest.mark.parametrize("name", ["/**", "/", "~", "x" * 5000, "a\0b", "*/" * 40, "/proc/self/fd/*", "[" * 99])
def test_names_in_it_are_not_patterns(name: str, trained: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(*_: object, **__: object) -> None:
        raise AssertionError("the disk is walked")

    policy, holdout = trained
    forge_manifest(policy, sources={"training": {**SOURCE, "inputs": [name]}})
    monkeypatch.setattr(os, "walk", walk)
    monkeypatch.setattr(glob, "glob", walk)
    assert run("gate", policy, "--log", holdout).code == 1  # as it would be without the name


@pytest.mark.parametrize("field", ["model", "bound"])
@pytest.mark.parametrize(
    "spelled", ["cm" + " " * 50_000 + "x", "cm(a=b" + " " * 50_000 + "c)", "[" * 5000, "cm(a=" * 900 + ")" * 900]
)
def test_spellings_in_it_take_no_time(field: str, spelled: str, trained: tuple[Path, Path]) -> None:
    policy, holdout = trained
    forge_manifest(policy, settings={field: spelled})
    started = time.monotonic()
    assert run("report", policy, "--log", holdout, "-o", policy.with_suffix(".html")).code in (0, 2, 3)
    assert time.monotonic() - started < 5


def test_a_pattern_is_recorded_as_its_files(trained: tuple[Path, Path]) -> None:
    folder = trained[0].parent
    counts = prudent.count(str(folder / "[lh]o*.parquet"))
    assert counts.origin == (str(folder / "holdout.parquet"), str(folder / "log.parquet"))
