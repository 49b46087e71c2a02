"""Held-out likelihood: what a click model, fitted to some lists, predicts of others."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.numerics.beta_binomial import fit_beta
from prudent.click_models.base import ClickModel
from prudent.counts.lists import ListBatch

# --- two parts of a log -----------------------------------------------------------------------------------------------


def split_lists(lists: ListBatch, holdout: float, seed: int) -> tuple[ListBatch, ListBatch]:
    """All lists but a random share, and that share; the same ones however the rows were ordered."""
    ordered = in_order(lists)
    held_out = np.random.default_rng(seed).binomial(ordered.n, holdout)  # equal lists share a row
    return _with_n(ordered, ordered.n - held_out), _with_n(ordered, held_out)


def _with_n(lists: ListBatch, n: IntArray) -> ListBatch:
    left = n > 0
    return ListBatch(lists.context, lists.items[left], lists.clicks[left], n[left])


def in_order(lists: ListBatch) -> ListBatch:
    """The lists in an order that depends on nothing but themselves; engines return them in any."""
    order = np.argsort(_fingerprint(lists), kind="stable")
    return ListBatch(lists.context, lists.items[order], lists.clicks[order], lists.n[order])


def _fingerprint(lists: ListBatch) -> NDArray[np.uint64]:
    """A hash of the items and clicks of each list: position by position, the finalizer of MurmurHash3."""
    mixed = np.zeros(len(lists.items), np.uint64)
    for items, clicks in zip(lists.items.T, lists.clicks.T, strict=True):
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + (2 * items + clicks).astype(np.uint64)
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(33)
    return mixed


# --- predictions ------------------------------------------------------------------------------------------------------


class Prediction(NamedTuple):
    """The probability of a click on every item of every list; 0 below the end of a list."""

    alone: FloatArray  # P(Yₖ = 1)
    conditional: FloatArray  # P(Yₖ = 1 | Y₁ … Yₖ₋₁)
    doubt: str = ""  # why the training lists contradict the model


def predict_lists(model: ClickModel, train: ListBatch, test: ListBatch) -> Prediction:
    """Fit a model to some lists and predict the clicks of others; pairs have the same numbers in both.

    θ of an item is its posterior mean under the Beta prior that is fitted to the training lists. A uniform prior would
    decide the comparison: it puts ½ on items never seen, which rarely get that many clicks, and models differ in how
    many examinations it takes to get away from there.
    """
    fitted = model.fit(train.cells, max(train.length, test.length), train)
    evidence = fitted.evidence(train.cells)
    theta = per_item(posterior_mean(evidence.positive, evidence.negative), test)
    if evidence.satisfaction is not None:
        fitted = fitted.satisfied_by(per_item(evidence.satisfaction, test))
    return Prediction(fitted.predict(theta), fitted.predict(theta, test.clicks), fitted.doubt)


def posterior_mean(positive: FloatArray, negative: FloatArray) -> FloatArray:
    """(α + n₊)/(α + β + n) of every pair, with the prior of greatest likelihood."""
    alpha, beta = fit_beta(positive, negative)
    return np.asarray((positive + alpha) / (positive + negative + alpha + beta))


def log_likelihood(conditional: FloatArray, clicks: BoolArray) -> FloatArray:
    """Σₖ log P(Yₖ | Y₁ … Yₖ₋₁) of every list."""
    with np.errstate(divide="ignore"):  # log 0 = −∞: a click that the model excludes
        return np.asarray(np.log(np.where(clicks, conditional, 1 - conditional)).sum(axis=1))


def per_item(per_pair: FloatArray | BoolArray, lists: ListBatch) -> FloatArray:
    """A number per pair as one per place in each list; 0 below the end of a list."""
    return np.append(per_pair, 0.0)[lists.items]


def total(n: IntArray, values: FloatArray | BoolArray) -> FloatArray:
    """The sum over lists, each as often as it was logged."""
    # Not by `@`, which goes to as many threads as there are: their number would show in the last digits.
    return np.asarray((values.T * n).T.sum(axis=0), np.float64)


def mean_difference(best: FloatArray, other: FloatArray, n: IntArray) -> tuple[float, float | None]:
    """By how much one log-likelihood per list exceeds another, and the standard error of that."""
    difference = best - other
    lists = int(n.sum())
    mean = float(total(n, difference) / lists)
    spread = float(total(n, (difference - mean) ** 2))
    return mean, (spread / (lists - 1) / lists) ** 0.5 if lists > 1 else None
