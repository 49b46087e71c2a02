"""The page docs/scaling.md, from the latest results in benchmarks/results: `python docs/scaling.py`.

Measurements are read there and extrapolated to larger logs here, so no number on the page
is typed by hand. tests/docs/test_scaling_page.py checks that running this changes nothing.
"""

import runpy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
_BENCHMARKS = runpy.run_path(str(DOCS / "benchmarks.py"))
table, number = _BENCHMARKS["table"], _BENCHMARKS["number"]

DAYS = (1_000_000_000, 100_000_000_000)  # lists a day
CLUSTERS = {1_000_000_000: 10, 100_000_000_000: 200}  # machines
CORES, MEMORY = 16, 64  # of a machine; GB


def page(parts: Mapping[str, Any]) -> str:
    """The text, with what was measured and what follows from it, as far as it was."""
    known = all(part in parts for part in ("sizes", "spark", "pairs"))
    return HOW + (_measured(parts) if known else "") + SKEW


def _measured(parts: Mapping[str, Any]) -> str:
    sizes, spark, pairs = (parts[part] for part in ("sizes", "spark", "pairs"))
    rows = sizes["rows"]
    ten = rows[-1]
    spark_lists = spark["about"]["lists"]
    figure = {name: one["value"] for part in (sizes, spark, pairs) for name, one in part["figures"].items()}
    duckdb_cpu = 1e6 * ten["count: cpu"] / ten["lists"]  # µs a list
    # The start of Java is a fixed cost that one run does not separate: the figures of Spark are upper limits.
    spark_cpu = 1e6 * spark["took"]["count_by_spark"]["cpu"] / spark_lists
    spark_rank = 1e6 * spark["took"]["rank_by_spark"]["cpu"] / spark_lists
    shuffled, reshuffled = figure["count: bytes shuffled per list"], figure["rank: bytes shuffled per list"]
    per_row = ten["bytes per row of counts"]
    days = [_day(lists, ten, duckdb_cpu, spark_cpu, spark_rank, shuffled, reshuffled, per_row) for lists in DAYS]
    return MEASURED.format(
        measured=table(
            (
                "lists",
                "pairs",
                "bytes per list in",
                "cells per list",
                "bytes per cell out",
                "counting, µs per list",
            ),
            [
                (
                    f"{row['lists']:,}",
                    f"{row['pairs']:,}",
                    number(row["bytes per list"]),
                    number(row["rows of counts per list"]),
                    number(row["bytes per row of counts"]),
                    number(1e6 * row["count: cpu"] / row["lists"]),
                )
                for row in rows
            ],
        ),
        count_slope=number(figure["counting: slope of CPU against lists"]),
        rank_slope=number(figure["ranking: slope of CPU against lists"]),
        growth=number(figure["counting: CPU per list, 10m / 1m"]),
        memory=sizes["about"]["memory"],
        pairs=f"{pairs['about']['pairs']:,}",
        pairs_memory=pairs["about"]["memory"],
        pairs_peak=number(pairs["took"]["rank"]["peak"]),
        pairs_cpu=number(figure["CPU microseconds per pair"]),
        spark_lists=f"{spark_lists:,}",
        spark_cpu=number(spark_cpu),
        spark_rank=number(spark_rank),
        ratio=number(figure["count: Spark / DuckDB, CPU"]),
        shuffled=number(shuffled),
        shuffled_rows=number(figure["count: rows shuffled per list"]),
        reshuffled=number(reshuffled),
        cores=CORES,
        gigabytes=MEMORY,
        days=_transposed(days),
        machines=" and ".join(f"{CLUSTERS[lists]} machines for {_words(lists)}" for lists in DAYS),
    )


