"""Registries: short name <-> class, spelled ``bayes(delta=0.2)`` or ``dm(model=pbm(examination=[1, 0.5]))``.

One spelling serves Python, the command line, tables, legends and manifests: a result is reproduced by copying the
text beside it, because ``parse(str(x)) == x``. Classes of other packages join through entry points; see `Registry`.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from itertools import accumulate
from math import inf, nan
from operator import index
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

from prudent.base.errors import PrudentWarning, UsageError, did_you_mean

T = TypeVar("T")

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_CALLED = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_SETTING = re.compile(r"[a-z_]+")
_DEEPEST = 20  # brackets in brackets; text may come from the manifest of a stranger


class Registry(Generic[T]):
    """The classes of one kind, by the name a user types.

    kind
        The word for it in messages, such as ``"bound"``.
    group
        The entry point group through which installed packages add classes, such as ``"prudent.bounds"``. In their
        ``pyproject.toml``: ``[project.entry-points."prudent.bounds"]``, then ``wilson = "my_package.wilson:Wilson"``.
        They are loaded when a name is unknown or all names are listed, not on import. One that fails to load is a
        warning.
    attribute
        What tells a value of this kind from any other object, such as ``"score"``.
    package
        Where our own classes are: every module of it is imported before names are looked up, so that a new class is
        one new file.
    """

    def __init__(self, kind: str, group: str = "", attribute: str = "__str__", package: str = "") -> None:
        self.kind = kind
        self.group = group
        self.attribute = attribute
        self.package = package
        self._classes: dict[str, type[T]] = {}
        self._complete = not group

    def __iter__(self) -> Iterator[str]:
        self._load_plugins()
        return iter(sorted(self._classes))

    def __contains__(self, name: object) -> bool:
        return name in self._classes or name in list(self)

    def __getitem__(self, name: str) -> type[T]:
        if name not in self:
            raise UsageError(f"No {self.kind} is called {name!r}.{did_you_mean(name, self)} Known: {', '.join(self)}.")
        return self._classes[name]

    def register(self, name: str) -> Callable[[type], type]:
        """Class decorator: enter a frozen dataclass under `name`; ``str()`` of its values then spells them."""
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} cannot name a {self.kind}: use lower-case letters, digits and hyphens.")

        def enter(cls: type) -> type:
            self._classes[name] = cls

            def spell(value: object) -> str:
                return _spell(name, value)

            cls.__str__ = spell  # type: ignore[assignment,method-assign]
            return cls

        return enter

    def parse(self, text: str) -> T:
        """The value that `text` spells, e.g. ``"bayes(delta=0.2)"``; spaces and the order of settings are free."""
        call = _read_call(text) if isinstance(text, str) and _depth(text) <= _DEEPEST else None
        if call is None:
            shown = text if not isinstance(text, str) or len(text) < 200 else f"{text[:200]}..."
            raise UsageError(f"Cannot read {shown!r} as {self._a_kind}. Write it like 'name' or 'name(setting=value)'.")
        name, settings = call
        cls = self[name]
        return cls(**_read_settings(name, settings or "", [f.name for f in fields(cls)]))  # type: ignore[arg-type]

    def resolve(self, value: str | T) -> T:
        """The value itself, or the one that a text spells."""
        resolved = self.parse(value) if isinstance(value, str) else value
        if not hasattr(resolved, self.attribute) or isinstance(resolved, type):
            raise UsageError(f"{value!r} is not {self._a_kind}. Known: {', '.join(self)}.")
        return resolved

    def summary(self, name: str) -> str:
        """The first sentence of the documentation of a class."""
        text = " ".join((self[name].__doc__ or "").split("\n\n")[0].split()).replace("`", "")
        return text if text.endswith(".") else f"{text}."

    @property
    def _a_kind(self) -> str:
        return f"{'an' if self.kind[0] in 'aeiou' else 'a'} {self.kind}"

    def _load_plugins(self) -> None:
        if self._complete:
            return
        self._complete = True  # first: a plug-in may list this registry while it is imported
        if self.package:
            for module in iter_modules(import_module(self.package).__path__, f"{self.package}."):
                import_module(module.name)
        for entry in sorted(entry_points(group=self.group), key=lambda entry: (entry.name, entry.value)):
            try:
                self._load_plugin(entry)
            except Exception as error:  # whatever the code of another package raises
                package = f" of {entry.dist.name} {entry.dist.version}" if entry.dist else ""
                warnings.warn(
                    f"The {self.kind} {entry.name!r}{package} is not available: loading {entry.value} failed with "
                    f"{type(error).__name__}: {error}",
                    PrudentWarning,
                    stacklevel=2,
                )

    def _load_plugin(self, entry: EntryPoint) -> None:
        ours = self._classes.get(entry.name)
        cls = entry.load()
        if ours is not None and ours is not cls:
            raise UsageError(f"the name is taken by {ours.__module__}.{ours.__qualname__}.")
        if reason := self._refuse(cls):
            raise UsageError(reason)
        self.register(entry.name)(cls)

    def _refuse(self, entry: object) -> str:
        """Why a plug-in cannot join; empty where it can."""
        fits = isinstance(entry, type) and is_dataclass(entry) and hasattr(entry, self.attribute)
        return "" if fits else f"it is not a dataclass with {self.attribute!r}."


# --- reading and spelling ---------------------------------------------------------------------------------------------


def _depth(text: str) -> int:
    """How many brackets are open at once, at most."""
    steps = (character in "([" or -(character in ")]") for character in text)
    return max(accumulate(steps), default=0)


def _read_call(text: str) -> tuple[str, str | None] | None:
    """The name and, between brackets, the settings; by hand, because regular expressions try every run of blanks.

    >>> _read_call(" bayes (delta=0.2) "), _read_call("mle"), _read_call("two words")
    (('bayes', 'delta=0.2'), ('mle', None), None)
    """
    name, bracket, rest = text.strip().partition("(")
    if not _CALLED.fullmatch(name.rstrip()) or (bracket and not rest.endswith(")")):
        return None
    return name.rstrip(), rest[:-1] if bracket else None


def _read_settings(name: str, text: str, known: list[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for part in _split(text):
        key, _, spelled = (side.strip() for side in part.partition("="))
        value = _read_value(spelled) if _SETTING.fullmatch(key) else None
        if value is None:
            raise UsageError(f"Cannot read {part.strip()!r} in {name}(...). Write settings as name=value.")
        if key not in known:
            has = f"It has: {', '.join(known)}." if known else "It has none."
            raise UsageError(f"{name} has no setting {key!r}.{did_you_mean(key, known)} {has}")
        if key in settings:
            raise UsageError(f"{name}(...) sets {key!r} twice.")
        settings[key] = value
    return settings


def _read_value(text: str) -> Any:
    """A number, a word, a call as text (the class with the setting resolves it), a tuple of these; None if neither."""
    if text.startswith("[") and text.endswith("]"):
        values = tuple(_read_value(part.strip()) for part in _split(text[1:-1]))
        return None if None in values else values
    call = _read_call(text)
    if call is not None and call[1] is not None:
        return text
    if not text or set(text) & set("[]()=,"):
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _split(text: str) -> list[str]:
    """The parts between commas outside of brackets; a comma after the last is fine.

    >>> _split("a=[1, 2], b=f(c=3),")
    ['a=[1, 2]', ' b=f(c=3)']
    """
    parts, start, depth = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]] if text[start:].strip() else parts


def _spell(name: str, value: Any) -> str:
    """The settings that differ from the defaults, and always `delta`, the level of a bound."""
    spelled = []
    for field in fields(value):
        setting = _spell_value(getattr(value, field.name))
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if field.name == "delta" or setting != _spell_value(default):
            spelled.append(f"{field.name}={setting}")
    return f"{name}({', '.join(spelled)})" if spelled else name


def _spell_value(setting: Any) -> str:
    if isinstance(setting, tuple):
        return f"[{', '.join(_spell_value(part) for part in setting)}]"
    if isinstance(setting, float | int):
        return repr(float(setting)).removesuffix(".0")  # NumPy's numbers, from a sweep, would print as calls
    return str(setting)


# --- argument checks --------------------------------------------------------------------------------------------------


def as_number(value: object) -> float:
    """A setting as a number; NaN, which no comparison accepts, where it is a word or a list."""
    numeric = isinstance(value, int | float) or (hasattr(value, "__float__") and not isinstance(value, str))
    try:
        return float(value) if numeric else nan  # type: ignore[arg-type]
    except OverflowError:  # an integer of hundreds of digits
        return inf if value > 0 else -inf  # type: ignore[operator]


def whole_number(name: str, number: Any, least: int, most: int | None = None) -> int:
    """A setting that counts something."""
    try:
        number = index(number)  # NumPy's integers are as good as Python's
    except TypeError:
        raise UsageError(f"{name} is {number!r}; it must be a whole number.") from None
    if number < least or (most is not None and number > most):
        limit = f"at least {least:,}" + ("" if most is None else f" and at most {most:,}")
        raise UsageError(f"{name} is {number:,}; it must be a whole number, {limit}.")
    return int(number)


def check_number(
    name: str,
    value: object,
    *,
    above: float = -inf,
    least: float = -inf,
    below: float = inf,
    most: float = inf,
    example: str = "",
) -> None:
    """Refuse a setting that is not a number between these limits; `above` and `below` are not included.

    >>> check_number("confidence", 2, above=0, below=1, example="0.95")
    Traceback (most recent call last):
    prudent.base.errors.UsageError: confidence is 2; it must be a number above 0 and below 1, such as 0.95.
    """
    number = as_number(value)
    inside = least <= number <= most and number > above
    if inside and number < below:
        return
    limits = {"above": above, "at least": least, "below": below, "at most": most}
    between = " and ".join(f"{words} {limit:g}" for words, limit in limits.items() if abs(limit) != inf)
    such_as = f", such as {example}" if example else ""
    raise UsageError(f"{name} is {value!r}; it must be a number{between and f' {between}'}{such_as}.")


def check_share(name: str, value: object) -> None:
    """Refuse what is not a share, from 0 to 1."""
    check_number(name, value, least=0, most=1)


def check_clip(clip: object) -> None:
    """Refuse a clip that does not cap a weight."""
    if not as_number(clip) > 0:
        raise UsageError(f"clip is {clip}; it must be a number above 0, or inf for none.")


def check_word(name: str, word: object, known: Sequence[str]) -> None:
    """Refuse a word that is not one of several.

    >>> check_word("reward", "click", ["clicks", "any-click"])
    Traceback (most recent call last):
    prudent.base.errors.UsageError: There is no reward 'click'. Did you mean 'clicks'? Known: clicks, any-click.
    """
    if word not in known:
        raise UsageError(f"There is no {name} {word!r}.{did_you_mean(str(word), known)} Known: {', '.join(known)}.")
