"""Algorithm 1: counts -> evidence -> lower bounds -> lists -> Policy."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cache, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np

from prudent.base.errors import RulesError, UsageError
from prudent.bounds import DEFAULT_BOUND, Bound
from prudent.bounds.base import PriorRule
from prudent.bounds.feature_models import FeatureModel
from prudent.bounds.groups import Effects
from prudent.bounds.learn_effects import learn_effects
from prudent.click_models import ClickModel
from prudent.click_models.base import FittedModel
from prudent.counts.count import as_counts
from prudent.counts.counts import Counts
from prudent.counts.feature_tables import tables_of
from prudent.counts.groupings import GroupBy, open_groupings
from prudent.counts.index import Index
from prudent.counts.max_rejected import MAX_REJECTED
from prudent.counts.sampling import samples
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.formats import is_path, is_paths, named_files
from prudent.logs.log import Candidates, table_context
from prudent.policies.feature_signals import FeatureRequest
from prudent.policies.fitted_prior import FittedPrior
from prudent.policies.plan import Extent, Plan, Request, check_request, columns, learn
from prudent.policies.policy import Policy
from prudent.policies.rules.apply import columns_of, costs
from prudent.policies.rules.match import bind
from prudent.policies.rules.rules import read_rules
from prudent.policies.scorer import Groups
from prudent.policies.tables import CONTEXTS, LISTS, SCORES, Rows, append, evened, means, terms
from prudent.storage.files import check_output, check_target
from prudent.storage.manifest import Manifest, Source

if TYPE_CHECKING:
    from prudent.engines.spark.engine import Spark


def rank(
    source: Any,
    model: str | ClickModel = "auto",
    *,
    bound: str | Bound = DEFAULT_BOUND,
    length: int | None = None,
    candidates: str | PathLike[str] | Any | None = None,
    min_lists: int = 1,
    unseen: bool = False,
    max_moves: int | None = None,
    groups: Sequence[str] | str = (),
    item_groups: str | PathLike[str] | Any | None = None,
    context_groups: str | PathLike[str] | Any | None = None,
    features: str | PathLike[str] | Sequence[Any] | Any | None = None,
    feature_model: str | FeatureModel | None = None,
    rules: Mapping[str, Any] | str | PathLike[str] | None = None,
    engine: "DuckDB | Spark | None" = None,
    to: str | PathLike[str] | None = None,
    since: date | str | None = None,
    until: date | str | None = None,
    half_life: float | str | None = None,
    scores: str | PathLike[str] | None = None,
    max_rejected: float = MAX_REJECTED,
    **log: Any,
) -> Policy:
    """Find, for every context, the list of the highest pessimistic value: that of the lower bounds of its items.

    ``source`` is counts or a log: `Counts`, a `Log`, a table, or paths of either; `log` are arguments of `as_log`, such
    as the names of columns.

    Of many contexts, a bounded sample is enough to fit position parameters and priors. All are then ranked part by
    part, so that memory does not grow with their number.

    model, bound
        A spelling such as ``"pbm"`` or ``"bayes(delta=0.1)"``, or the object that it stands for.
    length
        Maximum length of a list; by default that of the longest logged list. Positions below it have weight 0, since
        the log has no data on them.
    candidates
        A table of ``context`` and ``item`` with exactly the eligible items; those that were never logged have no
        evidence. By default, all items that the log shows. Other logged items still count as evidence: withdrawing an
        item does not change the scores of the rest.
    min_lists
        Contexts with fewer logged lists are left out, so that the caller keeps its own ranking there.
    unseen
        Whether contexts that `candidates` names and the log does not have get a list too, ranked by the fitted prior
        alone: `Policy.contexts` says ``prior`` of their evidence.
    max_moves
        Positions that an item may rise above its place in the incumbent list, for ``anchored``; by default any.
    groups, item_groups, context_groups
        What the clicks of other contexts are grouped by, for the prior of ``anchored``: automatic groupings, ``item``,
        ``host`` and ``query``, and tables with a column ``item`` or ``context`` and a column for each grouping
        (`prudent.counts.groupings`). Each counts as far as the data support it. Items may rise that are clicked in
        other contexts alone; with ``bound="anchored(lead=clicks)"`` they may not.
    features, feature_model
        A table, or a sequence of several, with a row per ``item``, per ``context`` or per pair of both, and a feature
        in each of its other columns: numbers, or text and booleans. What they say about clicks is learned by ``ridge``,
        the default, or ``lightgbm`` (`prudent.bounds.feature_models`), never from a pair's own context, and is one more
        signal for the prior of ``anchored``. It counts as far as the data support it, as groups do.
    rules
        Business rules, as a mapping or the path of a JSON file: pin, bury or exclude items, keep the incumbent's first
        items, limit items of a group, show new ones. What each costs is in the manifest: ``results.rules``.
    reward
        As in `Log`: what a click was worth, a column of the log or of that which counts were made of. A list is then
        worth the reward that it is expected to earn, and ``lower``, ``mean`` and ``upper`` are what an examination of
        an item earns (`prudent.bounds.rewards`). It needs ``pbm`` and a bound with a posterior, which the defaults are.
    engine, to
        With `prudent.Spark`, contexts are ranked where Spark runs, which needs prudent there, and the lists are written
        to the folder `to`, as part files in the order of contexts. Otherwise `to` is a file, and optional; ``scores``
        is a file for the scores of every candidate.
    since, until, half_life
        As in `prudent.Counts.read`, where the source is files of counts.
    max_rejected
        As in `prudent.count`, where the source is a log.

    >>> import prudent, pyarrow as pa
    >>> lists = [{"query": "shoes", "items": ["i1", "i2"], "clicks": [0, 1]}] * 9
    >>> policy = prudent.rank(pa.Table.from_pylist(lists), "cm", context="query")
    >>> policy["shoes"]
    ['i2', 'i1']
    """
    named = table_context(source, log)
    by = GroupBy(groups, item_groups, context_groups, named)
    table = None if candidates is None else Candidates(candidates, named)
    learning = FeatureRequest(features, feature_model, named)
    request = check_request(model, bound, length, min_lists, max_moves, by, unseen, learning)
    checked = None if rules is None else read_rules(rules)
    if to is not None and isinstance(engine, DuckDB | None):
        ruling: list[Any] = [] if checked is None else [rules, checked.item_groups]
        also = [Path(one) for one in ruling if is_path(one)]
        tables = (*tables_of(features), candidates, item_groups, context_groups)
        check_outputs((source, *tables), to, scores, also)
    elif scores is not None:
        raise UsageError("scores= (--scores) are written beside a local file of lists: set to=, without Spark.")
    days: dict[str, Any] = {"since": since, "until": until, "half_life": half_life}
    counts = as_counts(source, engine=engine, max_rejected=max_rejected, **days, **log)
    if "format" not in log:  # what a reader takes for a reward, such as weights of actions, it names in its own way
        check_reward(counts, log.get("reward"))
    if not isinstance(engine, DuckDB | None):
        from prudent.policies.rank_on_spark import rank_on_spark

        return rank_on_spark(counts, request, table, engine, to, checked)
    names = counts.index if table is None else counts.number(table)
    if checked is not None:
        request = request._replace(rules=bind(checked, names.names.kind, next(iter(names.runs())).items.kind))
    extent = measure(names, counts.tally.lists, request.min_lists, unseen)
    kinds = (names.names.kind, next(iter(names.runs())).items.kind)
    opened = None if learning.nothing else request.features.open(names.engine, kinds)
    plan = learn(request, extent, counts, lambda: samples(names), _group(names, by), opened)
    connection = counts.engine.open()

    def ranked_lists() -> Iterator[Rows]:
        for part in names.parts():
            ranked = plan.rank(part)
            append(connection, "per_context", {"context": part.contexts, **ranked.per_context})
            yield ranked.listed(part)

    for lists in evened(ranked_lists()):
        append(connection, "lists", lists, LISTS)
    summing = terms("", *columns_of(checked))
    summed = ", ".join(f"sum({term})" for term in summing.values())
    row = connection.execute(f"select {summed} from per_context where kept").fetchall()[0]
    sums = dict(zip(summing, row, strict=True))
    scored = cache(partial(_score, connection, names, plan))
    policy = Policy(
        connection,
        manifest_of(request, extent, plan, sums, counts.training, None if table is None else table.name),
        {"lists": "from lists", "contexts": CONTEXTS, "scores": scored},
        counts,
        prior=FittedPrior.of(plan, str(request.bound)),
    )
    if to is not None:
        policy.write(to, scores)
    return policy


def check_reward(counts: Counts, reward: str | None) -> None:
    """Raise where counts do not have the reward to rank by."""
    if reward is not None and counts.tally.reward != reward:
        has = f"the reward {counts.tally.reward!r}" if counts.tally.reward else "no rewards"
        raise UsageError(
            f"These counts have {has}. Count the log with it: prudent count LOG -o COUNTS --reward {reward}"
        )


def check_outputs(
    inputs: Sequence[Any], to: str | PathLike[str], scores: str | PathLike[str] | None, also: Sequence[Path] = ()
) -> None:
    """Raise before the work where the files of a policy cannot be written, or replace what is read.

    `also` are further files, by name, where inputs may be patterns and folders.
    """
    check_target(to)
    read = [*also, *(file for table in inputs if is_paths(table) for file in named_files(table))]
    check_output(to, read)
    if scores is not None:
        check_output(scores, [*read, to])


def measure(names: Index, lists: int, min_lists: int, unseen: bool = False) -> Extent:
    """How much there is to rank in contexts of at least so many logged lists or, if `unseen`, of none at all."""
    eligible = names.eligible_of > 0
    kept = eligible & ((names.lists_of >= min_lists) | (unseen & (names.lists_of == 0)))
    return Extent(
        lists=lists,
        clicks=names.clicks,
        positions=names.positions,
        pairs=names.pairs,
        contexts=int(kept.sum()),
        unseen=int((kept & (names.lists_of == 0)).sum()),
        too_few_lists=int((eligible & ~kept).sum()),
        without_candidates=int((~eligible & (names.lists_of > 0)).sum()),
        most_eligible=int(names.eligible_of.max(initial=0)),
        most_listed=int(names.eligible_of[kept].max(initial=0)),
    )


def _group(names: Index, by: GroupBy) -> Groups | None:
    """The groupings of the pairs of an index; None where there are none."""
    if by.nothing:
        return None
    items = next(iter(names.runs())).items
    groupings = open_groupings(by, names.engine, (names.names.kind, items.kind))

    def add_up(fitted: FittedModel, rule: PriorRule) -> Effects:
        return learn_effects(
            rule,
            ((fitted.evidence(part.cells).ranked, groupings.keys(part)) for part in names.parts()),
            names.engine.room(),
        )

    return Groups(groupings, add_up)


def _score(connection: duckdb.DuckDBPyConnection, index: Index, plan: Plan) -> str:
    """Make the table of scores of all candidates; a query for it."""
    connection.execute("drop table if exists scores")  # of a call that was interrupted

    def scored() -> Iterator[Rows]:
        for part in index.parts():
            row = np.flatnonzero(part.eligible)
            names = {"context": part.contexts.take(part.cells.context[row]), "item": part.items.take(row)}
            yield {**names, **columns(*plan.score(part), row)}

    for rows in evened(scored()):
        append(connection, "scores", rows, SCORES)
    return "from scores"


def manifest_of(
    request: Request,
    extent: Extent,
    plan: Plan,
    sums: Mapping[str, Any],
    training: Source,
    candidates: str | None,
) -> Manifest:
    """The manifest of a policy; `sums` are those of `terms`."""
    rules = None if request.rules is None else request.rules.rules
    if not sums["contexts"]:
        raise RulesError("The rules exclude every candidate of every context: there is nothing to rank.")
    emptied = extent.contexts - int(sums["contexts"])
    return Manifest(
        "policy",
        {
            "model": str(plan.fitted.model),
            "bound": str(request.bound),
            "asked_model": str(request.model),
            "length": request.length or extent.positions,
            "min_lists": request.min_lists,
            "max_moves": request.max_moves,
            "candidates": candidates,
            **({"unseen": True} if request.unseen else {}),
            **plan.groupings.settings,
            **({} if plan.features is None else plan.features.settings),
            **({} if rules is None else {"rules": rules.to_json()}),
        },
        {"training": training},
        {
            **plan.results,
            "summary": {
                "contexts": int(sums["contexts"]),
                **({"unseen": extent.unseen} if extent.unseen else {}),
                "too_few_lists": extent.too_few_lists,
                "without_candidates": extent.without_candidates + emptied,
                "differ": int(sums["differ"]),
                "unclicked": int(sums["unclicked"]),
                **({"hedged": int(sums["hedged"])} if plan.rivals else {}),
                "unit": "expected reward" if training.tally.reward else plan.fitted.model.unit,
                "level": None if plan.list_level is None else 1 - plan.list_level,
                **means(sums),
            },
            **({} if rules is None else {"rules": costs(rules, sums)}),
        },
    )
