"""Comparing click models on logs."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from prudent.base.errors import PrudentWarning, UsageError
from prudent.base.spec import as_number, whole_number
from prudent.click_models.base import ClickModel
from prudent.click_models.comparison import Comparison
from prudent.click_models.likelihood import in_order, split_lists
from prudent.click_models.selection import HOLDOUT, compare_lists, read_models
from prudent.counts.counts import Counts
from prudent.counts.lists import ListBatch, read_lists
from prudent.counts.max_rejected import MAX_REJECTED, check_max_rejected
from prudent.counts.split import By, files_behind, split
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.log import Log
from prudent.storage.files import TemporaryFolder
from prudent.storage.manifest import Manifest, Source

MOST_LISTS = 2_000_000
"""Lists to compare on; of a larger log, all lists of some contexts."""


def compare(
    log: Log,
    test: Log | None = None,
    *,
    models: Sequence[str | ClickModel] | str | None = None,
    holdout: float = HOLDOUT,
    by: By = "hash",
    time: str | None = None,
    seed: int = 0,
    length: int | None = None,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
) -> Comparison:
    """Fit click models to one part of a log and score them on the other; see `prudent.click_models.selection`.

    Of a log with more than two million lists, a sample of contexts is compared, with all of their lists.

    test
        The lists to score on, such as those of later days. Without it, a holdout of the log.
    models
        Spellings such as ``"dcm(tail=truncate)"``, or click models. Without any, all that are registered.
    holdout, by, time, seed
        The share of lists to hold out. By ``"hash"`` it is random: the same for every order of rows, another for
        another seed. By ``"time"`` it is the latest lists, by the column `time`.
    length
        Positions to compare; without it, whole lists.
    """
    chosen = read_models(models)
    how = TwoParts("compare", test, holdout, by, time, whole_number("seed", seed, 0))
    train, held_out, about = how.read(log, length, engine or DuckDB(), max_rejected, MOST_LISTS)
    return replace(compare_lists(train, held_out, chosen), manifest=about)


@dataclass(frozen=True)
class TwoParts:
    """How a log is split into training lists and a holdout."""

    what: str  # the calling function
    test: Log | None
    holdout: float
    by: By
    time: str | None
    seed: int

    def read(
        self, log: Log, length: int | None, engine: DuckDB, max_rejected: float, most: int
    ) -> tuple[ListBatch, ListBatch, Manifest]:
        """Both parts, and the manifest of a comparison of them."""
        for given in (log, log if self.test is None else self.test):
            self._check(given)
        if reason := self._not_apart(log):
            warnings.warn(reason, PrudentWarning, stacklevel=3)
        check_max_rejected(max_rejected)
        length = None if length is None else whole_number("length", length, 1)
        folder = TemporaryFolder()
        logs = self._logs(log, folder, engine)
        _, parts, tallies = read_lists(logs, engine, length=length, max_rejected=max_rejected, most=most)
        roles = ("log",) if len(logs) == 1 else ("training", "holdout")
        sources = {
            role: Source(tuple(part.names), tally) for role, part, tally in zip(roles, logs, tallies, strict=True)
        }
        about = Manifest("comparison", {"length": length, "split": self._rule()}, sources)
        one, other = split_lists(parts[0], self.holdout, self.seed) if len(parts) == 1 else map(in_order, parts)
        return one, other, about

    def _check(self, log: Log) -> None:
        if isinstance(log, Counts):
            raise UsageError(f"{self.what} needs the log itself: counts do not keep whole lists.")
        if not isinstance(log, Log):
            raise UsageError(
                f"{self.what} takes a Log, not a {type(log).__name__}: prudent.{self.what}(prudent.Log(...))."
            )
        if not 0 < as_number(self.holdout) < 1:
            raise UsageError(f"holdout is {self.holdout!r}; it is a share, above 0 and below 1.")
        if self.by not in ("hash", "time"):
            raise UsageError(f"Cannot split by {self.by!r}. Known: hash, time.")
        if self.test is not None and (self.holdout, self.by, self.time) != (HOLDOUT, "hash", None):
            raise UsageError("With a test log, nothing is held out: drop --holdout, --by and --time.")
        if (self.by == "time") != (self.time is not None):
            raise UsageError("Name the column of the time with by='time' (--by time --time COLUMN), and only then.")

    def _not_apart(self, log: Log) -> str:
        """Leakage: files that are in both parts; empty where there are none."""
        if self.test is None:
            return ""
        mine, theirs = (files_behind(of.names) if of.in_files else set() for of in (log, self.test))
        both = sorted(mine & theirs)
        if not both and log.source is not self.test.source:
            return ""
        return (
            f"{both[0].name if both else log.name} is both fitted and scored: its scores are too good. Use another "
            "test log, or none, so that a part is held out."
        )

    def _logs(self, log: Log, folder: TemporaryFolder, engine: DuckDB) -> list[Log]:
        """One log that is yet to be split at random, or two."""
        if self.test is not None:
            return [log, self.test]
        if self.by == "hash":
            return [log]
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
