"""`prudent.explore`: policy, scores and log -> variants of its lists with probabilities, at a bounded price."""

from collections.abc import Iterator
from datetime import date
from os import PathLike
from typing import Any, Literal, NamedTuple, get_args

import duckdb
import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import PolicyError, UsageError
from prudent.base.results import ArrowStream
from prudent.base.spec import check_number, check_word, whole_number
from prudent.click_models.base import ClickModel
from prudent.click_models.position_information import overall_error
from prudent.counts.count import as_counts
from prudent.counts.counts import Counts
from prudent.counts.max_rejected import MAX_REJECTED
from prudent.engines.duckdb.engine import DuckDB
from prudent.logs.formats import find_files, is_paths
from prudent.policies.exploration.exploration import Exploration
from prudent.policies.exploration.items import steps_of, variants_of
from prudent.policies.exploration.knowledge import Knowledge, read_knowledge, search_space
from prudent.policies.exploration.positions import Swap, link, sharpen, unlinked
from prudent.policies.exploration.price import PURPOSES, Price, Variants, price
from prudent.policies.exploration.situation import Situation, read_situation, spare
from prudent.policies.export.base import WEIGHTED
from prudent.policies.policy import Policy, as_policy
from prudent.policies.tables import append
from prudent.storage.files import check_output
from prudent.storage.manifest import Manifest

Goal = Literal["both", "positions", "items"]
_TRIES = 8  # budgets for swaps, each 0.6 of the one before, until their upper limit is within the whole budget
_MOST_BUDGET = 0.5


def explore(
    policy: Policy | str | PathLike[str],
    log: Any = None,
    *,
    budget: float = 0.01,
    goal: Goal = "both",
    lists: int | None = None,
    confidence: float = 0.95,
    scores: str | PathLike[str] | None = None,
    to: str | PathLike[str] | None = None,
    engine: DuckDB | None = None,
    since: date | str | None = None,
    until: date | str | None = None,
    half_life: float | str | None = None,
    max_rejected: float = MAX_REJECTED,
    **columns: Any,
) -> Exploration:
    """Choose variants of the lists of a policy that teach most, and how often to show each, at a bounded loss.

    Swaps of two positions make the examination probabilities of the position-based model comparable, and halve their
    standard error. Other variants try items that were shown too little, where learning about them reduces regret most
    per expected loss. What a server shows has a known probability: logged as the propensity, it makes
    `prudent.evaluate` unbiased for every policy whose lists are among the variants.

    The loss is a share of the value of the policy over all traffic, by the estimates of the policy and its click model
    (`prudent.policies.exploration.price`). Both its expectation and its upper limit are at most `budget`.

    policy, log
        A policy of `prudent.rank`, and the log or the counts that it was made from; a policy that is not from a file
        has its own. `columns` are arguments of `as_log`, such as the names of the log's columns.
    budget
        The share of the policy's value that exploring may lose, such as 0.01.
    goal
        ``positions``, ``items`` or ``both``. Only a click model that is fitted to items at several positions needs the
        first. Of ``both``, positions get half of the budget at most.
    lists
        How many lists are coming, which the predictions are for; by default as many as the log has.
    confidence
        Of the upper limit of the loss.
    scores
        The file of the scores of all candidates, if the policy is in a file.
    to
        The Parquet file to write.
    since, until, half_life
        As in `prudent.Counts.read`, where the log is files of counts.

    >>> import prudent, pyarrow as pa
    >>> shown = [["i1", "i2", "i3"], ["i2", "i1", "i3"], ["i3", "i2", "i1"]] * 30
    >>> log = pa.Table.from_pylist([
    ...     {"context": "shoes", "items": items, "clicks": [int(n % 3 == 0), int(n % 7 == 0), 0]}
    ...     for n, items in enumerate(shown)
    ... ])
    >>> exploration = prudent.explore(prudent.rank(log, "cm", length=2), budget=0.05)
    >>> [row for row in exploration.rows() if row[1] == 0 and row[4] == 1][0][3]
    'policy'
    """
    check_number("budget", budget, above=0, most=_MOST_BUDGET, example="0.01")
    check_number("confidence", confidence, above=0.5, below=1, example="0.95")
    check_word("goal", goal, get_args(Goal))
    if to is not None:
        inputs: tuple[Any, ...] = (policy, log, scores)
        check_output(to, [file for one in inputs if is_paths(one) for file in find_files(one)])
    source = as_policy(policy, scores)
    if source.reward:
        raise PolicyError(
            f"The policy was ranked by the reward {source.reward}, and exploring prices clicks: explore one that was "
            "ranked by clicks."
        )
    days: dict[str, Any] = {"since": since, "until": until, "half_life": half_life}
    if log is not None:
        counts = as_counts(log, engine=engine, max_rejected=max_rejected, **days, **columns)
    elif source.counts is not None and not columns and not any(days.values()):
        counts = source.counts
    else:
        raise UsageError(
            "Exploring takes the log or the counts that the policy was made from: name them, log= (--log)."
        )
    if lists is None and counts.tally.unit == "impression":
        raise UsageError("The log has single impressions: say how many lists are coming, lists= (--lists).")
    coming_lists = counts.tally.lists if lists is None else whole_number("lists", lists, 1)
    situation = read_situation(source, counts)
    coming = coming_lists * situation.lists / situation.all_lists
    plan = _Plan(budget, confidence, goal, coming)
    made = _explored(situation, counts, source, plan)
    exploration = _as_exploration(situation, made, source, counts, plan, coming_lists)
    if to is not None:
        exploration.write(to)
    return exploration


