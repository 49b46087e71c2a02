"""Ratings for Quepid."""

from dataclasses import dataclass

import duckdb

from prudent.policies.export.base import Format
from prudent.policies.judgments.formats.base import csv_parts, judgment_formats, quoted, refuse_lines


@judgment_formats.register("quepid")
@dataclass(frozen=True)
class Quepid(Format):
    """Lines ``query,docid,rating`` with these names in the first, for *Import ratings* of a case in Quepid."""

    endings = (".csv",)

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        refuse_lines(connection, "a line of ratings")
        return csv_parts("query,docid,rating", quoted("context"), quoted("item"), "grade")
