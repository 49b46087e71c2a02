"""Judgments: a grade for every item of every context, with its evidence; read, write, show."""

from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import duckdb

from prudent.base.errors import PolicyError, UsageError
from prudent.base.results import Result
from prudent.base.spec import as_number, whole_number
from prudent.base.text import Column, Columns, Rows, number, percent, several
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import INTEGERS
from prudent.logs.formats import find_files
from prudent.policies.files import check_bytes
from prudent.policies.judgments.grades import GRADES
from prudent.policies.judgments.ndcg import Ndcg, join, ndcg_interval
from prudent.policies.policy import Policy, as_policy
from prudent.storage.files import check_not_read, replacing
from prudent.storage.locks import unchanged
from prudent.storage.manifest import Manifest
from prudent.storage.parquet import write_parquet
from prudent.storage.quoting import file_text

_FLOATS = ("confidence", "mean", "lower", "upper", "deviation", "positive", "negative")
COLUMNS = ("context", "item", "grade", *_FLOATS, "impressions")
"""Of the file of judgments."""
_COLUMNS = (
    Column("context", object),
    Column("item", object),
    Column("grade", int),
    *(Column(name, float) for name in _FLOATS),
    Column("impressions", int),
)
_IMPOSSIBLE = " or ".join(
    [
        "context is null or item is null or impressions is null or grade is null or grade not between 0 and 4",
        *(f"{name} is null or not isfinite({name})" for name in _FLOATS),
        "least(confidence, mean, lower, positive, negative, impressions) < 0 or greatest(mean, lower, upper) > 1",
        "deviation <= 0 or confidence > 1.000001",
    ]
)
"""In SQL, whether a row cannot be a judgment."""


@dataclass(frozen=True, eq=False, repr=False)
class Judgments(Result):
    """A grade 0 to 4 for every item of every context, with the estimate, its interval and a confidence.

    ``confidence`` is the posterior probability of the grade; ``mean`` the estimate of attraction, ``lower`` to
    ``upper`` its interval and ``deviation`` its posterior standard deviation; ``positive``, ``negative`` and
    ``impressions`` are the evidence. ``thresholds`` are the attractions that the grades 1 to 4 start at.

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
        files = find_files([path])
        if len(files) != 1:
            raise PolicyError(f"{path} names {len(files)} files. Read one file of judgments at a time.")
        file, connection = files[0], DuckDB().open()
        rows = f"read_parquet({file_text(file)}, hive_partitioning = false)"
        try:
            with unchanged(files, PolicyError):  # rows and manifest are of one file
                check_bytes(connection, files)
                if not has_judgments(connection, file):
                    raise PolicyError(f"{file} has no judgments. Write them with prudent judge.")
                connection.execute(f"create temp table judgments as from {rows} order by context, item")
                manifest = Manifest.read(file, "judgments")
            query = f"select (select count(*) from judgments where {_IMPOSSIBLE}), count(*), "
            query += "count(distinct (context, item)) from judgments"
            ((wrong, all_rows, distinct),) = connection.execute(query).fetchall()
        except duckdb.Error as error:
            raise PolicyError(f"Cannot read {file} as judgments: {str(error).splitlines()[0]}") from error
        if wrong or distinct != all_rows or manifest is None or not _is_thresholds(manifest.settings.get("thresholds")):
            raise PolicyError(f"{file} is not as prudent judge wrote it. Write or copy it again.")
        return cls(connection, manifest, (file.resolve(),))

    def write(self, path: str | PathLike[str]) -> None:
        """Write them to a Parquet file with its manifest in the footer and beside it."""
        check_not_read(path, self.files)
        with replacing(path) as part:
            rows = "from judgments order by context, item"  # the bytes depend on the order in which rows arrive
            write_parquet(self.connection, rows, part, footer=self.manifest.footer)
        self.manifest.write(path)

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
        return self.connection.sql("from judgments order by context, item")

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
        many times and graded by the thresholds; estimate and interval are those of the nDCG over the draws.
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


def has_judgments(connection: duckdb.DuckDBPyConnection, file: str | PathLike[str]) -> bool:
    """Whether a file has the columns of judgments."""
    try:
        described = connection.execute(f"describe from read_parquet({file_text(Path(file))})").fetchall()
    except duckdb.Error:
        return False
    kinds: dict[str, Any] = {row[0]: row[1] for row in described}
    numbers = all(kinds.get(name) == "DOUBLE" for name in _FLOATS)
    return tuple(kinds) == COLUMNS and numbers and {kinds["grade"], kinds["impressions"]} <= set(INTEGERS)


def as_judgments(source: Judgments | str | PathLike[str]) -> Judgments:
    """The judgments, or those in a file."""
    if isinstance(source, str | PathLike):
        return Judgments.read(source)
    if isinstance(source, Judgments):
        return source
    raise UsageError(f"A {type(source).__name__} has no judgments: give Judgments or the path of their file.")
