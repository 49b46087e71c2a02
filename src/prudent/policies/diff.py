"""`prudent.diff`: what changed between two policies, and why, as far as their files tell."""

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any

import duckdb

from prudent.base.errors import PolicyError
from prudent.base.results import ArrowStream
from prudent.engines.duckdb.engine import DuckDB
from prudent.policies.difference import Difference, Setting, records
from prudent.policies.files import check_same_manifest, read_scores
from prudent.policies.policy import Policy, as_policy
from prudent.policies.renamed import find_renamed
from prudent.storage.files import check_output
from prudent.storage.manifest import Manifest


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
    return records(connection.sql(query))[0]


# --- how they were made -----------------------------------------------------------------------------------------------

_NO_SETTINGS = ("inputs", "rejected", "left_out", "digest")


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
