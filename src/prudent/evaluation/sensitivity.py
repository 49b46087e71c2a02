"""How strong hidden confounding would have to be to undo a lift.

Production may choose lists by something about the user that the log does not have, such as taste: an item is then shown
to users who like it, and its click rate is too high for all others. Suppose that among the users of a context the odds
that an item is shown at a position are at most Γ times as high for those who would click it as for those who would not
(a marginal sensitivity model). Where the policy shows what was shown, its clicks were observed, and nothing is assumed.
At all other places an item that is clicked with probability q where it was shown is clicked with probability at least
``q / (q + Γ(1 − q))`` where it was not. Γ is where the value of the policy,

    V(Γ) = S + m · q / (q + Γ(1 − q)),   q = (V − S)/m,

meets the value to beat: S is the observed reward per list at places that stay, m how many places per list change, and V
the limit of the interval. The bound is convex in q, so that one mean q for all places that change makes Γ too small
rather than too large.

The margin is simpler: by which share the clicks at places that change may be overstated before the lower limit of the
lift is undone, ``(V − S)/(goal − S) − 1``.
"""

import numpy as np

from prudent.base.arrays import BoolArray
from prudent.click_models.rewards import COLUMN, EarnedReward
from prudent.evaluation.holdout import Holdout

LARGEST_GAMMA = 1_000.0
"""Γ is not computed beyond this; tables show "1000+"."""


def unchanged_places(held: Holdout, counted: BoolArray, reward: EarnedReward) -> tuple[float, float]:
    """Per counted list: the observed reward of what the policy shows as well, and how many places it changes.

    Of the reward any-click, the list is the place. Rewards of clicks have no odds: no place counts.
    """
    lists = float(held.n[counted].sum())
    if reward == "clicks":
        earned = (held.clicks & held.same & held.within).sum(axis=1)
        changed = (held.within & ~held.same).sum(axis=1)
    elif reward == COLUMN:
        earned = np.sum(held.rewards * (held.same & held.within), axis=1)
        changed = np.zeros(len(held.n))
    else:
        stays = held.stays
        earned, changed = held.reward(reward) * stays, ~stays
    return tuple(float(np.sum((held.n * column)[counted]) / lists) for column in (earned, changed))  # type: ignore[return-value]


def sensitivity(low: float, high: float, goal: float, same: float, places: float) -> float:
    """Γ at which an interval of the value no longer lies on one side of the goal; 1 where it does not lie there.

    >>> round(sensitivity(0.5, 0.6, 0.4, same=0.1, places=1.0), 6)  # odds of 0.4/0.6 and of 0.3/0.7
    1.555556
    """
    if low <= goal <= high or not places:
        return 1.0
    value = low if low > goal else high
    q, least = ((level - same) / places for level in (value, goal))
    above, below = (q, least) if low > goal else (least, q)
    if below <= 0 or above >= 1:
        return LARGEST_GAMMA
    return float(min(LARGEST_GAMMA, (above / (1 - above)) / (below / (1 - below))))


def margin(low: float, goal: float, same: float) -> float:
    """By which share clicks at places that change may be overstated until `low` is no longer above the goal.

    >>> round(margin(0.5, 0.4, same=0.1), 6)  # 0.4 in place of 0.3
    0.333333
    """
    if low <= goal:
        return 0.0
    return min(LARGEST_GAMMA, (low - same) / (goal - same) - 1) if goal > same else LARGEST_GAMMA
