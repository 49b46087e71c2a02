"""Production's order, from which an item rises only on evidence: the default."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import logit

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.spec import check_word
from prudent.base.strict_json import typed
from prudent.base.text import percent
from prudent.bounds.base import Anchor, Bound, Once, Prior, PriorRule, Scores, bounds, check_delta
from prudent.bounds.bayes import posterior
from prudent.bounds.exposure import centred_log
from prudent.bounds.hierarchical import LITTLE, HierarchicalPrior, fit_prior
from prudent.bounds.quantiles import TABLE_FROM
from prudent.click_models.evidence import Evidence

STAY = 0.8
"""What δ is multiplied by for the quantile that an item of the incumbent list has to be beaten at."""


@bounds.register("anchored")
@dataclass(frozen=True)
class Anchored(Bound):
    """Keep the incumbent's order except where evidence beats it; not in the paper.

    A logging policy is usually good, and most contexts of a log are rare: there its order is most of what is known.
    Lists are not sorted by lower bound. At each rank stands the next item i of the incumbent list, unless the highest
    lower bound among the items with a click that are left, ``L_j``, exceeds ``H_i``; then j does.

    1. The incumbent list: items by ``Σ n / log₂(1 + position)`` over their impressions, descending.
    2. ``n₊ ~ BetaBinomial(μs, (1−μ)s)`` with ``logit μ = b₀ + b·z`` and ``s = s₀/√μ``, z as in `hierarchical`, and no
       level of contexts. Its x is the logarithm of 1 + impressions per opportunity to be shown, centred in the context:
       an item that was placed above a position could not be shown there. The logarithm of the context's impressions
       is one more covariate: a log shows the tail of the candidates of a frequent context, and of a rare one only the
       best. Without it, estimates of the demo are 3 % too high at 100 to 1,000 impressions and 15 % too low below 10.
    3. L is the quantile δ/2 of the posterior, and H the quantile 0.8 δ.
    4. Logging is *opposed* where the fitted curve falls with x. Then any item may rise, because there the order of
       production is evidence against its first items.
    5. Where pairs have groups (`prudent.bounds.groups`), logit μ also follows the clicks on the groups of a pair in
       other contexts, by a slope for each grouping that is kept as far as the data support it. Items that these
       clicks put above another one of their context lead as well, clicked in it or not; with ``lead=clicks`` they do
       not.

    6. With ``slopes=fitted``, b is not shrunk. Shrinking keeps a list from following a curve that may be noise, but it
       puts items that were hardly ever shown too high: `judge`, which is to estimate well, does not shrink. Scores
       then have the error of the fitted prior, which all pairs share.

    Each pair weighs both by what they know: its own clicks by the number of its examinations, those elsewhere by s. So
    where a context has evidence of its own its list is that of its own clicks, where it has none that of the prior,
    and where neither knows anything, the incumbent's: without groups, a context without clicks keeps its list, and an
    item without a click passes no other, unless logging is opposed. The lower bounds have the promise of ``bayes``, as
    far as the fitted prior is right; the order promises to differ from production's only on evidence.
    """

    delta: float = 0.5
    lead: Literal["prior", "clicks"] = "prior"
    slopes: Literal["shrunk", "fitted"] = "shrunk"

    posterior: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_word("lead", self.lead, ["prior", "clicks"])
        check_word("slopes", self.slopes, ["shrunk", "fitted"])

    @property
    def promise(self) -> str:
        """It holds on average over items, and the order is the incumbent's except on evidence."""
        raised = "" if self.lead == "clicks" else ", or of one that clicks in other contexts prefer,"
        return (
            f"A list keeps the incumbent's order, except where the lower bound of a clicked item{raised} exceeds what "
            f"the items it passes are likely to have. The lower bound of {self} is below the attraction of about "
            f"{percent(1 - self.delta / 2, 0)} of the items, on average over items and if the click model and the "
            "prior are right."
        )

    def score(self, evidence: Evidence) -> Scores:
        """Quantile and mean of the posterior, and the anchor."""
        return self.learn(evidence, len(evidence.context)).score(evidence)

    def restored(self, saved: Mapping[str, Any]) -> Bound:
        """As it was learned."""
        curve = dict(saved["prior"])
        opposed, usual = typed(curve.pop("opposed"), bool), typed(saved["usual"], float)
        prior = AnchoredPrior(typed(curve, HierarchicalPrior), opposed, usual)
        return LearnedAnchored(self.delta, self.lead, prior, typed(saved["tabulated"], bool))

    def learn(self, evidence: Evidence, pairs: int) -> Bound:
        """The same with its prior fitted to this evidence."""
        prior = fit_anchored_prior(evidence, shrunk=self.slopes == "shrunk")
        return LearnedAnchored(self.delta, self.lead, prior, tabulated=pairs >= TABLE_FROM)


@dataclass(frozen=True)
class AnchoredPrior(PriorRule):
    """What `Anchored` leaves in ``Scores.fitted``."""

    curve: HierarchicalPrior
    opposed: bool  # whether the items that production shows most readily are the worse ones
    usual: float = 0.0  # x of an examined item, on average: that of items in contexts that the log does not have

    def of(self, evidence: Evidence, rows: IntArray | slice = slice(None)) -> Prior:
        """The prior of every pair, or of some."""
        impressions = np.bincount(evidence.context, evidence.impressions)[evidence.context]
        x = np.where(impressions > 0, _covariate(evidence), self.usual)
        curve = self.curve.curve(x[rows], _size(evidence)[rows])
        alpha, beta, _ = self.curve.at(curve + self.shift(evidence)[rows])
        return Prior(alpha, beta, self.fitted)

    def shift(self, evidence: Evidence) -> FloatArray:
        """What groups add to logit μ of every pair."""
        return np.broadcast_to(self.curve.shift(evidence.signals), evidence.context.shape)

    @property
    def fitted(self) -> Mapping[str, Any]:
        """Its parameters; plain JSON."""
        return {**self.curve.fitted, "opposed": self.opposed}


