"""The direct method: the expected reward under a click model."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from prudent.click_models.rewards import EarnedReward
from prudent.evaluation.direct import direct
from prudent.evaluation.estimators.base import Contributions, ModelEstimator, check_support, estimators, where_supported
from prudent.evaluation.holdout import Holdout
from prudent.evaluation.weighting import Matched


@estimators.register("dm")
@dataclass(frozen=True)
class DirectMethod(ModelEstimator):
    """The expected reward under a click model fitted to the holdout (direct method).

    Needs neither the policy's lists nor its items at their positions in the holdout, only its items at any position.
    It is as accurate as the click model. The interval covers the uncertainty of clicks, of attractions estimated from
    few clicks, and of position parameters.
    """

    words: ClassVar[str] = "click model alone"

    def contributions(self, held: Holdout, reward: EarnedReward) -> Contributions:
        """The expected rewards of lists."""
        fit = direct(held, self.model, reward)
        check_support(held, fit.supported, "all items of the policy's list, at any position")
        everything = np.ones(held.target.shape)
        value = fit.value(everything)
        slope = fit.slopes(everything)
        gain = value[held.context] + fit.moves(slope)
        part = where_supported(held, reward, Matched(value, gain, gain, fit.supported), weighted=False)
        weight = held.logged * fit.supported / held.n[part.counted].sum()
        variance = float(np.sum(weight**2 * fit.shrinking(slope)))
        variance += weight.sum() ** 2 * fit.shared(everything, fit.supported)
        shrinkage = fit.shrinkage(everything, fit.supported)
        return replace(part, extra_variance=variance, shrinkage=shrinkage, doubt=fit.doubt, note=fit.note)
