"""`prudent demo` and `simulate`: logs with a known ground truth."""

from pathlib import Path
from typing import Annotated

import typer

import prudent
from prudent.base.text import several
from prudent.cli.log_options import LayoutOption
from prudent.cli.options import Seed, To, command, only_set
from prudent.cli.output import busy, out, say


@command("demo", "Try it")
def demo_command(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder for the log, the counts and the policy.")
    ] = Path("prudent-demo"),
    seed: Seed = None,
) -> None:
    """Try everything on a simulated log, whose best lists are known."""
    from prudent.research.demo import demo

    demo(folder, out, **only_set(seed=seed))


@command("simulate", "Try it")
def simulate_command(
    to: To,
    truth: Annotated[Path | None, typer.Option(help="Also write the true attraction of every item.")] = None,
    lists: Annotated[int | None, typer.Option(help="Number of lists.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Click model: {click_models}; e.g. 'pbm(examination=[1, .5])'.")
    ] = None,
    contexts: Annotated[int | None, typer.Option(help="Number of contexts.")] = None,
    items: Annotated[
        tuple[int, int] | None, typer.Option(metavar="FEWEST MOST", help="Fewest and most items of a context.")
    ] = None,
    length: Annotated[int | None, typer.Option(help="Items per list.")] = None,
    zipf: Annotated[float | None, typer.Option(help="Zipf exponent of context frequencies; 0 is uniform.")] = None,
    quality: Annotated[
        float | None, typer.Option(help="Quality of the logging policy: 1 good, 0 random, -1 reversed.")
    ] = None,
    exploration: Annotated[float | None, typer.Option(help="Noise added to the logging policy, per list.")] = None,
    attraction: Annotated[
        tuple[float, float] | None, typer.Option(metavar="A B", help="a and b of attraction ~ Beta(a, b).")
    ] = None,
    layout: LayoutOption = None,
    seed: Seed = None,
) -> None:
    """Simulate a click log with a known ground truth."""
    settings = only_set(truth=truth, lists=lists, model=model, contexts=contexts, items=items, length=length, zipf=zipf)
    settings |= only_set(quality=quality, exploration=exploration, attraction=attraction, layout=layout, seed=seed)
    from prudent.click_models.simulate import LISTS

    with busy("Simulating"):
        world = prudent.simulate(to, **settings)
    say(f"Wrote {several(lists or LISTS, 'list')} of {several(len(world.contexts), 'context')} to {to}.")
    if truth is not None:
        say(f"The true attraction of every item is in {truth}.")
