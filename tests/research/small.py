"""Small truths and logs, and the way from arrays to plain lists."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from prudent.click_models.world import World, nameless_world
from prudent.counts import lists as shown
from prudent.research.sources import users
from tests import reference
from tests.fitted import kind_of, position_parameter
from tests.research import plain

LAMBDA = (0.3, 0.6, 0.2)
P = (0.9, 0.5, 0.7)


def world_of(kind: str, theta: Sequence[Sequence[float]], score: Sequence[float] | None = None) -> World:
    """Contexts with items of these attractions, and lists of three."""
    flat = np.concatenate([np.array(of, float) for of in theta])
    scores = np.zeros(flat.size) if score is None else np.array(score, float)
    position = {"cm": (0.0, 0.0, 0.0), "dcm": LAMBDA, "pbm": P}[kind]
    return nameless_world(np.array([len(of) for of in theta]), flat, scores, users(kind, np.array(position)))


def truth_of(world: World) -> plain.Truth:
    theta = [
        {pair: float(world.attraction[pair]) for pair in range(start, stop)}
        for start, stop in zip(world.offsets[:-1].tolist(), world.offsets[1:].tolist(), strict=True)
    ]
    return plain.Truth(kind_of(world.users), theta, position_parameter(world.users).tolist())


def lists_of(log: shown.ListBatch) -> list[reference.LoggedList]:
    """List by list; one that was shown n times occurs n times."""
    actual: list[reference.LoggedList] = []
    for items, clicks, n in zip(log.items.tolist(), log.clicks.tolist(), log.n.tolist(), strict=True):
        size = sum(item >= 0 for item in items)
        one = (int(log.context[items[0]]), tuple(items[:size]), tuple(map(int, clicks[:size])))
        actual += [one] * n
    return actual


def assert_drawn_from(actual: Iterable[float], expected: Iterable[float], what: str = "") -> None:
    """Whether frequencies, each a count of independent draws, are those of these expected numbers.

    Pearson's χ² has as many degrees of freedom as there are counts, less one, and above 10 or so it is normal with
    twice their number as variance. Four standard deviations and a bit: seeds are fixed, so this either always holds or
    never, and where the code is right a seed fails once in ten thousand.
    """
    counts, means = np.array(list(actual), float), np.array(list(expected), float)
    assert not counts[means == 0].any(), what
    counts, means = counts[means > 0], means[means > 0]
    assert means.min() >= 5, f"{what}: too few draws for a test"
    chi = float(np.sum((counts - means) ** 2 / means))
    freedom = len(means) - 1
    assert chi < freedom + 4.5 * np.sqrt(2 * freedom) + 3, (what, chi, freedom)


Numbers = NDArray[np.int64]
