"""`prudent.gate`: whether a policy may go out, and, context by context, which of its lists may."""

from dataclasses import dataclass, replace

from prudent.base.spec import check_number, check_share
from prudent.counts.rejected import MAX_REJECTED
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.estimate import Asked, Estimate, IntervalName, judge
from prudent.evaluation.estimators import Estimator, estimators
from prudent.evaluation.evaluate import (
    DECIDES,
    ask,
    few_agree,
    in_words,
    open_held_out,
    percent,
)
from prudent.evaluation.holdout import HeldOut, Reward
from prudent.evaluation.leakage import not_held_out
from prudent.logs.log import Log
from prudent.policies.policy import Policy

MIN_SUPPORT = 0.5
"""The share of lists that an estimator has to tell about before the gate says yes."""


@dataclass(frozen=True)
class Verdict:
    """Whether a policy may go out.

    The limits in ``estimate`` are one-sided: with ``confidence`` the lift is at least ``lift_low``.
    """

    passed: bool
    why: str
    estimate: Estimate
    min_lift: float
    confidence: float

    def __bool__(self) -> bool:
        return self.passed


def gate(
    policy: Policy,
    log: Log,
    min_lift: float = 0.0,
    confidence: float = 0.95,
    estimator: str | Estimator = DECIDES,
    reward: Reward = "clicks",
    interval: IntervalName = "bootstrap",
    replicates: int = 200,
    seed: int = 0,
    min_support: float = MIN_SUPPORT,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
) -> Verdict:
    """Let a policy pass if, with this confidence, its lift on held-out lists is above `min_lift`.

    Where the estimator cannot tell, or only about less than `min_support` of the lists, the policy does not pass; nor
    where a click model had to be taken that these lists could not choose.
    """
    asked = ask_gate(min_lift, confidence, reward, interval, replicates, seed)
    check_share("min_support", min_support)
    chosen = estimators.resolve(estimator)
    read = open_held_out(policy, log, engine, max_rejected)
    verdict = decide(read.held, chosen, asked, min_lift, min_support)
    return refuse(verdict, not_held_out(policy.manifest, log, read.tally.lists))


def refuse(verdict: Verdict, reason: str) -> Verdict:
    """The same verdict, or a no where the lists were not held out."""
    return replace(verdict, passed=False, why=f"{reason} Hold some out: prudent split.") if reason else verdict


def ask_gate(
    min_lift: float,
    confidence: float,
    reward: str,
    interval: str = Asked.interval,
    replicates: int = Asked.replicates,
    seed: int = Asked.seed,
) -> Asked:
    """The settings, checked, with the two-sided confidence whose lower limit is the one-sided one."""
    check_number("confidence", confidence, above=0.5, below=1, example="0.95")
    check_number("min_lift", min_lift, above=-1, example="0.01 for 1 % more")
    return replace(ask(reward, confidence, interval, replicates, seed), confidence=2 * confidence - 1)


def decide(
    held: HeldOut, estimator: Estimator, asked: Asked, min_lift: float, min_support: float = MIN_SUPPORT
) -> Verdict:
    """The same on held-out lists as arrays."""
    (estimate,) = judge(held, [estimator], asked)
    named = ", ".join(filter(None, [in_words(estimate.estimator), estimate.estimator]))
    confidence = (1 + asked.confidence) / 2
    sure = f"with confidence {100 * confidence:g} %"
    least = f"{100 * min_lift:g} %".replace("-", "−")
    if estimate.lift is None or estimate.lift_low is None:
        return Verdict(False, f"{named} cannot tell: {estimate.why}", estimate, min_lift, confidence)
    above = estimate.lift_low > min_lift
    few = few_agree(estimate) if asked.interval == "bootstrap" else ""  # the other holds for any number of lists
    guess = f"; {estimate.why} Name one that you trust, as in dr(model=dcm)" if estimate.assumed else ""
    passed = above and not few and not guess and estimate.support >= min_support
    why = (
        f"{named}: lift {percent(estimate.lift)}, at least {percent(estimate.lift_low)} {sure}, "
        f"{'above' if above else 'not above'} {least}{few}{guess}"
        f"{': not enough for a yes' if above and not passed else ''}"
    )
    if estimate.support < 1:
        of_which = "" if estimate.support >= min_support else f", and {min_support:.0%} are asked for"
        why += f" (on {estimate.support:.1%} of the lists{of_which}; for the others it cannot tell)"
    return Verdict(passed, why, estimate, min_lift, confidence)
