"""Policy: one list per context with its evidence and provenance; read, write, look up."""

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

import duckdb

from prudent.base.errors import PolicyError, UnknownContextError, did_you_mean
from prudent.counts.counts import Counts
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.duckdb.open import INTEGERS
from prudent.logs.formats import find_files
from prudent.storage.files import check_not_read, replacing
from prudent.storage.manifest import Manifest
from prudent.storage.quoting import file_text, text

if TYPE_CHECKING:
    from prudent.policies.explain import Explanation

COLUMNS = ("context", "rank", "item", "lower", "mean", "positive", "negative", "impressions")

Name = str | int
_FEW = 5_000  # contexts among which to look for the one that was meant


@dataclass(frozen=True, eq=False)
class Policy:
    """One ranked list per context, each position with its evidence.

    ``policy["running shoes"]`` is a list of item names, and ``policy.get("running shoes", mine)`` one to fall back to.
    The tables are DuckDB relations: ``.df()`` makes a pandas frame of them, ``.pl()`` a Polars one, ``.fetchall()``
    tuples. A policy that was read from a file has its lists, the scores if their file was named, and no contexts.
    """

    connection: duckdb.DuckDBPyConnection = field(repr=False)
    manifest: Manifest  # model, bound and other settings, and what it was trained on
    # lists, scores, contexts -> a query for each, or what makes its table and returns it
    _tables: Mapping[str, str | Callable[[], str]] = field(repr=False)
    counts: Counts | None = field(default=None, repr=False)  # that it was ranked from
    files: tuple[Path, ...] = field(default=(), repr=False)  # that it was read from

    @classmethod
    def read(cls, path: str | PathLike[str], scores: str | PathLike[str] | None = None) -> "Policy":
        """A policy from the file it was written to, or from the folder of files that Spark wrote.

        ``scores`` is the file of every candidate's scores, where they were written too.
        """
        files = find_files([path])
        if len(files) > 1 and not Path(path).is_dir():  # of a folder they are one
            raise PolicyError(f"{path} names {len(files)} files. Read one policy at a time.")
        file = Path(path) if Path(path).is_dir() else files[0]
        connection = DuckDB().open()
        source = f"read_parquet([{', '.join(map(file_text, files))}], hive_partitioning = false)"
        try:
            described = connection.execute(f"describe from {source}").fetchall()
            columns = tuple(row[0] for row in described)
            if columns != COLUMNS:
                raise PolicyError(f"{file} is not a policy: it has the columns {', '.join(columns)}.")
            _check_types(file, described)
            connection.execute(f"create temp table lists as from {source} order by context, rank")
        except duckdb.Error as error:
            raise PolicyError(f"Cannot read {file} as a policy: {str(error).splitlines()[0]}") from error
        tables, manifest = {"lists": "from lists"}, read_manifest(file)
        if scores is not None:
            tables["scores"] = _read_scores(connection, scores)
            check_same_manifest(Path(scores), str(file), manifest)
            files = [*files, *find_files([scores])]
        # Absolute: whoever asks may do so from another folder.
        return cls(connection, manifest, tables, files=tuple(one.resolve() for one in files))

    def write(self, path: str | PathLike[str], scores: str | PathLike[str] | None = None) -> None:
        """Write the lists to a Parquet file, its manifest beside it, and, if asked, every candidate's scores."""
        # In order once more: how a file is packed depends on how its rows arrive, and they come in parts.
        for table, target, order in (("lists", path, "context, rank"), ("scores", scores, "context, item")):
            if target is not None:
                check_not_read(target, () if self.counts is None else self.counts.files)
                with replacing(target) as part:
                    self.connection.execute(
                        f"copy (from ({self._query(table)}) order by {order}) to {text(part)} "
                        "(format parquet, compression zstd)"
                    )
                self.manifest.write(target)

    def lists(self) -> duckdb.DuckDBPyRelation:
        """The chosen lists: context, rank, item, lower, mean, positive, negative, impressions."""
        return self.connection.sql(self._query("lists"))

    def scores(self) -> duckdb.DuckDBPyRelation:
        """Every candidate with its evidence: the columns of `lists` without the rank."""
        return self.connection.sql(self._query("scores"))

    def contexts(self) -> duckdb.DuckDBPyRelation:
        """One row per context.

        ``lists`` that were logged; ``value`` of the new list as estimated, and ``lower``, its pessimistic value, which
        is that of the lower bounds of its items; the same of the list that was mostly shown, ``incumbent_value`` and
        ``incumbent_lower``; and whether the two lists ``differ``. A pessimistic value is no bound at a stated level.
        """
        return self.connection.sql(self._query("contexts"))

    def explain(self, context: str | SupportsIndex, counts: Counts | None = None) -> "Explanation":
        """Why the list of a context is what it is, beside the list that was mostly shown.

        A policy that was read from a file does not have the counts that it came from: without them, it is not known
        what was mostly shown, and how often it was clicked.
        """
        from prudent.policies.explain import explain

        self[context]  # known, or an error that says what was meant
        name = context if isinstance(context, str) else index(context)
        return explain(self, [name], self.counts if counts is None else counts)[0]

    def _query(self, table: str) -> str:
        if table not in self._tables:
            raise PolicyError(f"A policy that was read from a file has no {table}: rank again to get them.")
        query = self._tables[table]
        return query if isinstance(query, str) else query()

    def __getitem__(self, context: str | SupportsIndex) -> list[Name]:
        found = self._find(context)
        if not found:
            raise UnknownContextError(self._unknown(context))
        return found

    def get(self, context: str | SupportsIndex, default: Any = None) -> Any:
        """The list of a context, or `default`, such as the list of your own ranking."""
        return self._find(context) or default

    def __contains__(self, context: object) -> bool:
        return bool(self._find(context))

    def _find(self, context: object) -> list[Name]:
        if not isinstance(context, str):
            try:  # NumPy's integers are as good as Python's; True is no name
                context = index(context) if not isinstance(context, bool) else None  # type: ignore[arg-type]
            except TypeError:
                return []
        if context is None or isinstance(context, str) != self._named_by_text:
            return []  # 7 is not '7'
        query = f"select item from ({self._query('lists')}) where context = ? order by rank"
        try:
            return [item for (item,) in self.connection.execute(query, [context]).fetchall()]
        except duckdb.Error:  # a number of more than 64 bits, or text that is no UTF-8: nothing is called that
            return []

    def _unknown(self, context: str | SupportsIndex) -> str:
        if isinstance(context, str) != self._named_by_text:
            kind = "text" if self._named_by_text else "integers"
            return f"No list for {context!r}: contexts are {kind} in this policy, and 7 is not '7'."
        few = isinstance(context, str) and len(self) <= _FEW  # comparing takes longer than a miss should
        near = did_you_mean(str(context), (str(name) for name in self)) if few else ""
        return f"No list for {context!r}.{near} Keep your own ranking there."

    @property
    def _named_by_text(self) -> bool:
        return str(self.lists().types[0]) == "VARCHAR"

    def __iter__(self) -> Iterator[Name]:
        query = f"select context from ({self._query('lists')}) where rank = 1 order by context"
        return iter([context for (context,) in self.connection.execute(query).fetchall()])

    def __len__(self) -> int:
        query = f"select count(distinct context) from ({self._query('lists')})"
        return int(self.connection.execute(query).fetchall()[0][0])

    def _sample(self, contexts: int = 5) -> list[tuple[Any, ...]]:
        return self.connection.execute(
            f"from ({self._query('lists')}) where context in (select context from ({self._query('lists')}) "
            f"where rank = 1 order by context limit {contexts}) order by context, rank"
        ).fetchall()

    def _title(self) -> str:
        settings = self.manifest.settings
        made_by = ", ".join(str(settings[key]) for key in ("model", "bound", "method") if key in settings)
        return f"Policy for {len(self):,} context{'' if len(self) == 1 else 's'}" + (
            f" by {made_by}" if made_by else ""
        )

    def __repr__(self) -> str:
        lists: dict[Name, list[str]] = {}
        for context, _, item, *_ in self._sample():
            lists.setdefault(context, []).append(repr(item))
        shown = [
            f"  {context!r}: [{', '.join(items[:4])}{', ...' if len(items) > 4 else ''}]"
            for context, items in lists.items()
        ]
        return "\n".join([self._title(), *shown, *(["  ..."] if len(self) > len(lists) else [])])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_format(value))}</td>" for value in row) + "</tr>"
            for row in self._sample(contexts=3)
        )
        title = html.escape(self._title())
        return f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _check_types(file: Path, described: Sequence[Sequence[str]]) -> None:
    """Ranks are whole numbers, and evidence is numbers."""
    for name, kind, *_ in described:
        if (
            name not in ("context", "item")
            and kind not in INTEGERS
            and (name == "rank" or not kind.startswith(_FLOATS))
        ):
            raise PolicyError(f"{file} is not a policy: its column {name} is {kind.lower()}.")


