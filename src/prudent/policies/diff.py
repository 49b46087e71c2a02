"""Difference: what changed between two policies, and why, as far as their files tell."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

import duckdb

from prudent.base.errors import PolicyError
from prudent.base.results import ArrowStream, Result
from prudent.base.text import Column, Columns, Rows, several
from prudent.engines.duckdb.engine import DuckDB
from prudent.policies.files import check_same_manifest, read_scores
from prudent.policies.policy import Policy, as_policy
from prudent.policies.renamed import find_renamed
from prudent.storage.files import check_output, replacing
from prudent.storage.manifest import Manifest
from prudent.storage.quoting import text

_COLUMNS = (
    Column("context", object),
    Column("item", object),
    Column("old_rank", int),
    Column("new_rank", int),
    Column("old_lower", float),
    Column("new_lower", float),
    Column("old_impressions", int),
    Column("new_impressions", int),
    Column("why", str),
)


class Setting(NamedTuple):
    """An entry in which the manifests of the two policies differ."""

    name: str  # such as bound or training.days.half_life
    old: Any
    new: Any


@dataclass(frozen=True, eq=False, repr=False)
class Difference(Result):
    """Two policies, compared.

    ``settings`` come first: where the two were made differently, that can explain everything else. ``contexts`` is the
    number of lists in ``old`` and ``new``, and how many are the ``same``, ``changed``, ``gone`` or ``appeared``;
    ``items`` the same for distinct items, in the lists or, with scores, among the candidates; ``renamed`` how many of
    both look like one under two names; ``why`` how many items changed their place for each reason:

    - *more evidence* or *less evidence*, with a *higher estimate* or *lower estimate*: its own bound moved it; it has
      more or fewer impressions than before, and its mean rose or fell;
    - *narrower interval*, *wider interval*: its own bound moved it although its mean did not, because there is more or
      less evidence, or another fit;
    - *same evidence, other fit*: its own bound moved it, with as many impressions as before;
    - *only others moved*: its own bound is unchanged;
    - *longer lists*, *shorter lists*, *other places*: no bound moved past another; lists are longer, shorter, or
      filled in another order;
    - *others moved more*: its own bound alone would not have moved it, those of the others would;
    - *production or other items moved*: the same, in lists that start from the incumbent;
    - *new item*, *gone*: it was not a candidate before, or is none now;
    - *not listed before*, *no longer listed*: one of the above, but only scores could tell which;
    - *new context*, *context gone* and, with scores, *too few lists before*, *too few lists now*.
    """

    settings: tuple[Setting, ...]
    contexts: Mapping[str, int]
    items: Mapping[str, int]
    why: Mapping[str, int]
    renamed: Mapping[str, int]
    scored: bool  # whether the evidence of every candidate was known
    connection: duckdb.DuckDBPyConnection

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of the changes."""
        return _COLUMNS

    def rows(self) -> Rows:
        """The changes, as in `changes`."""
        return self.changes().fetchall()

    def relation(self) -> duckdb.DuckDBPyRelation:
        """The changes, as in `changes`."""
        return self.changes()

    def changes(self) -> duckdb.DuckDBPyRelation:
        """Every item that changed its place: both ranks, lower bounds and impressions, and why."""
        return self.connection.sql("from changes")

    def affected(self) -> duckdb.DuckDBPyRelation:
        """Every context whose list changed, the most shown first, with the impressions of its most shown item."""
        return self.connection.sql(
            "select context, case when old_size = 0 then 'appeared' when new_size = 0 then 'gone' else 'changed' end "
            "as change, impressions from compared where changed order by impressions desc, context"
        )

    def renamed_contexts(self) -> duckdb.DuckDBPyRelation:
        """Contexts that look like one under two names: one is gone, one appeared, and their lists are alike."""
        return self.connection.sql("from renamed_contexts order by places desc, old")

    def renamed_items(self) -> duckdb.DuckDBPyRelation:
        """Items that look like one under two names: one is gone everywhere, one appeared in its places."""
        return self.connection.sql("from renamed_items order by places desc, old")

    def sample(self, contexts: int) -> dict[str, list[dict[str, Any]]]:
        """What looks renamed, and the changes of the most shown contexts, at most so many of each."""
        affected = _rows(self.affected().limit(contexts))
        for one in affected:
            changes = "select * exclude (context) from changes where context = ? order by new_rank, old_rank"
            one["changes"] = _rows(self.connection.sql(changes, params=[one["context"]]))
        return {
            "renamed_contexts": _rows(self.renamed_contexts().limit(contexts)),
            "renamed_items": _rows(self.renamed_items().limit(contexts)),
            "affected": affected,
        }

    @property
    def manifest(self) -> Manifest:
        """The settings that differ, and the numbers."""
        return Manifest(
            "difference",
            results={
                "settings": [setting._asdict() for setting in self.settings],
                "contexts": dict(self.contexts),
                "items": dict(self.items),
                "why": dict(self.why),
                "renamed": dict(self.renamed),
            },
        )

    def write(self, path: str | PathLike[str]) -> None:
        """Write all changes to a Parquet file, with a manifest beside it."""
        with replacing(path) as part:
            self.connection.execute(f"copy changes to {text(part)} (format parquet, compression zstd)")
        self.manifest.write(path)

    @property
    def title(self) -> str:
        """How many lists changed."""
        many = self.contexts
        lists = several(many["new"], "list")
        return f"Difference: of {lists}, {many['changed']:,} changed and {many['appeared']:,} are new"

    def table(self) -> tuple[Columns, Rows]:
        """How many items changed their place for each reason."""
        return [Column("why items changed their place", str), Column("items", int)], list(self.why.items())


