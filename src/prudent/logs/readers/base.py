"""The registry of readers: functions that turn files of a predefined format into a `Log`."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from prudent.base.errors import UsageError
from prudent.base.spec import Registry
from prudent.logs.log import Log

Reader = Callable[..., Log]
"""Takes ``source``, a path or several, and keyword settings, among them ``engine``."""
R = TypeVar("R", bound=Reader)


class Readers(Registry[Any]):
    """Readers by the name of their format, as in ``format="ubi"`` and ``--format ubi``."""

    def register(self, name: str) -> Callable[[R], R]:
        """Function decorator: enter a reader under the name of its format."""

        def enter(reader: R) -> R:
            self._classes[name] = reader  # type: ignore[assignment]
            return reader

        return enter

    def _refuse(self, entry: object) -> str:
        return "" if callable(entry) else "it is not a function from paths to a Log."


readers = Readers("log format", "prudent.readers", package="prudent.logs.readers")


def read_log(source: Any, format: str, **settings: Any) -> Log:
    """The log in files of a predefined format; `settings` are those of its reader."""
    reader: Reader = readers[format]
    known = inspect.signature(reader).parameters
    for name in settings:
        if name not in known:
            raise UsageError(f"The format {format} has no setting {name} (--{name.replace('_', '-')}): leave it out.")
    if not isinstance(settings.get("context", ""), str):
        raise UsageError(f"The format {format} takes one context (--context), not several.")
    return reader(source, **settings)
