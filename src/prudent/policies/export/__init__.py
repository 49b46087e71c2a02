"""The lists of a policy in files that other programs load; each module registers a format.

>>> list(formats)
['csv', 'elasticsearch-rules', 'jsonl', 'opensearch', 'redis', 'solr', 'sql', 'trec-run']
>>> str(parse("sql(table=lists)"))
'sql(table=lists)'
"""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from prudent.base.errors import UsageError
from prudent.engines.duckdb.engine import DuckDB
from prudent.policies.export.base import Format, formats
from prudent.policies.export.writing import check_name_types, format_by_ending, opened_rows, write_parts
from prudent.policies.files import check_lists
from prudent.policies.policy import Policy, as_policy
from prudent.storage.files import check_output
from prudent.storage.manifest import Manifest
from prudent.storage.quoting import file_text

if TYPE_CHECKING:
    from prudent.policies.exploration.exploration import Exploration
    from prudent.policies.judgments.judgments import Judgments

__all__ = ["Format", "export", "formats", "parse"]

parse = formats.parse
"""The format that a spelling stands for."""


def export(
    policy: "Policy | Judgments | Exploration | str | PathLike[str]",
    to: str | PathLike[str],
    *,
    format: str | Format | None = None,
    engine: DuckDB | None = None,
) -> Manifest:
    """Write a policy, judgments, an exploration, or what is in a file, for another program, and return the manifest.

    ``format`` is the name of an export format, such as ``jsonl`` or ``redis``, with settings in brackets:
    ``"sql(table=lists)"``. Without it, the ending of the file decides: ``.jsonl``, ``.csv``, ``.sql`` or another that a
    format has. Judgments have formats of their own, such as ``trec-qrels``. Explorations go to formats that can carry
    the probability of each list; the others have one list for each context, and refuse. The same policy gives the same
    bytes. The file is written whole or not at all, and loads whole or not at all where the program supports that.

    >>> import duckdb, pathlib, prudent, tempfile
    >>> clicks = "select 'shoes' as context, ['i1', 'i2'] as items, [0, 1] as clicks from range(9)"
    >>> log = prudent.Log(duckdb.sql(clicks))
    >>> policy = prudent.rank(prudent.count(log), model="cm", bound="mle")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = prudent.export(policy, to=f"{folder}/lists.jsonl")
    ...     print(pathlib.Path(folder, "lists.jsonl").read_text(), end="")
    {"context":"shoes","items":["i2","i1"],"lower":[1.0,0.0]}
    """
    if not isinstance(to, str | PathLike):
        raise UsageError(f"to is {to!r}; it must be the path of a file to write.")
    from prudent.policies.exploration.export_exploration import export_exploration, is_exploration
    from prudent.policies.judgments.export_judgments import export_judgments, is_judgments  # whose formats are ours

    if is_judgments(policy):
        return export_judgments(policy, to, format, engine)
    if is_exploration(policy):
        return export_exploration(policy, to, format, engine)
    chosen = formats.resolve(format_by_ending(to, formats) if format is None else format)
    source = as_policy(policy)  # type: ignore[arg-type]
    check_output(to, source.files, parquet=False)
    with opened_rows(source.lists(), _views, engine) as connection:
        check_name_types(connection, "lists", "this policy")
        check_lists(connection, "lists")
        write_parts(connection, chosen, to)
        ((contexts, items),) = connection.execute("select count(distinct context), count(*) from lists").fetchall()
        manifest = Manifest(
            "export",
            {"format": str(chosen), "policy": source.manifest.settings},
            source.manifest.sources,
            {"contexts": contexts, "items": items, **chosen.about(connection)},
        )
    manifest.write(to)
    return manifest


def _views(lists: Path) -> tuple[str, ...]:
    """SQL that makes the views that formats read; see `Format`."""
    return (
        f"""
            create temp view lists as
            select context, rank::integer as rank, item, lower::double as lower, mean::double as mean,
                upper::double as upper, stay::double as stay, positive::double as positive,
                negative::double as negative, impressions
            from read_parquet({file_text(lists)}, hive_partitioning = false)
        """,
        # JSON has no infinity: the bound of an item without evidence is null there.
        """
            create temp view numbered as
            select context, list(item order by rank) as items,
                list(case when isfinite(lower) then lower end order by rank) as lower,
                row_number() over (order by context) as number
            from lists
            group by context
        """,
    )
