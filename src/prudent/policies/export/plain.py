"""JSON Lines and CSV."""

from dataclasses import dataclass

import duckdb

from prudent.policies.export.base import Format, formats
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
        line = "to_json({'context': context, 'items': items, 'lower': lower})"
        return f"select encode({line}::varchar || chr(10)) from numbered order by number"


@formats.register("csv")
@dataclass(frozen=True)
class Csv(Format):
    """One line per item, with the columns of the policy, by RFC 4180: CRLF, and quotes doubled inside quotes.

    Text is quoted and numbers are not, so that ``"7"`` and ``7`` stay apart.
    """

    endings = (".csv",)

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        kinds = {name: kind for name, kind, *_ in connection.execute("describe lists").fetchall()}
        quoted = """'"' || replace({0}, '"', '""') || '"'"""
        columns = [
            # Where a number is missing the field is empty; || with null would lose the line.
            quoted.format(name) if kinds[name] == "VARCHAR" else f"coalesce({name}::varchar, '')"
            for name in COLUMNS
        ]
        return f"""
            select part from (
                select 0 as section, null as context, null as rank, encode('{",".join(COLUMNS)}' || {_CRLF}) as part
                union all
                select 1, context, rank, encode({" || ',' || ".join(columns)} || {_CRLF}) from lists
            )
            order by section, context, rank
        """


_CRLF = "chr(13) || chr(10)"
