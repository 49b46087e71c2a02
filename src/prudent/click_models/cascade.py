"""The cascade model."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.click_models.base import ClickModel, Fitted, any_success, click_models
from prudent.counts.cells import Cells


@click_models.register("cm")
@dataclass(frozen=True)
class Cascade(ClickModel):
    """The user reads from the top and stops at the first click (Sec. 5.1).

    An item is examined when nothing above it was clicked. The value of a list is the probability of a click,
    ``V = 1 − ∏ (1 − θ)``, Eq. (3). Later clicks of one list say nothing here: on logs with several clicks per
    list this model throws much away.
    """

    unit: ClassVar[str] = "probability of a click"
    value = staticmethod(any_success)

    def learn(self, cells: Cells, positions: int) -> Fitted:
        """There is nothing to learn: whoever is at a position has come from the one above."""
        return Fitted(self, np.ones(positions))

    def trials(self, cells: Cells, parameter: FloatArray) -> tuple[FloatArray, FloatArray]:
        """First clicks against impressions with no click above or on them."""
        # App. A prints n₋ without (1 − Y), so that a click is a failure too, and n₊ with later clicks; we follow
        # its words: "examined and clicked", "examined, but did not click".
        examined = cells.prev == 0
        return cells.per_pair(examined & cells.click), cells.per_pair(examined & ~cells.click)

    def weight(self, parameter: FloatArray) -> FloatArray:
        """All positions weigh the same."""
        return parameter
