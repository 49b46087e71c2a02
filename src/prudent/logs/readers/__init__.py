"""Named formats: click logs of others that become a `Log`, and relevance labels for simulation."""

from collections.abc import Callable, Mapping

from prudent.logs.log import Log
from prudent.logs.readers.letor import Labels, read_labels
from prudent.logs.readers.ubi import ubi
from prudent.logs.readers.yandex import read_yandex, read_yandex_personalized

__all__ = ["FORMATS", "Labels", "read_labels", "read_yandex", "read_yandex_personalized", "ubi"]

FORMATS: Mapping[str, Callable[..., Log]] = {
    "ubi": ubi,
    "yandex": read_yandex,
    "yandex-personalized": read_yandex_personalized,
}
"""The readers of click logs by the name that ``--format`` has for them: each takes paths, and an ``engine``."""
