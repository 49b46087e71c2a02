"""`prudent.gate_contexts`: the policy's list where it is significantly better, the incumbent list elsewhere."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtri

from prudent.base.arrays import BoolArray, IntArray
from prudent.base.errors import LogError, UsageError
from prudent.base.spec import check_share
from prudent.base.text import Column, Rows, percent, several
from prudent.click_models.base import ClickModel
from prudent.click_models.rewards import COLUMN, ObservedReward
from prudent.counts.max_rejected import MAX_REJECTED
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.confounding_by_segment import SegmentTest
from prudent.evaluation.direct import Direct, direct
from prudent.evaluation.estimators import Estimator, estimators
from prudent.evaluation.evaluate import DECIDES
from prudent.evaluation.gate import gate_holdout, gate_settings
from prudent.evaluation.holdout_log import HoldoutLog, PolicyLike, open_holdout
from prudent.evaluation.intervals import Settings
from prudent.evaluation.item_posterior import ItemCounts
from prudent.evaluation.list_differences import list_differences
from prudent.evaluation.refusals import MIN_SUPPORT, read_acknowledged
from prudent.evaluation.verdict import Decision, Outcome, Verdict
from prudent.logs.formats import find_files, is_paths
from prudent.policies.files import COLUMNS
from prudent.policies.incumbent import incumbent_lists
from prudent.policies.list_arrays import as_table
from prudent.policies.policy import Policy
from prudent.policies.tables import append
from prudent.storage.files import check_output
from prudent.storage.manifest import Manifest, Source


@dataclass(frozen=True, eq=False, repr=False)
class Mixture(Decision):
    """The mixed policy, and how many contexts have which list; true as a condition if any list is new.

    ``better`` contexts get the policy's list. In ``same`` contexts it equals the incumbent list as far as it goes.
    ``unsure`` contexts keep the incumbent list: it is better, or the evidence is too weak. ``unseen`` contexts are not
    in the holdout and not in the mixed policy. Where the holdout cannot tell, for the ``reasons`` that stop the gate as
    well, there is no mixed policy.
    """

    mixed: Policy | None
    better: int
    same: int
    unsure: int
    unseen: int
    confidence: float
    min_lift: float
    reasons: tuple[str, ...] = ()
    acknowledged: tuple[str, ...] = ()
    segments: tuple[SegmentTest, ...] = ()  # confounding by each column that was named

    @property
    def verdict(self) -> Outcome:
        """Pass if any list is new, and unknown where the holdout cannot tell."""
        return "unknown" if self.reasons else "pass" if self.better else "fail"

    @property
    def policy(self) -> Policy:
        """The mixed policy; an error where there is none."""
        if self.mixed is None:
            raise LogError(f"There is no mixed policy. {self.why}")
        return self.mixed

    def to_json(self) -> dict[str, Any]:
        """The decision and its counts; fits JSON."""
        names = ("verdict", "why", "better", "same", "unsure", "unseen", "min_lift", "confidence")
        return {
            **{name: getattr(self, name) for name in names},
            "reasons": list(self.reasons),
            "acknowledged": list(self.acknowledged),
            "segments": [asdict(one) for one in self.segments],
        }

    @property
    def columns(self) -> tuple[Column, ...]:
        """Decision and number of contexts."""
        return Column("decision", str), Column("contexts", int)

    def rows(self) -> Rows:
        """One row per decision."""
        return [(name, getattr(self, name)) for name in ("better", "same", "unsure", "unseen")]

    @property
    def title(self) -> str:
        """The decision in one sentence."""
        return f"{self.verdict}: {self.why}"

    @property
    def why(self) -> str:
        """One line."""
        if self.reasons:
            return f"Lists cannot be compared context by context: {'; '.join(self.reasons)}."
        more = "" if self.min_lift == 0 else f" by more than {percent(self.min_lift)}"
        each = f"with confidence {100 * self.confidence:g}%"
        contexts = several(self.better + self.same + self.unsure, "context")
        if self.better:
            head = f"{self.better:,} of {contexts} {'gets' if self.better == 1 else 'get'} the policy's list: better"
            each += " each"
        else:
            head = "no context gets the policy's list: none is better"
        keep, have = "keeps" if self.unsure == 1 else "keep", "has" if self.same == 1 else "have"
        unseen = f"; {self.unseen:,} {'is' if self.unseen == 1 else 'are'} not in the holdout and left out"
        return (
            f"{head} than the incumbent list{more} {each}; {self.unsure:,} {keep} the incumbent list, {self.same:,} "
            f"{have} the same in both{unseen if self.unseen else ''}"
        )


def gate_contexts(
    policy: PolicyLike,
    log: Any,
    *,
    min_lift: float = 0.0,
    confidence: float = 0.95,
    estimator: str | Estimator = DECIDES,
    reward: ObservedReward = "clicks",
    min_support: float = MIN_SUPPORT,
    acknowledge: Sequence[str] | str = (),
    personalised: bool = False,
    to: str | PathLike[str] | None = None,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
    **columns: Any,
) -> Mixture:
    """Take the policy's list in contexts where the holdout shows that it is better, and the incumbent list elsewhere.

    In each context the two lists are compared, position by position, under a click model fitted to the holdout. The
    policy's list is taken if the posterior probability that it is better is at least `confidence`. So on average at
    most a share 1 − `confidence` of the taken lists are worse, however many there are, as far as the click model and
    its prior are right. Where the gate on the whole policy cannot tell, this one cannot either; and the bias that the
    log may hide (`prudent.evaluation.confounding`) has to be survived in each context. The click model does not use
    propensities, so that they excuse from neither.

    estimator, min_support, acknowledge, personalised
        As in `prudent.gate`; lists are compared under the click model of the estimator.
    policy, log
        Objects or paths; `columns` are arguments of `as_log`, such as the names of the log's columns.
    to
        A Parquet file for the mixed policy, where there is one.

    >>> import prudent, pyarrow as pa
    >>> lists = (("a", "b", 1, 0), ("b", "a", 1, 0), ("a", "b", 0, 0), ("b", "a", 0, 0), ("a", "b", 1, 0))
    >>> log = [{"context": "shoes", "items": [a, b], "clicks": [c, d]} for a, b, c, d in lists * 20]
    >>> policy = prudent.Policy.from_table(pa.Table.from_pylist(log[1:2]), items="items")
    >>> known = {"estimator": "dm(model=pbm)", "acknowledge": ["confounding", "provenance"]}
    >>> mixture = prudent.gate_contexts(policy, pa.Table.from_pylist(log), **known)
    >>> mixture.better, dict(mixture.policy)
    (0, {'shoes': ['a', 'b']})
    """
    settings, chosen = gate_settings(min_lift, confidence, reward), estimators.resolve(estimator)
    check_share("min_support", min_support)
    read_acknowledged(acknowledge)
    model = getattr(chosen, "model", None)
    if model is None:
        raise UsageError(f"Contexts are compared under a click model: name an estimator with one, not {chosen}.")
    if to is not None:
        inputs: tuple[Any, Any] = (policy, log)
        check_output(to, [file for source in inputs if is_paths(source) for file in find_files(source)])
    holdout = open_holdout(policy, log, engine, max_rejected, **columns)
    whole = gate_holdout(holdout, chosen, settings, min_lift, min_support, acknowledge, personalised)
    if holdout.lists.propensity is not None and not whole.reasons:
        holdout = _without_propensities(holdout)
        whole = gate_holdout(holdout, chosen, settings, min_lift, min_support, acknowledge, personalised)
    if whole.reasons:
        return Mixture(None, 0, 0, 0, 0, whole.confidence, min_lift, whole.reasons, segments=whole.segments)
    test = None if "confounding" in read_acknowledged(acknowledge) else whole.confounding
    mixture = mix(holdout, model, settings, whole, test.hidden if test is not None else 0.0)
    if to is not None:
        mixture.policy.write(to)
    return mixture


def _without_propensities(holdout: HoldoutLog) -> HoldoutLog:
    """The same lists as a click model sees them."""
    held = holdout.lists
    bare = replace(held, lists=replace(held.lists, propensity=None))
    return replace(holdout, log=replace(holdout.log, propensity=None), lists=bare)


def better_lists(
    fit: Direct, incumbent: IntArray, confidence: float, min_lift: float, hidden: float = 0.0
) -> tuple[BoolArray, ItemCounts]:
    """In which contexts the policy's list clearly beats the incumbent, and the evidence of the incumbent's items.

    Clicks at places that change may be overstated by the share `hidden`, as in `prudent.evaluation.sensitivity`.
    """
    held = fit.held
    if fit.reward == COLUMN:
        raise UsageError("Lists are compared context by context by clicks or any-click, not by other rewards.")
    lists = list_differences(held, fit.fitted, incumbent, fit.supported, fit.reward, min_lift)
    goal = (1 + min_lift) * lists.incumbent.sum(axis=1)
    # Of the reward any-click, the list is the place.
    stays = np.where(held.target == lists.beside, lists.policy, 0.0).sum(axis=1) if fit.reward == "clicks" else 0.0
    reach = ndtri(confidence) * lists.doubt + hidden * np.maximum(0.0, goal - stays)
    return fit.supported & (lists.gain(min_lift) > reach), lists.counts


def _wide(table: IntArray, other: IntArray) -> IntArray:
    """A table with as many columns as the wider of two."""
    return np.pad(table, ((0, 0), (0, max(0, other.shape[1] - table.shape[1]))), constant_values=-1)


def mix(holdout: HoldoutLog, model: ClickModel, settings: Settings, whole: Verdict, hidden: float) -> Mixture:
    """The mixed policy on a holdout that is read; `whole` is the verdict on the policy."""
    held, connection = holdout.lists, holdout.connection
    confidence, min_lift = whole.confidence, whole.min_lift
    fit = direct(held, model, settings.reward)
    incumbent = as_table(incumbent_lists(held.shown().cells, held.length), held.contexts, held.length)
    better, counts = better_lists(fit, incumbent, confidence, min_lift, hidden)
    mine, theirs = _wide(holdout.target, incumbent), _wide(incumbent, holdout.target)
    same = held.known & ((mine == theirs) | (mine == -1)).all(axis=1)  # as far down as the policy's list goes
    better &= ~same
    # A list that the policy would only shorten stays whole.
    logged = held.known & ~better & (mine != theirs).any(axis=1)
    kept = (incumbent >= 0) & logged[:, None]
    positive, negative = counts.clicks, np.maximum(0.0, counts.examined - counts.clicks)
    append(
        connection,
        "incumbent",
        {
            "number": np.nonzero(kept)[0],
            # An incumbent list may have fewer items than positions.
            "rank": np.cumsum(kept, axis=1)[kept].astype(np.int32),
            "pair": incumbent[kept],
            "lower": betaincinv(1 + positive, 1 + negative, 1 - confidence)[kept],
            "mean": ((positive + 1) / (positive + negative + 2))[kept],
            "positive": positive[kept],
            "negative": negative[kept],
            "impressions": held.shown().impressions[incumbent[kept]],
        },
    )
    append(connection, "taken", {"number": np.flatnonzero(held.known & ~logged)})
    columns = ", ".join(COLUMNS)
    connection.execute(
        f"create table lists as select * from (select {columns} from policy join contexts using (context) "
        "where number in (select number from taken) union all "
        "select contexts.context, incumbent.rank, item, lower, mean, null, null, positive, negative, impressions "
        "from incumbent join contexts using (number) join pairs on pairs.number = pair) "
        "order by context, rank"
    )
    decisions = {
        "better": int(better.sum()),
        "same": int(same.sum()),
        "unsure": int((held.known & ~better & ~same).sum()),
        "unseen": holdout.policy_contexts - int(held.known.sum()),
    }
    made = holdout.policy.manifest
    manifest = Manifest(
        "policy",
        {
            "length": connection.execute("select max(rank) from lists").fetchall()[0][0],
            **{key: made.settings[key] for key in ("min_lists", "candidates", "rules") if key in made.settings},
            "mixed": {
                "confidence": confidence,
                "min_lift": min_lift,
                "reward": settings.reward,
                "model": str(fit.fitted.model),
                **({"acknowledged": list(whole.acknowledged)} if whole.acknowledged else {}),
                # Not on the top level: no one model, bound or method made all lists of the mixed policy.
                "policy": {key: made.settings[key] for key in ("model", "bound", "baseline") if key in made.settings},
            },
        },
        {**made.sources, "holdout": Source(tuple(holdout.log.names), holdout.tally, digest=holdout.digest)},
        {"mixed": decisions},
    )
    mixed = Policy(connection, manifest, {"lists": "from lists"})
    better_n, same_n, unsure_n, unseen_n = decisions.values()
    kept_of_gate: dict[str, Any] = {"acknowledged": whole.acknowledged, "segments": whole.segments}
    return Mixture(mixed, better_n, same_n, unsure_n, unseen_n, confidence, min_lift, **kept_of_gate)
