"""Judgments: a grade for every item of every context, with its evidence; read, write, show."""

from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import duckdb

from prudent.base.errors import UsageError
from prudent.base.results import Result
from prudent.base.spec import as_number, whole_number
from prudent.base.text import Column, Columns, Rows, number, percent, several
from prudent.policies.judgments.grades import GRADES
from prudent.policies.judgments.ndcg import Ndcg, join, ndcg_interval
from prudent.policies.policy import Policy, as_policy
from prudent.policies.table_file import FRACTION, FRACTIONS, NAME, WHOLE, TableFile
from prudent.storage.manifest import Manifest

_FLOATS = ("confidence", "mean", "lower", "upper", "deviation", "positive", "negative")
COLUMNS = ("context", "item", "grade", *_FLOATS, "impressions", "shared")
"""Of the file of judgments."""
_COLUMNS = (
    Column("context", object),
    Column("item", object),
    Column("grade", int),
    *(Column(name, float) for name in _FLOATS),
    Column("impressions", int),
    Column("shared", object),
)
_IMPOSSIBLE = " or ".join(
    [
        "context is null or item is null or impressions is null or grade is null or grade not between 0 and 4",
        *(f"{name} is null or not isfinite({name})" for name in _FLOATS),
        "least(confidence, mean, lower, positive, negative, impressions) < 0 or greatest(mean, lower, upper) > 1",
        "deviation <= 0 or confidence > 1.000001",
        "shared is null or list_count(shared) <> len(shared) or not isfinite(coalesce(list_sum(shared), 0))",
    ]
)
"""In SQL, whether a row cannot be a judgment."""

_TYPES = {"context": NAME, "item": NAME, "grade": WHOLE, "impressions": WHOLE, "shared": FRACTIONS}
FILE = TableFile(
    "judgments",
    "prudent judge",
    {name: _TYPES.get(name, FRACTION) for name in COLUMNS},
    "context, item",
    (
        f"select count(*) from judgments where {_IMPOSSIBLE}",
        "select count(*) - count(distinct (context, item)) from judgments",
        "select greatest(count(distinct len(shared)), 1) - 1 from judgments",
    ),
)


