"""Inverse propensity scoring of items at positions."""

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

from prudent.evaluation.estimators.base import (
    FREQUENCIES,
    Columns,
    Estimator,
    check_support,
    estimators,
    where_supported,
)
from prudent.evaluation.holdout import CannotTellError, HeldOut, Reward
from prudent.evaluation.weighting import by_frequency, sum_positions
from prudent.policies.baselines.base import check_clip


@estimators.register("ip-ips")
@dataclass(frozen=True)
class ItemPositionIps(Estimator):
    """The clicks of each item at its position, whatever stood around it.

    ``Σₖ (1/n) Σ min(M, 1{aₖ = bₖ}/P(aₖ)) · rₖ`` (Li et al. 2018). Assumes that a click depends on its item and position
    alone, as in a position-based model; under a cascade it is wrong. P is always a frequency: the propensity of a
    list does not tell that of an item at a position.
    """

    words: ClassVar[str] = "inverse propensities of items in their places"

    clip: float = inf

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def columns(self, held: HeldOut, reward: Reward) -> Columns:
        """Positions, each with the lists that have the policy's item there."""
        if reward == "any-click":
            raise CannotTellError("Whether a list has any click is not a sum over its items and positions.")
        matched = sum_positions(held, lambda k: by_frequency(held, held.at(k), held.reward_at(k, reward), self.clip))
        check_support(held, matched.found, "all of the policy's items at their positions")
        return replace(where_supported(held, reward, matched), note="" if held.propensity is None else FREQUENCIES)
