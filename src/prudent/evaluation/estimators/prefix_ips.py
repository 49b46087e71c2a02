"""Inverse propensity scoring of the items down to each position."""

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

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
from prudent.evaluation.weighting import Matched, by_frequency, by_propensity, prefix_propensities, sum_positions

WHOLE_ONLY = f"The propensities belong to whole lists, not to their first items. {FREQUENCIES}"


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

    def contributions(self, held: HeldOut, reward: ObservedReward) -> Contributions:
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
