"""`prudent compact` and `diff`: what comes with every day."""

from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from prudent.cli.shared import (
    Json,
    Memory,
    Threads,
    app,
    check_parquet,
    option,
)
from prudent.cli.show_days import show_compacted, show_difference
from prudent.cli.terminal import busy, plain, print_json, say


@app.command("compact", rich_help_panel="Every day")
def compact_command(
    folder: Annotated[Path, typer.Argument(help="Of counts, with a folder for each day.")],
    before: Annotated[
        str, typer.Option(help="Merge the days before this date, or an age such as 90d, in days before the newest.")
    ],
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Merge old days of counts into one file, and remove them.

    Their sum stays what it was. But merged days cannot be counted anew, --since and --until take all of them or none,
    and to a --half-life all have the age of the middle one.
    """
    from prudent.counts.compact import compact
    from prudent.engines.duckdb.engine import DuckDB

    with busy("Merging"):
        done = compact(folder, before, DuckDB(memory, threads))
    if as_json:
        print_json(
            {name: str(value) if isinstance(value, date | Path) else value for name, value in asdict(done).items()}
        )
    else:
        show_compacted(done)


@app.command("diff", rich_help_panel="Every day")
def diff_command(
    old: Annotated[Path, typer.Argument(help="The policy before.")],
    new: Annotated[Path, typer.Argument(help="The policy after.")],
    scores: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="OLD NEW", help="Their scores, which tell why an item entered a list or left it."),
    ] = None,
    output: Annotated[Path | None, option("--output", "-o", help="Parquet file for all changes.")] = None,
    limit: Annotated[int, typer.Option(min=0, max=10_000, help="Contexts to show, the most shown first.")] = 5,
    as_json: Json = False,
) -> None:
    """Say what changed from one policy to another, and why.

    In [bold]--json[/bold] the numbers are complete; changes are of as many contexts as [bold]--limit[/bold] says.
    """
    from prudent.policies.diff import diff

    if output is not None:
        check_parquet(output, [old, new, *(scores or ())])
    with busy("Comparing"):
        difference = diff(old, new, scores=scores)
        if output is not None:
            difference.write(output)
    if as_json:
        print_json({**difference.manifest.to_json(), **difference.sample(limit)})
    else:
        show_difference(difference, limit)
        if output is not None:
            say(f"\nAll changes are in {plain(str(output))}.")
