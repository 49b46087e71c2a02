"""The direct method: a click model's word for it."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from prudent.click_models import ClickModel, click_models
from prudent.evaluation.direct import direct
from prudent.evaluation.estimators.base import Columns, Estimator, check_support, estimators, where_supported
from prudent.evaluation.holdout import HeldOut, Reward
from prudent.evaluation.weighting import Matched


@estimators.register("dm")
@dataclass(frozen=True)
class DirectMethod(Estimator):
    """The expected reward under a click model that is fitted to the held-out lists (the direct method).

    Needs no list, nor an item at its position, that was shown as the policy has it; only its items, wherever they
    stood. It is as right as the click model is. The interval has the uncertainty of clicks, of attractions given few
    of them, and of position parameters.
    """

    words: ClassVar[str] = "click model alone"

    model: ClickModel = field(default_factory=lambda: click_models.parse("auto"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", click_models.resolve(self.model))  # a spelling is welcome

    def columns(self, held: HeldOut, reward: Reward) -> Columns:
        """The expected rewards of lists."""
        fit = direct(held, self.model, reward)
        check_support(held, fit.supported, "all items of the policy's list, wherever they stand")
        everything = np.ones(held.target.shape)
        value = fit.value(everything)
        gain = value[held.context] + fit.moves(everything)
        columns = where_supported(held, reward, Matched(value, gain, gain, fit.supported), weighted=False)
        lists = held.n[columns.counted].sum()
        weight = held.logged * fit.supported / lists
        extra = float(np.sum(weight**2 * fit.shrinking(everything)))
        extra += weight.sum() ** 2 * fit.shared(everything, fit.supported)
        return replace(columns, extra=extra, assumed=fit.assumed, note=fit.note)
