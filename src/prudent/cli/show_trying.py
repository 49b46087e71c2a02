"""What `prudent reproduce` shows."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from prudent.cli.terminal import out, plain, say, table_of

if TYPE_CHECKING:
    from prudent.research.claims import Verdict
    from prudent.research.table import Row


def show_rows(name: str, rows: "Sequence[Row]") -> None:
    """What `prudent reproduce` says: the error of every method as a share of the MLE's."""
    groups: dict[tuple[str, str], dict[tuple[str, int], list[Row]]] = {}
    for row in rows:
        groups.setdefault((row.data, row.logging), {}).setdefault((row.model, row.n), []).append(row)
    methods = list(dict.fromkeys(row.method for row in rows if row.method != "mle"))
    for (data, logging), panels in groups.items():
        table = table_of("model", "n", "mle", *methods, title=plain(f"{name}: {data}; logging: {logging}"))
        for (model, n), of in panels.items():
            mle = next((row.error for row in of if row.method == "mle"), math.nan)
            table.add_row(plain(model), f"{n:,}", f"{mle:.4f}", *(_share(of, method, mle) for method in methods))
        out.print(table)
    say("mle: its error V(A*) − V(Â). The others: theirs as a share of it; of several δ, the one nearest to")
    say("0.2 (exposure: 0.5).")


def show_page(name: str, page: str) -> None:
    """What `prudent reproduce` says where the result is a table of its own."""
    from rich.markdown import Markdown

    out.print(Text(name, style="bold"))
    out.print(Markdown(page))


def _share(rows: "Sequence[Row]", method: str, mle: float) -> str:
    level = 0.5 if method.startswith("exposure") else 0.2
    known = [row for row in rows if row.method == method]
    best = min(known, key=lambda row: abs((row.delta or 0) - level), default=None)
    return "" if best is None else f"{best.error / mle:.2f}" if mle > 0 else "–"


def show_catalogue(abouts: dict[str, str]) -> None:
    """What `prudent reproduce list` says."""
    table = table_of("experiment", "what it shows")
    table.columns[1].justify = "left"
    for name, about in abouts.items():
        table.add_row(name, about)
    out.print(table)


def show_claims(verdicts: "Sequence[Verdict]") -> None:
    """What `prudent reproduce claims` says."""
    from prudent.research.claims import LEGEND

    table = Table("claim", "where", "verdict", "measured", box=None, pad_edge=False, header_style="dim")
    for column, width in zip(table.columns, (20, 10, 16, None), strict=True):
        column.overflow, column.width = "fold", width
    before = ""
    for one in verdicts:
        colour = {"holds": "green", "fails": "red", "depends": "yellow"}.get(one.word, "dim")
        said = (plain(one.claim), one.where) if one.claim != before else ("", "")
        measured = f"{one.data} ({one.experiment}): {one.measured}" if one.measured else ""
        if len(measured) > 200:  # the files have it all
            measured = measured[:200].rpartition(",")[0] + ", …"
        table.add_row(*said, Text(plain(one.verdict), style=colour), Text(plain(measured)))
        table.add_row()
        before = one.claim
    out.print(table)
    words = [one.word for one in verdicts]
    say("; ".join(f"{word}: {words.count(word)}" for word in dict.fromkeys(sorted(words))) + f". {LEGEND}")
