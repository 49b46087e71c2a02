"""What commands share: the application, options that several of them have, and inputs and outputs as these say."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prudent.base.errors import UsageError
from prudent.cli.terminal import busy

if TYPE_CHECKING:
    from prudent.counts.counts import Counts
    from prudent.engines.duckdb.engine import DuckDB
    from prudent.logs.log import Log

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


class By(StrEnum):
    """What decides which lists are held out."""

    hash = "hash"
    time = "time"


class Format(StrEnum):
    """The formats of `prudent.logs.readers`."""

    ubi = "ubi"
    yandex = "yandex"
    yandex_personalized = "yandex-personalized"


def option(*names: str, panel: str | None = None, **settings: Any) -> Any:
    """An option, in a panel of the help."""
    return typer.Option(*names, rich_help_panel=panel, **settings)


def fraction(written: str) -> float:
    """A number as it is written; who writes 5% is told that it is 0.05."""
    try:
        return float(written)
    except ValueError:
        meant = written.rstrip("% ")
        try:
            example = f"{float(meant) / 100:g}" if meant != written else "0.05"
        except ValueError:
            example = "0.05"
        raise typer.BadParameter(f"{written!r} is not a number. Write a fraction, such as {example}.") from None


Inputs = Annotated[
    list[str], typer.Argument(metavar="INPUT", help="Click logs (Parquet, JSON Lines, CSV; globs), or counts.")
]
Output = Annotated[Path, option("--output", "-o", help="File to write.")]
LayoutOption = Annotated[Layout, option("--layout", panel="Log", help="One row per shown list, or per shown item.")]
MaxRejected = Annotated[
    float, option("--max-rejected", panel="Log", min=0, max=1, help="Share of bad lists to put up with.")
]
Memory = Annotated[str | None, option("--memory", panel="Engine", help="Cap of DuckDB, such as 1GB; the rest spills.")]
Threads = Annotated[int | None, option("--threads", panel="Engine", min=1, max=1024, help="Threads of DuckDB.")]
EngineOption = Annotated[
    EngineName, option("--engine", panel="Engine", help="Where to work: on this machine, or on Spark.")
]
Master = Annotated[str, option("--master", panel="Engine", help="Spark's master: local[2], spark://..., yarn.")]
Conf = Annotated[
    list[str] | None, option("--conf", panel="Engine", metavar="KEY=VALUE", help="A setting of Spark; repeatable.")
]
Since = Annotated[
    str | None,
    option(
        "--since",
        panel="Days",
        help="Of a folder of days, the first to read: a date, or an age such as 30d, in days before the newest.",
    ),
]
Until = Annotated[str | None, option("--until", panel="Days", help="The last day to read.")]
HalfLife = Annotated[
    str | None,
    option(
        "--half-life",
        panel="Days",
        help="Such as 14d: a list counts half as much as one so much younger. The newest day that is read counts in "
        "full, whatever today is.",
    ),
]
Holdout = Annotated[float, option("--holdout", parser=fraction, help="Share of the lists to hold out.")]
ByOption = Annotated[By, option("--by", help="Hold out random lists, by a hash of what they are, or the latest.")]
Time = Annotated[str | None, option("--time", help="Column of the time, for --by time.")]
MODEL, BOUND = "auto", "exposure(delta=0.5)"  # what `rank` takes when nothing is said
Json = Annotated[bool, option("--json", help="Print the result as JSON.")]


@dataclass(frozen=True)
class Reading:
    """Where lists and clicks are in a log, and what the engine may use: options of every command that reads logs."""

    format: Annotated[
        Format | None, option("--format", panel="Log", help="A format that says itself what its columns mean.")
    ] = None
    layout: LayoutOption = Layout.lists
    context: Annotated[str, option("--context", panel="Log", help="Column of the context.")] = "context"
    items: Annotated[str, option("--items", panel="Log", help="Column of the shown items (layout lists).")] = "items"
    clicks: Annotated[str, option("--clicks", panel="Log", help="Column of the 0/1 clicks (layout lists).")] = "clicks"
    impression: Annotated[str, option("--impression", panel="Log", help="Column of the list's id (layout rows).")] = (
        "impression"
    )
    item: Annotated[str, option("--item", panel="Log", help="Column of the item (layout rows).")] = "item"
    position: Annotated[str, option("--position", panel="Log", help="Column of the position, from 1 (rows).")] = (
        "position"
    )
    click: Annotated[str, option("--click", panel="Log", help="Column of the 0/1 click (layout rows).")] = "click"
    click_action: Annotated[
        list[str] | None, option("--click-action", panel="Log", help="Action that is a click (ubi); repeatable.")
    ] = None
    impression_action: Annotated[
        list[str] | None, option("--impression-action", panel="Log", help="Action that shows an item (ubi).")
    ] = None
    memory: Memory = None
    threads: Threads = None


def reads_logs(command: Callable[..., None]) -> Callable[..., None]:
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


def columns_of(reading: Reading) -> list[str]:
    """What has to be said again of a log's columns to the next command that reads it."""
    said: list[str] = []
    for f in fields(Reading):
        given = getattr(reading, f.name)
        if given != f.default and f.name not in ("memory", "threads"):
            for one in given if isinstance(given, list) else [given]:
                said += [f"--{f.name.replace('_', '-')}", str(one)]
    return said


