"""Why an item stands where it stands: the list that was mostly shown beside the new one, in numbers and in words."""

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal

from prudent.base.chart import figure, inline, load_extra

Name = str | int


@dataclass(frozen=True)
class Candidate:
    """An item that was shown in a context or may be; None is what is not known."""

    item: Name
    incumbent: int | None = None  # place in the list that was mostly shown
    rank: int | None = None  # place in the new list
    impressions: float | None = None
    clicks: float | None = None
    lower: float | None = None
    mean: float | None = None
    upper: float | None = None  # where the interval that starts at `lower` ends
    positive: float | None = None
    negative: float | None = None
    why: str = ""  # one sentence: why it stands where it stands

    @property
    def examined(self) -> float:
        """Looks at the item, by the click model."""
        return (self.positive or 0.0) + (self.negative or 0.0)

    @property
    def unseen(self) -> bool:
        """Whether it was never shown; where old days weigh less, impressions alone may round to none."""
        return self.impressions == 0 and self.examined == 0

    @property
    def rate(self) -> float:
        """Clicks per look, by the click model and without any caution."""
        return (self.positive or 0.0) / self.examined if self.examined else 0.0

    @property
    def ctr(self) -> float:
        """Clicks per impression."""
        return self.clicks / self.impressions if self.clicks and self.impressions else 0.0


@dataclass(frozen=True, repr=False)
class Explanation:
    """What speaks for the list of one context.

    In Jupyter it shows as a table with a picture of every interval; `chart` makes an Altair chart of them.
    """

    context: Name
    candidates: tuple[Candidate, ...]  # the new list from the top, then what left it, then the rest, best bound first
    made_by: Mapping[str, str] = field(default_factory=dict)  # model and bound, or method
    notes: tuple[str, ...] = ()  # what is not known, and how to know it

    @property
    def prudent(self) -> list[Name]:
        """The new list."""
        return [one.item for one in placed(self.candidates, "rank")]

    @property
    def incumbent(self) -> list[Name]:
        """The list that was mostly shown."""
        return [one.item for one in placed(self.candidates, "incumbent")]

    @property
    def fallen_for(self) -> tuple[Candidate, ...]:
        """What a ranking by clicks per impression would have listed, and the new list does not have."""
        clicked = [one for one in self.candidates if one.ctr and (one.lower is not None or one.rank is not None)]
        clicked.sort(key=lambda one: (-one.ctr, -(one.impressions or 0), str(one.item)))
        return tuple(one for one in clicked[: len(self.prudent)] if one.rank is None)

    def chart(self, most: int = 30) -> Any:
        """An Altair chart of the mean and the interval of at most so many candidates; needs the extra ``report``."""
        load_extra()
        import altair as alt

        shown = [one for one in self.candidates if one.mean is not None][:most]
        rows = [
            {
                "item": str(one.item),
                "mean": one.mean,
                "lower": _clip(one.lower),
                "upper": _clip(one.upper if one.upper is not None else one.mean),
                "list": "listed" if one.rank else "not listed",
                "why": one.why,
            }
            for one in shown
        ]
        base = inline(rows).encode(
            y=alt.Y("item:N", sort=[str(one.item) for one in shown], title=None),
            color=alt.Color("list:N", scale=alt.Scale(range=["#0072b2", "#888888"]), title=None),
            tooltip=["item:N", "why:N", "lower:Q", "mean:Q", "upper:Q"],
        )
        spans = base.mark_rule(strokeWidth=3, opacity=0.5).encode(
            x=alt.X("lower:Q", title="attraction: clicks per examination"), x2="upper:Q"
        )
        panel = spans + base.mark_point(filled=True, size=60).encode(x="mean:Q")
        return figure([panel], str(self.context), [], 400)

    def __str__(self) -> str:
        head = ("place", "before", "item", "lower", "mean", "upper", "clicks", "views", "why")
        rows = [head, *(_cells(one) for one in self.candidates[:_ROWS])]
        wide = [max(len(row[i]) for row in rows) for i in range(len(head) - 1)]
        lines = ["  ".join([*map(_pad, row, wide, _LEFT), row[-1]]).rstrip() for row in rows]
        more = len(self.candidates) - _ROWS
        rest = [f"... and {more:,} more candidates"] if more > 0 else []
        return "\n".join([f"{self.context!r}{self._made()}", *lines, *rest, *self.notes])

    def _made(self) -> str:
        return f" by {' and '.join(self.made_by.values())}" if self.made_by else ""

    __repr__ = __str__  # a table says more than the call that would make it

    def _repr_html_(self) -> str:
        ends = [_clip(end) for one in self.candidates[:_ROWS] for end in (one.mean, one.upper) if end is not None]
        top = max([*ends, 1e-9])
        head = ("place", "before", "item", "", "lower", "mean", "upper", "clicks", "views", "why")
        body = ""
        for one in self.candidates[:_ROWS]:
            place, before, _, *rest = _cells(one)
            item = f"<bdi>{html.escape(str(one.item))}</bdi>"
            cells = [place, before, item, _picture(one, top), *map(html.escape, rest)]
            body += f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        more = len(self.candidates) - _ROWS
        notes = [*([f"... and {more:,} more candidates"] if more > 0 else []), *self.notes]
        title = f"<bdi>{html.escape(str(self.context))}</bdi>{html.escape(self._made())}"
        columns = "".join(f"<th>{name}</th>" for name in head)
        said = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
        return f"<table><caption>{title}</caption><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table>{said}"


def placed(candidates: Iterable[Candidate], by: Literal["rank", "incumbent"]) -> list[Candidate]:
    """Those that have a place in the new list, or in the incumbent one, from the top."""
    return sorted((one for one in candidates if getattr(one, by)), key=attrgetter(by))


_ROWS = 30  # that a table shows
_LEFT = (False, False, True, *[False] * 5)  # names begin where they begin, numbers end where they end


def _pad(cell: str, width: int, left: bool) -> str:
    return cell.ljust(width) if left else cell.rjust(width)


def _cells(one: Candidate) -> tuple[str, ...]:
    numbers = ("" if value is None else f"{value:.3f}" for value in (one.lower, one.mean, one.upper))
    counts = ("" if value is None else f"{value:,.0f}" for value in (one.clicks, one.impressions))
    places = ("–" if place is None else str(place) for place in (one.rank, one.incumbent))
    return (*places, repr(one.item), *numbers, *counts, one.why)


def _clip(value: float | None) -> float:
    return 0.0 if value is None else min(1.0, max(0.0, value))


def _picture(one: Candidate, top: float) -> str:
    """The interval as a line and the mean as a dot: only numbers go into it."""
    if one.mean is None:
        return ""
    low, mean, high = (
        100 * _clip(value) / top
        for value in (one.lower, one.mean, one.upper if one.upper is not None else max(one.mean, one.lower or 0.0))
    )
    colour = "#0072b2" if one.rank else "#888888"
    said = "" if one.upper is None else f", interval from {_clip(one.lower):.3f} to {_clip(one.upper):.3f}"
    return (
        f'<svg width="120" height="12" role="img"><title>mean {one.mean:.3f}{said}</title>'
        f'<line x1="{low + 6:.1f}" x2="{high + 6:.1f}" y1="6" y2="6" stroke="{colour}" stroke-width="3"/>'
        f'<circle cx="{mean + 6:.1f}" cy="6" r="4" fill="{colour}"/></svg>'
    )
