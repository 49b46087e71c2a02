"""The cascade model."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from prudent.click_models.base import ClickModel, Evidence, any_success, click_models, number_items
from prudent.counts import Counted


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

    def evidence(self, counts: Counted) -> Evidence:
        """First clicks against impressions with no click above or on them."""
        # App. A prints n₋ without (1 − Y), so that a click is a failure too, and n₊ with later clicks; we follow
        # its words: "examined and clicked", "examined, but did not click".
        cells = counts.cells
        examined = cells.prev == 0
        return Evidence(
            context=cells.context,
            item=number_items(cells.context),
            positive=cells.per_pair(examined & cells.click).astype(float),
            negative=cells.per_pair(examined & ~cells.click).astype(float),
            impressions=cells.per_pair(),
            weight=np.ones(cells.positions),
            model=self,
        )
