"""Judgments in the files of other programs, for `prudent.export`."""

from os import PathLike
from pathlib import Path
from typing import Any

import duckdb

from prudent.engines.duckdb.engine import DuckDB
from prudent.policies.export.base import Format
from prudent.policies.export.writing import check_name_types, format_by_ending, opened_rows, write_parts
from prudent.policies.judgments.formats import judgment_formats
from prudent.policies.judgments.judgments import FILE, Judgments, as_judgments
from prudent.storage.files import check_output
from prudent.storage.manifest import Manifest
from prudent.storage.quoting import file_text


def is_judgments(source: Any) -> bool:
    """Whether these are judgments, or the path of a file of them."""
    return FILE.is_in(source) if isinstance(source, str | PathLike) else isinstance(source, Judgments)


def export_judgments(
    judgments: Any, to: str | PathLike[str], format: str | Format | None, engine: DuckDB | None
) -> Manifest:
    """Write judgments for another program; see `prudent.export`."""
    chosen = judgment_formats.resolve(format_by_ending(to, judgment_formats) if format is None else format)
    source = as_judgments(judgments)
    check_output(to, source.files, parquet=False)
    with opened_rows(source.relation(), _views, engine) as connection:
        check_name_types(connection, "judgments", "these judgments")
        _add_examination(connection, source.manifest)
        write_parts(connection, chosen, to)
        summary = source.summary
        manifest = Manifest(
            "export",
            {"format": str(chosen), "judgments": source.manifest.settings},
            source.manifest.sources,
            {"contexts": summary["contexts"], "items": summary["pairs"], **chosen.about(connection)},
        )
    manifest.write(to)
    return manifest


def _add_examination(connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> None:
    """Make the table `examination` (position, p), without rows where the click model has no such parameters."""
    connection.execute("create temp table examination (position integer, p double)")
    fitted = manifest.results.get("fitted")
    values = fitted.get("examination") if isinstance(fitted, dict) else None
    if not isinstance(values, list) or not all(isinstance(p, int | float) and 0 <= p <= 1 for p in values):
        return  # a manifest is untrusted
    if values:
        connection.executemany("insert into examination values (?, ?)", list(enumerate(values, start=1)))


def _views(rows: Path) -> tuple[str, ...]:
    """SQL for the view that formats read."""
    return (
        f"""
            create temp view judgments as
            select *, dense_rank() over (order by context) as number
            from read_parquet({file_text(rows)}, hive_partitioning = false)
        """,
    )
