"""The dependent-click model."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
from scipy.special import ndtri

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import UsageError, did_you_mean
from prudent.base.numerics.squarem import fixed_point
from prudent.click_models.base import ClickModel, Evidence, FittedModel, click_models, make_evidence, warn_unsettled
from prudent.click_models.cascade import click_from_top, read_from_top
from prudent.click_models.continuation import count_rates, find_doubt, fit_continuation
from prudent.click_models.positions import (
    by_position,
    check_length,
    check_positions,
    heaviest_first,
    read_probabilities,
    top_down,
)
from prudent.click_models.rewards import Reward
from prudent.counts.cells import Cells
from prudent.counts.lists import ListBatch

_TINY = 1e-300


@click_models.register("dcm")
@dataclass(frozen=True)
class DependentClick(ClickModel):
    """The user reads from the top and, after a click at k, goes on with probability λₖ (Sec. 5.2).

    Everything down to the last click was examined, and everything when there is no click. Below the last click
    the user may have gone on and clicked nothing: ``tail=em`` counts those impressions with the probability of
    that; ``tail=truncate`` leaves them out as the paper does, and so overestimates θ, because it drops
    unclicked impressions only. The value of a list is the probability of a click after which the user leaves,
    ``V = 1 − ∏ (1 − (1 − λₖ) θ)``, Eq. (4).

    ``continuation`` sets λ; otherwise it is fitted. Impressions without a click above were examined for certain, and
    right below a click at k an item is clicked λₖ times as often: with ``tail=em``, λ is the ratio of the two rates,
    item by item, which stays unbiased however rarely items were shown; with ``tail=truncate``, the share of clicks that
    are not the last. A ratio significantly above 1 contradicts the model, and `FittedModel.doubt` says so. No log of K
    positions identifies λ at position K, where nobody can be seen to go on: it takes the value of position K − 1, and
    lists are ordered from the top down by lower bound rather than by fitted λ.
    """

    tail: Literal["em", "truncate"] = "em"
    continuation: tuple[float, ...] = ()

    unit: ClassVar[str] = "probability of a satisfied click"
    reward: ClassVar[Reward] = "satisfied"
    precedence: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.tail not in ("em", "truncate"):
            raise UsageError(
                f"dcm has no tail={self.tail}.{did_you_mean(str(self.tail), ('em', 'truncate'))} Known: em, truncate."
            )
        object.__setattr__(self, "continuation", read_probabilities("continuation", self.continuation))

    def fit(self, cells: Cells, positions: int, lists: ListBatch | None = None) -> "FittedDependentClick":
        """λ of every position, as set or from the clicks that were followed by others."""
        check_positions("continuation", self.continuation, positions)
        if self.continuation:
            return FittedDependentClick(self, positions, np.array(self.continuation[:positions]))
        if self.tail == "truncate":
            return FittedDependentClick(self, positions, _last_click_rates(cells, positions), learned=True)
        rates = count_rates(cells.heaviest(), positions)
        continuation, error = fit_continuation(rates)
        continuation = _borrow_last(np.append(continuation, 0.5))
        return FittedDependentClick(self, positions, continuation, error=error, learned=True, doubt=find_doubt(rates))

    def typical(self, positions: int) -> "FittedDependentClick":
        """λ rises evenly from .65 to .90, unless it is set."""
        check_length(self, self.continuation, positions)
        # Rounded, so that the model stays readable where it is spelled out.
        continuation = np.array(self.continuation[:positions] or np.linspace(0.65, 0.9, positions).round(3))
        return FittedDependentClick(self, positions, continuation)


@dataclass(frozen=True, eq=False)
class FittedDependentClick(FittedModel):
    """λ of every position."""

    continuation: FloatArray
    error: FloatArray | None = field(default=None, kw_only=True)  # standard errors of λ, but for the last

    settings: ClassVar[tuple[str, ...]] = ("continuation",)

    @property
    def as_truth(self) -> "FittedDependentClick":
        """With λ that is as good as set, so that the best lists are placed by it."""
        return replace(self, learned=False)

    def evidence(self, cells: Cells) -> Evidence:
        """Clicks against examinations without a click."""
        clicks, surely = _surely_examined(cells)
        examined = surely if self._truncated else _examined(cells, self.continuation)
        # A user who may have read on made every impression below a click a try.
        tries = {} if self._truncated else {"tries": cells.per_pair()}
        return make_evidence(self, cells, clicks, examined - clicks, **tries)

    def predict(self, attraction: FloatArray, clicks: BoolArray | None = None) -> FloatArray:
        """P(still reading at k) θ."""
        return read_from_top(attraction, self._onward(attraction), clicks)

    def examined(self, attraction: FloatArray, clicks: BoolArray) -> FloatArray:
        """1 down to the last click, or anywhere in a list without one; below it, P(the user went on | no click)."""
        above: IntArray = np.cumsum(clicks, axis=-1) - clicks
        total = clicks.sum(axis=-1, keepdims=True)
        surely = (total == 0) | clicks | (above < total)
        if self._truncated:
            return np.asarray(surely, np.float64)
        last = clicks.shape[-1] - 1 - np.argmax(clicks[..., ::-1], axis=-1)
        onward = self._onward(attraction)[last][..., None]
        unclicked = onward * np.prod(np.where(surely, 1.0, 1 - attraction), axis=-1, keepdims=True)
        read = np.divide(unclicked, 1 - onward + unclicked, out=np.ones_like(unclicked), where=onward < 1)
        return np.where(surely, 1.0, read)

    def sample(self, attraction: FloatArray, rng: np.random.Generator) -> BoolArray:
        """Clicks from the top down, until one after which the user leaves."""
        return click_from_top(attraction, self._onward(attraction), rng)

    def value(self, attraction: FloatArray, reward: Reward | None = None) -> FloatArray:
        """1 − ∏ (1 − (1 − λₖ) θ), Eq. (4), unless another reward is asked for."""
        if (reward or self.model.reward) != "satisfied":
            return super().value(attraction, reward)
        return np.asarray(1 - np.prod(1 - (1 - self._onward(attraction)) * attraction, axis=-1))

    def cautious(self, level: float) -> "FittedDependentClick":
        """Fitted λ at its upper limit, and 1 at the last position, which no log identifies."""
        if not self.learned:
            return self
        error = np.zeros(self.positions - 1) if self.error is None else self.error
        return replace(
            self, continuation=np.append(np.minimum(1.0, self.continuation[:-1] - ndtri(level) * error), 1.0)
        )

    def place(self, scores: FloatArray) -> IntArray:
        """From the top down where λ was fitted; where it was set, the best item has the smallest λ."""
        if self.learned:
            return top_down(scores)
        return heaviest_first(1 - self._onward(scores), len(scores))

    @property
    def _truncated(self) -> bool:
        return getattr(self.model, "tail", "em") == "truncate"

    def _onward(self, attraction: FloatArray) -> FloatArray:
        return by_position(self.continuation, attraction.shape[-1], beyond=1.0)  # no click there satisfies


def _surely_examined(cells: Cells) -> tuple[FloatArray, FloatArray]:
    """Clicks of every pair, and its impressions down to the last click, or anywhere in a list without one."""
    return cells.per_pair(cells.click), cells.per_pair(cells.click | cells.more | (cells.prev == 0))


def _last_click_rates(cells: Cells, positions: int) -> FloatArray:
    """λ̂ₖ = clicks at k with another below / clicks at k; where there is no click at k, 1/2."""
    # App. A defines λ by "the click is the last", which is 1 − P(continue): the complement is meant.
    size = positions + 1
    clicked = np.bincount(cells.position[cells.click], cells.n[cells.click], minlength=size)[1:]
    went_on = cells.click & cells.more
    onward = np.bincount(cells.position[went_on], cells.n[went_on], minlength=size)[1:]
    return _borrow_last(np.divide(onward, clicked, out=np.full(size - 1, 0.5), where=clicked > 0))


def _borrow_last(continuation: FloatArray) -> FloatArray:
    """At the last position nobody can be seen to go on; take the value of the one above, 1/2 where there is none."""
    continuation[-1:] = continuation[-2] if len(continuation) > 1 else 0.5
    return continuation


class _Tails:
    """The impressions below a last click, which count with the probability that they were read.

    After a last click at l the user stopped, with probability 1 − λₗ, or read on and clicked nothing, with
    λₗ ∏_{j>l} (1 − θⱼ). So ``w = λₗ P / (1 − λₗ + λₗ P)`` is the weight of an impression in that tail, with
    ``P = ∏ (1 − θⱼ)``. The product runs over whole lists, which counts do not keep: the item's own factor is
    exact, and each other position j contributes the mean of (1 − θ) over all tails of its context and l.
    """

    def __init__(self, cells: Cells, positions: int) -> None:
        self.cells, self.positions = cells, positions
        self.clicks, self.surely = _surely_examined(cells)
        in_tail = ~cells.click & ~cells.more & (cells.prev > 0)
        self.pair, self.position, self.last, self.n = (
            a[in_tail] for a in (cells.pair, cells.position, cells.prev, cells.n)
        )
        # Tails are numbered by (context, last click), their slots by position within.
        size = positions + 1
        keys, tail = np.unique(cells.context[self.pair] * size + self.last, return_inverse=True)
        slots, self.slot = np.unique(tail * size + self.position, return_inverse=True)
        self.tail_of_slot = slots // size
        self.last_of_slot = keys[self.tail_of_slot] % size
        # A list with a tail has exactly one impression right below its last click.
        first_below = self.position == self.last + 1
        self.lists = np.bincount(tail[first_below], self.n[first_below], minlength=len(keys))
        self.clicks_of_context = np.bincount(cells.context, self.clicks, minlength=cells.contexts)

    def attraction(self, examined: FloatArray) -> FloatArray:
        """θ = n₊/n of every pair, with two more examinations that were clicked as often as others of the context.

        Half of them clicked, as one pseudo-count of either kind would have it, is far more than an item usually gets:
        on logs of many rare pairs the tails then seem unread, and λ came out lower by .14.
        """
        context = self.cells.context
        trials = np.bincount(context, examined, minlength=self.cells.contexts)
        rate = (self.clicks_of_context + 1) / (trials + 2)
        return np.asarray((self.clicks + 2 * rate[context]) / (examined + 2))

    def read_on(self, theta: FloatArray, continuation: FloatArray) -> FloatArray:
        """The weight w of every impression in a tail."""
        own = theta[self.pair]
        # Shorter lists have no item at a lower slot: an absent item is one that nobody clicks.
        clicked = np.bincount(self.slot, self.n * own, minlength=len(self.tail_of_slot))
        # An extrapolated θ may reach 1, and the log of 0 would end it all.
        factor = np.log(np.maximum(1 - clicked / self.lists[self.tail_of_slot], _TINY))
        product = np.bincount(self.tail_of_slot, factor, minlength=len(self.lists))
        others = continuation[self.last_of_slot - 1] * np.exp(product[self.tail_of_slot] - factor)
        unclicked = np.maximum(others[self.slot] * (1 - own), _TINY)  # λP: read on, and clicked nothing
        return np.asarray(unclicked / ((1 - continuation)[self.last - 1] + unclicked))

    def examined(self, weight: FloatArray) -> FloatArray:
        """Examinations of every pair, the tails with their weights."""
        return np.asarray(self.surely + np.bincount(self.pair, self.n * weight, minlength=self.cells.pairs))


_ROUNDS = (5, 10, 20, 40, 80, 160, 320, 640, 1280)


def _examined(cells: Cells, continuation: FloatArray) -> FloatArray:
    """Examinations of every pair, where each context finds its own θ for the λ of all.

    Most contexts come to rest after a few rounds; the others go on without them.
    """
    examined = np.zeros(cells.pairs)
    restless, pairs = cells, np.arange(cells.pairs)
    theta: FloatArray | None = None
    for rounds in _ROUNDS:
        tails = _Tails(restless, len(continuation))

        def step(theta: FloatArray, tails: _Tails = tails) -> FloatArray:
            return tails.attraction(tails.examined(tails.read_on(theta, continuation)))

        groups = np.flatnonzero(np.diff(restless.context, prepend=-1))
        theta, rest = fixed_point(
            step, tails.attraction(tails.surely) if theta is None else theta, 1e-7, groups, rounds
        )
        examined[pairs] = tails.examined(tails.read_on(theta, continuation))
        if rest.all():
            return examined
        left = ~rest[restless.context]
        restless, pairs, theta = restless.only(~rest), pairs[left], theta[left]
    warn_unsettled()
    return examined
