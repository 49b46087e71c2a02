"""Relevance judgments for retrieval evaluation tools: trec_eval, ir_measures, ranx, Anserini."""

from dataclasses import dataclass

import duckdb

from prudent.policies.export.base import Format
from prudent.policies.export.trec import check_contexts, check_ids
from prudent.policies.judgments.formats.base import judgment_formats


@judgment_formats.register("trec-qrels")
@dataclass(frozen=True)
class TrecQrels(Format):
    """Lines ``qid 0 docid grade``, the relevance judgments of TREC.

    With ``contexts=numbered``, the qid is the number of the context in the order of contexts: the same as that of
    ``trec-run(contexts=numbered)`` where the policy has a list for every judged context.
    """

    endings = (".qrels", ".qrel")

    contexts: str = "named"

    def __post_init__(self) -> None:
        check_contexts(self.contexts)

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        check_ids(connection, self.contexts, "judgments", "a file of qrels", "trec-qrels")
        qid = "number" if self.contexts == "numbered" else "context"
        return f"""
            select encode(concat_ws(' ', {qid}, '0', item, grade) || chr(10)) from judgments order by number, item
        """
