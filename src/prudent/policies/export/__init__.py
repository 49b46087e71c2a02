"""The lists of a policy in files that other programs load; each module registers a format.

>>> list(formats)
['csv', 'elasticsearch-rules', 'jsonl', 'redis', 'sql', 'trec-run']
>>> str(parse("sql(table=lists)"))
'sql(table=lists)'
"""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

import duckdb

from prudent.base.errors import PolicyError, UsageError
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import INTEGERS
from prudent.policies.export.base import Format, formats
from prudent.policies.export.elasticsearch_rules import ElasticsearchRules
from prudent.policies.export.plain import Csv, JsonLines
from prudent.policies.export.redis import Redis
from prudent.policies.export.sql import Sql
from prudent.policies.export.trec import TrecRun
from prudent.policies.files import check_lists
from prudent.policies.policy import Policy, as_policy
from prudent.storage.files import (
    TemporaryFolder,
    check_output,
    forget_manifest,
    reason,
    replacing,
    writing_temporary,
)
from prudent.storage.manifest import Manifest
from prudent.storage.quoting import file_text, text

__all__ = [
    "Csv",
    "ElasticsearchRules",
    "Format",
    "JsonLines",
    "Redis",
    "Sql",
    "TrecRun",
    "export",
    "formats",
    "parse",
]

parse = formats.parse
"""The format that a spelling stands for."""


def export(
    policy: Policy | str | PathLike[str],
    to: str | PathLike[str],
    *,
    format: str | Format | None = None,
    engine: DuckDB | None = None,
) -> Manifest:
    """Write the lists of a policy, or of the file of one, for another program, and return the manifest.

    ``format`` is ``jsonl``, ``csv``, ``trec-run``, ``elasticsearch-rules``, ``redis`` or ``sql``, with settings in
    brackets: ``"sql(table=lists)"``. Without it, the ending of the file decides: ``.jsonl``, ``.csv``, ``.sql`` or
    another that a format has. The same policy gives the same bytes. The file is written whole or not at all, and
    loads whole or not at all where the program supports that.

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
    chosen = formats.resolve(_format_of(to) if format is None else format)
    source = as_policy(policy)
    check_output(to, source.files, parquet=False)
    folder = TemporaryFolder()
    lists = folder.path / "lists.parquet"
    with _enough_memory(), (engine or DuckDB()).connect(spill=folder.path) as connection:
        with writing_temporary(folder.path):
            source.lists().write_parquet(str(lists))  # into a database of our own, which may spill
        for step in (*_views(lists), *chosen.macros):
            connection.execute(step)
        _check_types(connection)
        check_lists(connection, "lists")
        parts = chosen.parts(connection)
        with replacing(to) as part, _enough_memory():
            connection.execute(f"copy ({parts}) to {text(part)} (format blob)")
            forget_manifest(to)
        ((contexts, items),) = connection.execute("select count(distinct context), count(*) from lists").fetchall()
        manifest = Manifest(
            "export",
            {"format": str(chosen), "policy": source.manifest.settings},
            source.manifest.sources,
            {"contexts": contexts, "items": items, **chosen.about(connection)},
        )
    manifest.write(to)
    return manifest


def _format_of(to: str | PathLike[str]) -> str:
    """The format whose files end as this one does."""
    ending = Path(to).suffix.lower()
    for name in formats:
        if ending in formats[name].endings:
            return name
    known = ", ".join(f"{ending} for {name}" for name in formats for ending in formats[name].endings)
    raise UsageError(
        f"The name of {to} does not show its format: set format= (--format) to one of {', '.join(formats)}. "
        f"Endings that do: {known}."
    )


@contextmanager
def _enough_memory() -> Iterator[None]:
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise PolicyError(f"Exporting needs more memory than allowed: {reason(error)}. Raise --memory.") from error


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


def _check_types(connection: duckdb.DuckDBPyConnection) -> None:
    for name, kind, *_ in connection.execute("describe lists").fetchall():
        if name in ("context", "item") and kind != "VARCHAR" and kind not in INTEGERS:
            raise PolicyError(f"The {name}s of this policy are {kind.lower()}; names are text or integers.")
