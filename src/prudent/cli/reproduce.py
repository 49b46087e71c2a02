"""`prudent reproduce`: the experiments of the paper."""

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from prudent.base.errors import UsageError
from prudent.base.text import Column, number, plain
from prudent.cli.options import Seed, command, option
from prudent.cli.output import busy, out, print_table, progress_bar, say, say_wrapped

if TYPE_CHECKING:
    from prudent.research.table import Row
    from prudent.research.verdicts import Verdict

_CLAIMS = "which sentences of the paper hold, by the tables of the others"


@command("reproduce", "Try it")
def reproduce_command(
    name: Annotated[
        str,
        typer.Argument(
            help="An experiment, [bold]all[/bold], [bold]list[/bold] for their names, or [bold]claims[/bold]: which "
            "sentences of the paper hold, by the tables in the output folder and its subfolders."
        ),
    ],
    to: Annotated[Path | None, option("--to", "-o", help="Folder for table, figure and manifest.")] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(help="Real data: a file or glob; repeatable. [dim]Default: synthetic data.[/dim]"),
    ] = None,
    data_format: Annotated[
        str | None,
        typer.Option("--format", help="Of clicks: yandex or yandex-personalized. Relevance labels are detected."),
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option(min=1, help="Number of runs. [dim]Default: that of each experiment.[/dim]")
    ] = None,
    seed: Seed = None,
    deltas: Annotated[
        str | None, typer.Option(help="Values of δ, as in 0.1,0.2,0.5. [dim]Default: the paper's 16.[/dim]")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="As in 'mle,eb,ips'. [dim]Default: the paper's seven and exposure.[/dim]")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of processes. [dim]Default: one per core.[/dim]")
    ] = None,
) -> None:
    """Reproduce the paper's experiments, on real or synthetic data.

    The same command continues an interrupted run.
    """
    from prudent.research.reproduce import CATALOGUE, make_request, reproduce

    if name == "list":
        rows = [*((name, experiment.about) for name, experiment in CATALOGUE.items()), ("claims", _CLAIMS)]
        print_table([Column("experiment"), Column("shows")], rows)
        return
    if to is None:
        raise UsageError("Name a folder for the results: --to DIR (-o DIR).")
    if name == "claims":
        _check_claims(to)
        return
    request = make_request(
        data or [], data_format, repetitions, seed or 0, deltas, methods, processes or os.cpu_count() or 1
    )
    with progress_bar() as update:
        for experiment, outcome in reproduce(name, to, request, update):
            if outcome.page:
                out.print(Text(experiment, style="bold"))
                out.print(Markdown(outcome.page))
            else:
                _show_rows(experiment, outcome.rows)
            for note in outcome.notes:
                say(note)
    if name == "all":
        _check_claims(to)
    say(f"The results are in {to}.")


def _check_claims(folder: Path) -> None:
    """Check the paper's claims by the tables in a folder."""
    from prudent.research.verdicts import folders_in, try_claims, write_claims

    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}. Claims are checked by the tables of experiments in a folder.")
    with busy("Checking claims"):
        verdicts = try_claims(folders_in(folder))
        write_claims(verdicts, folder)
    _show_claims(verdicts)
    say(f"The same is in claims.csv, claims.parquet and claims.md of {folder}.")


def _show_rows(name: str, rows: "Sequence[Row]") -> None:
    """The error of every method as a share of that of the MLE."""
    groups: dict[tuple[str, str], dict[tuple[str, int], list[Row]]] = {}
    for row in rows:
        groups.setdefault((row.data, row.logging), {}).setdefault((row.model, row.n), []).append(row)
    methods = list(dict.fromkeys(row.method for row in rows if row.method != "mle"))
    for (data, logging), panels in groups.items():
        cells = []
        for (model, n), panel in panels.items():
            mle = next((row.error for row in panel if row.method == "mle"), math.nan)
            cells.append((model, n, mle, *(_share(panel, method, mle) for method in methods)))
        columns = [
            Column("model", str),
            Column("n", int),
            Column("mle", float, show=lambda value: number(value, 4)),
            *(Column(method, float, show=lambda value: number(value, 2)) for method in methods),
        ]
        print_table(columns, cells, title=f"{name}: {data}; logging: {logging}")
    say_wrapped(
        "mle: its regret V(A*) − V(Â). Others: regret as a share of it, at the δ nearest to 0.2 (exposure: 0.5)."
    )


def _share(rows: "Sequence[Row]", method: str, mle: float) -> float | None:
    level = 0.5 if method.startswith("exposure") else 0.2
    own = [row for row in rows if row.method == method]
    best = min(own, key=lambda row: abs((row.delta or 0) - level), default=None)
    return best.error / mle if best is not None and mle > 0 else None


def _show_claims(verdicts: "Sequence[Verdict]") -> None:
    from prudent.research.verdicts import LEGEND

    table = Table("claim", "where", "verdict", "measured", box=None, pad_edge=False, header_style="dim")
    for column, width in zip(table.columns, (20, 10, 16, None), strict=True):
        column.overflow, column.width = "fold", width
    previous = ""
    for one in verdicts:
        colour = {"holds": "green", "fails": "red", "depends": "yellow"}.get(one.word, "dim")
        claim = (plain(one.claim), one.where) if one.claim != previous else ("", "")
        measured = f"{one.data} ({one.experiment}): {one.measured}" if one.measured else ""
        if len(measured) > 200:  # the files have all of it
            measured = measured[:200].rpartition(",")[0] + ", …"
        table.add_row(*map(Text, claim), Text(plain(one.verdict), style=colour), Text(plain(measured)))
        table.add_row()
        previous = one.claim
    out.print(table)
    words = [one.word for one in verdicts]
    totals = "; ".join(f"{word}: {words.count(word)}" for word in dict.fromkeys(sorted(words)))
    say_wrapped(f"{totals}. {LEGEND}")
