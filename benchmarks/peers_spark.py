"""Counting and ranking by Spark on this machine against DuckDB: the same log, the same counts, the same policy."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.logs import SIZES, contexts, make_log, size
from benchmarks.measuring import Figure, Run, folder, measure, median, report, rounds, say


def count_by_duckdb(log: str, target: str) -> None:
    import prudent

    prudent.count(prudent.Log(log), to=Path(target) / "duckdb.parquet")


def count_by_spark(log: str, target: str) -> dict[str, int]:
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
    if prudent.Counts.read(place / "duckdb.parquet") != prudent.Counts.read(place / "spark"):
        raise AssertionError("DuckDB and Spark have counted differently.")
    prudent.Policy.read(place / "spark-policy").write(place / "spark-policy.parquet")
    if (place / "spark-policy.parquet").read_bytes() != (place / "duckdb-policy.parquet").read_bytes():
        raise AssertionError("DuckDB and Spark have ranked differently.")


WORK = (count_by_duckdb, count_by_spark, rank_by_duckdb, rank_by_spark)


def main() -> None:
    taken: dict[str, list[Run]] = {work.__name__: [] for work in WORK}
    sent: dict[str, dict[str, int]] = {}
    with folder() as target:
        log = target / "log.parquet"
        say(f"Making a log of {SIZES[size()]:,} lists ...")
        measure(make_log, log, SIZES[size()], contexts(SIZES[size()]))
        for number in range(rounds(3)):
            say(f"Round {number + 1} ...")
            for work in WORK:
                run, results = measure(work, log, target)
                taken[work.__name__].append(run)
                if results:
                    sent[work.__name__] = results
        measure(agree, target)
    took = {work: median(runs) for work, runs in taken.items()}
    lists = SIZES[size()]
    figures = {}
    for verb in ("count", "rank"):
        one, other = took[f"{verb}_by_spark"], took[f"{verb}_by_duckdb"]
        for key, name in (("cpu", "CPU"), ("wall", "wall"), ("peak", "peak memory")):
            figures[f"{verb}: Spark / DuckDB, {name}"] = Figure(getattr(one, key) / getattr(other, key))
        figures[f"{verb}: bytes shuffled per list"] = Figure(sent[f"{verb}_by_spark"]["bytes"] / lists)
        figures[f"{verb}: rows shuffled per list"] = Figure(sent[f"{verb}_by_spark"]["rows"] / lists)
    report(
        "spark" if size() == "1m" else f"spark-{size()}",
        about={"lists": lists, "rounds": rounds(3)},
        took=took,
        figures=figures,
        packages=("pyspark",),
    )
