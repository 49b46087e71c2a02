"""HeldOut: lists that a policy has not learned from, as arrays, beside the lists that it would have shown."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.counts.lists import ListBatch

Reward = Literal["clicks", "any-click"]
REWARDS: tuple[Reward, ...] = ("clicks", "any-click")

NEVER = -2
"""An item of the policy that no held-out list of its context shows."""


class CannotTellError(Exception):
    """There is no support for a number; the message is one sentence why."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out lists and the policy's list for each of their contexts, over at most K positions.

    Lists are sorted by context, items and clicks, so that what follows does not depend on the order of the log. An
    item is the number of its pair, as in `ListBatch`; ``target`` has −1 below the end of a list and −2 for an item that
    the context never showed. A context that the policy does not know keeps the lists it has: ``known`` is false there.
    Lists are whole, so that click models learn from all of them; only the first ``upto`` positions earn a reward.
    """

    pair_context: IntArray  # one entry per pair, ascending
    target: IntArray  # one row per context
    known: BoolArray  # one entry per context
    upto: IntArray  # one entry per context: positions whose clicks are counted
    context: IntArray  # this and the rest: one entry or row per list
    items: NDArray[np.int32]
    clicks: BoolArray
    n: IntArray  # how often that list was shown and clicked in that way
    propensity: FloatArray | None = None  # of the first k items, for each k; NaN where it is not known
    # Click models that estimators share; other lists, made by `replace`, start with none.
    fits: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def length(self) -> int:
        """K."""
        return int(self.items.shape[1])

    @property
    def contexts(self) -> int:
        """How many contexts there are."""
        return len(self.target)

    @cached_property
    def logged(self) -> IntArray:
        """N: lists of each context."""
        return self.per_context(self.n).astype(np.int64)

    @cached_property
    def size(self) -> IntArray:
        """How many items the policy's list has in each context."""
        return np.asarray((self.target != -1).sum(axis=1))

    @cached_property
    def depth(self) -> NDArray[np.int16]:
        """How many items from the top each list has in common with the policy's."""
        depth = np.zeros(len(self.n), np.int16)
        for k in range(self.length):
            depth[(depth == k) & self.at(k)] = k + 1
        return depth

    def at(self, k: int) -> BoolArray:
        """Whether each list has the policy's item at position k, from 0."""
        wanted = self.target[self.context, k]
        return np.asarray((wanted >= 0) & (self.items[:, k] == wanted))

    @cached_property
    def whole(self) -> BoolArray:
        """Whether each list has all the policy's items in their places; what is below them does not matter."""
        return np.asarray(self.known[self.context] & (self.depth == self.size[self.context]))

    def per_context(self, values: NDArray[np.generic]) -> FloatArray:
        """Sums over the lists of each context."""
        return np.bincount(self.context, values, minlength=self.contexts).astype(np.float64, copy=False)

    @cached_property
    def within(self) -> BoolArray:
        """Whether each place of each list is one whose clicks are counted."""
        return np.asarray(np.arange(self.length) < self.upto[self.context][:, None])

    def reward_at(self, k: int, reward: Reward) -> FloatArray:
        """The part of each list's reward that position k, from 0, earned: a click, or the first click."""
        clicked = self.clicks[:, k] & self.within[:, k]
        return (clicked if reward == "clicks" else clicked & (self._first == k)).astype(np.float64)

    @cached_property
    def _first(self) -> IntArray:
        return np.where(self.clicks.any(axis=1), self.clicks.argmax(axis=1), -1)

    def reward(self, reward: Reward) -> FloatArray:
        """The reward of each list."""
        inside = self.clicks & self.within
        return np.asarray(inside.sum(axis=1) if reward == "clicks" else inside.any(axis=1), np.float64)

    def only(self, contexts: BoolArray) -> "HeldOut":
        """Some of the contexts, which are numbered anew, as are their pairs."""
        pairs, lists = contexts[self.pair_context], contexts[self.context]
        number = np.append(np.cumsum(pairs) - 1, [NEVER, -1])  # −1 and −2 stay what they are, counted from the end
        return HeldOut(
            (np.cumsum(contexts) - 1)[self.pair_context[pairs]],
            number[self.target[contexts]],
            self.known[contexts],
            self.upto[contexts],
            (np.cumsum(contexts) - 1)[self.context[lists]],
            number[self.items[lists]].astype(np.int32),
            self.clicks[lists],
            self.n[lists],
            None if self.propensity is None else self.propensity[lists],
        )

    def shown(self, n: IntArray | None = None) -> ListBatch:
        """The lists as click models take them, all of them or so many of each."""
        n = self.n if n is None else n
        some = n > 0
        return ListBatch(self.pair_context, self.items[some].astype(np.int64), self.clicks[some], n[some])


def hold_out(
    shown: ListBatch,
    target: IntArray,
    known: BoolArray | None = None,
    propensity: FloatArray | None = None,
) -> HeldOut:
    """Put lists in order; `propensity` has a row per list, with that of its first k items in column k, from 1.

    In each context, positions that the policy's list does not have, or no logged list, earn nothing, neither of the
    two: nobody can say what happens there. Contexts without a list of the policy are counted whole.
    """
    known = np.ones(len(target), bool) if known is None else known
    context, length = shown.list_context, shown.length
    longest = np.zeros(len(target), np.int64)
    np.maximum.at(longest, context, (shown.items >= 0).sum(axis=1))
    upto = np.where(known, np.minimum(longest, (target != -1).sum(axis=1)), longest)
    wide = np.pad(target, ((0, 0), (0, max(0, length - target.shape[1]))), constant_values=-1)[:, :length]
    keys = [*shown.clicks.T[::-1], *shown.items.T[::-1], context]
    order = np.lexsort(keys if propensity is None else [*propensity.T, *keys])
    return HeldOut(
        shown.context,
        np.where(known[:, None] & (np.arange(length) < upto[:, None]), wide, -1),
        known,
        upto,
        context[order],
        shown.items[order].astype(np.int32, copy=False),
        shown.clicks[order],
        shown.n[order],
        None if propensity is None else propensity[order],
    )
