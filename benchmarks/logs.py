"""The simulated logs that everything is measured on.

======== ===========================================================================================================
tail     100,000 contexts of 40 to 60 items each, the r-th most frequent shown r^−.5 as often: at a million lists a
         (context, item) pair that is shown at all is shown 2.7 times, and a histogram is hardly shorter than its log
head     1,000 such contexts: pairs are shown 200 times on average
real     as in logs of search, contexts by Zipf's law (r^−1) without an end: of those in a million lists, 80 % are seen
         once, and the most frequent one 65,000 times
======== ===========================================================================================================

All have lists of 10 by a production ranker that explores. Names are text, such as ``query 17`` and ``item-1234567``,
or the same numbers as integers; a row is a list, or an item of one.
"""

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # NumPy's memory would show in every process that is started from here
    from prudent.click_models.world import World

SIZES = {"100k": 100_000, "1m": 1_000_000, "10m": 10_000_000}
CONTEXTS = {"tail": 100_000, "head": 1_000}
RANKS, ALIKE = 6_000_000, 1_000  # contexts of `real`; how many of them differ in their items' attraction


@dataclass(frozen=True)
class LogKind:
    """Which log, with names of which type, in which layout."""

    contexts: str = "tail"  # or head, or real
    names: str = "text"  # or integers
    layout: str = "lists"  # or rows


LOGS = {
    "tail": LogKind(),
    "head": LogKind("head"),
    "real": LogKind("real"),
    "integers": LogKind(names="integers"),
    "rows": LogKind(layout="rows"),
}


def size() -> str:
    """The environment variable SIZE; published results are of a million lists."""
    name = os.environ.get("SIZE", "1m").lower()
    if name not in SIZES:
        sys.exit(f"SIZE is {name}; choose one of {', '.join(SIZES)}.")
    return name


def contexts(lists: int, kind: str = "tail") -> int:
    """Contexts for a log of this size; fewer lists have fewer contexts, so that their density stays the same."""
    return max(1, min(CONTEXTS[kind], lists * CONTEXTS[kind] // SIZES["1m"]))


def world(kind: str, contexts: int) -> "World":
    from prudent.click_models.world import make_world

    return make_world(kind, contexts=contexts, items=(40, 60), zipf=0.5, exploration=3.0, seed=1)


def make_log(
    log: str, lists: str, contexts: str, kind: str = "tail", names: str = "text", layout: str = "lists"
) -> None:
    """A Parquet log, with clicks by pbm."""
    import duckdb

    numbers = Path(log).with_suffix(".numbers")
    number = int(contexts)
    if kind == "real":
        _write_real(numbers, int(lists))
    else:
        _write(world("pbm", number), numbers, int(lists))
    lists_of = f"select context, items, clicks from read_parquet('{numbers}')"
    if names == "text":
        item = "list_transform(items, lambda item: 'item-' || item)"
        lists_of = f"select 'query ' || context as context, {item} as items, clicks from ({lists_of})"
    if layout == "rows":
        lists_of = (
            "select number as impression, context, unnest(items) as item, unnest(clicks) as click, "
            "unnest(range(1, len(items) + 1)) as position "
            f"from (select row_number() over () as number, * from ({lists_of}))"
        )
    with duckdb.connect(config={"memory_limit": "4GB", "temp_directory": f"{log}.tmp"}) as connection:
        connection.execute(f"copy ({lists_of}) to '{log}' (format parquet, compression zstd)")
    numbers.unlink()


def _write(world: "World", target: Path, lists: int) -> None:
    from prudent.click_models.simulate import write_log

    part = target.with_suffix(".parquet.part.parquet")
    write_log(world, lists, part, seed=1)
    part.rename(target)


def _write_real(target: Path, lists: int) -> None:
    """Lists of a few contexts, each of which stands for every thousandth: they differ in their items' names."""
    import duckdb
    import numpy as np

    # Rows are the ranks of one of these contexts.
    weight = 1 / (np.arange(RANKS).reshape(-1, ALIKE).T + 1)
    share = weight.sum(axis=1)
    _write(replace(world("pbm", ALIKE), share=share / share.sum()), target, lists)
    source = f"read_parquet('{target}')"
    few = duckdb.execute(f"select context from {source}").fetchnumpy()["context"]
    upto = np.cumsum(weight, axis=1)
    random = np.random.default_rng(1).random(lists) * upto[few, -1]
    rank = np.empty(lists, np.int64)
    for context in range(ALIKE):
        here = few == context
        rank[here] = np.searchsorted(upto[context], random[here]) * ALIKE + context
    with duckdb.connect() as connection:
        connection.register("ranks", {"rank": rank})
        items = "list_transform(items, lambda item: item + 100_000 * rank)"
        part = f"{target}.ranked"
        connection.execute(
            f"copy (select rank as context, {items} as items, clicks from {source} positional join ranks) "
            f"to '{part}' (format parquet)"
        )
    Path(part).rename(target)


def megabytes(file: Path) -> float:
    return file.stat().st_size / 1e6
