"""Manifest: what an output is, how it was made and from what, as JSON in the output and beside it.

A Parquet file has its manifest in the footer, and a folder of part files in ``_manifest.json``: one rename puts both
in place. The file beside the output is a copy for people, and all there is for an output of another format. Every
other module builds provenance as a `Manifest` and reads it back as one. A manifest is untrusted input: whatever
is not one, by another program, damaged or of a newer schema, raises a `ManifestError` that names the file.
"""

import json
import os
import stat
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal, get_args

import duckdb

from prudent import __version__
from prudent.base.errors import CountsError, ManifestError, PrudentWarning
from prudent.base.strict_json import parse_json
from prudent.storage.database import Database
from prudent.storage.digest import Digest
from prudent.storage.files import manifest_path, read_small, reason, replacing
from prudent.storage.parquet import footer_entry, read_footer
from prudent.storage.run import REWARD_UNITS

IN_FOLDER = "_manifest.json"
"""The manifest in a folder of part files, whose name Spark ignores."""
MANIFEST = "prudent_manifest"
"""The key of the manifest in a footer."""
SCHEMA = 1
"""Version of the JSON; raised when a key changes its meaning."""
_LARGEST, _DEEPEST = 64 << 20, 20  # bytes, and objects in objects, far above what a policy needs

Kind = Literal[
    "counts",
    "split",
    "policy",
    "judgments",
    "exploration",
    "difference",
    "export",
    "evaluation",
    "comparison",
    "tuning",
    "simulation",
    "experiment",
]


Unit = Literal["list", "impression"]


@dataclass(frozen=True)
class Tally:
    """How many lists of a log were counted, and how many were not, by reason.

    ``left_out`` is what a reader of `prudent.logs.readers` did not turn into lists, such as clicks outside any list.
    """

    lists: int
    rejected: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    unit: Unit = "list"  # single impressions, whose lists are not known, count as a list each
    reward: str = ""  # what the rewards of clicks are, if they were counted, in thousandths

    def __add__(self, other: "Tally") -> "Tally":
        if self.unit != other.unit:
            raise CountsError(
                "Counts of lists and counts of single impressions cannot be added: in these it is not known which "
                "items were shown together."
            )
        if self.reward != other.reward:
            rewards = " and ".join(repr(one) if one else "without rewards" for one in (self.reward, other.reward))
            raise CountsError(
                f"Counts of different rewards cannot be added: {rewards}. Count all of the logs with the same."
            )
        rejected, left_out = _sum(self.rejected, other.rejected), _sum(self.left_out, other.left_out)
        return Tally(self.lists + other.lists, rejected, left_out, self.unit, self.reward)

    @property
    def rejected_lists(self) -> int:
        """Rejected lists, whatever the reason."""
        return sum(self.rejected.values())

    @property
    def share_rejected(self) -> float:
        """Rejected lists as a share of all."""
        return self.rejected_lists / max(1, self.rejected_lists + self.lists)

    @property
    def reasons(self) -> list[str]:
        """The reasons and how often each occurred, the most frequent first."""
        ordered = sorted(self.rejected.items(), key=lambda entry: -entry[1])
        return [f"{n:,} × {reason}" for reason, n in ordered]

    def to_json(self) -> dict[str, Any]:
        """Plain dicts and integers."""
        unit = {} if self.unit == "list" else {"unit": self.unit}
        reward = {"reward": self.reward, "reward_units": REWARD_UNITS} if self.reward else {}
        return {"lists": self.lists, "rejected": dict(self.rejected), "left_out": dict(self.left_out), **unit, **reward}

    @classmethod
    def from_json(cls, content: object) -> "Tally":
        """The inverse of `to_json`; a ValueError for anything else."""
        entries = _mapping(content, "tally")
        rejected, left_out = (_mapping(entries.get(name), name) for name in ("rejected", "left_out"))
        lists = entries.get("lists")
        if not all(type(n) is int and n >= 0 for n in (lists, *rejected.values(), *left_out.values())):
            raise ValueError("lists, rejected and left_out have to be whole numbers, at least 0")
        unit = entries.get("unit", "list")
        if unit not in get_args(Unit):
            raise ValueError(f"they count {unit!r}")
        reward = entries.get("reward", "")
        units = entries.get("reward_units", REWARD_UNITS)
        if not isinstance(reward, str) or units != REWARD_UNITS:
            raise ValueError(f"their reward is {reward!r}, in units of 1/{units}")
        return cls(entries["lists"], rejected, left_out, unit, reward)


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {why: one.get(why, 0) + other.get(why, 0) for why in [*one, *other]}


