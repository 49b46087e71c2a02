"""JSON Lines and CSV."""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from prudent.policies.export.base import WEIGHTED, Format, formats
from prudent.policies.files import COLUMNS


@formats.register("jsonl")
@dataclass(frozen=True)
class JsonLines(Format):
    """One line per context: ``{"context": ..., "items": [...], "lower": [...]}``, the best item first.

    Names are strings or integers, as they are in the policy. A bound of minus infinity is ``null``.
    """

    endings = (".jsonl", ".ndjson")

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        return _lines("{'context': context, 'items': items, 'lower': lower}")

    def weighted(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.weighted`: ``{"context": ..., "lists": [[...], ...], "probabilities": [...]}``."""
        return _lines("{'context': context, 'lists': lists, 'probabilities': probabilities}")


def _lines(content: str) -> str:
    return f"select encode(to_json({content})::varchar || chr(10)) from numbered order by number"


@formats.register("csv")
@dataclass(frozen=True)
class Csv(Format):
    """One line per item, with the columns of the policy, by RFC 4180: CRLF, and quotes doubled inside quotes.

    Text is quoted and numbers are not, so that ``"7"`` and ``7`` stay apart.
    """

    endings = (".csv",)

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        return _records(connection, COLUMNS)

    def weighted(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.weighted`: one line per item of every variant."""
        return _records(connection, WEIGHTED)


def _records(connection: duckdb.DuckDBPyConnection, columns: Sequence[str]) -> str:
    """A line with the names of the columns, and one for each row."""
    kinds = {name: kind for name, kind, *_ in connection.execute("describe lists").fetchall()}
    quoted = """'"' || replace({0}, '"', '""') || '"'"""
    fields = [
        # Where a number is missing the field is empty; || with null would lose the line.
        quoted.format(name) if kinds[name] == "VARCHAR" else f"coalesce({name}::varchar, '')"
        for name in columns
    ]
    place = "row_number() over (order by context, " + ("variant, rank)" if "variant" in columns else "rank)")
    return f"""
        select part from (
            select 0 as place, encode('{",".join(columns)}' || {_CRLF}) as part
            union all
            select {place}, encode({" || ',' || ".join(fields)} || {_CRLF}) from lists
        )
        order by place
    """


_CRLF = "chr(13) || chr(10)"
