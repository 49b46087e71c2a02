"""Judgment lists for learning to rank: RankLib, and the LTR plug-ins of Elasticsearch, OpenSearch and Solr."""

from dataclasses import dataclass

import duckdb

from prudent.policies.export.base import Format
from prudent.policies.judgments.formats.base import judgment_formats, refuse_lines


@judgment_formats.register("letor")
@dataclass(frozen=True)
class Letor(Format):
    """Lines ``grade qid:N # item<TAB>context``: SVMLight without features, which your feature store adds before ``#``.

    N is the number of the context in the order of contexts.
    """

    endings = (".letor", ".svm", ".svmlight")

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        refuse_lines(connection, "a comment of SVMLight")
        line = "grade || ' qid:' || number || ' # ' || item || chr(9) || context || chr(10)"
        return f"select encode({line}) from judgments order by number, item"
