"""Business rules as a user writes them: read, checked, and as JSON for the manifest."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from prudent.base.errors import RulesError, did_you_mean
from prudent.base.spec import as_number
from prudent.base.strict_json import parse_json
from prudent.base.text import visible
from prudent.storage.files import is_utf8, read_small, reason

KINDS = ("exclude", "pin", "keep_first", "at_most", "new", "bury")
"""The kinds of rules in the order in which they are applied: where two cannot both be met, the earlier one is."""
_KEYS = {*KINDS, "item_groups"}
_LARGEST = 16 << 20  # bytes of a file of rules
_MOST = (1 << 31) - 1  # a number in a rule


class Named(NamedTuple):
    """The items that a rule names: one, in one context or in all."""

    item: str | int
    context: str | int | None = None
    position: int = 0  # of a pin


@dataclass(frozen=True)
class Rules:
    """Checked business rules."""

    exclude: tuple[Named, ...] = ()
    pin: tuple[Named, ...] = ()
    bury: tuple[Named, ...] = ()
    keep_first: int = 0
    at_most: Mapping[str, int] = field(default_factory=dict)  # column of the groups -> items of one value
    new_share: float = 0.0
    new_below: int = 1  # an item with fewer impressions in its context is new
    item_groups: Any = None  # a table of items, or its path

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of which there is a rule, in their order."""
        there = (self.exclude, self.pin, self.keep_first, self.at_most, self.new_share, self.bury)
        return tuple(kind for kind, rule in zip(KINDS, there, strict=True) if rule)

    def to_json(self) -> dict[str, Any]:
        """As a user would write them; a table in memory is named by its type."""
        named = {
            kind: [
                {"item": one.item}
                | ({} if one.context is None else {"context": one.context})
                | ({"position": one.position} if kind == "pin" else {})
                for one in getattr(self, kind)
            ]
            for kind in ("exclude", "pin", "bury")
        }
        entries: dict[str, Any] = {
            **named,
            "keep_first": self.keep_first,
            "at_most": dict(self.at_most),
            "new": {"share": self.new_share, "below_impressions": self.new_below} if self.new_share else None,
            "item_groups": None if self.item_groups is None else self.item_groups_name,
        }
        return {key: value for key, value in entries.items() if value}

    @property
    def item_groups_name(self) -> str:
        """How to name the table of groups."""
        return (
            str(self.item_groups)
            if isinstance(self.item_groups, str | PathLike)
            else f"the {type(self.item_groups).__name__}"
        )

    def about(self, kind: str, item: str | int, context: str | int) -> Named | None:
        """The rule of this kind, if there is one, that names the item in this context."""
        return self._named.get((kind, item, None)) or self._named.get((kind, item, context))

    @cached_property
    def _named(self) -> dict[tuple[str, str | int, str | int | None], Named]:
        named = [(kind, one) for kind in ("exclude", "pin", "bury") for one in getattr(self, kind)]
        return {(kind, one.item, one.context): one for kind, one in named}


def read_rules(source: "Mapping[str, Any] | str | PathLike[str] | Rules") -> Rules:
    """Rules from a mapping, or from a JSON file, whose `item_groups` are a path beside it.

    >>> read_rules({"pin": [{"item": "i3", "position": 1}], "keep_first": 0}).kinds
    ('pin',)
    """
    if isinstance(source, Rules):
        return source
    if isinstance(source, Mapping):
        return _checked(source, "The rules", Path())
    file = Path(source)
    try:
        content = parse_json(read_small(file, _LARGEST))
    except OSError as error:
        raise RulesError(f"Cannot read the rules {file}: {reason(error)}.") from error
    except ValueError as error:
        raise RulesError(f"{file} is not JSON that can be read: {error}.") from error
    return _checked(content, str(file), file.parent)


def _checked(content: Any, where: str, folder: Path) -> Rules:
    if not isinstance(content, Mapping):
        raise RulesError(f'{where}: an object is needed, such as {{"at_most": {{"brand": 2}}}}.')
    for key in content:
        if key not in _KEYS:
            near = did_you_mean(str(key)[:40], _KEYS)
            raise RulesError(
                f"{where}: there is no rule {_brief(key)}.{near} Known: {', '.join([*KINDS, 'item_groups'])}."
            )
    groups = content.get("item_groups")
    if isinstance(groups, str | PathLike):
        if not str(groups):
            raise RulesError(f"{where}: item_groups is empty; it must be the path of a table.")
        groups = str(folder / Path(groups))
    elif isinstance(groups, list | dict | int | float):
        raise RulesError(f"{where}: item_groups is {_brief(groups)}; it must be the path of a table.")
    new = {} if content.get("new") is None else content["new"]
    if not isinstance(new, Mapping) or not {*new} <= {"share", "below_impressions"} or (new and "share" not in new):
        raise RulesError(f'{where}: new is {_brief(new)}; write {{"share": 0.1}}, with or without "below_impressions".')
    share = new.get("share", 0.0)
    if isinstance(share, bool) or not 0 <= as_number(share) <= 1:
        raise RulesError(f"{where}: the share of new items is {_brief(share)}; it must be a number from 0 to 1.")
    rules = Rules(
        **{kind: tuple(_named(content.get(kind), kind, where)) for kind in ("exclude", "pin", "bury")},
        keep_first=_whole(content.get("keep_first", 0), "keep_first", where, 0),
        at_most=_caps(content.get("at_most"), where),
        new_share=float(share),
        new_below=_whole(new.get("below_impressions", 1), "below_impressions", where, 1),
        item_groups=groups,
    )
    _check_contradictions(rules, where)
    return rules


