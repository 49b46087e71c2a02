"""Inverse propensity scoring of whole lists."""

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

import numpy as np

from prudent.evaluation.estimators.base import (
    FREQUENCIES,
    Columns,
    Estimator,
    check_support,
    estimators,
    everywhere,
    highest_reward,
    where_supported,
)
from prudent.evaluation.holdout import HeldOut, Reward
from prudent.evaluation.weighting import by_frequency, by_propensity, whole_propensity
from prudent.policies.baselines.base import check_clip

_LONGER = f"The propensities are of longer lists than the policy's. {FREQUENCIES}"


@estimators.register("ips")
@dataclass(frozen=True)
class Ips(Estimator):
    """The reward of lists that are the policy's from top to bottom: ``(1/n) Σ min(M, 1{A = B}/P(A)) · R``.

    Makes no assumption on how users click, and needs lists that were shown just as the policy has them. M is ``clip``:
    it trades variance for a value that is too low.
    """

    words: ClassVar[str] = "inverse propensities"

    clip: float = inf

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def columns(self, held: HeldOut, reward: Reward) -> Columns:
        """Whole lists, weighted."""
        earned = held.reward(reward)
        propensity = whole_propensity(held)
        if propensity is None:
            matched = by_frequency(held, held.whole, earned, self.clip)
        else:
            matched = by_propensity(held, held.whole, earned, propensity, self.clip)
        check_support(held, matched.found, "the policy's whole list")
        if propensity is not None:
            return everywhere(held, reward, matched, self.clip * highest_reward(held, reward))
        return replace(where_supported(held, reward, matched), note="" if held.propensity is None else _LONGER)


@estimators.register("snips")
@dataclass(frozen=True)
class SelfNormalizedIps(Estimator):
    """``Σ wR / Σ w``: `ips`, divided by the weights that there were rather than by those to be expected.

    Less variance, and a bias that vanishes with the number of lists. Where propensities are frequencies the two are
    the same.
    """

    words: ClassVar[str] = "normalized inverse propensities"

    def columns(self, held: HeldOut, reward: Reward) -> Columns:
        """Whole lists, weighted; the share of each list is its weight."""
        columns = Ips().columns(held, reward)
        propensity = whole_propensity(held)
        if propensity is None:
            return columns
        weight = np.where(held.whole, 1 / np.where(held.whole, propensity, 1.0), ~held.known[held.context])
        value = float(np.sum(held.n * columns.gain) / np.sum(held.n * weight))
        # Contexts without a weight have no part in the value, and so none in the logged reward beside it.
        counted = held.per_context(held.n * weight)[held.context] > 0
        return replace(columns, value=value, share=weight, counted=counted)
