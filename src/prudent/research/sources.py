"""Where the logs of an experiment come from: a truth, lists that a production ranker showed, clicks that users made.

A source draws any number of simulated logs with their ground truth: `World` has the attraction of every item,
`ListBatch` the lists and clicks that a learner sees. Pairs have random numbers, so that breaking ties by number, as
ranking does in the end, is breaking them at random.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import LogError
from prudent.click_models import Cascade, ClickModel, DependentClick, PositionBased, click_models
from prudent.click_models.base import FittedModel
from prudent.click_models.world import World, clicked, nameless_world, pairs_of
from prudent.counts.lists import ListBatch

LENGTH = 4
"""Positions that the paper keeps of every list."""

ATTRACTION = np.array([0.05, 0.1, 0.2, 0.4, 0.8])
"""θ of a document by its label, 0 to 4: the navigational user of Sec. 8.4."""

EYE_TRACKING = (0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06)
"""Examination by position, of Sec. 8.4."""

_AT_ONCE = 100_000  # noisy scores held at a time: they stay in the processor's cache


class Source(Protocol):
    """Draws simulated logs with a known ground truth."""

    kind: str  # of click model: cm, dcm or pbm
    real: ClassVar[str]  # which part of its logs is real, for captions

    def draw(self, n: int, random: np.random.Generator) -> tuple[World, ListBatch]:
        """A truth, and a log of n lists for each of its contexts."""
        ...


@dataclass(frozen=True)
class YandexLike(Source):
    """Ten queries like the frequent ones of Yandex: θ ~ Beta(1, 8), λ ~ Beta(1, 64), the prior that App. C reports.

    Lists are drawn item by item with weights exp(γ log θ + noise · N(0, 1)): γ = 2 is a production ranker that is good
    and not perfect, 0 prefers some items but none for its attraction, and below 0 what users like is shown least.
    Without noise, γ = 0 draws uniformly.
    """

    kind: str
    quality: float = 2.0  # γ
    contexts: int = 10
    items: tuple[int, int] = (10, 100)
    noise: float = 1.4
    pool: int | None = None  # distinct draws of which production resamples its lists; None: a fresh draw for each

    real: ClassVar[str] = "Synthetic data: all simulated."

    def draw(self, n: int, random: np.random.Generator) -> tuple[World, ListBatch]:
        """Draw truth, lists and clicks afresh."""
        sizes = random.integers(self.items[0], self.items[1] + 1, self.contexts)
        theta = random.beta(1, 8, sizes.sum()).clip(1e-12, 1 - 1e-12)
        score = self.quality * np.log(theta) + self.noise * random.standard_normal(theta.size)
        position = {
            "cm": np.zeros(LENGTH),
            "dcm": random.beta(1, 64, LENGTH),
            "pbm": np.array([1, 0.5, 0.33, 0.25]),
        }[self.kind]
        world = nameless_world(sizes, theta, score, users(self.kind, position))
        if self.pool is None:
            return world, clicked(world, draw_lists(world, n, random), random)
        pool = draw_lists(world, self.pool, random)
        frequency = np.ones(len(pool), np.int64)
        return world, resampled(
            world, ListBatch(pairs_of(world), pool, np.zeros(pool.shape, bool), frequency), n, random
        )


def uniform(source: YandexLike) -> YandexLike:
    """The same queries, with lists drawn uniformly."""
    return replace(source, quality=0.0, noise=0.0)


@dataclass(frozen=True, eq=False)
class LabelledQueries(Source):
    """Queries whose documents were labelled by people, 0 to 4; clicks are made of the labels (Sec. 8.4).

    The weights of a Dirichlet(θ) draw decide what is shown: one draw for each query (``per="query"``), or a fresh one
    for each list, which makes the number of impressions a copy of θ, so that popularity alone wins.
    """

    kind: str
    label: IntArray  # of each document, query by query
    sizes: IntArray  # documents of each query
    queries: int = 5_000  # to sample in each repetition; all, where there are fewer
    per: Literal["query", "list"] = "query"

    real: ClassVar[str] = "Labels are real; lists and clicks are simulated."

    def draw(self, n: int, random: np.random.Generator) -> tuple[World, ListBatch]:
        """Choose queries, then draw lists and clicks."""
        chosen = np.arange(len(self.sizes))
        if len(chosen) > self.queries:
            chosen = np.sort(random.choice(chosen, self.queries, replace=False))
        start = (np.cumsum(self.sizes) - self.sizes)[chosen]
        sizes = self.sizes[chosen]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        label = self.label[np.repeat(start, sizes) + within]
        # Files may sort documents by label; a random number for each breaks that order within the query.
        query = np.repeat(np.arange(len(sizes)), sizes)
        label = label[np.lexsort([random.random(label.size), query])]
        return draw_from_labels(self.kind, label, sizes, n, self.per, random)


@dataclass(frozen=True)
class LabelsLike(Source):
    """Queries with random labels whose mix is that of a real set; the mix of a query ~ Dirichlet(20 × all of them)."""

    kind: str
    documents: int  # of a query, on average; between half and one and a half times as many
    mix: tuple[float, ...]  # share of each label
    queries: int = 5_000
    per: Literal["query", "list"] = "query"

    real: ClassVar[str] = "Synthetic data: all simulated."

    def draw(self, n: int, random: np.random.Generator) -> tuple[World, ListBatch]:
        """Draw labels, lists and clicks afresh."""
        half = self.documents // 2
        sizes = random.integers(self.documents - half, self.documents + half + 1, self.queries)
        mix = random.dirichlet(20 * np.array(self.mix), self.queries)
        upto = np.repeat(np.cumsum(mix, axis=1)[:, :-1], sizes, axis=0)
        label = np.sum(random.random((len(upto), 1)) > upto, axis=1)
        return draw_from_labels(self.kind, label, sizes, n, self.per, random)


@dataclass(frozen=True, eq=False)
class FittedTruth(Source):
    """A real log whose clicks are made anew by a click model that was fitted to it, so that the best lists are known.

    ``logging="production"`` resamples the lists of the log; ``"uniform"`` shows each item of a context as often as any
    other. Sec. 8.1 names both.
    """

    world: World
    lists: ListBatch
    logging: Literal["production", "uniform"] = "production"

    real: ClassVar[str] = (
        "Queries and production lists are real; clicks are drawn from a model fitted to the real ones."
    )

    @property
    def kind(self) -> str:  # type: ignore[override]
        """Of the fitted click model."""
        return str(self.world.users.model).partition("(")[0]

    def draw(self, n: int, random: np.random.Generator) -> tuple[World, ListBatch]:
        """Draw lists and clicks; the truth stays, under new numbers."""
        world, lists = renumbered(self.world, self.lists, random)
        if self.logging == "production":
            return world, resampled(world, lists, n, random)
        return world, clicked(world, draw_lists(world, n, random), random)


@dataclass(frozen=True, eq=False)
class HeldOutClicks(Source):
    """Lists with the clicks they really got, graded by a click model that was fitted to other days (App. C)."""

    world: World
    lists: ListBatch

    real: ClassVar[str] = "The learner sees clicks as they were logged; errors are by the fitted model."

    @property
    def kind(self) -> str:  # type: ignore[override]
        """Of the fitted click model."""
        return str(self.world.users.model).partition("(")[0]

    def draw(self, n: int, random: np.random.Generator) -> tuple[World, ListBatch]:
        """Draw n lists of each context, with their clicks, as often as they are drawn."""
        world, lists = renumbered(self.world, self.lists, random)
        rows, times = draw_rows(lists, n, random)
        return world, ListBatch(lists.context, lists.items[rows], lists.clicks[rows], times)


# --- the parts that sources are made of ------------------------------------------------------------------------------


def users(kind: str, position: FloatArray) -> FittedModel:
    """Users of a click model with this parameter at every position."""
    values = tuple(position.tolist())
    models = {"cm": Cascade(), "dcm": DependentClick(continuation=values), "pbm": PositionBased(examination=values)}
    return models[kind].typical(len(values))


def draw_lists(world: World, n: int, random: np.random.Generator, shape: FloatArray | None = None) -> IntArray:
    """N lists for each context, in the order of contexts: item by item without repeats, with weights exp(score).

    The largest of score + Gumbel noise are such a draw. With a `shape` per pair, each list first draws weights of its
    own: Dirichlet(shape).
    """
    sizes = np.diff(world.offsets)
    most = max(int(sizes.max()), world.length)
    inside = np.arange(most) < sizes[:, None]
    score, shapes = np.full(inside.shape, -np.inf, np.float32), np.ones(inside.shape)
    score[inside] = world.score
    if shape is not None:
        shapes[inside] = shape
    lists = np.full((len(sizes), n, world.length), -1)
    step = max(1, _AT_ONCE // (n * most))
    for start in range(0, len(sizes), step):
        chunk = slice(start, start + step)
        width = max(int(sizes[chunk].max()), world.length)
        noise = random.standard_exponential((len(sizes[chunk]), n, width), dtype=np.float32)
        # An exponential that rounds to 0 has no log; its item is left as it is.
        loss = np.log(noise, out=noise, where=noise > 0)
        loss -= score[chunk, None, :width]
        if shape is not None:
            loss -= _log_gamma(np.broadcast_to(shapes[chunk, None, :width], loss.shape), random)
        few = np.argpartition(loss, world.length - 1, axis=2)[:, :, : world.length]
        order = np.argsort(np.take_along_axis(loss, few, axis=2), axis=2)
        best = np.take_along_axis(few, order, axis=2)
        lists[chunk] = np.where(best < sizes[chunk, None, None], best + world.offsets[:-1][chunk, None, None], -1)
    return lists.reshape(-1, world.length)


def resampled(world: World, lists: ListBatch, n: int, random: np.random.Generator) -> ListBatch:
    """N lists for each context, drawn from those that were shown, with new clicks.

    Few distinct lists have few possible clicks: how often each pair of them occurs is a multinomial draw, whose
    cost does not grow with n.
    """
    rows, times = draw_rows(lists, n, random)
    items = lists.items[rows]
    if times.sum() < 4 * len(times) * 2**world.length:
        return clicked(world, np.repeat(items, times, axis=0), random)
    patterns = (np.arange(2**world.length)[:, None] >> np.arange(world.length)) & 1 > 0
    chance = pattern_chances(world, items, patterns)
    n_of = random.multinomial(times, chance)
    row, pattern = np.nonzero(n_of)
    return ListBatch(pairs_of(world), items[row], patterns[pattern], n_of[row, pattern])


def pattern_chances(world: World, items: IntArray, patterns: np.ndarray) -> FloatArray:
    """The probability of each pattern of clicks on each list."""
    theta = np.repeat(np.append(world.attraction, 0.0)[items][:, None, :], len(patterns), axis=1)
    predicted = world.users.predict(theta, np.broadcast_to(patterns, theta.shape))
    chance = np.where(patterns, predicted, 1 - predicted).prod(axis=2)
    return np.asarray(chance / chance.sum(axis=1, keepdims=True))


def draw_rows(lists: ListBatch, n: int, random: np.random.Generator) -> tuple[IntArray, IntArray]:
    """N lists of each context, drawn as often as they were shown: which rows, and how often each."""
    order = np.argsort(lists.list_context, kind="stable")
    context = lists.list_context[order]
    if len(np.unique(context)) <= lists.context[-1]:
        raise LogError("A context has no list to draw from.")
    per_context = np.split(lists.n[order], np.flatnonzero(np.diff(context)) + 1)
    times = np.concatenate([random.multinomial(n, shown / shown.sum()) for shown in per_context])
    return order[times > 0], times[times > 0]


def renumbered(world: World, lists: ListBatch, random: np.random.Generator) -> tuple[World, ListBatch]:
    """The same with new numbers for the pairs of each context, in random order."""
    order = np.lexsort([random.random(world.attraction.size), pairs_of(world)])
    number = np.append(np.argsort(order), -1)  # −1 stays −1
    sizes, theta, score = np.diff(world.offsets), world.attraction[order], world.score[order]
    new = nameless_world(sizes, theta, score, world.users)
    return new, ListBatch(lists.context, number[lists.items], lists.clicks, lists.n)


def draw_from_labels(
    kind: str, label: IntArray, sizes: IntArray, n: int, per: str, random: np.random.Generator
) -> tuple[World, ListBatch]:
    """Attraction by label, weights ~ Dirichlet(θ), lists, clicks."""
    k = np.arange(1, LENGTH + 1)
    position = {
        "cm": np.zeros(LENGTH),
        # As printed this is −.21 at the first position: a probability ends at 0.
        "dcm": np.clip(1 - np.exp(-k + 0.5) / 0.5, 0, 1),
        "pbm": np.array(EYE_TRACKING[:LENGTH]),
    }[kind]
    theta = ATTRACTION[label]
    score = _log_gamma(theta, random) if per == "query" else np.zeros(theta.size)
    world = nameless_world(sizes, theta, score, users(kind, position))
    return world, clicked(world, draw_lists(world, n, random, theta if per == "list" else None), random)


def _log_gamma(shape: FloatArray, random: np.random.Generator) -> FloatArray:
    """Logs of Gamma(shape) draws, which normalised are Dirichlet's: a small shape underflows, its log does not."""
    return np.asarray(np.log(random.standard_gamma(shape + 1)) - random.standard_exponential(shape.shape) / shape)


