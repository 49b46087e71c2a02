"""The incumbent list: what production shows most."""

import numpy as np

from prudent.counts.cells import Cells
from prudent.policies.ranking import Lists


def incumbent_lists(cells: Cells, length: int) -> Lists:
    """The incumbent list of each context: at every position, the item most often shown there and not placed above.

    Counts do not keep whole lists; this one is made of their margins.
    """
    starts = np.flatnonzero(np.diff(cells.pair, prepend=-1) | np.diff(cells.position, prepend=-1))
    pair, position, shown = cells.pair[starts], cells.position[starts], np.add.reduceat(cells.n, starts)
    by_position = np.argsort(position, kind="stable")
    ends = np.cumsum(np.bincount(position, minlength=1))
    taken = np.zeros(cells.pairs, bool)
    rows, ranks = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for place in range(1, min(length, len(ends) - 1) + 1):
        at = by_position[ends[place - 1] : ends[place]]
        at = at[~taken[pair[at]]]
        if not len(at):
            continue
        new = np.diff(cells.context[pair[at]], prepend=-1) > 0
        most = np.maximum.reduceat(shown[at], np.flatnonzero(new))[np.cumsum(new) - 1]
        # Cells are sorted by name within a context: the first of a tie has the smaller name.
        best = pair[at[shown[at] == most]]
        best = best[np.diff(cells.context[best], prepend=-1) > 0]
        taken[best] = True
        rows.append(best)
        ranks.append(np.full(len(best), place))
    row, rank = np.concatenate(rows), np.concatenate(ranks)
    order = np.argsort(cells.context[row] * (length + 1) + rank)
    return Lists(row[order], cells.context[row[order]], rank[order])