class _Plan(NamedTuple):
    """Checked arguments."""

    budget: float
    confidence: float
    goal: Goal
    coming: FloatArray  # lists of each context


class _Explored(NamedTuple):
    """The variants, and what is predicted."""

    variants: Variants
    price: Price
    positions: dict[str, Any]
    notes: list[str]


def _explored(situation: Situation, counts: Counts, policy: Policy, plan: _Plan) -> _Explored:
    """The variants for both goals."""
    _check_variants(situation, plan.goal)
    notes: list[str] = []
    model: ClickModel = situation.fitted.model
    learned = model.compares_positions and situation.learned
    knowledge, covariance = None, None
    swaps = Variants.none(situation.length)
    positions: dict[str, Any] = {"now": None, "after": None}
    if situation.length > 1 and counts.tally.unit == "list" and (learned or not model.compares_positions):
        knowledge = read_knowledge(situation, counts, learned)
        covariance = knowledge.covariance if learned else None
    if plan.goal != "items":
        name = policy.manifest.settings["model"]
        if knowledge is None or (not learned and len(knowledge.groups) == 1):
            notes.append(
                f"No swaps: {name} has no examination probabilities that were fitted to items at several positions."
            )
        else:
            swaps, note = _swaps(situation, knowledge, plan, covariance)
            notes += note
    variants = swaps
    if plan.goal != "positions":
        variants = _with_items(situation, plan, swaps, covariance)
        if len(variants.context) == len(swaps.context):
            notes.append("No items to try: no candidate that is in no list may be better than a listed one.")
    if knowledge is not None and (learned or len(swaps.context)):
        after = knowledge.after(situation, variants, plan.coming)
        positions = {
            "groups": knowledge.groups,
            "now": knowledge.error,
            "after": None if after is None else float(overall_error(after, knowledge.examination)),
            "standard_errors": knowledge.errors(after),
        }
    return _Explored(variants, price(situation, variants, plan.confidence, covariance), positions, notes)


def _check_variants(situation: Situation, goal: Goal) -> None:
    """Raise where no list has a variant."""
    if goal != "positions" and spare(situation).any():
        return
    if goal != "items" and situation.length > 1:
        return
    if goal == "positions":
        raise PolicyError("Lists of one item have no positions to swap. Explore items: goal='items' (--goal items).")
    raise PolicyError(
        "There is nothing to explore: every candidate is in the list of its context"
        + (", and lists have one item." if situation.length == 1 else ". Swaps are left: goal='positions'.")
    )


def _swaps(
    situation: Situation, knowledge: Knowledge, plan: _Plan, covariance: FloatArray | None
) -> tuple[Variants, list[str]]:
    """Swaps for p, whose expected loss is at most half of the budget if items are explored, too."""
    positions, order = search_space(situation, knowledge, plan.coming)
    none = Variants.none(situation.length)
    linking, left = link(positions)
    if len(left) > 1:
        return none, [unlinked(left)]
    money = plan.budget if plan.goal == "positions" else plan.budget / 2
    now = knowledge.error or sharpen(positions, linking, 0.0, -1.0)[1]
    for _ in range(_TRIES):
        swaps, _ = sharpen(positions, linking, now / 2, money)
        variants = _as_variants(situation, swaps, order)
        if price(situation, variants, plan.confidence, covariance).at_most <= plan.budget:
            return variants, []
        money *= 0.6
    variants = _as_variants(situation, linking, order)
    at_most = price(situation, variants, plan.confidence, covariance).at_most
    if at_most > plan.budget:
        return none, [
            f"No swaps: those that link all positions may lose {at_most:.2%} of the value of the policy, more than the "
            f"budget of {plan.budget:.2%}."
        ]
    return variants, []


