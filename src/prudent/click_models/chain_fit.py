"""What contexts share in the click chain model, from whole lists by expectation-maximisation."""

from typing import NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.click_models.reading import Onward
from prudent.click_models.whole_lists import (
    TOLERANCES,
    Nuisance,
    Prior,
    Stops,
    WholeLists,
    beta_variance,
    prior_of,
    share,
    solve,
    standard_errors,
)


class Parameters(NamedTuple):
    """Attraction of pairs, and α₁, α₂ and α₃."""

    attraction: FloatArray
    alpha: FloatArray

    @classmethod
    def of(cls, flat: FloatArray) -> "Parameters":
        """From one array."""
        return cls(flat[:-3], flat[-3:])

    @property
    def flat(self) -> FloatArray:
        """As one array."""
        return np.concatenate(self)


def after_click(attraction: FloatArray, alpha: FloatArray) -> FloatArray:
    """P(the user goes on after a click): α₃ if the item is relevant, which has probability a, and α₂ if it is not."""
    return np.asarray(alpha[1] * (1 - attraction) + alpha[2] * attraction)


class Expectations(NamedTuple):
    """Where users stopped, and whether the items that they clicked are relevant."""

    stops: Stops
    followed: FloatArray  # P(relevant) of each pair whose click is followed by another
    relevant: FloatArray  # of each list with a click: P(the last one is relevant)
    relevant_on: FloatArray  # and the user went on
    other_on: FloatArray  # P(it is not relevant, and the user went on)


def expect(lists: WholeLists, at: Parameters) -> Expectations:
    """Given all clicks."""
    theta = lists.places(at.attraction)
    stops = lists.stops(theta, Onward(at.alpha[:1], after_click(theta, at.alpha)))
    a, below, silent = at.attraction[lists.end_items], stops.below[lists.end_rows], stops.silent[lists.end_rows]
    _, other, relevant = at.alpha
    return Expectations(
        stops,
        relevant * at.attraction / np.maximum(after_click(at.attraction, at.alpha), 1e-12),
        a * (1 - relevant * (1 - below)) / silent,
        a * relevant * below / silent,
        (1 - a) * other * below / silent,
    )


def step(lists: WholeLists, at: Parameters, prior: Prior) -> Parameters:
    """One round: expected counts over expected trials, with this Beta prior of attraction."""
    found = expect(lists, at)
    examined = lists.surely_of + lists.read_of(found.stops)
    ended = np.bincount(lists.end_items, lists.end_n * found.relevant, minlength=lists.pairs)
    relevant = lists.followed_of * found.followed + ended
    theta = (lists.clicks_of + relevant + prior[0]) / (examined + lists.clicks_of + sum(prior))
    n = lists.end_n * lists.end_more
    yes, no = (float(np.sum(lists.followed_of * part)) for part in (found.followed, 1 - found.followed))
    on, could = lists.after_skips(found.stops)
    return Parameters(
        theta,
        np.array(
            [
                share(on, could),
                share(no + np.sum(n * found.other_on), no + np.sum(n * (1 - found.relevant))),
                share(yes + np.sum(n * found.relevant_on), yes + np.sum(n * found.relevant)),
            ]
        ),
    )


def fit_chain(lists: WholeLists) -> tuple[FloatArray, FloatArray]:
    """α₁, α₂ and α₃, and their standard errors."""
    prior = prior_of(lists.clicks_of, lists.surely_of - lists.clicks_of)
    at = Parameters((lists.clicks_of + prior[0]) / (lists.surely_of + sum(prior)), np.array([0.8, 0.8, 0.5]))
    for tolerance in TOLERANCES[:2] * 2:  # α₂ and α₃ creep where clicks hardly tell them apart

        def advance(flat: FloatArray, prior: Prior = prior) -> FloatArray:
            return step(lists, Parameters.of(flat), prior).flat

        at = Parameters.of(solve(advance, at.flat, tolerance))
        skips = lists.surely_of - lists.clicks_of + lists.read_of(expect(lists, at).stops)
        prior = prior_of(lists.clicks_of, skips)
    return at.alpha, _errors(lists, at, prior)


def _errors(lists: WholeLists, at: Parameters, prior: Prior) -> FloatArray:
    """Standard errors of α₁, α₂ and α₃."""
    found = expect(lists, at)
    theta, alpha = lists.places(at.attraction), np.clip(at.alpha, 1e-6, 1 - 1e-6)
    skipped = (lists.above & ~lists.clicks) | lists.tail
    read = np.where(lists.tail, found.stops.read, 1.0)
    after = np.concatenate([read[:, 1:], np.zeros((len(read), 1))], axis=1)
    rows, place = lists.end_rows, lists.last[lists.end_rows]
    relevant = np.where(lists.followed, lists.places(found.followed), 0.0)

    def slope(on: FloatArray, could: FloatArray, probability: float) -> FloatArray:
        inside = lists.more
        return np.asarray(np.where(inside, on / probability - (could - on) / (1 - probability), 0.0).sum(axis=1))

    on, could = np.zeros((2, 3, *theta.shape))
    on[0], could[0] = np.where(skipped, after, 0.0), np.where(skipped, read, 0.0)
    on[1] = could[1] = np.where(lists.followed, 1 - relevant, 0.0)
    on[2] = could[2] = relevant
    on[1, rows, place], could[1, rows, place] = found.other_on, 1 - found.relevant
    on[2, rows, place], could[2, rows, place] = found.relevant_on, found.relevant
    relevant[rows, place] = found.relevant
    odds = np.maximum(theta * (1 - theta), 1e-9)
    by_theta = np.where(
        lists.clicks, 1 / np.maximum(theta, 1e-9) + (relevant - theta) / odds, np.where(skipped, -read / (1 - theta), 0)
    )
    scores = [slope(on[k], could[k], float(alpha[k])) for k in range(3)]
    return standard_errors(lists, scores, [Nuisance(np.asarray(by_theta), beta_variance(*prior))])
