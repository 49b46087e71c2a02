"""A bounded part of ``make fuzz``: damaged files for every reader."""

import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz import READERS, Change, changes, read

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
    @settings(max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(changes)
    def any_change(made: list[Change]) -> None:
        answer = read(name, made, tmp_path)
        assert not answer.startswith(("TRACEBACK", "HANG")), answer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert read(name, [], tmp_path) == "ok"
        for made in BEFORE.get(name, [])[::5]:
            answer = read(name, made, tmp_path)
            assert not answer.startswith(("TRACEBACK", "HANG")), answer
        any_change()
