"""Short name <-> class; reads and prints ``bayes(delta=0.2)``.

One spelling serves Python, the command line, tables, legends and manifests, so that a result can be
reproduced by copying the text that stands beside it: ``parse(str(x)) == x``.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from math import nan
from operator import index
from typing import Any, Generic, TypeVar

from prudent.base.errors import UsageError, did_you_mean

T = TypeVar("T")

_CALL = re.compile(r"\s*([a-z][a-z0-9-]*)\s*(?:\((.*)\))?\s*", re.DOTALL)
_SETTING = re.compile(r"\s*([a-z_]+)\s*=\s*(\[[^\]]*\]|[^,\[\]=()]+?)\s*(?:,|$)")


class Registry(Generic[T]):
    """The classes of one kind, by the name a user types."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._classes: dict[str, type[T]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._classes))

    def __getitem__(self, name: str) -> type[T]:
        try:
            return self._classes[name]
        except KeyError:
            raise UsageError(
                f"No {self.kind} is called {name!r}.{did_you_mean(name, self)} Known: {', '.join(self)}."
            ) from None

    def register(self, name: str) -> Callable[[type], type]:
        """Class decorator: make a frozen dataclass known under `name`; `str()` of its values then spells them."""

        def enter(cls: type) -> type:
            self._classes[name] = cls

            def spell(value: object) -> str:
                return _spell(name, value)

            cls.__str__ = spell  # type: ignore[assignment,method-assign]
            return cls

        return enter

    def parse(self, text: str) -> T:
        """The value that `text` spells, e.g. ``"bayes(delta=0.2)"``."""
        call = _CALL.fullmatch(text) if isinstance(text, str) else None
        if call is None:
            kind = f"{'an' if self.kind[0] in 'aeiou' else 'a'} {self.kind}"
            raise UsageError(f"Cannot read {text!r} as {kind}. Write it like 'name' or 'name(setting=value)'.")
        name, inside = call.groups()
        cls = self[name]
        return cls(**_read_settings(name, inside or "", [f.name for f in fields(cls)]))  # type: ignore[arg-type]


def _read_settings(name: str, text: str, known: list[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    at = 0
    while text[at:].strip():
        setting = _SETTING.match(text, at)
        if setting is None:
            raise UsageError(f"Cannot read {text[at:].strip()!r} in {name}(...). Write settings as name=value.")
        key, value = setting.groups()
        if key not in known:
            has = f"It has: {', '.join(known)}." if known else "It has none."
            raise UsageError(f"{name} has no setting {key!r}.{did_you_mean(key, known)} {has}")
        if key in settings:
            raise UsageError(f"{name}(...) sets {key!r} twice.")
        settings[key] = _read_value(value)
        at = setting.end()
    return settings


def _read_value(text: str) -> Any:
    if text.startswith("["):
        inside = text[1:-1].strip()
        return tuple(_read_value(part.strip()) for part in inside.split(",")) if inside else ()
    try:
        return float(text)
    except ValueError:
        return text


def _spell(name: str, value: Any) -> str:
    """What differs from the defaults, and always `delta`: the level is what one asks of a bound first."""
    shown = []
    for field in fields(value):
        setting = getattr(value, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if field.name == "delta" or setting != default:
            shown.append(f"{field.name}={_spell_value(setting)}")
    return f"{name}({', '.join(shown)})" if shown else name


def _spell_value(setting: Any) -> str:
    if isinstance(setting, tuple):
        return f"[{', '.join(_spell_value(part) for part in setting)}]"
    if isinstance(setting, float | int):
        return repr(float(setting)).removesuffix(".0")  # NumPy's numbers, of a sweep, would print as calls
    return str(setting)


# --- settings ---------------------------------------------------------------------------------------------------------


def as_number(value: object) -> float:
    """A setting as a number; NaN, which no comparison accepts, where it is a word or a list."""
    return (
        float(value)
        if isinstance(value, int | float) or (hasattr(value, "__float__") and not isinstance(value, str))
        else nan
    )


def whole_number(name: str, number: Any, least: int) -> int:
    """A setting that counts something."""
    try:
        number = index(number)  # NumPy's integers are as good as Python's
    except TypeError:
        raise UsageError(f"{name} is {number!r}; it must be a whole number.") from None
    if number < least:
        raise UsageError(f"{name} is {number}; it must be a whole number, at least {least}.")
    return int(number)
