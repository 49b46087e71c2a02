"""One Spark for all tests of it, on two cores, started only where one of them runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem
from pyspark.sql import SparkSession

import prudent

# For the tests: the quicker compiler is enough for tiny logs, and one task for what is shuffled.
CONF = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.default.parallelism": "2",
    "spark.sql.shuffle.partitions": "2",
}
# What Spark prepares for large data takes longer than tiny logs take without it.
QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}


HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test in a file or folder named for Spark needs Spark."""
    for item in items:
        if item.path.is_relative_to(HERE) and "spark" in str(item.path.relative_to(HERE)):
            item.add_marker("spark")


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that Spark knows as ``viewfs://elsewhere/logs/``, which is not a path on this machine."""
    folder = tmp_path_factory.mktemp("remote") / "elsewhere/logs"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture(scope="session")
def session(elsewhere: Path) -> Iterator[SparkSession]:
    mount = {"spark.hadoop.fs.viewfs.mounttable.elsewhere.link./logs": f"file:{elsewhere}"}
    session = prudent.Spark.start("local[2]", CONF | mount).session
    assert session is not None
    yield session
    session.stop()


@pytest.fixture
def remote(quick: SparkSession, elsewhere: Path) -> prudent.Spark:
    """Spark with a file system of pyarrow's that knows the same folder under the same name."""
    return prudent.Spark(quick, SubTreeFileSystem(str(elsewhere.parents[1]), LocalFileSystem()))


@pytest.fixture(scope="session")
def quick(session: SparkSession) -> SparkSession:
    """For DataFrames of a few rows."""
    quick = session.newSession()
    for key, value in QUICK.items():
        quick.conf.set(key, value)
    return quick


@pytest.fixture(autouse=True, scope="module")
def counts_in_files() -> Iterator[None]:
    """Those of DuckDB too, though they would fit into memory: files are compared."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prudent.engines.duckdb.engine._KEPT", -1)  # not even empty ones
        yield
