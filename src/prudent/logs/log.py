"""Log: where lists and clicks are, what each column means, and why a list is rejected."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from glob import has_magic
from typing import Any, Literal

from prudent.base.errors import LogError, PrudentError, UsageError, did_you_mean
from prudent.base.spec import whole_number
from prudent.base.text import join_names
from prudent.logs.contexts import context_columns
from prudent.logs.formats import find_files, is_paths, path_names
from prudent.logs.hygiene import LEAVING_OUT, VISIT, check_hygiene
from prudent.storage.files import has_scheme

Layout = Literal["lists", "rows", "impressions"]

REASONS = (
    "context missing",
    "empty list",
    "items and clicks differ in length",
    "too many positions",
    "item missing",
    "click other than 0 or 1",
    "duplicate item in a list",
    "impression id missing",
    "impression id in several contexts",
    "duplicate position in a list",
    "positions other than 1, 2, 3, ...",
    "propensity outside (0, 1]",
    "NUL byte in a name",
    "name of another type than the others",
    "clicks missing",
    "click outside its list",
    "items and rewards differ in length",
    "reward outside 0 to 100,000",
    "reward without a click",
)
"""Why a list is rejected, mostly the most basic first: a list with several faults is counted under one of them."""
ODD = "name of another type than the others"
CODE = {reason: code for code, reason in enumerate(REASONS, start=1)}
"""The reasons as numbers, for the queries of all engines; 0 is none."""

NO_CLICKS = (
    "there is nothing to learn from. Check which column has the clicks (--clicks or --click), and whether clicks were "
    "joined to their lists."
)
"""What follows where a log has no click, and what to do."""

MAX_POSITIONS = 1_000
"""Positions of a list, by default: more are taken for a fault of the log, since one list would slow down all others."""

MOST_REWARD = 100_000
"""The largest reward of a click: larger ones, such as milliseconds, belong in a larger unit."""

MOST_POSITIONS = 10_000
"""The largest limit: beyond it, the clicks above each position, and arrays of all lists, take minutes and gigabytes."""

_COLUMNS: dict[Layout, tuple[str, ...]] = {
    "lists": ("context", "items", "clicks"),
    "rows": ("impression", "context", "item", "position", "click"),
    "impressions": ("context", "item", "position", "click"),
}

CLICKED = ("clicked_items", "clicked_positions")
"""What a column may have in place of clicks: a list of what was clicked."""

LISTS = ("items", "clicks", "rewards", *CLICKED)
"""What columns of lists mean."""


def is_name(meaning: str) -> bool:
    """Whether a column of this meaning holds names, which are text or integers."""
    return _word(meaning) in ("context", "items", "item", "impression", "clicked_items")


def context_meanings(table: "Table") -> list[str]:
    """What the columns of a table's context mean: ``context``, or ``context1`` and so on."""
    return [meaning for meaning in table.columns if _word(meaning) == "context"]


class Table(ABC):
    """Something with named columns: files, or a table in memory. Opening it reads no rows."""

    source: Any

    @property
    @abstractmethod
    def columns(self) -> dict[str, str]:
        """What each column means -> its name in the source."""

    @property
    def in_files(self) -> bool:
        """Whether the source is files rather than a table in memory."""
        return is_paths(self.source)

    @property
    def names(self) -> list[str]:
        """Names of the sources, for messages and manifests."""
        if not self.in_files:
            return [f"the {type(self.source).__name__}"]
        return path_names(self.source)

    @property
    def name(self) -> str:
        """All of the names in one text."""
        return ", ".join(self.names)

    def check_columns(self, columns: Iterable[str], where: str) -> None:
        """Raise `LogError` unless `columns`, those of the source, include all that are needed."""
        columns = list(columns)
        for meaning, name in self.columns.items():
            twins = [column for column in columns if column.casefold() == name.casefold()]
            if len(twins) > 1:
                raise LogError(
                    f"{where} has {len(twins)} columns named {name!r}, ignoring case ({', '.join(map(repr, twins))}): "
                    f"the {_word(meaning)} is ambiguous. Rename all but one."
                )
        missing = {meaning: name for meaning, name in self.columns.items() if name not in columns}
        if missing:
            absent = join_names([f"no {name!r} for the {_word(meaning)}" for meaning, name in missing.items()])
            near = "".join(did_you_mean(name, columns) for name in missing.values())
            raise LogError(
                f"{where} has no column {absent.removeprefix('no ')}.{near} "
                f"It has: {', '.join(columns) or 'no columns at all'}. "
                f"{self._remedy(*missing)}{self._hint(columns, list(missing))}"
            )

    def _hint(self, columns: list[str], missing: list[str]) -> str:
        return ""

    def _remedy(self, *meanings: str) -> str:
        settings = list(dict.fromkeys(map(_word, meanings)))
        return f"Set {', '.join(f'{one}=...' for one in settings)} ({', '.join(map(_option, settings))})."


