"""Arguments in, functions called, tables out; no arithmetic.

Imports stand inside the commands: `prudent --help` should answer before NumPy and SciPy are even loaded.
"""

import inspect
import io
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prudent import __version__
from prudent.errors import PrudentError, UsageError, WriteError
from prudent.terminal import (
    busy,
    close_stdout,
    counting_down,
    fail,
    out,
    plain,
    print_json,
    say,
    show_catalogue,
    show_changes,
    show_claims,
    show_compacted,
    show_counted,
    show_difference,
    show_health,
    show_outputs,
    show_page,
    show_provenance,
    show_rows,
    show_warning,
)

if TYPE_CHECKING:
    from prudent.counts import Counts
    from prudent.engines.duckdb import DuckDB
    from prudent.engines.spark import Spark
    from prudent.log import Log

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Layout(StrEnum):
    """One row per list, or one row per shown item."""

    lists = "lists"
    rows = "rows"


class EngineName(StrEnum):
    """What counts and ranks."""

    duckdb = "duckdb"
    spark = "spark"


class Format(StrEnum):
    """The formats of `prudent.readers`."""

    yandex = "yandex"
    yandex_personalized = "yandex-personalized"


def _option(*names: str, panel: str | None = None, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **settings)


Inputs = Annotated[
    list[str], typer.Argument(metavar="INPUT", help="Click logs (Parquet, JSON Lines, CSV; globs), or counts.")
]
Output = Annotated[Path, _option("--output", "-o", help="File to write.")]
LayoutOption = Annotated[Layout, _option("--layout", panel="Log", help="One row per shown list, or per shown item.")]
MaxBad = Annotated[float, _option("--max-bad", panel="Log", min=0, max=1, help="Share of bad lists to put up with.")]
Memory = Annotated[str | None, _option("--memory", panel="Engine", help="Cap of DuckDB, such as 1GB; the rest spills.")]
Threads = Annotated[int | None, _option("--threads", panel="Engine", min=1, max=1024, help="Threads of DuckDB.")]
EngineOption = Annotated[
    EngineName, _option("--engine", panel="Engine", help="Where to work: on this machine, or on Spark.")
]
Master = Annotated[str, _option("--master", panel="Engine", help="Spark's master: local[2], spark://..., yarn.")]
Conf = Annotated[
    list[str] | None, _option("--conf", panel="Engine", metavar="KEY=VALUE", help="A setting of Spark; repeatable.")
]
Since = Annotated[
    str | None,
    _option(
        "--since",
        panel="Days",
        help="Of a folder of days, the first to read: a date, or an age such as 30d, in days before the newest.",
    ),
]
Until = Annotated[str | None, _option("--until", panel="Days", help="The last day to read.")]
HalfLife = Annotated[
    str | None,
    _option(
        "--half-life",
        panel="Days",
        help="Such as 14d: a list counts half as much as one so much younger. The newest day that is read counts in "
        "full, whatever today is.",
    ),
]
MODEL, BOUND = "auto", "exposure(delta=0.5)"  # what `rank` takes when nothing is said
Json = Annotated[bool, _option("--json", help="Print the result as JSON.")]


@dataclass(frozen=True)
class Reading:
    """Where lists and clicks are in a log, and what the engine may use: options of every command that reads logs."""

    format: Annotated[
        Format | None, _option("--format", panel="Log", help="A format that says itself what its columns mean.")
    ] = None
    layout: LayoutOption = Layout.lists
    context: Annotated[str, _option("--context", panel="Log", help="Column of the context.")] = "context"
    items: Annotated[str, _option("--items", panel="Log", help="Column of the shown items (layout lists).")] = "items"
    clicks: Annotated[str, _option("--clicks", panel="Log", help="Column of the 0/1 clicks (layout lists).")] = "clicks"
    impression: Annotated[str, _option("--impression", panel="Log", help="Column of the list's id (layout rows).")] = (
        "impression"
    )
    item: Annotated[str, _option("--item", panel="Log", help="Column of the item (layout rows).")] = "item"
    position: Annotated[str, _option("--position", panel="Log", help="Column of the position, from 1 (rows).")] = (
        "position"
    )
    click: Annotated[str, _option("--click", panel="Log", help="Column of the 0/1 click (layout rows).")] = "click"
    memory: Memory = None
    threads: Threads = None


