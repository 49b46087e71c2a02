"""Inverse propensity scoring of whole lists."""

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

import numpy as np

from prudent.base.spec import check_clip
from prudent.click_models.rewards import ObservedReward
from prudent.evaluation.estimators.base import (
    FREQUENCIES,
    Contributions,
    Estimator,
    check_support,
    estimators,
    everywhere,
    where_supported,
)
from prudent.evaluation.holdout import HeldOut
from prudent.evaluation.weighting import by_frequency, by_propensity, whole_propensity

_LONGER = f"The propensities belong to longer lists than the policy's. {FREQUENCIES}"


@estimators.register("ips")
@dataclass(frozen=True)
class Ips(Estimator):
    """The reward of lists that equal the policy's from top to bottom: ``(1/n) Σ min(M, 1{A = B}/P(A)) · R``.

    Assumes nothing about how users click, and needs lists shown exactly as the policy ranks them. M is ``clip``: it
    lowers the variance, and biases the value downwards.
    """

    words: ClassVar[str] = "inverse propensities"

    clip: float = inf

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def contributions(self, held: HeldOut, reward: ObservedReward) -> Contributions:
        """Whole lists, weighted."""
        earned = held.reward(reward)
        propensity = whole_propensity(held)
        if propensity is None:
            matched = by_frequency(held, held.whole, earned, self.clip)
        else:
            matched = by_propensity(held, held.whole, earned, propensity, self.clip)
        check_support(held, matched.supported, "the policy's whole list")
        if propensity is not None:
            return everywhere(held, reward, matched, self.clip)
        return replace(where_supported(held, reward, matched), note="" if held.propensity is None else _LONGER)


@estimators.register("snips")
@dataclass(frozen=True)
class SelfNormalizedIps(Estimator):
    """``Σ wR / Σ w``: `ips`, divided by the sum of the weights instead of its expectation.

    Less variance, and a bias that vanishes with the number of lists. Equals `ips` where propensities are frequencies.
    """

    words: ClassVar[str] = "self-normalized inverse propensities"

    def contributions(self, held: HeldOut, reward: ObservedReward) -> Contributions:
        """Whole lists, weighted; the share of each list is its weight."""
        part = Ips().contributions(held, reward)
        propensity = whole_propensity(held)
        if propensity is None:
            return part
        weight = np.where(held.whole, 1 / np.where(held.whole, propensity, 1.0), ~held.known[held.context])
        value = float(np.sum(held.n * part.gain) / np.sum(held.n * weight))
        # Contexts without weight are not part of the value, nor of the logged reward that it is compared with.
        counted = held.per_context(held.n * weight)[held.context] > 0
        return replace(part, value=value, share=weight, counted=counted)