# --- inputs and outputs -----------------------------------------------------------------------------------------------


def counts_of(
    inputs: Sequence[str],
    reading: Reading,
    max_rejected: float,
    to: Path | None = None,
    days: Mapping[str, str] | None = None,
) -> "Counts":
    """Counts from counts, or from logs by counting them."""
    return log_and_counts(inputs, reading, max_rejected, to, days)[1]


def log_and_counts(
    inputs: Sequence[str],
    reading: Reading,
    max_rejected: float,
    to: Path | None = None,
    days: Mapping[str, str] | None = None,
) -> "tuple[Log | None, Counts]":
    """The same with the log that was counted; None where the inputs are counts."""
    from prudent.counts.counts import Counts, count, which_are_counts

    engine = engine_of(reading)
    files = files_of(inputs)
    counted = which_are_counts(files)
    if len(counted) == len(files):
        counts = Counts.read(*files, engine=engine, **(days or {}))
        if to is not None:
            with busy("Adding"):
                counts.write(to)
        return None, counts
    if counted:
        raise UsageError(f"{counted[0]} holds counts and others do not. Count the logs first, then give counts only.")
    for name in days or {}:
        option = f"--{name.replace('_', '-')}"
        raise UsageError(
            f"{option} is for counts by day. Count each day first: prudent count LOG -o counts/ --day DATE"
        )
    with busy("Counting"):
        log = open_log(inputs, reading, engine)
        return log, count(log, engine, to, max_rejected)


def days_of(since: str | None, until: str | None, half_life: str | None) -> dict[str, str]:
    """What was said of the days to read."""
    asked = {"since": since, "until": until, "half_life": half_life}
    return {name: value for name, value in asked.items() if value is not None}


def open_log_alone(inputs: Sequence[str], reading: Reading, engine: "DuckDB", who: str) -> "Log":
    """Logs, where counts would not do."""
    from prudent.counts.counts import which_are_counts

    for file in which_are_counts(files_of(inputs)):
        raise UsageError(f"{file} holds counts, which have forgotten whole lists: {who} needs the log itself.")
    return open_log(inputs, reading, engine)


def engine_of(reading: Reading) -> "DuckDB":
    """DuckDB as the options say."""
    from prudent.engines.duckdb.engine import DuckDB

    return DuckDB(reading.memory, reading.threads)


def files_of(inputs: Sequence[str]) -> list[Path]:
    """The files that are named, each of them once."""
    from prudent.logs.formats import find_files

    files = find_files(inputs)
    real = [file.resolve() for file in files]  # the same file may go by several names
    if len(set(real)) < len(real):
        twice = next(file for file, at in zip(files, real, strict=True) if real.count(at) > 1)
        raise UsageError(f"{twice} is named twice, and would be counted twice.")
    return files


def open_log(inputs: Sequence[str], reading: Reading, engine: "DuckDB") -> "Log":
    """The log as the options say; nothing is read yet."""
    from prudent.logs.log import as_log

    settings = {f.name: getattr(reading, f.name) for f in fields(Reading) if f.name not in ("memory", "threads")}
    settings = {name: str(s) if isinstance(s, StrEnum) else s for name, s in settings.items() if s != DEFAULTS[name]}
    return as_log(list(inputs), engine=engine, **settings)


DEFAULTS = {f.name: f.default for f in fields(Reading)}


def check_output(output: Path, others: Sequence[Path]) -> None:
    """Find out before the long work whether its result will have a place."""
    from prudent.storage.files import check_target, manifest_path

    check_target(output)
    taken = {other.resolve() for other in others}
    if output.resolve() in taken | {manifest_path(other) for other in taken}:
        raise UsageError(f"{output} is named twice. Choose another output: nothing is overwritten by its own result.")


_OTHER_FORMATS = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".gz", ".zip", ".xlsx", ".html")


def check_parquet(output: Path, others: Sequence[Path]) -> None:
    """The same for what is always Parquet, whatever its name says."""
    check_output(output, others)
    if output.suffix.lower() in _OTHER_FORMATS:
        raise UsageError(f"{output} would hold Parquet. Name it {output.stem}.parquet.")
