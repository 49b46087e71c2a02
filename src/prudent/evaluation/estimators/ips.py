"""Inverse propensity scoring: of whole lists, of their first items, and of items at positions."""

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

import numpy as np

from prudent.base.spec import check_clip
from prudent.click_models.rewards import EarnedReward
from prudent.evaluation.estimators.base import (
    FREQUENCIES,
    NOT_A_SUM,
    Contributions,
    Estimator,
    check_support,
    estimators,
    everywhere,
    where_supported,
)
from prudent.evaluation.holdout import CannotTellError, Holdout
from prudent.evaluation.weighting import (
    Matched,
    by_frequency,
    by_propensity,
    prefix_propensities,
    sum_positions,
    whole_propensity,
)

_LONGER = f"The propensities belong to longer lists than the policy's. {FREQUENCIES}"
WHOLE_ONLY = f"The propensities belong to whole lists, not to their first items. {FREQUENCIES}"


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

    def contributions(self, held: Holdout, reward: EarnedReward) -> Contributions:
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

    def contributions(self, held: Holdout, reward: EarnedReward) -> Contributions:
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


@estimators.register("prefix-ips")
@dataclass(frozen=True)
class PrefixIps(Estimator):
    """The reward of each position, from lists that match the policy's down to it (reward interaction).

    ``Σₖ (1/n) Σ min(M, 1{A[:k] = B[:k]}/P(A[:k])) · rₖ`` (McInerney et al. 2020). Assumes that the clicks at a position
    depend on the items above it and not on those below, as in a cascade. For ``any-click``, rₖ is the first click.
    """

    words: ClassVar[str] = "inverse propensities from the top down"

    clip: float = inf

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def contributions(self, held: Holdout, reward: EarnedReward) -> Contributions:
        """Positions, each with the lists that match down to it."""
        steps = prefix_propensities(held)

        def position(k: int) -> Matched:
            match, earned = held.depth > k, held.reward_at(k, reward)
            if steps is None:
                return by_frequency(held, match, earned, self.clip)
            return by_propensity(held, match, earned, steps[:, k], self.clip)

        matched = sum_positions(held, position)
        check_support(held, matched.supported, "the policy's whole list")
        if steps is not None:
            return everywhere(held, reward, matched, self.clip)
        return replace(where_supported(held, reward, matched), note="" if held.propensity is None else WHOLE_ONLY)


@estimators.register("ip-ips")
@dataclass(frozen=True)
class ItemPositionIps(Estimator):
    """The clicks of each item at its position, regardless of the other items.

    ``Σₖ (1/n) Σ min(M, 1{aₖ = bₖ}/P(aₖ)) · rₖ`` (Li et al. 2018). Assumes that a click depends on its item and
    position alone, as in a position-based model; biased under a cascade. P is always a frequency: the propensity of a
    list does not determine that of an item at a position.
    """

    words: ClassVar[str] = "inverse propensities of items at positions"

    clip: float = inf

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def contributions(self, held: Holdout, reward: EarnedReward) -> Contributions:
        """Positions, each with the lists that have the policy's item there."""
        if reward == "any-click":
            raise CannotTellError(NOT_A_SUM)
        matched = sum_positions(held, lambda k: by_frequency(held, held.at(k), held.reward_at(k, reward), self.clip))
        check_support(held, matched.supported, "all of the policy's items at their positions")
        return replace(where_supported(held, reward, matched), note="" if held.propensity is None else FREQUENCIES)
