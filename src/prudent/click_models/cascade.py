"""The cascade model."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.click_models.base import ClickModel, FittedModel, click_models
from prudent.click_models.evidence import Evidence, make_evidence
from prudent.click_models.positions import by_position, top_down
from prudent.click_models.reading import FittedReader, Onward
from prudent.click_models.rewards import Reward
from prudent.counts.cells import Cells
from prudent.counts.lists import ListBatch


@click_models.register("cm")
@dataclass(frozen=True)
class Cascade(ClickModel):
    """The user reads from the top and stops at the first click (Sec. 5.1).

    An item is examined when nothing above it was clicked. The value of a list is the probability of a click,
    ``V = 1 − ∏ (1 − θ)``, Eq. (3). Later clicks of one list are ignored: on logs with several clicks per list this
    model discards much of the evidence.

    Where it loses: where users click several items. Lists learned from such logs lack up to 2.8 points more of the
    best value than those of the true model (docs/wrong-models.md).
    """

    unit: ClassVar[str] = "probability of a click"
    reward: ClassVar[Reward] = "any-click"
    precedence: ClassVar[int] = 3

    def fit(self, cells: Cells, positions: int, lists: ListBatch | None = None) -> "FittedCascade":
        """There is nothing to fit: every user who gets to a position comes from the one above."""
        return FittedCascade(self, positions)

    def typical(self, positions: int) -> "FittedCascade":
        """The same."""
        return FittedCascade(self, positions)


@dataclass(frozen=True, eq=False)
class FittedCascade(FittedReader):
    """Reading from the top ends with the first click."""

    def evidence(self, cells: Cells) -> Evidence:
        """First clicks against impressions with no click above or on them."""
        # App. A prints n₋ without (1 − Y), so that a click is a failure too, and n₊ with later clicks; we follow
        # its words: "examined and clicked", "examined, but did not click".
        codes = cells.codes
        examined = codes.prev == 0
        return make_evidence(self, cells, *cells.fold(examined & codes.click, examined & ~codes.click))

    def onward(self, attraction: FloatArray) -> Onward:
        """Always after an item that is not clicked, and never after a click."""
        known = by_position(np.ones(max(0, self.positions - 1)), attraction.shape[-1], beyond=0.0)
        return Onward(known, np.zeros(attraction.shape[-1]))

    def examined(self, attraction: FloatArray, clicks: BoolArray) -> FloatArray:
        """1 down to the first click; the model excludes any below it."""
        return FittedModel.examined(self, attraction, clicks)

    def value(self, attraction: FloatArray, reward: Reward | None = None) -> FloatArray:
        """1 − ∏ (1 − θ); a list has one click at most, so all rewards are the same."""
        known = by_position(np.ones(self.positions), attraction.shape[-1], beyond=0.0)
        return np.asarray(1 - np.prod(1 - attraction * known, axis=-1))

    def place(self, scores: FloatArray) -> IntArray:
        """From the top down: no order is better than another."""
        return top_down(scores)
