"""What DuckDB raises about the content of a table, as messages of one line."""

import re
from collections.abc import Sequence
from pathlib import Path

import duckdb

from prudent.base.errors import LogError, PrudentError
from prudent.logs.json_lines import json_fault
from prudent.logs.log import Table
from prudent.storage.database import first_line
from prudent.storage.quoting import absolute

_ELSE = "Is a quote missing? Otherwise write the log as Parquet or JSON Lines."


def explain(error: duckdb.Error, table: Table, files: Sequence[Path]) -> PrudentError:
    """DuckDB's error as one of prudent's: which file, which line, what to do."""
    message = str(error)
    for file in files:  # as the user calls it
        message = message.replace(absolute(file), str(file))
    if isinstance(error, duckdb.OutOfMemoryException):
        return LogError(f"Counting {table.name} needs more memory than allowed: {first_line(error)} Raise --memory.")
    if "Parallel CSV Reader" in message:
        return LogError(f"{table.name} has a long record whose line breaks, in quotes, look like rows. {_ELSE}")
    fault = _csv_fault(message) or (json_fault(files, table.columns) if "JSON" in message else None)
    if fault is not None:
        return LogError(fault)
    damaged = type(error) is duckdb.Error or re.search("magic bytes|too small|Failed to read", message)
    what = re.sub(r"^[\w ]+ Error: ", "", message.splitlines()[0]).rstrip(".")
    return LogError(f"Cannot read {table.name}: {what}.{' Write or copy it again: it is damaged.' if damaged else ''}")


def _csv_fault(message: str) -> str | None:
    file = re.search(r"^\s*file = (.+)$", message, re.MULTILINE)
    line = re.search(r"CSV Error on Line: (\d+)", message)
    if file and "invalid state" in message:
        return f"{file[1]} mixes line endings (\\n and \\r\\n). Write all of its lines alike."
    if not (file and line):
        return None
    if "Maximum line size" in message:
        return f"{file[1]}, line {line[1]} starts a record of more than 2 MB, which no list has. Is a quote missing?"
    columns = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    if columns:
        fewer = int(columns[2]) < int(columns[1])
        what = f"has {'fewer' if fewer else 'more'} columns than the header, which has {columns[1]}"
    elif "unicode" in message:
        what = "is not UTF-8"
    else:
        what = "has a quote that does not close" if "unterminated quote" in message else "is not CSV"
    return f"{file[1]}, line {line[1]} {what}. Fix or remove it."
