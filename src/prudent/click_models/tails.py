"""Impressions below the last click in counts, each with the probability that it was examined.

Whether an item below the last click was examined depends on the others of its list, which cells do not keep: the item's
own factor is exact, and each other position contributes the mean over all lists of its context with the same last
click. Then the likelihood of an attraction θ, given the rest, has a factor 1 − ρθ for each such impression, with ρ the
probability that it was examined, given that nobody clicks the others: as if the user had skipped it with the
examination probability ρ of a position-based model. So posteriors are those of `prudent.base.numerics.thinned`.
"""

from typing import NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.numerics.numbering import number_distinct
from prudent.base.numerics.squarem import fixed_point
from prudent.base.numerics.thinned import Skips
from prudent.click_models.base import warn_unsettled
from prudent.counts.cells import Cells
from prudent.engines import kernel
from prudent.engines.kernel import Settled, Users
from prudent.storage.run import LONGEST

_TINY = 1e-300


class Reading(NamedTuple):
    """What the tails say at some attraction."""

    own: FloatArray  # θ of every impression in a tail
    chance: FloatArray  # and its ρ
    quiet: FloatArray  # Tₗ₊₁ of every tail


class Tails:
    """The cells of last clicks, and of impressions below them; without a click, below the top of the list.

    Users who always go on without a click have examined all of a list that has none: then those are no tails.
    """

    def __init__(self, cells: Cells, positions: int, unclicked: float) -> None:
        self.cells, self.unclicked = cells, unclicked
        codes = cells.codes
        below = ~codes.click & ~codes.more & (codes.prev >= (unclicked == 1))
        self.clicks, self.surely = cells.fold(codes.click, ~below)
        self.tail, self.last = in_tail(cells, unclicked), last_clicks(cells)
        self.pair, self.n = cells.pair[self.tail], cells.n[self.tail]
        # Tails are numbered by (context, last click), their slots by position and then by tail.
        size = positions + 1
        position = cells.position[self.tail]
        key = cells.context[self.pair] * size + cells.prev[self.tail]
        keys, tail = number_distinct(key, cells.contexts * size)
        slots, self.slot = number_distinct(position * len(keys) + tail, len(keys) * size)
        at, self.of_slot = np.divmod(slots, max(1, len(keys)))
        self.at = [slice(*np.searchsorted(at, [k, k + 1])) for k in range(1, size)]
        # A list with a tail has exactly one impression right below its last click.
        first = position == keys[tail] % size + 1
        self.lists = np.bincount(tail[first], self.n[first], minlength=len(keys))
        self.lists_of_slot = self.lists[self.of_slot]
        # Tails that start with a last click; those of lists without one start at the top.
        of_last = cells.context[cells.pair[self.last]] * size + cells.position[self.last]
        found = np.searchsorted(keys, of_last)
        found[found == len(keys)] = 0
        self.has = np.flatnonzero(keys[found] == of_last) if len(keys) else np.zeros(0, np.int64)
        self.of_last = found[self.has]
        self.started = keys % size > 0
        self.last_pair, self.last_n = cells.pair[self.last], cells.n[self.last]
        self.has_n = self.last_n[self.has]
        ends = np.bincount(self.of_last, self.has_n, minlength=len(keys))
        # Of the last clicks at a position, some end a short list.
        self.longer = np.divide(self.lists, ends, out=np.ones(len(keys)), where=self.started & (ends > 0))
        self.ends = np.maximum(ends, _TINY)
        self.rated = np.bincount(cells.context, self.clicks, minlength=cells.contexts) + 1

    def smoothed(self, examined: FloatArray) -> FloatArray:
        """θ = n₊/n of every pair, with two more examinations that were clicked as often as others of the context.

        Half of them clicked, as one pseudo-count of either kind would have it, is far more than an item usually gets:
        on logs of many rare pairs the tails then seem unread.
        """
        context = self.cells.context
        rate = self.rated / (np.bincount(context, examined, minlength=self.cells.contexts) + 2)
        return np.asarray((self.clicks + 2 * rate[context]) / (examined + 2))

    def reading(self, theta: FloatArray, clicked: FloatArray) -> Reading:
        """What was read, where users go on after the last clicks with probabilities `clicked`."""
        own = theta[self.pair]
        # Shorter lists have no item at a lower slot: an absent item is one that nobody clicks.
        mean = np.bincount(self.slot, self.n * own, minlength=len(self.of_slot))
        # An extrapolated θ may reach 1.
        skip = np.maximum(1 - mean / self.lists_of_slot, _TINY)
        on = np.bincount(self.of_last, self.has_n * clicked[self.has], minlength=len(self.lists))
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
        return Reading(own, chance[self.slot], quiet)

    def unread(self, quiet: FloatArray) -> FloatArray:
        """1 − Tₗ₊₁ of every last click: P(a click below | the user goes on)."""
        unread = np.zeros(len(self.last))
        unread[self.has] = ((1 - quiet) * np.minimum(self.longer, 1.0))[self.of_last]
        return unread

    def examined(self, reading: Reading) -> FloatArray:
        """Examinations of every pair: in tails, how probable they are now that these were not clicked either."""
        own, chance, _ = reading
        read = self.n * chance * (1 - own) / np.maximum(1 - chance * own, _TINY)
        return np.asarray(self.surely + np.bincount(self.pair, read, minlength=self.cells.pairs))

    def per_pair(self, values: FloatArray) -> FloatArray:
        """Sums over the last clicks of every pair."""
        return np.bincount(self.last_pair, self.last_n * values, minlength=self.cells.pairs).astype(float)


