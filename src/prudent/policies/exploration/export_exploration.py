"""Explorations in the files of other programs, for `prudent.export`."""

from os import PathLike
from pathlib import Path
from typing import Any

from prudent.engines.duckdb.engine import DuckDB
from prudent.policies.exploration.exploration import FILE, Exploration
from prudent.policies.export.base import Format, formats
from prudent.policies.export.writing import check_name_types, format_by_ending, opened_rows, write_parts
from prudent.storage.files import check_output
from prudent.storage.manifest import Manifest
from prudent.storage.quoting import file_text


def is_exploration(source: Any) -> bool:
    """Whether this is an exploration, or the path of a file of one."""
    return FILE.is_in(source) if isinstance(source, str | PathLike) else isinstance(source, Exploration)


def export_exploration(
    exploration: Any, to: str | PathLike[str], format: str | Format | None, engine: DuckDB | None
) -> Manifest:
    """Write lists with their probabilities for another program; see `prudent.export`."""
    chosen = formats.resolve(format_by_ending(to, formats) if format is None else format)
    source = exploration if isinstance(exploration, Exploration) else Exploration.read(exploration)
    check_output(to, source.files, parquet=False)
    with opened_rows(source.relation(), _views, engine) as connection:
        check_name_types(connection, "lists", "this exploration")
        write_parts(connection, chosen, to, chosen.weighted)
        lists = source.summary["lists"]
        ((items,),) = connection.execute("select count(*) from lists").fetchall()
        manifest = Manifest(
            "export",
            {"format": str(chosen), "exploration": source.manifest.settings},
            source.manifest.sources,
            {"contexts": lists["contexts"], "lists": lists["contexts"] + lists["variants"], "items": items},
        )
    manifest.write(to)
    return manifest


def _views(rows: Path) -> tuple[str, ...]:
    """SQL that makes the views that formats read; see `Format.weighted`."""
    return (
        f"create temp view lists as from read_parquet({file_text(rows)}, hive_partitioning = false)",
        """
            create temp view numbered as
            select context, list(items order by variant) as lists,
                list(probability order by variant) as probabilities, row_number() over (order by context) as number
            from (
                select context, variant, any_value(probability) as probability, list(item order by rank) as items
                from lists
                group by context, variant
            )
            group by context
        """,
    )
