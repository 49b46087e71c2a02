"""`prudent rank`, `count` and `check`: from logs to counts to lists."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prudent.base.errors import UsageError
from prudent.cli.shared import (
    BOUND,
    MODEL,
    Conf,
    EngineName,
    EngineOption,
    HalfLife,
    Inputs,
    Json,
    Master,
    MaxRejected,
    Reading,
    Since,
    Until,
    app,
    check_parquet,
    columns_of,
    counts_of,
    days_of,
    engine_of,
    files_of,
    log_and_counts,
    open_log,
    open_log_alone,
    option,
    reads_logs,
)
from prudent.cli.show_ranking import show_changes, show_counted, show_health, show_manifest, show_outputs
from prudent.cli.terminal import busy, print_json, say_next, tell

if TYPE_CHECKING:
    from prudent.engines.spark.engine import Spark
    from prudent.storage.manifest import Manifest


@app.command("rank", rich_help_panel="Rank")
@reads_logs
def rank_command(
    reading: Reading,
    inputs: Inputs,
    output: Annotated[str, option("--output", "-o", help="File to write; with --engine spark, a folder.")],
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
    max_rejected: MaxRejected = 0.01,
    as_json: Json = False,
) -> None:
    """Find the best list of every context, from logs or from counts."""
    from prudent import bounds, click_models
    from prudent.click_models.compare import choose
    from prudent.logs.formats import find_files
    from prudent.policies import baselines
    from prudent.policies.baselines.rank_by import rank_by
    from prudent.policies.rank import rank

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
            **days_of(since, until, half_life),
        )
        return
    _check_here(output, master, conf)
    target = Path(output)
    files = find_files(inputs) + ([Path(candidates)] if candidates is not None else [])
    check_parquet(target, files)
    if scores is not None:
        check_parquet(scores, [*files, target])
    if rival is None:
        log, counts = log_and_counts(inputs, reading, max_rejected, days=days_of(since, until, half_life))
        compared = None
        if log is not None and isinstance(model_, click_models.Auto):
            with busy("Comparing models"):
                model_, compared = choose(log, counts, engine_of(reading))
        with busy("Ranking"):
            policy = rank(counts, model_, bound_, length, candidates, min_lists)
            if compared is not None:
                made = policy.manifest
                settings = {**made.settings, "asked_model": compared["asked_model"]}
                results = {**made.results, "comparison": compared["comparison"]}
                policy = replace(policy, manifest=replace(made, settings=settings, results=results))
            policy.write(target, scores)
    else:
        log = open_log_alone(inputs, reading, engine_of(reading), str(rival))
        with busy("Ranking"):
            policy = rank_by(log, rival, length, min_lists, engine_of(reading), max_rejected)
            policy.write(target, scores)
    if as_json:
        print_json(policy.manifest.to_json())
    else:
        show_manifest(policy.manifest)
        show_changes(policy)
        show_outputs(output, scores)
        _next_after_rank(output, files_of(inputs), reading)


def _next_after_rank(policy: str, learned_from: Sequence[Path], reading: Reading) -> None:
    """Judge the policy: by what `prudent split` held out, where that lies beside what it has learned from."""
    beside = learned_from[0].with_name("holdout.parquet")
    if [file.name for file in learned_from] == ["train.parquet"] and beside.is_file():
        say_next("prudent", "evaluate", policy, "--log", beside, *columns_of(reading))
    else:
        say_next("prudent", "evaluate", policy, "--log", "HELD_OUT", *columns_of(reading))
        tell(
            "HELD_OUT is a log that it has not learned from: of another day, or what prudent split held out of a log "
            "before the rest was ranked."
        )


def _rank_on_spark(inputs: Sequence[str], output: str, spark: "Spark", as_json: bool, **settings: Any) -> None:
    from prudent.policies.on_spark import rank_on_spark

    with busy("Ranking on Spark"):
        manifest = rank_on_spark(inputs, output, spark, **settings)
    if as_json:
        print_json(manifest.to_json())
    else:
        show_manifest(manifest)
        show_outputs(output, None)


@app.command("count", rich_help_panel="Rank")
@reads_logs
def count_command(
    reading: Reading,
    inputs: Inputs,
    output: Annotated[str, option("--output", "-o", help="File to write; with --day, the folder of all days.")],
    day: Annotated[
        str | None,
        typer.Option(help="The day these lists are from, such as 2026-11-15: its folder in OUTPUT is replaced."),
    ] = None,
    engine: EngineOption = EngineName.duckdb,
    master: Master = "local[*]",
    conf: Conf = None,
    max_rejected: MaxRejected = 0.01,
    as_json: Json = False,
) -> None:
    """Count logs once; the counts of several days add up in [bold]prudent rank[/bold].

    With --engine spark, an output with a scheme (hdfs://, s3a://, file:) becomes a folder of Parquet files; a plain path becomes one file on this machine.
    """  # noqa: E501 (a line break here would be one in a terminal)
    from prudent.logs.formats import find_files, has_scheme

    place = output if has_scheme(output) else str(_target(output, day))
    _check_outside(place, inputs)
    if engine == EngineName.spark:
        _check_spark_alone(reading)
        manifest = _count_on_spark(inputs, place, reading, _spark(master, conf), max_rejected, day)
    else:
        _check_here(output, master, conf)
        check_parquet(Path(place), find_files(inputs))
        manifest = counts_of(inputs, reading, max_rejected, to=Path(place)).manifest
    if as_json:
        print_json(manifest.to_json())
        return
    show_counted(manifest, place)
    onward = ["--engine", "spark"] if has_scheme(output) else []
    say_next("prudent", "rank", output, "-o", "policy.parquet", *onward)


def _check_outside(output: str, inputs: Sequence[str]) -> None:
    """What is written into a folder that is read would be read with it the next time."""
    for name in dict.fromkeys(inputs):
        if inputs.count(name) > 1:
            raise UsageError(f"{name} is named twice, and would be counted twice.")
        if Path(name).is_dir() and Path(name).resolve() in Path(output).resolve().parents:
            raise UsageError(f"{output} lies in {name}, which is read here. Choose an output elsewhere.")


def _count_on_spark(
    inputs: Sequence[str], output: str, reading: Reading, spark: "Spark", max_rejected: float, day: str | None
) -> "Manifest":
    from prudent.counts.counts import count
    from prudent.logs.formats import has_scheme
    from prudent.policies.on_spark import count_on_spark

    log = open_log(inputs, reading, engine_of(reading))
    with busy("Counting on Spark"):
        if has_scheme(output):
            return count_on_spark(log, output, spark, max_rejected, day)
        check_parquet(Path(output), [])  # `count` looks whether it is one of the inputs
        return count(log, spark, output, max_rejected).manifest


@app.command("check", rich_help_panel="Rank")
@reads_logs
def check_command(
    reading: Reading,
    inputs: Inputs,
    since: Since = None,
    until: Until = None,
    half_life: HalfLife = None,
    as_json: Json = False,
) -> None:
    """Say what is in a log, what is wrong with it, and what it can support."""
    from prudent.click_models.check import check

    counts = counts_of(inputs, reading, max_rejected=1.0, days=days_of(since, until, half_life))
    with busy("Looking"):
        health = check(counts)
    if as_json:
        print_json({**asdict(health), "verdicts": health.verdicts()})
    else:
        show_health(health)


def _target(output: str, day: str | None) -> Path:
    """The file for counts: the output, or that of a day in it."""
    from prudent.counts.days import place

    if day is None:
        if output.endswith("/") or Path(output).is_dir():
            raise UsageError(
                f"{output} is a folder. Say of which day these lists are, as in --day 2026-11-15, or name a file."
            )
        return Path(output)
    if Path(output).is_file() or output.endswith(".parquet"):
        raise UsageError(f"--day wants the folder of all days, and {output} is a file. Name another output.")
    return place(output, day)


def _spark(master: str, conf: Sequence[str] | None) -> "Spark":
    """Spark as the options say."""
    from prudent.engines.spark.engine import Spark

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
    from prudent.logs.formats import has_scheme

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
