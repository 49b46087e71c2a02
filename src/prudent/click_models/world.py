"""The ground truth of simulated click logs: a `World` is attraction, how users click, and which lists are shown.

`draw` makes lists and clicks from it; the same seed gives the same lists, however many of them are drawn at a time.

>>> world = make_world("pbm", contexts=3, items=(4, 6), length=2, seed=7)
>>> print(world.users.pinned)
pbm(examination=[1, 0.616])
>>> shown = next(draw(world, lists=5, seed=7))
>>> shown.items.shape, shown.clicks.shape
((5, 2), (5, 2))
>>> bool(value(world, shown.items).mean() <= best_value(world))
True
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import UsageError
from prudent.base.spec import whole_number
from prudent.click_models.base import FittedModel, click_models
from prudent.counts.lists import ListBatch

MOST_POSITIONS = 10_000
"""Of a simulated list: click models hold an array by position for every context."""
_CELLS = 1_000_000  # noisy scores held at a time, by default: 8 MB, and still few chunks


@dataclass(frozen=True, eq=False)
class World:
    """Everything that decides a log, with the (context, item) pairs of all contexts in one row of arrays.

    The pairs of context number ``c`` are ``offsets[c]:offsets[c + 1]``; elsewhere in this module an item is the
    number of its pair, so it also says which context it belongs to.
    """

    offsets: IntArray
    attraction: FloatArray  # θ of every pair
    score: FloatArray  # what the production ranker believes of it
    share: FloatArray  # of the lists, per context; sums to 1
    users: FittedModel  # how they click
    exploration: float  # scale of the Gumbel noise on the scores, fresh for every list
    contexts: NDArray[Any]  # their names
    items: NDArray[Any]  # the name of every pair's item
    settings: Mapping[str, object] = field(default_factory=dict)  # how it was made, for the manifest

    @property
    def length(self) -> int:
        """K, the number of positions; a context with fewer items shows them all."""
        return self.users.positions


class Draw(NamedTuple):
    """Lists as they were shown and clicked, one row each."""

    context: IntArray  # number of the context
    items: IntArray  # numbers of the pairs, top down; −1 below the end of a short list
    clicks: NDArray[np.uint8]


def make_world(
    model: str = "pbm",
    *,
    contexts: int = 500,
    items: tuple[int, int] = (20, 50),
    attraction: tuple[float, float] = (1.2, 5.0),
    zipf: float = 1.0,
    length: int = 10,
    quality: float = 1.0,
    exploration: float = 1.0,
    seed: int = 0,
) -> World:
    """Draw a world.

    model
        Any registered click model, with its parameters, such as ``dcm(continuation=[0.5, 0.6])``, or else with
        typical ones.
    contexts, items
        How many, and between which two numbers of items each of them has.
    attraction
        (a, b) of θ ~ Beta(a, b).
    zipf
        The r-th most frequent context has a share proportional to r^−zipf; 0 makes all equally frequent.
    quality
        Production score = quality × logit θ + N(0, 1): 1 is good but not perfect, 0 knows nothing, and a
        negative one prefers what users do not.
    exploration
        A list is the top K by score + exploration × Gumbel(0, 1): 0 shows every context one list for ever, and
        1 picks each next item with a probability proportional to exp(score).
    """
    whole_number("seed", seed, 0)
    _check(contexts >= 1, f"contexts is {contexts}; a log needs at least 1.")
    _check(1 <= items[0] <= items[1], f"items is {items}; write the fewest, then the most, at least 1.")
    _check(
        all(0 < shape < inf for shape in attraction),
        f"attraction is {attraction}; a and b of a beta distribution are above 0.",
    )
    _check(0 <= zipf < inf, f"zipf is {zipf:g}; it must be a number, and not negative.")
    _check(isfinite(quality), f"quality is {quality:g}; it must be a number.")
    _check(length >= 1, f"length is {length}; a list has at least 1 position.")
    _check(
        length <= MOST_POSITIONS, f"length is {length:,}; a simulated list has at most {MOST_POSITIONS:,} positions."
    )
    _check(0 <= exploration < inf, f"exploration is {exploration:g}; it must be a number, and not negative.")
    users = click_models.parse(model).typical(length)
    random = _streams(seed)[0]

    offsets = np.concatenate([[0], np.cumsum(random.integers(items[0], items[1] + 1, contexts))])
    pairs = int(offsets[-1])
    # A small `a` underflows to θ = 0, and its logit to −∞, on which no noise could tell.
    theta = random.beta(*attraction, pairs).clip(1e-12, 1 - 1e-12)
    share = np.arange(1, contexts + 1) ** -float(zipf)
    return World(
        offsets=offsets,
        attraction=theta,
        score=quality * (np.log(theta) - np.log1p(-theta)) + random.standard_normal(pairs),
        share=share / share.sum(),
        users=users,
        exploration=exploration,
        contexts=np.arange(contexts, dtype=np.int32),
        # In random order: were better items to have smaller names, breaking ties by name would be a good ranker.
        items=random.permutation(pairs).astype(np.int32),
        settings={
            "contexts": contexts,
            "items": list(items),
            "attraction": list(attraction),
            "zipf": zipf,
            "length": length,
            "quality": quality,
            "exploration": exploration,
            "seed": seed,
        },
    )


def nameless_world(sizes: IntArray, theta: FloatArray, score: FloatArray, users: FittedModel) -> World:
    """A ground truth without names, with users as they were fitted; contexts are equally frequent."""
    contexts = len(sizes)
    return World(
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        attraction=theta,
        score=score,
        share=np.full(contexts, 1 / contexts),
        users=users.as_truth,
        exploration=1.0,
        contexts=np.arange(contexts),
        items=np.arange(theta.size),
    )


def pairs_of(world: World) -> IntArray:
    """The context of each pair."""
    return np.repeat(np.arange(len(world.contexts)), np.diff(world.offsets))


def clicked(world: World, lists: IntArray, rng: np.random.Generator) -> ListBatch:
    """Lists of pair numbers with simulated clicks."""
    clicks = world.users.sample(_attraction(world, lists), rng)
    return ListBatch(pairs_of(world), lists, clicks, np.ones(len(lists), np.int64))


def draw(world: World, lists: int, seed: int = 0, chunk: int | None = None) -> Iterator[Draw]:
    """Yield lists and clicks, at most `chunk` at a time; how many at a time does not change what is drawn.

    Three independent streams of random numbers, for contexts, lists and clicks, are each used up in the order of
    the lists: the first thousand of a million lists are the thousand that one gets by asking for a thousand.
    """
    _check(lists >= 1, f"lists is {lists}; a log needs at least 1.")
    _check(chunk is None or chunk >= 1, f"chunk is {chunk}; at least 1 list is drawn at a time.")
    _, contexts, explorer, users = _streams(seed)
    sizes = np.diff(world.offsets)
    loss = _losses(world, world.score)
    width = loss.shape[1]
    upto = np.cumsum(world.share)
    chunk = chunk or max(1, _CELLS // width)
    for start in range(0, lists, chunk):
        n = min(chunk, lists - start)
        # Rounding leaves the last sum a hair off 1; a number above it belongs to the last context.
        context = np.minimum(np.searchsorted(upto, contexts.random(n), side="right"), len(upto) - 1)
        noise = explorer.gumbel(0, world.exploration, (n, width))
        best = np.argsort(loss[context] - noise, axis=1)[:, : world.length]
        shown = np.arange(world.length) < sizes[context, None]
        items = np.where(shown, best + world.offsets[context, None], -1)
        yield Draw(context, items, world.users.sample(_attraction(world, items), users).view(np.uint8))


def value(world: World, items: IntArray) -> FloatArray:
    """True value of lists of pair numbers (−1 for none), by the reward of the users' click model."""
    return world.users.value(_attraction(world, items))


