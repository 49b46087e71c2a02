"""Why an item stands where it stands: the incumbent list beside the new one, in numbers and in words."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal

from prudent.base.chart import figure, inline, load_extra
from prudent.base.results import Result
from prudent.base.text import Column, Columns, Rows, html_table, number, visible

Name = str | int


def _count(value: float) -> str:
    return number(value, 0)


_COLUMNS = (
    Column("rank", int, "place"),
    Column("incumbent", int, "before"),
    Column("item", object),
    Column("lower", float),
    Column("mean", float),
    Column("upper", float),
    Column("clicks", float, show=_count),
    Column("impressions", float, "views", show=_count),
    Column("why", str, show=str),
)


@dataclass(frozen=True)
class Candidate:
    """An item that was shown in a context or may be; None is what is not known."""

    item: Name
    incumbent: int | None = None  # place in the incumbent list
    rank: int | None = None  # place in the new list
    impressions: float | None = None
    clicks: float | None = None
    lower: float | None = None
    mean: float | None = None
    upper: float | None = None  # upper end of the interval that begins at `lower`
    stay: float | None = None  # what the lower bound of an item has to exceed to pass this one of the incumbent list
    positive: float | None = None
    negative: float | None = None
    why: str = ""  # one sentence: why it stands where it stands

    @property
    def examined(self) -> float:
        """Examinations, by the click model."""
        return (self.positive or 0.0) + (self.negative or 0.0)

    @property
    def unseen(self) -> bool:
        """Whether it was never shown; under a half-life, impressions alone may round to zero."""
        return self.impressions == 0 and self.examined == 0

    @property
    def rate(self) -> float:
        """Clicks per examination, by the click model; an estimate without caution."""
        return (self.positive or 0.0) / self.examined if self.examined else 0.0

    @property
    def ctr(self) -> float:
        """Clicks per impression."""
        return self.clicks / self.impressions if self.clicks and self.impressions else 0.0


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """The evidence for the list of one context: a row for each candidate, with a sentence.

    In notebooks it shows as a table with a picture of every interval; `chart` makes an Altair chart of them.
    """

    context: Name
    candidates: tuple[Candidate, ...]  # the new list from the top, then what left it, then the rest, best bound first
    made_by: Mapping[str, str] = field(default_factory=dict)  # model and bound, or baseline
    notes: tuple[str, ...] = ()  # what is not known, and how to know it
    worth: str = ""  # estimate and lower bound of the value of the new list, where they are known
    reward: str = ""  # what the bounds are of, in place of clicks

    @property
    def prudent(self) -> list[Name]:
        """The new list."""
        return [one.item for one in placed(self.candidates, "rank")]

    @property
    def incumbent(self) -> list[Name]:
        """The incumbent list."""
        return [one.item for one in placed(self.candidates, "incumbent")]

    @property
    def fallen_for(self) -> tuple[Candidate, ...]:
        """Candidates that a ranking by clicks per impression would list, and the new list does not."""
        clicked = [one for one in self.candidates if one.ctr and (one.lower is not None or one.rank is not None)]
        clicked.sort(key=lambda one: (-one.ctr, -(one.impressions or 0), str(one.item)))
        return tuple(one for one in clicked[: len(self.prudent)] if one.rank is None)

    # --- the table ------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[Column, ...]:
        """Places, bounds, counts, and the sentence."""
        return _COLUMNS

    def rows(self) -> Rows:
        """The candidates."""
        return [tuple(getattr(one, column.name) for column in _COLUMNS) for one in self.candidates]

    @property
    def title(self) -> str:
        """The context, what ranked it, and what the new list is worth."""
        ranked = f" by {' and '.join(self.made_by.values())}" if self.made_by else ""
        return visible(self.context) + ranked + (f": {self.worth}" if self.worth else "")

    def _repr_html_(self) -> str:
        columns, rows, notes = self._cut()
        shown = self.candidates[: len(rows)]
        most = math.inf if self.reward else 1.0
        top = max([*(_clip(end, most) for one in shown for end in (one.mean, one.upper) if end is not None), 1e-9])
        pictured: Columns = [*columns[:3], Column("interval", object), *columns[3:]]
        drawn = [(*row[:3], _Picture(one, top, most), *row[3:]) for row, one in zip(rows, shown, strict=True)]
        return html_table(pictured, drawn, self.title, notes)

    def chart(self, most: int = 30) -> Any:
        """An Altair chart of the mean and the interval of at most so many candidates; needs the extra ``report``."""
        load_extra()
        import altair as alt

        shown = [one for one in self.candidates if one.mean is not None][:most]
        highest = math.inf if self.reward else 1.0
        rows = [
            {
                "item": str(one.item),
                "mean": one.mean,
                "lower": _clip(one.lower, highest),
                "upper": _clip(one.upper if one.upper is not None else one.mean, highest),
                "list": "listed" if one.rank else "not listed",
                "why": one.why,
            }
            for one in shown
        ]
        title = f"{self.reward} per examination" if self.reward else "attraction: clicks per examination"
        base = inline(rows).encode(
            y=alt.Y("item:N", sort=[str(one.item) for one in shown], title=None),
            color=alt.Color("list:N", scale=alt.Scale(range=[_LISTED, _UNLISTED]), title=None),
            tooltip=["item:N", "why:N", "lower:Q", "mean:Q", "upper:Q"],
        )
        spans = base.mark_rule(strokeWidth=3, opacity=0.5).encode(x=alt.X("lower:Q", title=title), x2="upper:Q")
        panel = spans + base.mark_point(filled=True, size=60).encode(x="mean:Q")
        return figure([panel], str(self.context), [], 400)


def placed(candidates: Iterable[Candidate], by: Literal["rank", "incumbent"]) -> list[Candidate]:
    """Those with a place in the new list, or in the incumbent one, from the top."""
    return sorted((one for one in candidates if getattr(one, by)), key=attrgetter(by))


_LISTED, _UNLISTED = "#0072b2", "#888888"  # readable on light and dark pages


def _clip(value: float | None, most: float) -> float:
    return 0.0 if value is None else min(most, max(0.0, value))


class _Picture:
    """An interval as a line and the mean as a dot: only numbers go into it."""

    def __init__(self, one: Candidate, top: float, most: float) -> None:
        self._one, self._top, self._most = one, top, most

    def __html__(self) -> str:
        one = self._one
        if one.mean is None:
            return ""
        ends = (one.lower, one.mean, one.upper if one.upper is not None else max(one.mean, one.lower or 0.0))
        low, mean, high = (100 * _clip(value, self._most) / self._top for value in ends)
        colour = _LISTED if one.rank else _UNLISTED
        start, end = _clip(one.lower, self._most), _clip(one.upper, self._most)
        interval = "" if one.upper is None else f", interval from {start:.3f} to {end:.3f}"
        return (
            f'<svg width="120" height="12" role="img"><title>mean {one.mean:.3f}{interval}</title>'
            f'<line x1="{low + 6:.1f}" x2="{high + 6:.1f}" y1="6" y2="6" stroke="{colour}" stroke-width="3"/>'
            f'<circle cx="{mean + 6:.1f}" cy="6" r="4" fill="{colour}"/></svg>'
        )