class Iteration:
    """Parameters of every pair as the fixed point of a step that keeps contexts apart; see `Users`."""

    def __init__(self, cells: Cells, users: Users) -> None:
        self.tails, self.users = Tails(cells, cells.positions, users.unclicked), users
        (self.followed,) = cells.fold(cells.codes.click & cells.codes.more)
        self.place = cells.position[self.tails.last] - 1 if users.by == "position" else None

    def start(self) -> FloatArray:
        """As if nothing below the last click was examined: θ of every pair, and t where items have their own."""
        theta = self.tails.smoothed(self.tails.surely)
        if self.users.by != "item":
            return theta[:, None]
        return np.stack([theta, np.full(len(theta), self.users.start)], axis=1)

    def step(self, parameters: FloatArray) -> FloatArray:
        """One round: expected counts over expected trials."""
        tails, reading = self.tails, self.reading(parameters)
        new = tails.smoothed(tails.examined(reading))
        if self.users.by != "item":
            return new[:, None]
        t = parameters[tails.last_pair, 1]
        ended = t * (1 - self.users.clicked[0] * tails.unread(reading.quiet))
        still = tails.per_pair(ended / np.maximum(1 - t + ended, _TINY))
        alpha, beta = self.users.prior
        return np.stack([new, (self.followed + still + beta) / (tails.clicks + alpha + beta)], axis=1)

    def reading(self, parameters: FloatArray) -> Reading:
        """What was read in tails."""
        tails, clicked, theta = self.tails, self.users.clicked, parameters[:, 0]
        if self.place is not None:
            on = clicked[self.place]
        elif self.users.by == "attraction":
            on = clicked[0] * (1 - theta[tails.last_pair]) + clicked[1] * theta[tails.last_pair]
        else:
            on = clicked[0] * parameters[tails.last_pair, 1]
        return tails.reading(theta, on)


_ROUNDS = (3, 10, 20, 40, 80, 160, 320, 640, 1280)
_PAIRS = 20_000  # at a time: arrays of a step stay in the cache, and are not given back to the system after each


def settle(cells: Cells, users: Users) -> Settled:
    """The fixed point of every context, bit for bit the same whichever others are among the cells.

    By the compiled kernel or, to the same bytes, by NumPy.
    """
    starts = np.flatnonzero(np.diff(cells.context, prepend=-1))
    pairs = np.diff(starts, append=cells.pairs).astype(np.uint32)
    settled = kernel.settle(pairs, cells.size, cells.code, cells.n, users) or _settle_parts(cells, users)
    if not settled.rest:
        warn_unsettled()
    return settled


def _settle_parts(cells: Cells, users: Users) -> Settled:
    parts = [_settle(part, users) for part in cells.parts(_PAIRS)]
    *arrays, _ = zip(*parts, strict=True)
    parameters, clicks, examined, chance, unread = map(np.concatenate, arrays)
    return Settled(parameters, clicks, examined, chance, unread, rest=all(part.rest for part in parts))


def _settle(cells: Cells, users: Users) -> Settled:
    """That of some contexts.

    Most of them come to rest after a few rounds; the others go on without them.
    """
    whole = iteration = Iteration(cells, users)
    restless, pairs, settled = cells, np.arange(cells.pairs), whole.start()
    width = settled.shape[1]
    for rounds in _ROUNDS:
        groups = np.flatnonzero(np.diff(restless.context, prepend=-1)) * width

        def step(flat: FloatArray, iteration: Iteration = iteration) -> FloatArray:
            return iteration.step(flat.reshape(-1, width)).ravel()

        flat, rest = fixed_point(step, settled[pairs].ravel(), users.tolerance, groups, rounds)
        settled[pairs] = flat.reshape(-1, width)
        if rest.all():
            break
        left = ~rest[restless.context]
        restless, pairs = restless.only(~rest), pairs[left]
        iteration = Iteration(restless, users)
    tails, reading = whole.tails, whole.reading(settled)
    read = tails.examined(reading), reading.chance, tails.unread(reading.quiet)
    return Settled(settled, tails.clicks, *read, bool(rest.all()))


def skips_of(cells: Cells, settled: Settled, unclicked: float) -> Skips:
    """The impressions that were not clicked: certain examinations, and those in tails."""
    chances = np.ones(len(cells.n))
    chances[in_tail(cells, unclicked)] = settled.chance
    skip = np.flatnonzero(cells.code & 2 == 0)
    return Skips(cells.pair[skip], chances[skip], cells.n[skip])


def in_tail(cells: Cells, unclicked: float) -> IntArray:
    """The cells below last clicks, and of lists without one unless all of those are read."""
    below = cells.code & 3 == 0
    return np.flatnonzero(below & (cells.code >> 2 & LONGEST > 0) if unclicked == 1 else below)


def last_clicks(cells: Cells) -> IntArray:
    """The cells of last clicks."""
    return np.flatnonzero(cells.code & 3 == 2)
