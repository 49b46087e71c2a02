"""The dependent-click model."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from prudent.arrays import FloatArray
from prudent.click_models.base import (
    ClickModel,
    Evidence,
    any_success,
    check_positions,
    click_models,
    fixed_point,
    number_items,
    read_probabilities,
)
from prudent.counts import Cells, Counted
from prudent.errors import UsageError, did_you_mean

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

    def evidence(self, counts: Counted) -> Evidence:
        """Clicks against examinations without a click."""
        cells = counts.cells
        check_positions("continuation", self.continuation, cells.positions)
        given = np.array(self.continuation) if self.continuation else None
        clicks = cells.per_pair(cells.click).astype(float)
        surely = cells.per_pair(cells.click | cells.more | (cells.prev == 0)).astype(float)
        if self.tail == "em":
            continuation, negative = _with_tail(cells, clicks, surely, given)
        else:
            continuation, negative = _last_click_rates(cells) if given is None else given, surely - clicks
        return Evidence(
            context=cells.context,
            item=number_items(cells.context),
            positive=clicks,
            negative=negative,
            impressions=cells.per_pair(),
            weight=1 - continuation[: cells.positions],
            model=self,
            by_weight=given is not None,
            fitted={} if given is not None else {"continuation": continuation.tolist()},
        )


def _last_click_rates(cells: Cells) -> FloatArray:
    """λ̂ₖ = clicks at k with another below / clicks at k; where there is no click at k, 1/2."""
    # App. A defines λ by "the click is the last", which is 1 − P(continue): the complement is meant.
    size = cells.positions + 1
    clicked = np.bincount(cells.position[cells.click], cells.n[cells.click], minlength=size)[1:]
    went_on = cells.click & cells.more
    onward = np.bincount(cells.position[went_on], cells.n[went_on], minlength=size)[1:]
    return _borrow_last(np.divide(onward, clicked, out=np.full(size - 1, 0.5), where=clicked > 0))


def _borrow_last(continuation: FloatArray) -> FloatArray:
    """At the last position nobody can be seen to go on; take the value of the one above, 1/2 where there is none."""
    continuation[-1:] = continuation[-2] if len(continuation) > 1 else 0.5
    return continuation


def _with_tail(
    cells: Cells, clicks: FloatArray, surely: FloatArray, given: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """λ and n₋ when impressions below the last click count with the probability that they were read.

    After a last click at l the user stopped, with probability 1 − λₗ, or read on and clicked nothing, with
    λₗ ∏_{j>l} (1 − θⱼ). So ``w = λₗ P / (1 − λₗ + λₗ P)`` is the weight of an impression in that tail, with
    ``P = ∏ (1 − θⱼ)``. The product runs over whole lists, which the counts have forgotten: the item's own factor
    is exact, and each other position j contributes the mean of (1 − θ) over all tails of its context and l.
    Iterates θ = n₊/n and λₗ = (clicks at l that went on + Σw) / (clicks at l above the end of the list), each with
    one pseudo-observation of either kind.
    """
    in_tail = ~cells.click & ~cells.more & (cells.prev > 0)
    pair, position, last, n = (a[in_tail] for a in (cells.pair, cells.position, cells.prev, cells.n))
    size = cells.positions + 1

    # Tails are numbered by (context, last click), their slots by position within.
    tail_key = cells.context[pair] * size + last
    tail_of_slot_key, tail = np.unique(tail_key, return_inverse=True)
    slot_key, slot = np.unique(tail * size + position, return_inverse=True)
    tail_of_slot = slot_key // size
    # A list with a tail has exactly one impression right below its last click.
    first_below = position == last + 1
    lists = np.bincount(tail[first_below], n[first_below], minlength=len(tail_of_slot_key)).astype(float)
    lists_below = np.bincount(last[first_below], n[first_below], minlength=size)[1:].astype(float)
    went_on = cells.click & cells.more
    onward = np.bincount(cells.position[went_on], cells.n[went_on], minlength=size)[1:].astype(float)

    def read_on(theta: FloatArray, continuation: FloatArray) -> FloatArray:
        own = 1 - theta[pair]
        # Shorter lists have no item at a lower slot: an absent item is one that nobody clicks.
        factor = 1 - np.bincount(slot, n * theta[pair], minlength=len(slot_key)) / lists[tail_of_slot]
        factor = np.maximum(factor, _TINY)  # an extrapolated θ may reach 1, and the log of 0 would end it all
        product = np.bincount(tail_of_slot, np.log(factor), minlength=len(lists))
        unread = continuation[last - 1] * np.exp(product[tail] - np.log(factor[slot])) * own
        stopped = 1 - continuation[last - 1]
        return np.asarray(np.divide(unread, stopped + unread, out=np.ones(len(n)), where=stopped > 0))

    def step(state: FloatArray) -> FloatArray:
        theta, continuation = state[: cells.pairs], state[cells.pairs :]
        weight = read_on(theta, continuation)
        examined = surely + np.bincount(pair, n * weight, minlength=cells.pairs)
        kept = n * weight * first_below
        still = onward + np.bincount(last, kept, minlength=size)[1:]
        new = given if given is not None else _borrow_last((still + 1) / (onward + lists_below + 2))
        return np.concatenate([(clicks + 1) / (examined + 2), new])

    truncated = _borrow_last((onward + 1) / (onward + lists_below + 2)) if given is None else given
    start = np.concatenate([(clicks + 1) / (surely + 2), truncated])
    state = fixed_point(step, start, tolerance=1e-7)
    theta, continuation = state[: cells.pairs], state[cells.pairs :]
    examined = surely + np.bincount(pair, n * read_on(theta, continuation), minlength=cells.pairs)
    return continuation, examined - clicks
