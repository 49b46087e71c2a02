"""Difference: what changed between two policies, and why, as far as their files tell."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from prudent.base.errors import PolicyError
from prudent.counts.counts import name_types
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.formats import find_files
from prudent.policies.policy import COLUMNS, Policy, check_same_manifest
from prudent.storage.files import TemporaryFolder, replacing
from prudent.storage.manifest import Manifest
from prudent.storage.quoting import file_text, text

SCORES = tuple(column for column in COLUMNS if column != "rank")
ALIKE = 0.8
"""Share of equal places from which on two lists, or the places of two items, look like one under two names."""

_NEAR = 0.1  # relative difference of impressions that is taken for none, where there are few places to go by
_RARE = 5  # an item at a place in more lists than that tells nothing about which two of them belong together


class Setting(NamedTuple):
    """Something that the manifests of the two policies say differently."""

    name: str  # such as bound, counts.days.half_life or fitted.examination
    old: Any
    new: Any


@dataclass(frozen=True, eq=False)
class Difference:
    """Two policies, compared.

    ``settings`` come first: where the two were made differently, that can explain everything else. ``contexts`` says
    how many have a list in ``old`` and in ``new``, and of how many it is the ``same``, ``changed``, ``gone`` or
    ``appeared``; ``items`` the same of distinct names, in the lists or, where there are scores, among the candidates;
    ``renamed`` how many of both look like one under two names; ``why`` how many items changed their place why:

    - *more evidence* or *less evidence*, *higher estimate* or *lower estimate*: its own bound moved it; it has more or
      fewer impressions than before, and its mean is above or below what it was;
    - *same evidence, other fit*: its own bound moved it, with as many impressions as before;
    - *only others moved*: its own bound is what it was;
    - *longer lists*, *shorter lists*, *other places*: no bound moved past another, and lists are longer, or shorter, or
      filled in another order;
    - *others moved more*: its own bound alone would not have moved it, those of the others would have;
    - *new item*, *gone*: it was no candidate before, or is none any more;
    - *not listed before*, *no longer listed*: one of the above, but only scores could tell which;
    - *new context*, *context gone*, and, where scores tell, *too few lists before*, *too few lists now*.
    """

    settings: tuple[Setting, ...]
    contexts: Mapping[str, int]
    items: Mapping[str, int]
    why: Mapping[str, int]
    renamed: Mapping[str, int]
    scored: bool  # whether the evidence of every candidate was there to look at
    connection: duckdb.DuckDBPyConnection = field(repr=False)

    def changes(self) -> duckdb.DuckDBPyRelation:
        """Every item that changed its place: both ranks, lower bounds and impressions, and why."""
        return self.connection.sql("from changes")

    def affected(self) -> duckdb.DuckDBPyRelation:
        """Every context whose list changed, the most shown first: how, and how often its most shown item was shown."""
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
        """What looks renamed, and the changes of the contexts that were shown most, as many as asked for of each."""
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

    def __repr__(self) -> str:
        many = self.contexts
        return f"Difference: of {many['new']:,} lists {many['changed']:,} changed and {many['appeared']:,} are new"


def diff(
    old: str | PathLike[str] | Policy,
    new: str | PathLike[str] | Policy,
    scores: tuple[str | PathLike[str], str | PathLike[str]] | None = None,
) -> Difference:
    """Say what changed from one policy to another, and why.

    A policy knows the evidence of the items in its lists, and of no others. With the files of ``scores`` that were
    written with the two, it is known of every candidate, and so is why an item entered a list or left it.
    """
    connection = DuckDB().open()
    folder = TemporaryFolder()
    one, two = (_opened(policy, folder.path / name) for policy, name in ((old, "old"), (new, "new")))
    _check_names(connection, one.files[0], two.files[0])
    for name, side, scored in (("old", one, scores and scores[0]), ("new", two, scores and scores[1])):
        known = side.files if scored is None else _find_scores(connection, Path(scored), side)
        connection.execute(f"create temp table {name}_lists as from {_source(side.files)}")
        connection.execute(
            f"create temp table {name}_known as select context, item, lower, mean, impressions from {_source(known)}"
        )
    _compare(connection)
    _explain(connection, one, two, scored=scores is not None)
    _find_renamed(connection)
    return Difference(
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


class _Side(NamedTuple):
    """A policy in a file, or in several of one folder."""

    files: Sequence[Path]
    name: str
    manifest: Manifest

    def full(self, size: str) -> str:
        """In SQL, whether a list of so many items may be full; otherwise it has all candidates of its context."""
        settings = self.manifest.settings
        length = settings.get("length") if "bound" in settings else None
        return f"{size} >= {length}" if isinstance(length, int) else "true"


def _opened(policy: str | PathLike[str] | Policy, place: Path) -> _Side:
    if isinstance(policy, Policy):
        file = place.with_suffix(".parquet")
        policy.write(file)
        return _Side([file], f"the {place.name} policy", policy.manifest)
    return _Side(find_files([policy]), str(policy), Policy.read(policy).manifest)


def _source(files: Sequence[Path]) -> str:
    return f"read_parquet([{', '.join(map(file_text, files))}], hive_partitioning = false)"


def _check_names(connection: duckdb.DuckDBPyConnection, old: Path, new: Path) -> None:
    kinds = [name_types(connection, file) for file in (old, new)]
    if kinds[0] != kinds[1]:
        raise PolicyError(
            f"The old policy names its contexts and items by {' and '.join(kinds[0])}, the new one by "
            f"{' and '.join(kinds[1])}: nothing in them is the same."
        )


def _find_scores(connection: duckdb.DuckDBPyConnection, file: Path, side: _Side) -> Sequence[Path]:
    """The files, if they have the scores of this policy."""
    files = find_files([file])
    try:
        described = connection.execute(f"describe from {_source(files)}").fetchall()
    except duckdb.Error as error:
        raise PolicyError(f"Cannot read {file} as scores: {str(error).splitlines()[0]}") from error
    if tuple(row[0] for row in described) != SCORES:
        raise PolicyError(
            f"{file} has no scores, which are: {', '.join(SCORES)}. Write them with prudent rank --scores."
        )
    if name_types(connection, files[0]) != name_types(connection, side.files[0]):
        raise PolicyError(f"{file} names its contexts and items by other types than {side.name}.")
    check_same_manifest(file, side.name, side.manifest)
    return files


# --- what changed -----------------------------------------------------------------------------------------------------


def _compare(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the tables `both`, of all listed items; `compared`, of all contexts; and `names`, of all items."""
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


