"""Measure what the documentation claims: ``make bench``, or ``make bench SIZE=10m``.

Every figure is a ratio of CPU times within one run, because seconds depend on the machine and on who else uses it.
Each side of a ratio runs in a process of its own, several times in turn, and the median counts. The log is simulated:
100,000 contexts of 40 to 60 items each, named by text, lists of 10, clicks of a position-based model.
"""

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SIZES = {"100k": 100_000, "1m": 1_000_000, "10m": 10_000_000}
MEMORY = "1GB"

BARE_LISTS = """
    with clicked as (
        select context, items, clicks, list_filter(range(1, len(items) + 1), lambda i: clicks[i] = 1) as clicked
        from read_parquet('{log}')
    ),
    exploded as (
        select context, unnest(items) as item, unnest(range(1, len(items) + 1))::integer as position,
            unnest(clicks) as click, clicked, coalesce(clicked[-1], 0) as last
        from clicked
    ),
    impressions as (
        select context, item, position,
            coalesce(list_filter(clicked, lambda c: c < position)[-1], 0)::integer as prev,
            click = 1 as click, last > position as more
        from exploded
    )
"""


@dataclass(frozen=True)
class Run:
    """What one process took."""

    cpu: float  # seconds, both cores together
    wall: float
    peak: float  # resident memory in GB


# --- the work, each in its own process -----------------------------------------------------------------------------


def make_log(log: Path, folder: Path) -> None:
    import numpy as np

    from prudent.simulate import make_world, write_log

    world = make_world("pbm", contexts=100_000, items=(40, 60), zipf=0.5, exploration=3.0, seed=1)
    named = replace(
        world,
        contexts=np.array([f"query {c}" for c in world.contexts], dtype=object),
        items=np.array([f"item-{i}" for i in world.items], dtype=object),
    )
    write_log(named, SIZES[_size()], log, seed=1)


def make_texts(log: Path, folder: Path) -> None:
    """The same lists in the format yandex, one session each, and labels in lines as long as those of MSLR."""
    import duckdb

    duckdb.connect().execute(f"""
        copy (
            with pages as (
                select row_number() over () as session, replace(context, 'query ', '') as query, clicks,
                    list_transform(items, lambda item: replace(item, 'item-', '')) as urls
                from read_parquet('{log}')
            )
            select unnest(
                [concat_ws('\t', session, 0, 'Q', query, 0, array_to_string(urls, '\t'))] ||
                list_transform(
                    list_filter(range(1, len(urls) + 1), lambda i: clicks[i] = 1),
                    lambda i: concat_ws('\t', session, i, 'C', urls[i])
                )
            )
            from pages
        ) to '{folder / "yandex.tsv"}' (format csv, header false, delimiter '\x01', quote '', escape '')
    """)
    features = " ".join(f"{number}:{number / 7:.6f}" for number in range(1, 137))
    with (folder / "labels.txt").open("w") as file:
        file.writelines(f"{document % 5} qid:{document // 120} {features}\n" for document in range(200_000))


def scan(log: Path, folder: Path) -> None:
    """Read the same three columns and nothing else: no count can be cheaper."""
    import duckdb

    connection = duckdb.connect(config={"memory_limit": MEMORY})
    connection.execute(
        f"select count(context), sum(len(items)), sum(len(clicks)) from read_parquet('{log}')"
    ).fetchall()


def bare(log: Path, folder: Path) -> None:
    """The histogram query alone: no checks, no reasons, no manifest; the same Parquet file at the end."""
    import duckdb

    from prudent.counts import QUERY

    connection = duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": str(folder)})
    connection.execute("set preserve_insertion_order = false")
    connection.execute(
        f"copy ({BARE_LISTS.format(log=log)} {QUERY}) to '{folder / 'bare.parquet'}' (format parquet, compression zstd)"
    )


def count(log: Path, folder: Path) -> None:
    import prudent

    prudent.count(prudent.Log(log), engine=prudent.DuckDB(memory=MEMORY), to=folder / "counts.parquet")


def read_yandex(log: Path, folder: Path) -> None:
    """What comes before counting where the log is text in the format yandex."""
    import prudent

    prudent.readers.read_yandex(folder / "yandex.tsv", engine=prudent.DuckDB(memory=MEMORY))


def read_labels(log: Path, folder: Path) -> None:
    """Print megabytes per CPU second of the reading alone, without the start of Python."""
    import prudent

    file, started = folder / "labels.txt", time.process_time()
    prudent.readers.read_labels(file)
    print(file.stat().st_size / 1e6 / (time.process_time() - started))


def rank(log: Path, folder: Path) -> None:
    """Everything after the counts, with the defaults: evidence, bound, lists, writing."""
    import prudent

    prudent.rank(prudent.Counts.read(folder / "counts.parquet")).write(folder / "policy.parquet")


