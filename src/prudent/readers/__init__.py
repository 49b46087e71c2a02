"""Named formats: click logs of others that become a `Log`, and relevance labels for simulation."""

from collections.abc import Mapping
from typing import Protocol

from prudent.engines.duckdb import DuckDB
from prudent.log import Log
from prudent.readers.letor import Labels, read_labels
from prudent.readers.yandex import Paths, read_yandex, read_yandex_personalized

__all__ = ["FORMATS", "Labels", "read_labels", "read_yandex", "read_yandex_personalized"]


class Reader(Protocol):
    """Makes a log of files in a format of their own."""

    def __call__(self, source: Paths, *, engine: DuckDB | None = None) -> Log: ...


FORMATS: Mapping[str, Reader] = {"yandex": read_yandex, "yandex-personalized": read_yandex_personalized}
"""The readers of click logs by the name that ``--format`` has for them."""
