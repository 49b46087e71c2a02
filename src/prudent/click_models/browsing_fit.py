"""Examination probabilities of the user browsing model from counts: which of them share a value, and their fit.

A state is a position and the position of the last click above, 0 for none. States stand in two rows: those without a
click above, from the top down, and those below a click, by distance to it and then by position. Neighbours in a row
share a γ where they are rare, or where no item was shown often enough in them and in others.
"""

from collections.abc import Iterator

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.click_models.examination import bootstrap_em, fit_em, separate_positions
from prudent.counts.cells import Cells

RARE = 50.0
"""Clicks that a state needs for a γ of its own: those that its items would get at their own click rates.

The standard error of log γ is then about 1/7.
"""
MOST_GROUPS = 400
"""Groups of states below a click; of a log with more, those with few clicks share a γ."""
MOST_PAIRS = 10_000
"""Pairs to fit γ to. On a million lists, five times as many took three times as long for errors 10 % smaller."""
_SMOOTH = 0.01  # pseudo-observations of either kind of every θ and γ, as the default of pbm


def fit_browsing(cells: Cells, positions: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """The number of the γ that each state has, in a row for each position; these γ, and the covariance of log γ.

    Each item has one θ and each group of states one γ, so the fit is that of pbm with groups in place of positions.
    """
    group = group_states(cells, positions)
    examination, covariance = fit_em(*_most_shown(cells, group), int(group.max()) + 1, _SMOOTH)
    return group, examination, covariance


def bootstrap_browsing(
    cells: Cells, group: IntArray, examination: FloatArray, replicates: int, random: np.random.Generator
) -> Iterator[FloatArray]:
    """γ of bootstrapped logs by position and last click above, with the same groups of states."""
    below = np.tri(len(group), dtype=bool)
    start = np.zeros(int(group.max()) + 1)
    start[group[below]] = examination[below]
    for fitted in bootstrap_em(*_most_shown(cells, group), _SMOOTH, start, replicates, random):
        yield np.tril(fitted[group])


def _most_shown(cells: Cells, group: IntArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """What `_per_group` returns, of the pairs that were shown most."""
    pair, number, shown, clicked = _per_group(cells, group)
    impressions = np.bincount(pair, shown)
    if len(impressions) > MOST_PAIRS:  # those shown most
        often = np.zeros(len(impressions), bool)
        often[np.argsort(-impressions, kind="stable")[:MOST_PAIRS]] = True
        kept = often[pair]
        pair, number, shown, clicked = pair[kept], number[kept], shown[kept], clicked[kept]
    return pair, number, shown, clicked


def group_states(cells: Cells, positions: int) -> IntArray:
    """The groups of states, numbered without gaps, in a row for each position and a column for each last click above.

    Where clicks above are too rare, or states cannot be compared, each position is one group.
    """
    rate = cells.per_pair(cells.click) / np.maximum(1.0, cells.per_pair())
    state = (cells.position - 1) * positions + cells.prev
    clicks = np.bincount(state, cells.n * rate[cells.pair], minlength=positions**2).astype(float, copy=False)
    clicks = clicks.reshape(positions, positions)
    row, column = np.tril_indices(positions - 1)
    order = np.lexsort((row, row - column))
    below = row[order] + 1, column[order] + 1
    after = clicks[below]
    by_position = np.repeat(np.arange(positions)[:, None], positions, axis=1)
    if min(clicks[0, 0], after.sum()) < RARE:
        return by_position
    first, second = _pool(clicks[:, 0], RARE), _pool(after, max(RARE, after.sum() / MOST_GROUPS))
    while True:
        group = np.repeat(first[:, None], positions, axis=1)
        group[below] = first[-1] + 1 + second
        groups = int(group.max()) + 1
        pair, number, shown, _ = _per_group(cells, group)
        apart = separate_positions(pair, number, shown, groups)
        if len(apart) == 1:
            return group
        linked = np.isin(np.arange(1, groups + 1), max(apart, key=len))
        first, second = _join(first, linked[: first[-1] + 1]), _join(second, linked[first[-1] + 1 :])
        if first[-1] + second[-1] + 2 == groups:  # nothing is left to join
            return by_position


def _pool(clicks: FloatArray, enough: float) -> IntArray:
    """Numbers of groups along a row of states, each with enough clicks; the last states join those before them."""
    number, groups, gathered = np.zeros(len(clicks), np.int64), 0, 0.0
    for at, more in enumerate(clicks.tolist()):
        number[at] = groups
        gathered += more
        if gathered >= enough:
            groups, gathered = groups + 1, 0.0
    return np.minimum(number, max(0, groups - 1))


def _join(number: IntArray, linked: BoolArray) -> IntArray:
    """Groups that are not linked join the linked one before them or, at the start, the first; all if none is linked."""
    return np.asarray(np.maximum(0, np.cumsum(linked) - 1)[number])


def _per_group(cells: Cells, group: IntArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Pair, number of the group from 1, impressions and clicks of each pair and group that occur."""
    groups = int(group.max()) + 1
    key = cells.pair * groups + group[cells.position - 1, cells.prev]
    order = np.argsort(key, kind="stable")
    key, n, clicked = key[order], cells.n[order], (cells.n * cells.click)[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    pair, number = np.divmod(key[starts], groups)
    return pair, number + 1, np.add.reduceat(n, starts), np.add.reduceat(clicked, starts)
