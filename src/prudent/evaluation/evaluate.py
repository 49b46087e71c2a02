"""`prudent.evaluate`: a policy, a log that it has not seen, and what its lists would have earned there."""

import html
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from prudent.base.errors import PrudentWarning, UsageError
from prudent.base.spec import check_number, check_word, whole_number
from prudent.base.text import Column, text_table
from prudent.counts.counts import Counts
from prudent.counts.rejected import MAX_REJECTED, check_max_rejected
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.estimate import INTERVALS, Asked, Estimate, IntervalName, judge
from prudent.evaluation.estimators import Estimator, parse
from prudent.evaluation.estimators import estimators as known_estimators
from prudent.evaluation.holdout import REWARDS, Reward
from prudent.evaluation.leakage import not_held_out
from prudent.evaluation.reading import Read, read_held_out
from prudent.logs.log import Log
from prudent.policies.policy import Policy
from prudent.storage.manifest import Manifest, Source

DEFAULTS = ("ips", "snips", "prefix-ips", "ip-ips", "pi", "dm", "dr", "dr(clip=10)")
"""The estimators that are asked when none is named, from the fewest assumptions to the most support."""

DECIDES = "dr(clip=10)"
"""The estimator of the gate: what was observed where enough lists agree with the policy, else a click model."""

FEW = 30
"""Effective lists below which a verdict says how few there are."""

