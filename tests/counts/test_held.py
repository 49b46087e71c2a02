"""Counts that stay in memory are those that a file would hold, and give the same bytes."""

from pathlib import Path

import numpy as np
import pytest

import prudent
from prudent.click_models.simulate import write_log
from prudent.click_models.world import make_world
from prudent.engines.duckdb import engine


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("log") / "log.parquet"
    write_log(make_world("pbm", contexts=30, items=(3, 12), seed=1), 2_000, file, seed=1)
    return file


def test_counts_in_memory_are_written_as_the_same_bytes(log: Path, tmp_path: Path) -> None:
    held = prudent.count(log)
    assert held.held is not None
    assert held.files == ()
    held.write(tmp_path / "held.parquet")
    prudent.count(log, to=tmp_path / "counted.parquet")
    assert (tmp_path / "held.parquet").read_bytes() == (tmp_path / "counted.parquet").read_bytes()


def test_memory_and_files_agree_in_all_that_is_asked_of_counts(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = prudent.count(log)
    monkeypatch.setattr(engine, "_KEPT", 0)
    filed = prudent.count(log)
    assert filed.held is None
    assert filed.files[0].exists()
    assert held == filed
    assert held + held == filed + filed
    assert held.training == filed.training
    assert held.index.clicks == filed.index.clicks
    for name in ("context", "items", "clicks", "n"):
        np.testing.assert_array_equal(getattr(held.sample(), name), getattr(filed.sample(), name))


def test_a_policy_does_not_depend_on_where_its_counts_were(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prudent.rank(log, "pbm", to=tmp_path / "held.parquet")
    monkeypatch.setattr(engine, "_KEPT", 0)
    prudent.rank(log, "pbm", to=tmp_path / "filed.parquet")
    assert (tmp_path / "held.parquet").read_bytes() == (tmp_path / "filed.parquet").read_bytes()


def test_a_full_disk_is_reported_where_counts_leave_memory(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = prudent.count(log)
    monkeypatch.setattr("prudent.storage.files.tempfile.tempdir", "/nowhere")
    with pytest.raises(prudent.PrudentError, match="Cannot make a temporary folder"):
        _ = held.sql
