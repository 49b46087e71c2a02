"""Files of counts: which ones a path names, whether they are what was counted, and their sum."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import duckdb

from prudent.base.errors import CountsError, UsageError
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import INTEGERS
from prudent.engines.kernel.merging import merge_files
from prudent.engines.kernel.names import is_sorted
from prudent.logs.formats import find_files, parquet_files
from prudent.storage.counts_file import (
    COLUMNS,
    REWARD_COLUMNS,
    Piece,
    check_bytes,
    common_threshold,
    counts_footer,
    read_pieces,
)
from prudent.storage.files import TemporaryFolder
from prudent.storage.manifest import Manifest, Tally
from prudent.storage.parquet import read_footer
from prudent.storage.quoting import file_text
from prudent.storage.run import Run


def find_counts(paths: Sequence[str | PathLike[str]]) -> list[Path]:
    """The files of counts that paths name, each once."""
    for path in paths:
        if os.path.isdir(path) and not parquet_files(Path(path)):
            raise CountsError(f"{path} holds no counts. Count a day into it: prudent count LOG -o {path} --day DATE")
    files = find_files(paths)
    if len({file.resolve() for file in files}) < len(files):
        named = ", ".join(str(path) for path in paths)
        raise UsageError(f"A file is named twice, and would be counted twice: {named}.")
    return files


def check_counts_file(connection: duckdb.DuckDBPyConnection, file: Path) -> Tally:
    """The tally of a file of counts; raise where it is none, or its content is not what was counted."""
    try:
        footer = read_footer(connection, file)
        tally = counts_footer(footer, str(file)).tally
        _check_columns(connection, file, rewarded=tally is not None and bool(tally.reward))
        check_bytes(file, footer)
    except (duckdb.Error, OSError) as error:
        raise CountsError(f"Cannot read {file}: {str(error).splitlines()[0]}") from error
    lists, last = 0, None
    for piece in read_pieces(connection, file):
        lists += piece.run.lists
        if tally is None:  # without a checksum, others may have written it
            _check_order(piece.run, last, file)
            last = piece.run.contexts.raw(-1) if len(piece.run.pairs) else last
    if tally is not None and tally.lists != lists:
        raise CountsError(
            f"{file} has {lists:,} lists, and {tally.lists:,} by its tally: it is damaged. Count the log again."
        )
    return tally or _tally_beside(file, lists)


def _check_order(run: Run, last: Any, file: Path) -> None:
    """Runs are merged by the order of their names."""
    if not is_sorted(run) or (last is not None and len(run.pairs) and run.contexts.raw(0) <= last):
        raise CountsError(f"{file} is marked as counts, but its names are not sorted. Count the log again.")


_NUMBERS = tuple(f"{kind}[]" for kind in INTEGERS)
_KINDS = {
    "context": ("VARCHAR", *INTEGERS),
    "items": ("VARCHAR[]", *_NUMBERS),
    "list_clicks": ("BOOLEAN[]",),
}
"""The types that columns of a file of counts may have, if not lists of numbers."""


def _check_columns(connection: duckdb.DuckDBPyConnection, file: Path, rewarded: bool) -> None:
    try:
        described = connection.execute(f"describe from read_parquet({file_text(file)}, hive_partitioning = false)")
    except duckdb.Error as error:  # such as a name of a column that is not UTF-8
        raise CountsError(f"{file} is marked as counts, but its schema is damaged. Count the log again.") from error
    types = {name: kind for name, kind, *_ in described.fetchall()}
    rewards = [name for name in REWARD_COLUMNS if rewarded or name in types]
    for name in (*COLUMNS, *rewards):
        if types.get(name) not in _KINDS.get(name, _NUMBERS):
            what = f"is {types[name].lower()}" if name in types else "is missing"
            raise CountsError(f"{file} is marked as counts, but its column {name} {what}. Count the log again.")


def _tally_beside(file: Path, lists: int) -> Tally:
    """The tally of a file of Spark, which has none in its footer: from the manifest beside the folder, if there is one.

    Rejected lists are those of the whole folder, and count with its first file.
    """
    manifest = Manifest.read(file, "counts")
    if manifest is None and file == min(file.parent.glob("*.parquet")):
        manifest = Manifest.read(file.parent, "counts")
    return Tally(lists) if manifest is None else replace(manifest.sources["log"].tally, lists=lists)


def merged_pieces(
    engine: DuckDB, files: Sequence[Path], weights: Sequence[int], *, unit: int = 1, sampled: bool = False
) -> Iterator[Piece]:
    """The sum of files of counts; every impression counts as often as the weight of its file says.

    `unit` is the weight of a file that counts in full.

    Where `sampled`, only contexts in the sample of a file, which may be in that of all or not.
    """
    folder = TemporaryFolder()
    with engine.connect() as connection:
        threshold = common_threshold(connection, files)
        read = partial(read_pieces, sampled=sampled)
        yield from merge_files(connection, files, threshold, folder.path, weights=weights, unit=unit, read=read)
