"""What Spark and Java raise, as messages of one line. Needs pyspark."""

import re
from collections.abc import Sequence
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from prudent.base.errors import LogError, PrudentError, WriteError
from prudent.engines.duckdb.open import opened
from prudent.logs.log import Log
from prudent.storage import filesystem
from prudent.storage.database import Database
from prudent.storage.filesystem import Location

JAVA_ERRORS = (Py4JError, PySparkException)
"""The two forms in which an error of Java arrives in Python."""


def messages(error: Exception) -> list[str]:
    """The messages of an error and its causes, without the stack trace, from the outermost to the first cause."""
    text = re.sub(r"^An error occurred while calling \S+\n: ", "", str(error) or type(error).__name__)
    causes = re.split(r"^Caused by: ", text, flags=re.MULTILINE)
    return [_message(cause) for cause in causes]


def _message(text: str) -> str:
    """A message ends where the stack trace begins; the name of the exception before it is dropped."""
    lines = re.split(r"\n\s*(?:at |\.\.\. \d+ more|JVM stacktrace:)", text)[0]
    return re.sub(r"^[\w.$]+(?:Exception|Error): ", "", lines).strip() or text.splitlines()[0]


def first_line(message: str) -> str:
    """The first line of a message without Spark's codes."""
    line = next((line for line in message.splitlines() if line.strip()), "no reason given")
    return re.sub(r"^\[[\w.]+\] |\s*SQLSTATE: \w+.*$", "", line).strip().rstrip(".")


def explain(error: Exception, log: Log, files: Sequence[Location]) -> PrudentError:
    """Spark's error as one of prudent's: which file, and what to do."""
    causes = messages(error)
    everything = "\n".join(causes)
    if full := re.search("No space left on device|Disk quota exceeded|Read-only file system", everything):
        return WriteError(f"Spark cannot write: {full[0]}.")
    if fault := re.search(r"USER_RAISED_EXCEPTION\] (\S+)\t([^\n]*?)\.? SQLSTATE", everything):
        return explain_file(fault[1], fault[2], log, files)
    if file := re.search(r"Encountered error while reading file (\S+)\.\s", everything):
        damaged = (
            f"Cannot read {_name(file[1], files)}: {first_line(causes[-1])}. Write or copy it again: it is damaged."
        )
        return _ask_duckdb(log, files) or LogError(damaged)
    return LogError(f"Spark cannot count {log.name}: {first_line(causes[-1])}.")


def explain_file(uri: str, what: str, log: Log, files: Sequence[Location]) -> PrudentError:
    """The error about a file that Spark names by its URI."""
    return _ask_duckdb(log, files) or LogError(f"{_name(uri, files)} {what}. Fix it.")


def _ask_duckdb(log: Log, files: Sequence[Location]) -> PrudentError | None:
    """DuckDB's error about text files on this machine: it names the line."""
    if any(file.local is None for file in files):
        return None
    try:
        with Database().connect() as connection, opened(connection, log):
            columns = ", ".join(f"count({meaning})" for meaning in log.columns)
            connection.execute(f"select {columns} from source").fetchall()
    except PrudentError as error:
        return error
    return None


def _name(uri: str, files: Sequence[Location]) -> str:
    return next((file.name for file in files if filesystem.same_file(uri, file)), unquote(uri))
