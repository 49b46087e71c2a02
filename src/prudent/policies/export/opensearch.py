"""Requests for the bulk API of OpenSearch: an index with one document per context, which has its list."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import duckdb

from prudent.base.errors import UsageError
from prudent.policies.export.base import Format, formats, refuse
from prudent.storage.quoting import text

_ID_BYTES = 512


@formats.register("opensearch")
@dataclass(frozen=True)
class OpenSearch(Format):
    """Two lines per context for ``POST /_bulk``: an ``index`` action, and the document.

    The context is the ``_id``, the document has ``context``, ``items`` and ``lower``. OpenSearch pins nothing by
    itself: the application reads the list of a query and adds a clause for each item to its search.
    """

    index: str = "prudent-lists"

    def __post_init__(self) -> None:
        if not isinstance(self.index, str) or not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,199}", self.index):
            raise UsageError(
                f"index is {self.index!r}; an index has lower-case letters, digits, '.', '_' and '-' in its name, and "
                "begins with a letter or digit."
            )

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        refuse(
            connection,
            "context",
            f"strlen(name) not between 1 and {_ID_BYTES}",
            f"is not a valid _id, which has 1 to {_ID_BYTES} bytes.",
        )
        action = f"{{'index': {{'_index': {text(self.index)}, '_id': context::varchar}}}}"
        # Items as text: an _id is text, and large integers would be rounded by other programs.
        document = "{'context': context::varchar, 'items': items::varchar[], 'lower': lower}"
        return f"""
            select encode(to_json({action})::varchar || chr(10) || to_json({document})::varchar || chr(10))
            from numbered
            order by number
        """

    def load(self, path: Path) -> str:
        """See `Format.load`."""
        body = shlex.quote(f"@{path}")
        return (
            'curl --fail --request POST "$OPENSEARCH/_bulk" --header "Content-Type: application/x-ndjson" '
            f"--data-binary {body}"
        )
