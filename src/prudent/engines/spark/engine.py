"""Spark: counts and ranks on a cluster, and writes folders of part files."""

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
    from pyarrow.fs import FileSystem
    from pyspark.sql import SparkSession

    from prudent.storage.filesystem import Location

_QUIET = {
    "spark.app.name": "prudent",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
_ALONE = {"spark.driver.host": "localhost", "spark.driver.bindAddress": "127.0.0.1"}  # nothing listens to the network


@dataclass(frozen=True)
class Spark:
    """The engine on many machines: in this session, in the active one, or in a new one on this machine.

    It counts what DuckDB counts and rejects what DuckDB rejects. Logs are files wherever Spark reads (``s3a://``,
    ``hdfs://``, patterns, folders of Parquet files) or Spark's DataFrames. Settings of the session do not change.

    Spark reads and writes the rows. This process lists files, reads footers and writes manifests, through pyarrow: it
    opens ``s3a://``, ``s3://``, ``gs://``, ``abfs://`` and ``hdfs://`` (with libhdfs) with the credentials of the
    environment. For other schemes or settings pass a `pyarrow.fs.FileSystem`, such as
    ``S3FileSystem(endpoint_override=...)``, which then opens every path that has a scheme.

    Unsigned integers of 64 bits, which Parquet files may hold, do not exist in Spark: as names they are an error.

    >>> import prudent
    >>> engine = prudent.Spark()  # the active session or, when it is needed, a new one on this machine
    >>> engine.session is None
    True
    >>> counts = prudent.count("s3a://bucket/clicks", engine=engine, to="s3a://bucket/counts")  # doctest: +SKIP
    """

    session: "SparkSession | None" = None
    filesystem: "FileSystem | None" = None

    def __post_init__(self) -> None:
        if find_spec("pyspark") is None:
            raise UsageError("Spark needs pyspark: pip install 'prudent[spark]'")
        if self.session is not None and not hasattr(self.session, "newSession"):
            raise UsageError(
                "Spark takes a SparkSession, as SparkSession.builder.master(...).getOrCreate() makes it, not a "
                f"{type(self.session).__module__}.{type(self.session).__name__}."
            )

    @classmethod
    def start(cls, master: str = "local[*]", conf: Mapping[str, str] | None = None) -> "Spark":
        """Start Spark on this machine, or on the cluster of a master, with settings such as ``spark.driver.memory``.

        Java prints nothing, unless you set ``spark.log.level``. Where Spark runs in this process already, that one is
        used, with the settings that can still be changed.
        """
        return replace(cls(), session=_start(master, dict(conf or {})))

    def count(self, log: Log, to: "Path | Location", *, check: Callable[[Tally], object]) -> Tally:
        """See `Engine.count`; where `to` is a `Location`, it becomes a folder of part files.

        The folder gets its name when it is complete. On this machine and on HDFS that is one step. Object stores have
        no rename: a reader may see old and new files while they are copied.
        """
        from prudent.engines.spark.count import counting

        with counting(self.running, log, self.filesystem) as job:
            return job.write_file(to, check) if isinstance(to, Path) else job.write_folder(to, check)

    @property
    def running(self) -> "SparkSession":
        """The session of this engine, or the active one, or a new one on this machine."""
        from pyspark.sql import SparkSession

        return self.session or SparkSession.getActiveSession() or _start("local[*]", {})


def _start(master: str, conf: dict[str, str]) -> "SparkSession":
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    from prudent.engines.spark.errors import JAVA_ERRORS, messages

    alone = _ALONE if master.startswith("local") else {}
    if alone:  # on this machine, workers import what this process imports, prudent above all
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = SparkConf().setAll([*{**_QUIET, **alone, **conf, "spark.master": master}.items()])
    # Java inherits standard error. What it prints while it starts is of use only when it fails.
    with tempfile.TemporaryFile() as output, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        quiet = {} if "spark.log.level" in conf else {"stdout": subprocess.DEVNULL, "stderr": output}
        try:
            if SparkContext._gateway is None:  # private, but nothing public tells whether Java runs already
                SparkContext(conf=settings, gateway=launch_gateway(settings, quiet))  # type: ignore[no-untyped-call]
            return SparkSession.builder.config(conf=settings).getOrCreate()
        except JAVA_ERRORS as error:
            raise UsageError(_why_not(output, messages(error)[-1])) from error


def _why_not(output: IO[bytes], error: str) -> str:
    """Why Spark does not start, in one sentence."""
    output.seek(0)
    lines = [line for line in output.read().decode(errors="replace").splitlines() if line.strip()]
    everything = "\n".join(lines)
    if re.search("UnsupportedClassVersionError|Unrecognized option: --add|Unrecognized VM option", everything):
        return "Spark needs Java 17 or newer, and the one it finds is older. Set JAVA_HOME to a newer one."
    if re.search("JAVA_HOME is not set|bin/java|java: (command )?not found", everything):
        return "Spark needs Java 17 or newer, and finds none. Install it, or set JAVA_HOME."
    error_line = re.search(r"^(?:Exception in .*?: |Error: )(.+)$", everything, re.MULTILINE)
    return f"Spark does not start: {error_line[1] if error_line else error.splitlines()[0].rstrip('.')}."
