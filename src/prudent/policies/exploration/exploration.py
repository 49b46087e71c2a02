"""Exploration: a few lists for each context, each with the probability of being shown; read, write, draw."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, SupportsIndex

import duckdb
import numpy as np

from prudent.base.errors import PolicyError, UnknownContextError
from prudent.base.results import Result
from prudent.base.spec import check_number
from prudent.base.text import Column, Columns, Rows, number, percent, several
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import INTEGERS
from prudent.logs.formats import find_files
from prudent.policies.exploration.price import PURPOSES
from prudent.policies.export.base import WEIGHTED
from prudent.policies.files import check_bytes
from prudent.storage.files import check_not_read, replacing
from prudent.storage.locks import unchanged
from prudent.storage.manifest import Manifest
from prudent.storage.parquet import write_parquet
from prudent.storage.quoting import file_text

_COLUMNS = (
    Column("context", object),
    Column("variant", int),
    Column("probability", float),
    Column("purpose", str),
    Column("rank", int),
    Column("item", object),
)
_ROUNDING = 1e-6
_PURPOSES = ", ".join(f"'{one}'" for one in PURPOSES)
_IMPOSSIBLE = (
    "context is null or item is null or variant is null or rank is null or probability is null or purpose is null "
    f"or variant < 0 or rank < 1 or not (probability > 0 and probability <= 1) or purpose not in ({_PURPOSES})"
)
"""In SQL, whether a row cannot be one of an exploration."""
_WRONG_LISTS = (
    "select count(*) from (select context, variant, count(*) as rows, count(distinct rank) as ranks, "
    "max(rank) as last, count(distinct item) as items, min(probability) <> max(probability) as mixed from exploration "
    "group by context, variant) where ranks <> rows or last <> rows or items <> rows or mixed"
)
_WRONG_CONTEXTS = (
    f"select count(*) from (select context, abs(sum(probability) - 1) > {_ROUNDING} as off, min(variant) <> 0 as bare, "
    "count(*) <> max(variant) + 1 as gaps from exploration where rank = 1 group by context) where off or bare or gaps"
)


class Drawn(NamedTuple):
    """A list to show, and what to log with it."""

    items: list[str | int]
    variant: int
    probability: float  # the propensity to log


@dataclass(frozen=True, eq=False, repr=False)
class Exploration(Result):
    """A few lists for each context of a policy, each with a probability: variant 0 is the policy's own list.

    A row for each item: ``context``, ``variant``, ``probability`` of the variant in its context, its ``purpose``
    (``policy``, ``positions`` or ``items``), ``rank`` and ``item``. The manifest has the budget, the expected loss with
    its upper limit, and the predicted standard errors of p.

    >>> import prudent, pyarrow as pa
    >>> log = pa.Table.from_pylist([
    ...     {"context": "hats", "items": ["h1", "h2"] if n % 4 else ["h2", "h3"], "clicks": [n % 2, n % 3 // 2]}
    ...     for n in range(120)
    ... ])
    >>> exploration = prudent.explore(prudent.rank(log, "cm", length=2), budget=0.05)
    >>> isinstance(exploration, prudent.Exploration), exploration.draw("hats", 0.0).variant
    (True, 0)
    """

    connection: duckdb.DuckDBPyConnection
    manifest: Manifest
    files: tuple[Path, ...] = ()  # that it was made or read from

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Exploration":
        """Read the file that `write` made."""
        files = find_files([path])
        if len(files) != 1:
            raise PolicyError(f"{path} names {len(files)} files. Read one exploration at a time.")
        file, connection = files[0], DuckDB().open()
        rows = f"read_parquet({file_text(file)}, hive_partitioning = false)"
        try:
            with unchanged(files, PolicyError):  # rows and manifest are of one file
                check_bytes(connection, files)
                if not has_exploration(connection, file):
                    raise PolicyError(f"{file} is no exploration. Write one with prudent explore.")
                connection.execute(f"create temp table exploration as from {rows} order by context, variant, rank")
                manifest = Manifest.read(file, "exploration")
            wrong = [f"select count(*) from exploration where {_IMPOSSIBLE}", _WRONG_LISTS, _WRONG_CONTEXTS]
            faults = sum(connection.execute(query).fetchall()[0][0] for query in wrong)
        except duckdb.Error as error:
            raise PolicyError(f"Cannot read {file} as an exploration: {str(error).splitlines()[0]}") from error
        if faults or manifest is None or not _has_summary(manifest):
            raise PolicyError(f"{file} is not as prudent explore wrote it. Write or copy it again.")
        return cls(connection, manifest, (file.resolve(),))

    def write(self, path: str | PathLike[str]) -> None:
        """Write it to a Parquet file with its manifest in the footer and beside it."""
        check_not_read(path, self.files)
        with replacing(path) as part:
            rows = "from exploration order by context, variant, rank"
            write_parquet(self.connection, rows, part, footer=self.manifest.footer)
        self.manifest.write(path)

    def draw(self, context: str | SupportsIndex, at: float) -> Drawn:
        """The variant of a context at this place between 0 and 1: show its items, and log its probability.

        ``at`` is a random number, evenly distributed, or a hash of something that is: then the same visitor sees the
        same list. `prudent export` writes the lists for a server, which draws in the same way.
        """
        check_number("at", at, least=0, most=1, example="random.random()")
        name = context if isinstance(context, str) else int(context)
        text = str(self.relation().types[0]) == "VARCHAR"
        rows = []
        if isinstance(name, str) == text:
            query = "select variant, probability, item from exploration where context = ? order by variant, rank"
            rows = self.connection.execute(query, [name]).fetchall()
        if not rows:
            raise UnknownContextError(f"No list for {name!r}. Keep your own ranking there.")
        probability = {variant: share for variant, share, _ in rows}
        upto = np.cumsum(list(probability.values()))
        variant = min(int(np.searchsorted(upto, at, side="right")), len(upto) - 1)
        return Drawn([item for one, _, item in rows if one == variant], variant, probability[variant])

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the file."""
        return _COLUMNS

    def rows(self) -> Rows:
        """The lists item by item, in the order of contexts, variants and ranks."""
        return self.relation().fetchall()

    def relation(self) -> duckdb.DuckDBPyRelation:
        """The same as a DuckDB relation."""
        return self.connection.sql("from exploration order by context, variant, rank")

    @property
    def summary(self) -> Mapping[str, Any]:
        """Contexts, variants, the loss and its upper limit, and what is predicted of p: plain JSON."""
        return self.manifest.results

    @property
    def title(self) -> str:
        """How many lists it has, and what they cost."""
        lists, loss = self.summary["lists"], self.summary["loss"]
        return (
            f"{several(lists['variants'], 'variant')} of the lists of {lists['explored']:,} of "
            f"{several(lists['contexts'], 'context')}; expected loss {percent(loss['expected'], 2)}, at most "
            f"{percent(loss['at_most'], 2)} with confidence {percent(loss['confidence'], 0)}"
        )

    def table(self) -> tuple[Columns, Rows]:
        """What it costs, and what is predicted of the examination probabilities."""
        lists, loss, positions = (self.summary[name] for name in ("lists", "loss", "positions"))
        rows: list[tuple[str, str, str]] = [
            ("budget", percent(self.manifest.settings["budget"], 3), "of the value of the policy"),
            ("expected loss", percent(loss["expected"], 3), "of the value of the policy"),
            ("loss at most", percent(loss["at_most"], 3), f"with confidence {percent(loss['confidence'], 0)}"),
            ("lists explored", percent(lists["traffic"], 2), "of the traffic"),
            ("swaps", f"{lists['positions']:,}", "of two positions"),
            ("items tried", f"{lists['items']:,}", "in place of a listed one"),
        ]
        if positions.get("after") is not None:
            rows += [
                ("standard error of p", number(positions["now"], 4), "by the log"),
                ("standard error of p", number(positions["after"], 4), "predicted for the coming lists alone"),
            ]
        return [Column("exploration", str), Column("value", str), Column("meaning", str)], rows

    @property
    def notes(self) -> list[str]:
        """What was left out, and why."""
        return [str(note) for note in self.summary.get("notes", [])]

    def __repr__(self) -> str:
        return self.title


_NUMBERS = {
    "lists": ("contexts", "explored", "variants", "positions", "items", "traffic"),
    "loss": ("expected", "at_most", "confidence"),
}


def _has_summary(manifest: Manifest) -> bool:
    """Whether a manifest, which is untrusted, has what is shown."""
    results, positions = manifest.results, manifest.results.get("positions")
    parts = [results.get(name) for name in _NUMBERS]
    if not isinstance(positions, dict) or not all(isinstance(part, dict) for part in parts):
        return False
    errors = [positions.get(name) for name in ("now", "after")]
    numbers = [results[name].get(key) for name, keys in _NUMBERS.items() for key in keys]
    numbers.append(manifest.settings.get("budget"))
    known = all(type(one) in (int, float) for one in numbers)
    return known and all(one is None or type(one) in (int, float) for one in errors)


def has_exploration(connection: duckdb.DuckDBPyConnection, file: str | PathLike[str]) -> bool:
    """Whether a file has the columns of an exploration."""
    try:
        described = connection.execute(f"describe from read_parquet({file_text(Path(file))})").fetchall()
    except duckdb.Error:
        return False
    kinds: dict[str, Any] = {row[0]: row[1] for row in described}
    if tuple(kinds) != WEIGHTED or kinds["probability"] != "DOUBLE" or kinds["purpose"] != "VARCHAR":
        return False
    return {kinds["variant"], kinds["rank"]} <= set(INTEGERS)