def _reads_logs(command: Callable[..., None]) -> Callable[..., None]:
    """Make options of the fields of `Reading`: typer wants each as an argument, the command all in one."""
    own = [p for p in inspect.signature(command).parameters.values() if p.name != "reading"]
    shared = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=f.type)
        for f in fields(Reading)
    ]

    @wraps(command)
    def spread(**given: Any) -> None:
        reading = Reading(**{f.name: given.pop(f.name) for f in fields(Reading)})
        command(reading=reading, **given)

    spread.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    spread.__annotations__ = {p.name: p.annotation for p in [*own, *shared]}
    return spread


@app.callback(invoke_without_command=True)
def _main(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Turn a click log into the ranked lists with the best [bold]lower bound[/bold] on their value.

    Start with [bold]prudent demo[/bold], or look at your own log with [bold]prudent check LOG[/bold].
    """
    if version:
        out.print(f"prudent {__version__}")


@app.command("rank")
@_reads_logs
def rank_command(
    reading: Reading,
    inputs: Inputs,
    output: Annotated[str, _option("--output", "-o", help="File to write; with --engine spark, a folder.")],
    scores: Annotated[Path | None, typer.Option(help="Also write every candidate's scores.")] = None,
    length: Annotated[
        int | None, typer.Option(min=1, help="Items per list. [dim]Default: as the longest logged list.[/dim]")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="auto, or cascade cm, dependent clicks dcm, position-based pbm.", show_default=MODEL),
    ] = None,
    bound: Annotated[
        str | None,
        typer.Option(
            help="exposure, hierarchical, eb, bayes, hoeffding or mle, e.g. 'eb(delta=0.2)'.", show_default=BOUND
        ),
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="Instead, one to compare with: ips, ip-ips or pi, e.g. 'ips(clip=50)'.")
    ] = None,
    candidates: Annotated[str | None, typer.Option(help="File of context, item: what may be shown.")] = None,
    min_lists: Annotated[int, typer.Option(min=0, help="Leave out contexts with fewer logged lists.")] = 1,
    since: Since = None,
    until: Until = None,
    half_life: HalfLife = None,
    engine: EngineOption = EngineName.duckdb,
    master: Master = "local[*]",
    conf: Conf = None,
    max_bad: MaxBad = 0.01,
    as_json: Json = False,
) -> None:
    """Find the best list of every context, from logs or from counts."""
    from prudent import baselines, bounds, click_models
    from prudent.algorithm import rank
    from prudent.log import find_files
    from prudent.whole_lists import rank_by

    # A typo should not wait for the counting.
    model_, bound_ = click_models.parse(model or MODEL), bounds.parse(bound or BOUND)
    rival = None if method is None else baselines.parse(method)
    if rival is not None:
        others = {"model": model, "bound": bound, "candidates": candidates}
        for name, given in (others | {"since": since, "until": until, "half-life": half_life}).items():
            if given is not None:
                raise UsageError(f"--method {rival} knows no {name}: leave out --{name}, or --method.")
    if engine == EngineName.spark:
        for name, asked in {"method": method is not None, "scores": scores is not None}.items():
            if asked:
                raise UsageError(f"--{name} does not work with --engine spark: leave out one of the two.")
        _check_spark_alone(reading)
        _rank_on_spark(
            inputs,
            output,
            _spark(master, conf),
            as_json,
            model=model_,
            bound=bound_,
            length=length,
            candidates=candidates,
            min_lists=min_lists,
            **_days(since, until, half_life),
        )
        return
    _check_here(output, master, conf)
    target = Path(output)
    files = find_files(inputs) + ([Path(candidates)] if candidates is not None else [])
    _check_parquet(target, files)
    if scores is not None:
        _check_parquet(scores, [*files, target])
    if rival is None:
        counts = _counts(inputs, reading, max_bad, days=_days(since, until, half_life))
        with busy("Ranking"):
            policy = rank(counts, model_, bound_, length, candidates, min_lists)
            policy.write(target, scores)
    else:
        log = _log_alone(inputs, reading, _engine(reading), str(rival))
        with busy("Ranking"):
            policy = rank_by(log, rival, length, min_lists, _engine(reading), max_bad)
            policy.write(target, scores)
    if as_json:
        print_json(policy.provenance)
    else:
        show_provenance(policy.provenance)
        show_changes(policy)
        show_outputs(output, scores)


def _rank_on_spark(inputs: Sequence[str], output: str, spark: "Spark", as_json: bool, **settings: Any) -> None:
    from prudent.on_spark import rank_on_spark

    with busy("Ranking on Spark"):
        provenance = rank_on_spark(inputs, output, spark, **settings)
    if as_json:
        print_json(provenance)
    else:
        show_provenance(provenance)
        show_outputs(output, None)


@app.command("count")
@_reads_logs
def count_command(
    reading: Reading,
    inputs: Inputs,
    output: Annotated[str, _option("--output", "-o", help="File to write; with --day, the folder of all days.")],
    day: Annotated[
        str | None,
        typer.Option(help="The day these lists are from, such as 2026-11-15: its folder in OUTPUT is replaced."),
    ] = None,
    engine: EngineOption = EngineName.duckdb,
    master: Master = "local[*]",
    conf: Conf = None,
    max_bad: MaxBad = 0.01,
    as_json: Json = False,
) -> None:
    """Count logs once; the counts of several days add up in [bold]prudent rank[/bold].

    With --engine spark, an output with a scheme (hdfs://, s3a://, file:) becomes a folder of Parquet files; a plain path becomes one file on this machine.
    """  # noqa: E501 (a line break here would be one in a terminal)
    from prudent.log import find_files, has_scheme

    place = output if has_scheme(output) else str(_target(output, day))
    if engine == EngineName.spark:
        _check_spark_alone(reading)
        manifest = _count_on_spark(inputs, place, reading, _spark(master, conf), max_bad, day)
    else:
        _check_here(output, master, conf)
        _check_parquet(Path(place), find_files(inputs))
        manifest = _counts(inputs, reading, max_bad, to=Path(place)).manifest
    if as_json:
        print_json(manifest)
        return
    show_counted(manifest, place)
    onward = " --engine spark" if has_scheme(output) else ""
    say(f"Next: prudent rank {plain(output)} -o policy.parquet{onward}")


def _count_on_spark(
    inputs: Sequence[str], output: str, reading: Reading, spark: "Spark", max_bad: float, day: str | None
) -> Mapping[str, Any]:
    from prudent.counts import count
    from prudent.log import has_scheme
    from prudent.on_spark import count_on_spark

    log = _log(inputs, reading, _engine(reading))
    with busy("Counting on Spark"):
        if has_scheme(output):
            return count_on_spark(log, output, spark, max_bad, day)
        _check_parquet(Path(output), [])
        return count(log, spark, output, max_bad).manifest


@app.command("check")
@_reads_logs
def check_command(
    reading: Reading,
    inputs: Inputs,
    since: Since = None,
    until: Until = None,
    half_life: HalfLife = None,
    as_json: Json = False,
) -> None:
    """Say what is in a log, what is wrong with it, and what it can support."""
    from prudent.health import check

    counts = _counts(inputs, reading, max_bad=1.0, days=_days(since, until, half_life))
    with busy("Looking"):
        health = check(counts)
    if as_json:
        print_json({**asdict(health), "verdicts": health.verdicts()})
    else:
        show_health(health)


@app.command("compact")
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

    Their sum stays what it was. But merged days cannot be counted anew, [bold]--since[/bold] and [bold]--until[/bold]
    take all of them or none, and to a [bold]--half-life[/bold] all have the age of the middle one.
    """
    from prudent.compaction import compact
    from prudent.engines.duckdb import DuckDB

    with busy("Merging"):
        done = compact(folder, before, DuckDB(memory, threads))
    if as_json:
        print_json(
            {name: str(value) if isinstance(value, date | Path) else value for name, value in asdict(done).items()}
        )
    else:
        show_compacted(done)


@app.command("diff")
def diff_command(
    old: Annotated[Path, typer.Argument(help="The policy before.")],
    new: Annotated[Path, typer.Argument(help="The policy after.")],
    scores: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="OLD NEW", help="Their scores, which tell why an item entered a list or left it."),
    ] = None,
    output: Annotated[Path | None, _option("--output", "-o", help="File for all changes, as a table.")] = None,
    limit: Annotated[int, typer.Option(min=0, max=10_000, help="Contexts to show, the most shown first.")] = 5,
    as_json: Json = False,
) -> None:
    """Say what changed from one policy to another, and why.

    In [bold]--json[/bold] the numbers are complete; changes are of as many contexts as [bold]--limit[/bold] says.
    """
    from prudent.difference import diff

    if output is not None:
        _check_parquet(output, [old, new, *(scores or ())])
    with busy("Comparing"):
        difference = diff(old, new, scores)
        if output is not None:
            difference.write(output)
    if as_json:
        print_json({**difference.manifest, **difference.sample(limit)})
    else:
        show_difference(difference, limit)
        if output is not None:
            say(f"\nAll changes are in {plain(str(output))}.")


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
        _check_parquet(truth, [output])
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
    say(f"Wrote {lists:,} lists of {contexts:,} contexts to {plain(str(output))}.")
    if truth is not None:
        say(f"The true attraction of every item is in {plain(str(truth))}.")


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


