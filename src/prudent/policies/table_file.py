"""A table in one Parquet file of our own, with its manifest in the footer: judgments, explorations."""

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from prudent.base.errors import PolicyError
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import INTEGERS
from prudent.logs.formats import find_files
from prudent.policies.files import check_bytes
from prudent.storage.files import check_not_read, replacing
from prudent.storage.locks import unchanged
from prudent.storage.manifest import Kind, Manifest
from prudent.storage.parquet import write_parquet
from prudent.storage.quoting import file_text

NAME, WHOLE, FRACTION, FRACTIONS, TEXT = "name", "whole", "DOUBLE", "DOUBLE[]", "VARCHAR"
"""What a column has: names are text or integers."""


class TableFile(NamedTuple):
    """What the file of a result has; a file is untrusted until all of this has been checked."""

    kind: Kind  # of its manifest, and the name of its table
    command: str  # that writes it
    columns: Mapping[str, str]
    order: str  # of its rows, of which its bytes depend
    faults: tuple[str, ...]  # queries that count what cannot be

    def is_in(self, file: str | PathLike[str]) -> bool:
        """Whether this is a file with these columns."""
        if not Path(file).is_file():
            return False
        with DuckDB().connect() as connection:
            return self._has_columns(connection, Path(file))

    def read(
        self, path: str | PathLike[str], fits: Callable[[Manifest], bool]
    ) -> tuple[duckdb.DuckDBPyConnection, Manifest, Path]:
        """The table, its manifest, which has to fit, and the file."""
        files = find_files([path])
        if len(files) != 1:
            raise PolicyError(f"{path} names {len(files)} files. Read one file of {self.kind} at a time.")
        file, connection = files[0], DuckDB().open()
        rows = f"read_parquet({file_text(file)}, hive_partitioning = false)"
        try:
            with unchanged(files, PolicyError):  # rows and manifest are of one file
                check_bytes(connection, files)
                if not self._has_columns(connection, file):
                    raise PolicyError(f"{file} has no {self.kind}: {self.command} writes files that do.")
                connection.execute(f"create temp table {self.kind} as from {rows} order by {self.order}")
                manifest = Manifest.read(file, self.kind)
            faults = sum(connection.execute(query).fetchall()[0][0] for query in self.faults)
        except duckdb.Error as error:
            raise PolicyError(f"Cannot read the {self.kind} in {file}: {str(error).splitlines()[0]}") from error
        if faults or manifest is None or not fits(manifest):
            raise PolicyError(f"{file} is not as {self.command} wrote it. Write or copy it again.")
        return connection, manifest, file.resolve()

    def relation(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """The rows in their order."""
        return connection.sql(f"from {self.kind} order by {self.order}")

    def write(
        self,
        connection: duckdb.DuckDBPyConnection,
        manifest: Manifest,
        path: str | PathLike[str],
        inputs: tuple[Path, ...],
    ) -> None:
        """Write the table with its manifest in the footer and beside it; not over what it was made from."""
        check_not_read(path, inputs)
        with replacing(path) as part:
            write_parquet(connection, f"from {self.kind} order by {self.order}", part, footer=manifest.footer)
        manifest.write(path)

    def _has_columns(self, connection: duckdb.DuckDBPyConnection, file: Path) -> bool:
        try:
            described = connection.execute(f"describe from read_parquet({file_text(file)})").fetchall()
        except duckdb.Error:
            return False
        found: dict[str, Any] = {row[0]: row[1] for row in described}
        if tuple(found) != tuple(self.columns):
            return False
        return all(
            asked == NAME or (found[name] in INTEGERS if asked == WHOLE else found[name] == asked)
            for name, asked in self.columns.items()
        )