@dataclass(frozen=True, eq=False, repr=False)
class Judgments(Result):
    """A grade 0 to 4 for every item of every context, with the estimate, its interval and a confidence.

    ``confidence`` is the posterior probability of the grade; ``mean`` the estimate of attraction, ``lower`` to
    ``upper`` its interval and ``deviation`` its posterior standard deviation; ``positive``, ``negative`` and
    ``impressions`` are the evidence; ``shared`` is by how much the logit of ``mean`` moves with one standard error of
    the fitted prior, in each independent direction of it, as all items do together. ``thresholds`` are the attractions
    that the grades 1 to 4 start at.

    >>> import prudent, pyarrow as pa
    >>> lists = [{"context": "shoes", "items": ["i1", "i2"], "clicks": [0, 1]}] * 90
    >>> judgments = prudent.judge(pa.Table.from_pylist(lists), "cm", thresholds=[0.1, 0.2, 0.4, 0.6])
    >>> isinstance(judgments, prudent.Judgments), judgments.thresholds
    (True, (0.1, 0.2, 0.4, 0.6))
    """

    connection: duckdb.DuckDBPyConnection
    manifest: Manifest  # model, bound and thresholds, and what it was made from
    files: tuple[Path, ...] = ()  # that it was made or read from

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Judgments":
        """Read judgments from the file that `write` made."""
        connection, manifest, file = FILE.read(path, lambda found: _is_thresholds(found.settings.get("thresholds")))
        return cls(connection, manifest, (file,))

    def write(self, path: str | PathLike[str]) -> None:
        """Write them to a Parquet file with its manifest in the footer and beside it."""
        FILE.write(self.connection, self.manifest, path, self.files)

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The attractions that the grades 1 to 4 start at."""
        return tuple(self.manifest.settings["thresholds"])

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the file."""
        return _COLUMNS

    def rows(self) -> Rows:
        """The judgments in the order of contexts and items."""
        return self.relation().fetchall()

    def relation(self) -> duckdb.DuckDBPyRelation:
        """The judgments as a DuckDB relation, in the order of contexts and items."""
        return FILE.relation(self.connection)

    @property
    def summary(self) -> dict[str, Any]:
        """How many contexts, pairs of context and item, and pairs of each grade there are, and the mean confidence."""
        grades = "select grade, count(*) from judgments group by grade order by grade"
        # A sum of floats would depend on the order of rows.
        mean = "avg(round(confidence, 9)::decimal(18, 9))::double"
        totals = f"select count(distinct context), count(*), {mean} from judgments"
        ((contexts, pairs, certain),) = self.connection.execute(totals).fetchall()
        held = {str(grade): n for grade, n in self.connection.execute(grades).fetchall()}
        return {"contexts": contexts, "pairs": pairs, "grades": held, "confidence": certain}

    def ndcg(
        self,
        policy: Policy | str | PathLike[str],
        *,
        k: int = 10,
        confidence: float = 0.95,
        draws: int = 1000,
        seed: int = 0,
    ) -> Ndcg:
        """The mean nDCG@k of a policy's lists by these judgments, with an interval.

        The gain of an item is ``2^grade − 1``, and 0 without a judgment. Attractions are drawn from their posteriors so
        many times, with errors of the prior that all items share, and graded by the thresholds; estimate and interval
        are those of the nDCG over the draws.
        See `prudent.policies.judgments.ndcg.ndcg_interval` for what the interval leaves out.

        >>> import prudent, pyarrow as pa
        >>> lists = [{"context": "shoes", "items": ["i1", "i2"], "clicks": [0, 1]}] * 90
        >>> log = pa.Table.from_pylist(lists)
        >>> judgments = prudent.judge(log, "cm", thresholds=[0.1, 0.2, 0.4, 0.6])
        >>> print(judgments.ndcg(prudent.rank(log, "cm")))
        nDCG@10 1.000, 95% interval 1.000 to 1.000, of 1 list
        """
        if not 0 < as_number(confidence) < 1:
            raise UsageError(f"confidence is {confidence}; it must be a number above 0 and below 1.")
        top, times = whole_number("k", k, 1), whole_number("draws", draws, 2)
        judged, unjudged = join(self.connection, as_policy(policy), top)
        return ndcg_interval(judged, unjudged, self.thresholds, top, confidence, times, seed)

    def __len__(self) -> int:
        return int(self.summary["pairs"])

    @property
    def title(self) -> str:
        """How many there are, and what made them."""
        settings, summary = self.manifest.settings, self.summary
        by = f"{settings.get('model')}, {settings.get('bound')}"
        return f"Judgments of {several(summary['pairs'], 'item')} in {several(summary['contexts'], 'context')} by {by}"

    def table(self) -> tuple[Columns, Rows]:
        """How many items have which grade."""
        summary = self.summary
        edges = ["0", *(number(value, 4) for value in self.thresholds), "1"]
        ranges = [f"{low} to {high}" for low, high in pairwise(edges)]
        held = [(n, ranges[n], summary["grades"].get(str(n), 0)) for n in range(len(ranges))]
        shares = [(*row, percent(row[2] / max(1, summary["pairs"]), 0)) for row in held]
        return [Column("grade", int), Column("attraction", str), Column("items", int), Column("share", str)], shares

    def __repr__(self) -> str:
        return self.title


def _is_thresholds(content: object) -> bool:
    """Whether these are the thresholds of a manifest, which is untrusted."""
    if not isinstance(content, list) or not all(isinstance(value, float) for value in content):
        return False
    return len(content) == GRADES - 1 and content == sorted(content)


def as_judgments(source: Judgments | str | PathLike[str]) -> Judgments:
    """The judgments, or those in a file."""
    if isinstance(source, str | PathLike):
        return Judgments.read(source)
    if isinstance(source, Judgments):
        return source
    raise UsageError(f"A {type(source).__name__} has no judgments: give Judgments or the path of their file.")
