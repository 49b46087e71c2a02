"""`prudent.evaluate`: the value of a policy's lists, estimated on a holdout."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from prudent.base.errors import PrudentWarning, UsageError
from prudent.base.results import Result
from prudent.base.text import MISSING, Column, Columns, Rows, number, percent, several
from prudent.click_models.rewards import COLUMN, WORDS, observed
from prudent.counts.max_rejected import MAX_REJECTED
from prudent.counts.repeats import repeated_lists
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.confounding import Confounding
from prudent.evaluation.estimators import Estimator, parse
from prudent.evaluation.estimators import estimators as known_estimators
from prudent.evaluation.holdout import Holdout
from prudent.evaluation.holdout_log import HoldoutLog, PolicyLike, open_holdout
from prudent.evaluation.intervals import Estimate, IntervalName, Measured, Settings, conclude, measure
from prudent.evaluation.propensities import check_propensities
from prudent.evaluation.sensitivity import LARGEST_GAMMA
from prudent.storage.manifest import Manifest, Source

DEFAULTS = ("ips", "snips", "prefix-ips", "ip-ips", "pi", "dm", "dr", "dr(clip=10)")
"""The default estimators, from the fewest assumptions to the most support."""

DECIDES = "dr(clip=10)"
"""The estimator of the gate: observed rewards where enough lists match the policy, else a click model."""

SMALL_SAMPLE = 30
"""Effective sample size below which a verdict names it, and a gate cannot tell."""

MOST_SHRINKAGE = 0.3
"""By which share shrinking may change the reward where lists change until a verdict names it, and a gate cannot tell.

With one list per context that is always shown, sorted by quality, it is 0.25 at 10 holdout lists per context, where
`dr(clip=10)` passes falsely in 5 % of deployments, 0.31 at 5 lists and 0.37 at 2.7 lists, where it was 18 and 65 %.
"""


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Result):
    """Estimates of one policy's value on the same holdout: iterable, indexed by place or estimator, and a table.

    ``evaluation["dr(clip=10)"]`` is the estimate of one estimator, ``evaluation.verdict`` a sentence.
    """

    estimates: tuple[Estimate, ...]
    manifest: Manifest  # settings, holdout and numbers of contexts

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def __getitem__(self, which: int | str) -> Estimate:
        """By index, or by any spelling of the estimator, such as ``"dr( clip = 10 )"``."""
        if isinstance(which, int):
            return self.estimates[which]
        names = [one.estimator for one in self.estimates]
        spelled = which if which in names else str(parse(which))
        if spelled not in names:
            raise UsageError(f"{spelled} was not evaluated. Evaluated: {', '.join(names)}.")
        return self.estimates[names.index(spelled)]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The fields of `Estimate`."""
        return tuple(Column(one.name, one.type if isinstance(one.type, type) else float) for one in _FIELDS)

    def rows(self) -> Rows:
        """One row per estimate."""
        return [tuple(getattr(one, column.name) for column in _FIELDS) for one in self.estimates]

    def to_json(self) -> list[dict[str, Any]]:
        """The estimates, null where they cannot tell; fits JSON."""
        return [asdict(one) for one in self]

    @property
    def title(self) -> str:
        """What the table is about."""
        contexts = self.manifest.results["contexts"]
        kept = contexts["log"] - contexts["both"]
        if kept == contexts["log"]:
            without = "; the policy has a list for none of them"
        else:
            without = f"; the policy has no list for {several(kept, 'context')}: logged lists stay" if kept else ""
        lists = self.manifest.sources["holdout"].tally.lists
        positions = self.manifest.results.get("positions")
        return (
            f"{self.manifest.settings['reward']} per list, on {several(lists, 'holdout list')} of "
            f"{several(contexts['log'], 'context')}{f', by {positions}' if positions else ''}{without}"
        )

    @property
    def verdict(self) -> str:
        """A sentence on the gate's estimator or, without it, the one with the most support."""
        if improper := self.manifest.results.get("improper_propensities"):
            return f"Cannot tell: {improper}."
        known = [one for one in self if one.known]
        if not known:
            reasons = {one.estimator: one.why for one in self}
            return f"Cannot tell: {reasons.get(DECIDES) or next(iter(reasons.values()))}"
        chosen = max(known, key=lambda one: (one.estimator == DECIDES, one.support))
        sentence = _verdict(chosen, self.manifest.settings["confidence"])
        return f"{sentence} Hidden confounding may have made this up." if self._confounding else sentence

    def table(self) -> tuple[Columns, Rows]:
        """The estimates with a number, as people read them."""
        headings = ("estimator", "logged", "value", "lift", "interval, %", "support", "effective size", "Γ")
        columns = [Column(name, align="right" if i else "left") for i, name in enumerate(headings)]
        return columns, [_row(one) for one in self if one.known]

    @property
    def notes(self) -> list[str]:
        """Why estimators cannot tell, and remarks on the numbers of the others."""
        by_reason: dict[str, list[str]] = {}
        for one in sorted(self, key=lambda one: one.known):
            if why := one.doubt or one.why:
                reason = why if one.known else f"cannot tell. {why}"
                by_reason.setdefault(reason, []).append(one.estimator)
        if shorter := self.manifest.results.get("matching_length"):
            by_reason.setdefault(_SHORTER.format(shorter), []).append("whole lists")
        notes = [f"{', '.join(names)}: {why}" for why, names in by_reason.items()]
        if repeats := self.manifest.results.get("repeats"):
            notes.append(f"Repeats: {repeats}.")
        if selection := self.manifest.results.get("selection"):
            notes.append(f"Selection: {selection}.")
        return [*notes, *(f"Hidden confounding: {text}." for text in self._confounding)]

    @property
    def _confounding(self) -> list[str]:
        """The evidence that clicks are confounded: by lists, and by columns that the user named."""
        tests = [Confounding(**test) for test in [self.manifest.results.get("confounding")] if test is not None]
        by_lists = [f"{test}. Without propensities no lift here is to be trusted" for test in tests if test.found]
        return [*by_lists, *self.manifest.results.get("confounded_by", ())]


