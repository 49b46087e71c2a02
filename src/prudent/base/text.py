"""Numbers, names and tables as text: one spelling for the terminal, HTML pages and notebooks."""

import html
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import floor, isfinite, isnan, log10
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.table import Table

MISSING = "–"
"""What stands for a value that is not there or not known."""

# --- numbers ----------------------------------------------------------------------------------------------------------


def number(value: float | None, digits: int = 3, *, signed: bool = False) -> str:
    """A number with thousands separators and a true minus sign.

    >>> number(0.12345), number(-1234.5, 1), number(-0.0001), number(0.2, signed=True), number(None)
    ('0.123', '−1,234.5', '0.000', '+0.200', '–')
    """
    if value is None or isnan(value):
        return MISSING
    return _sign(f"{value:{'+' if signed else ''},.{digits}f}".replace("inf", "∞"))


def percent(share: float | None, digits: int = 1, *, signed: bool = False) -> str:
    """A share or a relative change; no decimals for exact zero and from 100% on.

    >>> percent(0.113), percent(1), percent(-0.5, signed=True), percent(12.345, signed=True)
    ('11.3%', '100%', '−50.0%', '+1,234%')
    """
    if share is None or isnan(share):
        return MISSING
    digits = 0 if share == 0 or abs(share) >= 1 else digits
    text = f"{100 * share:{'+' if signed else ''},.{digits}f}"
    return f"{_sign(text.replace('inf', '∞'))}%"


def plus_minus(value: float | None, error: float | None, digits: int = 4, *, signed: bool = False) -> str:
    """A value with its standard error, in as many digits as the error gives a meaning to, and at least `digits`.

    >>> plus_minus(0.52, 0.031), plus_minus(0.52, 0.0000312), plus_minus(None, None)
    ('0.5200 ± 0.0310', '0.520000 ± 0.000031', '–')
    """
    if value is None:
        return MISSING
    if not error or not isfinite(error):
        return number(value, digits, signed=signed)
    digits = max(digits, 1 - floor(log10(error)))
    return f"{number(value, digits, signed=signed)} ± {number(error, digits)}"


def several(n: float, what: str) -> str:
    """A count and its noun.

    >>> several(1, "list"), several(1200, "list"), several(2, "query")
    ('1 list', '1,200 lists', '2 queries')
    """
    text = f"{n:,.0f}"
    plural = f"{what[:-1]}ies" if what.endswith("y") and what[-2:-1] not in "aeiou" else f"{what}s"
    return f"{text} {what if text == '1' else plural}"


def join_names(names: Sequence[str]) -> str:
    """Names as part of a sentence.

    >>> join_names(["cm", "dcm", "pbm"]), join_names(["cm"])
    ('cm, dcm and pbm', 'cm')
    """
    return " and ".join([*filter(None, [", ".join(names[:-1])]), *names[-1:]])


def _sign(text: str) -> str:
    """A true minus sign, and no sign before a zero."""
    return text.replace("-", "−") if text.strip("+-0.,") else text.lstrip("+-")


# --- names ------------------------------------------------------------------------------------------------------------

LONGEST = 120
"""Characters of a name that `visible` shows."""
_JOINERS = "\u200c\u200d"  # invisible, but scripts and emoji need them
_MARKS = 4  # on one letter: no script has more, and a pile of them covers the lines above


def plain(text: str) -> str:
    r"""Text on one line that cannot control a terminal or reorder a page: such characters are written as escapes.

    >>> plain("two\nlines"), plain("\x1b[31mred"), plain("\u202etxt.exe")
    ('two\\nlines', '\\x1b[31mred', '\\u202etxt.exe')
    """
    if text.isascii() and text.isprintable():
        return text
    shown, marks = [], 0
    for c in text:
        kind = unicodedata.category(c)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        hidden = marks > _MARKS or not (c.isprintable() or kind == "Zs" or c in _JOINERS)
        shown.append(c.encode("unicode_escape").decode() if hidden else c)
    return "".join(shown)


def visible(name: object) -> str:
    """A name as `plain` text, shortened in the middle where it is very long, quoted where it is blank.

    >>> visible(7), visible(""), len(visible("x" * 1000))
    ('7', '""', 120)
    """
    text = _shortened(str(name))
    shown = _shortened(plain(text))  # escapes are longer
    return shown if text.strip() else f'"{shown}"'


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 30]} … {text[-27:]}"


