"""The choice between models that the log itself makes."""

import warnings
from dataclasses import dataclass
from typing import ClassVar

from prudent.base.errors import NotIdentifiedError, PrudentWarning
from prudent.click_models.base import ClickModel, Fitted, any_success, click_models
from prudent.click_models.dependent_click import DependentClick
from prudent.click_models.position_based import PositionBased
from prudent.counts.cells import Cells


@click_models.register("auto")
@dataclass(frozen=True)
class Auto(ClickModel):
    """``pbm`` where the log identifies it, else ``dcm``, with a warning that says why.

    On real clicks pbm predicts held-out clicks better than cm and dcm; but it needs items that move between
    positions.
    """

    unit: ClassVar[str] = "the value of the model chosen"
    # The rest is of no consequence: what counts and values is the model chosen.
    trials = DependentClick.trials
    weight = DependentClick.weight
    value = staticmethod(any_success)

    def learn(self, cells: Cells, positions: int) -> Fitted:
        """Fit the model chosen, and name it."""
        try:
            return PositionBased().learn(cells, positions)
        except NotIdentifiedError as reason:
            warnings.warn(f"{reason} Using dcm instead.", PrudentWarning, stacklevel=4)
            return DependentClick().learn(cells, positions)