@dataclass(frozen=True, eq=False, repr=False)
class Log(Table):
    """A click log, opened without reading a row.

    ``source`` is a path, a glob, several of them, or a pandas, Polars, Arrow or DuckDB table. Files are Parquet, JSON
    Lines or CSV (the latter two gzipped or not). The other arguments name the columns. With `prudent.Spark`, the source
    may also be a Spark DataFrame, and paths may be anything that Spark reads, such as ``s3a://...``.

    Layout ``lists``, the default, has one row per impression list: ``context``, ``items`` (a list) and ``clicks`` (a
    list of 0 and 1 of the same length). Layout ``rows`` has one row per impression: ``impression`` (the id of the
    list), ``context``, ``item``, ``position`` and ``click``. Layout ``impressions`` has the same without the id: which
    items were shown together is not known, and positions may have gaps. There, ``grid_row`` and ``grid_column`` may be
    named in place of ``position``, for a grid of ``grid_width`` columns that is read row by row.

    ``clicked_items`` or ``clicked_positions``, in the layout ``lists`` and in place of ``clicks``, names a column with
    what was clicked: a list of items or of positions, empty without a click. Positions, here and in the layout
    ``rows``, count from ``first_position``, which is 0 or 1.

    ``context`` may be several columns, such as ``["query", "market"]``: their values make one name, joined by ``|``
    (`prudent.logs.contexts`).

    ``propensity`` optionally names a column with the probability that the list was shown in its context: a number for
    the whole list, or a list of numbers, one per position given the items above it; in the layout ``rows``, one number
    per row. `prudent.evaluate`, `gate` and `report` use it as the weight's denominator. Lists whose propensity is
    outside (0, 1] are rejected.

    ``reward`` optionally names a column with what a click was worth, such as a purchase (0 or 1), a margin or a dwell
    time: a number from 0 to 100,000 for every item of a list, and 0 where it was not clicked; in the layouts ``rows``
    and ``impressions``, one number per row. Three decimals count. `prudent.rank` then values lists by it.

    ``segment`` optionally names columns with something about the user or the visit, such as the device, of any type; in
    the layout ``rows``, a list has the value of its first row. `prudent.gate` tests whether they confound clicks.

    Lists of more than ``max_positions`` are rejected.

    ``user`` optionally names a column with the user or the session, ``shown_at`` one with the time of the list. Then
    ``leave_out`` takes out ``"duplicates"`` and lists of ``"bots"``, and ``max_user_clicks`` lists of a user beyond so
    many clicks (`prudent.logs.hygiene`). What is left out is counted.

    The functions in `prudent.readers` make a log from other formats; they set ``origin`` and ``left_out``.

    >>> import prudent
    >>> log = prudent.Log("clicks/*.parquet", context="query", items="shown", clicks="clicked")
    >>> log.columns
    {'context': 'query', 'items': 'shown', 'clicks': 'clicked'}
    """

    source: Any
    _: KW_ONLY
    layout: Layout = "lists"
    context: str | Sequence[str] = "context"
    items: str = "items"
    clicks: str = "clicks"
    clicked_items: str | None = None
    clicked_positions: str | None = None
    first_position: int = 1
    impression: str = "impression"
    item: str = "item"
    position: str = "position"
    click: str = "click"
    grid_row: str | None = None
    grid_column: str | None = None
    grid_width: int | None = None
    propensity: str | None = None
    reward: str | None = None
    segment: str | Sequence[str] = ()
    max_positions: int = MAX_POSITIONS
    user: str | None = None
    shown_at: str | None = None
    leave_out: str | Sequence[str] = ()
    max_user_clicks: int | None = None
    origin: tuple[str, ...] = ()  # the files that a reader converted
    left_out: Mapping[str, int] = field(default_factory=dict)  # records that it did not convert
    _folder: object = None  # keeps a temporary folder alive as long as the log

    def __post_init__(self) -> None:
        if self.layout not in list(_COLUMNS):
            raise UsageError(f"There is no layout {self.layout!r}. Known: {', '.join(_COLUMNS)}.")
        whole_number("max_positions", self.max_positions, 1, MOST_POSITIONS)
        if isinstance(self.first_position, bool) or self.first_position not in (0, 1):
            raise UsageError(f"first_position is {self.first_position!r}; positions count from 0 or from 1.")
        if self.clicked_items is not None and self.clicked_positions is not None:
            raise UsageError("Name clicked_items or clicked_positions, not both: they say the same.")
        self._check_grid()
        check_hygiene(self)
        named = list(self.columns.values())
        for name in named:
            if not isinstance(name, str):
                raise UsageError(f"A column name is text, not {name!r}.")
            if named.count(name) > 1:
                raise UsageError(f"The column {name!r} is named for two different things.")

    @property
    def names(self) -> list[str]:
        """Names of the sources; of a converted log, those of the original files."""
        return list(self.origin) or super().names

    @property
    def columns(self) -> dict[str, str]:
        """What each column means -> its name in the source."""
        columns: dict[str, str] = {}
        for meaning in _COLUMNS[self.layout]:
            columns |= self._named(meaning)
        propensity = {} if self.propensity is None else {"propensity": self.propensity}
        visit = {what: column for what, name in VISIT.items() if (column := getattr(self, name)) is not None}
        return {**columns, **propensity, **self._reward, **self.segments, **visit}

    @property
    def _reward(self) -> dict[str, str]:
        """Its column has a list in each row where the others do."""
        if self.reward is None:
            return {}
        return {"rewards" if self.layout == "lists" else "reward": self.reward}

    def _check_grid(self) -> None:
        grid = [name for name in ("grid_row", "grid_column", "grid_width") if getattr(self, name) is not None]
        if grid and (len(grid) < 3 or self.layout != "impressions"):
            raise UsageError(
                "A grid needs grid_row, grid_column and grid_width (--grid-row, --grid-column, --grid-width), in the "
                f"layout 'impressions': here there is {' and '.join(grid)}, and the layout is {self.layout!r}."
            )
        if grid:
            whole_number("grid_width", self.grid_width, 1, MOST_POSITIONS)
        if self.layout == "impressions" and (self.propensity is not None or self.segments):
            raise UsageError("Propensities and segments are of whole lists, which the layout 'impressions' has not.")

    def check_lists(self) -> None:
        """Raise where it is not known which items were shown together."""
        if self.layout == "impressions":
            raise UsageError(
                f"{self.name} has single impressions (layout 'impressions'): which items were shown together is not "
                "known, and this needs whole lists. Rank, judge and check do not; with the id of the list in each row, "
                "read it as layout='rows' (--layout rows)."
            )

    def _named(self, meaning: str) -> dict[str, str]:
        if meaning == "context":
            return context_columns(self.context)
        if meaning == "position" and self.grid_row is not None and self.grid_column is not None:
            return {"grid_row": self.grid_row, "grid_column": self.grid_column}
        forms = {form: getattr(self, form) for form in CLICKED} if meaning == "clicks" else {}
        return {form: name for form, name in forms.items() if name is not None} or {meaning: getattr(self, meaning)}

    @property
    def segments(self) -> dict[str, str]:
        """segment1, segment2, ... -> the name of that segment's column in the source, each once."""
        names = [self.segment] if isinstance(self.segment, str) else self.segment
        return {f"segment{number}": name for number, name in enumerate(dict.fromkeys(names), start=1)}

    def __repr__(self) -> str:
        columns = ", ".join(f"{meaning}={name!r}" for meaning, name in self.columns.items())
        return f"Log({self.name}, layout={self.layout!r}, {columns})"

    def check_columns(self, columns: Iterable[str], where: str) -> None:
        """Raise `LogError` unless the source has the columns of a log."""
        columns = list(columns)
        if {"context", "rank", "item", "lower", "mean"} <= set(columns):
            raise LogError(f"{where} is a policy written by prudent rank. A log or counts are needed here.")
        if {"context", "items", "cells", "code", "n"} <= set(columns):
            raise LogError(f"{where} holds counts, which do not keep whole lists. The log itself is needed here.")
        super().check_columns(columns, where)

    def _hint(self, columns: list[str], missing: list[str]) -> str:
        fits = [other for other in _COLUMNS if other != self.layout and set(_COLUMNS[other]) <= set(columns)]
        if fits:
            return f" It looks like the layout {fits[0]!r}: layout={fits[0]!r} ({_option('layout')} {fits[0]})."
        if "_source" in columns or ("query_id" in columns and {"user_query", "action_name"} & set(columns)):
            return " For queries and events of User Behavior Insights: format='ubi' (--format ubi)."
        if missing == ["clicks"]:
            forms = [f"{form}=... ({_option(form)})" for form in CLICKED]
            return f" If the log has a list of what was clicked instead: {' or '.join(forms)}."
        return ""


