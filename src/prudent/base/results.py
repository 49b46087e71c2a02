"""What results have in common: a table of values that prints, shows in notebooks, and becomes a frame or Arrow."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import duckdb

from prudent.base.errors import UsageError
from prudent.base.text import Column, Columns, Rows, html_table, several, text_table

_SHOWN = 20  # rows of a printed table
_SQL: dict[type | None, str] = {float: "double", int: "bigint", bool: "boolean", str: "varchar"}


class Result(ABC):
    """A result is a table: typed `columns`, `rows` of values, a `title` above and `notes` below when it is shown."""

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """Name and type of every value of a row."""

    @abstractmethod
    def rows(self) -> Rows:
        """The values, row by row; None where there is none."""

    @property
    def title(self) -> str:
        """What the table is about."""
        return ""

    @property
    def notes(self) -> Sequence[str]:
        """What to know when reading it."""
        return ()

    def table(self) -> tuple[Columns, Rows]:
        """The table as people see it; one that shows several values in one cell overrides this."""
        return self.columns, self.rows()

    def relation(self) -> duckdb.DuckDBPyRelation:
        """The rows as a DuckDB relation."""
        values = list(zip(*self.rows(), strict=True)) or [()] * len(self.columns)
        names = (column.name.replace('"', '""') for column in self.columns)
        kinds = (_sql_type(column.kind, cells) for column, cells in zip(self.columns, values, strict=True))
        typed = (
            f'unnest($v{i}::{kind}[]) as "{name}"' for i, (name, kind) in enumerate(zip(names, kinds, strict=True))
        )
        parameters = {f"v{i}": list(cells) for i, cells in enumerate(values)}
        return duckdb.connect().sql(f"select {', '.join(typed)}", params=parameters)

    def to_frame(self) -> Any:
        """The rows as a pandas data frame or, without pandas, as a Polars one."""
        return to_frame(self.relation())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for whatever reads Arrow: pyarrow, Polars, DuckDB, pandas."""
        return self.relation().__arrow_c_stream__(requested_schema)

    def __str__(self) -> str:
        columns, rows, notes = self._cut()
        return "\n".join(filter(None, [self.title, text_table(columns, rows) if rows else "", *notes]))

    __repr__ = __str__  # the table says more than a constructor call

    def _repr_html_(self) -> str:
        columns, rows, notes = self._cut()
        return html_table(columns, rows, self.title, notes)

    def _cut(self) -> tuple[Columns, Rows, list[str]]:
        columns, rows = self.table()
        more = len(rows) - _SHOWN
        return columns, rows[:_SHOWN], [*([f"... and {several(more, 'more row')}"] if more > 0 else []), *self.notes]


class ArrowStream:
    """A relation as a stream of Arrow batches: it belongs to its connection, and Arrow crosses that border."""

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._relation.__arrow_c_stream__(requested_schema)


def to_frame(relation: duckdb.DuckDBPyRelation) -> Any:
    """A relation as a pandas data frame or, without pandas, as a Polars one."""
    if find_spec("pandas"):
        return relation.df()
    if find_spec("polars"):
        import polars

        return polars.DataFrame(ArrowStream(relation))
    raise UsageError("A frame needs pandas or Polars: pip install pandas, or pip install polars.")


def _sql_type(kind: type | None, values: Sequence[object]) -> str:
    """The SQL type of a column; names are text where one of them is, and integers otherwise."""
    if kind in _SQL:
        return _SQL[kind]
    known = [value for value in values if value is not None]
    if not all(isinstance(value, int) for value in known) or not known:
        return "varchar"
    return "ubigint" if max(known) >= 2**63 else "bigint"  # type: ignore[type-var, operator]
