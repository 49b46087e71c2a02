"""A request for the ranking evaluation of Elasticsearch and OpenSearch."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

import duckdb

from prudent.base.errors import UsageError
from prudent.policies.export.base import Format, check_name
from prudent.policies.judgments.formats.base import json_parts, judgment_formats
from prudent.storage.quoting import text

_LARGEST_K = 10_000  # hits that a search returns by default


@judgment_formats.register("rank-eval")
@dataclass(frozen=True)
class RankEval(Format):
    """The body of ``GET /INDEX/_rank_eval``: a search and its rated documents for each context; the metric is nDCG@k.

    The search of a context is ``{"match": {FIELD: context}}``; put your own query in its place where it is another.
    """

    index: str = "items"
    field: str = "title"
    k: float = 10

    def __post_init__(self) -> None:
        check_name("index", self.index)
        check_name("field", self.field)
        if not (isinstance(self.k, float | int) and 1 <= self.k <= _LARGEST_K and self.k == int(self.k)):
            raise UsageError(f"k is {self.k!r}; it must be a whole number from 1 to {_LARGEST_K:,}.")

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        metric = {"metric": {"dcg": {"k": int(self.k), "normalize": True}}}
        query = f"{{'query': {{'match': json_object({text(self.field)}, context::varchar)}}}}"
        return json_parts(
            json.dumps(metric)[:-1] + ', "requests": [',
            f"{{'id': context::varchar, 'request': {query}, 'ratings': ratings}}",
            f"{{'_index': {text(self.index)}, '_id': item::varchar, 'rating': grade}}",
            "\n]}\n",
        )

    def load(self, path: Path) -> str:
        """See `Format.load`."""
        url = shlex.quote(f"localhost:9200/{self.index}/_rank_eval")
        return f"curl -X POST {url} -H 'Content-Type: application/json' --data-binary @{shlex.quote(str(path))}"
