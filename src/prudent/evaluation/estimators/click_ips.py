"""Inverse propensity scoring of clicks."""

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

import numpy as np

from prudent.base.spec import check_clip
from prudent.click_models.likelihood import posterior_mean
from prudent.click_models.rewards import COLUMN, EarnedReward
from prudent.evaluation.direct import direct
from prudent.evaluation.estimators.base import (
    NOT_A_SUM,
    Contributions,
    ModelEstimator,
    check_support,
    estimators,
    where_supported,
)
from prudent.evaluation.holdout import CannotTellError, Holdout
from prudent.evaluation.weighting import Matched, by_frequency, sum_positions


@estimators.register("cips")
@dataclass(frozen=True)
class ClickIps(ModelEstimator):
    """Observed clicks, weighted by how much more likely they are in the policy's list.

    ``Σᵢ mean over lists with item i of yᵢ · P(click on i | policy's list) / P(click on i | logged list)``, with
    probabilities under a click model fitted to the holdout. Lists need not match, so that it works where production
    always shows the same list; items have to be shown, at any position. Under ``pbm`` the ratio is that of two
    examination probabilities and free of attraction: nothing is shrunk, and clicks far down weigh much. ``clip`` is the
    largest ratio.
    """

    words: ClassVar[str] = "inverse click probabilities"

    clip: float = inf

    def __post_init__(self) -> None:
        super().__post_init__()
        check_clip(self.clip)

    def contributions(self, held: Holdout, reward: EarnedReward) -> Contributions:
        """Items, each with the lists that show it."""
        if reward == "any-click":
            raise CannotTellError(NOT_A_SUM)
        fit = direct(held, self.model, reward)
        check_support(held, fit.supported, "all items of the policy's list, at any position")
        evidence = fit.fitted.evidence(held.shown().cells)
        theta = np.append(posterior_mean(evidence.positive, evidence.negative), [0.0, 0.0])  # −2 and −1: no item
        earned = held.rewards if reward == COLUMN else held.clicks
        ours, logged = fit.fitted.predict(theta[held.target]), fit.fitted.predict(theta[held.items])

        def item(k: int) -> Matched:
            wanted = held.target[held.context, k]
            at = (held.items == wanted[:, None]) & (wanted >= 0)[:, None]
            ratio = np.divide(ours[held.context, k][:, None], logged, out=np.zeros(at.shape), where=at & (logged > 0))
            return by_frequency(held, at.any(axis=1), np.sum(earned * np.minimum(ratio, self.clip), axis=1), inf)

        matched = sum_positions(held, item)
        part = where_supported(held, reward, matched)
        weight = (held.logged * matched.supported).sum() / held.n[part.counted].sum()
        shared = fit.shared(np.ones(held.target.shape), matched.supported)
        return replace(part, extra_variance=float(weight**2 * shared), doubt=fit.doubt, note=fit.note)
