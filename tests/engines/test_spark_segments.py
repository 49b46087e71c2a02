"""Segments and Spark: a log that names them is counted as one that does not, and such counts serve the gate."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import prudent
from tests.evaluation.test_confounding_by_segment import simulate

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


def test_a_policy_from_counts_of_spark_is_gated_by_segment(quick: SparkSession, tmp_path: Path) -> None:
    train, holdout = (simulate(0, knows=1.2, likes=1.2).slice(first, 1_000) for first in (0, 1_000))
    pq.write_table(train, tmp_path / "train.parquet")
    pq.write_table(holdout, tmp_path / "holdout.parquet")
    log = prudent.Log(tmp_path / "train.parquet", segment=["device", "coin"])
    counted = [
        prudent.count(log),
        prudent.count(log, engine=prudent.Spark(quick)),
        prudent.count(tmp_path / "train.parquet"),
    ]
    verdicts = []
    for number, counts in enumerate(counted):
        counts.write(tmp_path / f"{number}.parquet")
        policy = prudent.rank(prudent.Counts.read(tmp_path / f"{number}.parquet"), model="pbm")
        asked: dict[str, Any] = {"min_lift": -0.9, "estimator": "dm(model=pbm)", "segment": ["device", "coin"]}
        verdicts.append(prudent.gate(policy, tmp_path / "holdout.parquet", **asked))
        again = prudent.gate(policy, tmp_path / "train.parquet", **asked)
        assert again.verdict == "unknown"
        assert not again.segments, "a training log is not tested"
    assert verdicts[0].to_json() == verdicts[1].to_json() == verdicts[2].to_json()
    device, coin = verdicts[0].segments
    assert (device.found, coin.found) == (True, False)
    assert "depend on 'device'" in verdicts[0].why


def test_segments_of_a_frame_of_spark_are_ignored_in_counting(quick: SparkSession) -> None:
    """Of any type, also one that Spark has and counts do not."""
    rows = [("q", ["a", "b"], [1, 0], {"kind": "phone"}), ("q", ["b", "a"], [0, 1], None)]
    frame = quick.createDataFrame(
        rows, "context string, items array<string>, clicks array<int>, device map<string,string>"
    )
    spark = prudent.count(prudent.Log(frame, segment="device"), engine=prudent.Spark(quick))
    plain = pa.table({"context": ["q", "q"], "items": [["a", "b"], ["b", "a"]], "clicks": [[1, 0], [0, 1]]})
    assert spark == prudent.count(plain)
