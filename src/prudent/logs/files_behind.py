"""Which files the names of logs stand for, so that two logs can be compared by their files."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from prudent.base.errors import PrudentError
from prudent.logs.formats import find_files
from prudent.storage.files import has_scheme


def files_behind(names: Iterable[str]) -> set[Path]:
    """The files that names of logs stand for, without symbolic links."""
    files: set[Path] = set()
    for name in names:
        if has_scheme(name):  # as it stands in a manifest: a copy has another path
            files |= _literally(name)
            continue
        try:
            files |= {file.resolve() for file in find_files(name)}
        except (PrudentError, OSError, ValueError, RuntimeError):  # it is gone, or was never a file of this machine
            files |= _literally(name)
    return files


def recorded_files(names: Iterable[str]) -> set[Path]:
    """The same for names in a manifest, which is untrusted: nothing is matched, and no disk is walked.

    A folder stands for the Parquet files in it and in its folders of days.
    """
    files: set[Path] = set()
    for name in names:
        with suppress(OSError, ValueError, RuntimeError):
            inside = [file for pattern in ("*.parquet", "day=*/*.parquet") for file in Path(name).glob(pattern)]
            files |= {file.resolve() for file in inside if file.name[0] not in "._"} or _literally(name)
    return files


def _literally(name: str) -> set[Path]:
    with suppress(OSError, ValueError, RuntimeError):  # a NUL, a name too long, links in a circle
        return {Path(name).resolve()}
    return set()
