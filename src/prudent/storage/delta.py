"""Tables of Delta Lake and Iceberg: a folder has files of all versions, and its log says which are of the last one.

To read all Parquet files of such a folder would count lists that were deleted, or rewritten, twice.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from prudent.base.errors import LogError, UsageError

DELTA_LOG = "_delta_log"
"""The folder in a table of Delta Lake that says which files are of which version."""
_UNREADABLE = ("deletionVectors", "columnMapping", "v2Checkpoint")
"""Features of a table by which its Parquet files are not its rows and columns, or its log cannot be copied alone."""


def refuse_iceberg(name: str) -> LogError:
    """The error for a table of Iceberg."""
    return LogError(
        f"{name} is a table of Iceberg, whose folder has files of all versions. Read it as a table in Python: "
        "pyiceberg.catalog.load_catalog(...).load_table(...).scan().to_arrow()."
    )


def live_files(folder: Path, name: str) -> list[str]:
    """The files of the last version of a table, below its folder, sorted; `folder` has at least its log."""
    if find_spec("deltalake") is None:
        raise UsageError(
            f"{name} is a table of Delta Lake, whose folder has files of all versions. To read the last one: "
            "pip install 'prudent[delta]'."
        )
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    root = folder.resolve()
    try:
        table = DeltaTable(str(root))
        _check_features(table, name)
        files = [Path(unquote(uri.removeprefix("file://"))) for uri in table.file_uris()]
    except DeltaError as error:
        raise LogError(f"Cannot read {name} as a table of Delta Lake: {str(error).splitlines()[0]}") from error
    if not files:
        raise LogError(f"{name} is a table of Delta Lake without a row.")
    for file in files:
        if not file.is_relative_to(root) or ".." in file.parts:
            raise LogError(f"{name} has a file outside its folder, {file}: a shallow clone. Copy it first.")
    return sorted(str(file.relative_to(root)) for file in files)


def _check_features(table: Any, name: str) -> None:
    protocol, metadata = table.protocol(), table.metadata()
    features = [feature for feature in protocol.reader_features or [] if feature in _UNREADABLE]
    if metadata.configuration.get("delta.columnMapping.mode", "none") != "none":
        features.append("columnMapping")
    if features:
        raise LogError(
            f"{name} is a table of Delta Lake with {', '.join(sorted(set(features)))}, which prudent does not read. "
            "Read it as a table in Python, or write it to Parquet."
        )
    if partitions := metadata.partition_columns:
        raise LogError(
            f"{name} is a table of Delta Lake by {', '.join(partitions)}, which its files do not have. Read it as a "
            "table in Python: deltalake.DeltaTable(...).to_pyarrow_table()."
        )
