"""Spark: counts logs that lie on a cluster, or wherever else it can read, and writes folders of part files."""

import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING

from prudent.base.errors import UsageError
from prudent.logs.log import Log
from prudent.storage.manifest import Tally

# pyspark is optional and takes long to import: what needs it is imported where it is used.
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOBER = {
    "spark.app.name": "prudent",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
_ALONE = {"spark.driver.host": "localhost", "spark.driver.bindAddress": "127.0.0.1"}  # nothing listens to the network


@dataclass(frozen=True)
class Spark:
    """The engine for logs on a cluster: in a session that you have, or that is active, or in a new one on this machine.

    It counts what DuckDB counts and rejects what DuckDB rejects. Logs are files wherever Spark can read (``hdfs://``,
    ``s3a://``, globs, folders of Parquet files) or Spark's DataFrames. What you have set in a session stays as it is.

    Unsigned integers of 64 bits, which Parquet files may hold, have no place in Spark: as names they are an error.
    """

    session: "SparkSession | None" = None

    def __post_init__(self) -> None:
        if find_spec("pyspark") is None:
            raise UsageError("Spark needs pyspark: pip install 'prudent[spark]'")
        if self.session is not None:
            check_session(self.session)

    @classmethod
    def start(cls, master: str = "local[*]", conf: Mapping[str, str] | None = None) -> "Spark":
        """Start Spark on this machine, or on the cluster of a master, with settings such as ``spark.driver.memory``.

        Its Java side says nothing, unless you set ``spark.log.level``. Where Spark runs in this process already, it is
        that one, with the settings that can still be changed.
        """
        return replace(cls(), session=_start(master, dict(conf or {})))

    def histogram(self, log: Log, query: str, target: Path) -> Tally:
        """See `Engine.histogram`."""
        from prudent.engines.spark import count as spark_jobs

        with spark_jobs.counting(self.running, log, query) as job:
            return job.write_counts_file(target, log.left_out)

    def write_counts(
        self, log: Log, query: str, target: str, check: Callable[[Tally], object] = lambda tally: None
    ) -> Tally:
        """Run the query of `histogram` and write its rows to a folder of Parquet files, anywhere that Spark can write.

        The folder gets its name when all is written and `check` did not object; one of that name, with counts in it, is
        replaced. On this machine and on HDFS that is whole or not at all. S3 and its like have no renames: who reads
        while files are copied there may see a part of them.
        """
        from prudent.engines.spark import count as spark_jobs

        with spark_jobs.counting(self.running, log, query) as job:
            return job.write_counts_folder(target, check)

    @property
    def running(self) -> "SparkSession":
        """The session that was given, or the active one, or a new one on this machine."""
        from pyspark.sql import SparkSession

        return self.session or SparkSession.getActiveSession() or _start("local[*]", {})


def check_session(session: object) -> None:
    """Counting needs the Java side of a session: its file systems, and what it throws."""
    if not hasattr(session, "_jsparkSession"):
        raise UsageError(
            "Spark counts in a session with a Java side in this process, as SparkSession.builder.master(...) makes it, "
            f"and not in a {type(session).__module__}.{type(session).__name__}."
        )


def _start(master: str, conf: dict[str, str]) -> "SparkSession":
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    from prudent.engines.spark.hadoop import JAVA_ERRORS, causes

    alone = _ALONE if master.startswith("local") else {}
    if alone:  # on this machine, workers are to find what we find, prudent above all
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = SparkConf().setAll([*{**_SOBER, **alone, **conf, "spark.master": master}.items()])
    # Java inherits where we write to. What it says there on its way up is of no use, unless it does not arrive.
    with tempfile.TemporaryFile() as said, warnings.catch_warnings():
        # pyspark looks for pandas, of which nothing here makes use.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        quiet = {} if "spark.log.level" in conf else {"stdout": subprocess.DEVNULL, "stderr": said}
        try:
            if SparkContext._gateway is None:
                SparkContext(conf=settings, gateway=launch_gateway(settings, quiet))  # type: ignore[no-untyped-call]
            return SparkSession.builder.config(conf=settings).getOrCreate()
        except JAVA_ERRORS as error:
            raise UsageError(_why_not(said, causes(error)[-1])) from error


def _why_not(said: IO[bytes], error: str) -> str:
    """Why Spark does not start, in one sentence."""
    said.seek(0)
    lines = [line for line in said.read().decode(errors="replace").splitlines() if line.strip()]
    everything = "\n".join(lines)
    if re.search("UnsupportedClassVersionError|Unrecognized option: --add|Unrecognized VM option", everything):
        return "Spark needs Java 17 or newer, and the one it finds is older. Set JAVA_HOME to a newer one."
    if re.search("JAVA_HOME is not set|bin/java|java: (command )?not found", everything):
        return "Spark needs Java 17 or newer, and finds none. Install it, or set JAVA_HOME."
    telling = re.search(r"^(?:Exception in .*?: |Error: )(.+)$", everything, re.MULTILINE)
    return f"Spark does not start: {telling[1] if telling else error.splitlines()[0].rstrip('.')}."
