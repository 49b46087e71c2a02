"""Runs for retrieval evaluation tools: trec_eval, ir_measures, ranx, Anserini."""

import re
from dataclasses import dataclass

import duckdb

from prudent.base.errors import UsageError
from prudent.policies.export.base import Format, check_name, formats, refuse
from prudent.storage.quoting import text

# Space by C's isspace or by Python's split: readers use either.
_SPACE = r"[\s\x{0B}\x{00}\x{1C}-\x{1F}\x{85}\p{Z}]"
_CONTEXTS = ("named", "numbered")


@formats.register("trec-run")
@dataclass(frozen=True)
class TrecRun(Format):
    """Lines ``qid Q0 docid rank score tag``, the format of TREC.

    Readers sort by score, not by rank, and some keep only 24 bits of it. So the score is not the bound but the number
    of items from there to the end of the list.

    With ``contexts=numbered``, the qid is the number of the context's line in the export to ``jsonl``.
    """

    endings = (".run", ".trec")

    tag: str = "prudent"
    contexts: str = "named"

    def __post_init__(self) -> None:
        check_name("tag", self.tag)
        if len(self.tag.split()) != 1 or re.search(r"\s", self.tag):
            raise UsageError(f"tag is {self.tag!r}; it must be a name without spaces.")
        check_contexts(self.contexts)

    def parts(self, connection: duckdb.DuckDBPyConnection) -> str:
        """See `Format.parts`."""
        check_ids(connection, self.contexts, "lists", "a run", "trec-run")
        qid = "number" if self.contexts == "numbered" else "lists.context"
        fields = f"concat_ws(' ', {qid}, 'Q0', item, rank, len(items) - rank + 1, {text(self.tag)})"
        return f"""
            select encode({fields} || chr(10))
            from lists join numbered on lists.context = numbered.context
            order by number, rank
        """


def check_contexts(contexts: object) -> None:
    """How a file of TREC names its queries: by the context, or by its number."""
    if contexts not in _CONTEXTS:
        raise UsageError(f"contexts is {contexts!r}; it must be {' or '.join(_CONTEXTS)}.")


def check_ids(connection: duckdb.DuckDBPyConnection, contexts: str, view: str, what: str, format: str) -> None:
    """Spaces end a field, and files of TREC cannot escape them."""
    bad = f"name = '' or regexp_matches(name, {text(_SPACE)})"
    why = f"has spaces or is empty, which {what} cannot hold."
    if contexts == "named":
        refuse(connection, "context", bad, f"{why} Number the contexts: {format}(contexts=numbered).", view)
    refuse(connection, "item", bad, f"{why} Give items other ids.", view)
