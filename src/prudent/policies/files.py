"""Policies, scores and lists of other rankers in files and tables: opened in DuckDB and checked."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import duckdb

from prudent.base.errors import PolicyError
from prudent.engines.duckdb.open import INTEGERS, column_names, name_as, opened
from prudent.logs.formats import find_files
from prudent.logs.log import Table
from prudent.storage.checksum import is_damaged
from prudent.storage.manifest import MANIFEST, Manifest
from prudent.storage.parquet import read_footer
from prudent.storage.quoting import file_text

COLUMNS = ("context", "rank", "item", "lower", "mean", "upper", "stay", "positive", "negative", "impressions")
"""Of the file of a policy; that of scores has all but the rank. `upper` and `stay` are null where a bound has none."""
_FLOATS = ("DOUBLE", "FLOAT", "DECIMAL")


_IMPOSSIBLE = " or ".join(
    [
        "context is null or item is null or least(positive, negative, impressions) < 0",
        *(f"isnan(coalesce({name}, 0)::double)" for name in COLUMNS[3:7]),  # without evidence, a bound is infinite
        *(f"not isfinite(coalesce({name}, 0)::double)" for name in COLUMNS[7:]),
    ]
)
"""In SQL, whether a row of a policy or of scores cannot be one."""
_WRITTEN_BY = "A policy is what prudent rank writes (-o)."


def open_lists(connection: duckdb.DuckDBPyConnection, path: str | PathLike[str]) -> tuple[Path, list[Path]]:
    """Make the table `lists` from a file, or from the files of a folder; that file or folder, and the files."""
    files = find_files([path])
    if len(files) > 1 and not os.path.isdir(path):  # a folder is one policy
        raise PolicyError(f"{path} names {len(files)} files. Read one policy at a time.")
    file = Path(path) if os.path.isdir(path) else files[0]
    source = _parquet(files)
    try:
        check_bytes(connection, files)
        described = connection.execute(f"describe from {source}").fetchall()
        columns = tuple(row[0] for row in described)
        if columns != COLUMNS:
            raise PolicyError(f"{file} is not a policy: it has the columns {', '.join(columns)}. {_WRITTEN_BY}")
        for name, kind, *_ in described:
            number = kind in INTEGERS if name == "rank" else _is_number(name, kind)
            if name not in ("context", "item") and not number:
                raise PolicyError(f"{file} is not a policy: its column {name} is {kind.lower()}.")
        connection.execute(f"create temp table lists as from {source} order by context, rank")
        ((wrong,),) = connection.execute(
            f"select count(*) from lists where rank is null or rank < 1 or {_IMPOSSIBLE}"
        ).fetchall()
        if wrong:
            raise PolicyError(
                f"{file} is not a policy: {wrong:,} of its rows have no context, no item, a rank below 1, a bound that "
                "is no number, or evidence that is negative or no number. Write or copy it again."
            )
    except duckdb.Error as error:
        other = "magic bytes" in str(error)
        why = f"it is not a Parquet file. {_WRITTEN_BY}" if other else str(error).splitlines()[0]
        raise PolicyError(f"Cannot read {file} as a policy: {why}") from error
    return file, files


def read_scores(connection: duckdb.DuckDBPyConnection, path: str | PathLike[str]) -> str:
    """A query for the scores in a file, or in the files of a folder, that can be those of the policy in `lists`."""
    files = find_files([path])
    source = _parquet(files)
    expected = tuple(name for name in COLUMNS if name != "rank")
    try:
        check_bytes(connection, files)
        described = connection.execute(f"describe from {source}").fetchall()
        kinds = {row[0]: row[1] for row in connection.execute("describe lists").fetchall()}
    except duckdb.Error as error:
        raise PolicyError(f"Cannot read {path} as scores: {str(error).splitlines()[0]}") from error
    columns = tuple(row[0] for row in described)
    if columns != expected:
        raise PolicyError(
            f"{path} has no scores: its columns are {', '.join(columns)}. Write them with prudent rank --scores."
        )
    if any(row[1] != kinds[row[0]] for row in described if row[0] in ("context", "item")):
        raise PolicyError(f"{path} names its contexts or items by another type than the policy: it is not of this one.")
    for name, kind, *_ in described:
        if name not in ("context", "item") and not _is_number(name, kind):
            raise PolicyError(f"{path} has no scores: its column {name} is {kind.lower()}.")
    try:
        ((wrong,),) = connection.execute(f"select count(*) from {source} where {_IMPOSSIBLE}").fetchall()
    except duckdb.Error as error:
        raise PolicyError(f"Cannot read {path} as scores: {str(error).splitlines()[0]}") from error
    if wrong:
        raise PolicyError(
            f"{path} has no scores: {wrong:,} of its rows have no context, no item, a bound that is no number, or "
            "evidence that is negative or no number. Write or copy it again."
        )
    return f"select {', '.join(expected)} from {source}"


def _is_number(name: str, kind: str) -> bool:
    """Whether a column may have this type; one without a single number has none."""
    return kind in INTEGERS or kind.startswith(_FLOATS) or (name in ("upper", "stay") and kind == '"NULL"')


def check_bytes(connection: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> None:
    """Raise where a file is not as it was written; those of Spark and of other programs have no checksum."""
    for file in files:
        if is_damaged(file, sealed=MANIFEST in read_footer(connection, file)):
            raise PolicyError(f"{file} is damaged: its bytes are not those that were written. Write or copy it again.")


def _parquet(files: Sequence[Path]) -> str:
    return f"read_parquet([{', '.join(map(file_text, files))}], hive_partitioning = false)"


def read_manifest(file: str | PathLike[str]) -> Manifest:
    """The manifest beside a policy or its scores; one without settings and version where there is none."""
    return Manifest.read(file, "policy") or Manifest("policy", prudent="")


def check_same_manifest(scores: str | PathLike[str], policy: str, manifest: Manifest) -> None:
    """The manifest of scores is that of their policy, where both have one."""
    other = read_manifest(scores)
    if other.prudent and manifest.prudent and other != manifest:
        raise PolicyError(f"{scores} has the scores of another policy than {policy}, as their manifests say.")


# --- lists of other rankers -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Lists(Table):
    source: Any
    named: Mapping[str, str]  # context, and items or item and rank -> the column

    @property
    def columns(self) -> dict[str, str]:
        """As the caller names them."""
        return dict(self.named)


def open_table(connection: duckdb.DuckDBPyConnection, table: Any, columns: Mapping[str, str]) -> tuple[Path, ...]:
    """Make the table `lists` from any table with these columns; the files it was read from.

    Only the frame of a policy has evidence, in columns of all of its names.
    """
    lists, evidence = _Lists(table, columns), COLUMNS[3:]
    known = "rank" in columns and not lists.in_files and {*evidence} <= {*column_names(table)}
    if known:
        lists = _Lists(table, {**columns, **{name: name for name in evidence}})
    with opened(connection, lists) as source:
        context = name_as("context", source.types["context"], lists)
        if "items" in columns:
            item = name_as("item", source.types["items"].removesuffix("[]"), lists)
            rows = f"select {context} as context, unnest(range(1, len(items) + 1)) as rank, unnest(items) as item"
        else:
            item = name_as("item", source.types["item"], lists)
            rows = f"select * replace ({context} as context)"
        numbers = [
            f"{name if known else 'null'}::{'bigint' if name == 'impressions' else 'double'} as {name}"
            for name in evidence
        ]
        connection.execute(
            f"create temp table lists as select context, rank::integer as rank, {item} as item, {', '.join(numbers)} "
            f"from ({rows} from source) order by context, rank"
        )
    check_lists(connection, "lists")
    return tuple(find_files(table)) if lists.in_files else ()


def check_lists(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Raise unless every list of a table has each place once, and no item twice."""
    rows = connection.execute(
        "select count(*) over (), coalesce(context::varchar, 'null') from "
        f"(select context, count(*) as rows, count(distinct rank) as ranks, min(rank) as first, max(rank) as last, "
        f"count(distinct item) as items from {table} group by context) "
        "where context is null or first <> 1 or last <> rows or ranks <> rows or items <> rows order by 2 limit 1"
    ).fetchall()
    if rows:
        wrong, context = rows[0]
        raise PolicyError(
            f"This is no policy: {wrong:,} of its lists have a place twice, none for a place, or an item twice or "
            f"missing, such as that of {context!r}. Is it a folder of several policies?"
        )
