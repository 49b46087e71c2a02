"""The page docs/scaling.md, from the latest results in benchmarks/results: `python docs/scaling.py`.

What was measured is read there; what follows from it for larger logs is worked out here, so that no number on the page
is typed by hand. tests/test_scaling_page.py checks that running this changes nothing.
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
    figure = {name: of["value"] for part in (sizes, spark, pairs) for name, of in part["figures"].items()}
    duckdb_cpu = 1e6 * ten["count: cpu"] / ten["lists"]  # µs a list
    # The start of Java is paid once, but we cannot tell it apart in one run: what is said of Spark is from above.
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
                "rows of counts per list",
                "bytes per row out",
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
        "rows of counts, as measured": _words(rows),
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

Most logs fit on one: what counting and ranking hold at a time depends on `--memory`, and not on the size of the log
or of the counts. This page is for the others.

## On Spark

`pip install 'prudent[spark]'`, with Java 17 or newer. On the command line:

```sh
prudent count s3a://logs/2026-11-15/ -o s3a://counts --day 2026-11-15 --engine spark --master yarn \\
  --context query --items shown --clicks clicked
prudent rank s3a://counts -o s3a://policy/2026-11-15 --engine spark --master yarn --since 90d --half-life 14d
```

In Python, with a session that you have or with one that is made for you:

```py
import prudent
from pyspark.sql import SparkSession

session = SparkSession.builder.getOrCreate()
engine = prudent.Spark(session)
log = prudent.Log(session.table("clicks"), context="query", items="shown", clicks="clicked")

prudent.count_on_spark(log, "s3a://counts", engine, day="2026-11-15")
prudent.rank_on_spark("s3a://counts", "s3a://policy", engine, half_life="14d")
```

- A log is a path wherever Spark can read, or one of its DataFrames; both layouts. What DuckDB rejects, Spark
  rejects, for the same reason. The counts are equal row for row, and the lists and their numbers equal to the last
  bit.
- `count_on_spark` and `rank_on_spark` write folders of Parquet files; a folder is replaced as a whole when
  everything is written. On a local disk and on HDFS that is a rename; S3 and its like copy, and who reads meanwhile
  may see a part.
- Where counts fit on one machine, and they mostly do, count on Spark and rank here: `counts = prudent.count(log,
  engine=engine)` brings the counts, and everything goes on as usual.
- `prudent.Policy.read` reads a folder that Spark wrote, if it is on this machine, and so does DuckDB: `select *
  from 'policy/*.parquet'`.
- Counting runs in Java alone. Ranking runs Python on the workers: `prudent[spark]`, which brings pyarrow and pandas,
  has to be installed there too. Sessions of Spark Connect have no Java side and are refused.
- Spark ranks from counts, not from logs, and writes no scores; `--method`, `check`, `compact` and remote folders for
  `diff` are for one machine. Unsigned integers of 64 bits are no names to Spark.
- The driver holds two samples of at most 200,000 pairs, which is well below a gigabyte; a task holds a million rows of
  counts at a time, or one context if it has more.
- Where something fails: `--conf spark.log.level=INFO` lets Java speak, `--conf spark.ui.enabled=true` brings its pages
  back. `--conf spark.sql.shuffle.partitions=2000` ranks in as many tasks, and writes as many files, at most.
- `prudent count --engine spark -o counts.parquet` makes one file on this machine, as DuckDB does; with a scheme, as in
  `file:` or `s3a:`, it makes a folder.

## What all contexts share, and what each has for itself

A click model has one parameter per position, and a bound has a prior; the rest is one context at a time. So both
engines learn first, from at most 200,000 pairs: position parameters from the contexts with most lists, where there
is most to learn from, and the prior from contexts in a random order (that of the MD5 of their names, so that it is
the same in every engine), which can stand for all. Then contexts are ranked part by part, on one machine as on
many, and how the parts were cut cannot be seen in the result. Logs of up to 200,000 pairs are learned from as a
whole.

"""

MEASURED = """\
## What was measured

On two cores, with simulated logs of lists of ten, the names being text of about ten characters; see
[benchmarks](benchmarks.md).

{measured}
CPU per list at ten million lists was {growth} times that at one million (a slope of {count_slope} on logarithmic
scales; of ranking, {rank_slope}, which grows with pairs and not with lists). Counting ran under a limit of
{memory}. Ranking the counts of {pairs} pairs under a limit of {pairs_memory} took {pairs_peak} GB and {pairs_cpu}
µs of CPU per pair.

Spark on the same machine took {spark_cpu} µs of CPU per list to count {spark_lists} lists, {ratio} times as much as
DuckDB; its start is in that. It shuffled {shuffled} bytes and {shuffled_rows} rows per list: what is left after
each task has added up its own part. Ranking took {spark_rank} µs per list and shuffled {reshuffled} bytes.

## A billion lists a day, and a hundred billion

{days}
The clusters: {machines} lists a day, each machine with {cores} cores and {gigabytes} GB.
The assumptions, and where they are wrong:

- CPU per list stays what it was at the size that was measured. Measured slopes are near 1; nobody here has run a
  billion.
- All cores are busy. In practice count on half of that: reading from object stores, stragglers, and shuffles that
  wait for disks.
- Rows of counts per list are those of ten million lists over 100,000 contexts. They fall as contexts come back: a
  cell is counted once however often it occurs. More contexts for the same lists have more rows, and a log in which no
  list is ever like another has as many as impressions, here ten per list. Which of the two your traffic is like, a
  sample of whole contexts tells.
- Ranking is worked out per list, though it grows with pairs; where pairs come back day after day it is less.
- Names are short. Long URLs cost in proportion, in the log, in the shuffle and in the counts: give items numbers.
- Lists have ten items. Everything grows in proportion to their length.

"""

SKEW = """\
## Skew, tails and retention

**Skew.** A context with a third of all lists is no trouble for counting: each task adds up its own lists before
anything is sent, so that what is sent of a context is bounded by its distinct cells, not by its lists. For ranking,
a context is the smallest part there is. One with a million items is held whole by one task; that takes about 200
bytes for each of its cells.

**Tails.** Contexts that were seen once or twice are most of the rows and none of the evidence. Rank with
`--min-lists 10`, and production keeps its own list where the log knows nothing. To keep them out of the counts as
well, map rare queries to a segment before logging (a category, a language): their evidence then adds up.

**Retention.** Counts have no user, session or time in them, only the day of their folder. Keep days as long as a
half-life needs, ten of them or so, and merge older ones with `prudent compact`: cells that recur are then kept
once.
"""


if __name__ == "__main__":
    (DOCS / "scaling.md").write_text(page(_BENCHMARKS["latest"]()), encoding="utf-8")
