"""Cost of counting and ranking, relative to a bare scan, to the bare query and to each other."""

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.logs import SIZES, contexts, make_log, megabytes, size
from benchmarks.measuring import Figure, Run, folder, measure, median, report, rounds, say

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
    select context, item, position, prev, click, more, count(*) as n from impressions group by all
"""


# --- the work, each in its own process -----------------------------------------------------------------------------


def scan(log: str, target: str) -> None:
    """Read the same three columns: the lower limit of counting."""
    import duckdb

    connection = duckdb.connect(config={"memory_limit": MEMORY})
    connection.execute(
        f"select count(context), sum(len(items)), sum(len(clicks)) from read_parquet('{log}')"
    ).fetchall()


def bare(log: str, target: str) -> None:
    """The histogram query alone: no checks, no reasons, no manifest; the same Parquet file at the end."""
    import duckdb

    connection = duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": target})
    connection.execute("set preserve_insertion_order = false")
    connection.execute(
        f"copy ({BARE_LISTS.format(log=log)}) to '{target}/bare.parquet' (format parquet, compression zstd)"
    )


def count(log: str, target: str) -> None:
    import prudent

    prudent.count(prudent.Log(log), engine=prudent.DuckDB(memory=MEMORY), to=Path(target) / "counts.parquet")


def rank(log: str, target: str) -> None:
    """Everything after the counts, with the defaults: evidence, bound, lists, writing."""
    import prudent

    prudent.rank(prudent.Counts.read(Path(target) / "counts.parquet")).write(Path(target) / "policy.parquet")


def rank_dcm(log: str, target: str) -> None:
    import prudent

    counts = prudent.Counts.read(Path(target) / "counts.parquet")
    prudent.rank(counts, model="dcm").write(Path(target) / "policy.parquet")


def empirical_bayes(log: str, target: str) -> float:
    """CPU seconds of the fit of the prior alone, which is a part of a process."""
    import prudent
    from prudent.bounds.empirical_bayes import EmpiricalBayes, grid_likelihood

    evidence = prudent.click_models.parse("auto").evidence(prudent.Counts.read(Path(target) / "counts.parquet"))
    started = time.process_time()
    grid_likelihood(evidence.positive, evidence.negative, EmpiricalBayes().grid)
    return time.process_time() - started


def read_yandex(log: str, target: str) -> None:
    """What comes before counting where the log is text in the format yandex."""
    import prudent

    prudent.readers.read_yandex(Path(target) / "yandex.tsv", engine=prudent.DuckDB(memory=MEMORY))


def read_labels(log: str, target: str) -> float:
    """CPU seconds that 100 MB of labels take, without the start of Python."""
    from prudent.research.labels import read_labels

    file, started = Path(target) / "labels.txt", time.process_time()
    read_labels(file)
    return 100 * (time.process_time() - started) / megabytes(file)


def show_help(log: str, target: str) -> None:
    subprocess.run([Path(sys.executable).with_name("prudent"), "--help"], check=True, stdout=subprocess.DEVNULL)


MEASURED = (scan, bare, count, rank, rank_dcm, empirical_bayes, read_yandex, read_labels, show_help)


def make_texts(log: str, target: str) -> None:
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
        ) to '{target}/yandex.tsv' (format csv, header false, delimiter '\x01', quote '', escape '')
    """)
    features = " ".join(f"{number}:{number / 7:.6f}" for number in range(1, 137))
    with (Path(target) / "labels.txt").open("w") as file:
        file.writelines(f"{document % 5} qid:{document // 120} {features}\n" for document in range(200_000))


def shape(counts: str) -> dict[str, int]:
    """How many cells (one row each in `Counts.sql`), pairs and contexts counts have."""
    import duckdb

    totals = duckdb.execute(
        f"select sum(len(code)), sum(len(items)), count(*) from read_parquet('{counts}')"
    ).fetchall()
    return dict(zip(("rows", "pairs", "contexts"), totals[0], strict=True))


# --- together --------------------------------------------------------------------------------------------------------


def main() -> None:
    taken: dict[str, list[Run]] = {work.__name__: [] for work in MEASURED}
    results: dict[str, list[Any]] = {work.__name__: [] for work in MEASURED}
    with folder() as target:
        log = target / "log.parquet"
        say(f"Making a log of {SIZES[size()]:,} lists ...")
        measure(make_log, log, SIZES[size()], contexts(SIZES[size()]))
        measure(make_texts, log, target)
        for number in range(rounds(5)):
            say(f"Round {number + 1} ...")
            for work in MEASURED:
                run, returned = measure(work, log, target)
                taken[work.__name__].append(run)
                results[work.__name__].append(returned)
        _, counted = measure(shape, target / "counts.parquet")
    took = {work: median(runs) for work, runs in taken.items()}
    counting = took["count"].cpu
    report(
        "limits" if size() == "1m" else f"limits-{size()}",
        about={"lists": SIZES[size()], "contexts": counted["contexts"], "pairs": counted["pairs"], "rounds": rounds(5)},
        took=took,
        figures={
            "counting / bare histogram query": Figure(counting / took["bare"].cpu, at_most=1.3),
            "counting / bare scan": Figure(counting / took["scan"].cpu),
            f"peak memory of counting under {MEMORY}, GB": Figure(took["count"].peak, at_most=1.3),
            "everything after the counts / counting": Figure(took["rank"].cpu / counting, at_most=1.0),
            "the same with model=dcm / counting": Figure(took["rank_dcm"].cpu / counting),
            "fitting the prior of eb / counting": Figure(
                statistics.median(results["empirical_bayes"]) / counting, at_most=0.05
            ),
            "reading yandex text / counting": Figure(took["read_yandex"].cpu / counting),
            "reading 100 MB of labels, CPU seconds": Figure(statistics.median(results["read_labels"]), at_most=1.0),
            "prudent --help, CPU seconds": Figure(took["show_help"].cpu, at_most=0.5),
        },
    )
