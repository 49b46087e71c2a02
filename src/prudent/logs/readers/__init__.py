r"""Predefined log formats, each read into a `Log`.

A reader takes ``source`` (a path or several) and keyword settings, among them ``engine``. Readers of other packages
enter through the entry point group ``prudent.readers``.

>>> import json, pathlib, tempfile
>>> from prudent import readers
>>> query = {"query_id": "1", "user_query": "shoes", "query_response_hit_ids": ["i1", "i2"]}
>>> click = {"query_id": "1", "action_name": "click", "event_attributes": {"object": {"object_id": "i2"}}}
>>> with tempfile.TemporaryDirectory() as folder:
...     file = pathlib.Path(folder, "ubi.ndjson")
...     _ = file.write_text("\n".join(map(json.dumps, (query, click))))
...     log = readers.read_ubi(file)
>>> log.layout
'lists'
"""

from prudent.logs.readers.base import read_log, readers
from prudent.logs.readers.ubi import read_ubi
from prudent.logs.readers.yandex import read_yandex, read_yandex_personalized

__all__ = ["read_log", "read_ubi", "read_yandex", "read_yandex_personalized", "readers"]