def best_lists(world: World) -> IntArray:
    """The list of the highest value for every context, as pair numbers.

    Not by `prudent.policies.best_lists`, whose lists are graded against these.
    """
    sizes = np.minimum(np.diff(world.offsets), world.length)
    best = np.argsort(_losses(world, world.attraction), axis=1, kind="stable")
    lists = np.full((len(sizes), world.length), -1)
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)
        items = best[rows, :size] + world.offsets[rows, None]
        places = world.users.place(world.attraction[items])
        lists[rows[:, None], places] = items
    return lists


def best_value(world: World) -> float:
    """Value of the best lists, averaged over contexts by their share: what no policy exceeds."""
    return float(world.share @ value(world, best_lists(world)))


def production_value(world: World, lists: int = 100_000, seed: int = 0) -> float:
    """Mean value of the lists that `draw` shows for this seed: the mark that a new policy has to pass."""
    return sum(float(value(world, drawn.items).sum()) for drawn in draw(world, lists, seed)) / lists


def _losses(world: World, gain: FloatArray) -> FloatArray:
    """Spread a gain per pair over one row per context, for sorting upwards: negated, and ∞ past the last item."""
    sizes = np.diff(world.offsets)
    width = max(int(sizes.max()), world.length)
    losses = np.full((len(sizes), width), np.inf)
    losses[np.arange(width) < sizes[:, None]] = -gain
    return losses


def _attraction(world: World, items: IntArray) -> FloatArray:
    """θ of pair numbers, and 0 for −1, which as an index means the last place: a 0 is put there."""
    return np.append(world.attraction, 0.0)[items]


def _streams(seed: int) -> list[np.random.Generator]:
    """Independent random numbers for the world, contexts, lists and clicks of one seed."""
    _check(seed >= 0, f"seed is {seed}; it must not be negative.")
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(4)]


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise UsageError(message)
