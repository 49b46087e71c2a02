"""Arguments in, functions called, tables out; no arithmetic.

Imports stand inside the commands: `prudent --help` should answer before NumPy and SciPy are even loaded.
"""

import io
import json
import math
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prudent import __version__
from prudent.errors import PrudentError, PrudentWarning, UsageError, WriteError

if TYPE_CHECKING:
    from prudent.counts import Counts
    from prudent.health import Health
    from prudent.policy import Policy

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """The reader has seen enough: leave as a killed `cat` would, and not with the code of a gate that said no."""
        _close_stdout()
        raise SystemExit(141)


out = _Console(highlight=False, emoji=False)
err = _Console(stderr=True, highlight=False, emoji=False)


class Layout(StrEnum):
    """One row per list, or one row per shown item."""

    lists = "lists"
    rows = "rows"


def _option(*names: str, panel: str | None = None, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **settings)


Inputs = Annotated[
    list[str], typer.Argument(metavar="INPUT", help="Click logs (Parquet, JSON Lines, CSV; globs), or counts.")
]
Output = Annotated[Path, _option("--output", "-o", help="File to write.")]
LayoutOption = Annotated[Layout, _option("--layout", panel="Log", help="One row per shown list, or per shown item.")]
ContextOption = Annotated[str, _option("--context", panel="Log", help="Column of the context.")]
ItemsOption = Annotated[str, _option("--items", panel="Log", help="Column of the shown items (layout lists).")]
ClicksOption = Annotated[str, _option("--clicks", panel="Log", help="Column of the 0/1 clicks (layout lists).")]
ImpressionOption = Annotated[str, _option("--impression", panel="Log", help="Column of the list's id (layout rows).")]
ItemOption = Annotated[str, _option("--item", panel="Log", help="Column of the item (layout rows).")]
PositionOption = Annotated[str, _option("--position", panel="Log", help="Column of the position, from 1 (rows).")]
ClickOption = Annotated[str, _option("--click", panel="Log", help="Column of the 0/1 click (layout rows).")]
MaxBad = Annotated[float, _option("--max-bad", panel="Log", min=0, max=1, help="Share of bad lists to put up with.")]
Memory = Annotated[str | None, _option("--memory", panel="Engine", help="Cap, such as 1GB; the rest spills to disk.")]
Threads = Annotated[int | None, _option("--threads", panel="Engine", min=1, help="Threads of the engine.")]
Json = Annotated[bool, _option("--json", help="Print the result as JSON.")]


