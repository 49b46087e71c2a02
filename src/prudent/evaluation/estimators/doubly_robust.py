"""The cascade doubly robust estimator."""

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.base.spec import check_clip
from prudent.click_models.rewards import EarnedReward
from prudent.evaluation.direct import Direct, Slopes, direct
from prudent.evaluation.estimators.base import (
    Contributions,
    ModelEstimator,
    check_support,
    estimators,
    where_supported,
)
from prudent.evaluation.estimators.ips import WHOLE_ONLY
from prudent.evaluation.holdout import Holdout
from prudent.evaluation.weighting import Matched, by_frequency, prefix_propensities

_ITEMS = "all items of the policy's list, at any position"


@estimators.register("dr")
@dataclass(frozen=True)
class DoublyRobust(ModelEstimator):
    """``Σₖ w₁:ₖ (rₖ − Qₖ) + w₁:ₖ₋₁ Qₖ``, the cascade doubly robust estimator (Kiyohara et al. 2022).

    w₁:ₖ = 1{A[:k] = B[:k]}/P(A[:k]), and Qₖ is the reward that a click model expects from position k on. Where P is a
    frequency, the value of a context is the observed reward as far down as holdout lists match the policy's, and the
    model's expectation below. Unbiased if the clicks at a position depend on the items above it and not on those
    below, and either lists match all the way down or the click model is right about the rest. ``clip`` is the largest
    weight: above it, the click model replaces the few lists that would stand for many.
    """

    words: ClassVar[str] = "doubly robust"

    clip: float = inf

    def __post_init__(self) -> None:
        super().__post_init__()
        check_clip(self.clip)

    def contributions(self, held: Holdout, reward: EarnedReward) -> Contributions:
        """Observed rewards, and expected ones below them."""
        fit = direct(held, self.model, reward)
        steps = prefix_propensities(held)
        if steps is not None:
            return self._by_propensity(held, reward, fit, steps)
        # With weights N/m the sum simplifies: a share a = min(1, M·m/N) of the reward of position k is observed, the
        # rest is expected. Without a clip, a is 1 as far down as lists match, and 0 below.
        seen = np.zeros(held.target.shape)
        value, gain, weight = np.zeros(held.contexts), np.zeros(len(held.n)), np.ones(len(held.n))
        for k in range(held.length):
            match = held.depth > k
            seen[:, k] = np.minimum(1, min(self.clip, held.n.sum()) * held.per_context(held.n * match) / held.logged)
            part = by_frequency(held, match, held.reward_at(k, reward), inf)
            value += seen[:, k] * part.value
            gain += seen[held.context, k] * part.gain
            weight = np.where(part.supported[held.context], np.minimum(part.weight, self.clip), weight)
        missing = (held.target < -1) & (seen < 1)  # the model has no estimate for an item it has not seen
        supported = held.known & ~missing.any(axis=1)
        check_support(held, supported, _ITEMS)
        modelled = 1 - seen
        expected, slope = fit.value(modelled), fit.slopes(modelled)
        value += expected
        gain += expected[held.context] + fit.moves(slope)
        matched = Matched(value, gain, weight, supported)
        contributions = self._with_model_variance(held, reward, fit, matched, modelled, slope)
        note = " ".join(filter(None, [contributions.note, WHOLE_ONLY if held.propensity is not None else ""]))
        return replace(contributions, note=note)

    def _by_propensity(self, held: Holdout, reward: EarnedReward, fit: Direct, steps: FloatArray) -> Contributions:
        """With logged propensities: the model's expectation, corrected by the lists that match."""
        seen = np.stack([held.per_context(held.n * (held.depth > k)) > 0 for k in range(held.length)], axis=1)
        modelled = np.where(seen, 0.0, 1.0)
        supported = held.known & ~(held.target < -1).any(axis=1)
        check_support(held, supported, _ITEMS)
        onward = np.cumsum(fit.expected[:, ::-1], axis=1)[:, ::-1]
        gain, before = np.zeros(len(held.n)), np.ones(len(held.n))
        for k in range(held.length):
            match = held.depth > k
            weight = np.where(match, np.minimum(self.clip, 1 / np.where(match, steps[:, k], 1.0)), 0.0)
            expected = onward[held.context, k]
            gain += weight * (held.reward_at(k, reward) - expected) + before * expected
            before = np.where(k < held.size[held.context], weight, before)
        value = held.per_context(held.n * gain) / np.maximum(held.logged, 1)
        slope = fit.slopes(modelled)
        matched = Matched(value, gain + fit.moves(slope), before, supported)
        return self._with_model_variance(held, reward, fit, matched, modelled, slope)

    def _with_model_variance(
        self,
        held: Holdout,
        reward: EarnedReward,
        fit: Direct,
        matched: Matched,
        modelled: FloatArray,
        slope: Slopes,
    ) -> Contributions:
        """The contributions, with the variance of what only the model estimates."""
        part = where_supported(held, reward, matched)
        weight = held.logged * matched.supported / held.n[part.counted].sum()
        variance = float(np.sum(weight**2 * fit.shrinking(slope)))
        variance += weight.sum() ** 2 * fit.shared(modelled, matched.supported)
        doubt = fit.doubt if modelled[matched.supported].any() else ""
        shrinkage = fit.shrinkage(modelled, matched.supported)
        return replace(part, extra_variance=variance, shrinkage=shrinkage, doubt=doubt, note=fit.note)
