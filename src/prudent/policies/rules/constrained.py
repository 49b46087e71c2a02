"""The lists that rules allow: filled from the top, of all contexts at once.

At each rank stands the item that ranking without rules would put there next, among those that the rules allow there and
with which they can still be met further down.
"""

from dataclasses import dataclass, replace

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.bounds import Scores
from prudent.click_models.evidence import Evidence
from prudent.policies.list_arrays import Lists, as_table, highest
from prudent.policies.rules.match import Marks

_UNLIMITED = 1 << 40  # items without a group


@dataclass(frozen=True)
class Limits:
    """The rules that apply, of some kinds or of all."""

    marks: Marks
    length: int
    max_moves: int | None
    keep_first: int = 0
    at_most: tuple[tuple[IntArray, int], ...] = ()  # the number of each pair's group, -1 for none, and the limit
    new_share: float = 0.0
    new: BoolArray | None = None  # of each pair, where there is a share of new items


@dataclass(frozen=True)
class _Queue:
    """Pairs in the order in which they are next, context by context."""

    row: IntArray
    context: IntArray  # from 0, without gaps
    contexts: int

    def first(self, allowed: BoolArray) -> IntArray:
        """The place in the queue of the first allowed pair of each context; its length for none."""
        none = len(self.row)
        best = np.full(self.contexts, none)
        if none:
            starts = np.flatnonzero(np.diff(self.context, prepend=-1))
            places = np.where(allowed, np.arange(none), none)
            best[self.context[starts]] = np.minimum.reduceat(places, starts)
        return best

    def only(self, kept: BoolArray) -> "_Queue":
        return replace(self, row=self.row[kept], context=self.context[kept])


def constrained_lists(
    evidence: Evidence, scores: Scores, limits: Limits, eligible: BoolArray, contexts: BoolArray
) -> tuple[Lists, IntArray]:
    """The lists of some contexts, and how many new items each lacks.

    1. Pinned items stand at their positions, or in a shorter list at its end; the first items of the incumbent list,
       where they are kept, at the top. They count in their groups.
    2. The other positions are filled from the top, the heaviest one first where a user gave the weights. Without an
       anchor, the next item is that of the highest lower bound; with one, it is the incumbent's next item, unless a
       leader beats it. Buried items come after all others.
    3. An item is allowed if no group has too many, and if the rest of the list can still have the share of new items.
    """
    number = np.cumsum(contexts) - 1
    eligible = eligible & contexts[evidence.context]

    def queue(keys: tuple[FloatArray, ...], which: BoolArray) -> _Queue:
        ordered = highest(evidence.context, keys, len(eligible), which)
        context = number[ordered.context]
        order = np.lexsort((limits.marks.buried[ordered.row], context))  # stable
        return _Queue(ordered.row[order], context[order], int(contexts.sum()))

    production, by_bound = (
        (evidence.discounted, evidence.impressions),
        (scores.lower, scores.mean, evidence.impressions),
    )
    position = _fixed(evidence, limits, eligible)
    free = eligible & (position == 0)
    anchor = scores.anchor
    main = queue(by_bound if anchor is None else production, free)
    leaders = None if anchor is None else queue(by_bound, free & anchor.leads)
    fixed = np.flatnonzero(position)
    taken = np.zeros((main.contexts, limits.length), bool)
    taken[number[evidence.context[fixed]], position[fixed] - 1] = True
    earliest = _earliest(evidence, limits, eligible) if leaders is not None else None
    places = np.argsort(taken, axis=1, kind="stable") + 1  # the free positions of each list, then the others
    groups = _Groups(limits, main, fixed, number[evidence.context[fixed]], limits.length - taken.sum(axis=1))
    chosen = np.full(taken.shape, -1)
    left, leading = np.ones(len(main.row), bool), np.ones(0 if leaders is None else len(leaders.row), bool)
    at = np.full(len(eligible), -1)
    at[main.row] = np.arange(len(main.row))
    among = np.full(len(eligible), -1)
    if leaders is not None:
        among[leaders.row] = np.arange(len(leaders.row))
    for rank in range(limits.length):
        allowed = groups.allowed(left)
        following = main.first(allowed)
        some = (following < len(main.row)) & (rank < groups.slots)
        if not some.any():
            break
        row = np.append(main.row, -1)[following]
        if leaders is not None and anchor is not None and earliest is not None and len(leaders.row):
            ready = leading & allowed[at[leaders.row]] & (earliest[leaders.row] <= places[leaders.context, rank])
            first = leaders.first(ready)
            leader = np.append(leaders.row, -1)[first]
            both = some & (leader >= 0)
            both[both] = limits.marks.buried[row[both]] | ~limits.marks.buried[leader[both]]
            beats = np.zeros(len(row), bool)
            beats[both] = scores.lower[leader[both]] > anchor.stay(row[both])
            row = np.where(beats, leader, row)
        row = row[some]
        chosen[some, rank] = row
        left[at[row]] = False
        leading[among[row][among[row] >= 0]] = False
        groups.take(at[row])
    table = _placed(evidence, chosen, position, fixed, number[evidence.context[fixed]], anchor is not None)
    context, place = np.nonzero(table >= 0)
    return Lists(table[context, place], np.flatnonzero(contexts)[context], place + 1), groups.lacking