_FIELDS = fields(Estimate)
_SHORTER = "none matches in most of the traffic, but the first {0} items often do: prudent rank --length {0}."


def _row(one: Estimate) -> tuple[str, ...]:
    effective = one.effective_sample_size
    return (
        one.estimator,
        number(one.logged),
        number(one.value),
        percent(one.lift, signed=True),
        MISSING if one.lift is None else _lift_interval(one).replace("%", ""),
        percent(one.support),
        MISSING if effective is None else number(effective, 0),
        gamma(one),
    )


def gamma(one: Estimate) -> str:
    """The strength of hidden confounding that undoes a lift, as people read it."""
    if one.sensitivity is None:
        return MISSING
    return f"{LARGEST_GAMMA:g}+" if one.sensitivity >= LARGEST_GAMMA else number(one.sensitivity, 2)


def _lift_interval(one: Estimate) -> str:
    return f"{percent(one.lift_low, signed=True)} to {percent(one.lift_high, signed=True)}"


def _verdict(one: Estimate, confidence: float) -> str:
    """One estimate as a sentence."""
    words = in_words(one.estimator)
    subject = f"By {one.estimator}{words and f' ({words})'}, the policy's lists"
    if one.lift is None:
        return f"{subject} earn {number(one.value)} per list. No logged list was clicked: the lift is not defined."
    low, high = one.lift_low, one.lift_high
    unit, less, many, _ = WORDS[one.reward]
    change = percent(abs(one.lift))
    earn = f"earn {change} {'more' if one.lift > 0 else less} {unit} than"
    if not change.strip("0.%"):
        earn = f"earn as {many} {unit} as"
    significant = "not significant"
    if (low or 0) > 0 or (high or 0) < 0:
        significant = f"a significant {'increase' if (low or 0) > 0 else 'decrease'}"
    where = "" if one.support == 1 else f" (support for {percent(one.support)} of the lists that it changes)"
    return (
        f"{subject} {earn} the logged lists, {_lift_interval(one)} with confidence {100 * confidence:g}%: {significant}"
        f"{doubts(one)}{where}.{_changed(one)}"
    )


def _changed(one: Estimate) -> str:
    """A sentence on the traffic that the policy changes, where it is not nearly all of it."""
    if one.unchanged is None or one.unchanged < 0.01 or one.lift_changed is None:
        return ""
    rest = percent(one.lift_changed, signed=True)
    return f" {percent(one.unchanged)} of these lists stay as they are; {rest} on the rest."


def doubts(one: Estimate) -> str:
    """Clauses where an interval depends on few or on identical lists, or on a prior; empty elsewhere."""
    if one.lift_low is not None and one.lift_low == one.lift_high:
        return "; all matching lists are identical, so that the interval has no width"
    clauses = ""
    if one.effective_sample_size is not None and one.effective_sample_size < SMALL_SAMPLE:
        clauses = f"; effective sample size {one.effective_sample_size:.0f}, below {SMALL_SAMPLE}"
    if one.shrinkage is not None and one.shrinkage > MOST_SHRINKAGE:
        clauses += (
            f"; there are so few clicks on the items where lists change that the prior of attractions decides: their "
            f"reward may differ by {percent(one.shrinkage, 0)}"
        )
    return clauses


def in_words(estimator: str) -> str:
    """An estimator's name in plain words, by its spelling; empty where it is not registered.

    >>> in_words("dr(clip=10)")
    'doubly robust'
    """
    try:
        return parse(estimator).words
    except UsageError:
        return ""


