"""The choice between models that the log itself makes."""

import warnings
from dataclasses import dataclass
from typing import ClassVar

from prudent.click_models.base import ClickModel, Evidence, any_success, click_models
from prudent.click_models.dependent_click import DependentClick
from prudent.click_models.position_based import PositionBased
from prudent.counts import Counted
from prudent.errors import NotIdentifiedError, PrudentWarning


@click_models.register("auto")
@dataclass(frozen=True)
class Auto(ClickModel):
    """``pbm`` where the log identifies it, else ``dcm``, with a warning that says why.

    On real clicks pbm predicts held-out clicks better than cm and dcm; but it needs items that move between
    positions.
    """

    unit: ClassVar[str] = "the value of the model chosen"
    value = staticmethod(any_success)  # of no consequence: what is valued is the evidence, which names its model

    def evidence(self, counts: Counted) -> Evidence:
        """The evidence of the model chosen; it names that model."""
        try:
            return PositionBased().evidence(counts)
        except NotIdentifiedError as reason:
            warnings.warn(f"{reason} Using dcm instead.", PrudentWarning, stacklevel=3)
            return DependentClick().evidence(counts)
