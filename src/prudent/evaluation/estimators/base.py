"""What every estimator offers, and how weighted lists become a value."""

from dataclasses import dataclass
from math import isfinite
from typing import ClassVar, Protocol

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray
from prudent.base.spec import Registry
from prudent.evaluation.holdout import CannotTellError, HeldOut, Reward
from prudent.evaluation.weighting import Matched

FREQUENCIES = "Propensities are frequencies in the held-out lists."


@dataclass(frozen=True, eq=False)
class Columns:
    """A value, and what each held-out list contributes to it.

    The value is that of the lists that are counted, and so is the logged reward beside it. A replicate of the
    bootstrap weighs each list anew: Σ gain / Σ share.
    """

    value: float
    counted: BoolArray  # this and the next two: one entry per list
    gain: FloatArray
    share: FloatArray
    support: float  # share of all lists
    effective_lists: float | None = None
    largest_weight: float | None = None
    extra: float = 0.0  # variance of the value that no replicate shows
    most: float | None = None  # gains are independent, none is below 0, and none above this: a bound can rest on it
    assumed: bool = False  # rests on a click model that the lists could not be asked about
    note: str = ""  # what to know about the number


class Estimator(Protocol):
    """A way to the value of lists that were not shown; its settings are its fields."""

    words: ClassVar[str]  # what it is, for who does not know its short name

    def columns(self, held: HeldOut, reward: Reward) -> Columns:
        """What this estimator makes of held-out lists, or `CannotTellError`."""
        ...


estimators: Registry[Estimator] = Registry("estimator", "prudent.estimators", "columns")


def check_support(held: HeldOut, supported: BoolArray, what: str) -> None:
    """Stop where no context of the policy has support."""
    if not held.known.any():
        raise CannotTellError("The policy has a list for none of the contexts in this log.")
    if not (supported & held.known).any():
        raise CannotTellError(f"No context has held-out lists with {what}.")


def where_supported(held: HeldOut, reward: Reward, matched: Matched, weighted: bool = True) -> Columns:
    """Columns over the contexts with support, and those that keep their lists."""
    kept = ~held.known
    contexts = (matched.found & held.known) | kept
    counted, own = contexts[held.context], kept[held.context]
    earned = held.reward(reward)
    value = np.where(kept, held.per_context(held.n * earned), held.logged * matched.value)
    gain = np.where(own, earned, np.where(counted, matched.gain, 0.0))
    lists = held.logged[contexts].sum()
    # Contexts that keep their lists say nothing about the policy's, however many they are.
    weights = weigh(held, np.where(counted & ~own, matched.weight, 0.0)) if weighted else (None, None)
    return Columns(
        float(value[contexts].sum() / lists),
        counted,
        gain,
        counted.astype(np.float64),
        float(lists / held.logged.sum()),
        *weights,
    )


def everywhere(held: HeldOut, reward: Reward, matched: Matched, most: float) -> Columns:
    """Columns over all lists: where propensities are known, a context in which nothing agrees counts as nothing."""
    kept = ~held.known
    own = kept[held.context]
    gain = np.where(own, held.reward(reward), matched.gain)
    every = np.ones(len(held.n))
    return Columns(
        float(np.sum(held.n * gain) / held.n.sum()),
        every > 0,
        gain,
        every,
        float(held.logged[matched.found | kept].sum() / held.logged.sum()),
        *weigh(held, np.where(own, 0.0, matched.weight)),
        most=most if isfinite(most) else None,
    )


def weigh(held: HeldOut, weight: FloatArray) -> tuple[float, float]:
    """Lists that would say as much if all had the same weight, (Σw)²/Σw², and the largest weight."""
    total, squares = float(np.sum(held.n * weight)), float(np.sum(held.n * weight * weight))
    return (total * total / squares if squares else 0.0), float(np.abs(weight).max(initial=0.0))


def highest_reward(held: HeldOut, reward: Reward) -> float:
    """What a list can earn at most."""
    return float(held.upto.max(initial=0)) if reward == "clicks" else 1.0
