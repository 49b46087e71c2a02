"""JSON of strangers: parsed without what parsers read in different ways, and as values of the types that are meant."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from math import isfinite
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

_WHOLE = 1 << 63  # what 64 bits do not hold


def parse_json(text: str) -> Any:
    """The content of a text, or a ValueError with the reason: one key twice, no number, half a character.

    >>> parse_json('{"pin": [1], "pin": []}')
    Traceback (most recent call last):
    ValueError: the key 'pin' is there twice
    """
    try:
        content = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if "\\u" in text:  # only an escape leaves half of a pair of surrogates, which no file holds
        try:
            json.dumps(content, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("it has half a character, of two surrogates") from None
    return content


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key, value in pairs:
        if key in content:
            raise ValueError(f"the key {key!r} is there twice")
        content[key] = value
    return content


def _refuse_constant(name: str) -> float:
    raise ValueError(f"JSON has no number {name}")


def typed(content: Any, kind: Any) -> Any:
    """Content of JSON as a value of this type, also of a dataclass; a ValueError where it is none.

    >>> typed([1, 2.5], tuple[float, ...]), typed(None, float | None)
    ((1.0, 2.5), None)
    """
    origin, inside = get_origin(kind), get_args(kind)
    if origin is UnionType:
        (rest,) = (one for one in inside if one is not NoneType)
        return None if content is None else typed(content, rest)
    if is_dataclass(kind) and isinstance(kind, type) and isinstance(content, dict):
        return _typed_fields(content, kind)
    if origin in (tuple, Sequence) and isinstance(content, list):
        return tuple(typed(one, inside[0]) for one in content)
    if origin is Mapping and isinstance(content, dict):
        return {key: typed(value, inside[1]) for key, value in content.items()}
    if kind is float and type(content) in (int, float) and abs(content) < _WHOLE and isfinite(content):
        return float(content)
    if kind in (bool, str) and type(content) is kind:
        return content
    if kind is int and type(content) is int and -_WHOLE <= content < _WHOLE:
        return content
    raise ValueError(f"{content!r:.40} is no {getattr(kind, '__name__', kind)}")


def _typed_fields(content: dict[str, Any], kind: type) -> Any:
    hints = get_type_hints(kind)
    known = {one.name: one for one in fields(kind)}
    needed = {name for name, one in known.items() if one.default is MISSING and one.default_factory is MISSING}
    if not needed <= content.keys() <= known.keys():
        raise ValueError(f"a {kind.__name__} has other entries")
    return kind(**{name: typed(value, hints[name]) for name, value in content.items()})
