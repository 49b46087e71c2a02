"""JSON Lines: where they are wrong, and without a byte order mark."""

import gzip
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prudent.logs.log import first_bytes

BOM = b"\xef\xbb\xbf"
LISTS = ("items", "clicks")


def without_bom(file: Path, copy: Path) -> Path:
    """A byte order mark is legal UTF-8, but DuckDB's JSON reader stumbles over it."""
    if not first_bytes(file, len(BOM)).startswith(BOM):
        return file
    with gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb") as marked, copy.open("wb") as clean:
        marked.read(len(BOM))
        shutil.copyfileobj(marked, clean)
    return copy


def json_fault(files: Sequence[Path], columns: Mapping[str, str]) -> str | None:
    """Where JSON Lines are wrong: file, line and what; `columns` are meanings with their names.

    DuckDB counts the lines before a fault from where its buffer began; this looks again, from the top.
    """
    for file in files:
        with gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                what = _json_line_fault(columns, line.removeprefix(BOM)) if line.strip() else None
                if what is not None:
                    return f"{file}, line {number} {what}. Mend or remove it."
    return None


def _json_line_fault(columns: Mapping[str, str], line: bytes) -> str | None:
    try:
        content = json.loads(line, object_pairs_hook=_once)
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeError:
        return "is not UTF-8"
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
        raise ValueError("one of its keys stands there twice")
    return content