@app.command("reproduce")
def reproduce_command(
    name: Annotated[
        str,
        typer.Argument(
            help="An experiment, [bold]all[/bold], [bold]list[/bold] for their names, or [bold]claims[/bold]: which "
            "sentences of the paper hold, by the tables that are in the folder or in folders inside it."
        ),
    ],
    output: Annotated[Path | None, _option("--output", "-o", help="Folder for table, figure and manifest.")] = None,
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

    from prudent.experiments.reproduce import CATALOGUE, make_request, reproduce

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
    from prudent.experiments.claims import folders_in, try_claims, write_claims

    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}. Claims are tried on the tables that an experiment left in one.")
    with busy("Trying claims"):
        verdicts = try_claims(folders_in(folder))
        write_claims(verdicts, folder)
    show_claims(verdicts)
    say(f"The same is in claims.csv, claims.parquet and claims.md of {plain(str(folder))}.")


def main() -> None:
    """Entry point: errors of the family become one line and their exit code."""
    warnings.showwarning = show_warning  # type: ignore[assignment]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # beyond a terminal's alphabet, \u2587 has to do for ▇
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except PrudentError as error:
        fail(str(error), error.exit_code)
    except OSError as error:  # files raise errors of the family: this is the standard output
        close_stdout()
        fail(f"Cannot write to the standard output: {error.strerror}.", WriteError.exit_code)
    except Exception as error:  # DuckDB's have to be told by their looks: it may not be loaded
        if str(error) == "Query interrupted":
            sys.exit(130)
        if type(error).__name__ == "OutOfMemoryException":
            fail(f"There is too little memory: {str(error).splitlines()[0]}. Raise --memory.", PrudentError.exit_code)
        raise


