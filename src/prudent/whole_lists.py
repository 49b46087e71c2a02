"""The whole lists of a log -> a rival's lists -> Policy."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from prudent import __version__
from prudent.algorithm import CONTEXTS, append, differences, named_lists, named_scores, only, whole_number
from prudent.arrays import BoolArray, IntArray
from prudent.baselines import Rival, fold, rivals
from prudent.cells import FEWEST
from prudent.counts import MAX_BAD, Counts, check_max_bad, check_tally
from prudent.engines import Tally
from prudent.engines.duckdb import DuckDB
from prudent.engines.quoting import file_text, text
from prudent.errors import LogError, UsageError
from prudent.files import TemporaryFolder
from prudent.log import Log
from prudent.policy import Policy
from prudent.shown import Shown

QUERY = package_files("prudent").joinpath("shown.sql").read_text(encoding="utf-8")


def rank_by(
    log: Log,
    method: str | Rival,
    length: int | None = None,
    min_lists: int = 1,
    engine: DuckDB | None = None,
    max_bad: float = MAX_BAD,
) -> Policy:
    """Find, for every context, the best list by a method that `rank` is compared with.

    These methods weigh whole lists, which counts have forgotten, so they read the log itself. None of them is
    pessimistic: ``lower`` and ``mean`` of the policy are both what the method estimates that an item adds to the clicks
    on its list where it stands; in `Policy.scores`, the best it could add anywhere. ``positive`` are clicks and
    ``negative`` impressions without one.

    method
        A spelling such as ``"ips(clip=50)"``, ``"ip-ips"`` or ``"pi"``, or the object that it stands for.
    length
        How many items a list has at most; without it, as many as the longest logged list. Logged lists are cut there,
        and what was shown or clicked below is as if it had never been logged.
    min_lists
        Contexts with fewer logged lists are left out, so that the caller keeps its own ranking there.
    """
    rival = rivals.parse(method) if isinstance(method, str) else method
    if isinstance(log, Counts):
        raise UsageError(f"{rival} needs the log itself: counts have forgotten whole lists.")
    if not isinstance(log, Log):
        raise UsageError(f"rank_by takes a Log, not a {type(log).__name__}: prudent.rank_by(prudent.Log(...), ...).")
    length = None if length is None else whole_number("length", length, 1)
    min_lists = whole_number("min_lists", min_lists, 0)
    check_max_bad(max_bad)
    connection, shown, tally = read_shown(log, engine or DuckDB(), length, max_bad)
    if not shown.clicks.any():
        where = "" if length is None else f" in its first {length:,} positions"
        raise LogError(f"Not one of the {tally.lists:,} lists has a click{where}: there is nothing to learn from.")
    totals = fold(shown)
    kept = totals.logged >= min_lists
    if not kept.any():
        raise LogError(f"No context has {min_lists:,} logged lists: there is nothing to rank.")
    choice = rival.choose(totals)
    listed = kept[choice.lists.context]
    new, usual = only(choice.lists, kept), only(totals.listing(totals.usual), kept)
    counted: dict[str, NDArray[Any]] = {
        "positive": totals.positive.astype(np.float64),
        "negative": (totals.impressions - totals.positive).astype(np.float64),
        "impressions": totals.impressions,
    }
    adds = choice.adds[listed]
    everything = {"row": np.arange(totals.pairs), "lower": choice.best, "mean": choice.best, **counted}
    chosen: dict[str, NDArray[Any]] = {
        "row": new.row,
        "number": new.context,
        "rank": new.rank.astype(np.int32),
        "lower": adds,
        "mean": adds,
    }
    append(connection, "scores", everything, named_scores(0, totals.pairs))
    evidence = {name: column[new.row] for name, column in counted.items()}
    append(connection, "lists", {**chosen, **evidence}, named_lists(0, totals.pairs))
    values = {"value": np.bincount(new.context, adds, minlength=len(kept)), "usual_value": choice.usual}
    differ = differences(new, usual, totals.length, len(kept))
    per_context = {"lists": totals.logged, **values, "lower": values["value"], "usual_lower": values["usual_value"]}
    append(connection, "per_context", {"number": np.arange(len(kept)), **per_context, "differ": differ, "kept": kept})
    share = np.where(kept, totals.logged, 0) / totals.logged[kept].sum()
    provenance = {
        "prudent": __version__,
        "method": str(rival),
        "length": length or totals.length,
        "min_lists": min_lists,
        "counts": {
            "inputs": list(log.names),
            "lists": tally.lists,
            "rejected": dict(tally.rejected),
            "left_out": dict(tally.left_out),
        },
        "fitted": {},
        "summary": {
            "contexts": int(kept.sum()),
            "too_few_lists": int((~kept).sum()),
            "without_candidates": 0,
            "differ": int(differ[kept].sum()),
            "unit": "clicks",
            **{name: float(np.sum(share * of)) for name, of in values.items()},
        },
    }
    return Policy(connection, provenance, {"lists": "from lists", "scores": "from scores", "contexts": CONTEXTS})


def read_shown(
    log: Log, engine: DuckDB, length: int | None, max_bad: float
) -> tuple[duckdb.DuckDBPyConnection, Shown, Tally]:
    """Whole lists, cut after `length` positions, as arrays, and a database that knows the names of their numbers.

    The rowids of its tables `pairs` and `contexts` are the numbers.
    """
    connection, (shown,), (tally,) = read_parts([log], engine, length, max_bad)
    return connection, shown, tally


def read_parts(
    logs: Sequence[Log],
    engine: DuckDB,
    length: int | None,
    max_bad: float,
    where: str = "true",
    most: int | None = None,
) -> tuple[duckdb.DuckDBPyConnection, list[Shown], list[Tally]]:
    """The same for several logs, whose pairs share their numbers.

    `where` is a condition on contexts that the engine keeps to. Where there are more than `most` lists, only some
    contexts become arrays, with all of their lists, and the tallies are of everything: see `sample_of` for both.
    """
    folder = TemporaryFolder()
    longest = None if length is None else min(length, 1 << 31)  # DuckDB counts in 64 bits
    files, tallies = [], []
    for number, log in enumerate(logs):
        files.append(folder.path / f"lists{number}.parquet")
        tallies.append(replace(engine.distinct_lists(log, QUERY, files[-1], longest, where), left_out=log.left_out))
        check_tally(tallies[-1], log, max_bad)
    connection = engine.open()
    run = connection.execute
    _check_names(connection, logs, files)
    if most is not None and sum(tally.lists for tally in tallies) > most:
        shown = " union all ".join(f"select context, n from read_parquet({file_text(file)})" for file in files)
        condition = sample_of(connection, f"select context, sum(n) as lists from ({shown}) group by context", most)
        some = [folder.path / f"some{number}.parquet" for number in range(len(files))]
        for file, target in zip(files, some, strict=True):
            run(f"copy (from read_parquet({file_text(file)}) where {condition}) to {text(target)} (format parquet)")
        files = some
    sources = [f"read_parquet({file_text(file)}, file_row_number = true)" for file in files]
    shown = " union all ".join(f"select context, unnest(items) as item from {source}" for source in sources)
    run(f"create table pairs as select distinct context, item from ({shown}) order by context, item")
    run("create table contexts as select distinct context from pairs order by context")
    sizes = run("select count(*) as n from pairs group by context order by context").fetchnumpy()["n"]
    context = np.repeat(np.arange(len(sizes)), sizes)
    return connection, [Shown(context, *_arrays(connection, source)) for source in sources], tallies


def _arrays(connection: duckdb.DuckDBPyConnection, source: str) -> tuple[IntArray, BoolArray, IntArray]:
    """Items, clicks and n of the lists in one file."""
    run = connection.execute
    lists = run(f"select n, len(items) as length from {source} order by file_row_number").fetchnumpy()
    found = run(
        "select list, position, pairs.rowid as pair, click from ("
        "select file_row_number as list, context, unnest(items) as item, "
        f"unnest(range(len(items))) as position, unnest(clicks) = 1 as click from {source}"
        ") join pairs using (context, item)"
    ).fetchnumpy()
    shape = len(lists["n"]), int(lists["length"].max(initial=0))
    items, clicks = np.full(shape, -1), np.zeros(shape, bool)
    items[found["list"], found["position"]] = found["pair"]
    clicks[found["list"], found["position"]] = found["click"]
    return items, clicks, lists["n"].astype(np.int64)


def _check_names(connection: duckdb.DuckDBPyConnection, logs: Sequence[Log], files: Sequence[Path]) -> None:
    """7 is not '7': names of one kind are never names of another."""
    words = {"VARCHAR": "text", "UBIGINT": "unsigned integers"}
    first = ""
    for log, file in zip(logs, files, strict=True):
        described = connection.execute(f"describe select context, items[1] from read_parquet({file_text(file)})")
        kinds = " and ".join(words.get(row[1], "integers") for row in described.fetchall())
        first = first or kinds
        if kinds != first:
            raise LogError(
                f"{logs[0].name} names its contexts and items by {first}, {log.name} by {kinds}: "
                "they have nothing in common."
            )


def sample_of(connection: duckdb.DuckDBPyConnection, contexts: str, most: int) -> str:
    """A condition that keeps contexts which together have at most so many lists, or else a few.

    `contexts` is a query for context and lists. The order in which they are taken has nothing to do with what is in
    them, and is the same in every engine and for every log.
    """
    found = connection.execute(
        f"select md5(context::varchar) as hash, lists::bigint as lists from ({contexts}) order by hash"
    ).fetchnumpy()
    few = int(np.searchsorted(np.cumsum(found["lists"]), most, side="right"))
    last = found["hash"][min(max(few, FEWEST), len(found["hash"])) - 1]
    return f"md5(context::varchar) <= '{last}'"