def _day(
    lists: int,
    ten: Mapping[str, float],
    duckdb_cpu: float,
    spark_cpu: float,
    spark_rank: float,
    shuffled: float,
    reshuffled: float,
    per_row: float,
) -> dict[str, str]:
    """What a day of so many lists takes."""
    machines = CLUSTERS[lists]
    rows = lists * ten["rows of counts per list"]
    seconds = lists * spark_cpu / 1e6 / (machines * CORES)
    ranking = lists * spark_rank / 1e6 / (machines * CORES)
    return {
        "lists a day": _words(lists),
        "log, TB": number(lists * ten["bytes per list"] / 1e12),
        "cells of counts, as measured": _words(rows),
        "counts, TB": number(rows * per_row / 1e12),
        "one machine with DuckDB, hours of one core": number(lists * duckdb_cpu / 1e6 / 3600),
        "Spark, hours of one core": number(lists * spark_cpu / 1e6 / 3600),
        f"machines of {CORES} cores": str(machines),
        "counting there, minutes": number(seconds / 60),
        "shuffle, GB per machine": number(lists * shuffled / 1e9 / machines),
        "ranking there, minutes": number(ranking / 60),
        "shuffle of ranking, GB per machine": number(lists * reshuffled / 1e9 / machines),
    }


def _transposed(days: Sequence[Mapping[str, str]]) -> str:
    first, *rest = days[0]
    return str(table((first, *(day[first] for day in days)), [(name, *(day[name] for day in days)) for name in rest]))


def _words(n: float) -> str:
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if n >= size:
            return f"{n / size:.3g} {word}"
    return f"{n:,.0f}"


HOW = """\
# Beyond one machine

Most logs fit on one machine: the memory of counting and ranking is limited by `--memory` and does not depend on the
size of the log or of the counts. This page is for larger ones.

## On Spark

`pip install 'prudent[spark]'`, with Java 17 or newer. On the command line:

```sh
prudent count s3a://logs/2026-11-15/ -o s3a://counts --day 2026-11-15 --engine spark --master yarn \\
  --context query --items shown --clicks clicked
prudent rank s3a://counts -o s3a://policy/2026-11-15 --engine spark --master yarn --since 90d --half-life 14d
```

In Python, with a session of your own:

```py
import prudent
from pyspark.sql import SparkSession

session = SparkSession.builder.getOrCreate()
engine = prudent.Spark(session)
log = prudent.Log(session.table("clicks"), context="query", items="shown", clicks="clicked")

prudent.count(log, to="s3a://counts", day="2026-11-15", engine=engine)
prudent.rank("s3a://counts", to="s3a://policy", half_life="14d", engine=engine)
```

- A log is any path that Spark can read, or a Spark DataFrame, in either layout. Spark rejects the same lists as DuckDB,
  for the same reasons. The counts are equal row for row, and the lists and their numbers equal bit for bit.
- With `to=`, the output is a folder of Parquet files, which replaces an existing folder when everything is written. On
  a local disk and on HDFS that is a rename; object stores such as S3 copy, and a reader may see a part meanwhile.
- Counts usually fit on one machine. Then count on Spark and rank locally: `counts = prudent.count(log, engine=engine)`
  collects the counts, and the rest is as usual.
- `prudent.Policy.read` reads a local folder that Spark wrote, and so does DuckDB: `select * from 'policy/*.parquet'`.
- Spark reads the lists; checking, counting and ranking run Python on the workers: `prudent[spark]`, with pyarrow and
  pandas, has to be installed there too. For a folder, all lists of a context go to one task, one row each. For one file
  on this machine nothing is shuffled: each task counts what it reads, and the counts of tasks are merged here.
- The driver lists files, reads footers and writes manifests through pyarrow, with the credentials of its environment
  (such as `AWS_ACCESS_KEY_ID`), for `s3a://`, `gs://`, `abfs://` and, with libhdfs, `hdfs://`. Other settings or
  schemes: `prudent.Spark(session, filesystem=...)` with a `pyarrow.fs.FileSystem`. A path without a scheme is local.
- Spark ranks from counts, not from logs, and writes no scores; `--baseline`, `check`, `compact` and remote folders for
  `diff` run on one machine. Spark has no unsigned 64-bit integers, so names cannot have that type.
- The driver holds two samples of at most 200,000 pairs, well below a gigabyte; a task holds a million cells at
  a time, or one context if that has more.
- To debug: `--conf spark.log.level=INFO` shows the log of the JVM, `--conf spark.ui.enabled=true` enables the web UI.
  `--conf spark.sql.shuffle.partitions=2000` limits the number of ranking tasks and of output files.
- `prudent count --engine spark -o counts.parquet` writes one local file, as DuckDB does; a name without that ending, or
  with a scheme, becomes a folder.

## Shared parameters and single contexts

A click model has one parameter per position, and a bound has a prior. Everything else concerns one context at a time.
Both engines therefore fit the shared parameters first, from at most 200,000 pairs: position parameters from the
contexts with the most lists, which have the most information, and the prior from contexts in a random order (by the MD5
of their names, so that it is the same in every engine), which are representative. Then contexts are ranked in parts,
and the result does not depend on how the parts are cut. Logs of up to 200,000 pairs are used as a whole.

"""