def fit_truth(lists: ListBatch, model: str | ClickModel) -> World:
    """The click model that makes the clicks of a log most likely, as the truth of an experiment."""
    model = click_models.parse(model) if isinstance(model, str) else model
    evidence = model.evidence(lists)
    examined = evidence.examined
    theta = np.divide(evidence.positive, examined, out=np.zeros(examined.size), where=examined > 0).clip(0, 1)
    sizes = np.bincount(lists.context)
    return nameless_world(sizes, theta, np.zeros(theta.size), evidence.fitted)


def keep_frequent(lists: ListBatch, least: int) -> ListBatch:
    """Items shown often enough for their click rates not to be mostly noise, and the lists made of them alone.

    Fitted to an item that was shown once and clicked once, any model has θ = 1, and the best list is made of such.
    """
    while not (often := lists.impressions >= least).all():  # a list that goes takes impressions from those that stay
        lists = lists.made_of(often)
    if not len(lists.items):
        raise LogError(f"No list is made only of items with {least} impressions or more.")
    return lists


def keep_common(train: ListBatch, test: ListBatch, least: int) -> tuple[ListBatch, ListBatch]:
    """The same for two parts of a log: items shown often in both, in contexts that have such lists in both."""
    while not (often := (train.impressions >= least) & (test.impressions >= least)).all():
        train, test = train.made_of(often), test.made_of(often)
    if not len(train.items):
        raise LogError(f"No item has {least} impressions or more in both parts of the log.")
    return train, test
