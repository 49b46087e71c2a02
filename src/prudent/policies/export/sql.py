"""A script for PostgreSQL that loads a staging table and replaces the old rows in one transaction."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from prudent.base.errors import UsageError
from prudent.engines.duckdb.open import INTEGERS
from prudent.policies.export.base import WEIGHTED, Format, check_name, formats, refuse
from prudent.policies.files import COLUMNS
from prudent.storage.quoting import identifier, text

STAGING = "prudent_staging"
"""The table that is loaded first; temporary, so that every session has its own and none remains."""
_NAME_BYTES = 63  # PostgreSQL truncates longer names, and two may become one
_ROWS = 100  # in one statement; larger ones are slower


@formats.register("sql")
@dataclass(frozen=True)
class Sql(Format):
    """A script for PostgreSQL that fills a table with the columns of the policy, and creates it if there is none.

    It is one transaction that replaces all rows. A reader sees the old rows until it commits, at any isolation level,
    and is not blocked. Privileges, views and indexes of the table stay. After two settings, it is standard SQL.
    """

    endings = (".sql",)

    table: str = "prudent_lists"

    macros = ("create temp macro literal(value) as '''' || replace(value, '''', '''''') || ''''",)

    def __post_init__(self) -> None:
        check_name("table", self.table)
        if self.table == STAGING:
            raise UsageError(f"{STAGING} is the name of the script's own table. Choose another name.")
        if len(self.table.encode()) > _NAME_BYTES:
            raise UsageError(f"table is {self.table!r}; names in PostgreSQL have up to {_NAME_BYTES} bytes.")

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        return self._script(connection, COLUMNS, ("context", "rank"))

    def weighted(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.weighted`: a table with a row for each item of every variant."""
        return self._script(connection, WEIGHTED, ("context", "variant", "rank"))

    def _script(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str], key: Sequence[str]) -> str:
        for column in ("context", "item"):
            refuse(connection, column, "contains(name, chr(0))", "has a NUL byte, which PostgreSQL cannot store.")
        kinds = {name: kind for name, kind, *_ in connection.execute("describe lists").fetchall()}
        # Under a half-life impressions are not whole, and an integer column would round them.
        kinds["impressions"] = "DOUBLE"
        known = connection.execute(f"select {', '.join(f'count({name}) = count(*)' for name in columns)} from lists")
        # Lists made elsewhere have no evidence.
        whole = dict(zip(columns, known.fetchall()[0], strict=True))
        types = ",\n  ".join(
            f"{identifier(name)} {_TYPES[kinds[name]]}{' NOT NULL' if whole[name] else ''}" for name in columns
        )
        names = ", ".join(map(identifier, columns))
        primary = f"PRIMARY KEY ({', '.join(map(identifier, key))})"
        head = (
            "SET client_encoding = 'UTF8';\nSET standard_conforming_strings = on;\nBEGIN;\n"
            f"CREATE TEMPORARY TABLE {identifier(STAGING)} (\n  {types}\n);\n"
        )
        tail = (
            f"CREATE TABLE IF NOT EXISTS {identifier(self.table)} (\n  {types},\n  {primary}\n);\n"
            f"DELETE FROM {identifier(self.table)};\n"
            f"INSERT INTO {identifier(self.table)} ({names})\nSELECT {names} FROM {identifier(STAGING)};\n"
            f"DROP TABLE {identifier(STAGING)};\nCOMMIT;\n"
        )
        values = " || ', ' || ".join(_value(name, kinds[name]) for name in columns)
        insert = text(f"INSERT INTO {identifier(STAGING)} ({names}) VALUES\n")
        first, last = f"place % {_ROWS} = 1", f"place % {_ROWS} = 0 or place = count(*) over ()"
        return f"""
            select part from (
                select 0 as place, encode({text(head)}) as part
                union all
                select place, encode(
                    case when {first} then {insert} else '' end
                    || '(' || {values} || ')' || case when {last} then ';' else ',' end || chr(10)
                )
                from (select *, row_number() over (order by {", ".join(key)}) as place from lists)
                union all
                select {2**62}, encode({text(tail)})
            )
            order by place
        """

    def load(self, path: Path) -> str:
        """See `Format.load`."""
        return f"psql --set ON_ERROR_STOP=1 --file {shlex.quote(str(path))}"


_TYPES = {
    "VARCHAR": "text",
    "DOUBLE": "double precision",
    "UBIGINT": "numeric(20)",
    **{kind: "bigint" for kind in INTEGERS if kind != "UBIGINT"},
}


def _value(name: str, kind: str) -> str:
    """SQL that writes a value as a SQL literal."""
    if kind == "VARCHAR":
        return f"literal({name})"
    if kind == "DOUBLE":
        spelled = f"case when isnan({name}::double) then 'NaN' when {name} > 0 then 'Infinity' else '-Infinity' end"
        number = f"case when isfinite({name}::double) then {name}::varchar else literal({spelled}) end"
        return f"case when {name} is null then 'null' else {number} end"
    return f"coalesce({name}::varchar, 'null')"