def rank_dcm(log: Path, folder: Path) -> None:
    import prudent

    prudent.rank(prudent.Counts.read(folder / "counts.parquet"), model="dcm").write(folder / "policy.parquet")


def empirical_bayes(log: Path, folder: Path) -> None:
    """Print the CPU seconds of the fit of the prior alone, which is a part of a process."""
    import prudent
    from prudent.bounds.empirical_bayes import EmpiricalBayes, grid_likelihood

    evidence = prudent.click_models.parse("auto").evidence(prudent.Counts.read(folder / "counts.parquet"))
    started = time.process_time()
    grid_likelihood(evidence.positive, evidence.negative, EmpiricalBayes().grid)
    print(time.process_time() - started)


def experiments(log: Path, folder: Path) -> None:
    """Print the CPU seconds of one repetition of Fig. 2, for each click model: ours, and two of plain loops.

    The plain loops go through lists and items one by one, count once for all methods, fit each prior once for all δ,
    and ask scipy for one quantile at a time: of `scipy.special`, and of `scipy.stats`, which most people would. They
    draw the same logs and find the same errors, or this fails.
    """
    import numpy as np
    from scipy.stats import beta

    sys.path.insert(0, str(Path(__file__).parent.parent))
    from prudent.experiments.bench import KINDS, Bench
    from prudent.experiments.laboratory import Laboratory
    from tests.experiments import plain

    def quantile_by_stats(a: float, b: float, probability: float) -> float:
        return float(beta.ppf(probability, a, b))

    bench = Bench(Laboratory())
    took: dict[str, list[float]] = {}
    for kind in KINDS:
        data, source = bench.queries(kind, "production")
        protocol = bench.sweep(data, "production", source, kind)
        protocol.errors(1, 0)  # loads what is loaded on first use
        started = time.process_time()
        found = [protocol.errors(0, repetition)[0] for repetition in range(10)]
        took[kind] = [(time.process_time() - started) / 10]
        for quantile in (plain.quantile_by_special, quantile_by_stats):
            started = time.process_time()
            truth, lists = plain.draw_yandex_like(kind, 1_000, np.random.default_rng(protocol.seed(0, 0)))
            errors = plain.errors(truth, lists, protocol.deltas, best=plain.best_by_sorting, quantile=quantile)
            took[kind].append(time.process_time() - started)
            np.testing.assert_allclose(errors, found[0], atol=1e-9)
    print(json.dumps(took))


def show_help(log: Path, folder: Path) -> None:
    subprocess.run([Path(sys.executable).with_name("prudent"), "--help"], check=True, stdout=subprocess.DEVNULL)


MEASURED = (scan, bare, count, rank, rank_dcm, empirical_bayes, read_yandex, read_labels, experiments, show_help)
NOT_LONG = (rank_dcm, empirical_bayes, read_yandex, read_labels, experiments)
ONE_THREAD = {"experiments": {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}}  # more of them spin while they wait
WORK: dict[str, Callable[[Path, Path], None]] = {work.__name__: work for work in (make_log, make_texts, *MEASURED)}


# --- measuring -------------------------------------------------------------------------------------------------------


def measure(name: str, log: Path, folder: Path) -> tuple[Run, str]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, __file__, "--work", name, str(log), str(folder)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **ONE_THREAD.get(name, {})},
    )
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = json.loads(done.stdout.splitlines()[-1])["peak"]
    return Run(cpu, wall, peak), done.stdout


def median(runs: list[Run]) -> Run:
    return Run(*(statistics.median(getattr(run, field) for run in runs) for field in ("cpu", "wall", "peak")))


def _size() -> str:
    size = os.environ.get("SIZE", "1m").lower()
    if size not in SIZES:
        sys.exit(f"SIZE is {size}; choose one of {', '.join(SIZES)}.")
    return size


def main() -> None:
    size = _size()
    rounds = 1 if size == "10m" else 5
    measured = [work for work in MEASURED if size != "10m" or work not in NOT_LONG]
    with tempfile.TemporaryDirectory(prefix="prudent-bench-", dir=os.environ.get("BENCH_DIR")) as name:
        folder = Path(name)
        log = folder / "log.parquet"
        print(f"Making a log of {size} lists ...", flush=True)
        measure("make_log", log, folder)  # in a process of its own: its memory would show in all that follow
        if read_yandex in measured:
            measure("make_texts", log, folder)
        runs: dict[str, list[Run]] = {work.__name__: [] for work in measured}
        printed_by: dict[str, list[Any]] = {"empirical_bayes": [], "read_labels": [], "experiments": []}
        for number in range(rounds):
            print(f"Round {number + 1} of {rounds} ...", flush=True)
            for work in runs:
                run, printed = measure(work, log, folder)
                runs[work].append(run)
                if work in printed_by:
                    printed_by[work].append(json.loads(printed.splitlines()[0]))
        import prudent

        connection = prudent.Counts.read(folder / "counts.parquet").connection
        pairs, contexts = (
            int(connection.execute(f"select count(*) from {table}").fetchall()[0][0]) for table in ("pairs", "contexts")
        )
        bytes_in, bytes_out = log.stat().st_size, (folder / "counts.parquet").stat().st_size
    report(size, {work: median(taken) for work, taken in runs.items()}, printed_by, pairs, contexts)
    print(f"The log has {bytes_in / 1e6:.0f} MB, its counts {bytes_out / 1e6:.0f} MB.")


