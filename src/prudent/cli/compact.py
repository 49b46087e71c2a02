"""`prudent compact`: merge old days of counts."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import prudent
from prudent.base.text import Column
from prudent.cli.options import Json, Memory, Threads, command
from prudent.cli.output import busy, print_json, print_table, say


@command("compact", "Daily")
def compact_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of counts, with a folder for each day.")],
    before: Annotated[
        str, typer.Option(help="Merge the days before this date, or an age such as 90d, in days before the newest day.")
    ],
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Merge old days of counts into one file and remove them.

    The sum does not change. Merged days cannot be counted again, --since and --until take all of them or none, and for --half-life all have the age of the middle one.
    """  # noqa: E501 (a line break here would be one in a terminal)
    with busy("Merging"):
        merged = prudent.compact(folder, before, engine=prudent.DuckDB(memory, threads))
    if as_json:
        print_json(asdict(merged))
    elif merged.file is None:
        say(f"Nothing to merge: fewer than two days are before {merged.before}.")
    else:
        say(f"Merged {merged.days:,} days, {merged.first} to {merged.last}, into {merged.file}.")
        sizes = [
            ("cells", merged.cells_before, merged.cells_after),
            ("bytes", merged.bytes_before, merged.bytes_after),
        ]
        print_table([Column("", str, " "), "before", "after"], sizes)