_FLOATS = ("DOUBLE", "FLOAT", "DECIMAL")


def _read_scores(connection: duckdb.DuckDBPyConnection, path: str | PathLike[str]) -> str:
    """A query for the scores in a file, and a check that they are some of this policy's."""
    (file,) = find_files([path])
    source = f"read_parquet({file_text(file)}, hive_partitioning = false)"
    expected = tuple(name for name in COLUMNS if name != "rank")
    try:
        described = connection.execute(f"describe from {source}").fetchall()
        kinds = {row[0]: row[1] for row in connection.execute("describe lists").fetchall()}
    except duckdb.Error as error:
        raise PolicyError(f"Cannot read {file} as scores: {str(error).splitlines()[0]}") from error
    columns = tuple(row[0] for row in described)
    if columns != expected:
        raise PolicyError(
            f"{file} holds no scores: it has the columns {', '.join(columns)}. Write them: rank --scores."
        )
    if any(row[1] != kinds[row[0]] for row in described if row[0] in ("context", "item")):
        raise PolicyError(f"{file} names its contexts or items by another type than the policy: it is not of this one.")
    return f"select {', '.join(expected)} from {source}"


def check_lists(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """The lists of a table are lists: every place filled once, and no item twice."""
    found = connection.execute(
        "select count(*) over (), coalesce(context::varchar, 'null') from "
        f"(select context, count(*) as rows, count(distinct rank) as ranks, min(rank) as first, max(rank) as last, "
        f"count(distinct item) as items from {table} group by context) "
        "where context is null or first <> 1 or last <> rows or ranks <> rows or items <> rows order by 2 limit 1"
    ).fetchall()
    if found:
        wrong, context = found[0]
        raise PolicyError(
            f"This is no policy: {wrong:,} of its lists have a place twice, none for a place, or an item twice or "
            f"missing, such as that of {context!r}. Is it a folder of several policies?"
        )


def read_manifest(file: Path) -> Manifest:
    """The manifest beside a policy or its scores; one without settings and version where there is none."""
    return Manifest.read(file, "policy") or Manifest("policy", prudent="")


def check_same_manifest(scores: Path, policy: str, manifest: Manifest) -> None:
    """The manifest of scores is that of their policy, where both have one."""
    other = read_manifest(scores)
    if other.prudent and manifest.prudent and other != manifest:
        raise PolicyError(f"{scores} has the scores of another policy than {policy}, as their manifests say.")


def _format(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