def evaluate(
    policy: PolicyLike,
    log: Any,
    *,
    estimator: Sequence[str | Estimator] | str | Estimator = DEFAULTS,
    reward: str = "clicks",
    confidence: float = 0.95,
    interval: IntervalName = "bootstrap",
    replicates: int = 200,
    seed: int = 0,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
    **columns: Any,
) -> Evaluation:
    """Estimate the value of a policy's lists on a log it was not trained on.

    The log is read once for all estimators. Contexts without a list of the policy keep their logged lists.

    policy, log
        Objects or paths; `columns` are arguments of `as_log`, such as the names of the log's columns.
    estimator
        One or several, as objects or spellings such as ``"ips(clip=50)"``, ``"snips"``, ``"prefix-ips"``,
        ``"ip-ips"``, ``"pi"``, ``"dm"``, ``"dm(model=dcm)"`` or ``"dr"``.
    reward
        ``"clicks"`` on a list, ``"any-click"``: whether it has one, or a column of the log with what clicks were worth,
        as in `prudent.rank`.
    confidence
        Two-sided confidence level of each interval.
    interval
        ``"bootstrap"`` over lists, or ``"bernstein"``, which holds for any number of lists and any rewards, for
        estimators with clipped weights and a log with propensities.

    >>> import prudent, pyarrow as pa
    >>> log = [{"context": "shoes", "items": ["i1", "i2"], "clicks": [0, 1]}] * 9
    >>> policy = prudent.Policy.from_table(pa.Table.from_pylist(log[:1]), items="items")
    >>> prudent.evaluate(policy, pa.Table.from_pylist(log), estimator="ips")["ips"].value
    1.0
    """
    kind, named = observed(reward)
    settings = Settings(kind, confidence, interval, replicates, seed)
    chosen = [estimator] if isinstance(estimator, str) or not isinstance(estimator, Sequence) else estimator
    parsed = list({str(one): one for one in map(known_estimators.resolve, chosen)}.values())  # each once
    if not parsed:
        raise UsageError(f"Name at least one estimator. Known: {', '.join(known_estimators)}.")
    holdout = open_holdout(policy, log, engine, max_rejected, **named, **columns)
    if holdout.leakage:
        warnings.warn(f"{holdout.leakage} The estimates are too optimistic.", PrudentWarning, stacklevel=2)
    return evaluate_holdout(holdout, measure(holdout.lists, parsed, settings), settings)


def matching_length(held: Holdout) -> int | None:
    """The most positions at which lists match the policy's in half of the traffic; None where whole lists do.

    Traffic is of the contexts that the policy knows; None also where not even two items match.
    """
    traffic = held.logged[held.known].sum()
    for length in range(held.length, 1, -1):
        deep = held.depth >= np.minimum(length, held.size)[held.context]
        matched = held.per_context(held.n * deep * held.known[held.context]) > 0
        if 2 * held.logged[matched].sum() >= traffic:
            return None if length == held.length else length
    return None


def positions_compared(held: Holdout) -> str:
    """The positions whose clicks count, where the policy's lists are shorter than the logged ones; else empty."""
    mine = held.known[held.context]
    if not mine.any():
        return ""
    last, longest = int(held.upto[held.known].max()), int((held.items[mine] >= 0).sum(axis=1).max())
    if last == longest:
        return ""
    return f"clicks at {'position 1' if last == 1 else f'positions 1 to {last}'} of {longest} alone"


def evaluate_holdout(holdout: HoldoutLog, measured: Sequence[Measured], settings: Settings) -> Evaluation:
    """Estimates with their manifest."""
    held = holdout.lists
    test = None if held.propensity is not None else held.confounding
    manifest = Manifest(
        "evaluation",
        {
            **asdict(settings),
            "reward": holdout.log.reward if settings.reward == COLUMN else settings.reward,
            "length": held.length,
            "propensity": holdout.log.propensity,
        },
        {"holdout": Source(tuple(holdout.log.names), holdout.tally)},
        {
            "contexts": {
                "log": held.contexts,
                "policy": holdout.policy_contexts,
                "both": int(held.known.sum()),
            },
            "lists_kept": int(held.logged[~held.known].sum()),
            "matching_length": matching_length(held),
            "confounding": None if test is None else asdict(test),
            "confounded_by": [str(one) for one in holdout.segments if one.found],
            "improper_propensities": check_propensities(held),
            "repeats": str(repeats) if (repeats := repeated_lists(held)).factor > 1 else "",
            "selection": holdout.selection,
            "positions": positions_compared(held),
        },
    )
    return Evaluation(tuple(conclude(held, one, settings) for one in measured), manifest)
