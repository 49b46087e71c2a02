"""The cascade doubly robust estimator."""

from dataclasses import dataclass, field, replace
from math import inf
from typing import ClassVar

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.click_models import ClickModel, click_models
from prudent.evaluation.direct import Direct, direct
from prudent.evaluation.estimators.base import (
    Columns,
    Estimator,
    check_support,
    estimators,
    where_supported,
)
from prudent.evaluation.estimators.prefix_ips import NO_STEPS
from prudent.evaluation.holdout import HeldOut, Reward
from prudent.evaluation.weighting import Matched, by_frequency, prefix_propensities
from prudent.policies.baselines.base import check_clip


@estimators.register("dr")
@dataclass(frozen=True)
class DoublyRobust(Estimator):
    """``Σₖ w₁:ₖ (rₖ − Qₖ) + w₁:ₖ₋₁ Qₖ``, the cascade doubly robust estimator (Kiyohara et al. 2022).

    w₁:ₖ = 1{A[:k] = B[:k]}/P(A[:k]), and Qₖ is what a click model expects from position k on. Where P is a frequency,
    that is in each context what was observed as far down as held-out lists agree with the policy's, and below that
    what the click model expects. Right if what happens at a position depends on the items above it and not on those
    below, and either lists agree all the way down or the click model is right about the rest. ``clip`` is the largest
    weight: above it, the click model is trusted rather than a few lists that stand for many.
    """

    words: ClassVar[str] = "doubly robust"

    model: ClickModel = field(default_factory=lambda: click_models.parse("auto"))
    clip: float = inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", click_models.resolve(self.model))  # a spelling is welcome
        check_clip(self.clip)

    def columns(self, held: HeldOut, reward: Reward) -> Columns:
        """What was observed, and what is expected below."""
        fit = direct(held, self.model, reward)
        steps = prefix_propensities(held)
        if steps is not None:
            return self._corrected(held, reward, fit, steps)
        # With weights N/m the sum comes down to this: of what position k earned, a = min(1, M·m/N) is taken as it was
        # observed, and the rest as expected. Where nothing is clipped, a is 1 as far down as lists agree, and 0 below.
        seen = np.zeros(held.target.shape)
        value, gain, weight = np.zeros(held.contexts), np.zeros(len(held.n)), np.ones(len(held.n))
        for k in range(held.length):
            match = held.depth > k
            seen[:, k] = np.minimum(1, min(self.clip, held.n.sum()) * held.per_context(held.n * match) / held.logged)
            part = by_frequency(held, match, held.reward_at(k, reward), inf)
            value += seen[:, k] * part.value
            gain += seen[held.context, k] * part.gain
            weight = np.where(part.found[held.context], np.minimum(part.weight, self.clip), weight)
        missing = (held.target < -1) & (seen < 1)  # what the model is asked about, it needs to have seen
        supported = held.known & ~missing.any(axis=1)
        check_support(held, supported, "all items of the policy's list, wherever they stand")
        value += fit.value(1 - seen)
        gain += fit.value(1 - seen)[held.context] + fit.moves(1 - seen)
        columns = self._with_doubt(held, reward, fit, Matched(value, gain, weight, supported), 1 - seen)
        note = " ".join(filter(None, [columns.note, NO_STEPS if held.propensity is not None else ""]))
        return replace(columns, note=note)

    def _corrected(self, held: HeldOut, reward: Reward, fit: Direct, steps: FloatArray) -> Columns:
        """With known propensities: the model's word, and what lists that agree say against it."""
        met = np.stack([held.per_context(held.n * (held.depth > k)) > 0 for k in range(held.length)], axis=1)
        alone = np.where(met, 0.0, 1.0)  # where the model's word is all there is, it has to have seen the item
        supported = held.known & ~(held.target < -1).any(axis=1)
        check_support(held, supported, "all items of the policy's list, wherever they stand")
        togo = np.cumsum(fit.expected[:, ::-1], axis=1)[:, ::-1]
        gain, before = np.zeros(len(held.n)), np.ones(len(held.n))
        for k in range(held.length):
            match = held.depth > k
            here = np.where(match, np.minimum(self.clip, 1 / np.where(match, steps[:, k], 1.0)), 0.0)
            expected = togo[held.context, k]
            gain += here * (held.reward_at(k, reward) - expected) + before * expected
            before = np.where(k < held.size[held.context], here, before)
        value = held.per_context(held.n * gain) / np.maximum(held.logged, 1)
        return self._with_doubt(held, reward, fit, Matched(value, gain + fit.moves(alone), before, supported), alone)

    def _with_doubt(self, held: HeldOut, reward: Reward, fit: Direct, matched: Matched, alone: FloatArray) -> Columns:
        """The columns, with what is not known of what the model alone has a word on."""
        columns = where_supported(held, reward, matched)
        part_of = held.logged * matched.found / held.n[columns.counted].sum()
        extra = float(np.sum(part_of**2 * fit.shrinking(alone)))
        extra += part_of.sum() ** 2 * fit.shared(alone, matched.found)
        assumed = fit.assumed and bool(alone[matched.found].any())
        return replace(columns, extra=extra, assumed=assumed, note=fit.note)
