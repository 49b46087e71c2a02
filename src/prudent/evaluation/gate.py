"""`prudent.gate`: whether a policy's lift on a holdout is high enough to deploy it."""

from dataclasses import asdict, dataclass
from typing import Any

from prudent.base.results import Result
from prudent.base.spec import check_number, check_share
from prudent.base.text import Column, Columns, Rows, number, percent
from prudent.click_models.rewards import ObservedReward
from prudent.counts.max_rejected import MAX_REJECTED
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.estimators import Estimator, estimators
from prudent.evaluation.evaluate import DECIDES, doubts, in_words
from prudent.evaluation.holdout import Holdout
from prudent.evaluation.holdout_log import PolicyLike, open_holdout
from prudent.evaluation.intervals import Estimate, IntervalName, Settings, estimate

MIN_SUPPORT = 0.5
"""The share of lists with support below which the gate fails."""


@dataclass(frozen=True, repr=False)
class Verdict(Result):
    """Whether a policy passes the gate; true or false as a condition.

    The limits in ``estimate`` are one-sided: with ``confidence`` the lift is at least ``lift_low``.
    """

    passed: bool
    why: str
    estimate: Estimate
    min_lift: float
    confidence: float

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return f"{'pass' if self.passed else 'fail'}: {self.why}"

    __repr__ = __str__

    @property
    def columns(self) -> tuple[Column, ...]:
        """The decision and the numbers behind it."""
        floats = ("lift", "lift_low", "min_lift", "confidence", "support", "effective_sample_size")
        return Column("passed", bool), Column("estimator", str), *(Column(name, float) for name in floats)

    def rows(self) -> Rows:
        """One row."""
        one = self.estimate
        numbers = (one.lift, one.lift_low, self.min_lift, self.confidence, one.support, one.effective_sample_size)
        return [(self.passed, one.estimator, *numbers)]

    def table(self) -> tuple[Columns, Rows]:
        """The numbers, one below the other."""
        one = self.estimate
        shown = (
            ("estimator", one.estimator),
            ("lift", percent(one.lift, signed=True)),
            (f"lower bound of the lift, confidence {100 * self.confidence:g}%", percent(one.lift_low, signed=True)),
            ("minimum lift", percent(self.min_lift, signed=True)),
            ("support", percent(one.support)),
            ("effective sample size", number(one.effective_sample_size, 0)),
        )
        return [Column("gate", heading=str(self)), Column("value", heading=" ", align="right")], shown

    def to_json(self) -> dict[str, Any]:
        """The fields; fits JSON."""
        return asdict(self)


def gate(
    policy: PolicyLike,
    log: Any,
    *,
    min_lift: float = 0.0,
    confidence: float = 0.95,
    estimator: str | Estimator = DECIDES,
    reward: ObservedReward = "clicks",
    interval: IntervalName = "bootstrap",
    replicates: int = 200,
    seed: int = 0,
    min_support: float = MIN_SUPPORT,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
) -> Verdict:
    """Pass a policy if the lower bound of its lift on a holdout, with this one-sided confidence, is above `min_lift`.

    It fails where the estimator cannot tell, where support is below `min_support`, where the effective sample size is
    too small for a bootstrap interval, where the holdout cannot select the click model, and on leakage.
    """
    settings = gate_settings(min_lift, confidence, reward, interval, replicates, seed)
    check_share("min_support", min_support)
    chosen = estimators.resolve(estimator)
    holdout = open_holdout(policy, log, engine, max_rejected)
    return decide(holdout.lists, chosen, settings, min_lift, min_support, leakage=holdout.leakage)


def gate_settings(
    min_lift: float,
    confidence: float,
    reward: ObservedReward,
    interval: IntervalName = Settings.interval,
    replicates: int = Settings.replicates,
    seed: int = Settings.seed,
) -> Settings:
    """The settings, checked, with the two-sided confidence whose lower limit is the one-sided one."""
    check_number("confidence", confidence, above=0.5, below=1, example="0.95")
    check_number("min_lift", min_lift, above=-1, example="0.01 for 1% more")
    return Settings(reward, 2 * confidence - 1, interval, replicates, seed)


def decide(
    held: Holdout,
    estimator: Estimator,
    settings: Settings,
    min_lift: float,
    min_support: float = MIN_SUPPORT,
    *,
    leakage: str = "",
) -> Verdict:
    """The verdict on a holdout as arrays; `leakage` is why it is none."""
    (one,) = estimate(held, [estimator], settings)
    confidence = (1 + settings.confidence) / 2
    passed, why = _decide(one, settings, confidence, min_lift, min_support)
    if leakage:
        passed, why = False, f"{leakage} Use a holdout: prudent split."
    return Verdict(passed, why, one, min_lift, confidence)


def _decide(
    one: Estimate, settings: Settings, confidence: float, min_lift: float, min_support: float
) -> tuple[bool, str]:
    words = in_words(one.estimator)
    name = f"{one.estimator}{words and f' ({words})'}"
    if one.lift is None or one.lift_low is None:
        return False, f"{name} cannot tell. {one.why}"
    above = one.lift_low > min_lift
    reasons = [
        doubts(one).removeprefix("; ") if settings.interval == "bootstrap" else "",  # Bernstein holds for any number
        f"{one.why} Name one that you trust, as in dr(model=dcm)" if one.assumed else "",
        f"support below the minimum of {percent(min_support, 0)}" if one.support < min_support else "",
    ]
    against = [reason for reason in reasons if reason]
    least = percent(min_lift, signed=True)
    why = (
        f"{name}: lift {percent(one.lift, signed=True)}, at least {percent(one.lift_low, signed=True)} with confidence "
        f"{100 * confidence:g}%, {'above' if above else 'not above'} {least}"
    )
    if one.support < 1:
        why += f", on {percent(one.support)} of lists; no support for the others"
    if against:
        why += f". {'But' if above else 'Also'}: {'; '.join(against)}"
    return above and not against, why
