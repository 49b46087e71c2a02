"""A script for PostgreSQL that loads a staging table and lets it take the place of the old rows in one transaction."""

import shlex
from dataclasses import dataclass
from pathlib import Path

import duckdb

from prudent.base.errors import UsageError
from prudent.engines.duckdb.open import INTEGERS
from prudent.policies.export.base import Format, check_name, formats, refuse
from prudent.policies.files import COLUMNS
from prudent.storage.quoting import identifier, text

STAGING = "prudent_staging"
"""The table that is loaded first; temporary, so that every session has its own and none is left behind."""
_NAME_BYTES = 63  # PostgreSQL cuts off the rest, and two names may become one
_ROWS = 100  # in one statement; PostgreSQL takes longer over larger ones


@formats.register("sql")
@dataclass(frozen=True)
class Sql(Format):
    """A script for PostgreSQL that fills a table with the columns of the policy, and makes it if there is none.

    All of it is one transaction, which takes the old rows out and puts the new ones in. A reader sees the old ones
    until the very end, at any level of isolation, and is not kept waiting. What else hangs on the table, rights, views
    and indexes, stays. After the two settings at its head, the script is standard SQL.
    """

    table: str = "prudent_lists"

    macros = ("create temp macro literal(value) as '''' || replace(value, '''', '''''') || ''''",)

    def __post_init__(self) -> None:
        check_name("table", self.table)
        if self.table == STAGING:
            raise UsageError(f"{STAGING} is what the script calls its own table. Choose another name.")
        if len(self.table.encode()) > _NAME_BYTES:
            raise UsageError(f"table is {self.table!r}; names have up to {_NAME_BYTES} bytes in PostgreSQL.")

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        for column in ("context", "item"):
            refuse(connection, column, "contains(name, chr(0))", "has a NUL byte, which PostgreSQL cannot store.")
        kinds = {name: kind for name, kind, *_ in connection.execute("describe lists").fetchall()}
        # Under a half-life impressions are not whole, and a column that was once made for integers would round them.
        kinds["impressions"] = "DOUBLE"
        known = connection.execute(f"select {', '.join(f'count({name}) = count(*)' for name in COLUMNS)} from lists")
        # Lists made elsewhere have no evidence.
        whole = dict(zip(COLUMNS, known.fetchall()[0], strict=True))
        types = ",\n  ".join(
            f"{identifier(name)} {_TYPES[kinds[name]]}{' NOT NULL' if whole[name] else ''}" for name in COLUMNS
        )
        names = ", ".join(map(identifier, COLUMNS))
        key = f"PRIMARY KEY ({identifier('context')}, {identifier('rank')})"
        head = (
            "SET client_encoding = 'UTF8';\nSET standard_conforming_strings = on;\nBEGIN;\n"
            f"CREATE TEMPORARY TABLE {identifier(STAGING)} (\n  {types}\n);\n"
        )
        tail = (
            f"CREATE TABLE IF NOT EXISTS {identifier(self.table)} (\n  {types},\n  {key}\n);\n"
            f"DELETE FROM {identifier(self.table)};\n"
            f"INSERT INTO {identifier(self.table)} ({names})\nSELECT {names} FROM {identifier(STAGING)};\n"
            f"DROP TABLE {identifier(STAGING)};\nCOMMIT;\n"
        )
        values = " || ', ' || ".join(_value(name, kinds[name]) for name in COLUMNS)
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
                from (select *, row_number() over (order by context, rank) as place from lists)
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
    """SQL text for a value as SQL text."""
    if kind == "VARCHAR":
        return f"literal({name})"
    if kind == "DOUBLE":
        spelled = f"case when isnan({name}::double) then 'NaN' when {name} > 0 then 'Infinity' else '-Infinity' end"
        number = f"case when isfinite({name}::double) then {name}::varchar else literal({spelled}) end"
        return f"case when {name} is null then 'null' else {number} end"
    return f"coalesce({name}::varchar, 'null')"