@dataclass(frozen=True)
class Days:
    """The days of counts that were read, and with which half-life."""

    first: date
    last: date
    number: int
    since: date | None = None
    until: date | None = None
    half_life: float | None = None  # in days

    def to_json(self) -> dict[str, Any]:
        """Dates as text."""
        return {name: str(value) if isinstance(value, date) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, content: object) -> "Days":
        """The inverse of `to_json`; a ValueError for anything else."""
        entries = _mapping(content, "days")
        try:
            first, last, since, until = (_date(entries.get(name)) for name in ("first", "last", "since", "until"))
            if first is None or last is None:
                raise ValueError("days have no first or no last day")
            number, half_life = entries["number"], entries.get("half_life")
            if type(number) is not int or type(half_life) not in (int, float, type(None)):
                raise ValueError("number and half_life of days have to be numbers")
            return cls(first, last, number, since, until, None if half_life is None else float(half_life))
        except (TypeError, KeyError, OverflowError) as error:
            raise ValueError("days are damaged") from error

    def __str__(self) -> str:
        days = f"{self.number:,} days from {self.first} to {self.last}" if self.number > 1 else f"the day {self.first}"
        if self.half_life is None:
            return days
        return f"{days}, with a half-life of {self.half_life:g} day{'' if self.half_life == 1 else 's'}"


def _date(content: object) -> date | None:
    return None if content is None else date.fromisoformat(str(content))


@dataclass(frozen=True)
class Source:
    """Logs or files that something was made from, by name, with the tally of their lists."""

    inputs: tuple[str, ...]
    tally: Tally
    days: Days | None = None
    digest: Digest | None = None  # of what something was fitted to, so that the same lists are recognised elsewhere

    def to_json(self) -> dict[str, Any]:
        """The inputs, the tally and, where there are any, the days and the digest, on one level."""
        days = {} if self.days is None else {"days": self.days.to_json()}
        digest = {} if self.digest is None else {"digest": self.digest.text}
        return {"inputs": list(self.inputs), **self.tally.to_json(), **days, **digest}

    @classmethod
    def from_json(cls, content: object) -> "Source":
        """The inverse of `to_json`; a ValueError for anything else."""
        entries = _mapping(content, "source")
        inputs = entries.get("inputs")
        if not isinstance(inputs, list) or not all(isinstance(name, str) for name in inputs):
            raise ValueError("inputs have to be a list of names")
        days = Days.from_json(entries["days"]) if "days" in entries else None
        digest = Digest(str(entries["digest"])) if "digest" in entries else None
        return cls(tuple(inputs), Tally.from_json(entries), days, digest)