def _explain(connection: duckdb.DuckDBPyConnection, old: _Side, new: _Side, scored: bool) -> None:
    """Make the table `changes`."""
    connection.execute(
        "create temp table moved as select context, item, old_rank, new_rank, "
        "old_known.lower as old_lower, new_known.lower as new_lower, "
        "old_known.mean as old_mean, new_known.mean as new_mean, "
        "old_known.impressions as old_impressions, new_known.impressions as new_impressions, old_size, new_size "
        "from both_lists join compared using (context) "
        "left join old_known using (context, item) left join new_known using (context, item) "
        "where old_rank is distinct from new_rank"
    )
    # How many of the others are above it: then; with its own bound alone changed; and with only the others changed.
    for table, known, own in (("own_moved", "old_known", "new_lower"), ("others_moved", "new_known", "old_lower")):
        connection.execute(
            f"create temp table {table} as select moved.context, moved.item, "
            f"count(*) filter (lower > old_lower) as before, count(*) filter (lower > {own}) as now "
            f"from moved join {known} as other on other.context = moved.context and other.item <> moved.item "
            "where old_lower is not null and new_lower is not null group by all"
        )
    above, by_own, by_others = (f"coalesce({n}, 0)" for n in ("own_moved.before", "own_moved.now", "others_moved.now"))
    up = "coalesce(new_rank, 2147483647) < coalesce(old_rank, 2147483647)"
    own = (
        f"case when {up} then {by_own} < {above} or (new_lower > old_lower and {by_others} >= {above}) "
        f"else {by_own} > {above} or (new_lower < old_lower and {by_others} <= {above}) end"
    )
    # With scores every candidate is known, also those of contexts that have too few lists to be ranked.
    before, now = (f"context in (select context from {name}_known)" for name in ("old", "new"))
    hidden_before, hidden_now = ("false", "false") if scored else (old.full("old_size"), new.full("new_size"))
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
                when new_lower = old_lower and new_mean = old_mean then 'only others moved'
                when new_lower <> old_lower and not ({own}) then 'others moved more'
                when new_impressions = old_impressions then 'same evidence, other fit'
                else (case when new_impressions > old_impressions then 'more evidence' else 'less evidence' end)
                    || (case when new_mean > old_mean then ', higher estimate' when new_mean < old_mean
                        then ', lower estimate' else '' end)
            end as why
        from moved left join own_moved using (context, item) left join others_moved using (context, item)
        order by context, new_rank, old_rank
        """
    )


def _numbers(connection: duckdb.DuckDBPyConnection, query: str) -> dict[str, int]:
    return _rows(connection.sql(query))[0]


def _rows(table: duckdb.DuckDBPyRelation) -> list[dict[str, Any]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.fetchall()]


# --- what looks like another name for the same ------------------------------------------------------------------------


def _find_renamed(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the tables `renamed_contexts` and `renamed_items`: old, new, and how many places are equal, of how many."""
    # A place has one item before and one after, so that this join is no larger than the lists.
    connection.execute(
        f"""
        create temp table renamed_items as
        with gone as (select * from old_lists where item in (select was from names where is_ is null)),
        appeared as (select * from new_lists where item in (select is_ from names where was is null)),
        pairs as (
            select gone.item as old, appeared.item as new, count(*) as places
            from gone join appeared using (context, rank) group by all
        ),
        sizes as (
            select pairs.*, o.size as old_size, n.size as new_size, o.shown as old_shown, n.shown as new_shown
            from pairs
            join (select item, count(*) as size, sum(impressions) as shown from gone group by item) as o
                on o.item = old
            join (select item, count(*) as size, sum(impressions) as shown from appeared group by item) as n
                on n.item = new
        )
        select old, new, places, greatest(old_size, new_size) as of_places
        from sizes
        where places >= {ALIKE} * greatest(old_size, new_size)
            -- one item in the place of another is an everyday event, unless it comes with the same evidence
            and (places >= 3 or abs(old_shown - new_shown) <= {_NEAR} * greatest(old_shown, new_shown))
        """
    )
    connection.execute(
        f"""
        create temp table renamed_contexts as
        with gone as (select l.* from old_lists as l join compared using (context) where new_size = 0),
        appeared as (select l.* from new_lists as l join compared using (context) where old_size = 0),
        telling as (
            select rank, item from gone group by all having count(*) <= {_RARE}
            intersect
            select rank, item from appeared group by all having count(*) <= {_RARE}
        ),
        candidates as (
            select distinct gone.context as old, appeared.context as new
            from gone join telling using (rank, item) join appeared using (rank, item)
        ),
        pairs as (
            select old, new, count(*) as places
            from candidates join gone on gone.context = old
            join appeared on appeared.context = new and appeared.rank = gone.rank and appeared.item = gone.item
            group by all
        ),
        alike as (
            select old, new, places, greatest(o.old_size, n.new_size) as of_places
            from pairs join compared as o on o.context = old join compared as n on n.context = new
            where of_places >= 2 and places >= {ALIKE} * of_places
        )
        from alike qualify count(*) over (partition by old) = 1 and count(*) over (partition by new) = 1
        """
    )


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
        told = {name: value for name, value in source.to_json().items() if name not in _NO_SETTINGS}
        yield from _flat(told, f"{role}.")
    yield from _flat(manifest.results.get("fitted", {}), "fitted.")


def _flat(said: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in said.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value