# --- input -----------------------------------------------------------------------------------------------------------


def _counts(
    inputs: Sequence[str],
    reading: Reading,
    max_bad: float,
    to: Path | None = None,
    days: Mapping[str, str] | None = None,
) -> "Counts":
    """Counts from counts, or from logs by counting them."""
    from prudent.counts import Counts, count, which_are_counts

    engine = _engine(reading)
    files = _files(inputs)
    counted = which_are_counts(files)
    if len(counted) == len(files):
        counts = Counts.read(*files, engine=engine, **(days or {}))
        if to is not None:
            with busy("Adding"):
                counts.write(to)
        return counts
    if counted:
        raise UsageError(f"{counted[0]} holds counts and others do not. Count the logs first, then give counts only.")
    for name in days or {}:
        option = f"--{name.replace('_', '-')}"
        raise UsageError(
            f"{option} is for counts by day. Count each day first: prudent count LOG -o counts/ --day DATE"
        )
    with busy("Counting"):
        return count(_log(inputs, reading, engine), engine, to, max_bad)


def _days(since: str | None, until: str | None, half_life: str | None) -> dict[str, str]:
    """What was said of the days to read."""
    asked = {"since": since, "until": until, "half_life": half_life}
    return {name: value for name, value in asked.items() if value is not None}