def diff(
    old: str | PathLike[str] | Policy,
    new: str | PathLike[str] | Policy,
    *,
    scores: tuple[str | PathLike[str], str | PathLike[str]] | None = None,
    to: str | PathLike[str] | None = None,
) -> Difference:
    """Compare two policies: what changed, and why.

    A policy has the evidence of the items in its lists only. With the files of ``scores`` that were written with the
    two, the evidence of every candidate is known, and so is why an item entered or left a list. ``to`` is a Parquet
    file for all changes.

    >>> import prudent, pyarrow as pa
    >>> old, new = (
    ...     prudent.Policy.from_table(pa.table({"context": ["shoes"], "items": [items]}), items="items")
    ...     for items in (["i1", "i2"], ["i2", "i1"])
    ... )
    >>> prudent.diff(old, new).contexts["changed"]
    1
    """
    connection = DuckDB().open()
    one, two = as_policy(old), as_policy(new)
    if to is not None:
        check_output(to, [*one.files, *two.files, *(scores or ())])
    _check_names(one, two)
    for name, policy, file in (("old", one, scores and scores[0]), ("new", two, scores and scores[1])):
        known = policy.lists() if file is None else _read(policy, file, name)
        for table, relation in (("lists", policy.lists()), ("known", known)):
            connection.register("source", ArrowStream(relation))
            connection.execute(f"create temp table {name}_{table} as from source")
            connection.unregister("source")
    _compare(connection)
    _explain(connection, one.manifest, two.manifest, scored=scores is not None)
    find_renamed(connection)
    difference = Difference(
        tuple(_settings(one.manifest, two.manifest)),
        contexts=_numbers(
            connection,
            "select count(*) filter (old_size > 0) as old, count(*) filter (new_size > 0) as new, "
            "count(*) filter (not changed) as same, "
            "count(*) filter (changed and old_size > 0 and new_size > 0) as changed, "
            "count(*) filter (new_size = 0) as gone, count(*) filter (old_size = 0) as appeared from compared",
        ),
        items=_numbers(
            connection,
            "select count(was) as old, count(is_) as new, count(was) filter (is_ is null) as gone, "
            "count(is_) filter (was is null) as appeared from names",
        ),
        why=dict(connection.execute("select why, count(*) from changes group by why order by 2 desc, 1").fetchall()),
        renamed=_numbers(
            connection,
            "select (select count(*) from renamed_contexts) as contexts, (select count(*) from renamed_items) as items",
        ),
        scored=scores is not None,
        connection=connection,
    )
    if to is not None:
        difference.write(to)
    return difference


def _check_names(old: Policy, new: Policy) -> None:
    kinds = []
    for policy in (old, new):
        types = dict(zip(policy.lists().columns, map(str, policy.lists().types), strict=True))
        kinds.append(" and ".join("text" if types[name] == "VARCHAR" else "integers" for name in ("context", "item")))
    if kinds[0] != kinds[1]:
        raise PolicyError(
            f"The old policy names its contexts and items by {kinds[0]}, the new one by {kinds[1]}: they have none in "
            "common."
        )


def _read(policy: Policy, scores: str | PathLike[str], name: str) -> duckdb.DuckDBPyRelation:
    """The scores in a file, if they are those of this policy."""
    query = read_scores(policy.connection, scores)
    check_same_manifest(scores, f"the {name} policy", policy.manifest)
    return policy.connection.sql(query)


# --- what changed -----------------------------------------------------------------------------------------------------


