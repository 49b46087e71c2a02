"""What every baseline offers, and what they share: clips, and the best of each group."""

from math import inf
from typing import NamedTuple, Protocol

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import UsageError
from prudent.base.spec import Registry, as_number
from prudent.policies.baselines.totals import Placed, Totals
from prudent.policies.list_arrays import Lists


class Choice(NamedTuple):
    """The lists of a baseline, and its estimates."""

    lists: Lists
    adds: FloatArray  # one entry per listed item: estimated clicks that it adds to its list at its place
    best: FloatArray  # one entry per pair: its highest estimate at any place
    incumbent: FloatArray  # one entry per logged context: estimated value of the list shown most often


class Baseline(Protocol):
    """From whole lists to the best list of each context; its settings are its fields."""

    def choose(self, totals: Totals) -> Choice:
        """The best list of every context that was logged, with its estimates."""
        ...

    def lists(self, totals: Totals) -> Lists:
        """The lists alone."""
        return self.choose(totals).lists


baselines: Registry[Baseline] = Registry("baseline", "prudent.baselines", "choose", "prudent.policies.baselines")


# --- clips -------------------------------------------------------------------------------------------------------

_PRINTED = {0.05: 1.0, 0.1: 5.0, 0.15: 10.0, 0.2: 50.0, 1.0: inf}


def clip_for(delta: float) -> float:
    """The clip M that corresponds to δ in the figures of Sec. 8.3.

    The table as printed; all its entries from δ = .25 to .95 follow M = 2000δ − 400, which fills in the others.
    Below .25 the entries follow no rule, and only a printed δ has an M.

    >>> clip_for(0.2), clip_for(0.3), clip_for(1)
    (50.0, 200.0, inf)
    """
    near = round(as_number(delta), 9)  # sweeps arrive as 0.15000000000000002
    if near in _PRINTED:
        return _PRINTED[near]
    if not 0.25 <= near < 1:
        raise UsageError(f"No clip belongs to delta={delta}. Below .25 only .05, .1, .15 and .2 have one; at most 1.")
    return round(2000 * near - 400, 6)


def clipped_rate(clicks: IntArray, n: IntArray, logged: IntArray, clip: float) -> FloatArray:
    """(1/N) · min(M, N/n) · clicks.

    Written as the smaller of two quotients of integers: where two values are equal, so are then their last digits.
    """
    most = min(clip, float(logged.max(initial=1)))  # no N/n exceeds it, and 0 · ∞ is no number
    return np.minimum(most * clicks / logged, clicks / n)


# --- the best of each group ------------------------------------------------------------------------------------------


def first_of_best(group: IntArray, *keys: FloatArray | IntArray) -> IntArray:
    """The row of each group, which ascends, with the largest first key, then second key ...; the first of equals."""
    row = np.arange(len(group))
    for key in keys:
        start = np.flatnonzero(np.diff(group[row], prepend=-1))
        value = key[row]
        most = np.repeat(np.maximum.reduceat(value, start), np.diff(start, append=len(row)))
        row = row[value == most]
    return row[np.flatnonzero(np.diff(group[row], prepend=-1))]


def incumbent_values(totals: Totals, estimate: FloatArray) -> FloatArray:
    """The sum of estimates over the list shown most often in each logged context."""
    items = totals.items[totals.incumbent]
    key = totals.placed.pair * totals.length + totals.placed.position
    place = np.searchsorted(key, items * totals.length + np.arange(totals.length))
    return np.asarray(np.sum(estimate[place], axis=1, where=items >= 0))


def best_placed(placed: Placed, estimate: FloatArray, pairs: int) -> FloatArray:
    """The highest estimate of each pair at the positions where it was shown; −∞ for what was never shown."""
    best = np.full(pairs, -np.inf)
    start = np.flatnonzero(np.diff(placed.pair, prepend=-1))
    best[placed.pair[start]] = np.maximum.reduceat(estimate, start)
    return best
