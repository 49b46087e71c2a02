"""Do DuckDB and Spark count a large log alike? ``python -m benchmarks.engines_agree 1000000``

A simulated log of so many lists, in both layouts and with names of both types. Of all four, the counts have to be
equal row for row, and the policies of the default model and bound byte for byte.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

import prudent
from benchmarks.logs import contexts, make_log
from prudent.logs.log import Layout

_NUMBERS = """
    select regexp_extract(context, '[0-9]+')::bigint as context,
        list_transform(items, lambda item: regexp_extract(item, '[0-9]+')::bigint) as items, clicks
    from read_parquet('{log}')
"""
_ROWS = """
    select number as impression, context, unnest(items) as item, unnest(range(1, len(items) + 1)) as position,
        unnest(clicks) as click
    from (select *, row_number() over () as number from read_parquet('{log}'))
"""


def java_seconds(session: Any) -> float:
    """CPU time of Spark's Java side so far."""
    taken = session._jvm.java.lang.ProcessHandle.current().info().totalCpuDuration().get()
    return float(taken.toMillis()) / 1000


def compare(file: Path, layout: Layout, engine: prudent.Spark, folder: Path) -> str:
    log = prudent.Log(file, layout=layout)
    start = time.process_time()
    here = prudent.count(log, to=folder / "duckdb.parquet")
    duckdb_seconds = time.process_time() - start
    start = time.process_time() + java_seconds(engine.session)
    there = prudent.count(log, engine=engine, to=folder / "spark.parquet")
    spark_seconds = time.process_time() + java_seconds(engine.session) - start
    assert here.tally == there.tally
    assert here == there
    policies = []
    for counts in (here, there):
        prudent.rank(counts, length=10).write(folder / "policy.parquet")
        policies.append((folder / "policy.parquet").read_bytes())
    assert policies[0] == policies[1]
    cells = duckdb.execute(f"select count(*) from ({here.sql})").fetchall()[0][0]
    return (
        f"{here.tally.lists:,} lists, {cells:,} cells and {len(policies[0]):,} bytes of policy are equal; "
        f"CPU {duckdb_seconds:.1f} s by DuckDB, {spark_seconds:.1f} s by Spark"
    )


def main(lists: int) -> None:
    engine = prudent.Spark.start("local[2]", {"spark.driver.memory": "4g"})
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make_log(str(folder / "text.parquet"), str(lists), str(contexts(lists)))
        text = {"log": folder / "text.parquet"}
        duckdb.execute(f"copy ({_NUMBERS.format(**text)}) to '{folder / 'integers.parquet'}' (format parquet)")
        for names in ("text", "integers"):
            file = folder / f"{names}.parquet"
            print(f"{names}, lists: {compare(file, 'lists', engine, folder)}", flush=True)
            duckdb.execute(f"copy ({_ROWS.format(log=file)}) to '{folder / 'rows.parquet'}' (format parquet)")
            print(f"{names}, rows: {compare(folder / 'rows.parquet', 'rows', engine, folder)}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit("How many lists? python -m benchmarks.engines_agree 1000000")
    main(int(sys.argv[1]))
