"""`prudent export`: the lists, for the program that shows them."""

from pathlib import Path
from typing import Annotated

import typer

from prudent.cli.shared import Json, Memory, Output, Threads, app, check_output
from prudent.cli.show_exporting import show_exported
from prudent.cli.terminal import busy, print_json


@app.command("export", rich_help_panel="Serving")
def export_command(
    policy: Annotated[Path, typer.Argument(help="The policy, which prudent rank has written.")],
    output: Output,
    format: Annotated[
        str,
        typer.Option(
            help="jsonl, csv, trec-run, elasticsearch-rules, redis or sql; settings in brackets: 'sql(table=lists)'."
        ),
    ] = "jsonl",
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Write the lists of a policy for the program that shows them."""
    from prudent.engines.duckdb.engine import DuckDB
    from prudent.policies.export import export, parse

    chosen = parse(format)  # a typo fails before the policy is read
    check_output(output, [policy])
    with busy("Exporting"):
        manifest = export(policy, output, format=chosen, engine=DuckDB(memory, threads))
    if as_json:
        print_json(manifest.to_json())
    else:
        show_exported(manifest, output, chosen.load(output))
