"""Holdout: the lists of a holdout as arrays, beside the list that the policy would have shown in each context."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import UsageError
from prudent.click_models.base import ClickModel
from prudent.click_models.rewards import COLUMN, EarnedReward
from prudent.counts.cells import Cells
from prudent.counts.lists import ListBatch
from prudent.evaluation.confounding import Confounding, detect_confounding

NEVER = -2
"""An item of the policy that no holdout list of its context shows."""


class CannotTellError(Exception):
    """There is no support for a number; the message is one sentence why."""


@dataclass(frozen=True, eq=False)
class Holdout:
    """The lists of a holdout and the policy's list for each of their contexts, over at most K positions.

    Lists are sorted by context, items and clicks, so that results do not depend on the order of the log. An item is the
    number of its pair, as in `ListBatch`; ``target`` has −1 below the end of a list and −2 for an item that the context
    never showed. A context that the policy does not know keeps the lists it has: ``known`` is false there. Lists are
    whole, so that click models are fitted to all of them; only the first ``upto`` positions earn a reward.
    """

    lists: ListBatch
    target: IntArray  # one row per context
    known: BoolArray  # one entry per context
    upto: IntArray  # one entry per context: positions whose clicks count
    trained: ClickModel | None = None  # the policy's click model, with the parameters of the training log as settings
    # Click models that estimators share; other lists, made by `replace`, start with none.
    fits: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def pair_context(self) -> IntArray:
        """The context of each pair."""
        return self.lists.context

    @cached_property
    def context(self) -> IntArray:
        """The context of each list."""
        return self.lists.list_context

    @property
    def items(self) -> IntArray:
        """The items of each list."""
        return self.lists.items

    @property
    def clicks(self) -> BoolArray:
        """The clicks on each list."""
        return self.lists.clicks

    @property
    def n(self) -> IntArray:
        """How often each list was shown and clicked in that way."""
        return self.lists.n

    @property
    def propensity(self) -> FloatArray | None:
        """The propensity of the first k items of each list."""
        return self.lists.propensity

    @property
    def rewards(self) -> FloatArray:
        """The rewards of the clicks on each list."""
        if self.lists.rewards is None:
            raise UsageError("The log has no rewards: name their column, reward=... (--reward).")
        return self.lists.rewards

    @property
    def length(self) -> int:
        """K."""
        return self.lists.length

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

    @cached_property
    def same(self) -> BoolArray:
        """Whether each place of each list shows what the policy shows there; contexts without a policy stay as is."""
        same = np.stack([self.at(k) for k in range(self.length)], axis=1)
        return np.asarray(same | ~self.known[self.context][:, None])

    def at(self, k: int) -> BoolArray:
        """Whether each list has the policy's item at position k, from 0."""
        wanted = self.target[self.context, k]
        return np.asarray((wanted >= 0) & (self.items[:, k] == wanted))

    @cached_property
    def whole(self) -> BoolArray:
        """Whether each list has all the policy's items in their places; what is below them does not matter."""
        return np.asarray(self.known[self.context] & (self.depth == self.size[self.context]))

    @cached_property
    def stays(self) -> BoolArray:
        """Whether each list stays as it is: the policy shows the same, or has no list for the context."""
        return np.asarray(self.whole | ~self.known[self.context])

    def per_context(self, values: NDArray[np.generic]) -> FloatArray:
        """Sums over the lists of each context."""
        return np.bincount(self.context, values, minlength=self.contexts).astype(np.float64, copy=False)

    @cached_property
    def within(self) -> BoolArray:
        """Whether each place of each list is one whose clicks are counted."""
        return np.asarray(np.arange(self.length) < self.upto[self.context][:, None])

    def reward_at(self, k: int, reward: EarnedReward) -> FloatArray:
        """The part of each list's reward that position k, from 0, earned: a click, its reward, or the first click."""
        if reward == COLUMN:
            return np.where(self.within[:, k], self.rewards[:, k], 0.0)
        clicked = self.clicks[:, k] & self.within[:, k]
        return (clicked if reward == "clicks" else clicked & (self._first == k)).astype(np.float64)

    @cached_property
    def _first(self) -> IntArray:
        return np.where(self.clicks.any(axis=1), self.clicks.argmax(axis=1), -1)

    def reward(self, reward: EarnedReward) -> FloatArray:
        """The reward of each list."""
        if reward == COLUMN:
            return np.asarray(np.sum(self.rewards * self.within, axis=1))
        inside = self.clicks & self.within
        return np.asarray(inside.sum(axis=1) if reward == "clicks" else inside.any(axis=1), np.float64)

    def only(self, contexts: BoolArray) -> "Holdout":
        """The lists of these contexts, which are numbered anew, as are their pairs."""
        pairs, rows = contexts[self.pair_context], contexts[self.context]
        number = np.append(np.cumsum(pairs) - 1, [NEVER, -1])  # −1 and −2 stay what they are, counted from the end
        lists = ListBatch(
            (np.cumsum(contexts) - 1)[self.pair_context[pairs]],
            number[self.items[rows]].astype(self.items.dtype),
            self.clicks[rows],
            self.n[rows],
            None if self.propensity is None else self.propensity[rows],
            None if self.lists.rewards is None else self.lists.rewards[rows],
        )
        return Holdout(lists, number[self.target[contexts]], self.known[contexts], self.upto[contexts], self.trained)

    def chunk(self, first: int, last: int) -> "Holdout":
        """The contexts from `first` up to but not including `last`; this holdout, which keeps its cells, for all."""
        if last - first == self.contexts:
            return self
        rows, pairs = (slice(*np.searchsorted(of, [first, last])) for of in (self.context, self.pair_context))
        items, target = self.items[rows], self.target[first:last]
        lists = ListBatch(
            self.pair_context[pairs] - first,
            np.where(items >= 0, items - pairs.start, items).astype(items.dtype, copy=False),
            self.clicks[rows],
            self.n[rows],
            None if self.propensity is None else self.propensity[rows],
        )
        known, upto = self.known[first:last], self.upto[first:last]
        return Holdout(lists, np.where(target >= 0, target - pairs.start, target), known, upto, self.trained)

    @cached_property
    def confounding(self) -> Confounding | None:
        """The test for hidden confounding; None where no item has clicks and skips at a position."""
        return detect_confounding(self.lists)

    @cached_property
    def cells(self) -> Cells:
        """The cells of its lists."""
        return self.shown().cells

    def shown(self, n: IntArray | None = None) -> ListBatch:
        """The lists as click models take them, all of them or so many of each."""
        n = self.n if n is None else n
        rows = n > 0
        return ListBatch(self.pair_context, self.items[rows].astype(np.int64), self.clicks[rows], n[rows])


