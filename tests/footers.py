"""Parquet files as other programs, or forgers, write them: the same rows with another footer."""

import json
from pathlib import Path
from typing import Any

import duckdb

from prudent.storage.files import manifest_path
from prudent.storage.parquet import read_footer, write_parquet


def rewrite_footer(file: Path, **change: str | None) -> None:
    """Replace entries of the footer; None removes one."""
    with duckdb.connect() as connection:
        footer = {**read_footer(connection, file), **change}
        kept = {key: value for key, value in footer.items() if value is not None and key.startswith("prudent")}
        part = file.with_name(f"{file.name}.part")
        # Without entries of ours, one of another program: DuckDB takes no empty structure.
        write_parquet(connection, f"from read_parquet('{file}')", part, footer=kept or {"of": "another program"})
    part.replace(file)


def remove_manifest(file: Path) -> None:
    """Remove the manifest in a file and that beside it."""
    rewrite_footer(file, prudent_manifest=None)
    manifest_path(file).unlink()


def forge_manifest(file: Path, **change: Any) -> None:
    """Change the manifest in a file and that beside it."""
    forged = json.dumps({**json.loads(manifest_path(file).read_text(encoding="utf-8")), **change})
    rewrite_footer(file, prudent_manifest=forged)
    manifest_path(file).write_text(forged, encoding="utf-8")