def _as_variants(situation: Situation, swaps: list[Swap], order: IntArray) -> Variants:
    """The swapped lists, in the order of contexts and positions."""
    if not swaps:
        return Variants.none(situation.length)
    columns = [np.array(column) for column in zip(*swaps, strict=True)]
    context, first, second, probability = order[columns[0]], *columns[1:]
    lists = situation.table[context]
    at = np.arange(len(context))
    lists[at, first], lists[at, second] = lists[at, second], lists[at, first]
    return Variants.joined([Variants(context, lists, probability, np.full(len(at), PURPOSES.index("positions")))])


def _with_items(situation: Situation, plan: _Plan, swaps: Variants, covariance: FloatArray | None) -> Variants:
    """The swaps with as many steps of trying items as the budget allows, by halving."""
    steps = steps_of(situation, plan.coming, swaps.shares(situation.contexts))

    def after(taken: int) -> Variants:
        return Variants.joined([swaps, variants_of(situation, steps, taken)])

    low, high = 0, len(steps.pair) + 1
    while high - low > 1:
        middle = (low + high) // 2
        cost = price(situation, after(middle), plan.confidence, covariance)
        within = max(cost) <= plan.budget
        low, high = (middle, high) if within else (low, middle)
    return after(low)


def _as_exploration(
    situation: Situation, made: _Explored, policy: Policy, counts: Counts, plan: _Plan, lists: int
) -> Exploration:
    """The lists by name, with the manifest."""
    variants, contexts = made.variants, situation.contexts
    shares = variants.shares(contexts)
    weight = situation.lists / situation.lists.sum()
    connection: duckdb.DuckDBPyConnection = situation.connection
    for part in _tables(situation, variants, shares):
        append(connection, "chosen", part)
    named = connection.sql(
        "select context, variant::integer as variant, probability, purpose, rank::integer as rank, item from "
        f"(select chosen.* replace ({_purpose_names()} as purpose) from chosen) as chosen "
        "join (select pair, context, item from candidates) as names using (pair) order by context, variant, rank"
    )
    target = DuckDB().open()
    target.register("named", ArrowStream(named))
    target.execute(f"create temp table exploration as select {', '.join(WEIGHTED)} from named")
    target.unregister("named")
    settings = policy.manifest.settings
    manifest = Manifest(
        "exploration",
        {
            "budget": float(plan.budget),
            "confidence": float(plan.confidence),
            "goal": plan.goal,
            "lists": lists,
            "policy": {name: settings[name] for name in ("model", "bound", "length") if name in settings},
        },
        {"training": counts.training},
        {
            "lists": {
                "contexts": contexts,
                "explored": int((shares > 0).sum()),
                "variants": len(variants.context),
                "positions": int((variants.purpose == PURPOSES.index("positions")).sum()),
                "items": int((variants.purpose == PURPOSES.index("items")).sum()),
                "traffic": float(weight @ shares),
            },
            "loss": {
                "expected": made.price.expected,
                "at_most": made.price.at_most,
                "confidence": float(plan.confidence),
                "unit": situation.fitted.model.unit,
                "value": float(weight @ situation.value),
            },
            "positions": made.positions,
            "notes": made.notes,
        },
    )
    return Exploration(target, manifest, (*policy.files, *counts.files))


def _purpose_names() -> str:
    """SQL for the name of a purpose."""
    return f"[{', '.join(repr(one) for one in PURPOSES)}][purpose + 1]"


def _tables(situation: Situation, variants: Variants, shares: FloatArray) -> Iterator[dict[str, Any]]:
    """The rows of the policy's lists and of the variants, by the numbers of their pairs."""
    context, number = variants.context, np.arange(len(variants.context))
    first = np.searchsorted(context, context)
    rest = np.round(1 - shares, 9)
    every = (
        (situation.table, np.zeros(situation.contexts, np.int64), rest, np.zeros(situation.contexts, np.int64)),
        (variants.lists, 1 + number - first, np.round(variants.probability, 9), variants.purpose),
    )
    for lists, variant, probability, purpose in every:
        row, place = np.nonzero(lists >= 0)
        yield {
            "pair": lists[row, place],
            "variant": variant[row],
            "probability": probability[row],
            "purpose": purpose[row],
            "rank": place + 1,
        }
