"""A bounded part of ``make fuzz``: damaged and hostile files for every reader, counted as a plain loop counts them."""

import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz import READERS, WRONG, Change, apart, changed, inputs, read, seeds

BEFORE = {
    # What once was a traceback or a hang.
    "lists.gz": [[Change(0.5, "flip", b"x")], [Change(0.9, "cut", b"")]],
    "lists.jsonl": [[Change(0.5, "insert", b"[" * 100_000)]],
    "rows.csv": [[Change(0.0, "insert", b"x" * 200_000)]],
    "counts.parquet": [[Change(place / 40, "flip", b"xyz")] for place in range(40)],
    "policy.parquet": [[Change(place / 40, "flip", b"xyz")] for place in range(40)],
    "manifest.json": [[Change(0.5, "insert", b"[" * 100_000)], [Change(0.5, "replace", b"\xff")]],
}


@pytest.mark.parametrize("name", READERS)
def test_no_traceback(name: str, tmp_path: Path) -> None:
    @settings(max_examples=5, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(inputs(name))
    def any_input(content: bytes) -> None:
        answer = read(name, content, tmp_path)
        assert not answer.startswith(WRONG), answer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in seeds():
            assert read(name, seeds()[name], tmp_path) in ("ok", "compared")
        for made in BEFORE.get(name, [])[::5]:
            answer = read(name, changed(seeds()[name], made), tmp_path)
            assert not answer.startswith(WRONG), answer
        any_input()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("hostile lists.jsonl", b'\n\v{"context": 1, "items": [2, 3], "clicks": [1, 1]}\f\n\v\n'),
        ("hostile lists.jsonl", b'{"context": "a,]", "items": ["b", "c"], "clicks": [1, 1,],}'),
        ("hostile rows.jsonl", b'{"impression": 1, "context": 1, "item": 1, "position": true, "click": 0}'),
    ],
)
def test_once_different(name: str, content: bytes, tmp_path: Path) -> None:
    """What a run of ``make fuzz`` kept: the loop was wrong."""
    assert read(name, content, tmp_path) == "compared"


def test_a_difference_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.plain_counter.MOST", 2)
    for name in ("lists.jsonl", "rows.csv", "ubi.jsonl", "yandex.tsv"):
        assert read(name, seeds()[name], tmp_path).startswith(f"DIFFERENCE {name} lists: ")


def test_what_differs_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.plain_counter.MOST", 2)
    keep = tmp_path / "kept"
    keep.mkdir()
    answer = read("lists.jsonl", seeds()["lists.jsonl"], tmp_path, keep)
    assert (keep / answer.rpartition(" ")[2]).read_bytes() == seeds()["lists.jsonl"]


@pytest.mark.slow
def test_a_process_that_dies_is_a_crash(tmp_path: Path) -> None:
    assert apart("no reader", 7, 1, tmp_path) == ["CRASH no reader exit code 1, seed 7 "]
