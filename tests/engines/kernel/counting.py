"""Counting a stream of a test."""

from typing import Any

import numpy as np

from prudent.engines import kernel
from prudent.engines.kernel import Counted
from prudent.storage.run import Run

from .logs import Stream

TYPES = ["uuC", "uuc", "luC", "uLb", "Lls", "llS", "uui", "LuI", "uul", "ulL"]


def count(stream: Stream, types: str, **options: Any) -> list[Counted]:
    settings = {"budget": 1 << 40, "max_positions": 5, "text_files": False, "choose": everything}
    counted = list(kernel.count(stream.capsule, types, **{**settings, **options}))
    assert stream.alive == 0
    return counted


def everything(run: Run, lists: Any) -> Any:
    return np.ones(len(run.contexts), bool)


def raw(counted: Any) -> list[bytes]:
    """The bytes of all arrays, with their types."""
    if counted is None:
        return []
    if isinstance(counted, bool):
        return [str(counted).encode()]
    if isinstance(counted, np.ndarray):
        return [counted.dtype.str.encode(), counted.tobytes()]
    return [part for name in counted.__dataclass_fields__ for part in raw(getattr(counted, name))]
