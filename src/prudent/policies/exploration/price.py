"""What variants of lists cost: the expected share of the policy's value that they lose, and its upper limit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtr

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.policies.exploration.situation import Situation, normal_quantile

Purpose = Literal["policy", "positions", "items"]
PURPOSES: tuple[Purpose, ...] = ("policy", "positions", "items")
"""Why a list is shown; a variant has the number of its purpose."""


@dataclass(frozen=True)
class Variants:
    """Lists that differ from the policy's in one item or one swap, one row each."""

    context: IntArray
    lists: IntArray  # pairs, −1 below the end
    probability: FloatArray  # of being shown in its context
    purpose: IntArray

    @classmethod
    def none(cls, length: int) -> "Variants":
        """No variants."""
        empty = np.zeros(0, np.int64)
        return cls(empty, np.zeros((0, length), np.int64), np.zeros(0), empty)

    @classmethod
    def joined(cls, several: "Sequence[Variants]") -> "Variants":
        """All of them, in the order of contexts."""
        columns = ("context", "lists", "probability", "purpose")
        every = cls(*(np.concatenate([getattr(one, name) for one in several]) for name in columns))
        return every.only(np.argsort(every.context, kind="stable"))

    def only(self, rows: IntArray | BoolArray) -> "Variants":
        """Some of them."""
        return Variants(self.context[rows], self.lists[rows], self.probability[rows], self.purpose[rows])

    def shares(self, contexts: int) -> FloatArray:
        """The probability of each context that one of them is shown."""
        return np.bincount(self.context, self.probability, minlength=contexts).astype(np.float64)


_SHARED = 0.25
"""By how many of their standard deviations the estimates of all items may be off together, each to where it costs more.

Posteriors share a fitted prior, and variants are chosen where they look cheap, so that an error of the prior is sought
out. In simulated worlds losses were 10 % above their expectation for swaps and 20 % for items in no list, whose
posteriors are mostly the prior.
"""


class Price(NamedTuple):
    """Of the value of the policy, shares."""

    expected: float
    at_most: float  # with the confidence that was asked for


def price(situation: Situation, variants: Variants, confidence: float, covariance: FloatArray | None = None) -> Price:
    """The loss of value over all traffic, relative to the value of the policy.

    ``R = Σ w_c q_v (V(A_c) − V(v)) / Σ w_c V(A_c)`` over contexts c, weighted by their logged lists, and their variants
    v, each shown with the probability q. Its upper limit is ``R + z·sd(R)``, by the posteriors of the items, which are
    independent given the prior, by an error of the prior that they share, and by `covariance`, that of the
    logarithms of fitted examination probabilities. All derivatives are those of R at the estimates, the one by log pₖ
    that of a reward in proportion to pₖ. As the sum of many small contributions R is about normal.
    """
    weight = situation.lists / situation.lists.sum()
    total = float(weight @ situation.value)
    if not total or not len(variants.context):
        return Price(0.0, 0.0)
    q = weight[variants.context] * variants.probability
    value = situation.fitted.value(situation.attraction(variants.lists))
    loss = float(q @ (situation.value[variants.context] - value)) / total
    explored = weight * variants.shares(situation.contexts)
    slope = np.zeros(len(situation.mean) + 1)  # of R by the attraction of each pair; the last is that of no item
    base = explored - loss * weight
    np.add.at(slope, situation.table, base[:, None] * situation.slopes)
    np.add.at(slope, variants.lists, -q[:, None] * situation.slopes_of(variants.lists))
    doubt = slope[:-1] * situation.deviation
    shared = _SHARED * float(np.abs(doubt).sum())
    variance = float(np.sum(doubt**2)) + shared**2
    if covariance is not None:
        rewards = situation.fitted.predict
        by_place = base @ rewards(situation.attraction(situation.table))
        by_place -= q @ rewards(situation.attraction(variants.lists))
        variance += float(by_place @ covariance @ by_place)
    return Price(loss, loss + normal_quantile(confidence) * float(np.sqrt(variance)) / total)


def expected_excess(mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """E[max(X, 0)] of normal X: what a variant costs where it is worse, without credit for where it is better."""
    safe = np.where(deviation > 0, deviation, 1.0)
    z = mean / safe
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return np.asarray(np.where(deviation > 0, mean * ndtr(z) + safe * density, np.maximum(mean, 0.0)))
