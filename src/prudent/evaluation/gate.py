"""`prudent.gate`: whether a policy's lift on a holdout is high enough to deploy it."""

from collections.abc import Sequence
from typing import Any

from prudent.base.spec import check_number, check_share
from prudent.base.text import percent
from prudent.click_models.rewards import EarnedReward, observed
from prudent.counts.max_rejected import MAX_REJECTED
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.confounding_by_segment import SegmentTest
from prudent.evaluation.estimators import Estimator, estimators
from prudent.evaluation.evaluate import DECIDES, gamma, positions_compared
from prudent.evaluation.holdout import Holdout
from prudent.evaluation.holdout_log import HoldoutLog, PolicyLike, open_holdout
from prudent.evaluation.intervals import Estimate, IntervalName, Measured, Settings, conclude, measure
from prudent.evaluation.leakage import unknown_origin
from prudent.evaluation.refusals import MIN_SUPPORT, NO_ESTIMATE, name_in_words, read_acknowledged, refusals
from prudent.evaluation.verdict import Outcome, Verdict


def gate(
    policy: PolicyLike,
    log: Any,
    *,
    min_lift: float = 0.0,
    confidence: float = 0.95,
    estimator: str | Estimator = DECIDES,
    reward: str = "clicks",
    interval: IntervalName = "bootstrap",
    replicates: int = 200,
    seed: int = 0,
    min_support: float = MIN_SUPPORT,
    acknowledge: Sequence[str] | str = (),
    personalised: bool = False,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
    **columns: Any,
) -> Verdict:
    """Pass a policy if the lower bound of its lift on a holdout, with this one-sided confidence, is above `min_lift`.

    The verdict is ``"unknown"`` where the estimator cannot tell, where support is below `min_support`, where the
    effective sample size is too small for a bootstrap interval, where the holdout cannot select the click model or
    refutes the one that was named, on leakage, and where logged propensities are not those of the logged lists
    (`prudent.evaluation.propensities`); without propensities, also where the log shows hidden confounding
    (`prudent.evaluation.confounding`), by lists or by a ``segment`` that you name, and with a click model where it
    shows trust bias.

    policy, log
        Objects or paths; `columns` are arguments of `as_log`, such as the names of the log's columns. With
        ``segment=["device", "member"]``, the test for confounding also compares the values of these columns.
    reward
        As in `prudent.evaluate`.
    acknowledge
        Refusals that you take the responsibility for: ``"click-model"``, ``"confounding"``, ``"trust-bias"``,
        ``"repeats"`` of lists, their ``"selection"``, and ``"provenance"``: that the policy was not trained on the log.
        The verdict records what they said.
    personalised
        Production chooses lists by something about the user that is not in the context. Without propensities no
        estimate is valid then, whether or not the log shows it.

    >>> import prudent, pyarrow as pa
    >>> log = [{"context": "shoes", "items": ["i1", "i2"], "clicks": [0, 1]}] * 9
    >>> policy = prudent.Policy.from_table(pa.Table.from_pylist(log[:1]), items="items")
    >>> bool(prudent.gate(policy, pa.Table.from_pylist(log)))  # nothing would change
    False
    """
    kind, named = observed(reward)
    settings = gate_settings(min_lift, confidence, kind, interval, replicates, seed)
    check_share("min_support", min_support)
    read_acknowledged(acknowledge)
    chosen = estimators.resolve(estimator)
    holdout = open_holdout(policy, log, engine, max_rejected, **named, **columns)
    return gate_holdout(holdout, chosen, settings, min_lift, min_support, acknowledge, personalised)


def gate_holdout(
    holdout: HoldoutLog,
    estimator: Estimator,
    settings: Settings,
    min_lift: float,
    min_support: float = MIN_SUPPORT,
    acknowledge: Sequence[str] | str = (),
    personalised: bool = False,
    measured: Measured | None = None,
) -> Verdict:
    """The verdict on a holdout that is read, and may have been measured with these settings."""
    users: dict[str, Any] = {"acknowledge": acknowledge, "personalised": personalised}
    found: dict[str, Any] = {
        "leakage": holdout.leakage,
        "origin": unknown_origin(holdout.policy.manifest),
        "segments": () if holdout.leakage else holdout.segments,
        "selection": holdout.selection,
    }
    return decide(holdout.lists, estimator, settings, min_lift, min_support, measured=measured, **found, **users)


def gate_settings(
    min_lift: float,
    confidence: float,
    reward: EarnedReward,
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
    origin: str = "",
    selection: str = "",
    acknowledge: Sequence[str] | str = (),
    personalised: bool = False,
    segments: Sequence[SegmentTest] = (),
    measured: Measured | None = None,
) -> Verdict:
    """The verdict on a holdout as arrays.

    `leakage` is why it is none, `origin` why nobody knows whether it is one, `selection` why it does not stand for all
    lists that were logged.
    """
    accepted = read_acknowledged(acknowledge)
    (measured,) = measure(held, [estimator], settings) if measured is None else [measured]
    one = conclude(held, measured, settings, min_lift=min_lift, any_seed=True)
    confounding = None if held.propensity is not None or leakage else held.confounding
    refused = refusals(
        held,
        estimator,
        one,
        settings,
        min_support=min_support,
        leakage=leakage,
        origin=origin,
        selection=selection,
        personalised=personalised,
        confounding=confounding,
        segments=segments,
    )
    reasons = tuple(text for kind, text in refused if kind not in accepted)
    acknowledged = tuple(f"{kind}: {text}" for kind, text in refused if kind in accepted)
    confidence = (1 + settings.confidence) / 2
    if any(kind in NO_ESTIMATE for kind, _ in refused):
        why = f"{'; '.join(reasons)}."
    else:
        why = _sentence(one, reasons, min_lift, confidence, positions_compared(held))
    above = one.lift_low is not None and one.lift_low > min_lift
    outcome: Outcome = "unknown" if reasons else "pass" if above else "fail"
    return Verdict(outcome, why, one, min_lift, confidence, reasons, acknowledged, confounding, tuple(segments))


def _sentence(one: Estimate, reasons: tuple[str, ...], min_lift: float, confidence: float, positions: str) -> str:
    above = one.lift_low is not None and one.lift_low > min_lift
    lift, low, least = (percent(value, signed=True) for value in (one.lift, one.lift_low, min_lift))
    why = (
        f"{name_in_words(one)}: lift {lift}, at least {low} with confidence {100 * confidence:g}%, "
        f"{'above' if above else 'not above'} {least}"
    )
    if one.sensitivity is not None and above:
        why += f" (hidden confounding of Γ = {gamma(one)} would undo it)"
    if positions:
        why += f", by {positions}"
    if one.support < 1:
        why += f", with support for {percent(one.support)} of the lists that it changes"
    if reasons:
        why += f". {'But' if above else 'Also'}: {'; '.join(reasons)}"
    return why
