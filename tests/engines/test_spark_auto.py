"""The seventh way from a log to lists: Spark chooses the same click model and the same lists."""

from pathlib import Path

from pyspark.sql import SparkSession

import prudent
from tests.contract import test_one_auto
from tests.contract.test_one_auto import answer, expected

folder = test_one_auto.folder  # a fixture


def test_spark_gives_the_same_lists(folder: Path, session: SparkSession) -> None:
    spark = prudent.Spark(session)
    ranked = prudent.rank(folder / "counts.parquet", engine=spark, to=folder / "on-spark")
    counted = prudent.count(prudent.Log(folder / "log.parquet"), engine=spark)
    assert answer(ranked) == answer(prudent.rank(counted)) == expected(folder)
