"""Inverse propensity scoring of items at positions."""

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
    where_supported,
)
from prudent.evaluation.holdout import CannotTellError, HeldOut
from prudent.evaluation.weighting import by_frequency, sum_positions


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

    def contributions(self, held: HeldOut, reward: ObservedReward) -> Contributions:
        """Positions, each with the lists that have the policy's item there."""
        if reward == "any-click":
            raise CannotTellError("any-click is not a sum over items and positions.")
        matched = sum_positions(held, lambda k: by_frequency(held, held.at(k), held.reward_at(k, reward), self.clip))
        check_support(held, matched.supported, "all of the policy's items at their positions")
        return replace(where_supported(held, reward, matched), note="" if held.propensity is None else FREQUENCIES)
