"""Ranking on Spark: the driver fits what all contexts share, then each task ranks its own contexts.

What is fitted comes from two bounded samples of contexts, and the functions that rank are those of one machine: lists
and numbers are the same to the last bit.
"""

from collections.abc import Callable
from functools import cache, partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from prudent.base.errors import UsageError
from prudent.bounds.base import PriorRule
from prudent.bounds.groups import Effects, Sums, Totals, effects_of, totals_of
from prudent.click_models.base import FittedModel
from prudent.counts import sampling
from prudent.counts.counts import Counts
from prudent.counts.days import UNIT
from prudent.counts.from_arrow import part_from_arrow
from prudent.counts.groupings import Groupings, open_groupings
from prudent.engines.duckdb.engine import DuckDB
from prudent.engines.spark.engine import Spark
from prudent.logs.log import Candidates
from prudent.policies.files import COLUMNS
from prudent.policies.fitted_prior import PRIOR_IN_FOLDER, FittedPrior
from prudent.policies.plan import Extent, Plan, Request, learn
from prudent.policies.policy import Policy
from prudent.policies.rank import manifest_of
from prudent.policies.rules.apply import columns_of
from prudent.policies.rules.match import bind
from prudent.policies.rules.rules import Rules
from prudent.policies.scorer import Groups
from prudent.policies.tables import CHANGES, terms
from prudent.storage.files import TemporaryFolder
from prudent.storage.filesystem import Location, check_apart, fetch, find, locate, write_text
from prudent.storage.quoting import file_text

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from prudent.engines.spark.contexts import Contexts

_OF = "of_"  # prefix of the columns that are the same in all rows of a context
_VALUES = ("lists", "value", "lower", "incumbent_value", "incumbent_lower")
_TOTALS = ("grouping", "key", "clicks", "examined", "expected")
_MOST_GROUPS = 5_000_000  # 160 MB in the driver and in every worker
_MOST_BYTES = 500_000_000  # of features, in the driver and in every worker
_TYPES = "lower double, mean double, upper double, stay double, positive double, negative double, impressions bigint"


def rank_on_spark(
    counts: Counts,
    request: Request,
    candidates: Candidates | None,
    engine: Spark,
    to: str | PathLike[str] | None,
    rules: Rules | None,
) -> Policy:
    """The policy of `prudent.rank`, written to a folder of part files."""
    if not isinstance(engine, Spark):
        raise UsageError(f"The engine is {engine!r}: prudent.DuckDB(...) or prudent.Spark(session).")
    if to is None:
        raise UsageError("Spark writes the lists to a folder: to='s3a://...' or a path.")
    from prudent.engines.spark.contexts import name_of, opened_counts

    target = locate(to, engine.filesystem)
    files = counts.locations
    check_apart(target, files)
    unit = UNIT if counts.weights else 1
    weights = dict(zip(files, counts.weights or (1,) * len(files), strict=True))
    with opened_counts(engine, weights, unit, candidates, rewarded=bool(counts.tally.reward)) as contexts:
        if rules is not None:
            request = request._replace(rules=bind(rules, *contexts.kinds))
        extent = Extent(lists=counts.tally.lists, **contexts.summarize(request.min_lists * unit, request.unseen))

        grouped = None
        if not request.groups.nothing:
            groupings = open_groupings(request.groups, DuckDB(), contexts.kinds)
            grouped = Groups(groupings, partial(_add_up, contexts, groupings, unit))

        features = None
        if not request.features.nothing:
            features = request.features.open(DuckDB(), contexts.kinds)
            if features.tables.nbytes > _MOST_BYTES:
                raise UsageError(
                    f"The features take {features.tables.nbytes / 1e6:,.0f} MB, and each task of Spark needs all of "
                    f"them: at most {_MOST_BYTES / 1e6:,.0f} MB. Leave some out, or rank with DuckDB."
                )
        named = not (grouped is None and features is None)

        def samples() -> Any:
            heavy, fair = contexts.samples(sampling.enough, sampling.MOST_PAIRS)
            return tuple(part_from_arrow(rows, unit, named=named)[0] for rows in (heavy, fair))

        plan = learn(request, extent, counts, samples, grouped, features)
        prior = FittedPrior.of(plan, str(request.bound))
        offered = None if candidates is None else name_of(candidates.source)
        manifest = contexts.map_contexts(
            *(_ranking(plan, unit), _types(plan)),
            to=target,
            keep=COLUMNS,
            sums=terms(_OF, *_of_rules(plan)),
            manifest=lambda sums: manifest_of(request, extent, plan, sums, counts.training, offered),
            texts={} if prior is None else {PRIOR_IN_FOLDER: prior.to_text()},
        )
    write_text(target.sibling(f"{target.path.rpartition('/')[2]}.manifest.json"), manifest.to_text())
    connection = DuckDB().open()
    lists = cache(partial(_read_lists, connection, target, engine))
    return Policy(connection, manifest, {"lists": lists}, counts, prior=prior)