def fit_anchored_prior(evidence: Evidence, shrunk: bool = True) -> AnchoredPrior:
    """The prior that follows the hazard, and whether it falls with it over the examined pairs."""
    x = _covariate(evidence)
    curve = fit_prior(evidence, x, levels=False, size=_size(evidence), shrunk=shrunk)
    examined = evidence.examined > 0
    level = curve.curve(x[examined])
    opposed = bool(examined.any() and np.cov(x[examined], level, bias=True)[0, 1] < 0)
    weight = evidence.examined / (evidence.examined + LITTLE)
    usual = float(np.average(x, weights=weight)) if examined.any() else 0.0
    return AnchoredPrior(curve, opposed, usual)


def _covariate(evidence: Evidence) -> FloatArray:
    return centred_log(evidence.hazard, evidence.context)


def _size(evidence: Evidence) -> FloatArray:
    """The logarithm of 1 + the impressions in the context of every pair.

    A context without any is taken for one that was seen once: no log tells how the attraction of still rarer ones is.
    """
    impressions = np.bincount(evidence.context, evidence.impressions)
    return np.asarray(np.log1p(np.where(impressions > 0, impressions, evidence.fitted.positions))[evidence.context])


@dataclass(frozen=True)
class LearnedAnchored(Bound):
    """`Anchored` under a fitted prior."""

    delta: float
    lead: str
    prior: AnchoredPrior
    tabulated: bool

    @property
    def ungrouped(self) -> PriorRule:
        """The fitted prior."""
        return self.prior

    @property
    def saved(self) -> Mapping[str, Any]:
        """The fitted prior."""
        return {"prior": self.prior.fitted, "usual": self.prior.usual, "tabulated": self.tabulated}

    def fitted(self, evidence: Evidence) -> Mapping[str, Any]:
        """Those of the prior."""
        return self.prior.fitted

    def score(self, evidence: Evidence) -> Scores:
        """Quantile and mean of the posterior, and the anchor."""
        prior = self.prior.of(evidence)
        after = posterior(evidence, prior, self.tabulated)
        (lower,), mean = after.scores(self.delta / 2)
        stay = Once(partial(after.quantile, level=STAY * self.delta), len(lower))
        return Scores(
            lower,
            mean,
            prior.fitted,
            upper=partial(after.upper, level=self.delta / 2),
            anchor=Anchor(stay, self._leads(evidence), self.preference(evidence), STAY * self.delta),
            list_level=self.delta / 2,
            deviation=after.deviation,
            shared=partial(self._shared, evidence) if self.prior.curve.errors else None,
        )

    def _shared(self, evidence: Evidence, rows: IntArray) -> FloatArray:
        """By how much the logit of the mean of some pairs moves with one standard error of the fitted prior."""
        few = evidence.select(rows)

        def logits(curve: HierarchicalPrior) -> FloatArray:
            prior = replace(self.prior, curve=curve).of(evidence, rows)
            _, mean = posterior(few, prior, self.tabulated).scores()
            return np.asarray(logit(mean))

        here, curve = logits(self.prior.curve), self.prior.curve
        return np.column_stack([logits(curve.moved(error)) - here for error in curve.errors])

    def score_lists(self, evidence: Evidence, incumbent: BoolArray) -> Scores:
        """The same of the pairs of incumbent lists, and of those that may pass them."""
        if not self.tabulated:
            return self.score(evidence)
        leads = self._leads(evidence)
        rows = np.flatnonzero(incumbent | leads)
        prior = self.prior.of(evidence, rows)
        after = posterior(evidence.select(rows), prior, self.tabulated)
        quantiles, mean = after.scores(self.delta / 2, STAY * self.delta, 1 - self.delta / 2)
        lower, stay, upper, mean = (_of_rows(rows, values, len(leads)) for values in (*quantiles, mean))
        return Scores(
            lower,
            mean,
            prior.fitted,
            upper=upper.__getitem__,
            anchor=Anchor(stay.__getitem__, leads, self.preference(evidence), STAY * self.delta),
            list_level=self.delta / 2,
            deviation=lambda some: after.deviation(np.searchsorted(rows, some)),
        )

    def preference(self, evidence: Evidence) -> FloatArray | None:
        """What groups say: in one context, pairs that were never shown have all else in common."""
        if evidence.signals is None:
            return None
        return np.where(evidence.impressions > 0, 0.0, self.prior.shift(evidence))

    def _leads(self, evidence: Evidence) -> BoolArray:
        """Which pairs may pass others: where logging is opposed, all of a context with a click."""
        leads = evidence.positive > 0
        if self.prior.opposed:
            leads = (np.bincount(evidence.context, leads) > 0)[evidence.context]
        if self.lead == "prior" and evidence.signals is not None:
            leads = leads | _above_another(self.prior.shift(evidence), evidence.context)
        return leads


def _above_another(values: FloatArray, context: IntArray) -> BoolArray:
    """Whether another pair of the same context, which stand together, has less."""
    starts = np.flatnonzero(np.diff(context, prepend=-1))
    least = np.minimum.reduceat(values, starts) if len(starts) else values
    return np.asarray(values > np.repeat(least, np.diff(starts, append=len(values))))


def _of_rows(rows: IntArray, values: FloatArray, pairs: int) -> FloatArray:
    """The values of some pairs among all, with NaN for the others."""
    every = np.full(pairs, np.nan)
    every[rows] = values
    return every
