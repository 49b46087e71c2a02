"""Do all sides of the table find the same? Run after they were measured, on the files that they left."""

from pathlib import Path
from typing import Any


def agree(log: str, layout: str, target: str) -> dict[str, Any]:
    """Raise where evidence or lists of `cm` differ; the size of the log."""
    import duckdb
    import numpy as np

    import prudent

    place = Path(target)
    lists = {
        name: f"select context, rank, item from '{place / file}.parquet'"
        for name, file in (("ours", "policy-hoeffding"), ("SQL", "sql-policy"), ("Polars", "polars-policy"))
    }
    for name in ("SQL", "Polars"):
        apart = f"(({lists['ours']}) except ({lists[name]})) union all (({lists[name]}) except ({lists['ours']}))"
        ((different,),) = duckdb.execute(f"select count(*) from ({apart})").fetchall()
        if different:
            raise AssertionError(f"{different:,} ranks of {name} and ours differ.")
    counts = prudent.count(prudent.Log(log, layout=layout))  # type: ignore[arg-type]
    ours = prudent.click_models.parse("cm").evidence(counts)
    for name in ("sql", "polars"):
        theirs = duckdb.execute(f"from '{place}/{name}-evidence.parquet' order by context, item").fetchnumpy()
        for column, mine in (("positive", ours.positive), ("examined", ours.examined), ("n", ours.impressions)):
            np.testing.assert_array_equal(np.ma.filled(theirs[column], 0), mine)
    return shape(f"{target}/counts.parquet")


def shape(counts: str) -> dict[str, int]:
    """How many contexts, pairs and cells (one row each in `Counts.sql`) counts have."""
    import duckdb

    sums = f"select count(*), sum(len(items)), sum(len(code)) from read_parquet('{counts}')"
    return dict(zip(("contexts", "pairs", "cells"), duckdb.execute(sums).fetchall()[0], strict=True))
