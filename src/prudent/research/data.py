"""What experiments run on: the real files a researcher has, or synthetic data of the same shape."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from prudent.base.arrays import IntArray
from prudent.base.errors import LogError, PrudentWarning
from prudent.click_models.world import clicked
from prudent.counts.lists import ListBatch
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.formats import find_text_files
from prudent.logs.readers import read_yandex, read_yandex_personalized
from prudent.research.labels import read_labels
from prudent.research.sources import LENGTH, YandexLike, draw_lists
from prudent.storage.files import TemporaryFolder
from prudent.storage.quoting import file_text

MOST_QUERIES = 100
"""Contexts of a click log that experiments use at most: the most frequent ones."""

MIN_IMPRESSIONS = 50
"""Impressions that an item needs before a truth is fitted to its clicks."""


@dataclass(frozen=True, eq=False)
class ClickLog:
    """The most frequent contexts of a real log, the first positions of their lists, in three parts by time.

    Contexts are numbered by frequency, the most frequent first. The parts are the days that the paper keeps apart:
    1 to 5, 6 to 23, and the rest; of a log without days, the first file, nothing, and the other files.
    """

    name: str
    contexts: IntArray  # of each pair, ascending
    parts: tuple[ListBatch, ...]

    def top(self, contexts: int, parts: slice = slice(None)) -> ListBatch:
        """The lists of so many contexts in these parts; pairs keep their numbers."""
        chosen = self.parts[parts]
        items = np.concatenate([part.items for part in chosen])
        clicks = np.concatenate([part.clicks for part in chosen])
        n = np.concatenate([part.n for part in chosen])
        among = self.contexts < contexts
        kept = among[items[:, 0]]
        return ListBatch(self.contexts[among], items[kept], clicks[kept], n[kept])

    @property
    def size(self) -> int:
        """How many contexts there are."""
        return int(self.contexts[-1]) + 1


_LISTS = "select context, items, clicks, count(*) as n from shown group by context, items, clicks"


def read_click_log(files: Sequence[str | PathLike[str]], form: str) -> ClickLog:
    """A click log of Yandex, in either layout."""
    paths = find_text_files(files)
    engine = DuckDB()
    if form == "yandex":
        if len(paths) < 2:
            raise LogError(
                f"{paths[0]} is one file, and in this layout only the order of files is the order of time. "
                "Name two or more, in the order of time."
            )
        logs = [read_yandex(paths[:1], engine=engine), None, read_yandex(paths[1:], engine=engine)]
    else:
        days = ((1, 5), (6, 23), (24, 10_000))
        logs = [read_yandex_personalized(paths, days=span, engine=engine) for span in days]
    folder = TemporaryFolder()
    files_of = [folder.path / f"{number}.parquet" for number in range(3)]
    for log, file in zip(logs, files_of, strict=True):
        if (
            log is not None and (tally := engine.lists(log, _LISTS, file, length=LENGTH)).rejected_lists
        ):  # a part may be empty
            warnings.warn(
                f"{tally.rejected_lists:,} lists are left out: {'; '.join(tally.reasons)}.",
                PrudentWarning,
                stacklevel=2,
            )
    parts = " union all ".join(
        f"select {number} as part, context, items, clicks, n from read_parquet({file_text(file)})"
        for number, (log, file) in enumerate(zip(logs, files_of, strict=True))
        if log is not None
    )
    with engine.connect() as connection:
        run = connection.execute
        # Lists that are shorter than the ones compared have no place in them.
        run(f"create temp table shown as select * from ({parts}) where len(items) = {LENGTH}")
        run(
            "create temp table frequent as select context, row_number() over (order by sum(n) desc, context) - 1 "
            f"as number from shown group by context order by number limit {MOST_QUERIES}"
        )
        # In an order of their own: that in which lists come from the engine differs from run to run, and draws with it.
        run(
            "create temp table lists as select row_number() over (order by part, number, items, clicks) as list, "
            "shown.* from shown join frequent using (context)"
        )
        run(
            "create temp table pairs as select row_number() over (order by number, item) - 1 as pair, * from ("
            "select distinct number, context, item "
            "from (select context, unnest(items) as item from lists) join frequent using (context))"
        )
        context = run("select number from pairs order by pair").fetchnumpy()["number"]
        shown = run(
            "select part, list, position, pair, click, n from (select part, list, context, n, unnest(items) as item, "
            f"unnest(range({LENGTH})) as position, unnest(clicks) = 1 as click from lists) "
            "join pairs using (context, item) order by part, list, position"
        ).fetchnumpy()
    if not len(context):
        raise LogError(f"No valid list of {', '.join(map(str, paths))} has {LENGTH} positions.")
    table = {name: column.reshape(-1, LENGTH) for name, column in shown.items()}
    every = [
        ListBatch(context, table["pair"][rows], table["click"][rows], table["n"][rows, 0])
        for rows in (table["part"][:, 0] == number for number in range(3))
    ]
    return ClickLog(", ".join(file.name for file in paths), context, tuple(every))


def synthetic_log(seed: int) -> ClickLog:
    """A simulated click log in place of a real one: Yandex-like queries, users who click by position."""
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    world, _ = YandexLike("pbm", contexts=20).draw(1, random)
    lists = [clicked(world, draw_lists(world, n, random), random) for n in (2_000, 8_000, 4_000)]
    return ClickLog("a simulated log", lists[0].context, tuple(lists))


@dataclass(frozen=True, eq=False)
class LabelSet:
    """The labels of a set of queries."""

    name: str
    label: IntArray  # of each document, query by query
    sizes: IntArray  # documents of each query


def read_label_set(files: Sequence[str | PathLike[str]]) -> LabelSet:
    """Labels in the layout of LETOR; queries with too few documents for a list are left out."""
    labels = read_labels([Path(file) for file in files])
    sizes = np.bincount(labels.query)
    kept = sizes >= LENGTH
    if not kept.any():
        raise LogError(f"No query has {LENGTH} labelled documents.")
    name = ", ".join(Path(file).name for file in files)
    return LabelSet(name, labels.label[kept[labels.query]], sizes[kept])
