"""Days of counts: each has its own folder, ``day=2026-11-15``; which of them are read, and with what weight.

Merged days have one folder together, ``day=2026-09-03..2026-10-31``. It supersedes the folders of
single days and of shorter ranges inside it: these are ignored, whether or not they have been removed.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from os import PathLike, fspath
from pathlib import Path

from prudent.base.errors import CountsError, UsageError
from prudent.logs.formats import parquet_files
from prudent.storage.files import make_folder
from prudent.storage.manifest import Days

UNIT = 1 << 20
"""The weight of a list without decay: weights are integers in units of 2⁻²⁰, so that their sums are exact."""

_PREFIX = "day="
_LAYOUT = f"Folders of days are called like {_PREFIX}2026-11-15 or, merged, {_PREFIX}2026-09-03..2026-10-31."


@dataclass(frozen=True, order=True)
class Span:
    """One day, or a range of merged days.

    >>> str(Span(date(2026, 9, 3), date(2026, 10, 31)))
    '2026-09-03..2026-10-31'
    """

    first: date
    last: date

    @property
    def number(self) -> int:
        """Number of days."""
        return (self.last - self.first).days + 1

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return f"{_PREFIX}{self}"

    def contains(self, other: "Span") -> bool:
        """Whether the other is a shorter part of it."""
        return self != other and self.first <= other.first and other.last <= self.last

    def age(self, newest: date) -> float:
        """Days from its middle to the newest day."""
        return ((newest - self.first).days + (newest - self.last).days) / 2

    def __str__(self) -> str:
        return f"{self.first}" if self.first == self.last else f"{self.first}..{self.last}"


@dataclass(frozen=True)
class Chosen:
    """The files to read, the weight of each where there is a half-life, and their days."""

    files: tuple[Path, ...]
    weights: tuple[int, ...]
    days: Days | None


def choose(
    files: Sequence[Path],
    since: date | str | None = None,
    until: date | str | None = None,
    half_life: float | str | None = None,
) -> Chosen:
    """The files of the days between `since` and `until`, a day weighing half as much as one a `half_life` later.

    Ages are counted from the newest day that is read and not from today, so that the same folder always reads the same.
    """
    valid = in_force(files)
    dated = [(file, span) for file, span in valid if span is not None]
    if since is None and until is None and half_life is None:
        return Chosen(tuple(file for file, _ in valid), (), _used(dated) if len(dated) == len(valid) else None)
    without = next((file for file, span in valid if span is None), None)
    if without is not None:
        raise CountsError(
            f"{without} has no day, so that since, until and half-life do not apply to it. Move it into a folder such "
            f"as {_PREFIX}2026-11-15, or leave it out."
        )
    kept = dated
    newest = max(span.last for _, span in kept)
    end = None if until is None else day_or_age("until", until, newest)
    if end is not None:
        kept = [(file, span) for file, span in kept if _up_to(span, end)]
        newest = max((span.last for _, span in kept), default=newest)
    start = None if since is None else day_or_age("since", since, newest)
    if start is not None:
        kept = [(file, span) for file, span in kept if _from(span, start)]
    if not kept:
        limits = " and ".join(f"{word} {day}" for word, day in (("from", start), ("up to", end)) if day)
        all_days = _used(dated)
        raise CountsError(f"There is no day {limits}: the days are from {all_days.first} to {all_days.last}.")
    if half_life is None:
        return Chosen(tuple(file for file, _ in kept), (), _used(kept, start, end))
    days = days_of("half_life", half_life)
    kept = [(file, span) for file, span in kept if weight(span.age(newest), days) > 0]
    if not kept:  # the middle of merged days is all the age they have
        raise CountsError(f"With a half-life of {days:g} days nothing is left of {newest} and before. Make it longer.")
    weights = tuple(weight(span.age(newest), days) for _, span in kept)
    return Chosen(tuple(file for file, _ in kept), weights, _used(kept, start, end, days))


def in_force(files: Iterable[Path]) -> list[tuple[Path, Span | None]]:
    """The files that no range supersedes, each with its days; none for a file outside the folders of days."""
    places = [(file, span_of(file)) for file in files]
    folders: dict[Path, set[Span]] = {}
    for _, place in places:
        if place is not None:
            folders.setdefault(place[0], set()).add(place[1])
    valid = {folder: _outermost(folder, spans) for folder, spans in folders.items()}
    return [
        (file, None if place is None else place[1])
        for file, place in places
        if place is None or place[1] in valid[place[0]]
    ]


def _outermost(folder: Path, spans: set[Span]) -> set[Span]:
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.first, -span.number)):
        if kept and kept[-1].contains(span):
            continue
        if kept and span.first <= kept[-1].last:
            raise CountsError(
                f"In {folder}, {kept[-1].folder} and {span.folder} have days in common, which would count twice. "
                "Remove one of them."
            )
        kept.append(span)
    return set(kept)


def span_of(file: Path) -> tuple[Path, Span] | None:
    """The folder of days that a file lies in and the days it is of; none for one that lies in no folder of a day."""
    for folder in file.parents:
        if folder.name.startswith(_PREFIX):
            return folder.parent, _parse_span(folder)
    return None


def folders_of_days(files: Iterable[Path]) -> set[Path]:
    """The folders with the folders of days that files lie in."""
    return {place[0] for file in files if (place := span_of(file)) is not None}


def _parse_span(folder: Path) -> Span:
    first, between, last = folder.name.removeprefix(_PREFIX).partition("..")
    try:
        span = Span(date.fromisoformat(first), date.fromisoformat(last if between else first))
    except ValueError:
        raise CountsError(f"{folder} is not the folder of a day. {_LAYOUT}") from None
    if span.folder != folder.name or span.last < span.first:
        raise CountsError(f"{folder} is not the folder of a day. {_LAYOUT}")
    return span


def _up_to(span: Span, end: date) -> bool:
    if span.first <= end < span.last:
        raise _inside("until", end, span, span.first - timedelta(1), span.last)
    return span.last <= end


def _from(span: Span, start: date) -> bool:
    if span.first < start <= span.last:
        raise _inside("since", start, span, span.first, span.last + timedelta(1))
    return span.first >= start


def _inside(option: str, day: date, span: Span, below: date, above: date) -> CountsError:
    return CountsError(
        f"{option} is {day}, in the middle of {span}, whose days were merged and are no longer separate. "
        f"The nearest that are possible: {below} and {above}."
    )


def _used(
    files: Iterable[tuple[Path, Span]],
    since: date | None = None,
    until: date | None = None,
    half_life: float | None = None,
) -> Days:
    each = {span for _, span in files}
    first, last = min(span.first for span in each), max(span.last for span in each)
    return Days(first, last, sum(span.number for span in each), since, until, half_life)


def weight(age: float, half_life: float) -> int:
    """What a list of this age weighs, in whole units: 2^(20 − age/half_life), rounded.

    >>> [weight(age, half_life=7) / UNIT for age in (0, 7, 14)]
    [1.0, 0.5, 0.25]
    """
    return round(UNIT * 2 ** (-age / half_life))


def day_folder(day: date | str) -> str:
    """The name of the folder of a day."""
    return Span(*[parse_day("day", day)] * 2).folder


def place(folder: str | PathLike[str], day: date | str) -> Path:
    """The file for the counts of a day; its folder is made if there is none."""
    inside = [other for other in Path(folder).glob(f"{_PREFIX}*/") if parquet_files(other)]
    check_not_merged(fspath(folder), [other.name for other in inside], day)
    own = Path(folder) / day_folder(day)
    target = own / "counts.parquet"
    if own in inside and parquet_files(own) != [target]:
        raise CountsError(f"{own} holds other files than counts.parquet, as Spark writes them. Remove it first.")
    make_folder(folder)
    make_folder(own)
    return target


def check_not_merged(folder: str, others: Iterable[str], day: date | str) -> None:
    """Stop where a day that is to be counted is in one of the other folders of days already."""
    span = Span(*[parse_day("day", day)] * 2)
    for other in others:
        if _parse_span(Path(other)).contains(span):
            raise CountsError(
                f"{span} was merged into {folder}/{other} and cannot be counted anew. Lists that came late can be "
                "counted into a file of their own, and given to prudent rank beside the folder."
            )


def parse_day(option: str, day: date | str) -> date:
    """A date, or text in the form of ISO 8601."""
    if isinstance(day, date):
        return day.date() if isinstance(day, datetime) else day
    try:
        return date.fromisoformat(day)
    except (TypeError, ValueError):
        raise UsageError(f"{option} is {day!r}; it must be a date such as 2026-11-15.") from None


def day_or_age(option: str, day: date | str, newest: date) -> date:
    """A day, or one that is so many days before the newest."""
    age = re.fullmatch(r"(\d{1,6})d", day) if isinstance(day, str) else None
    try:
        return newest - timedelta(int(age[1])) if age else parse_day(option, day)
    except OverflowError:
        return date.min
    except UsageError:
        raise UsageError(f"{option} is {day!r}; it must be a date such as 2026-11-15 or an age such as 30d.") from None


def days_of(option: str, length: float | str) -> float:
    """A number of days, as a number or as text such as 14d."""
    try:
        days = float(length.removesuffix("d") if isinstance(length, str) else length)
    except (TypeError, ValueError):
        days = math.nan
    if not 0 < days < math.inf:
        raise UsageError(f"{option} is {length!r}; it must be a number of days above 0, such as 14d.")
    return days
