"""Judgments for the Search Relevance Workbench of OpenSearch."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

import duckdb

from prudent.policies.export.base import Format, check_name
from prudent.policies.judgments.formats.base import json_parts, judgment_formats


@judgment_formats.register("opensearch-workbench")
@dataclass(frozen=True)
class OpenSearchWorkbench(Format):
    """The body of ``PUT _plugins/_search_relevance/judgments`` with type ``IMPORT_JUDGMENT``, of OpenSearch 3.

    ``name`` is that of the list of judgments; ratings are grades, as text with three decimals, as the workbench has
    them.
    """

    endings = (".json",)

    name: str = "prudent"

    def __post_init__(self) -> None:
        check_name("name", self.name)

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        head = {"name": self.name, "description": "Grades from clicks, by prudent judge", "type": "IMPORT_JUDGMENT"}
        return json_parts(
            json.dumps(head)[:-1] + ', "judgmentRatings": [',
            "{'query': context::varchar, 'ratings': ratings}",
            "{'docId': item::varchar, 'rating': grade::varchar || '.000'}",
            "\n]}\n",
        )

    def load(self, path: Path) -> str:
        """See `Format.load`."""
        url = "localhost:9200/_plugins/_search_relevance/judgments"
        return f"curl -X PUT {url} -H 'Content-Type: application/json' --data-binary @{shlex.quote(str(path))}"
