"""What every estimator offers, and how weighted lists become a value."""

from dataclasses import dataclass, field
from math import isfinite
from typing import ClassVar, Protocol

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray
from prudent.base.spec import Registry
from prudent.click_models import ClickModel, click_models
from prudent.click_models.rewards import EarnedReward
from prudent.evaluation.holdout import CannotTellError, Holdout
from prudent.evaluation.weighting import Matched

FREQUENCIES = "Propensities are frequencies in the holdout."
NOT_A_SUM = "any-click is not a sum over items and positions."


@dataclass(frozen=True, eq=False)
class Contributions:
    """A value, and what each list of the holdout contributes to it.

    The value is that of the counted lists, as is the logged reward it is compared with. A bootstrap replicate
    reweights the lists: Σ gain / Σ share.
    """

    value: float
    counted: BoolArray  # this and the next two: one entry per list
    gain: FloatArray
    share: FloatArray | BoolArray
    support: float  # share of the lists that the policy changes
    effective_sample_size: float | None = None
    largest_weight: float | None = None
    extra_variance: float = 0.0  # variance of the value that resampling lists does not show
    max_gain: float | None = None  # set where gains are independent and in [0, max_gain], as Bernstein's bound needs
    shrinkage: float | None = (
        None  # by how much shrinking θ may change the reward at places that change, relative to it
    )
    doubt: str = ""  # why the click model that it depends on is not to be trusted
    note: str = ""  # a remark on the value


class Estimator(Protocol):
    """An estimator of the value of lists that were not shown; its settings are its fields."""

    words: ClassVar[str]  # its name in plain words

    def contributions(self, held: Holdout, reward: EarnedReward) -> Contributions:
        """The value of the policy's lists on the holdout, list by list; `CannotTellError` without support."""
        ...


@dataclass(frozen=True)
class ModelEstimator(Estimator):
    """An estimator that depends on a click model, given as such or spelled."""

    model: ClickModel = field(default_factory=lambda: click_models.parse("auto"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", click_models.resolve(self.model))


estimators: Registry[Estimator] = Registry(
    "estimator", "prudent.estimators", "contributions", "prudent.evaluation.estimators"
)


def check_support(held: Holdout, supported: BoolArray, what: str) -> None:
    """Stop where no context of the policy has support."""
    if not held.known.any():
        raise CannotTellError("The policy has no list for any context of this log.")
    if not (supported & held.known).any():
        raise CannotTellError(f"No context has holdout lists with {what}.")


def where_supported(held: Holdout, reward: EarnedReward, matched: Matched, weighted: bool = True) -> Contributions:
    """Contributions of the contexts with support, and of those for which the policy has no list."""
    kept = ~held.known
    contexts = (matched.supported & held.known) | kept
    counted, own = contexts[held.context], kept[held.context]
    earned = held.reward(reward)
    value = np.where(kept, held.per_context(held.n * earned), held.logged * matched.value)
    gain = np.where(own, earned, np.where(counted, matched.gain, 0.0))
    lists = held.logged[contexts].sum()
    # Contexts that keep their lists are no evidence about the policy's, however many they are.
    weights = summarize_weights(held, np.where(counted & ~own, matched.weight, 0.0)) if weighted else (None, None)
    return Contributions(
        float(value[contexts].sum() / lists),
        counted,
        gain,
        counted,
        share_supported(held, matched.supported),
        *weights,
    )


def everywhere(held: Holdout, reward: EarnedReward, matched: Matched, clip: float) -> Contributions:
    """Contributions of all lists: with logged propensities, a context without a matching list earns 0."""
    kept = ~held.known
    own = kept[held.context]
    gain = np.where(own, held.reward(reward), matched.gain)
    every = np.ones(len(held.n))
    return Contributions(
        float(np.sum(held.n * gain) / held.n.sum()),
        every > 0,
        gain,
        every,
        share_supported(held, matched.supported),
        *summarize_weights(held, np.where(own, 0.0, matched.weight)),
        max_gain=clip * highest_reward(held, reward) if isfinite(clip) else None,
    )


def share_supported(held: Holdout, supported: BoolArray) -> float:
    """The share of lists in contexts with support, of those that the policy changes; 1 where it changes none.

    Lists that stay as they are would support any policy, whatever it does elsewhere.
    """
    changed = held.per_context(held.n * ~held.stays)
    return float(changed[supported].sum() / changed.sum()) if changed.any() else 1.0


def summarize_weights(held: Holdout, weight: FloatArray) -> tuple[float, float]:
    """The effective sample size (Σw)²/Σw², and the largest weight."""
    total, squares = float(np.sum(held.n * weight)), float(np.sum(held.n * weight * weight))
    return (total * total / squares if squares else 0.0), float(np.abs(weight).max(initial=0.0))


def highest_reward(held: Holdout, reward: EarnedReward) -> float:
    """The largest reward of a list."""
    return float(held.upto.max(initial=0)) if reward == "clicks" else 1.0
