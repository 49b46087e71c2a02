"""Small worlds with a policy and its exploration, in the numbers of the world."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import prudent
from prudent.click_models.world import World, clicked, draw, make_world, value


def log_of(world: World, context: Any, items: Any, clicks: Any, **more: Any) -> pa.Table:
    """Lists of pair numbers as a log, by the names of the world."""
    shown = [row[row >= 0] for row in items]
    columns = {
        "context": world.contexts[context],
        "items": pa.array([world.items[row] for row in shown]),
        "clicks": pa.array([row[: len(one)].astype(np.int8) for row, one in zip(clicks, shown, strict=True)]),
    }
    return pa.table({**columns, **more})


def production(world: World, lists: int, seed: int) -> pa.Table:
    return log_of(world, *next(draw(world, lists, seed, lists)))


def small_world(seed: int = 1, model: str = "pbm", **settings: Any) -> World:
    known = {"contexts": 6, "items": (5, 8), "length": 3, "zipf": 0.5, "exploration": 0.5}
    return make_world(model, seed=seed, **{**known, **settings})


class Served(NamedTuple):
    """Variants as arrays: a row for each, in the order of contexts."""

    context: Any
    items: Any  # pair numbers of the world
    probability: Any

    @classmethod
    def of(cls, exploration: prudent.Exploration, world: World) -> "Served":
        number = {int(name): at for at, name in enumerate(world.items)}
        lists: dict[tuple[int, int], tuple[float, list[int]]] = {}
        for context, variant, probability, _, _, item in exploration.rows():
            lists.setdefault((context, variant), (probability, []))[1].append(number[item])
        items = np.full((len(lists), world.length), -1)
        for row, (_, chosen) in enumerate(lists.values()):
            items[row, : len(chosen)] = chosen
        contexts = np.array([context for context, _ in lists])
        return cls(contexts, items, np.array([probability for probability, _ in lists.values()]))

    def week(self, world: World, lists: int, random: np.random.Generator) -> pa.Table:
        """A log of these lists, as a server would write it."""
        context = random.choice(len(world.contexts), lists, p=world.share)
        row = np.zeros(lists, np.int64)
        for one in range(len(world.contexts)):
            mine, own = np.flatnonzero(self.context == one), np.flatnonzero(context == one)
            probability = self.probability[mine]
            row[own] = random.choice(mine, len(own), p=probability / probability.sum())
        clicks = clicked(world, self.items[row], random).clicks
        return log_of(world, context, self.items[row], clicks, propensity=pa.array(self.probability[row]))

    def value(self, world: World) -> float:
        """True value per list."""
        return float(np.sum(world.share[self.context] * self.probability * value(world, self.items)))
