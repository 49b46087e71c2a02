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
(``prudent_manifest``), a checksum of all bytes (``prudent_checksum``), and the threshold of the sample
(``prudent_sample``), which is empty where a file keeps no lists; then the columns items and clicks may be missing.
Spark cannot write keys of its own into a footer: its files have the version and the threshold in the metadata of the
column ``n``, under the same names, no checksum, and their tally in the manifest of their folder, ``_manifest.json``.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import duckdb

from prudent.base.errors import CountsError
from prudent.storage.checksum import is_damaged
from prudent.storage.manifest import Manifest, Source, Tally
from prudent.storage.parquet import footer_entry, write_parquet
from prudent.storage.sketch import NOTHING

COUNTS_VERSION = 3
"""Version of the layout; raised when a column changes its meaning."""
CELL_KEYS = ("context", "item", "position", "prev", "click", "more")
COLUMNS = (*CELL_KEYS, "n", "items", "clicks")
"""Of a file with a sample of lists."""

VERSION, SAMPLE = "prudent_counts", "prudent_sample"
_TALLY = "prudent_tally"


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
        rows = (
            f"select {keys}, n, null as items, null as clicks from ({cells}) union all "
            f"select context, null, 0, 0, false, false, n, items, clicks::boolean[] from ({lists})"
        )
    entries = {VERSION: str(COUNTS_VERSION), _TALLY: json.dumps(source.tally.to_json()), SAMPLE: threshold}
    write_parquet(connection, rows, target, footer=entries | counts_manifest(source).footer)


def check_bytes(file: Path, footer: Mapping[str, str]) -> None:
    """Raise where a counts file is not as it was written; files of Spark, which have no tally, have no checksum."""
    if is_damaged(file, sealed=_TALLY in footer):
        raise CountsError(f"{file} is damaged: its bytes are not those that were written. Count the log again.")


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