@dataclass(frozen=True)
class Manifest:
    """What an output is (`kind`), how it was made (`settings`), from what (`sources`), and a summary (`results`).

    ``sources`` are keyed by their role: ``log`` for what was counted, split or simulated, ``training`` for what a
    policy or model was fitted to, ``holdout`` for what it was evaluated on. Settings and results are plain JSON, so
    that a manifest that was written and read is equal to the one in memory.

    >>> manifest = Manifest("policy", {"model": "pbm"}, {"training": Source(("log.parquet",), Tally(5))})
    >>> Manifest.from_json(manifest.to_json()) == manifest
    True
    """

    kind: Kind
    settings: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)
    results: Mapping[str, Any] = field(default_factory=dict)
    prudent: str = __version__  # the version that made it; empty where there is no manifest

    def __post_init__(self) -> None:
        for name in ("settings", "results"):
            object.__setattr__(self, name, json.loads(json.dumps(getattr(self, name))))

    def to_json(self) -> dict[str, Any]:
        """As it is written."""
        return {
            "prudent": self.prudent,
            "kind": self.kind,
            "schema": SCHEMA,
            "settings": dict(self.settings),
            "sources": {role: source.to_json() for role, source in self.sources.items()},
            "results": dict(self.results),
        }

    @classmethod
    def from_json(cls, content: object) -> "Manifest":
        """The inverse of `to_json`; a ValueError, with the reason, for anything else."""
        entries = _mapping(content, "manifest")
        if "prudent" not in entries or "schema" not in entries:
            raise ValueError("it was not written by prudent")
        if entries["schema"] != SCHEMA:
            raise ValueError(f"it has schema {entries['schema']!r}, and this prudent reads schema {SCHEMA}")
        if entries.get("kind") not in get_args(Kind):
            raise ValueError(f"its kind is {entries.get('kind')!r}")
        settings, sources, results = (_mapping(entries.get(name), name) for name in ("settings", "sources", "results"))
        if any(_depth(part) > _DEEPEST for part in (settings, results)):
            raise ValueError(f"it is nested more than {_DEEPEST} deep")
        if entries["kind"] == "policy":
            _check_policy(settings, results)
        if entries["kind"] in ("counts", "split") and "log" not in sources:
            raise ValueError("it names no log")
        return cls(
            entries["kind"],
            settings,
            {role: Source.from_json(source) for role, source in sources.items()},
            results,
            str(entries["prudent"]),
        )

    def to_text(self) -> str:
        """The content of the file; numbers that JSON does not have, such as infinity, are a ValueError."""
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_text(cls, text: str, name: str, kind: Kind | None = None) -> "Manifest":
        """The manifest in a file of this name, which has to be of this kind."""
        try:
            manifest = cls.from_json(parse_json(text))
            if kind not in (None, manifest.kind):
                raise ValueError(f"it is of kind {manifest.kind}")
        except ValueError as error:
            expected = "a manifest" if kind is None else f"a manifest of kind {kind}"
            why = "it is not JSON" if isinstance(error, json.JSONDecodeError) else error
            raise ManifestError(f"{name} is not {expected}: {why}. Remove it, or make its output again.") from error
        return manifest

    @property
    def footer(self) -> dict[str, str]:
        """The entry for the footer of a Parquet file."""
        return {MANIFEST: self.to_text()}

    def write(self, output: str | os.PathLike[str]) -> Path:
        """Write it beside an output, as ``OUTPUT.manifest.json``."""
        path = manifest_path(output)
        with replacing(path) as part:
            part.write_text(self.to_text(), encoding="utf-8")
        return path

    @classmethod
    def read(cls, output: str | os.PathLike[str], kind: Kind | None = None) -> "Manifest | None":
        """The manifest in an output or, where it has none, beside it, of this kind; None where there is none at all.

        Where both are there and differ, as after a kill, the one in the output is used, with a warning.
        """
        path = manifest_path(output)
        if (inside := _read_inside(Path(output))) is None:
            beside = _read_beside(path, output)
            return None if beside is None else cls.from_text(beside, str(path), kind)
        manifest = cls.from_text(inside, f"The manifest in {output}", kind)
        try:
            beside = _read_beside(path, output)
            same = beside is None or cls.from_text(beside, str(path)) == manifest
        except ManifestError:
            same = False
        if not same:
            warnings.warn(
                f"{path} is not the manifest of {output}, which has its own: that one is used. Remove the other.",
                PrudentWarning,
                stacklevel=2,
            )
        return manifest


def _read_inside(output: Path) -> str | None:
    """The text of the manifest in a Parquet file or a folder of part files; None where there is none."""
    if output.is_dir():
        return _read_beside(output / IN_FOLDER, output)
    try:
        with output.open("rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode) or file.read(4) != b"PAR1":
                return None
        with Database().connect() as connection:
            return footer_entry(read_footer(connection, output), MANIFEST)
    except (OSError, ValueError, duckdb.Error):  # whoever reads its rows reports it
        return None


def _read_beside(path: Path, output: str | os.PathLike[str]) -> str | None:
    try:
        return read_small(path, _LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"Cannot read {path}: {reason(error)}. Remove it, or make {output} again.") from error


def _depth(content: object) -> int:
    """How deep lists and objects are nested, to one more than is allowed."""
    level, deep = [content], 0
    while level and deep <= _DEEPEST:
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        deep += 1
    return deep


def _check_policy(settings: Mapping[str, Any], results: Mapping[str, Any]) -> None:
    """The entries that other functions use have their types; a ValueError where they do not."""
    for name in ("length", "min_lists"):
        if name in settings and not (type(settings[name]) is int and 0 <= settings[name] < 2**63):
            raise ValueError(f"{name} has to be a whole number")
    for name in ("model", "bound", "baseline"):
        if name in settings and not isinstance(settings[name], str):
            raise ValueError(f"{name} has to be text")
    fitted, summary, rules = (_mapping(results.get(name, {}), name) for name in ("fitted", "summary", "rules"))
    for name, entries in (("fitted", fitted), ("rules", rules)):
        if not all(map(_is_numbers, entries.values())):
            raise ValueError(f"{name} has to have numbers")
    if not isinstance(summary.get("unit", ""), str):
        raise ValueError("unit has to be text")
    if not all(isinstance(value, int | float | None) for name, value in summary.items() if name != "unit"):
        raise ValueError("summary has to have numbers")


def _is_numbers(content: object) -> bool:
    """A number or null, or lists and objects of these."""
    if isinstance(content, dict | list):
        return all(map(_is_numbers, content.values() if isinstance(content, dict) else content))
    return isinstance(content, int | float | None)


def _mapping(content: object, name: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise ValueError(f"{name} has to be an object")
    return content
