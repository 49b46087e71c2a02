"""Ranking a hundred million (context, item) pairs of counts within 4 GB.

No log is drawn for this: the counts are made directly, as logs would leave them. Every context has 50 items in 5 groups
of ten. A group is shown in one order without a click, and in another order, in which every item stands three places
lower, with one click; each as often as a hash says. So every pair has two cells, the cells of all positions of a list
agree, and items stand at two positions each, which is what identifies a position-based model.
"""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.logs import megabytes
from benchmarks.measuring import Figure, folder, measure, report, say

PAIRS = int(os.environ.get("PAIRS", 100_000_000))
MEMORY, MOST_MEMORY = "4GB", 4.0  # what is asked for, and what may be seen, in GB
ITEMS, LENGTH, LOWER = 50, 10, 3  # of a context, of a list, and how much lower an item stands in the second order
STRIDE = 48_271  # shares no factor with a round number: steps of it visit every pair once, in no order of contexts

CELLS = f"""
    with pairs as (
        select pair // {ITEMS} as context, pair // {LENGTH} as shown, pair % {LENGTH} as place, pair
        from (select (range * {STRIDE}) % {{pairs}} as pair from range({{pairs}}))
    ),
    clicked as (
        select *, 1 + (hash(shown) % {LENGTH})::integer as clicked, (place + {LOWER}) % {LENGTH} + 1 as lower,
            1 + (hash(shown + 1_000_000_007) % 40)::bigint as skipped_lists,
            1 + (hash(shown + 2_000_000_011) % 40)::bigint as clicked_lists
        from pairs
    ),
    cells as (
        select context, pair, (place + 1)::integer as position, 0 as prev, false as click, false as more,
            skipped_lists as n
        from clicked
        union all
        select context, pair, lower::integer, case when clicked < lower then clicked else 0 end, clicked = lower,
            clicked > lower, clicked_lists
        from clicked
    )
    select 'query ' || context as context, 'item-' || pair as item, position, prev, click, more, n from cells
"""


def make_counts(target: str, pairs: str) -> None:
    """A file of counts like any other, in no order, as an engine leaves it."""
    import duckdb

    from prudent.storage.counts_file import write_counts_file
    from prudent.storage.manifest import Source, Tally

    connection = duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": f"{target}.spill"})
    connection.execute("set preserve_insertion_order = false")
    cells = CELLS.format(pairs=pairs)
    ((lists,),) = connection.execute(f"select sum(n)::bigint from ({cells}) where position = 1").fetchall()
    write_counts_file(connection, Path(target), cells=cells, lists=None, source=Source((), Tally(lists)))


def rank(counts: str, policy: str) -> None:
    prudent = Path(sys.executable).with_name("prudent")
    subprocess.run([prudent, "rank", counts, "-o", policy, "--memory", MEMORY], check=True, stdout=sys.stderr)


def main() -> None:
    with folder() as target:
        counts, policy = target / "counts.parquet", target / "policy.parquet"
        say(f"Making counts of {PAIRS:,} pairs ...")
        made, _ = measure(make_counts, counts, PAIRS)
        say(f"Ranking {PAIRS // ITEMS:,} contexts; the file has {megabytes(counts):,.0f} MB ...")
        ranked, _ = measure(rank, counts, policy)
        shape = {"contexts": PAIRS // ITEMS, "pairs": PAIRS, "rows": 2 * PAIRS}
        sizes = {"MB of counts": round(megabytes(counts)), "MB of lists": round(megabytes(policy))}
    report(
        "pairs" if PAIRS == 100_000_000 else "pairs-fewer",
        about={**shape, **sizes, "memory": MEMORY},
        took={"make_counts": made, "rank": ranked},
        figures={
            f"peak memory of ranking under {MEMORY}, GB": Figure(ranked.peak, at_most=MOST_MEMORY),
            "CPU microseconds per pair": Figure(1e6 * ranked.cpu / PAIRS),
        },
    )
