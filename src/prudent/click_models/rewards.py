"""Rewards: what the value of a list counts.

A click model gives the expected reward of lists (`FittedModel.rewards`); the observed reward of logged lists is
`prudent.evaluation.holdout.Holdout.reward`.
"""

from typing import Literal, get_args

Reward = Literal["clicks", "any-click", "satisfied"]
"""What the value of a list counts: expected clicks, the probability of a click, or of a click that ends the search."""
REWARDS: tuple[Reward, ...] = get_args(Reward)

ObservedReward = Literal["clicks", "any-click"]
"""Rewards that a log shows; whether a click satisfied the user is never observed."""
OBSERVED_REWARDS: tuple[ObservedReward, ...] = get_args(ObservedReward)
