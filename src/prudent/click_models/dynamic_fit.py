"""What contexts share in the dynamic Bayesian network, from whole lists by expectation-maximisation."""

from typing import NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.click_models.reading import Onward
from prudent.click_models.satisfaction import LastClicks, fit_satisfaction
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


class Dynamic(NamedTuple):
    """The fitted parameters."""

    perseverance: float  # γ
    satisfaction: tuple[float, float]  # the mean of s over items, and their correlation
    error: float  # standard error of γ


class Parameters(NamedTuple):
    """Of pairs, and γ."""

    attraction: FloatArray
    unsatisfied: FloatArray  # t = 1 − s
    perseverance: float

    @classmethod
    def of(cls, flat: FloatArray) -> "Parameters":
        """From one array."""
        pairs = len(flat) // 2
        return cls(flat[:pairs], flat[pairs:-1], float(flat[-1]))

    @property
    def flat(self) -> FloatArray:
        """As one array."""
        return np.concatenate([self.attraction, self.unsatisfied, [self.perseverance]])


class Expectations(NamedTuple):
    """Where users stopped, and whether the last click satisfied them."""

    stops: Stops
    satisfied: FloatArray  # of each list with a click


def expect(lists: WholeLists, at: Parameters) -> Expectations:
    """Given all clicks."""
    onward = Onward(np.array(at.perseverance), at.perseverance * lists.places(at.unsatisfied))
    stops = lists.stops(lists.places(at.attraction), onward)
    return Expectations(stops, (1 - at.unsatisfied[lists.end_items]) / stops.silent[lists.end_rows])


def step(
    lists: WholeLists, at: Parameters, attraction: Prior, satisfaction: Prior, perseverance: float | None
) -> Parameters:
    """One round: expected counts over expected trials, with these Beta priors; γ too, unless it is set."""
    stops, satisfied = expect(lists, at)
    examined = lists.surely_of + lists.read_of(stops)
    theta = (lists.clicks_of + attraction[0]) / (examined + sum(attraction))
    ended = np.bincount(lists.end_items, lists.end_n * (1 - satisfied), minlength=lists.pairs)
    unsatisfied = (lists.followed_of + ended + satisfaction[1]) / (lists.clicks_of + sum(satisfaction))
    gamma = perseverance
    if gamma is None:
        on, could = lists.after_skips(stops)
        could += lists.clicks_above + float(np.sum(lists.end_n * lists.end_more * (1 - satisfied)))
        gamma = share(on + lists.after_clicks(stops), could)
    return Parameters(theta, unsatisfied, gamma)


def fit_dynamic(lists: WholeLists, perseverance: float | None) -> Dynamic:
    """γ, unless it is set, and how satisfaction is distributed over items."""
    prior: Prior = (1.0, 1.0)
    attraction = prior_of(lists.clicks_of, lists.surely_of - lists.clicks_of)
    rate = (lists.clicks_of + attraction[0]) / (lists.surely_of + sum(attraction))
    at = Parameters(rate, np.full(lists.pairs, 0.5), 0.8 if perseverance is None else perseverance)
    for tolerance in TOLERANCES:

        def advance(flat: FloatArray, attraction: Prior = attraction, prior: Prior = prior) -> FloatArray:
            return step(lists, Parameters.of(flat), attraction, prior, perseverance).flat

        at = Parameters.of(solve(advance, at.flat, tolerance))
        stops, _ = expect(lists, at)
        skips = lists.surely_of - lists.clicks_of + lists.read_of(stops)
        attraction = prior_of(lists.clicks_of, skips)
        chance = at.perseverance * (1 - stops.below[lists.end_rows])
        found = fit_satisfaction(lists.followed_of, LastClicks(lists.end_items, lists.end_n, chance))
        prior = found.alpha, found.beta
    error = 0.0 if perseverance is not None else _error(lists, at, attraction, prior)
    return Dynamic(at.perseverance, found.of_items, error)


def _error(lists: WholeLists, at: Parameters, attraction: Prior, satisfaction: Prior) -> float:
    """The standard error of γ."""
    stops, satisfied = expect(lists, at)
    theta, t, gamma = lists.places(at.attraction), lists.places(at.unsatisfied), at.perseverance
    skipped = (lists.above & ~lists.clicks) | lists.tail
    read = np.where(lists.tail, stops.read, 1.0)
    after = np.concatenate([read[:, 1:], np.zeros((len(read), 1))], axis=1)
    could = np.where(lists.more & skipped, read, 0.0) + (lists.followed & lists.more)
    on = np.where(lists.more & skipped, after, 0.0) + (lists.followed & lists.more)
    rows = lists.end_rows
    place = lists.last[rows]
    could[rows, place] = np.where(lists.end_more, 1 - satisfied, 0.0)
    on[rows, place] = np.where(lists.end_more, after[rows, place], 0.0)
    slope = (on / gamma - (could - on) / max(1 - gamma, 1e-6)).sum(axis=1)
    by_theta = np.where(lists.clicks, 1 / np.maximum(theta, 1e-9), np.where(skipped, -read / (1 - theta), 0.0))
    by_t = np.where(lists.followed, 1 / np.maximum(t, 1e-9), 0.0)
    s = 1 - at.unsatisfied[lists.end_items]
    by_t[rows, place] = (1 - satisfied) / (1 - s) - satisfied / s
    nuisances = [Nuisance(by_theta, beta_variance(*attraction)), Nuisance(by_t, beta_variance(*satisfaction))]
    return float(standard_errors(lists, [slope], nuisances)[0])