def _fixed(evidence: Evidence, limits: Limits, eligible: BoolArray) -> IntArray:
    """The position that each pair has to have; 0 for any."""
    position = np.where(eligible, limits.marks.position, 0)
    if limits.keep_first:
        shown = eligible & (evidence.impressions > 0) & (position == 0)
        kept = highest(evidence.context, (evidence.discounted, evidence.impressions), limits.keep_first, shown)
        position[kept.row] = kept.rank
    position[position > limits.length] = 0
    return position


def _earliest(evidence: Evidence, limits: Limits, eligible: BoolArray) -> IntArray:
    """The first position that each pair may rise to."""
    earliest = np.ones(len(eligible), np.int64)
    if limits.max_moves is not None:
        every = highest(evidence.context, (evidence.discounted, evidence.impressions), len(eligible), eligible)
        earliest[every.row] = every.rank - limits.max_moves
    return earliest


class _Groups:
    """How many items of each group a list may still have, and how many new items it still needs."""

    def __init__(self, limits: Limits, main: _Queue, fixed: IntArray, of: IntArray, slots: IntArray) -> None:
        self._main = main
        self._columns = []  # of each rule: the number of each pair's group in its list, and what is left of each group
        for code, most in limits.at_most:
            rows, context = np.append(main.row, fixed), np.append(main.context, of)
            values = int(code.max(initial=-1)) + 2
            groups, inverse = np.unique(context * values + code[rows] + 1, return_inverse=True)
            left = np.where(groups % values == 0, _UNLIMITED, most)
            np.subtract.at(left, inverse[len(main.row) :], 1)
            self._columns.append((inverse[: len(main.row)], np.maximum(left, 0), groups // values))
        self.slots = slots
        self.lacking = np.zeros(main.contexts, np.int64)
        self._new: BoolArray | None = None
        if limits.new is not None:
            self._new = limits.new[main.row]
            self._unused = self._new.copy()  # new, and not in a list
            self._rest = np.minimum(slots, self._room(np.ones(len(main.row), bool))[0])  # items to choose
            size = np.bincount(of, minlength=main.contexts) + self._rest
            wanted = np.ceil(limits.new_share * size - 1e-9).astype(np.int64)
            wanted -= np.bincount(of, limits.new[fixed], minlength=main.contexts).astype(np.int64)
            wanted = np.maximum(wanted, 0)
            self._needed = np.minimum(wanted, np.minimum(self._rest, self._room(self._unused)[0]))
            self.lacking = wanted - self._needed

    def _room(self, which: BoolArray) -> tuple[IntArray, BoolArray]:
        """How many of these pairs each list can take, and whether one pair less of its group would make it fewer."""
        main = self._main
        if not self._columns:
            return np.bincount(main.context[which], minlength=main.contexts), np.zeros(len(main.row), bool)
        ((group, left, context),) = self._columns
        held = np.bincount(group[which], minlength=len(left))
        room = np.bincount(context, np.minimum(held, left), minlength=main.contexts).astype(np.int64)
        return room, ((left <= held) & (held > 0))[group]

    def allowed(self, left: BoolArray) -> BoolArray:
        """Whether each pair of the queue may be the next."""
        allowed = left.copy()
        for group, room, _ in self._columns:
            allowed &= room[group] > 0
        if self._new is not None:
            context = self._main.context
            room, tight = self._room(self._unused)
            spare = (self._rest > self._needed)[context]
            allowed &= self._new | (spare & (room[context] - tight >= self._needed[context]))
        return allowed

    def take(self, places: IntArray) -> None:
        """These pairs of the queue, at most one per context, are chosen."""
        for group, left, _ in self._columns:
            np.subtract.at(left, group[places], 1)
        if self._new is not None:
            context = self._main.context[places]
            self._unused[places] = False
            self._rest[context] -= 1
            self._needed[context] -= self._new[places] & (self._needed[context] > 0)


def _placed(
    evidence: Evidence, chosen: IntArray, position: IntArray, fixed: IntArray, of: IntArray, anchored: bool
) -> IntArray:
    """The lists as a table: fixed items at their positions, the others where the click model has them by rank."""
    contexts, length = chosen.shape
    pinned = as_table(Lists(fixed, of, position[fixed]), contexts, length)
    number = (pinned >= 0).sum(axis=1)
    size = (chosen >= 0).sum(axis=1) + number
    table = np.full(chosen.shape, -1)
    behind = np.cumsum((pinned >= 0)[:, ::-1], axis=1)[:, ::-1]  # fixed items from here on
    context, place = np.nonzero(pinned >= 0)
    table[context, np.minimum(place, size[context] - behind[context, place])] = pinned[context, place]
    fitted = evidence.fitted
    for items in np.unique(size[size > 0]):
        lists = np.flatnonzero(size == items)
        # Zeros: positions that a user weighted differ, and the ranks are settled.
        settled = anchored and fitted.parameters
        order = np.arange(items) if settled else fitted.place(np.zeros((1, items)))[0]  # the position of each rank
        free = table[np.ix_(lists, order)] < 0
        context, rank = np.nonzero(free)
        table[lists[context], order[rank]] = chosen[lists[context], np.cumsum(free, axis=1)[context, rank] - 1]
    return table
