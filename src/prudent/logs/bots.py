"""Which users or sessions are bots: they click on nearly everything, or see lists faster than people can.

Clicks of a person on the impressions of long lists are ``k ~ BetaBinomial(m; μs, (1−μ)s)``: people differ. A share π
clicks uniformly between four fifths of the impressions and all of them. μ, s and π maximize the likelihood, so that
bots do not widen what people are taken for. A user is a bot where ``k > 4m / 5`` and ``P(K ≥ k | m)`` for a person is
below `LEVEL` and below `EXPECTED` / users: in a log without bots, at most so many people are expected to be taken for
one. Where more than `MOST` of all users would be bots, nobody is: then the users of this log are like that.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, expit, gammaln, logit, logsumexp

from prudent.base.arrays import BoolArray, FloatArray, IntArray

LONG = 3
"""Items from which on a list is long: of one or two items, people may click on most."""
FASTEST = 100
"""Lists per minute that are more than a person sees, also on a page of many lists."""
LEVEL = 1e-6
"""Probability below which so many clicks are no person's."""
EXPECTED = 0.001
"""People of the whole log who may be taken for bots, in expectation."""
MOST = 0.05
"""Share of users that may be bots by their clicks."""


class Clicking(NamedTuple):
    """Distinct users: impressions in long lists, clicks on them, and how many users have as many of both."""

    shown: IntArray
    clicked: IntArray
    users: IntArray


def clicking_bots(users: Clicking) -> list[tuple[int, int]]:
    """The impressions and clicks with which a user is a bot."""
    users = Clicking(*(column[users.shown > 0] for column in users))
    eager = _eager(users)
    everybody = int(users.users.sum())
    if not eager.any():
        return []
    alpha, beta = fit_people(users)
    log_tail = log_tails(users.shown[eager], users.clicked[eager], alpha, beta)
    bots = log_tail < np.log(min(LEVEL, EXPECTED / everybody))
    if users.users[eager][bots].sum() > MOST * everybody:
        return []
    chosen = zip(users.shown[eager][bots].tolist(), users.clicked[eager][bots].tolist(), strict=True)
    return sorted(chosen)


def _eager(users: Clicking) -> BoolArray:
    return 5 * users.clicked > 4 * users.shown


def fit_people(users: Clicking) -> tuple[float, float]:
    """(α, β) of how people click, beside a share of users who click on nearly everything."""
    from scipy.optimize import minimize  # slow to import

    shown, clicked, weight = (column.astype(np.float64) for column in users)
    eager = _eager(users)
    uniform = np.where(eager, -np.log(users.shown - 4 * users.shown // 5), -np.inf)
    binomial = gammaln(shown + 1) - gammaln(clicked + 1) - gammaln(shown - clicked + 1)

    def loss(parameters: FloatArray) -> float:
        mean, strength, share = expit(parameters[0]), np.exp(parameters[1]), parameters[2]
        alpha, beta = mean * strength, (1 - mean) * strength
        person = binomial + betaln(alpha + clicked, beta + shown - clicked) - betaln(alpha, beta)
        both = np.logaddexp(np.log(expit(-share)) + person, np.log(expit(share)) + uniform)
        return -float(np.sum(weight * both))

    people = ~eager if (~eager).any() else eager
    rate = (np.sum(weight[people] * clicked[people]) + 0.5) / (np.sum(weight[people] * shown[people]) + 1)
    start = np.array([logit(rate), np.log(5.0), logit(0.01)])
    found = minimize(loss, start, method="L-BFGS-B", bounds=_LIMITS).x
    mean, strength = float(expit(found[0])), float(np.exp(found[1]))
    return mean * strength, (1 - mean) * strength


_LIMITS: Sequence[tuple[float, float]] = ((-12.0, 12.0), (-2.0, 7.0), (-12.0, 0.0))
"""Of logit μ, log s and logit π."""


def log_tails(shown: IntArray, clicked: IntArray, alpha: float, beta: float) -> FloatArray:
    """``log P(K ≥ k | m)`` of the beta-binomial distribution, for each k and m."""
    tails = np.empty(len(shown))
    for place, (m, k) in enumerate(zip(shown.tolist(), clicked.tolist(), strict=True)):
        more = np.arange(k, m + 1)
        terms = gammaln(m + 1) - gammaln(more + 1) - gammaln(m - more + 1) + betaln(alpha + more, beta + m - more)
        tails[place] = logsumexp(terms) - betaln(alpha, beta)
    return tails