HEADINGS = ("estimator", "logged", "value", "interval", "lift", "interval, %", "support", "effective lists")


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """What several estimators say about one policy on the same held-out lists; a sequence of `Estimate`."""

    estimates: tuple[Estimate, ...]
    manifest: Manifest  # settings, holdout, and how many contexts there were

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def __getitem__(self, which: int | str) -> Estimate:
        """By index, or by any spelling of its estimator, such as ``"dr( clip = 10 )"``."""
        if isinstance(which, int):
            return self.estimates[which]
        names = [estimate.estimator for estimate in self.estimates]
        spelled = which if which in names else str(parse(which))
        if spelled not in names:
            raise UsageError(f"{spelled} was not evaluated. Evaluated: {', '.join(names)}.")
        return self.estimates[names.index(spelled)]

    @property
    def title(self) -> str:
        """What the table is about."""
        contexts = self.manifest.results["contexts"]
        kept = contexts["log"] - contexts["both"]
        if kept == contexts["log"]:
            of_them = ", and the policy has a list for none of them"
        elif kept == 1:
            of_them = ", of which 1 keeps its lists: the policy has none for it"
        else:
            of_them = f", of which {kept:,} keep their lists: the policy has none for them" if kept else ""
        lists, log = self.manifest.sources["holdout"].tally.lists, contexts["log"]
        return (
            f"{self.manifest.settings['reward']} per list, on {lists:,} held-out list{'' if lists == 1 else 's'} of "
            f"{log:,} context{'' if log == 1 else 's'}{of_them}"
        )

    @property
    def verdict(self) -> str:
        """In words, what the gate's estimator says or, without it, the one that tells about most lists."""
        told = [estimate for estimate in self if estimate.tells]
        if not told:
            reasons = {estimate.estimator: estimate.why for estimate in self}
            return f"Nothing can be told: {reasons.get(DECIDES) or next(iter(reasons.values()))}"
        chosen = max(told, key=lambda estimate: (estimate.estimator == DECIDES, estimate.support))
        return _verdict(chosen, self.manifest.settings["confidence"])

    def rows(self) -> list[tuple[str, ...]]:
        """The estimates as text, under `HEADINGS`; what cannot be told has a sentence in place of numbers."""
        return [_row(estimate) for estimate in self]

    def as_json(self) -> list[dict[str, Any]]:
        """The estimates, null where they cannot tell; fits JSON."""
        return [asdict(estimate) for estimate in self]

    def __str__(self) -> str:
        rows = self.rows()
        columns = [Column(name, align="right" if i else "left") for i, name in enumerate(HEADINGS)]
        lines = text_table(columns, [row for row in rows if len(row) > 2])
        untold = [f"{name}: {why}" for name, why in (row for row in rows if len(row) == 2)]
        return "\n".join([self.title, lines, *untold, *self.notes])

    __repr__ = __str__  # a table says more than the call that would make it

    @property
    def notes(self) -> list[str]:
        """What to know about numbers that are there."""
        return [f"{estimate.estimator}: {estimate.why}" for estimate in self if estimate.tells and estimate.why]

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in HEADINGS)
        body = ""
        for name, *cells in self.rows():
            span = f' colspan="{len(HEADINGS) - 1}"' if len(cells) == 1 else ""
            body += f"<tr><th>{html.escape(name)}</th>"
            body += "".join(f"<td{span}>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        title = html.escape(self.title)
        return f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def _verdict(estimate: Estimate, confidence: float) -> str:
    words = in_words(estimate.estimator)
    by = f"By {estimate.estimator}{words and f' ({words})'}, the new lists"
    if estimate.lift is None:
        return f"{by} earn {number(estimate.value)}. No logged list was clicked: there is nothing to compare that with."
    low, high = estimate.lift_low, estimate.lift_high
    more, less = ("more", "fewer") if estimate.reward == "clicks" else ("more often", "less often")
    much = f"{100 * abs(estimate.lift):.1f} %"
    how = more if estimate.lift > 0 else less
    if estimate.reward == "clicks":
        said = "earn as many clicks as" if much == "0.0 %" else f"earn {much} {how} clicks than"
    else:
        said = "are clicked as often as" if much == "0.0 %" else f"are clicked {much} {how} than"
    sign = more if (low or 0) > 0 else less if (high or 0) < 0 else ""
    meaning = f"{sign}, by this interval" if sign else "that may be chance"
    where = "" if estimate.support == 1 else f" (on {estimate.support:.1%} of the lists)"
    return (
        f"{by} {said} the logged ones, {percent(low)} to {percent(high)} with confidence {100 * confidence:g} %: "
        f"{meaning}{few_agree(estimate)}{where}."
    )


def few_agree(estimate: Estimate) -> str:
    """A warning where a number rests on few lists, or on lists that are all alike; nothing elsewhere."""
    if estimate.lift_low is not None and estimate.lift_low == estimate.lift_high:
        return "; all lists that tell are alike, and nobody knows what chance would do"
    if estimate.effective_lists is None or estimate.effective_lists >= FEW:
        return ""
    return f"; few lists agree with the policy's, as many as {estimate.effective_lists:.0f} of equal weight"


def in_words(estimator: str) -> str:
    """What an estimator is, by its spelling; nothing where it is not one of ours.

    >>> in_words("dr(clip=10)")
    'doubly robust'
    """
    try:
        return parse(estimator).words
    except UsageError:
        return ""


def _row(estimate: Estimate) -> tuple[str, ...]:
    if not estimate.tells:
        return estimate.estimator, f"cannot tell: {estimate.why}"
    effective = estimate.effective_lists
    return (
        estimate.estimator,
        number(estimate.logged),
        number(estimate.value),
        f"{number(estimate.low)} to {number(estimate.high)}",
        percent(estimate.lift),
        "–"
        if estimate.lift is None
        else f"{percent(estimate.lift_low)} to {percent(estimate.lift_high)}".replace(" %", ""),
        f"{estimate.support:.0%}" if estimate.support in (0, 1) else f"{estimate.support:.1%}",
        "–" if effective is None else f"{effective:,.0f}",
    )


def number(value: float | None) -> str:
    """A reward per list, for people."""
    said = "∞" if value is None else f"{value:.3f}"
    return "0.000" if said == "-0.000" else said


def percent(lift: float | None) -> str:
    """A lift, for people.

    >>> percent(0.0312), percent(-0.5), percent(12.345)
    ('+3.1 %', '−50.0 %', '+1,234 %')
    """
    if lift is None:
        return "–"
    said = f"{100 * lift:+,.{1 if abs(lift) < 0.9995 else 0}f} %"
    return "+0.0 %" if said == "-0.0 %" else said.replace("-", "−")


def evaluate(
    policy: Policy,
    log: Log,
    estimators: Sequence[str | Estimator] | str | Estimator = DEFAULTS,
    reward: Reward = "clicks",
    confidence: float = 0.95,
    interval: IntervalName = "bootstrap",
    replicates: int = 200,
    seed: int = 0,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
) -> Evaluation:
    """Estimate what the lists of a policy would have earned on a log that it has not learned from.

    The log is read once for all estimators. Contexts for which the policy has no list keep the lists they have.

    estimators
        Spellings such as ``"ips(clip=50)"``, ``"snips"``, ``"prefix-ips"``, ``"ip-ips"``, ``"pi"``, ``"dm"``,
        ``"dm(model=dcm)"`` or ``"dr"``, or the objects that they stand for.
    reward
        ``"clicks"`` on a list, or ``"any-click"``: whether it has one.
    confidence
        Of the intervals, each by itself.
    interval
        ``"bootstrap"`` over lists, or ``"bernstein"``, which holds for any number of lists and any rewards, for
        estimators with clipped weights and a log with propensities.
    """
    asked = ask(reward, confidence, interval, replicates, seed)
    chosen = [estimators] if isinstance(estimators, str) or not isinstance(estimators, Sequence) else estimators
    parsed = list({str(one): one for one in map(known_estimators.resolve, chosen)}.values())  # each once
    if not parsed:
        raise UsageError(f"Name at least one estimator. Known: {', '.join(known_estimators)}.")
    read = open_held_out(policy, log, engine, max_rejected)
    if reason := not_held_out(policy.manifest, log, read.tally.lists):
        warnings.warn(f"{reason} What they say of it is too good.", PrudentWarning, stacklevel=2)
    return Evaluation(judge(read.held, parsed, asked), manifest_of(read, log, asked))


def ask(
    reward: str,
    confidence: float,
    interval: str = Asked.interval,
    replicates: int = Asked.replicates,
    seed: int = Asked.seed,
) -> Asked:
    """The settings, checked."""
    check_word("reward", reward, REWARDS)
    check_word("interval", interval, INTERVALS)
    check_number("confidence", confidence, above=0, below=1, example="0.95")
    replicates, seed = whole_number("replicates", replicates, 20, 100_000), whole_number("seed", seed, 0)
    return Asked(reward, confidence, interval, replicates, seed)  # type: ignore[arg-type]


def open_held_out(policy: Policy, log: Log, engine: DuckDB | None, max_rejected: float) -> Read:
    """The log beside the policy, with mistakes in either named first."""
    if not isinstance(policy, Policy):
        raise UsageError(f"The first argument is a {type(policy).__name__}, not a Policy: prudent.Policy.read(...).")
    if isinstance(log, Counts):
        raise UsageError("Evaluating needs the log itself: counts have forgotten whole lists.")
    if not isinstance(log, Log):
        raise UsageError(f"The second argument is a {type(log).__name__}, not a Log: prudent.Log(...).")
    check_max_rejected(max_rejected)
    read = read_held_out(policy, log, engine or DuckDB(), max_rejected)
    if read.tally.bad:
        rejected = "; ".join(read.tally.reasons)
        every = read.tally.lists + read.tally.bad
        warnings.warn(f"{read.tally.bad:,} of {every:,} lists were rejected: {rejected}.", PrudentWarning, stacklevel=3)
    return read


def manifest_of(read: Read, log: Log, asked: Asked) -> Manifest:
    """The manifest of an evaluation."""
    held = read.held
    return Manifest(
        "evaluation",
        {
            "reward": asked.reward,
            "confidence": asked.confidence,
            "interval": asked.interval,
            "replicates": asked.replicates,
            "seed": asked.seed,
            "length": held.length,
            "propensity": log.propensity,
        },
        {"holdout": Source(tuple(log.names), read.tally)},
        {
            "contexts": {"log": held.contexts, "policy": read.policy_contexts, "both": int(held.known.sum())},
            "lists_kept": int(held.logged[~held.known].sum()),
        },
    )
