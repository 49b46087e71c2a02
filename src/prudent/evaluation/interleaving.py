"""Team-draft interleaving of the policy's lists with the incumbent ones, simulated under a click model.

Two teams pick items in turns for one list, each its best one that is not in it yet, and a coin decides who starts in
each round (Radlinski, Kurup and Joachims 2008). Clicks count for the team of the item.
"""

import numpy as np

from prudent.base.arrays import BoolArray, IntArray
from prudent.bounds import bounds
from prudent.evaluation.direct import direct
from prudent.evaluation.holdout import Holdout
from prudent.policies.incumbent import incumbent_lists
from prudent.policies.list_arrays import as_table

_DRAWS = 20_000


def preference(held: Holdout, contexts: BoolArray, seed: int) -> tuple[float, float]:
    """Mean and standard deviation of the clicks on the policy's items minus those on the others, per list."""
    rng = np.random.default_rng(seed)
    fitted, cells = direct(held, "auto", "clicks").fitted, held.shown().cells
    attraction = bounds.parse("eb").score(fitted.evidence(cells)).mean
    incumbent = as_table(incumbent_lists(cells, held.length), held.contexts, held.length)
    numbers = np.flatnonzero(contexts)
    traffic = held.logged[numbers] / held.logged[numbers].sum()
    drawn = rng.choice(numbers, _DRAWS, p=traffic)
    items, team = team_draft(held.target[drawn], incumbent[drawn], rng.random((_DRAWS, held.length)) < 0.5)
    theta = np.append(attraction, [0.0, 0.0])[items]  # an item that was never shown earns nothing here
    won = (fitted.sample(theta, rng) * team).sum(axis=1)
    return float(won.mean()), float(won.std())


def team_draft(first: IntArray, second: IntArray, coins: BoolArray) -> tuple[IntArray, IntArray]:
    """Interleaved lists of as many positions, with 1 for an item of the first team and -1 for one of the second.

    Items are numbers; negative ones are none. `coins` has the side that starts each round, in its first position.

    >>> items, team = team_draft(np.array([[1, 2, 3]]), np.array([[2, 1, 4]]), np.array([[True, False, True]]))
    >>> items.tolist(), team.tolist()
    ([[1, 2, 3]], [[1, -1, 1]])
    """
    lists, length = first.shape
    items, team = np.full(first.shape, -1), np.zeros(first.shape, np.int64)
    picks = np.zeros((lists, 2), np.int64)  # of both teams
    for k in range(length):
        best = [_next(own, items) for own in (first, second)]
        fewer = picks[:, 0] < picks[:, 1]
        turn = fewer | ((picks[:, 0] == picks[:, 1]) & coins[:, k])
        turn = np.where(best[0] < 0, False, np.where(best[1] < 0, True, turn))  # a team without an item passes
        items[:, k] = np.where(turn, best[0], best[1])
        picked = items[:, k] >= 0
        team[:, k] = np.where(picked, np.where(turn, 1, -1), 0)
        picks += np.stack([picked & turn, picked & ~turn], axis=1)
    return items, team


def _next(own: IntArray, items: IntArray) -> IntArray:
    """The first item of each list that is not in the other one yet; -1 for none."""
    free = (own >= 0) & ~(own[:, :, None] == items[:, None, :]).any(axis=2)
    return np.where(free.any(axis=1), own[np.arange(len(own)), free.argmax(axis=1)], -1)
