"""Rewards: what the value of a list counts.

A click model gives the expected reward of lists (`FittedModel.rewards`); the observed reward of logged lists is
`prudent.evaluation.holdout.Holdout.reward`.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from prudent.base.errors import UsageError, did_you_mean

Reward = Literal["clicks", "any-click", "satisfied"]
"""What the value of a list counts: expected clicks, the probability of a click, or of a click that ends the search."""
REWARDS: tuple[Reward, ...] = get_args(Reward)

ObservedReward = Literal["clicks", "any-click"]
"""Rewards that a log shows; whether a click satisfied the user is never observed."""
OBSERVED_REWARDS: tuple[ObservedReward, ...] = get_args(ObservedReward)

EarnedReward = Literal["clicks", "any-click", "rewards"]
"""The same, or what clicks earned by a column of the log: rewards."""
COLUMN: Literal["rewards"] = "rewards"


class Words(NamedTuple):
    """A reward in sentences, such as: lists get 3 % fewer clicks."""

    unit: str
    less: str
    many: str
    verb: str


WORDS: Mapping[str, Words] = {
    "clicks": Words("clicks", "fewer", "many", "get"),
    "any-click": Words("lists with a click", "fewer", "many", "get"),
    COLUMN: Words("reward", "less", "much", "earn"),
}


def by_clicks(reward: EarnedReward) -> ObservedReward:
    """What a click model expects: where clicks earned rewards, clicks."""
    return "clicks" if reward == COLUMN else reward


def observed(reward: str) -> tuple[EarnedReward, dict[str, Any]]:
    """What to evaluate by, which may be the name of a column, and that column as an argument of `Log`.

    >>> observed("margin")
    ('rewards', {'reward': 'margin'})
    """
    for known in OBSERVED_REWARDS:
        if reward == known:
            return known, {}
    if not isinstance(reward, str) or did_you_mean(reward, ["any-click"]):
        raise UsageError(f"There is no reward {reward!r}. Known: clicks, any-click, and columns of the log.")
    return COLUMN, {"reward": reward}
