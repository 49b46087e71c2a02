"""What finding the impressions that users read below last clicks takes and gives; see `click_models/tails.py`."""

from typing import Literal, NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray

BY: tuple[Literal["position", "attraction", "item"], ...] = ("position", "attraction", "item")
"""What it depends on whether users go on after a click; the kernel has these as numbers."""


class Users(NamedTuple):
    """Users who read a list from the top and may stop after every item."""

    tolerance: float  # of parameters at rest
    unclicked: float  # P(they go on after an item that they do not click)
    by: Literal["position", "attraction", "item"]
    # And after one that they click: for each position; or for items that nobody and that everybody would click, and
    # linear in θ between them; or times t, the probability that a click on the item does not satisfy.
    clicked: FloatArray
    start: float = 0.0  # t before the first round
    prior: tuple[float, float] = (0.0, 0.0)  # α and β of the distribution of 1 − t over items


class Settled(NamedTuple):
    """The parameters of every pair, and what was read there."""

    parameters: FloatArray  # in a row for each pair: θ, and t where items have their own
    clicks: FloatArray  # of each pair, as the next
    examined: FloatArray
    chance: FloatArray  # ρ of every impression in a tail, in the order of cells
    unread: FloatArray  # of every last click, in that order
    rest: bool  # whether all contexts came to rest

    @property
    def negative(self) -> FloatArray:
        """Examinations without a click."""
        return np.maximum(0.0, self.examined - self.clicks)

    @property
    def estimate(self) -> FloatArray:
        """Clicks per examination, with half a click more."""
        return np.asarray((self.clicks + 0.5) / (self.clicks + self.negative + 1))
