"""Comparing click models on logs."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from prudent.base.chart import check_chart, render_chart
from prudent.base.errors import PrudentWarning, UsageError
from prudent.base.spec import as_number, whole_number
from prudent.click_models.base import ClickModel
from prudent.click_models.comparison import Comparison
from prudent.click_models.likelihood import in_order, split_lists
from prudent.click_models.selection import HOLDOUT, compare_lists, read_models
from prudent.counts.counts import Counts
from prudent.counts.lists import ListBatch, check_same_kinds, numbered_together, read_lists, sample_together
from prudent.counts.max_rejected import MAX_REJECTED, check_max_rejected
from prudent.counts.split import By, split
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.files_behind import files_behind
from prudent.logs.formats import find_files
from prudent.logs.log import Log, as_log
from prudent.storage.counts_file import Piece
from prudent.storage.files import TemporaryFolder, check_output, replacing
from prudent.storage.manifest import Manifest, Source

MOST_LISTS = 2_000_000
"""Lists to compare on; of a larger log, all lists of some contexts."""


def compare(
    log: Any,
    test: Any = None,
    *,
    model: Sequence[str | ClickModel] | str | ClickModel | None = None,
    holdout: float = HOLDOUT,
    by: By = "hash",
    time: str | None = None,
    seed: int = 0,
    length: int | None = None,
    to: str | PathLike[str] | None = None,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
    **columns: Any,
) -> Comparison:
    """Fit click models to one part of a log and score them on the other; see `prudent.click_models.selection`.

    Of a log with more than two million lists, a sample of contexts is compared, with all of their lists.

    log
        A path, several, a table or a `Log`; `columns` are arguments of `as_log`, such as the names of columns.
    test
        The lists to score on, such as those of later days. Without it, a holdout of the log.
    model
        A click model or several: spellings such as ``"dcm(tail=truncate)"``, or objects. Without any, all that are
        registered.
    holdout, by, time, seed
        The share of lists to hold out. By ``"hash"`` it is random: the same for every order of rows, another for
        another seed. By ``"time"`` it is the latest lists, by the column `time`.
    length
        Positions to compare; without it, whole lists.
    to
        A chart to write, ``.svg`` or ``.png``; needs the extra ``report``.

    >>> import prudent, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = prudent.simulate(f"{folder}/log.parquet", lists=2_000, contexts=5, items=(4, 6), length=3)
    ...     comparison = prudent.compare(f"{folder}/log.parquet", model=["pbm", "cm"])
    >>> comparison.winner
    'pbm'
    """
    chosen = read_models(model)
    how = TwoParts("compare", test, holdout, by, time, whole_number("seed", seed, 0), columns)
    train, held_out, about = how.read(log, length, engine or DuckDB(), max_rejected, MOST_LISTS, to)
    comparison = replace(compare_lists(train, held_out, chosen), manifest=about)
    write_chart(comparison, to)
    return comparison


def compare_read(
    logs: Sequence[Log],
    lists: Sequence[tuple[Piece, str]],
    model: Sequence[str | ClickModel],
    engine: DuckDB,
    most: int,
) -> Comparison:
    """The same for one log, or for a training log and a holdout, of which a sample of whole lists was read already.

    With each sample comes its threshold. Of more than `most` lists together, a smaller sample is compared.
    """
    if len(logs) > 1 and (reason := _not_apart(*logs)):
        warnings.warn(reason, PrudentWarning, stacklevel=3)
    pieces, thresholds = zip(*lists, strict=True)
    check_same_kinds(logs, pieces)
    if len(pieces) > 1:
        pieces = tuple(sample_together(engine, pieces, most, min(thresholds)))
    parts = numbered_together(pieces)
    train, test = split_lists(parts[0], HOLDOUT, 0) if len(parts) == 1 else map(in_order, parts)
    return compare_lists(train, test, read_models(model))


@dataclass(frozen=True)
class TwoParts:
    """How a log is split into training lists and a holdout."""

    what: str  # the calling function
    test: Any
    holdout: float
    by: By
    time: str | None
    seed: int
    columns: Mapping[str, Any]  # of both logs; arguments of `as_log`

    def read(
        self,
        log: Any,
        length: int | None,
        engine: DuckDB,
        max_rejected: float,
        most: int,
        chart: str | PathLike[str] | None,
    ) -> tuple[ListBatch, ListBatch, Manifest]:
        """Both parts, and the manifest of a comparison of them; `chart` is the file that will show it."""
        self._check()
        log, test = self._open(log, engine), None if self.test is None else self._open(self.test, engine)
        opened = [log] if test is None else [log, test]
        if chart is not None:
            check_chart(chart)
            check_output(
                chart, [file for one in opened if one.in_files for file in find_files(one.names)], parquet=False
            )
        if reason := _not_apart(log, test):
            warnings.warn(reason, PrudentWarning, stacklevel=3)
        check_max_rejected(max_rejected)
        length = None if length is None else whole_number("length", length, 1)
        folder = TemporaryFolder()
        logs = opened if test is not None or self.by == "hash" else self._by_time(log, folder, engine)
        parts, tallies = read_lists(logs, engine, length=length, max_rejected=max_rejected, most=most)
        roles = ("log",) if len(logs) == 1 else ("training", "holdout")
        sources = {
            role: Source(tuple(part.names), tally) for role, part, tally in zip(roles, logs, tallies, strict=True)
        }
        about = Manifest("comparison", {"length": length, "split": self._rule()}, sources)
        one, other = split_lists(parts[0], self.holdout, self.seed) if len(parts) == 1 else map(in_order, parts)
        return one, other, about

    def _check(self) -> None:
        if not 0 < as_number(self.holdout) < 1:
            raise UsageError(f"holdout is {self.holdout!r}; it is a share, above 0 and below 1.")
        if self.by not in ("hash", "time"):
            raise UsageError(f"Cannot split by {self.by!r}. Known: hash, time.")
        if self.test is not None and (self.holdout, self.by, self.time) != (HOLDOUT, "hash", None):
            raise UsageError(
                "With a test log, nothing is held out: leave out holdout (--holdout), by (--by) and time (--time)."
            )
        if (self.by == "time") != (self.time is not None):
            raise UsageError("Name the column of the time with by='time' (--by time --time COLUMN), and only then.")

    def _open(self, log: Any, engine: DuckDB) -> Log:
        if isinstance(log, Counts):
            raise UsageError(f"{self.what} needs the log itself: counts do not keep whole lists.")
        return as_log(log, engine=engine, **self.columns)

    def _by_time(self, log: Log, folder: TemporaryFolder, engine: DuckDB) -> list[Log]:
        """The earlier and the later lists."""
        parts = split(log, folder.path, holdout=self.holdout, by="time", time=self.time, engine=engine)
        return [
            replace(log, source=str(part.path), origin=tuple(log.names), left_out={})
            for part in (parts.train, parts.holdout)
        ]

    def _rule(self) -> dict[str, Any]:
        if self.test is not None:
            return {"by": "log"}
        return {
            "by": self.by,
            "holdout": self.holdout,
            **({"seed": self.seed} if self.time is None else {"time": self.time}),
        }


def _not_apart(log: Log, test: Log | None) -> str:
    """Leakage: files that are in both parts; empty where there are none."""
    if test is None:
        return ""
    mine, theirs = (files_behind(one.names) if one.in_files else set() for one in (log, test))
    both = sorted(mine & theirs)
    if not both and log.source is not test.source:
        return ""
    return (
        f"{both[0].name if both else log.name} is both fitted and scored: its scores are too good. Use another "
        "test log, or none, so that a part is held out."
    )


def write_chart(result: Any, to: str | PathLike[str] | None) -> None:
    """Write the chart of a result, where a file is named for it."""
    if to is not None:
        with replacing(to) as part:
            part.write_bytes(render_chart(result.chart(), to))
