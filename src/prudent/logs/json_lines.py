"""JSON Lines: the first invalid line, and removing a byte order mark."""

import gzip
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prudent.base.errors import LogError
from prudent.logs.formats import first_bytes
from prudent.logs.intact import zip_fault
from prudent.logs.log import LISTS

BOM = b"\xef\xbb\xbf"


def without_bom(file: Path, copy: Path) -> Path:
    """The file, or a copy without its byte order mark: legal UTF-8, but DuckDB's JSON reader rejects it."""
    if not first_bytes(file, len(BOM)).startswith(BOM):
        return file
    if file.suffix.lower() == ".gz" and (fault := zip_fault(file)):
        raise LogError(fault)
    with gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb") as marked, copy.open("wb") as clean:
        marked.read(len(BOM))
        shutil.copyfileobj(marked, clean)
    return copy


def json_fault(files: Sequence[Path], columns: Mapping[str, str]) -> str | None:
    """A message that names the first invalid line, or None; `columns` maps meanings to column names.

    DuckDB counts lines from the start of its buffer, so its line numbers are wrong; this reads again from the top.
    """
    for file in files:
        if file.suffix.lower() == ".gz" and (fault := zip_fault(file)):
            return fault
        with gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                what = _json_line_fault(columns, line.removeprefix(BOM)) if line.strip() else None
                if what is not None:
                    return f"{file}, line {number} {what}. Fix or remove it."
    return None


def _json_line_fault(columns: Mapping[str, str], line: bytes) -> str | None:
    try:
        content = json.loads(line, object_pairs_hook=_once)
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeError:
        return "is not UTF-8"
    except RecursionError:
        return "is not JSON that anybody reads: it is nested too deeply"
    except ValueError as error:
        return f"is not JSON: {getattr(error, 'msg', error)}"
    if not isinstance(content, dict):
        return f"is not a JSON object: {line.decode().strip():.40}"
    for meaning in LISTS:
        name = columns.get(meaning)
        if name is not None and not isinstance(content.get(name), list | None):
            return f"has no list in {name!r} for the {meaning}"
    return None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("duplicate key")
    return content
