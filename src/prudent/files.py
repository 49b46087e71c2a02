"""Whole files or none: every output goes to a temporary file beside its target and is renamed when it is complete."""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from prudent.errors import WriteError


@contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to; it takes the target's place when the block ends well and vanishes when it does not.

    Killed or out of disk at any moment, the target is the old file or the new one, whole.
    """
    target = Path(target)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise WriteError(f"Cannot write {target}: {_reason(error)}.") from error
    os.close(handle)
    part = Path(name)
    try:
        yield part
        with part.open("rb+") as written:
            os.fsync(written.fileno())
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o666 & ~umask)  # mkstemp makes it private; an output is as readable as any other file
        part.replace(target)
    except (OSError, duckdb.IOException) as error:
        raise WriteError(f"Cannot write {target}: {_reason(error)}. What was there before is untouched.") from error
    finally:
        part.unlink(missing_ok=True)


def check_target(target: str | os.PathLike[str]) -> None:
    """Raise now what `replacing` would raise after the work: no such folder, no permission, a folder in its place."""
    target = Path(target)
    if target.is_dir():
        raise WriteError(f"Cannot write {target}: it is a folder.")
    if not target.parent.is_dir():
        raise WriteError(f"Cannot write {target}: there is no folder {target.parent}.")
    if not os.access(target.parent, os.W_OK):
        raise WriteError(f"Cannot write {target}: no permission to write in {target.parent}.")


def write_manifest(output: str | os.PathLike[str], content: Mapping[str, Any]) -> Path:
    """Write ``OUTPUT.manifest.json`` beside an output: what it is and where it came from."""
    path = manifest_path(output)
    with replacing(path) as part:
        part.write_text(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    return path


def manifest_path(output: str | os.PathLike[str]) -> Path:
    """Where the manifest of an output lies."""
    return Path(f"{os.fspath(output)}.manifest.json")


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error).splitlines()[0]
    return text.rstrip(".")
