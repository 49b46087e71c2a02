"""Whether logged propensities can be those of the logged lists: importance weights then have the mean 1.

Two checks, of whole lists and of their first k items.

1. Among logged lists: for two lists i and j of a context, ``E[1{Aᵢ = Aⱼ}/P(Aⱼ)] = Σ_a P(a) = 1``. Whatever list i is,
   it can be shown, so that the mean is 1 and not less. The mean over pairs of each context is a U-statistic; contexts
   weigh as much as they have lists.
2. Of the policy: ``E[1{A = B}/P(A)]`` is 1 where its list B can be shown, else 0, so that the mean is at most 1.

A standard error estimated from lists that rarely coincide is too small where none does. So its square is at least the
variance that right propensities would have, ``2/(N − 1) · Σ_a (1 − P(a))`` for each list, where the sum is estimated
by the mean of 1/P − 1. A mean of coincidences as rare as Poisson's events is then off by 4 standard errors as rarely. A
few lists of tiny propensity would hide all others: the first check is also made with lists that count less then.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.text import number
from prudent.evaluation.holdout import Holdout

MOST_ERRORS = 4.0
"""Standard errors by which mean weights may differ from 1."""


POWERS = (0.0, 0.5, 1.0)
"""With which powers of its propensity a list counts; with 1, shares of equal lists are compared with propensities."""


class MeanWeight(NamedTuple):
    """A mean of importance weights, which should be 1."""

    lists: str  # whose weights
    mean: float
    standard_error: float

    @property
    def errors(self) -> float:
        """Standard errors from 1."""
        off = self.mean - 1
        return (
            off / self.standard_error if self.standard_error else 0.0 if abs(off) < 1e-9 else np.copysign(np.inf, off)
        )


def check_propensities(held: Holdout) -> str:
    """Why logged propensities cannot be those of the logged lists; empty where they can, or there are none."""
    if held.propensity is None:
        return ""
    means = (*logged_weights(held, held.propensity), *policy_weights(held, held.propensity))
    worst = max(means, key=lambda one: abs(one.errors), default=None)
    if worst is None or abs(worst.errors) <= MOST_ERRORS:
        return ""
    return (
        f"these are not propensities of the logged lists: the mean importance weight of {worst.lists} is "
        f"{number(worst.mean)} (standard error {number(worst.standard_error, 2)}) instead of 1. Log the probability of "
        "each list given its context, or leave out the propensities"
    )


def logged_weights(held: Holdout, propensities: FloatArray) -> Iterator[MeanWeight]:
    """The mean weight of logged lists that equal another one down to each position.

    A propensity may or may not include the probability that a list is so long: the mean is that of all lists of a
    context or of those that are long enough, whichever is closer to 1.
    """
    length = (held.items >= 0).sum(axis=1)
    starts = np.diff(held.context, prepend=-1) > 0  # lists are sorted: those with the same first items are neighbours
    for k in range(held.length):
        starts[1:] |= held.items[1:, k] != held.items[:-1, k]
        group = np.cumsum(starts) - 1
        propensity = propensities[np.arange(len(held.n)), np.minimum(length - 1, k)]
        long = length > k
        for power in POWERS:
            means = [
                _pairs(held, group, propensity, inside, power)
                for inside in ([long] if long.all() else [long, np.ones(len(long), bool)])
            ]
            found = [MeanWeight(_prefix(k, held), *mean) for mean in means if mean is not None]
            if found:
                yield min(found, key=lambda one: abs(one.errors))


def _pairs(
    held: Holdout, group: IntArray, propensity: FloatArray, inside: BoolArray, power: float
) -> tuple[float, float] | None:
    """The mean of 1{Aᵢ = Aⱼ}/P(Aⱼ) over pairs of these lists, weighted by a power of P(Aᵢ), and its standard error.

    Contexts in which a propensity is not known, or with a single list, are left out.
    """
    known = held.per_context(inside & np.isnan(propensity)) == 0
    inside = inside & (known & (held.per_context(held.n * inside) > 1))[held.context]
    if not inside.any():
        return None
    n, context, group, propensity = held.n[inside], held.context[inside], group[inside], propensity[inside]
    inverse, factor = 1 / propensity, propensity**power
    others = np.bincount(context, n)[context] - 1
    weights = np.bincount(group, n * inverse)[group] - inverse  # of lists equal to this one, without itself
    equal = np.bincount(group, n * factor)[group] - factor
    every = np.bincount(context, n * factor)[context] - factor
    own = factor * (weights / others - 1)
    # Each list is one of a pair in two ways: its influence on the sum is the sum of both.
    influence = own + (equal * inverse - every) / others
    expected = np.sum(n * (2 * factor**2 * (inverse - 1) / others + (factor - (every + factor) / (others + 1)) ** 2))
    total, variance = np.sum(n * factor), max(float(expected), float(np.sum(n * influence**2)))
    return 1 + float(np.sum(n * own) / total), float(np.sqrt(variance) / total)


def policy_weights(held: Holdout, propensities: FloatArray) -> Iterator[MeanWeight]:
    """The mean weight of lists that match the policy's down to each position, where it is above 1."""
    for k in range(held.length):
        match, inside = held.depth > k, held.known[held.context] & (held.size[held.context] > k)
        known = held.per_context(match & np.isnan(propensities[:, k])) == 0
        inside &= known[held.context]
        weight = np.where(match, 1 / np.where(match & inside, propensities[:, k], 1.0), 0.0)[inside]
        n = held.n[inside]
        lists = n.sum()
        if lists and np.sum(n * weight) > lists:
            error = np.sqrt(np.sum(n * (weight - 1) ** 2)) / lists
            mean = float(np.sum(n * weight) / lists)
            yield MeanWeight(f"{_prefix(k, held)} of the policy's lists", mean, float(error))


def _prefix(k: int, held: Holdout) -> str:
    return "the first item" if k == 0 else "whole lists" if k + 1 == held.length else f"the first {k + 1} items"
