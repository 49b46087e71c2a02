"""`prudent demo` and `simulate`: logs with a known ground truth."""

from pathlib import Path
from typing import Annotated

import typer

import prudent
from prudent.base.text import several
from prudent.cli.options import LayoutOption, Output, Seed, command
from prudent.cli.output import busy, out, say


@command("demo", "Try it")
def demo_command(
    folder: Annotated[Path, typer.Argument(help="Folder for the log, the counts and the policy.")] = Path(
        "prudent-demo"
    ),
    seed: Seed = 0,
) -> None:
    """Try everything on a simulated log, whose best lists are known."""
    from prudent.research.demo import demo

    demo(folder, out, seed)


@command("simulate", "Try it")
def simulate_command(
    output: Output,
    truth: Annotated[Path | None, typer.Option(help="Also write the true attraction of every item.")] = None,
    lists: Annotated[int, typer.Option(min=1, help="Number of lists.")] = 100_000,
    model: Annotated[str, typer.Option(help="Click model: {click_models}; e.g. 'pbm(examination=[1, .5])'.")] = "pbm",
    contexts: Annotated[int, typer.Option(min=1, help="Number of contexts.")] = 500,
    min_items: Annotated[int, typer.Option(min=1, help="Fewest items of a context.")] = 20,
    max_items: Annotated[int, typer.Option(min=1, help="Most items of a context.")] = 50,
    length: Annotated[int, typer.Option(min=1, help="Items per list.")] = 10,
    zipf: Annotated[float, typer.Option(min=0, help="Zipf exponent of context frequencies; 0 is uniform.")] = 1.0,
    quality: Annotated[float, typer.Option(help="Quality of the logging policy: 1 good, 0 random, -1 reversed.")] = 1.0,
    exploration: Annotated[float, typer.Option(min=0, help="Noise added to the logging policy, per list.")] = 1.0,
    attraction: Annotated[tuple[float, float], typer.Option(help="a and b of attraction ~ Beta(a, b).")] = (1.2, 5.0),
    layout: LayoutOption = "lists",
    seed: Seed = 0,
) -> None:
    """Simulate a click log with a known ground truth."""
    with busy("Simulating"):
        prudent.simulate(
            output,
            truth=truth,
            lists=lists,
            layout=layout,
            seed=seed,
            model=model,
            contexts=contexts,
            items=(min_items, max_items),
            attraction=attraction,
            zipf=zipf,
            length=length,
            quality=quality,
            exploration=exploration,
        )
    say(f"Wrote {several(lists, 'list')} of {several(contexts, 'context')} to {output}.")
    if truth is not None:
        say(f"The true attraction of every item is in {truth}.")
