"""What every export format has: a query for the bytes of its file, and a check for names that it cannot hold."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import duckdb

from prudent.base.errors import PolicyError, UsageError
from prudent.base.spec import Registry


class Format(ABC):
    """A file format to export to; its settings are its fields.

    Queries read the view `lists`, which has the columns of a policy, and `numbered`, with one row per context:
    `context`, `items` and `lower` in the order of ranks, and `number`, from 1, in the order of contexts.
    """

    endings: ClassVar[Sequence[str]] = ()  # of files that are in this format unless another is named
    macros: ClassVar[Sequence[str]] = ()  # SQL to run before the others

    @abstractmethod
    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """A query for the parts of the file, in their order: bytes, one column.

        Names that the format cannot hold are an error here, before anything is written.
        """

    def weighted(self, connection: duckdb.DuckDBPyConnection) -> str:
        """The same for several lists of a context, each with a probability; an error for a format of one list each.

        Queries read the view `lists`, which has the columns of an exploration, and `numbered`, with one row per
        context: `context`, `number`, `lists` in the order of variants, and their `probabilities`.
        """
        carry = [name for name in formats if formats[name].weighted is not Format.weighted]
        raise PolicyError(
            f"{self} has one list for each context, and cannot carry several with probabilities. Export to "
            f"{', '.join(carry[:-1])} or {carry[-1]}, and draw in the application."
        )

    def about(self, connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
        """Further entries of the manifest."""
        return {}

    def load(self, path: Path) -> str:
        """The command that loads the file; empty where there is none."""
        return ""


WEIGHTED = ("context", "variant", "probability", "purpose", "rank", "item")
"""Columns of several lists of a context, each with a probability."""
_PROGRAMS = {
    "postgres": "sql",
    "postgresql": "sql",
    "psql": "sql",
    "es": "elasticsearch-rules",
    "elastic": "elasticsearch-rules",
    "elasticsearch": "elasticsearch-rules",
    "os": "opensearch",
    "elevate": "solr",
    "trec": "trec-run",
    "json": "jsonl",
    "ndjson": "jsonl",
    "valkey": "redis",
}
"""What else people call a format, mostly by the program that reads it."""


class Formats(Registry[Format]):
    """The formats by name; the error for the name of a program names its format."""

    def __getitem__(self, name: str) -> type[Format]:
        if name in _PROGRAMS:
            raise UsageError(
                f"No {self.kind} is called {name!r}. Did you mean {_PROGRAMS[name]!r}? Known: {', '.join(self)}."
            )
        return super().__getitem__(name)


formats = Formats("export format", "prudent.exports", "parts", "prudent.policies.export")


def refuse(connection: duckdb.DuckDBPyConnection, column: str, bad: str, why: str, view: str = "lists") -> None:
    """Raise if a name in a column, `context` or `item`, is bad by a condition on `name`; the message has the first."""
    ((name, n),) = connection.execute(
        f"select min(name), count(distinct name) from (select {column}::varchar as name from {view}) where {bad}"
    ).fetchall()
    if n:
        others = f" (and {n - 1:,} other{'s' if n > 2 else ''})" if n > 1 else ""
        raise PolicyError(f"The {column} {_short(name)}{others} {why}")


def _short(name: str) -> str:
    return repr(name) if len(name) <= 60 else f"{name[:60]!r}..."


def check_name(setting: str, value: object) -> None:
    """Names in settings are text; ``key=7`` on the command line is read as a number, which is no name."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise UsageError(f"{setting} is {value!r}; it must be a name of at least one character.")
