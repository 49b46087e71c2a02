r"""Predefined log formats, each read into a `Log`, and relevance labels for simulation.

A reader takes ``source`` (a path or several) and keyword settings, among them ``engine``. Readers of other packages
enter through the entry point group ``prudent.readers``.

>>> import json, pathlib, tempfile
>>> from prudent import readers
>>> query = {"query_id": "1", "user_query": "shoes", "query_response_hit_ids": ["i1", "i2"]}
>>> click = {"query_id": "1", "action_name": "click", "event_attributes": {"object": {"object_id": "i2"}}}
>>> with tempfile.TemporaryDirectory() as folder:
...     file = pathlib.Path(folder, "ubi.ndjson")
...     _ = file.write_text("\n".join(map(json.dumps, (query, click))))
...     log = readers.ubi(file)
>>> log.layout
'lists'
"""

import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

from prudent.base.errors import UsageError, did_you_mean
from prudent.logs.log import Log
from prudent.logs.readers.letor import Labels, read_labels
from prudent.logs.readers.ubi import ubi
from prudent.logs.readers.yandex import read_yandex, read_yandex_personalized

__all__ = ["FORMATS", "Labels", "read_labels", "read_log", "read_yandex", "read_yandex_personalized", "ubi"]

FORMATS: Mapping[str, Callable[..., Log]] = {
    "ubi": ubi,
    "yandex": read_yandex,
    "yandex-personalized": read_yandex_personalized,
    **{entry.name: entry.load() for entry in entry_points(group="prudent.readers")},
}
"""Reader by the name of its format, as in ``format="ubi"`` and ``--format ubi``."""


def read_log(source: Any, format: str, **settings: Any) -> Log:
    """The log in files of a predefined format; `settings` are those of its reader."""
    if format not in FORMATS:
        raise UsageError(f"There is no format {format!r}.{did_you_mean(format, FORMATS)} Known: {', '.join(FORMATS)}.")
    known = inspect.signature(FORMATS[format]).parameters
    for name in settings:
        if name not in known:
            raise UsageError(f"The format {format} has no setting {name} (--{name.replace('_', '-')}): leave it out.")
    return FORMATS[format](source, **settings)