def recorded_names(log: Log) -> tuple[str, ...]:
    """The names of a log for a manifest: of a pattern, the files that it matches now."""
    recorded: list[str] = []
    for name in log.names:
        files = [name]
        if log.in_files and has_magic(name) and not has_scheme(name):
            with suppress(PrudentError):  # Spark may read what this machine does not see
                files = [str(file) for file in find_files(name)]
        recorded += files
    return tuple(recorded)


def as_log(source: Any, *, format: str | None = None, engine: Any = None, **settings: Any) -> Log:
    """A log from a path, several paths, a table or a `Log`; `settings` are arguments of `Log`, such as column names.

    With a ``format`` of `prudent.readers`, `source` is files in that format and `settings` are those of its reader,
    which runs on ``engine``.

    >>> as_log("clicks.parquet", context="query").columns["context"]
    'query'
    """
    if format is not None:
        from prudent.logs.readers import read_log  # readers make logs: they import this module

        limit = {name: settings.pop(name) for name in ("max_positions", *LEAVING_OUT) if name in settings}
        made = read_log(source, format, **({} if engine is None else {"engine": engine}), **settings)
        return replace(made, **limit) if limit else made
    for name in settings:
        if name not in Log.__dataclass_fields__:
            near = did_you_mean(name, Log.__dataclass_fields__)
            raise UsageError(f"A log has no setting {name} ({_option(name)}) unless a format has it.{near}")
    if isinstance(source, Log):
        return replace(source, **settings) if settings else source
    return Log(source, **settings)


def table_context(source: Any, settings: Mapping[str, Any]) -> Sequence[str]:
    """The columns that name contexts in tables beside a log: those of its context, where it has several."""
    context = settings.get("context", source.context if isinstance(source, Log) else "context")
    several = isinstance(context, Sequence) and not isinstance(context, str) and len(context) > 1
    return tuple(context) if several else ("context",)


@dataclass(frozen=True, eq=False)
class Candidates(Table):
    """Items that may be shown: one row per ``context`` and ``item``; items the log never showed enter unseen."""

    source: Any
    context: Sequence[str] = ("context",)  # or the columns that make one

    def _remedy(self, *meanings: str) -> str:
        named = [name for meaning, name in self.columns.items() if meaning in meanings]
        return f"Candidates have the columns {', '.join(self.context)} and item: rename the {' and the '.join(named)}."

    @property
    def columns(self) -> dict[str, str]:
        """Its columns."""
        return {**context_columns(self.context), "item": "item"}


def _word(meaning: str) -> str:
    word = meaning.rstrip("0123456789")  # of segment1, segment2, ...
    return "reward" if word == "rewards" else word


def _option(setting: str) -> str:
    return f"--{setting.replace('_', '-')}"
