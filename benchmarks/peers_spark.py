"""Counting and ranking by Spark on this machine against DuckDB: the same logs, the same counts, the same policy.

A million lists, and ten: what Spark takes to start and to warm up is the same for both, and DuckDB takes less.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.logs import SIZES, contexts, make_log, size
from benchmarks.measuring import Figure, Run, folder, measure, median, report, rounds, say


def start_spark(log: str, target: str) -> None:
    with _spark(target) as engine:
        engine.session.range(10).count()


def count_by_duckdb(log: str, target: str) -> None:
    import prudent

    prudent.count(prudent.Log(log), to=Path(target) / "duckdb.parquet")


def count_to_file(log: str, target: str) -> None:
    """By Spark to one file, as DuckDB does."""
    import prudent

    with _spark(target) as engine:
        prudent.count(prudent.Log(log), engine=engine, to=f"{target}/spark.parquet")


def count_by_spark(log: str, target: str) -> dict[str, int]:
    """As on a cluster: to a folder of part files, with all lists of a context in one task."""
    import prudent

    with _spark(target) as engine:
        prudent.count(prudent.Log(log), engine=engine, to=f"{target}/spark")
    return _shuffled(target)


def rank_by_duckdb(log: str, target: str) -> None:
    import prudent

    prudent.rank(prudent.Counts.read(Path(target) / "spark")).write(Path(target) / "duckdb-policy.parquet")


def rank_by_spark(log: str, target: str) -> dict[str, int]:
    import prudent

    with _spark(target) as engine:
        prudent.rank(f"{target}/spark", engine=engine, to=f"{target}/spark-policy")
    return _shuffled(target)


@contextmanager
def _spark(target: str) -> Iterator[Any]:
    """From the start of its Java machine to its end, which is waited for: its time would not be seen otherwise."""
    import prudent

    events = Path(target) / "events"
    events.mkdir(exist_ok=True)
    for old in events.iterdir():
        old.unlink()
    settings = {
        "spark.driver.memory": "4g",
        "spark.local.dir": target,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file:{events}",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    engine = prudent.Spark.start("local[*]", settings)
    session: Any = engine.session
    gateway = session.sparkContext._gateway
    yield engine
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def _shuffled(target: str) -> dict[str, int]:
    """Bytes and rows that tasks sent to each other, by Spark's own account."""
    total = {"bytes": 0, "rows": 0}
    for file in (Path(target) / "events").iterdir():
        for line in file.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            if event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
                written = event["Task Metrics"]["Shuffle Write Metrics"]
                total["bytes"] += written["Shuffle Bytes Written"]
                total["rows"] += written["Shuffle Records Written"]
    return total


def agree(target: str) -> None:
    import prudent

    place = Path(target)
    counts = prudent.Counts.read(place / "duckdb.parquet")
    if any(counts != prudent.Counts.read(place / name) for name in ("spark.parquet", "spark")):
        raise AssertionError("DuckDB and Spark have counted differently.")
    prudent.Policy.read(place / "spark-policy").write(place / "spark-policy.parquet")
    if (place / "spark-policy.parquet").read_bytes() != (place / "duckdb-policy.parquet").read_bytes():
        raise AssertionError("DuckDB and Spark have ranked differently.")


COUNTING: tuple[Callable[..., Any], ...] = (count_by_duckdb, count_to_file)
WORK = (start_spark, *COUNTING, count_by_spark, rank_by_duckdb, rank_by_spark)


def main() -> None:
    lists = SIZES[size()]
    taken: dict[str, list[Run]] = {work.__name__: [] for work in WORK}
    large: dict[str, list[Run]] = {work.__name__: [] for work in COUNTING}
    sent: dict[str, dict[str, int]] = {}
    with folder() as target:
        log, ten = target / "log.parquet", target / "ten.parquet"
        for file, number in ((log, lists), (ten, 10 * lists)):
            say(f"Making a log of {number:,} lists ...")
            measure(make_log, file, number, contexts(number))
        for number in range(rounds(3)):
            for work in COUNTING:
                say(f"Round {number + 1}, {10 * lists:,} lists: {work.__name__}")
                large[work.__name__].append(measure(work, ten, target)[0])
            for work in WORK:
                say(f"Round {number + 1}: {work.__name__}")
                run, results = measure(work, log, target)
                taken[work.__name__].append(run)
                if results:
                    sent[work.__name__] = results
        measure(agree, target)
    took = {work: median(runs) for work, runs in taken.items()}
    took |= {f"{work}, ten times": median(runs) for work, runs in large.items()}
    report(
        "spark" if size() == "1m" else f"spark-{size()}",
        about={"lists": lists, "rounds": rounds(3)},
        took=took,
        figures=figures(took, sent, lists),
        packages=("pyspark",),
    )


def figures(took: dict[str, Run], sent: dict[str, dict[str, int]], lists: int) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    duckdb, spark = took["count_by_duckdb"], took["count_to_file"]
    duckdb_ten, spark_ten = took["count_by_duckdb, ten times"], took["count_to_file, ten times"]
    found["start of Spark / counting by DuckDB, CPU"] = Figure(took["start_spark"].cpu / duckdb.cpu)
    found["count to a file: Spark / DuckDB, CPU"] = Figure(spark.cpu / duckdb.cpu, at_most=5.0)
    found["count to a file, ten times the lists: Spark / DuckDB, CPU"] = Figure(
        spark_ten.cpu / duckdb_ten.cpu, at_most=5.0
    )
    for verb in ("count", "rank"):
        one, other = took[f"{verb}_by_spark"], took[f"{verb}_by_duckdb"]
        for key, name in (("cpu", "CPU"), ("wall", "wall"), ("peak", "peak memory")):
            found[f"{verb}: Spark / DuckDB, {name}"] = Figure(getattr(one, key) / getattr(other, key))
        for key in ("bytes", "rows"):
            found[f"{verb}: {key} shuffled per list"] = Figure(sent[f"{verb}_by_spark"][key] / lists)
    return found
