"""Impressions below the last click in counts, each with the probability that it was examined.

Whether an item below the last click was examined depends on the others of its list, which cells do not keep: the item's
own factor is exact, and each other position contributes the mean over all lists of its context with the same last
click. Then the likelihood of an attraction θ, given the rest, has a factor 1 − ρθ for each such impression, with ρ the
probability that it was examined, given that nobody clicks the others: as if the user had skipped it with the
examination probability ρ of a position-based model. So posteriors are those of `prudent.base.numerics.thinned`.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.base.numerics.numbering import number_distinct
from prudent.base.numerics.squarem import fixed_point
from prudent.base.numerics.thinned import Skips
from prudent.click_models.base import warn_unsettled
from prudent.counts.cells import Cells

_TINY = 1e-300


class Chances(NamedTuple):
    """What the tails say at some attraction."""

    chance: FloatArray  # ρ of every impression in a tail
    unread: FloatArray  # 1 − Tₗ₊₁ of every last click: P(a click below | the user goes on)


class Tails:
    """The cells of last clicks, and of impressions below them; without a click, below the top of the list.

    Users who always go on without a click have examined all of a list that has none: then those are no tails.
    """

    def __init__(self, cells: Cells, positions: int, unclicked: float) -> None:
        self.cells, self.unclicked = cells, unclicked
        codes = cells.codes
        below = ~codes.click & ~codes.more & (codes.prev >= (unclicked == 1))
        self.clicks, self.surely = cells.fold(codes.click, ~below)
        end = cells.code & 3
        self.tail = np.flatnonzero((end == 0) & (cells.prev > 0) if unclicked == 1 else end == 0)
        self.last = np.flatnonzero(end == 2)  # clicked, and no click below
        self.pair, self.n = cells.pair[self.tail], cells.n[self.tail]
        # Tails are numbered by (context, last click), their slots by position within.
        size = positions + 1
        position = cells.position[self.tail]
        key = cells.context[self.pair] * size + cells.prev[self.tail]
        keys, tail = number_distinct(key, cells.contexts * size)
        slots, self.slot = number_distinct(tail * size + position, len(keys) * size)
        self.of_slot, at = np.divmod(slots, size)
        self.at = [np.flatnonzero(at == k) for k in range(1, size)]
        # A list with a tail has exactly one impression right below its last click.
        first = position == keys[tail] % size + 1
        self.lists = np.bincount(tail[first], self.n[first], minlength=len(keys))
        # Tails that start with a last click; those of lists without one start at the top.
        of_last = cells.context[cells.pair[self.last]] * size + cells.position[self.last]
        found = np.searchsorted(keys, of_last)
        found[found == len(keys)] = 0
        has = keys[found] == of_last if len(keys) else np.zeros(len(of_last), bool)
        self.has, self.of_last = has, found
        self.started = keys % size > 0
        self.last_n = cells.n[self.last]
        ends = np.bincount(found[has], self.last_n[has], minlength=len(keys))
        # Of the last clicks at a position, some end a short list.
        self.longer = np.divide(self.lists, ends, out=np.ones(len(keys)), where=self.started & (ends > 0))
        self.ends = np.maximum(ends, _TINY)
        self.clicks_of_context = np.bincount(cells.context, self.clicks, minlength=cells.contexts)

    def smoothed(self, positive: FloatArray, examined: FloatArray) -> FloatArray:
        """θ = n₊/n of every pair, with two more examinations that were clicked as often as others of the context.

        Half of them clicked, as one pseudo-count of either kind would have it, is far more than an item usually gets:
        on logs of many rare pairs the tails then seem unread.
        """
        context = self.cells.context
        trials = np.bincount(context, examined, minlength=self.cells.contexts)
        clicks = np.bincount(context, positive, minlength=self.cells.contexts)
        rate = (clicks + 1) / (trials + 2)
        return np.asarray((positive + 2 * rate[context]) / (examined + 2))

    def chances(self, theta: FloatArray, clicked: FloatArray) -> Chances:
        """ρ of every impression in a tail, where users go on after the last clicks with probabilities `clicked`."""
        # Shorter lists have no item at a lower slot: an absent item is one that nobody clicks.
        mean = np.bincount(self.slot, self.n * theta[self.pair], minlength=len(self.of_slot))
        # An extrapolated θ may reach 1.
        skip = np.maximum(1 - mean / self.lists[self.of_slot], _TINY)
        on = np.bincount(self.of_last[self.has], (self.last_n * clicked)[self.has], minlength=len(self.lists))
        start = np.where(self.started, on / self.ends, 1.0)
        gamma = self.unclicked
        quiet, above, below = np.ones(len(self.lists)), start.copy(), np.empty(len(skip))
        for slots in reversed(self.at):
            tails = self.of_slot[slots]
            below[slots] = 1 - gamma + gamma * quiet[tails]
            quiet[tails] = skip[slots] * below[slots]
        reached = np.empty(len(skip))
        for slots in self.at:
            tails = self.of_slot[slots]
            reached[slots] = above[tails]
            above[tails] *= skip[slots] * gamma
        read = np.maximum(reached * below, _TINY)  # and no other item was clicked
        silent = (1 - start * (1 - quiet))[self.of_slot]
        chance = read / np.maximum(silent - read * skip + read, read)
        unread = np.zeros(len(self.last))
        unread[self.has] = ((1 - quiet) * np.minimum(self.longer, 1.0))[self.of_last[self.has]]
        return Chances(chance[self.slot], unread)

    def read(self, theta: FloatArray, chance: FloatArray) -> FloatArray:
        """The probability that each impression in a tail was examined, now that it was not clicked either."""
        own = theta[self.pair]
        return np.asarray(chance * (1 - own) / np.maximum(1 - chance * own, _TINY))

    def examined(self, read: FloatArray) -> FloatArray:
        """Examinations of every pair, the tails with these probabilities."""
        return np.asarray(self.surely + np.bincount(self.pair, self.n * read, minlength=self.cells.pairs))

    def per_pair(self, values: FloatArray) -> FloatArray:
        """Sums over the last clicks of every pair."""
        return np.bincount(self.cells.pair[self.last], self.last_n * values, minlength=self.cells.pairs).astype(float)


class Iteration(Protocol):
    """Parameters of every pair as the fixed point of a step that keeps contexts apart."""

    def start(self) -> FloatArray:
        """Parameters, in a row for each pair."""
        ...

    def step(self, parameters: FloatArray) -> FloatArray:
        """The next ones."""
        ...


_ROUNDS = (5, 10, 20, 40, 80, 160, 320, 640, 1280)


def settle(cells: Cells, make: Callable[[Cells], Iteration], tolerance: float) -> FloatArray:
    """The fixed point of every context, bit for bit the same whichever others are among the cells.

    Most contexts come to rest after a few rounds; the others go on without them.
    """
    restless, pairs, settled = cells, np.arange(cells.pairs), np.zeros((0, 0))
    for number, rounds in enumerate(_ROUNDS):
        iteration = make(restless)
        start = iteration.start() if not number else settled[pairs]
        if not number:
            settled = start.copy()
        width = start.shape[1]
        groups = np.flatnonzero(np.diff(restless.context, prepend=-1)) * width

        def step(flat: FloatArray, iteration: Iteration = iteration, width: int = width) -> FloatArray:
            return iteration.step(flat.reshape(-1, width)).ravel()

        flat, rest = fixed_point(step, start.ravel(), tolerance, groups, rounds)
        settled[pairs] = flat.reshape(-1, width)
        if rest.all():
            return settled
        left = ~rest[restless.context]
        restless, pairs = restless.only(~rest), pairs[left]
    warn_unsettled()
    return settled


def skips_of(tails: Tails, chance: FloatArray) -> Skips:
    """The impressions that were not clicked: certain examinations, and those in tails."""
    cells = tails.cells
    chances = np.ones(len(cells.n))
    chances[tails.tail] = chance
    skip = np.flatnonzero(~cells.click)
    return Skips(cells.pair[skip], chances[skip], cells.n[skip])