# --- tables -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """One column of a table: its name in frames, its type, and how it looks in tables.

    ``object`` is the type of names, which are text or integers; without a type, each value shows by its own.
    """

    name: str
    kind: type | None = None
    heading: str = ""  # in tables; the name, without it
    show: Callable[[Any], str] | None = None  # from a value that is not None to text; by its type, without it
    align: Literal["left", "right", ""] = ""  # numbers to the right, all else to the left, without it

    @property
    def title(self) -> str:
        """What stands above it."""
        return self.heading or self.name.replace("_", " ")

    def cell(self, value: Any) -> str:
        """A value of it as text."""
        if value is None:
            return MISSING
        return (self.show or (visible if self.kind is object else as_cell))(value)

    def on_right(self, values: Iterable[Any]) -> bool:
        """Whether its cells end at the same place."""
        if self.align:
            return self.align == "right"
        if self.kind not in (None, object):
            return self.kind in (int, float)
        known = [value for value in values if value is not None]
        return bool(known) and all(isinstance(value, int | float) for value in known)


def as_cell(value: object) -> str:
    """Any value as text: counts with separators, other numbers with three digits, names escaped."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    return number(value) if isinstance(value, float) else visible(value)


Columns = Sequence[Column | str]  # a string is a column of that name whose values show by their types
Rows = Sequence[Sequence[Any]]


def text_table(columns: Columns, rows: Rows) -> str:
    """A table as lines of text.

    >>> print(text_table(["bound", "error", "lists"], [["mle", 0.5, 1200], ["eb", None, 7]]))
    bound  error  lists
    mle    0.500  1,200
    eb         –      7
    """
    titles, right, cells = _laid_out(columns, rows)
    width = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:{'>' if end else '<'}{w}}" for cell, w, end in zip(row, width, right, strict=True)).rstrip()
        for row in (titles, *cells)
    )


def html_table(columns: Columns, rows: Rows, caption: str = "", notes: Sequence[str] = ()) -> str:
    """A table for notebooks, in the colours of the page, so that it is readable in dark mode too.

    Names are escaped. Only a value with ``__html__`` is taken as HTML, such as a picture drawn from numbers.
    """
    titles, right, cells = _laid_out(columns, rows)

    def line(tag: str, texts: Sequence[str]) -> str:
        styled = zip(texts, right, strict=True)
        inside = "".join(
            f'<{tag} style="text-align:{"right" if end else "left"}">{text}</{tag}>' for text, end in styled
        )
        return f"<tr>{inside}</tr>"

    body = "".join(
        line("td", [value.__html__() if hasattr(value, "__html__") else html.escape(cell) for value, cell in pairs])
        for pairs in (list(zip(row, texts, strict=True)) for row, texts in zip(rows, cells, strict=True))
    )
    head = f"<thead>{line('th', [html.escape(title) for title in titles])}</thead>"
    above = f'<caption style="text-align:left">{html.escape(plain(caption))}</caption>' if caption else ""
    below = "".join(f"<p>{html.escape(plain(note))}</p>" for note in notes)
    return f"<table>{above}{head}<tbody>{body}</tbody></table>{below}"


def rich_table(columns: Columns, rows: Rows, title: str = "") -> "Table":
    """A table for a terminal."""
    from rich.table import Table
    from rich.text import Text

    titles, right, cells = _laid_out(columns, rows)
    table = Table(title_justify="left", box=None, pad_edge=False, header_style="dim")
    table.title = Text(plain(title), style="bold") if title else None
    for heading, end in zip(titles, right, strict=True):
        table.add_column(Text(heading), justify="right" if end else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))  # as Text: brackets in names are not markup
    return table


def _laid_out(columns: Columns, rows: Rows) -> tuple[list[str], list[bool], list[list[str]]]:
    """The headings, which columns are aligned to the right, and the cells as text."""
    typed = [Column(column) if isinstance(column, str) else column for column in columns]
    values = list(zip(*rows, strict=True)) or [()] * len(typed)
    right = [column.on_right(cells) for column, cells in zip(typed, values, strict=True)]
    cells = [[column.cell(value) for column, value in zip(typed, row, strict=True)] for row in rows]
    return [column.title for column in typed], right, cells
