"""Tables of results, as text and for notebooks; names in them are text, whatever they are made of."""

import html
from abc import ABC, abstractmethod
from collections.abc import Sequence


class Tabular(ABC):
    """A result that shows as a table with a verdict."""

    @property
    @abstractmethod
    def verdict(self) -> str:
        """What to make of it."""

    @abstractmethod
    def rows(self) -> list[tuple[str, ...]]:
        """A table for people: its head, then its rows."""

    def __str__(self) -> str:
        head, *rows = self.rows()
        return f"{text_table(head, rows)}\n{self.verdict}"

    __repr__ = __str__  # a table says more than the call that would make it

    def _repr_html_(self) -> str:
        head, *rows = self.rows()
        return html_table(self.verdict, head, rows)


def html_table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in which names are text, whatever they are made of; numbers stand to the right of the first column."""

    def cells(tag: str, row: Sequence[str]) -> str:
        sides = ["left", *["right"] * (len(row) - 1)]
        return "".join(
            f'<{tag} style="text-align:{side}">{html.escape(cell)}</{tag}>'
            for side, cell in zip(sides, row, strict=True)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f'<table><caption style="text-align:left">{html.escape(caption)}</caption>'
        f"<thead><tr>{cells('th', head)}</tr></thead><tbody>{body}</tbody></table>"
    )


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as text.

    >>> print(text_table(["bound", "error"], [["mle", "0.5"]]))
    bound  error
    mle      0.5
    """
    width = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:{'>' if i else '<'}{w}}" for i, (cell, w) in enumerate(zip(row, width, strict=True)))
        for row in (head, *rows)
    )
