"""What a counts file says of itself, version and tally, in the footer of the Parquet file: one rename moves it all.

The tally is known only when the rows are written, and DuckDB takes the footer's values before it writes them. So it is
given a placeholder of the right length, which is overwritten in place before the file gets its name.
"""

import json
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

import duckdb

from prudent.base.errors import CountsError
from prudent.storage.manifest import Tally
from prudent.storage.quoting import file_text, text

COUNTS_VERSION = 1
"""Of the counts on disk; raised when a column changes its meaning."""

_VERSION, _TALLY = "prudent_counts", "prudent_tally"
_SPARK = "org.apache.spark.sql.parquet.row.metadata"
_MOST = 2**63 - 1  # no number in a tally is longer


def counts_format(tally: str) -> str:
    """How DuckDB writes counts: a file says what it is, whatever its name, and what went into it."""
    said = f"{{{_VERSION}: '{COUNTS_VERSION}', {_TALLY}: {text(tally)}}}"
    return f"format parquet, compression zstd, kv_metadata {said}"


def tally_text(tally: Tally) -> str:
    """A tally as it stands in a footer."""
    return json.dumps(tally.to_json())


def placeholder(reasons: Iterable[str], left_out: Mapping[str, int]) -> str:
    """Text that stands nowhere else, as long as the longest tally that may come."""
    most = Tally(_MOST, dict.fromkeys(reasons, _MOST), left_out)
    return secrets.token_hex(16).ljust(len(tally_text(most)), ".")


def fill_placeholder(file: Path, placeholder: str, tally: Tally) -> None:
    """Write the tally over its placeholder, which must stand in the footer once.

    A Parquet file ends with the footer, its length in four bytes, and the letters PAR1. Nothing in it is a checksum of
    the footer, and JSON takes the blanks that keep the length as it was.
    """
    old, new = placeholder.encode(), tally_text(tally).ljust(len(placeholder)).encode()
    with file.open("r+b") as opened:
        opened.seek(-8, 2)
        length, magic = int.from_bytes(opened.read(4), "little"), opened.read(4)
        start = opened.seek(-8 - length, 2)
        footer = opened.read(length)
        if magic != b"PAR1" or footer.count(old) != 1 or len(new) != len(old):
            raise AssertionError(f"{file} has no place for its tally.")
        opened.seek(start + footer.index(old))
        opened.write(new)


def read_footer(connection: duckdb.DuckDBPyConnection, file: Path) -> dict[str, str]:
    """What a Parquet file says of itself, by key."""
    found = connection.execute(f"select key, value from parquet_kv_metadata({file_text(file)})").fetchall()
    return {bytes(key).decode(errors="replace"): bytes(value).decode(errors="replace") for key, value in found}


def version_in(footer: Mapping[str, str]) -> str | None:
    """The version of the counts, or none where there are no counts."""
    return footer.get(_VERSION) or _version_by_spark(footer.get(_SPARK, "null"))


def _version_by_spark(columns: str) -> str | None:
    """Spark keeps in the footer what it was told of a column, and nothing else."""
    try:
        said = json.loads(columns)
        marks = [field["metadata"][_VERSION] for field in said["fields"] if _VERSION in field["metadata"]]
    except (ValueError, TypeError, KeyError):
        return None
    return str(marks[0]) if marks else None


def tally_in(footer: Mapping[str, str]) -> Tally | None:
    """The tally of the counts, or none in files of older versions; a ValueError where it makes no sense."""
    return Tally.from_json(json.loads(footer[_TALLY])) if _TALLY in footer else None


def counts_in(footer: Mapping[str, str], file: str) -> Tally | None:
    """The tally of a file that holds counts of this version, if it has one; an error where it holds none."""
    version = version_in(footer)
    if version is None:
        raise CountsError(f"{file} does not hold counts. Make them with: prudent count LOG -o COUNTS")
    if version != str(COUNTS_VERSION):
        raise CountsError(
            f"{file} has counts of version {version}; this prudent reads version {COUNTS_VERSION}. Count the log again."
        )
    try:
        return tally_in(footer)
    except ValueError as error:
        raise CountsError(f"{file} does not hold counts, although it says so. Count the log again.") from error
