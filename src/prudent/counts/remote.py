"""Counts files on object stores and HDFS: found, checked by their footers, with the tallies of their manifests."""

from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prudent.base.errors import CountsError, UsageError
from prudent.counts.days import Chosen, choose
from prudent.storage import filesystem
from prudent.storage.counts_file import counts_footer
from prudent.storage.filesystem import Location
from prudent.storage.manifest import IN_FOLDER, Manifest, Tally

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


def find_remote(
    paths: Iterable[str | PathLike[str]], remote: "FileSystem | None", *days: Any
) -> tuple[list[Location], Chosen]:
    """The counts files that paths name, and which of them count, by the folders of days they are in."""
    files = [file for path in paths for file in filesystem.find(fspath(path), remote)]
    if len(set(files)) < len(files):
        raise UsageError("A file is named twice, and would be counted twice.")
    by_path = {Path(file.name): file for file in files}  # days look at the names of folders alone
    chosen = choose(list(by_path), *days)
    return [by_path[file] for file in chosen.files], chosen


def read_tallies(files: Sequence[Location]) -> Tally:
    """The sum of the tallies, from the footers of files or from the manifests beside Spark's folders."""
    total, folders, kinds = Tally(0), dict[str, Location](), dict[str, str]()
    for file in files:
        footer = filesystem.read_footer(file)
        entries = {
            key.decode(errors="replace"): value.decode(errors="replace") for key, value in footer.metadata.items()
        }
        tally = counts_footer(entries, file.name).tally
        kinds[file.name] = _kinds(footer.schema)
        if kinds[file.name] != kinds[files[0].name]:
            first = kinds[files[0].name]
            raise CountsError(
                f"{files[0].name} names its contexts and items by {first}, {file.name} by {kinds[file.name]}: they "
                "cannot be added."
            )
        if tally is None:  # a part file of Spark's
            folders.setdefault(file.path.rpartition("/")[0], file)
        else:
            total += tally
    for folder, file in folders.items():
        total += _tally_beside(folder, file)
    return total


def _kinds(schema: Any) -> str:
    columns = {column.name: column.physical_type for column in (schema.column(i) for i in range(len(schema)))}
    return " and ".join("text" if columns.get(name) == "BYTE_ARRAY" else "integers" for name in ("context", "item"))


def _tally_beside(folder: str, file: Location) -> Tally:
    name = file.name.rpartition("/")[0]
    beside = Location(f"{name}.manifest.json", file.system, f"{folder}.manifest.json")
    inside = Location(f"{name}/{IN_FOLDER}", file.system, f"{folder}/{IN_FOLDER}")
    content = filesystem.read_text(inside) or filesystem.read_text(beside)
    if content is None:
        raise CountsError(f"There is no {beside.name}, which has the tally of {name}. Count the log again.")
    return Manifest.from_text(content, beside.name, "counts").sources["log"].tally