def _compare(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the tables `both_lists`, of all listed items; `compared`, of all contexts; and `names`, of all items."""
    connection.execute(
        "create temp table both_lists as select context, item, o.rank as old_rank, n.rank as new_rank, "
        "greatest(coalesce(o.impressions, 0), coalesce(n.impressions, 0)) as impressions "
        "from old_lists as o full outer join new_lists as n using (context, item)"
    )
    connection.execute(
        "create temp table compared as select context, count(old_rank) as old_size, count(new_rank) as new_size, "
        "bool_or(old_rank is distinct from new_rank) as changed, max(impressions) as impressions "
        "from both_lists group by context"
    )
    connection.execute(
        "create temp table names as select o.item as was, n.item as is_ "
        "from (select distinct item from old_known) as o "
        "full outer join (select distinct item from new_known) as n using (item)"
    )


def _explain(connection: duckdb.DuckDBPyConnection, old: Manifest, new: Manifest, scored: bool) -> None:
    """Make the table `changes`."""
    connection.execute(
        "create temp table moved as select context, item, old_rank, new_rank, "
        "coalesce(new_rank, 2147483647) < coalesce(old_rank, 2147483647) as up, "
        "o.lower as old_lower, n.lower as new_lower, o.mean as old_mean, n.mean as new_mean, "
        "o.stay as old_stay, n.stay as new_stay, n.positive as new_positive, "
        "o.impressions as old_impressions, n.impressions as new_impressions, old_size, new_size "
        "from both_lists join compared using (context) "
        "left join old_known as o using (context, item) left join new_known as n using (context, item) "
        "where old_rank is distinct from new_rank"
    )
    # How many of the others are above it: before; with its own bound alone changed; and with only the others changed.
    for table, known, own in (("own_moved", "old_known", "new_lower"), ("others_moved", "new_known", "old_lower")):
        connection.execute(
            f"create temp table {table} as select moved.context, moved.item, "
            f"count(*) filter (lower > old_lower) as before, count(*) filter (lower > {own}) as now "
            f"from moved join {known} as other on other.context = moved.context and other.item <> moved.item "
            "where old_lower is not null and new_lower is not null group by all"
        )
    above, by_own, by_others = (f"coalesce({n}, 0)" for n in ("own_moved.before", "own_moved.now", "others_moved.now"))
    # In lists that start from the incumbent, an item rises by its bound and falls by what it has to be beaten at.
    anchored = "(old_stay is not null and new_stay is not null)"
    own = (
        f"case when {anchored} and up then new_positive > 0 and new_lower > old_lower "
        f"when {anchored} then new_stay < old_stay "
        f"when up then {by_own} < {above} or (new_lower > old_lower and {by_others} >= {above}) "
        f"else {by_own} > {above} or (new_lower < old_lower and {by_others} <= {above}) end"
    )
    # With scores every candidate is known, also in contexts with too few lists to be ranked.
    before, now = (f"context in (select context from {name}_known)" for name in ("old", "new"))
    hidden_before, hidden_now = ("false", "false") if scored else (_full(old, "old_size"), _full(new, "new_size"))
    connection.execute(
        f"""
        create temp table changes as
        select context, item, old_rank, new_rank, old_lower, new_lower, old_impressions, new_impressions,
            case
                when old_size = 0 and {before} then 'too few lists before'
                when old_size = 0 then 'new context'
                when new_size = 0 and {now} then 'too few lists now'
                when new_size = 0 then 'context gone'
                when old_lower is null then
                    case when {hidden_before} then 'not listed before' else 'new item' end
                when new_lower is null then
                    case when {hidden_now} then 'no longer listed' else 'gone' end
                when new_lower = old_lower and new_mean = old_mean and {by_others} = {above} then
                    case when old_rank is null then 'longer lists' when new_rank is null then 'shorter lists'
                        else 'other places' end
                -- of equal bounds the higher mean is listed first
                when new_lower = old_lower and (case when up then new_mean <= old_mean else new_mean >= old_mean end)
                    then 'only others moved'
                when {anchored} and not ({own}) then 'production or other items moved'
                when new_lower <> old_lower and not ({own}) then 'others moved more'
                when new_impressions = old_impressions then 'same evidence, other fit'
                -- its bound moved one way and its mean did not: the interval between them did it
                when up and new_mean <= old_mean then
                    case when new_impressions > old_impressions then 'more evidence' else 'other fit' end
                    || ', narrower interval'
                when not up and new_mean >= old_mean then
                    case when new_impressions < old_impressions then 'less evidence' else 'other fit' end
                    || ', wider interval'
                else (case when new_impressions > old_impressions then 'more evidence' else 'less evidence' end)
                    || (case when up then ', higher estimate' else ', lower estimate' end)
            end as why
        from moved left join own_moved using (context, item) left join others_moved using (context, item)
        order by context, new_rank, old_rank
        """
    )


def _full(policy: Manifest, size: str) -> str:
    """In SQL, whether a list of so many items may be full; otherwise it has all candidates of its context."""
    length = policy.settings.get("length") if "bound" in policy.settings else None
    return f"{size} >= {length}" if isinstance(length, int) else "true"


def _numbers(connection: duckdb.DuckDBPyConnection, query: str) -> dict[str, int]:
    return _rows(connection.sql(query))[0]


def _rows(table: duckdb.DuckDBPyRelation) -> list[dict[str, Any]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.fetchall()]


# --- how they were made -----------------------------------------------------------------------------------------------

_NO_SETTINGS = ("inputs", "rejected", "left_out")


def _settings(old: Manifest, new: Manifest) -> Iterator[Setting]:
    one, two = dict(_made(old)), dict(_made(new))
    for name in dict.fromkeys([*one, *two]):
        if one.get(name) != two.get(name):
            yield Setting(name, one.get(name), two.get(name))


def _made(manifest: Manifest) -> Iterator[tuple[str, Any]]:
    """How a policy was made, by name."""
    if manifest.prudent:
        yield "prudent", manifest.prudent
    yield from _flat(manifest.settings)
    for role, source in manifest.sources.items():
        settings = {name: value for name, value in source.to_json().items() if name not in _NO_SETTINGS}
        yield from _flat(settings, f"{role}.")


def _flat(entries: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in entries.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value