def _target(output: str, day: str | None) -> Path:
    """The file for counts: the output, or that of a day in it."""
    from prudent.days import place

    if day is None:
        if output.endswith("/") or Path(output).is_dir():
            raise UsageError(
                f"{output} is a folder. Say of which day these lists are, as in --day 2026-11-15, or name a file."
            )
        return Path(output)
    if Path(output).is_file() or output.endswith(".parquet"):
        raise UsageError(f"--day wants the folder of all days, and {output} is a file. Name another output.")
    return place(output, day)


def _log_alone(inputs: Sequence[str], reading: Reading, engine: "DuckDB", method: str) -> "Log":
    """Logs, where counts would not do."""
    from prudent.counts import which_are_counts

    for file in which_are_counts(_files(inputs)):
        raise UsageError(f"{file} holds counts, which have forgotten whole lists: {method} needs the log itself.")
    return _log(inputs, reading, engine)


def _spark(master: str, conf: Sequence[str] | None) -> "Spark":
    """Spark as the options say."""
    from prudent.engines.spark import Spark

    settings = {}
    for setting in conf or []:
        key, sign, value = setting.partition("=")
        if not (key.strip() and sign):
            raise UsageError(f"--conf {setting}: write a setting as key=value, such as spark.driver.memory=4g.")
        settings[key.strip()] = value.strip()
    with busy("Starting Spark"):
        return Spark.start(master, settings)


def _check_here(output: str, master: str, conf: Sequence[str] | None) -> None:
    """Without Spark, outputs are on this machine and nothing is said of Spark."""
    from prudent.log import has_scheme

    if has_scheme(output):
        raise UsageError(f"{output} is not a path on this machine. Spark writes there: --engine spark.")
    if conf or master != "local[*]":
        raise UsageError("--master and --conf are for Spark: add --engine spark.")


def _check_spark_alone(reading: Reading) -> None:
    """With Spark, nothing is said of DuckDB."""
    if reading.memory is not None or reading.threads is not None:
        raise UsageError(
            "--memory and --threads are for DuckDB. Of Spark: --conf spark.driver.memory=4g, --master local[2]."
        )


def _engine(reading: Reading) -> "DuckDB":
    from prudent.engines.duckdb import DuckDB

    return DuckDB(reading.memory, reading.threads)


def _files(inputs: Sequence[str]) -> list[Path]:
    """The files that are named, each of them once."""
    from prudent.log import find_files

    files = find_files(inputs)
    real = [file.resolve() for file in files]  # the same file may go by several names
    if len(set(real)) < len(real):
        twice = next(file for file, at in zip(files, real, strict=True) if real.count(at) > 1)
        raise UsageError(f"{twice} is named twice, and would be counted twice.")
    return files


def _log(inputs: Sequence[str], reading: Reading, engine: "DuckDB") -> "Log":
    from prudent.log import Log
    from prudent.readers import FORMATS

    settings = {f.name: getattr(reading, f.name) for f in fields(Reading) if f.name not in ("memory", "threads")}
    given = settings.pop("format")
    if given is None:
        return Log(list(inputs), **settings | {"layout": reading.layout.value})
    for f in fields(Reading):
        if f.name in settings and settings[f.name] != f.default:
            raise UsageError(f"--format {given.value} says what every column means: leave out --{f.name}.")
    return FORMATS[given.value](list(inputs), engine=engine)


def _check_output(output: Path, others: Sequence[Path]) -> None:
    """Find out before the long work whether its result will have a place."""
    from prudent.files import check_target

    check_target(output)
    taken = [other.resolve() for other in others]
    if output.resolve() in taken:
        raise UsageError(f"{output} is named twice. Choose another output: nothing is overwritten by its own result.")


_OTHER_FORMATS = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".gz", ".zip", ".xlsx", ".html")


def _check_parquet(output: Path, others: Sequence[Path]) -> None:
    """The same for what is always Parquet, whatever its name says."""
    _check_output(output, others)
    if output.suffix.lower() in _OTHER_FORMATS:
        raise UsageError(f"{output} would hold Parquet. Name it {output.stem}.parquet.")
