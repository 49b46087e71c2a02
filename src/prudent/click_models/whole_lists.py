"""Where users stopped in whole lists, for fitting what contexts share; see `prudent.click_models.reading`."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray
from prudent.base.errors import NotIdentifiedError
from prudent.base.numerics.beta_binomial import fit_beta
from prudent.base.numerics.squarem import fixed_point
from prudent.click_models.base import MOST_PLACES, warn_unsettled
from prudent.click_models.likelihood import in_order
from prudent.click_models.reading import Onward, last_click, silence, started
from prudent.counts.lists import ListBatch

MOST_PER_CONTEXT = 100
"""Lists of one context to fit to, where many contexts have more than enough."""
_SEED = 20_240_917  # of the contexts to fit to; any fixed number does
FEWEST = 50
"""Lists with several clicks that a fit needs: what a click leads to is seen where another follows it."""
TOLERANCES = 1e-2, 1e-3, 1e-5
"""Of the rounds before priors are fitted anew, and of the last ones."""
_ROUNDS = 400
_TINY = 1e-300


class Stops(NamedTuple):
    """Where users stopped, given all clicks of their lists."""

    read: FloatArray  # P(examined) of each place below the last click, or of a list without one; 0 elsewhere
    below: FloatArray  # Tₗ₊₁ of each list
    silent: FloatArray  # P(no more clicks | the last one), or P(no click)


class WholeLists:
    """Lists as they are fitted to: the pairs in them, and what is certain about each."""

    def __init__(self, lists: ListBatch) -> None:
        lists = _some(lists)
        items, self.clicks, self.n = lists.items, lists.clicks, lists.n.astype(np.float64)
        inside = items >= 0
        known, number = np.unique(items[inside], return_inverse=True)
        self.pairs = len(known)
        self.item = np.full(items.shape, self.pairs)
        self.item[inside] = number
        self.inside, self.last = inside, last_click(self.clicks)
        place = np.arange(items.shape[1])
        self.tail: BoolArray = inside & (place > self.last[:, None])
        self.above: BoolArray = place < self.last[:, None]
        # Whether another item stands below: only there it shows whether a user went on.
        self.more: BoolArray = np.concatenate([inside[:, 1:], np.zeros((len(items), 1), bool)], axis=1)
        self.ends = self.last >= 0
        self.followed = self.clicks & self.above
        rows = np.flatnonzero(self.ends)
        self.end_rows, self.end_items = rows, self.item[rows, self.last[rows]]
        self.end_n, self.end_more = self.n[rows], self.more[rows, self.last[rows]]
        self.clicks_of = self.per_pair(self.clicks)
        self.followed_of = self.per_pair(self.followed)
        self.surely_of = self.per_pair(self.clicks | self.above)
        self.tail_at = np.flatnonzero(self.tail)
        self.tail_item = self.item.ravel()[self.tail_at]
        self.tail_n = self.n[self.tail_at // items.shape[1]]
        # An examination below the last click says that the user went on from the place above, and could from its own.
        first = place == self.last[:, None] + 1
        self.after_skip = self.n[:, None] * (self.tail & ~first)
        self.after_click = self.n[:, None] * (self.tail & first & self.ends[:, None])
        self.could = self.n[:, None] * (self.tail & self.more)
        self.skips_above = self.total(self.above & ~self.clicks)
        self.clicks_above = self.total(self.followed)

    def check(self, name: str) -> None:
        """Raise where too few lists have several clicks."""
        several = float(self.n[self.followed.any(axis=1)].sum()) if len(self.n) else 0.0
        if several < FEWEST:
            raise NotIdentifiedError(
                f"{name} is not identified: {several:,.0f} of the lists have several clicks, and it takes {FEWEST} to "
                "see how often users go on after one. Set its parameters, or use another click model."
            )

    def per_pair(self, where: BoolArray, values: FloatArray | None = None) -> FloatArray:
        """Sums over the places of every pair."""
        weight = np.broadcast_to(self.n[:, None], where.shape)[where]
        weight = weight if values is None else weight * values[where]
        return np.bincount(self.item[where], weight, minlength=self.pairs).astype(np.float64, copy=False)

    def total(self, where: BoolArray) -> float:
        """How many places."""
        return float((where.sum(axis=1) * self.n).sum())

    def read_of(self, stops: Stops) -> FloatArray:
        """Examinations of every pair below last clicks."""
        read = self.tail_n * stops.read.ravel()[self.tail_at]
        return np.bincount(self.tail_item, read, minlength=self.pairs).astype(np.float64, copy=False)

    def places(self, per_pair: FloatArray) -> FloatArray:
        """A number per pair as one per place; 0 below the end of a list."""
        return np.asarray(np.append(per_pair, 0.0)[self.item])

    def stops(self, attraction: FloatArray, onward: Onward) -> Stops:
        """Where users stopped, at this attraction of every place."""
        quiet = silence(attraction, onward.unclicked)
        rows = np.arange(len(self.n))
        below = quiet[rows, self.last + 1]
        start = started(onward, self.last, attraction.shape)
        silent = np.maximum(1 - start * (1 - below), _TINY)
        stays = np.where(self.tail, (1 - attraction) * onward.unclicked, 1.0)
        reached = np.cumprod(stays, axis=1)
        reached = np.concatenate([np.ones((len(rows), 1)), reached[:, :-1]], axis=1)
        read = np.where(self.tail, (start / silent)[:, None] * reached * quiet[:, :-1], 0.0)
        return Stops(read, below, silent)

    def after_skips(self, stops: Stops) -> tuple[float, float]:
        """Times that users went on without a click, and times that they could have."""
        on, could = (float(np.sum(weight * stops.read)) for weight in (self.after_skip, self.could))
        return self.skips_above + on, self.skips_above + could

    def after_clicks(self, stops: Stops) -> float:
        """Times that users went on after a click."""
        return self.clicks_above + float(np.sum(self.after_click * stops.read))

    def log_likelihood(self, attraction: FloatArray, onward: Onward) -> FloatArray:
        """Log P(clicks) of every list."""
        stops = self.stops(attraction, onward)
        gamma, after = (np.broadcast_to(one, attraction.shape) for one in onward)
        with np.errstate(divide="ignore"):
            above = np.where(self.clicks, np.log(attraction * after), np.log((1 - attraction) * gamma))
            at_last = np.where(self.ends, np.log(attraction[np.arange(len(self.n)), np.maximum(self.last, 0)]), 0.0)
        return np.asarray(np.where(self.above, above, 0.0).sum(axis=1) + at_last + np.log(stops.silent))


def _some(lists: ListBatch) -> ListBatch:
    """Lists of contexts in random order, as many as are enough; in an order that depends on themselves alone.

    Of a frequent context some are enough: how satisfaction differs shows in many pairs, and not in much of a few.
    """
    lists = in_order(lists)
    if len(lists.n) * lists.length <= MOST_PLACES:
        return lists
    random = np.random.default_rng(_SEED)
    context = lists.list_context
    logged = np.bincount(context, lists.n)
    even = MOST_PLACES / lists.length / max(1, int(np.count_nonzero(logged)))
    most = max(float(MOST_PER_CONTEXT), even)
    n = random.binomial(lists.n, np.minimum(1.0, most / np.maximum(logged, 1.0))[context])
    sizes = np.bincount(context[n > 0], minlength=len(logged)) * lists.length
    order = random.permutation(len(sizes))
    chosen = np.zeros(len(sizes), bool)
    chosen[order[np.cumsum(sizes[order]) <= MOST_PLACES]] = True
    kept = chosen[context] & (n > 0)
    return ListBatch(lists.context, lists.items[kept], lists.clicks[kept], n[kept])


def solve(step: Callable[[FloatArray], FloatArray], start: FloatArray, tolerance: float) -> FloatArray:
    """The fixed point of EM."""
    found, rest = fixed_point(step, start, tolerance, np.zeros(1, np.int64), _ROUNDS)
    if not rest.all():
        warn_unsettled()
    return found


def share(on: float, could: float) -> float:
    """How often users went on of the times that they could; rounding may leave the sums the other way round."""
    return min(1.0, float(on) / max(1e-12, float(could)))


Prior = tuple[float, float]


def prior_of(positive: FloatArray, negative: FloatArray) -> Prior:
    """Beta(α, β) that counts of pairs are drawn from, neither so weak that an estimate may reach 0 or 1."""
    alpha, beta = fit_beta(positive, negative)
    return max(float(alpha), 0.05), max(float(beta), 0.05)


class Nuisance(NamedTuple):
    """A parameter of every pair: the derivative of log P(clicks) by it at every place, and its variance over pairs."""

    scores: FloatArray
    variance: float


def standard_errors(lists: WholeLists, scores: list[FloatArray], nuisances: list[Nuisance]) -> FloatArray:
    """Of shared parameters, by the derivatives of log P(clicks) of every list, where those of pairs are fitted too."""
    n = lists.n
    information = np.array([[np.sum(n * one * two) for two in scores] for one in scores])
    information += 12 * np.eye(len(scores))  # what is known of any probability: the variance of a uniform one is 1/12
    for nuisance in nuisances:
        own = lists.per_pair(lists.inside, nuisance.scores**2) + 1 / nuisance.variance
        both = [lists.per_pair(lists.inside, nuisance.scores * one[:, None]) for one in scores]
        information -= np.array([[np.sum(one * two / own) for two in both] for one in both])
    value, vector = np.linalg.eigh(information)
    return np.asarray(np.sqrt((vector**2 / np.maximum(value, 12.0)).sum(axis=1)))


def beta_variance(alpha: float, beta: float) -> float:
    """Of Beta(α, β)."""
    return alpha * beta / (alpha + beta) ** 2 / (alpha + beta + 1)