def _read_lists(connection: "duckdb.DuckDBPyConnection", target: Location, engine: Spark) -> str:
    """Make the table of lists, from the part files wherever they are; a query for it."""
    folder = TemporaryFolder()
    files = fetch(find(target.name, engine.filesystem), folder.path)
    source = f"read_parquet([{', '.join(map(file_text, files))}], hive_partitioning = false)"
    connection.execute(f"create temp table lists as from {source} order by context, rank")
    return "from lists"


def _add_up(contexts: "Contexts", groupings: Groupings, unit: int, fitted: FittedModel, rule: PriorRule) -> Effects:
    """The totals of groups: those of each task's contexts, added up by Spark."""

    def totals(table: "pa.Table") -> "pa.RecordBatch":
        import pyarrow as pa

        part, _, _ = part_from_arrow(table, unit, named=True)
        found = totals_of(rule, fitted.evidence(part.cells).ranked, groupings.keys(part))
        rows = [(np.full(len(total.keys), number), total.keys, *total.sums) for number, total in enumerate(found)]
        columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
        return pa.RecordBatch.from_arrays(list(map(pa.array, columns)), list(_TOTALS))

    added = contexts.add_up(totals, _TOTALS[:2], _TOTALS[2:], _MOST_GROUPS)
    if added is None:
        raise UsageError(
            f"There are more than {_MOST_GROUPS:,} groups, and each task of Spark needs all of them. Leave out the "
            "finest grouping, or rank with DuckDB."
        )
    number, *columns = (added[name].to_numpy().astype(np.int64) for name in _TOTALS)
    each = [[column[number == one] for column in columns] for one in range(len(groupings.names))]
    return effects_of(groupings.names, [Totals.of(key, Sums(*sums)) for key, *sums in each], rule)


def _of_rules(plan: Plan) -> tuple[list[str], list[str]]:
    return columns_of(None if plan.rules is None else plan.rules.rules)


def _types(plan: Plan) -> str:
    """The columns that a task returns."""
    values, counted = _of_rules(plan)
    numbers = [f"{_OF}{name} double" for name in (*_VALUES, *values)]
    return ", ".join([_TYPES, *numbers, *(f"{_OF}{name} boolean" for name in (*CHANGES, *counted))])


def _ranking(plan: Plan, unit: int) -> "Callable[[pa.Table], pa.RecordBatch]":
    """What a task does with the rows of whole contexts."""
    values, counted = _of_rules(plan)
    of_contexts = (*_VALUES, *values, *CHANGES, *counted)

    def rank_contexts(table: "pa.Table") -> "pa.RecordBatch":
        import pyarrow as pa

        named = plan.effects is not None or plan.rules is not None or plan.features is not None
        part, contexts, items = part_from_arrow(table, unit, named=named)
        ranked = plan.rank(part)
        new = ranked.lists
        columns = {
            "context": contexts.take(pa.array(new.context)),
            "rank": pa.array(new.rank.astype(np.int32)),
            "item": items.take(pa.array(new.row)),
            **{name: pa.array(column, from_pandas=True) for name, column in ranked.columns.items()},
            **{f"{_OF}{name}": pa.array(ranked.per_context[name][new.context]) for name in of_contexts},
        }
        return pa.RecordBatch.from_pydict(columns)

    return rank_contexts