MEASURED = """\
## Measurements

On two cores, with simulated logs of lists of ten and names of about ten characters; see [benchmarks](benchmarks.md).

{measured}
CPU per list at ten million lists is {growth} times that at one million (a slope of {count_slope} on logarithmic
scales; for ranking {rank_slope}, which grows with pairs and not with lists). Counting ran with a memory limit of
{memory}. Ranking the counts of {pairs} pairs with a limit of {pairs_memory} took {pairs_peak} GB and {pairs_cpu}
µs of CPU per pair.

Spark on the same machine takes {spark_cpu} µs of CPU per list to count {spark_lists} lists, {ratio} times as much as
DuckDB, including its start. It shuffles {shuffled} bytes and {shuffled_rows} rows per list. Ranking takes {spark_rank}
µs per list and shuffles {reshuffled} bytes.

## A billion lists a day, and a hundred billion

{days}
The clusters: {machines} lists a day, each machine with {cores} cores and {gigabytes} GB. This is an extrapolation. Its
assumptions, and where they are wrong:

- CPU per list is the same as at the measured size. Measured slopes are near 1; a billion lists have not been run.
- All cores are busy. In practice expect half of that: reading from object stores, stragglers, and shuffles that wait
  for disks.
- Cells per list are those of ten million lists over 100,000 contexts. They fall as contexts recur, because a
  cell is kept once however often it occurs. More contexts for the same lists have more cells, up to one per impression
  (ten per list here) where no two lists are alike. Measure it on a sample of whole contexts of your traffic.
- Ranking is extrapolated per list, though it grows with pairs; where pairs recur day after day it is less.
- Names are short. Long URLs cost in proportion, in the log, in the shuffle and in the counts: use integer ids.
- Lists have ten items. Everything grows in proportion to their length.

"""

SKEW = """\
## Skew, tails and retention

**Skew.** A context is the smallest unit of ranking, and of counting to a folder. The task that gets it reads its lists
in portions that fit into memory, about a million in two seconds; a context with a third of all lists keeps its task
busy when the others are done. For ranking, a task holds all items of a context: about 200 bytes for each of its cells.

**Tails.** Contexts with one or two lists are most of the cells and almost none of the evidence. Rank with
`--min-lists 10`, and production keeps its own list there. To keep them out of the counts as well, map rare queries to a
segment before logging (a category, a language): their evidence then adds up.

**Retention.** Counts have no user, session or time, only the day of their folder. Keep about ten half-lives of days,
and merge older ones with `prudent compact`, which stores recurring cells once.
"""


if __name__ == "__main__":
    (DOCS / "scaling.md").write_text(page(_BENCHMARKS["latest"]()), encoding="utf-8")
