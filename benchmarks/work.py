"""What is measured on a log, each in its own process: our side, and what else one would write.

Everything goes from the log's file to evidence, which is clicks and skips of every (context, item) pair, or on to a
written policy. Others rank by the click rate minus Hoeffding's width, under `cm`, since that takes one line of SQL;
for a comparison ours does the same.
"""

from collections.abc import Mapping
from pathlib import Path
from time import process_time
from typing import Any

MEMORY = "1GB"  # of DuckDB, on our side
DELTA, LENGTH = 0.2, 10
OURS = {"dcm": "dcm(tail=truncate)"}  # what plain loops and papers count of dcm; other models are what they are


def compiled() -> bool:
    """Whether the compiled kernel counts; its twin takes several times as long."""
    from prudent.engines import kernel

    return kernel.compiled()


# --- ours ------------------------------------------------------------------------------------------------------------


def count(log: str, layout: str, target: str) -> None:
    import prudent

    prudent.count(_log(log, layout), engine=prudent.DuckDB(memory=MEMORY), to=Path(target) / "counts.parquet")


def evidence(log: str, layout: str, target: str, model: str) -> None:
    import prudent

    prudent.click_models.parse(model).evidence(prudent.count(_log(log, layout), engine=prudent.DuckDB(memory=MEMORY)))


def rank(log: str, layout: str, target: str) -> None:
    """From the counts that `count` wrote, with the defaults."""
    import prudent

    counts = prudent.Counts.read(Path(target) / "counts.parquet", engine=prudent.DuckDB(memory=MEMORY))
    prudent.rank(counts).write(Path(target) / "policy.parquet")


def policy(log: str, layout: str, target: str, model: str, bound: str = "") -> None:
    import prudent

    chosen = bound or prudent.bounds.DEFAULT_BOUND
    ranked = prudent.rank(_log(log, layout), model, bound=chosen, engine=prudent.DuckDB(memory=MEMORY))
    ranked.write(Path(target) / f"policy{'-' if bound else ''}{bound.partition('(')[0]}.parquet")


def _log(log: str, layout: str) -> Any:
    import prudent

    return prudent.Log(log, layout=layout)  # type: ignore[arg-type]


# --- DuckDB and Polars -----------------------------------------------------------------------------------------------


def scan(log: str, layout: str, target: str) -> None:
    """Read the columns, nothing else: the lower limit of everything."""
    columns = {
        "lists": "count(context), sum(len(items)), sum(len(clicks))",
        "rows": "max(impression), count(context), count(item), sum(position), sum(click)",
    }
    _connection(target).execute(f"select {columns[layout]} from read_parquet('{log}')").fetchall()


_SHOWN = {
    "lists": """
        select context, unnest(items) as item, unnest(clicks) as click, unnest(range(1, len(items) + 1)) as position,
            list_position(clicks, 1) as first
        from read_parquet('{log}')
    """,
    "rows": """
        select context, item, click, position,
            min(position) filter (click = 1) over (partition by impression) as first
        from read_parquet('{log}')
    """,
}
_EVIDENCE = """
    select context, item, sum(click) filter (examined) as positive, count(*) filter (examined) as examined,
        count(*) as n
    from (select *, first is null or position <= first as examined from ({shown})) group by all
"""
_POLICY = f"""
    select context, rank, item from (
        select context, item, row_number() over (
            partition by context order by lower desc, rate desc, n desc, item
        ) as rank
        from (
            select *, coalesce(positive / examined, 0) as rate,
                coalesce(positive / examined - sqrt(-ln({DELTA}) / (2 * examined)), '-infinity') as lower
            from (
                select context, item, coalesce(positive, 0) as positive, nullif(examined, 0) as examined, n
                from ({{evidence}})
            )
        )
    ) where rank <= {LENGTH} order by context, rank
"""


def sql_evidence(log: str, layout: str, target: str) -> None:
    """Evidence of cm in SQL, to a file."""
    _copy(_EVIDENCE.format(shown=_SHOWN[layout].format(log=log)), target, "sql-evidence")


