"""`prudent demo`, `simulate` and `reproduce`: things to try without a log of your own."""

from pathlib import Path
from typing import Annotated

import typer

from prudent.base.errors import UsageError
from prudent.cli.shared import (
    Layout,
    LayoutOption,
    Output,
    app,
    check_output,
    check_parquet,
    option,
)
from prudent.cli.show_trying import show_catalogue, show_claims, show_page, show_rows
from prudent.cli.terminal import busy, counting_down, out, plain, say, several


@app.command("simulate", rich_help_panel="Try")
def simulate_command(
    output: Output,
    truth: Annotated[Path | None, typer.Option(help="Also write the true attraction of every item.")] = None,
    lists: Annotated[int, typer.Option(min=1, help="Lists to show.")] = 100_000,
    model: Annotated[
        str, typer.Option(help="How users click: cm, dcm or pbm, e.g. 'pbm(examination=[1, .5])'.")
    ] = "pbm",
    contexts: Annotated[int, typer.Option(min=1, help="Contexts.")] = 500,
    min_items: Annotated[int, typer.Option(min=1, help="Fewest items of a context.")] = 20,
    max_items: Annotated[int, typer.Option(min=1, help="Most items of a context.")] = 50,
    length: Annotated[int, typer.Option(min=1, help="Items per list.")] = 10,
    zipf: Annotated[float, typer.Option(min=0, help="Exponent of the contexts' frequencies; 0: all alike.")] = 1.0,
    quality: Annotated[float, typer.Option(help="Of the production ranker: 1 good, 0 blind, -1 opposed.")] = 1.0,
    exploration: Annotated[float, typer.Option(min=0, help="Noise on the production ranker, per list.")] = 1.0,
    attraction: Annotated[tuple[float, float], typer.Option(help="a and b of attraction ~ Beta(a, b).")] = (1.2, 5.0),
    layout: LayoutOption = Layout.lists,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same bytes.")] = 0,
) -> None:
    """Make a click log whose answers are known."""
    from prudent.click_models.simulate import make_world, write_log, write_truth

    check_output(output, [])
    if truth is not None:
        check_parquet(truth, [output])
    world = make_world(
        model,
        contexts=contexts,
        items=(min_items, max_items),
        attraction=attraction,
        zipf=zipf,
        length=length,
        quality=quality,
        exploration=exploration,
        seed=seed,
    )
    with busy("Simulating"):
        write_log(world, lists, output, layout=layout.value, seed=seed)
        if truth is not None:
            write_truth(world, truth)
    say(f"Wrote {several(lists, 'list')} of {several(contexts, 'context')} to {plain(str(output))}.")
    if truth is not None:
        say(f"The true attraction of every item is in {plain(str(truth))}.")


@app.command("demo", rich_help_panel="Try")
def demo_command(
    folder: Annotated[Path, typer.Argument(help="Where to leave the log, the counts and the policy.")] = Path(
        "prudent-demo"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Of the simulated shop.")] = 0,
) -> None:
    """Try everything on a simulated shop whose best lists are known."""
    from prudent.research.demo import demo

    demo(folder, out, seed)


@app.command("reproduce", rich_help_panel="Try")
def reproduce_command(
    name: Annotated[
        str,
        typer.Argument(
            help="An experiment, [bold]all[/bold], [bold]list[/bold] for their names, or [bold]claims[/bold]: which "
            "sentences of the paper hold, by the tables that are in the folder or in folders inside it."
        ),
    ],
    output: Annotated[Path | None, option("--output", "-o", help="Folder for table, figure and manifest.")] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(help="Real data: a file or glob, repeatable. [dim]Default: a stand-in.[/dim]"),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help="Of clicks: yandex or yandex-personalized. Labels (letor) are told by a look."),
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option(min=1, help="How often to repeat. [dim]Default: as each experiment needs.[/dim]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same table, to the byte.")] = 0,
    deltas: Annotated[
        str | None, typer.Option(help="Values of δ, as in 0.1,0.2,0.5. [dim]Default: the paper's 16.[/dim]")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="As in 'mle,eb,ips'. [dim]Default: the paper's seven and exposure.[/dim]")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Processes to work in. [dim]Default: one for each core.[/dim]")
    ] = None,
) -> None:
    """Run an experiment of the paper again, on real data or on a stand-in.

    An interrupted run goes on where it stopped when the same command is given again.
    """
    import os

    from prudent.research.reproduce import CATALOGUE, make_request, reproduce

    if name == "list":
        abouts = {name: experiment.about for name, experiment in CATALOGUE.items()}
        show_catalogue({**abouts, "claims": "which sentences of the paper hold, by the tables of the others"})
        return
    if output is None:
        raise UsageError("Say where the results go: --output DIR (-o DIR).")
    if name == "claims":
        _claims(output)
        return
    request = make_request(data or [], form, repetitions, seed, deltas, methods, processes or os.cpu_count() or 1)
    with counting_down() as watch:
        for one, outcome in reproduce(name, output, request, watch):
            if outcome.page:
                show_page(one, outcome.page)
            else:
                show_rows(one, outcome.rows)
            for note in outcome.notes:
                say(note)
    if name == "all":
        _claims(output)
    say(f"The results are in {plain(str(output))}.")


def _claims(folder: Path) -> None:
    """Try the paper's claims on the tables in a folder."""
    from prudent.research.claims import folders_in, try_claims, write_claims

    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}. Claims are tried on the tables that an experiment left in one.")
    with busy("Trying claims"):
        verdicts = try_claims(folders_in(folder))
        write_claims(verdicts, folder)
    show_claims(verdicts)
    say(f"The same is in claims.csv, claims.parquet and claims.md of {plain(str(folder))}.")
