"""Writing a file in an export format: rows into a database that may spill, then the parts that the format makes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

import duckdb

from prudent.base.errors import PolicyError, UsageError
from prudent.base.spec import Registry
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import INTEGERS
from prudent.policies.export.base import Format
from prudent.storage.files import TemporaryFolder, forget_manifest, reason, replacing, writing_temporary
from prudent.storage.quoting import text


def format_by_ending(to: str | PathLike[str], formats: Registry[Format]) -> str:
    """The format whose files end as this one does."""
    ending = Path(to).suffix.lower()
    for name in formats:
        if ending in formats[name].endings:
            return name
    known = ", ".join(f"{ending} for {name}" for name in formats for ending in formats[name].endings)
    raise UsageError(
        f"The name of {to} does not show its format: set format= (--format) to one of {', '.join(formats)}. "
        f"Endings that do: {known}."
    )


@contextmanager
def opened_rows(
    rows: duckdb.DuckDBPyRelation, views: Callable[[Path], Sequence[str]], engine: DuckDB | None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database of our own, which may spill, with views of these rows; `views` is SQL for them, by their file."""
    folder = TemporaryFolder()
    file = folder.path / "rows.parquet"
    with _enough_memory(), (engine or DuckDB()).connect(spill=folder.path) as connection:
        with writing_temporary(folder.path):
            rows.write_parquet(str(file))
        for step in views(file):
            connection.execute(step)
        yield connection


def write_parts(
    connection: duckdb.DuckDBPyConnection,
    chosen: Format,
    to: str | PathLike[str],
    parts_of: Callable[[duckdb.DuckDBPyConnection], str] | None = None,
) -> None:
    """Write the file, whole or not at all; its parts are those of the format, or others that it has."""
    for step in chosen.macros:
        connection.execute(step)
    parts = (parts_of or chosen.parts)(connection)
    with replacing(to) as part, _enough_memory():
        connection.execute(f"copy ({parts}) to {text(part)} (format blob)")
        forget_manifest(to)


def check_name_types(connection: duckdb.DuckDBPyConnection, view: str, what: str) -> None:
    """Raise where contexts or items are neither text nor integers."""
    for name, kind, *_ in connection.execute(f"describe {view}").fetchall():
        if name in ("context", "item") and kind != "VARCHAR" and kind not in INTEGERS:
            raise PolicyError(f"The {name}s of {what} are {kind.lower()}; names are text or integers.")


@contextmanager
def _enough_memory() -> Iterator[None]:
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise PolicyError(f"Exporting needs more memory than allowed: {reason(error)}. Raise --memory.") from error
