"""The dependent-click model."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.base.errors import UsageError, did_you_mean
from prudent.click_models.base import (
    ClickModel,
    Fitted,
    any_success,
    check_positions,
    click_models,
    fixed_point,
    read_probabilities,
    warn_unsettled,
)
from prudent.counts.cells import Cells

_TINY = 1e-300


@click_models.register("dcm")
@dataclass(frozen=True)
class DependentClick(ClickModel):
    """The user reads from the top and, after a click at k, goes on with probability λₖ (Sec. 5.2).

    Everything down to the last click was examined, and everything when there is no click. Below the last click
    the user may have gone on and clicked nothing: ``tail=em`` counts those impressions with the probability of
    that, ``tail=truncate`` leaves them out as the paper does, and so overestimates θ, because it drops
    unclicked impressions only. The value of a list is the probability of a click after which the user leaves,
    ``V = 1 − ∏ (1 − (1 − λₖ) θ)``, Eq. (4).

    ``continuation`` gives λ; otherwise it is fitted. No log of K positions identifies λ at position K, where
    nobody can be seen to go on: it takes the value of position K − 1, and lists are ordered from the top down by
    lower bound rather than by fitted λ.
    """

    tail: Literal["em", "truncate"] = "em"
    continuation: tuple[float, ...] = ()

    unit: ClassVar[str] = "probability of a satisfied click"
    value = staticmethod(any_success)

    def __post_init__(self) -> None:
        if self.tail not in ("em", "truncate"):
            raise UsageError(
                f"dcm knows no tail={self.tail}.{did_you_mean(str(self.tail), ('em', 'truncate'))} Known: em, truncate."
            )
        object.__setattr__(self, "continuation", read_probabilities("continuation", self.continuation))

    def learn(self, cells: Cells, positions: int) -> Fitted:
        """λ of every position, as given or from the clicks that were followed by others."""
        check_positions("continuation", self.continuation, positions)
        if self.continuation:
            return Fitted(self, np.array(self.continuation[:positions]))
        if self.tail == "em":
            # Where a context has few lists, the means that stand for whole lists are of few: λ comes out too high.
            continuation = _Tails(cells.heaviest(), positions).fit_continuation()
        else:
            continuation = _last_click_rates(cells, positions)
        return Fitted(self, continuation, learned="continuation", by_weight=False)

    def trials(self, cells: Cells, parameter: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Clicks against examinations without a click."""
        clicks, surely = _surely_examined(cells)
        if self.tail == "truncate":
            return clicks, surely - clicks
        return clicks, _examined(cells, parameter) - clicks

    def weight(self, parameter: FloatArray) -> FloatArray:
        """A click counts when the user leaves after it."""
        return np.asarray(1 - parameter)


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
    ``P = ∏ (1 − θⱼ)``. The product runs over whole lists, which the counts have forgotten: the item's own factor
    is exact, and each other position j contributes the mean of (1 − θ) over all tails of its context and l.
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
        self.first_below = self.position == self.last + 1
        self.lists = np.bincount(tail[self.first_below], self.n[self.first_below], minlength=len(keys))
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

    def fit_continuation(self) -> FloatArray:
        """λ, by iterating θ and λₗ = (clicks at l that went on + Σw) / (clicks at l above the end of the list).

        λ has one pseudo-observation of either kind.
        """
        size, pairs = self.positions + 1, self.cells.pairs
        below = np.flatnonzero(self.first_below)
        last, n = self.last[below], self.n[below]
        lists_below = np.bincount(last, n, minlength=size)[1:]
        went_on = self.cells.click & self.cells.more
        onward = np.bincount(self.cells.position[went_on], self.cells.n[went_on], minlength=size)[1:]

        def step(state: FloatArray) -> FloatArray:
            weight = self.read_on(state[:pairs], state[pairs:])
            still = onward + np.bincount(last, n * weight[below], minlength=size)[1:]
            theta = self.attraction(self.examined(weight))
            return np.concatenate([theta, _borrow_last((still + 1) / (onward + lists_below + 2))])

        truncated = _borrow_last((onward + 1) / (onward + lists_below + 2))
        start = np.concatenate([self.attraction(self.surely), truncated])
        state, rest = fixed_point(step, start, 1e-7, groups=np.zeros(1, np.int64), rounds=2_000)
        if not rest.all():
            warn_unsettled()
        return state[pairs:]


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
