"""Foresight: what a fitted click model says of lists that it has not seen, and how likely it makes their clicks."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.click_models import Cascade, ClickModel, PositionBased
from prudent.click_models.base import Fitted
from prudent.counts.lists import ListBatch

# --- two parts of a log -----------------------------------------------------------------------------------------------


def split_lists(shown: ListBatch, holdout: float, seed: int) -> tuple[ListBatch, ListBatch]:
    """All lists but a random share, and that share; the same ones however the rows were ordered."""
    ordered = in_order(shown)
    held_out = np.random.default_rng(seed).binomial(ordered.n, holdout)  # equal lists share a row
    return _of_n(ordered, ordered.n - held_out), _of_n(ordered, held_out)


def _of_n(shown: ListBatch, n: IntArray) -> ListBatch:
    left = n > 0
    return ListBatch(shown.context, shown.items[left], shown.clicks[left], n[left])


def in_order(shown: ListBatch) -> ListBatch:
    """The lists in an order that depends on nothing but themselves; engines give them in any."""
    order = np.argsort(_fingerprint(shown), kind="stable")
    return ListBatch(shown.context, shown.items[order], shown.clicks[order], shown.n[order])


def _fingerprint(shown: ListBatch) -> NDArray[np.uint64]:
    """A number for each list of items and clicks: position by position, the finalizer of MurmurHash3."""
    mixed = np.zeros(len(shown.items), np.uint64)
    for items, clicks in zip(shown.items.T, shown.clicks.T, strict=True):
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + (2 * items + clicks).astype(np.uint64)
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(33)
    return mixed


# --- what a model says of lists ---------------------------------------------------------------------------------------


class Told(NamedTuple):
    """The probability of a click on every item of every list; 0 below the end of a list."""

    chance: FloatArray  # P(Yₖ = 1)
    given: FloatArray  # P(Yₖ = 1 | Y₁ … Yₖ₋₁)


def tell(fitted: Fitted, attraction: FloatArray, clicks: BoolArray) -> Told:
    """What a fitted click model says, where every item of every list has its attraction."""
    parameter = fitted.parameter[: attraction.shape[1]]
    if isinstance(fitted.model, PositionBased):
        return Told(parameter * attraction, parameter * attraction)
    continuation = np.zeros(len(parameter)) if isinstance(fitted.model, Cascade) else parameter
    return Told(attraction * _read(attraction, continuation), attraction * _read(attraction, continuation, clicks))


def _read(attraction: FloatArray, continuation: FloatArray, clicks: BoolArray | None = None) -> FloatArray:
    """The probability that each position is read, without a look at the clicks or given those above it."""
    read = np.ones(attraction.shape)
    for k in range(attraction.shape[1] - 1):
        theta, here = attraction[:, k], read[:, k]
        if clicks is None:
            read[:, k + 1] = here * (1 - theta + continuation[k] * theta)
        else:
            # θ is below 1, and so is the denominator above 0.
            read[:, k + 1] = np.where(clicks[:, k], continuation[k], here * (1 - theta) / (1 - here * theta))
    return read


def foresee(model: ClickModel, train: ListBatch, test: ListBatch) -> Told:
    """What a model that is fitted to some lists says of others; pairs have the same numbers in both."""
    fitted = model.learn(train.cells, max(train.length, test.length))
    evidence = fitted.evidence(train.cells)
    theta = (evidence.positive + 1) / (evidence.examined + 2)
    return tell(fitted, of_items(theta, test), test.clicks)


def log_likelihood(told: Told, clicks: BoolArray) -> FloatArray:
    """Of every list: Σₖ log P(Yₖ | Y₁ … Yₖ₋₁)."""
    with np.errstate(divide="ignore"):  # log 0 = −∞ is what an impossible click deserves
        return np.asarray(np.log(np.where(clicks, told.given, 1 - told.given)).sum(axis=1))


def of_items(per_pair: FloatArray | BoolArray, lists: ListBatch) -> FloatArray:
    """A number per pair as one per place in each list; 0 below the end of a list."""
    return np.append(per_pair, 0.0)[lists.items]


def total(n: IntArray, of: FloatArray | BoolArray) -> FloatArray:
    """The sum over lists, each as often as it was met."""
    # Not by `@`, which goes to as many threads as there are: their number would show in the last digits.
    return np.asarray((of.T * n).T.sum(axis=0), np.float64)


def behind(best: FloatArray, other: FloatArray, n: IntArray) -> tuple[float, float | None]:
    """By how much the likelihood of one model is below that of another, per list, and the standard error of that."""
    difference = best - other
    lists = int(n.sum())
    mean = float(total(n, difference) / lists)
    spread = float(total(n, (difference - mean) ** 2))
    return mean, (spread / (lists - 1) / lists) ** 0.5 if lists > 1 else None
