"""The simplified dynamic Bayesian network model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from prudent.click_models.base import ClickModel, click_models
from prudent.click_models.dynamic_bayesian import UNIT, FittedDynamicBayesian, fit_or_take, read_satisfaction
from prudent.click_models.rewards import Reward
from prudent.counts.cells import Cells
from prudent.counts.lists import ListBatch


@click_models.register("sdbn")
@dataclass(frozen=True)
class SimplifiedDynamicBayesian(ClickModel):
    """``dbn`` whose users read on until they are satisfied: γ = 1 (Chapelle and Zhang 2009, Sec. 4.2).

    The usual estimates, clicks over impressions down to the last click and the share of clicks that are the last,
    leave out users who read on below their last click and clicked nothing, and so overestimate attraction as
    ``dcm(tail=truncate)`` does. Here such users are summed over, as in ``dbn``. A list without a click was read to its
    end. ``satisfaction`` is that of ``dbn``, and so is the value: the probability that the user is satisfied.

    Where it loses: where users leave unsatisfied, as in ``ccm``, or skip positions, as in ``pbm``; up to 1.2 points
    of value to the true model in simulated logs (docs/wrong-models.md).
    """

    satisfaction: tuple[float, ...] = ()

    unit: ClassVar[str] = UNIT
    reward: ClassVar[Reward] = "satisfied"
    precedence: ClassVar[int] = 6
    whole_lists: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "satisfaction", read_satisfaction(self.satisfaction))

    def curves(self, fitted: Mapping[str, Any]) -> dict[str, list[float | None]]:
        """None: no parameter depends on the position."""
        return {}

    def fit(self, cells: Cells, positions: int, lists: ListBatch | None = None) -> FittedDynamicBayesian:
        """The distribution of s, as set or from whole lists."""
        return fit_or_take(self, positions, lists, 1.0, self.satisfaction)

    def typical(self, positions: int) -> FittedDynamicBayesian:
        """Half of the clicks satisfy."""
        return FittedDynamicBayesian.of(self, positions, 1.0, self.satisfaction or (0.5,))
