"""Parquet files with entries of our own in the footer, so that one rename puts data and provenance in place."""

import json
from collections.abc import Mapping
from pathlib import Path

import duckdb

from prudent.storage.checksum import CHECKSUM, new_mark, seal
from prudent.storage.quoting import file_text, text

_SPARK = "org.apache.spark.sql.parquet.row.metadata"


def write_parquet(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    target: Path,
    *,
    footer: Mapping[str, str],
    row_group: int = 122_880,
) -> None:
    """Write the rows of a query to a Parquet file, so many of them in a group.

    Its footer has these entries, and a checksum of all bytes.
    """
    mark = new_mark()
    entries = ", ".join(f"{key}: {text(value)}" for key, value in {**footer, CHECKSUM: mark}.items())
    connection.execute(
        f"copy ({query}) to {text(target)} (format parquet, row_group_size {row_group}, kv_metadata {{{entries}}}, "
        "compression zstd, compression_level 1)"  # policies and counts are smaller by it, and written a third sooner
    )
    seal(target, mark)


def read_footer(connection: duckdb.DuckDBPyConnection, file: Path) -> dict[str, str]:
    """The metadata of a Parquet file, by key."""
    pairs = connection.execute(f"select key, value from parquet_kv_metadata({file_text(file)})").fetchall()
    return {bytes(key).decode(errors="replace"): bytes(value).decode(errors="replace") for key, value in pairs}


def footer_entry(footer: Mapping[str, str], key: str) -> str | None:
    """An entry of the footer or, in a file of Spark, of the metadata of a column."""
    if key in footer:
        return footer[key]
    try:
        fields = json.loads(footer.get(_SPARK, "null"))["fields"]
        marks = [field["metadata"][key] for field in fields if key in field["metadata"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return str(marks[0]) if marks else None
