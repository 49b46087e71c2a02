"""The exact frequentist bound for clicks that are 0 or 1."""

from dataclasses import dataclass

import numpy as np
from scipy.special import betainccinv, betaincinv

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.text import percent
from prudent.bounds.base import Bound, Scores, bounds, candidates_examined, check_delta
from prudent.bounds.mle import click_rate
from prudent.click_models.evidence import Evidence


@bounds.register("clopper-pearson")
@dataclass(frozen=True)
class ClopperPearson(Bound):
    """The smallest θ at which n₊ clicks or more of n examinations have a probability of δ; not in the paper.

    For one item and n examinations, both fixed in advance, ``P(θ < L(a)) ≤ δ`` at *every* θ, as with ``hoeffding``,
    but with the binomial distribution itself instead of an inequality: 5 clicks of 50 at δ = .1 give .049, where
    Hoeffding's inequality gives −.052. An item without a click gets 0.

    Where N impressions were examined with probabilities x, the number of clicks is a sum of unequal trials. From two
    clicks on its upper tail is below that of the binomial distribution of N trials with the same mean, as long as that
    mean is at most n₊ − 1 (Hoeffding 1956), and one click is at most as likely as in Σx certain examinations. The bound
    is the largest for which these hold: ``L(a) = min(N·q, n₊ − 1) / Σx`` with q that of N trials, which is above 0 and
    conservative. In the tails of ``dcm`` x itself depends on clicks, and it holds approximately.
    """

    delta: float = 0.2

    def __post_init__(self) -> None:
        check_delta(self.delta)

    @property
    def promise(self) -> str:
        """It holds for an item chosen in advance, at every attraction."""
        return (
            f"With probability {percent(1 - self.delta, 0)} or more the lower bound of {self} is below the attraction "
            "of an item chosen in advance, whatever that is, if its examinations are counted right. "
            "It does not hold for all items at once, nor for an item chosen because of its clicks."
        )

    def score(self, evidence: Evidence) -> Scores:
        """The exact bound; 0 without a click."""
        clicks = evidence.positive
        expected, tries = evidence.examined, evidence.examined
        if evidence.tries is not None:
            expected = np.maximum(evidence.expected, 1e-300)
            tries = np.divide(expected**2, evidence.trials, out=evidence.tries.copy(), where=evidence.trials > 0)

        def lower(rows: IntArray, delta: FloatArray) -> FloatArray:
            """The bound at a δ of each row."""
            y, n = clicks[rows], expected[rows]
            value = np.zeros_like(y)
            unequal = (y > 1) & (evidence.tries is not None)
            some = np.flatnonzero((y > 0) & ~unequal)
            value[some] = betaincinv(y[some], n[some] - y[some] + 1, delta[some])
            some = np.flatnonzero(unequal)
            y, size = y[some], np.maximum(tries[rows][some], y[some])
            most = np.minimum(size * betaincinv(y, size - y + 1, delta[some]), y - 1)
            value[some] = np.minimum(1.0, most / n[some])
            return value

        def upper(rows: IntArray) -> FloatArray:
            """The same from above: a lower tail, which is below the binomial one where the mean is n₊ + 1 or more."""
            y, n, size = clicks[rows], expected[rows], np.maximum(tries[rows], clicks[rows])
            value = np.ones_like(y)
            some = np.flatnonzero(size > y)
            value[some] = betainccinv(y[some] + 1, (size - y)[some], self.delta)
            if evidence.tries is not None:
                value = np.where(n > 1e-299, np.minimum(1.0, np.maximum(size * value, y + 1) / n), 1.0)
            return value

        every, candidates = np.arange(clicks.size), candidates_examined(evidence)
        return Scores(
            lower(every, np.full_like(clicks, self.delta)),
            click_rate(evidence),
            upper=upper,
            list_level=self.delta,
            joint=lambda rows: lower(rows, self.delta / candidates[rows]),
        )
