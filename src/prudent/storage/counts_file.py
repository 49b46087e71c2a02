"""Counts files: one Parquet file with the cells of a log, a sample of its lists, and, in the footer, what they are of.

A row is one of two kinds. A *cell* says how often an item was shown in one way; a *list* says how often one whole list
was shown and clicked in one way, for the contexts of the sample (`prudent.storage.sketch`).

========  ==================================  ======================
column    cell                                list
========  ==================================  ======================
context   name                                name
item      name                                null
position  1, 2, 3 and so on                   0
prev      position of the last click above    0
click     whether the item was clicked        false
more      whether there is a click below      false
n         how often                           how often
items     null                                names, from the top
clicks    null                                booleans, one per item
========  ==================================  ======================

The footer has the version of the layout (``prudent_counts``), the `Tally` as JSON (``prudent_tally``), the manifest
(``prudent_manifest``), a checksum of rows and entries (``prudent_checksum``), and the threshold of the sample
(``prudent_sample``), which is empty where a file keeps no lists; then the columns items and clicks may be missing.
Spark cannot write keys of its own into a footer: its files have the version and the threshold in the metadata of the
column ``n``, under the same names, no checksum, and their tally in the manifest of their folder, ``_manifest.json``.
"""

import json
from collections.abc import Mapping
from hashlib import md5
from pathlib import Path
from typing import NamedTuple

import duckdb

from prudent.base.errors import CountsError
from prudent.storage.manifest import Manifest, Source, Tally
from prudent.storage.parquet import footer_entry, write_parquet
from prudent.storage.quoting import file_text
from prudent.storage.sketch import NOTHING

COUNTS_VERSION = 3
"""Version of the layout; raised when a column changes its meaning."""
CELL_KEYS = ("context", "item", "position", "prev", "click", "more")
COLUMNS = (*CELL_KEYS, "n", "items", "clicks")
"""Of a file with a sample of lists."""

VERSION, SAMPLE = "prudent_counts", "prudent_sample"
_TALLY, _CHECKSUM = "prudent_tally", "prudent_checksum"


class Footer(NamedTuple):
    """What a counts file holds."""

    tally: Tally | None  # None in the files of Spark
    threshold: str  # of the sample


def write_counts_file(
    connection: duckdb.DuckDBPyConnection,
    target: Path,
    *,
    cells: str,
    lists: str | None,
    source: Source,
    threshold: str = NOTHING,
) -> None:
    """Write a counts file: `cells` is a query for the columns of cells, `lists` one for context, items, clicks and n.

    Without lists, the file keeps no sample. `source` is what was counted, for the manifest in the footer.
    """
    keys = ", ".join(CELL_KEYS)
    rows = f"select {keys}, n from ({cells})"
    if lists is not None:
        # Kept, for they are read twice: to write them, and for the checksum, which goes into the footer.
        connection.execute(f"create or replace temp table sampled as from ({lists}) order by context, items, clicks")
        rows = (
            f"select {keys}, n, null as items, null as clicks from ({cells}) union all "
            "select context, null, 0, 0, false, false, n, items, clicks::boolean[] from sampled"
        )
    entries = {VERSION: str(COUNTS_VERSION), _TALLY: json.dumps(source.tally.to_json()), SAMPLE: threshold}
    entries |= counts_manifest(source).footer
    checksum = row_checksum(connection, f"({rows})", sampled=lists is not None)
    write_parquet(connection, rows, target, footer={**entries, _CHECKSUM: f"{checksum} {_checksum_of(entries)}"})


def row_checksum(connection: duckdb.DuckDBPyConnection, table: str, *, sampled: bool) -> str:
    """A sum of hashes, which no order of rows changes, after the version of DuckDB: another one may hash otherwise.

    Cells and lists are read by the conditions by which others read them: damaged statistics would hide some of them.
    """
    columns = ", ".join(COLUMNS if sampled else COLUMNS[:-2])
    total = "select coalesce(sum(hash({})::hugeint), 0)::varchar from {} where position {}"
    queries = [total.format(columns, table, "> 0")]
    if sampled:
        queries.append(total.format(columns, table, "= 0"))
    sums = [connection.execute(query).fetchall()[0][0] for query in queries]
    return " ".join([duckdb.__version__, *sums])


def _checksum_of(entries: Mapping[str, str]) -> str:
    return md5(json.dumps(sorted(entries.items())).encode(), usedforsecurity=False).hexdigest()


def check_rows(connection: duckdb.DuckDBPyConnection, file: Path, footer: Mapping[str, str]) -> None:
    """Raise where the rows or the footer of a counts file are not those that were written.

    Files of Spark have no checksum.
    """
    damaged = CountsError(f"{file} is damaged: its rows are not those that were counted. Count the log again.")
    entries = {key: value for key, value in footer.items() if key.startswith("prudent_")}
    known = entries.pop(_CHECKSUM, None)
    if known is None and _TALLY not in footer:
        return
    *rows, last = (known or "").split(" ")
    if last != _checksum_of(entries) or not rows:
        raise damaged
    table = f"read_parquet({file_text(file)}, hive_partitioning = false)"
    try:
        sampled = footer_entry(footer, SAMPLE) not in (NOTHING, None)
        if rows[0] == duckdb.__version__ and row_checksum(connection, table, sampled=sampled) != " ".join(rows):
            raise damaged
    except duckdb.Error as error:
        raise damaged from error


def counts_manifest(source: Source) -> Manifest:
    """The manifest of counts."""
    return Manifest("counts", sources={"log": source})


def counts_version(footer: Mapping[str, str]) -> str | None:
    """The version of the counts in a file, or None where it holds none."""
    return footer_entry(footer, VERSION)


def counts_footer(footer: Mapping[str, str], file: str) -> Footer:
    """What a counts file of this version holds; an error where it is none."""
    version = counts_version(footer)
    if version is None:
        raise CountsError(f"{file} does not hold counts. Make them with: prudent count LOG -o COUNTS")
    if version != str(COUNTS_VERSION):
        raise CountsError(
            f"{file} has counts of version {version}; this prudent reads version {COUNTS_VERSION}. Count the log again."
        )
    try:
        tally = Tally.from_json(json.loads(footer[_TALLY])) if _TALLY in footer else None
    except ValueError as error:
        raise CountsError(f"{file} is marked as counts, but its tally is damaged. Count the log again.") from error
    return Footer(tally, footer_entry(footer, SAMPLE) or NOTHING)