def report(size: str, took: dict[str, Run], printed: dict[str, list[Any]], pairs: int, contexts: int) -> None:
    figures: dict[str, tuple[float, float | None]] = {  # an aim is a limit from above, and from below if negative
        "counting / bare histogram query, CPU": (took["count"].cpu / took["bare"].cpu, 1.3),
        "counting / bare scan, CPU": (took["count"].cpu / took["scan"].cpu, None),
        f"peak memory of counting under {MEMORY}, GB": (took["count"].peak, 1.3),
        "everything after the counts / counting, CPU": (took["rank"].cpu / took["count"].cpu, 1.0),
        "prudent --help, CPU seconds": (took["show_help"].cpu, 0.5),
    }
    if "rank_dcm" in took:
        prior, speed = (statistics.median(printed[work]) for work in ("empirical_bayes", "read_labels"))
        figures["the same with model=dcm / counting, CPU"] = (took["rank_dcm"].cpu / took["count"].cpu, None)
        figures["fitting the prior of eb / counting, CPU"] = (prior / took["count"].cpu, 0.05)
        figures["reading yandex text / counting, CPU"] = (took["read_yandex"].cpu / took["count"].cpu, None)
        figures["reading 100 MB of labels, CPU seconds"] = (100 / speed, 1.0)
    if "experiments" in took:
        figures |= compare_experiments(printed["experiments"])
    print(f"\n{size} lists of 10, {contexts:,} contexts, {pairs:,} context-item pairs\n")
    print(f"{'work':22}{'CPU s':>8}{'wall s':>8}{'peak GB':>9}")
    for work, run in took.items():
        print(f"{work:22}{run.cpu:8.2f}{run.wall:8.2f}{run.peak:9.2f}")
    print(f"\n{'figure':48}{'is':>8}{'aim':>8}")
    for name, (value, aim) in figures.items():
        limit = "" if aim is None else f"<= {aim:g}" if aim > 0 else f">= {-aim:g}"
        print(f"{name:48}{value:8.3f}{limit:>8}")
    print()
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    content = {
        "date": now.isoformat(timespec="seconds"),
        "size": size,
        "contexts": contexts,
        "pairs": pairs,
        "machine": {"cores": os.cpu_count(), "processor": platform.machine(), "python": platform.python_version()},
        "versions": versions(),
        "took": {work: run.__dict__ for work, run in took.items()},
        "figures": {name: {"value": value, "aim": aim} for name, (value, aim) in figures.items()},
    }
    target = results / f"{now:%Y-%m-%d}-{size}.json"
    target.write_text(json.dumps(content, indent=2) + "\n")
    print(f"Written to {target.relative_to(Path.cwd()) if target.is_relative_to(Path.cwd()) else target}")


def compare_experiments(rounds: list[dict[str, list[float]]]) -> dict[str, tuple[float, float | None]]:
    """How many times longer plain loops take; all three click models together, and each."""
    seconds = {
        kind: [statistics.median(of) for of in zip(*(one[kind] for one in rounds), strict=True)] for kind in rounds[0]
    }
    ours, special, stats = (sum(column) for column in zip(*seconds.values(), strict=True))
    each = {
        f"plain loops with scipy.{name} / ours, {kind}": (of[number] / of[0], None)
        for number, name in ((1, "special"), (2, "stats"))
        for kind, of in seconds.items()
    }
    return {
        "plain loops with scipy.stats / ours, Fig. 2": (stats / ours, -50.0),
        "plain loops with scipy.special / ours, Fig. 2": (special / ours, None),
        **each,
    }


def versions() -> dict[str, str]:
    from importlib.metadata import version

    return {package: version(package) for package in ("prudent", "duckdb", "numpy", "scipy")}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        WORK[sys.argv[2]](Path(sys.argv[3]), Path(sys.argv[4]))
        own, children = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        print(json.dumps({"peak": max(own, children) / 1e6}))
    else:
        main()
