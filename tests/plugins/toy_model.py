"""A third-party click model in one file: PBM whose examination also depends on whether anything above was clicked."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray
from prudent.base.errors import NotIdentifiedError
from prudent.click_models.base import ClickModel, FittedModel
from prudent.click_models.evidence import Evidence, make_evidence
from prudent.click_models.rewards import Reward
from prudent.counts.cells import Cells
from prudent.counts.lists import ListBatch

ROUNDS = 100


@dataclass(frozen=True)
class Distracted(ClickModel):
    """``P(Yₖ = 1 | clicks above) = θ pₖ`` before the first click of a list, ``θ qₖ`` after it.

    ``examination`` sets p and q of each position, as in ``distracted(examination=[[1, 0.5], [0.7, 0.4]])``.
    """

    examination: tuple[tuple[float, float], ...] = ()

    unit: ClassVar[str] = "expected clicks"
    reward: ClassVar[Reward] = "clicks"

    def fit(self, cells: Cells, positions: int, lists: ListBatch | None = None) -> "FittedDistracted":
        """Alternate θ = ΣY/Σx and p = ΣY/Σθ."""
        if self.examination:
            return FittedDistracted(self, positions, np.array(self.examination)[:positions])
        if not cells.click.any():
            raise NotIdentifiedError("distracted is not identified: there is no click.")
        state = 2 * (cells.position - 1) + (cells.prev > 0)
        clicked = np.bincount(state[cells.click], cells.n[cells.click], minlength=2 * positions)
        clicks = cells.per_pair(cells.click)
        examination = np.full(2 * positions, 0.5)
        for _ in range(ROUNDS):
            expected = np.bincount(cells.pair, cells.n * examination[state], minlength=cells.pairs)
            theta = ((clicks + 0.1) / (expected + 1))[cells.pair]
            examination = (clicked + 0.1) / (np.bincount(state, cells.n * theta, minlength=2 * positions) + 0.2)
            examination = np.clip(examination / examination.max(), 0.01, 1)
        return FittedDistracted(self, positions, examination.reshape(positions, 2), learned=True)

    def typical(self, positions: int) -> "FittedDistracted":
        """As set, or users who examine less after a click."""
        if self.examination:
            return FittedDistracted(self, positions, np.array(self.examination))
        before = np.arange(1, positions + 1) ** -0.5
        return FittedDistracted(self, positions, np.stack([before, 0.6 * before], axis=1))


@dataclass(frozen=True, eq=False)
class FittedDistracted(FittedModel):
    examination: FloatArray  # a row for each position: before the first click, and after it

    settings: ClassVar[tuple[str, ...]] = ("examination",)

    def evidence(self, cells: Cells) -> Evidence:
        x = self.examination[cells.position - 1, (cells.prev > 0).astype(int)]
        clicks = cells.per_pair(cells.click)
        expected, squares = (
            np.bincount(cells.pair, cells.n * power, minlength=cells.pairs).astype(float) for power in (x, x * x)
        )
        negative = np.maximum(0.0, expected - clicks)
        return make_evidence(self, cells, clicks, negative, expected=expected, squares=squares)

    def predict(self, attraction: FloatArray, clicks: BoolArray | None = None) -> FloatArray:
        length = attraction.shape[-1]
        x = np.zeros((length, 2))
        x[: self.positions] = self.examination[:length]
        if clicks is not None:
            after = np.asarray(np.cumsum(clicks, axis=-1) - clicks > 0, int)
            return np.asarray(attraction * x[np.arange(length), after])
        predicted, none_yet = np.zeros(attraction.shape), np.ones(attraction.shape[:-1])
        for k in range(length):
            predicted[..., k] = attraction[..., k] * (none_yet * x[k, 0] + (1 - none_yet) * x[k, 1])
            none_yet = none_yet * (1 - attraction[..., k] * x[k, 0])
        return predicted