@app.callback(invoke_without_command=True)
def _main(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Turn a click log into the ranked lists with the best [bold]lower bound[/bold] on their value.

    Start with [bold]prudent demo[/bold], or look at your own log with [bold]prudent check LOG[/bold].
    """
    if version:
        out.print(f"prudent {__version__}")


@app.command("rank")
def rank_command(
    inputs: Inputs,
    output: Output,
    scores: Annotated[Path | None, typer.Option(help="Also write every candidate's scores.")] = None,
    length: Annotated[
        int | None, typer.Option(min=1, help="Items per list. [dim]Default: as in the log.[/dim]")
    ] = None,
    model: Annotated[str, typer.Option(help="auto, cm, dcm, pbm, ..., e.g. 'dcm(tail=truncate)'.")] = "auto",
    bound: Annotated[str, typer.Option(help="exposure, eb, bayes, hoeffding, mle.")] = "exposure(delta=0.5)",
    candidates: Annotated[str | None, typer.Option(help="File of context, item: what may be shown.")] = None,
    min_lists: Annotated[int, typer.Option(min=0, help="Leave out contexts with fewer logged lists.")] = 1,
    layout: LayoutOption = Layout.lists,
    context: ContextOption = "context",
    items: ItemsOption = "items",
    clicks: ClicksOption = "clicks",
    impression: ImpressionOption = "impression",
    item: ItemOption = "item",
    position: PositionOption = "position",
    click: ClickOption = "click",
    max_bad: MaxBad = 0.01,
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Find the best list of every context, from logs or from counts."""
    from prudent import bounds, click_models
    from prudent.algorithm import rank
    from prudent.log import find_files

    model_, bound_ = click_models.parse(model), bounds.parse(bound)  # a typo should not wait for the counting
    files = find_files(inputs) + ([Path(candidates)] if candidates is not None else [])
    _check_output(output, files)
    if scores is not None:
        _check_output(scores, [*files, output])
    names = _columns(layout, context, items, clicks, impression, item, position, click)
    counts = _counts(inputs, names, max_bad, memory, threads)
    with _busy("Ranking"):
        policy = rank(counts, model_, bound_, length, candidates, min_lists)
        policy.write(output, scores)
    if as_json:
        _print_json(policy.provenance)
    else:
        _show_policy(policy, output, scores)


@app.command("count")
def count_command(
    inputs: Inputs,
    output: Output,
    layout: LayoutOption = Layout.lists,
    context: ContextOption = "context",
    items: ItemsOption = "items",
    clicks: ClicksOption = "clicks",
    impression: ImpressionOption = "impression",
    item: ItemOption = "item",
    position: PositionOption = "position",
    click: ClickOption = "click",
    max_bad: MaxBad = 0.01,
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Count logs once; the counts of several days add up in [bold]prudent rank[/bold]."""
    from prudent.counts import describe_rejected
    from prudent.log import find_files

    _check_output(output, find_files(inputs))
    names = _columns(layout, context, items, clicks, impression, item, position, click)
    counts = _counts(inputs, names, max_bad, memory, threads, to=output)
    if as_json:
        _print_json(counts.manifest)
        return
    _say(f"Counted {counts.tally.lists:,} lists into {_plain(str(output))}.")
    for reason in describe_rejected(counts.tally):
        _say(f"Rejected {reason}.")
    _say(f"Next: prudent rank {_plain(str(output))} -o policy.parquet")


@app.command("check")
def check_command(
    inputs: Inputs,
    layout: LayoutOption = Layout.lists,
    context: ContextOption = "context",
    items: ItemsOption = "items",
    clicks: ClicksOption = "clicks",
    impression: ImpressionOption = "impression",
    item: ItemOption = "item",
    position: PositionOption = "position",
    click: ClickOption = "click",
    memory: Memory = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Say what is in a log, what is wrong with it, and what it can support."""
    from prudent.health import check

    names = _columns(layout, context, items, clicks, impression, item, position, click)
    counts = _counts(inputs, names, 1.0, memory, threads)
    with _busy("Looking"):
        health = check(counts)
    if as_json:
        _print_json({**asdict(health), "verdicts": health.verdicts()})
    else:
        _show_health(health)


@app.command("simulate")
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
    from prudent.simulate import make_world, write_log, write_truth

    _check_output(output, [])
    if truth is not None:
        _check_output(truth, [output])
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
    with _busy("Simulating"):
        write_log(world, lists, output, layout=layout.value, seed=seed)
        if truth is not None:
            write_truth(world, truth)
    _say(f"Wrote {lists:,} lists of {contexts:,} contexts to {_plain(str(output))}.")
    if truth is not None:
        _say(f"The true attraction of every item is in {_plain(str(truth))}.")


@app.command("demo")
def demo_command(
    folder: Annotated[Path, typer.Argument(help="Where to leave the log, the counts and the policy.")] = Path(
        "prudent-demo"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Of the simulated shop.")] = 0,
) -> None:
    """Try everything on a simulated shop whose best lists are known."""
    from prudent.demo import demo

    demo(folder, out, seed)


def main() -> None:
    """Entry point: errors of the family become one line and their exit code."""
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # beyond a terminal's alphabet, \u2587 has to do for ▇
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except PrudentError as error:
        _fail(str(error), error.exit_code)
    except OSError as error:  # files raise errors of the family: this is the standard output
        _close_stdout()
        _fail(f"Cannot write to the standard output: {error.strerror}.", WriteError.exit_code)
    except Exception as error:  # DuckDB's have to be told by their looks: it may not be loaded
        if str(error) == "Query interrupted":
            sys.exit(130)
        if type(error).__name__ == "OutOfMemoryException":
            _fail(f"There is too little memory: {str(error).splitlines()[0]}. Raise --memory.", PrudentError.exit_code)
        raise


def _fail(message: str, code: int) -> NoReturn:
    err.print(Text("Error: ", style="bold red") + Text(_plain(message)), soft_wrap=True)
    sys.exit(code)


def _close_stdout() -> None:
    """Let what is still buffered go nowhere; Python would try again to write it, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# --- input -----------------------------------------------------------------------------------------------------------


def _columns(
    layout: Layout, context: str, items: str, clicks: str, impression: str, item: str, position: str, click: str
) -> dict[str, str]:
    return {
        "layout": layout.value,
        "context": context,
        "items": items,
        "clicks": clicks,
        "impression": impression,
        "item": item,
        "position": position,
        "click": click,
    }


def _counts(
    inputs: Sequence[str],
    names: dict[str, Any],
    max_bad: float,
    memory: str | None,
    threads: int | None,
    to: Path | None = None,
) -> "Counts":
    """Counts from counts, or from logs by counting them."""
    from prudent.counts import Counts, count, is_counts
    from prudent.engines.duckdb import DuckDB
    from prudent.log import Log, find_files

    engine = DuckDB(memory, threads)
    files = find_files(inputs)
    if len(set(files)) < len(files):
        twice = next(file for file in files if files.count(file) > 1)
        raise UsageError(f"{twice} is named twice, and would be counted twice.")
    counted = [file for file in files if is_counts(file)]
    if len(counted) == len(files):
        counts = Counts.read(*files, engine=engine)
        if to is not None:
            with _busy("Adding"):
                counts.write(to)
        return counts
    if counted:
        raise UsageError(f"{counted[0]} holds counts and others do not. Count the logs first, then give counts only.")
    with _busy("Counting"):
        return count(Log(list(inputs), **names), engine, to, max_bad)


def _check_output(output: Path, others: Sequence[Path]) -> None:
    """Find out before the long work whether its result will have a place."""
    from prudent.files import check_target

    check_target(output)
    taken = [other.resolve() for other in others]
    if output.resolve() in taken:
        raise UsageError(f"{output} is named twice. Choose another output: nothing is overwritten by its own result.")


# --- output ----------------------------------------------------------------------------------------------------------


@contextmanager
def _busy(doing: str) -> Iterator[None]:
    """Show that something is going on, on a terminal only."""
    if not err.is_terminal:
        yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    with Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=err, transient=True
    ) as progress:
        progress.add_task(f"{doing} ...", total=None)
        yield


def _show_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    style = "yellow" if issubclass(category, PrudentWarning) else "dim"
    err.print(Text("Note: ", style=f"bold {style}") + Text(_plain(str(message))), soft_wrap=True)


def _plain(text: str) -> str:
    """Text that a terminal shows and does not obey: control characters are written out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _say(line: str) -> None:
    """Print a line as it is: no markup in it, and no break inside a path."""
    out.print(line, markup=False, soft_wrap=True)


def _print_json(content: object) -> None:
    out.out(json.dumps(content, indent=2, ensure_ascii=False, default=dict), highlight=False)


def _table(*columns: str, title: str | None = None) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    return table


def _show_health(health: "Health") -> None:
    table = _table("in the log", "")
    for name, value in (
        ("lists", f"{health.lists:,}"),
        ("contexts", f"{health.contexts:,}"),
        ("items", f"{health.items:,}"),
        ("context-item pairs", f"{health.pairs:,}"),
        ("positions", f"{health.positions:,}"),
        ("clicks", f"{health.clicks:,}"),
        ("lists without a click", f"{health.without_click:.1%}"),
        ("lists with several clicks", f"{health.several_clicks:.1%}"),
        ("pairs shown fewer than 10 times", f"{health.rare_pairs:.1%}"),
        ("impressions of items that change position", f"{health.moving_pairs:.1%}"),
    ):
        table.add_row(name, value)
    out.print(table)
    out.print()
    top = max([*health.ctr, 1e-12])
    chart = _table("position", "click-through rate", "")
    chart.columns[2].justify = "left"
    for position, ctr in enumerate(health.ctr[:20], start=1):
        chart.add_row(str(position), f"{ctr:.3f}", "▇" * round(24 * ctr / top))
    out.print(chart)
    if len(health.ctr) > 20:
        out.print(f"... and {len(health.ctr) - 20} more positions (--json has them all)")
    out.print()
    if health.rejected:
        rejected = _table("rejected lists", "")
        for reason, n in sorted(health.rejected.items(), key=lambda entry: -entry[1]):
            rejected.add_row(reason, f"{n:,}")
        out.print(rejected)
    else:
        out.print("No list was rejected.")
    out.print()
    for verdict in health.verdicts():
        out.print(f"• {verdict}", markup=False)


def _show_policy(policy: "Policy", output: Path, scores: Path | None) -> None:
    from prudent.counts import describe_rejected
    from prudent.engines import Tally

    said = policy.provenance
    summary = said["summary"]
    out.print(f"{summary['contexts']:,} lists by {said['model']} and {said['bound']}", markup=False, style="bold")
    table = _table("", "")
    for name, value in (
        ("logged lists", f"{said['counts']['lists']:,}"),
        ("differ from the list mostly shown", f"{summary['differ']:,} of {summary['contexts']:,}"),
        ("value of a list, estimated", f"{summary['value']:.4f}"),
        ("value of a list, lower bound", f"{summary['lower']:.4f}"),
        ("value of the list mostly shown, estimated", f"{summary['usual']:.4f}"),
    ):
        table.add_row(name, value)
    out.print(table)
    if summary["left_out"]:
        out.print(f"{summary['left_out']:,} contexts have fewer than {said['min_lists']} lists and were left out.")
    for reason in describe_rejected(Tally(0, said["counts"]["rejected"])):
        _say(f"Rejected {reason}.")
    _show_fitted(said["fitted"])
    _show_changes(policy)
    _say(f"\nThe lists are in {_plain(str(output))}.")
    if scores is not None:
        _say(f"Every candidate's scores are in {_plain(str(scores))}.")


def _show_fitted(fitted: dict[str, Any]) -> None:
    for parameter in ("examination", "continuation"):
        if parameter in fitted:
            values = " ".join(f"{value:.2f}" for value in fitted[parameter][:20])
            out.print(f"{parameter} by position: {values}")
    prior = fitted.get("prior", {})
    if "slopes" in prior:
        from prudent.bounds.exposure import ExposurePrior

        curve = ExposurePrior(**prior)
        shown = (0.1, 1.0, 10.0)
        means = curve.mean([math.log(times) for times in shown])
        if curve.shrinkage > 0:
            told = ", ".join(f"{mean:.3f} at {times:g}×" for mean, times in zip(means, shown, strict=True))
            out.print(
                f"attraction expected from exposure alone (relative to the context's average): {told}; worth "
                f"{curve.strength:.1f} examinations; evidence for the curve {curve.wald:.0f}, kept at "
                f"{curve.shrinkage:.0%}"
            )
        else:
            out.print(
                f"exposure says nothing about attraction here; prior mean {means[1]:.3f}, worth {curve.strength:.1f} "
                "examinations"
            )
    elif "alpha" in prior:
        out.print(f"fitted prior: Beta({prior['alpha']:g}, {prior['beta']:g})")


def _show_changes(policy: "Policy") -> None:
    changes = policy.contexts().filter("differ").order("(value - usual) * lists desc, context").limit(5).fetchall()
    if not changes:
        return
    table = _table("largest changes", "lists", "value mostly shown", "new value", "lower bound", "new first item")
    for context, lists, value, lower, usual, _ in changes:
        first = policy[context][0]
        table.add_row(
            Text(_plain(str(context))),
            f"{lists:,}",
            f"{usual:.3f}",
            f"{value:.3f}",
            f"{lower:.3f}",
            Text(_plain(str(first))),
        )
    out.print()
    out.print(table)
