"""Groups of pairs as arrays, and what the clicks of other contexts say about them.

A pair belongs to one group of each grouping, such as the host of its item, or to none. A group has a key of 64 bits.
"""

from dataclasses import dataclass

from prudent.base.arrays import BoolArray, FloatArray, IntArray

NO_GROUP = 0
"""The key of a pair that belongs to no group."""
Place = tuple[int, int, int]
"""Which of all contexts some pairs have: the keys of the first and the last, and how many pairs there are."""
NO_PLACE: Place = (0, 0, 0)


@dataclass(frozen=True, eq=False)
class Signals:
    """For each pair and grouping, the log odds of clicks on its group in other contexts, beside what was expected."""

    names: tuple[str, ...]
    values: FloatArray  # pairs × groupings; 0 where nothing is known

    def only(self, rows: IntArray | BoolArray) -> "Signals":
        """Those of some pairs."""
        return Signals(self.names, self.values[rows])


@dataclass(frozen=True, eq=False)
class Keys:
    """The groups of some pairs."""

    names: tuple[str, ...]  # of the groupings
    values: IntArray  # pairs × groupings
    alone: tuple[bool, ...]  # whether a group has at most one pair in each context
    place: Place = NO_PLACE
