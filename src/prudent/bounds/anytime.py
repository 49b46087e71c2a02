"""A bound that holds however often one looks."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betaln

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.numerics.thinned import Skips, collapse, log_integral
from prudent.base.text import percent
from prudent.bounds.base import Bound, Scores, bounds, candidates_examined, check_delta, check_positive
from prudent.bounds.mle import click_rate
from prudent.click_models.evidence import Evidence

_ROUNDS = 60  # Newton steps, which end at the bound from below; most need ten
_HALVINGS = 60


@bounds.register("anytime")
@dataclass(frozen=True)
class Anytime(Bound):
    """A bound that holds at all times at once: ``P(θ < L(a) at any time) ≤ δ`` at *every* θ; not in the paper.

    ``L(a)`` is the smallest θ with ``∫ lik(t) π(t) dt / lik(θ) ≤ 1/δ``, where lik is the likelihood of clicks and
    skips, and π = Beta(α, β). That ratio has a mean of 1 at the true θ after any number of impressions, so that it
    ever exceeds 1/δ with probability δ at most (Ville's inequality). So ranking again every night, and stopping when
    one likes, does not wear it out: over 60 looks the bound of a fixed n at δ = .1 is above the truth at some time for
    a third of the items.

    π has to be chosen before the data: α and β are settings, and not fitted here. What ``eb`` fitted to yesterday's log
    is a good choice, while a prior fitted to the same clicks voids the guarantee. A wrong π makes the bound wider and
    not wrong. An item without a click gets 0. Days have to be added up, without a half-life. In the tails of ``dcm``
    examinations are estimates that later clicks change, and it holds approximately.
    """

    delta: float = 0.2
    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        check_delta(self.delta)
        for name in ("alpha", "beta"):
            check_positive(name, getattr(self, name))

    @property
    def promise(self) -> str:
        """It holds for each item, however often one looks."""
        return (
            f"The lower bound of {self} stays below the attraction of an item chosen in advance with probability "
            f"{percent(1 - self.delta, 0)} or more, however often the log is ranked as it grows, if its examinations "
            "are counted right. It does not hold for all items at once."
        )

    def score(self, evidence: Evidence) -> Scores:
        """The smallest θ that the clicks do not rule out; 0 without a click."""
        mean = click_rate(evidence)
        likelihood = _likelihood(evidence)
        least = likelihood.log_mean(self.alpha, self.beta) + np.log(self.delta)  # lik(θ) of the θ that remain

        def upper(rows: IntArray) -> FloatArray:
            """The largest such θ."""
            own, at_least = likelihood.only(rows), least[rows]
            low, high = own.most_likely(), np.ones(rows.size)
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                inside = own.log(middle) >= at_least
                low, high = np.where(inside, middle, low), np.where(inside, high, middle)
            return high

        def joint(rows: IntArray) -> FloatArray:
            """The smallest such θ at δ divided by the number of items."""
            return likelihood.only(rows).first_at(least[rows] - np.log(candidates[rows]))

        candidates = candidates_examined(evidence)
        return Scores(likelihood.first_at(least), mean, upper=upper, list_level=self.delta, joint=joint)


class _Likelihood(NamedTuple):
    """θ^Y ∏ (1 − xθ)^m of every pair, over skips of each chance x."""

    clicks: FloatArray
    skips: Skips

    def only(self, rows: IntArray) -> "_Likelihood":
        """That of some pairs."""
        return _Likelihood(self.clicks[rows], self.skips.only(rows, self.clicks.size))

    def log(self, theta: FloatArray) -> FloatArray:
        """The logarithm at one θ of each pair."""
        with np.errstate(divide="ignore"):
            skipped = self.skips.n * np.log1p(-self.skips.chance * theta[self.skips.pair])
        total = self.skips.per_pair(skipped, theta.size)
        return np.where(self.clicks > 0, self.clicks * np.log(np.maximum(theta, 1e-300)), 0.0) + total

    def most_likely(self) -> FloatArray:
        """About the θ of the highest likelihood."""
        return collapse(self.clicks + 1e-9, np.full_like(self.clicks, 1e-9), self.skips).mode

    def log_mean(self, alpha: float, beta: float) -> FloatArray:
        """Log ∫ lik(t) π(t) dt: exact skips at the mode, and the shape around it of the collapsed ones."""
        thinned = collapse(self.clicks + alpha, np.full_like(self.clicks, beta), self.skips)
        mode = thinned.mode
        exact = self.log(mode) + (alpha * np.log(mode) + beta * np.log1p(-mode))
        return np.asarray(exact + log_integral(thinned, mode) - betaln(alpha, beta))

    def first_at(self, least: FloatArray) -> FloatArray:
        """The smallest θ whose log-likelihood is `least` or more.

        In v = log θ the likelihood is concave and rises up to its maximum: from the left, Newton steps end at the root.
        """
        theta = np.zeros_like(self.clicks)
        rows = np.flatnonzero(self.clicks > 0)
        own, least = self.only(rows), least[rows]
        most = np.log(own.most_likely())
        v = np.minimum(most, least / own.clicks)  # where even without skips the likelihood is no higher
        for _ in range(_ROUNDS):
            at = np.exp(v)
            ratio = own.skips.chance * at[own.skips.pair]
            slope = own.clicks - own.skips.per_pair(own.skips.n * ratio / (1 - ratio), rows.size)
            step = np.clip((least - own.log(at)) / np.maximum(slope, 1e-9 * own.clicks), 0.0, most - v)
            v = v + step
            if step.max(initial=0.0) < 1e-10:
                break
        theta[rows] = np.exp(v)
        return theta


def _likelihood(evidence: Evidence) -> _Likelihood:
    """With the skips of the click model or, where examinations are certain, those that were examined."""
    some = np.flatnonzero(evidence.negative > 0)
    certain = Skips(some, np.ones(some.size), evidence.negative[some])
    return _Likelihood(evidence.positive, certain if evidence.skips is None else evidence.skips)