def _whole(value: Any, name: str, where: str, least: int) -> int:
    if type(value) is not int or not least <= value <= _MOST:
        limits = f"at least {least}" + (f" and at most {_MOST:,}" if as_number(value) > _MOST else "")
        raise RulesError(f"{where}: {name} is {_brief(value)}; it must be a whole number, {limits}.")
    return value


def _caps(content: Any, where: str) -> dict[str, int]:
    caps = {} if content is None else content
    if not isinstance(caps, Mapping):
        raise RulesError(
            f'{where}: at_most is {_brief(caps)}; write the column and the number, such as {{"brand": 2}}.'
        )
    return {str(column): _whole(most, f"at_most of {visible(column)}", where, 1) for column, most in caps.items()}


def _named(content: Any, kind: str, where: str) -> Iterable[Named]:
    example = '{"item": "i3", "context": "shoes"' + (', "position": 1}' if kind == "pin" else "}")
    needed = {"item", "position"} if kind == "pin" else {"item"}
    named = [] if content is None else content
    if not isinstance(named, list | tuple):
        raise RulesError(f"{where}: {kind} is {_brief(named)}; it must be a list of objects such as {example}.")
    for one in named:
        names = [one.get(name) for name in ("item", "context") if name in one] if isinstance(one, Mapping) else [None]
        fits = isinstance(one, Mapping) and needed <= {*one} <= {*needed, "context"}
        if not fits or not all(isinstance(name, str) or type(name) is int for name in names):
            raise RulesError(
                f"{where}: {_brief(one)} is no rule to {kind}. Write {example}, with or without the context."
            )
        if not all(is_utf8(str(name)) for name in names):
            raise RulesError(f"{where}: {_brief(one)} has half a character, which no log has.")
        position = _whole(one["position"], "the position of a pin", where, 1) if kind == "pin" else 0
        yield Named(one["item"], one.get("context"), position)


# --- rules that contradict each other ---------------------------------------------------------------------------------


def _check_contradictions(rules: Rules, where: str) -> None:
    """Raise where two rules cannot both be met, whatever the log holds."""
    pinned: dict[Any, dict[Any, int]] = {}  # context -> item -> position; those of all contexts under None
    for one in rules.pin:
        before = pinned.setdefault(one.context, {}).setdefault(one.item, one.position)
        if before != one.position:
            raise _contradiction(where, f"{_name(one)} is pinned to {before} and to {one.position}")
    everywhere = pinned.get(None, {})
    for context, own in pinned.items():
        for item in own.keys() & everywhere.keys():
            if own[item] != everywhere[item]:
                raise _contradiction(
                    where, f"{_brief(item)} is pinned to {everywhere[item]} and, in {_brief(context)}, to {own[item]}"
                )
        places = Counter((everywhere | own).values())
        position, pins = max(places.items(), key=lambda entry: entry[1], default=(0, 0))
        if pins > 1:
            at = "" if context is None else f" in {_brief(context)}"
            raise _contradiction(where, f"{pins} items are pinned to position {position}{at}")
    for kind, others in (("exclude", (*rules.pin, *rules.bury)), ("bury", rules.pin)):
        named = {(one.item, one.context) for one in getattr(rules, kind)}
        items = {item for item, _ in named}
        for one in others:
            other = "pin" if one.position else "bury"
            meets = one.item in items if one.context is None else {(one.item, one.context), (one.item, None)} & named
            if meets:
                raise _contradiction(where, f"{_name(one)} is named by {kind} and by {other}")
    first = min((one.position for one in rules.pin), default=rules.keep_first + 1)
    if first <= rules.keep_first:
        raise _contradiction(where, f"keep_first keeps {rules.keep_first} positions, and an item is pinned to {first}")
    if rules.at_most and rules.item_groups is None:
        raise RulesError(
            f"{where}: at_most needs item_groups, a table with the columns item and {', '.join(rules.at_most)}."
        )
    if len(rules.at_most) > 1 and rules.new_share:
        raise RulesError(
            f"{where}: a share of new items works with at_most of one column, not of {len(rules.at_most)}. Leave out "
            "one of the two rules, or make one column of both groups."
        )


def _contradiction(where: str, what: str) -> RulesError:
    return RulesError(f"{where} contradict each other: {what}. Keep one of the two.")


def _name(one: Named) -> str:
    return _brief(one.item) if one.context is None else f"{_brief(one.item)} in {_brief(one.context)}"


def _brief(content: Any) -> str:
    return visible(repr(content))
