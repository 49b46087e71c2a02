"""The gate, context by context: the policy's list where it is clearly better, and the logged one elsewhere."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betaincinv, ndtri

from prudent.base.arrays import BoolArray, IntArray
from prudent.base.errors import LogError
from prudent.click_models import ClickModel, PositionBased, click_models
from prudent.counts.rejected import MAX_REJECTED
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.direct import Direct, Trials, believe, direct, learn_prior, rewards, slopes, try_items
from prudent.evaluation.estimate import Asked
from prudent.evaluation.evaluate import open_held_out
from prudent.evaluation.gate import ask_gate
from prudent.evaluation.holdout import CannotTellError, Reward
from prudent.evaluation.leakage import not_held_out
from prudent.evaluation.reading import Read
from prudent.logs.log import Log
from prudent.policies.files import COLUMNS
from prudent.policies.policy import Policy
from prudent.policies.ranking import as_table, incumbent_lists
from prudent.policies.tables import append
from prudent.storage.manifest import Manifest, Source


@dataclass(frozen=True, eq=False)
class Mixture:
    """A policy of which only the lists go out that are clearly better than the logged ones.

    Of the policy's contexts, ``better`` have its list; ``same`` had no other list before, or one that only goes on
    below; ``unsure`` have the logged list, for want of evidence or because it is the better one; and ``unseen`` are not
    in the held-out log, and in the mixed policy neither.
    """

    policy: Policy
    better: int
    same: int
    unsure: int
    unseen: int
    confidence: float
    min_lift: float

    @property
    def passed(self) -> bool:
        """Whether anything changes."""
        return self.better > 0

    @property
    def why(self) -> str:
        """One line."""
        contexts = self.better + self.same + self.unsure
        more = "" if self.min_lift == 0 else f" by more than {100 * self.min_lift:g} %".replace("-", "−")
        sure = f"with confidence {100 * self.confidence:g} %"
        if self.better:
            get = "context gets" if contexts == 1 else "contexts get"
            head, sure = f"{self.better:,} of {contexts:,} {get} the policy's list: better", f"{sure} each"
        else:
            head = "no context gets the policy's list: none is better"
        keep, have = "keeps" if self.unsure == 1 else "keep", "has" if self.same == 1 else "have"
        rest = f"{self.unsure:,} {keep} the logged one, {self.same:,} {have} it in both"
        unseen = f"; {self.unseen:,} {'is' if self.unseen == 1 else 'are'} not in the log and left out"
        return f"{head} than the logged one{more} {sure}; {rest}{unseen if self.unseen else ''}"


def gate_contexts(
    policy: Policy,
    log: Log,
    min_lift: float = 0.0,
    confidence: float = 0.95,
    model: str | ClickModel = "auto",
    reward: Reward = "clicks",
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
) -> Mixture:
    """Keep the policy's list where held-out clicks say that it beats the logged one, and the logged one elsewhere.

    In each context, the policy's list is compared with what was mostly shown there, position by position, under a
    click model that is fitted to the held-out lists: it goes out if the posterior probability that it is better is at
    least `confidence`. So, among the lists that go out, no more than 1 − `confidence` are worse on average, however
    many there are, as far as the click model and its prior are right.
    """
    asked, chosen = ask_gate(min_lift, confidence, reward), click_models.resolve(model)
    read = open_held_out(policy, log, engine, max_rejected)
    if reason := not_held_out(policy.manifest, log, read.tally.lists):
        raise LogError(f"{reason} Hold some out: prudent split.")
    return mix(read, policy, log, chosen, asked, min_lift)


def better_lists(fit: Direct, incumbent: IntArray, confidence: float, min_lift: float) -> tuple[BoolArray, Trials]:
    """In which contexts the policy's list clearly beats the incumbent, and the evidence of the incumbent's items."""
    held = fit.held
    other = replace(held, target=incumbent, known=np.ones(held.contexts, bool))
    mine, theirs = try_items(held, fit.fitted), try_items(other, fit.fitted)
    both = Trials(*(np.concatenate(pair) for pair in zip(mine, theirs, strict=True)))
    prior = learn_prior(both, np.concatenate([fit.supported, np.ones(held.contexts, bool)]))
    theta, variance = np.zeros(len(held.pair_context)), np.zeros(len(held.pair_context))
    for trials, target in ((theirs, incumbent), (mine, held.target)):
        belief, there = believe(trials, prior), target >= 0
        theta[target[there]] = belief.theta[there]
        # A click at a position that is examined half of the time says less than one in half as many lists: θ, and
        # not θ(1 − θ), is what its variance stays below.
        spread = belief.theta * (1 if isinstance(fit.fitted.model, PositionBased) else 1 - belief.theta)
        variance[target[there]] = (spread / (belief.trials + 1))[there]
    gain, slope = np.zeros(held.contexts), np.zeros(len(held.pair_context))
    beside = np.where(np.arange(held.length) < held.upto[:, None], incumbent, -1)  # as far down as both have items
    for sign, target in ((1.0, held.target), (-(1 + min_lift), beside)):
        there = target >= 0
        own = np.where(there, theta[target], 0.0)
        gain += sign * rewards(own, fit.form).sum(axis=1)
        slope[target[there]] += sign * slopes(own, fit.form, np.ones(own.shape))[there]
    doubt = np.sqrt(np.bincount(held.pair_context, slope**2 * variance, minlength=held.contexts))
    return fit.supported & (gain > ndtri(confidence) * doubt), theirs


_OF_BOTH = ("min_lists", "candidates")
_MADE_BY = ("model", "bound", "baseline")


def _wide(table: IntArray, other: IntArray) -> IntArray:
    """A table with as many columns as the wider of two."""
    return np.pad(table, ((0, 0), (0, max(0, other.shape[1] - table.shape[1]))), constant_values=-1)


def mix(read: Read, policy: Policy, log: Log, model: ClickModel, asked: Asked, min_lift: float) -> Mixture:
    """The mixed policy, from held-out lists that have been read."""
    held, connection = read.held, read.connection
    if not held.known.any():
        raise LogError(f"The policy has a list for none of the contexts in {log.name}: there is nothing to mix.")
    confidence = (1 + asked.confidence) / 2
    fit = direct(held, model, asked.reward)
    # What each context mostly saw, as `prudent rank` and the report have it.
    incumbent = as_table(incumbent_lists(held.shown().cells, held.length), held.contexts, held.length)
    try:
        if fit.assumed:
            raise CannotTellError(f"{fit.note} Name one that you trust, as in dm(model=dcm).")
        better, trials = better_lists(fit, incumbent, confidence, min_lift)
    except CannotTellError as error:
        raise LogError(f"Lists cannot be compared one by one. {error}") from error
    mine, theirs = _wide(read.target, incumbent), _wide(incumbent, read.target)
    same = held.known & ((mine == theirs) | (mine == -1)).all(axis=1)  # as far down as the policy's list goes
    better &= ~same
    # What the policy would only cut short stays whole.
    logged = held.known & ~better & (mine != theirs).any(axis=1)
    kept = incumbent >= 0
    kept &= logged[:, None]
    number = np.nonzero(kept)[0]
    positive, negative = trials.clicks, np.maximum(0.0, trials.examined - trials.clicks)
    append(
        connection,
        "incumbent",
        {
            "number": number,
            # A place may be empty, where all that ever stood there stands above.
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
        "where contexts.rowid in (select number from taken) union all "
        "select contexts.context, incumbent.rank, item, lower, mean, positive, negative, impressions "
        "from incumbent join contexts on contexts.rowid = number join pairs on pairs.rowid = pair) "
        "order by context, rank"
    )
    counts = {
        "better": int(better.sum()),
        "same": int(same.sum()),
        "unsure": int((held.known & ~better & ~same).sum()),
        "unseen": read.policy_contexts - int(held.known.sum()),
    }
    # What made the policy did not make the lists that stay: no one model, bound or prior stands behind all rows.
    made = policy.manifest
    manifest = Manifest(
        "policy",
        {
            "length": connection.execute("select max(rank) from lists").fetchall()[0][0],
            **{key: made.settings[key] for key in _OF_BOTH if key in made.settings},
            "mixed": {
                "confidence": confidence,
                "min_lift": min_lift,
                "reward": asked.reward,
                "model": str(fit.fitted.model),
                "policy": {key: made.settings[key] for key in _MADE_BY if key in made.settings},
            },
        },
        {**made.sources, "holdout": Source(tuple(log.names), read.tally)},
        {"mixed": counts},
    )
    mixed = Policy(connection, manifest, {"lists": "from lists"})
    return Mixture(mixed, **counts, confidence=confidence, min_lift=min_lift)
