"""Data and provenance are one file: a kill between two renames cannot mix those of two outputs."""

import json
import shutil
import warnings
from pathlib import Path

import duckdb
import pytest

import prudent
from prudent.storage.files import manifest_path
from prudent.storage.manifest import Manifest
from tests.command import run


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    duckdb.execute(
        "copy (select 'c' || i % 9 as context, [i % 5, 5, 6] as items, [i % 2, i % 3 // 2, 0] as clicks "
        "from range(900) t(i)) to 'log.parquet'"
    )
    return "log.parquet"


def beside(file: str) -> Manifest:
    return Manifest.from_text(manifest_path(file).read_text(), file)


def test_every_parquet_file_has_its_manifest_inside(log: str) -> None:
    prudent.split(log, "parts")
    prudent.count("parts/train.parquet", to="counts.parquet")
    prudent.count(log, to="days", day="2026-11-01")
    prudent.count(log, to="days", day="2026-11-02")
    prudent.rank("counts.parquet", model="cm", to="policy.parquet", scores="scores.parquet")
    prudent.rank("counts.parquet", model="cm", bound="mle", to="other.parquet")
    prudent.diff("policy.parquet", "other.parquet", to="diff.parquet")
    prudent.simulate("simulated.parquet", truth="truth.parquet", lists=20, contexts=2)
    prudent.compact("days", before="2026-11-03")
    written = sorted(str(file) for file in Path().rglob("*.parquet") if str(file) != log)
    assert len(written) == 10
    for file in written:
        copy = beside(file)
        manifest_path(file).unlink()
        assert Manifest.read(file) == copy, file


def test_the_one_inside_wins_with_a_word(log: str) -> None:
    prudent.rank(log, model="cm", to="policy.parquet")
    mine = Manifest.read("policy.parquet")
    for forged in (Manifest("policy", {"model": "pbm"}).to_text(), "{", "[]"):
        manifest_path("policy.parquet").write_text(forged)
        with pytest.warns(prudent.PrudentWarning, match=r"policy\.parquet\.manifest\.json is not the manifest of"):
            assert prudent.Policy.read("policy.parquet").manifest == mine
    manifest_path("policy.parquet").write_text(json.dumps(mine.to_json() if mine else None))  # of other blanks
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert prudent.Policy.read("policy.parquet").manifest == mine


def test_a_policy_beside_the_manifest_of_another_does_not_pass_on_its_training_log(log: str) -> None:
    """Killed between two renames, the gate believed what the old manifest said about the new policy."""
    prudent.split(log, ".")
    prudent.rank("train.parquet", model="cm", to="policy.parquet")
    old = manifest_path("policy.parquet").read_text()
    prudent.rank("holdout.parquet", model="cm", to="policy.parquet")
    manifest_path("policy.parquet").write_text(old)
    done = run("gate", "policy.parquet", "--log", "holdout.parquet")
    assert done.code == 1
    assert "These are the lists that the policy learned from" in done.text


def test_parts_of_two_splits_are_told_apart(log: str) -> None:
    prudent.split(log, ".")
    train, holdout = (Manifest.read(f"{part}.parquet") for part in ("train", "holdout"))
    assert train
    assert holdout
    assert train.settings["id"] == holdout.settings["id"]
    shutil.copy("holdout.parquet", "old.parquet")
    prudent.split(log, ".", seed=1)
    shutil.move("old.parquet", "holdout.parquet")  # killed before the second rename
    prudent.rank("train.parquet", model="cm", to="policy.parquet")
    done = run("gate", "policy.parquet", "--log", "holdout.parquet")
    assert done.code == 1
    assert "parts of different splits" in done.text


def test_the_id_of_a_split_is_that_of_its_content(log: str) -> None:
    prudent.split(log, ".")
    duckdb.execute("copy (from 'log.parquet' order by hash(context)) to 'shuffled.parquet'")
    prudent.split("shuffled.parquet", "again")
    prudent.split(log, "other", holdout=0.3)
    ids = [Manifest.read(f"{folder}/train.parquet") for folder in (".", "again", "other")]
    assert [made.settings["id"] == ids[0].settings["id"] for made in ids if made and ids[0]] == [True, True, False]
