"""Exploration: a few lists for each context, each with the probability of being shown; read, write, draw."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, SupportsIndex

import duckdb
import numpy as np

from prudent.base.errors import UnknownContextError
from prudent.base.results import Result
from prudent.base.spec import check_number
from prudent.base.text import Column, Columns, Rows, number, percent, several
from prudent.policies.exploration.price import PURPOSES
from prudent.policies.export.base import WEIGHTED
from prudent.policies.table_file import FRACTION, NAME, TEXT, WHOLE, TableFile
from prudent.storage.manifest import Manifest

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

_TYPES = {"context": NAME, "variant": WHOLE, "probability": FRACTION, "purpose": TEXT, "rank": WHOLE, "item": NAME}
FILE = TableFile(
    "exploration",
    "prudent explore",
    {name: _TYPES[name] for name in WEIGHTED},
    "context, variant, rank",
    (f"select count(*) from exploration where {_IMPOSSIBLE}", _WRONG_LISTS, _WRONG_CONTEXTS),
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
        connection, manifest, file = FILE.read(path, _has_summary)
        return cls(connection, manifest, (file,))

    def write(self, path: str | PathLike[str]) -> None:
        """Write it to a Parquet file with its manifest in the footer and beside it."""
        FILE.write(self.connection, self.manifest, path, self.files)

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
        return FILE.relation(self.connection)

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
