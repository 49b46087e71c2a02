"""Why a holdout cannot tell, whatever the estimate is: for the gate, the gate per context and the report."""

from collections.abc import Sequence
from typing import NamedTuple

from prudent.base.spec import check_word
from prudent.base.text import percent
from prudent.counts.repeats import repeated_lists
from prudent.evaluation.confounding import Confounding
from prudent.evaluation.confounding_by_segment import SegmentTest
from prudent.evaluation.estimators import Estimator
from prudent.evaluation.evaluate import doubts, in_words
from prudent.evaluation.holdout import Holdout
from prudent.evaluation.intervals import Estimate, Settings
from prudent.evaluation.propensities import check_propensities
from prudent.evaluation.trust_bias import LEVEL, trust_bias

MIN_SUPPORT = 0.5
"""The share with support, of the lists that the policy changes, below which the gate cannot tell."""

ACKNOWLEDGEABLE = ("click-model", "confounding", "provenance", "repeats", "selection", "trust-bias")
"""Refusals that a user may take the responsibility for; the verdict keeps them."""


NO_ESTIMATE = ("leakage", "propensity", "estimator")
"""Refusals after which there is no estimate worth a look."""


class Refusal(NamedTuple):
    """Why the holdout cannot tell, and of which kind that is."""

    kind: str
    text: str


def read_acknowledged(acknowledge: Sequence[str] | str) -> tuple[str, ...]:
    """The refusals that a user takes the responsibility for, checked."""
    words = (acknowledge,) if isinstance(acknowledge, str) else tuple(acknowledge)
    for word in words:
        check_word("refusal to acknowledge", word, ACKNOWLEDGEABLE)
    return words


def refusals(
    held: Holdout,
    estimator: Estimator,
    one: Estimate,
    settings: Settings,
    *,
    min_support: float,
    leakage: str,
    origin: str,
    selection: str,
    personalised: bool,
    confounding: Confounding | None,
    segments: Sequence[SegmentTest] = (),
) -> list[Refusal]:
    """Every reason; the estimate is that of the estimator on this holdout."""
    if leakage:
        return [Refusal("leakage", f"{leakage} Use a holdout: prudent split")]
    if improper := check_propensities(held):
        return [Refusal("propensity", f"cannot tell: {improper}")]
    if one.lift_low is None:
        return [Refusal("estimator", f"{name_in_words(one)} cannot tell. {one.why}".removesuffix("."))]
    few = doubts(one).removeprefix("; ") if settings.interval == "bootstrap" else ""  # Bernstein holds for any number
    few = few and f"{few}; hold out more lists, or rank shorter ones (--length)"
    support = ""
    if one.support < min_support:
        support = (
            f"support below the minimum of {percent(min_support, 0)}; hold out more lists, or let production show the "
            "policy's items now and then"
        )
    every = [
        Refusal("provenance", origin),
        Refusal("repeats", str(repeats) if (repeats := repeated_lists(held)).factor > 1 else ""),
        Refusal("selection", selection),
        Refusal("sample", few),
        Refusal("click-model", one.doubt.removesuffix(".")),
        Refusal("support", support),
        Refusal("confounding", _confounded(held, one, confounding, personalised)),
        Refusal("confounding", _confounded_by(segments)),
        Refusal("trust-bias", _trusting(held, estimator)),
    ]
    return [refusal for refusal in every if refusal.text]


def _confounded(held: Holdout, one: Estimate, confounding: Confounding | None, personalised: bool) -> str:
    if held.propensity is not None:
        return ""
    if personalised:
        return (
            "production is personalised and the log has no propensities: items were shown to users who like them; log "
            "propensities and name their column (--propensity)"
        )
    if confounding is not None and confounding.found:
        return (
            f"{confounding}, as where production chooses them by something about the user; log propensities "
            "(--propensity), or find out by which column (--segment) and make it part of the context"
        )
    if confounding is None or not one.margin or one.margin >= confounding.hidden:
        return ""
    return (
        "the log could hide a personalisation of production that undoes this lift: clicks at places that change may be "
        f"overstated by {percent(confounding.hidden)}, and {percent(one.margin)} would suffice; hold out more lists or "
        "log propensities (--propensity); if you know that production does not look at the user, --acknowledge "
        "confounding"
    )


def _confounded_by(segments: Sequence[SegmentTest]) -> str:
    every = [str(one) for one in segments if one.found]
    return f"{'; '.join(every)}; make it part of the context, or log propensities (--propensity)" if every else ""


def _trusting(held: Holdout, estimator: Estimator) -> str:
    if not hasattr(estimator, "model"):
        return ""  # items are observed at their positions
    p_value = trust_bias(held.lists)
    if p_value > LEVEL:
        return ""
    return (
        f"rarely clicked items lose more by going down than often clicked ones (p = {p_value:.2g}), as under trust "
        "bias, which no click model here has; gate the whole policy by an estimator without one, such as -e ip-ips"
    )


def name_in_words(one: Estimate) -> str:
    """The estimator, with its name in plain words."""
    words = in_words(one.estimator)
    return f"{one.estimator}{words and f' ({words})'}"