def sql_policy(log: str, layout: str, target: str) -> None:
    evidence = _EVIDENCE.format(shown=_SHOWN[layout].format(log=log))
    _copy(_POLICY.format(evidence=evidence), target, "sql-policy")


def _copy(query: str, target: str, name: str) -> None:
    _connection(target).execute(f"copy ({query}) to '{target}/{name}.parquet' (format parquet, compression zstd)")


def _connection(target: str) -> Any:
    import duckdb

    return duckdb.connect(config={"temp_directory": target})


def polars_evidence(log: str, layout: str, target: str) -> None:
    """The same by Polars, with its streaming engine."""
    _polars_evidence(log, layout).sink_parquet(Path(target) / "polars-evidence.parquet")


def polars_policy(log: str, layout: str, target: str) -> None:
    import math

    import polars as pl

    n = pl.col("examined")
    rate = (pl.col("positive") / n).fill_nan(0.0)
    lower = pl.when(n > 0).then(pl.col("positive") / n - (-math.log(DELTA) / (2 * n)).sqrt()).otherwise(-math.inf)
    order = ("context", "lower", "rate", "n", "item")
    ranked = (
        _polars_evidence(log, layout)
        .with_columns(rate=rate, lower=lower)
        .sort(order, descending=[False, True, True, True, False])
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over("context"))
        .filter(pl.col("rank") <= LENGTH)
    )
    ranked.select("context", "rank", "item").sink_parquet(Path(target) / "polars-policy.parquet", engine="streaming")


def _polars_evidence(log: str, layout: str) -> Any:
    import polars as pl

    rows = pl.scan_parquet(log)
    click, position = pl.col("click"), pl.col("position")
    if layout == "lists":
        clicks = pl.col("clicks").list
        first = pl.when(clicks.max() == 1).then(clicks.arg_max()).otherwise(LENGTH)
        positions = pl.int_ranges(0, clicks.len())
        shown = rows.select("context", item="items", click="clicks", first=first, position=positions)
        shown = shown.explode("item", "click", "position")
    else:
        first = position.filter(click == 1).min().over("impression").fill_null(LENGTH)
        shown = rows.with_columns(first=first)
    examined = position <= pl.col("first")
    return shown.group_by("context", "item").agg(
        positive=(examined & (click == 1)).sum(), examined=examined.sum(), n=pl.len()
    )


# --- plain Python ----------------------------------------------------------------------------------------------------


def loop_evidence(log: str, layout: str, target: str, model: str, rounds: str = "0") -> Mapping[str, float]:
    """Sessions from the log, then the model; CPU seconds of reading, and of one of the rounds of EM."""
    return _loop(log, model, int(rounds))[1]


def loop_policy(log: str, layout: str, target: str, model: str) -> Mapping[str, float]:
    """The same, then sorted lists in a text file."""
    import csv
    import math

    attraction, seconds = _loop(log, model, 0)
    log_delta = -math.log(DELTA)
    with (Path(target) / "loop-policy.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        for query, results in attraction.items():
            scored = []
            for result, share in results.items():
                n = share.trials
                rate = share.hits / n if n else 0.0
                lower = rate - math.sqrt(log_delta / (2 * n)) if n else -math.inf
                scored.append((-lower, -rate, result))
            scored.sort()
            for rank, (*_, result) in enumerate(scored[:LENGTH], start=1):
                writer.writerow((query, rank, result))
    return seconds


def _loop(log: str, model: str, rounds: int) -> tuple[Any, dict[str, float]]:
    import duckdb

    from benchmarks import plain_models

    rows = duckdb.execute(f"select context, items, clicks from read_parquet('{log}')").fetchall()
    sessions = [plain_models.Session(*row) for row in rows]
    read = process_time()
    fitted = plain_models.MODELS[model]()
    fitted.fit(sessions, **({"rounds": rounds} if rounds else {}))
    return fitted.attraction, {"read": read, "round": (process_time() - read) / max(rounds, 1)}