def make_holdout(
    lists: ListBatch, target: IntArray, known: BoolArray | None = None, trained: ClickModel | None = None
) -> Holdout:
    """Put the lists of a holdout in order, beside the policy's list of every context.

    In each context, positions below the end of the policy's list, or of the longest logged list, earn no reward,
    neither for the policy nor for the log: there is no evidence about them. Contexts that the policy does not know
    count whole.
    """
    known = np.ones(len(target), bool) if known is None else known
    context, length = lists.list_context, lists.length
    longest = np.zeros(len(target), np.int64)
    np.maximum.at(longest, context, (lists.items >= 0).sum(axis=1))
    upto = np.where(known, np.minimum(longest, (target != -1).sum(axis=1)), longest)
    wide = np.pad(target, ((0, 0), (0, max(0, length - target.shape[1]))), constant_values=-1)[:, :length]
    keys = [*lists.clicks.T[::-1], *lists.items.T[::-1], context]
    beside = [table for table in (lists.propensity, lists.rewards) if table is not None]
    if beside or not _sorted(keys):
        order = np.lexsort([*(column for table in beside for column in table.T), *keys])
        propensity = None if lists.propensity is None else lists.propensity[order]
        rewards = None if lists.rewards is None else lists.rewards[order]
        lists = ListBatch(lists.context, lists.items[order], lists.clicks[order], lists.n[order], propensity, rewards)
    return Holdout(
        replace(lists, items=lists.items.astype(np.int32, copy=False)),
        np.where(known[:, None] & (np.arange(length) < upto[:, None]), wide, -1),
        known,
        upto,
        trained,
    )


def _sorted(keys: Sequence[NDArray[Any]]) -> bool:
    """Whether rows are as `np.lexsort` sorts them; those of the counting kernel are, and sorting takes longer."""
    rest = np.arange(len(keys[0]) - 1)  # rows that are the same as the next one so far
    for key in reversed(keys):
        one, other = key[rest], key[rest + 1]
        if np.any(one > other):
            return False
        rest = rest[one == other]
    return True
