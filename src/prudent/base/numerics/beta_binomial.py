"""The beta-binomial likelihood with covariates, and its maximum by damped Newton steps.

``n₊ ~ BetaBinomial(n; μs, (1−μ)s)`` with ``logit μ = b₀ + b·z + offset``: the model behind every fitted prior.
"""

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple, Self

import numpy as np
from scipy.special import expit, logit

from prudent.base.arrays import FloatArray, IntArray

# Sums below are numpy's, not products of matrices: those go to as many threads as there are, whose number then
# shows in the last digits, and burn twice the time on arrays this narrow.

LOG_STRENGTH = (-2.0, 7.0)
_CHEAP_ROWS = 20_000  # rows on which a fit costs next to nothing
_COEFFICIENT = 15.0  # beyond any click rate and slope; only makes a log without clicks come to an end


class Terms(NamedTuple):
    """Log-likelihood at one point and its derivatives."""

    value: float
    by_eta: FloatArray  # per row, by η = b₀ + b·z
    by_log_strength: FloatArray  # per row, by log s
    gradient: FloatArray
    hessian: FloatArray


class Rows(NamedTuple):
    """The likelihood, and its derivatives row by row, by η = logit μ and by log s."""

    value: float
    by_eta: FloatArray
    by_log_strength: FloatArray
    eta_eta: FloatArray
    eta_log: FloatArray
    log_log: FloatArray


class BetaBinomial:
    """Likelihood of n₊ of n under Beta(μs, (1−μ)s), logit μ = b₀ + b·z + offset; the parameters are b₀, b, log s."""

    def __init__(
        self,
        positive: FloatArray,
        negative: FloatArray,
        columns: Sequence[FloatArray] = (),
        offset: FloatArray | float = 0.0,
    ) -> None:
        self.positive, self.negative, self.columns, self.offset = positive, negative, columns, offset
        # log Γ(a + n)/Γ(a) is 0 at n = 0, and many items have no click: skip those rows.
        self.clicked, self.skipped = np.flatnonzero(positive > 0), np.flatnonzero(negative > 0)
        self.sizes, self.size_of = np.unique(positive + negative, return_inverse=True)

    def shifted(self, by: FloatArray) -> Self:
        """The same likelihood with more added to logit μ; the arrays are shared."""
        other = copy(self)
        other.offset = self.offset + by
        return other

    def terms(self, parameters: FloatArray) -> Terms:
        """Sums over rows of what `rows` finds."""
        value, by_eta, by_log_strength, eta_eta, eta_log, log_log = self.rows(parameters)
        design: list[FloatArray | np.float64] = [np.float64(1), *self.columns]
        gradient = [np.sum(by_eta * column) for column in design]
        cross = [np.sum(eta_log * column) for column in design]
        block = [[np.sum(eta_eta * one * other) for other in design] for one in design]
        return Terms(
            value,
            by_eta,
            by_log_strength,
            np.array([*gradient, np.sum(by_log_strength)]),
            np.array([*([*row, end] for row, end in zip(block, cross, strict=True)), [*cross, np.sum(log_log)]]),
        )

    def rows(self, parameters: FloatArray) -> Rows:
        """With a = μs and c = (1−μ)s: chain rule from derivatives by a, c and s to those by η and log s.

        Without covariates and offsets, η, a and c are the same for all rows, and one number each.
        """
        eta = clip_logit(parameters[0] + combine(parameters[1:-1], self.columns) + self.offset)
        strength = float(np.exp(parameters[-1]))
        mu = expit(eta)
        a, c = mu * strength, expit(-eta) * strength
        value_a, a1, a2 = rise(a, self.positive, self.clicked)
        value_c, c1, c2 = rise(c, self.negative, self.skipped)
        everywhere = np.arange(self.sizes.size)
        value_s, s1, s2 = rise(strength, self.sizes, everywhere)
        slope = a * (1 - mu)  # da/dη = −dc/dη
        by_eta = slope * (a1 - c1)
        by_log_strength = a * a1 + c * c1 - strength * s1[self.size_of]
        eta_eta = slope**2 * (a2 + c2) + (1 - 2 * mu) * by_eta
        eta_log = by_eta + slope * (a * a2 - c * c2)
        log_log = by_log_strength + a**2 * a2 + c**2 * c2 - strength**2 * s2[self.size_of]
        value = float(np.sum(value_a + value_c - value_s[self.size_of]))
        return Rows(value, by_eta, by_log_strength, eta_eta, eta_log, log_log)

    def maximum(self, start: FloatArray, *, near: bool = False) -> tuple[FloatArray, Terms]:
        """The parameters of greatest likelihood within the limits, and the terms there, by damped Newton steps.

        The likelihood is not concave everywhere: a step is damped (Levenberg-Marquardt) until the likelihood
        rises. A handful of passes replace the dozens of a quasi-Newton method. From a start that is not `near` the
        maximum, the first steps are on every tenth row: they need not be exact.
        """
        high = np.array([_COEFFICIENT] * (start.size - 1) + [LOG_STRENGTH[1]])
        low = np.array([-_COEFFICIENT] * (start.size - 1) + [LOG_STRENGTH[0]])
        here = np.clip(start, low, high)
        if self.positive.size > _CHEAP_ROWS and not near:
            few = slice(None, None, 10)
            columns = [column[few] for column in self.columns]
            offset = self.offset[few] if isinstance(self.offset, np.ndarray) else self.offset
            here, _ = type(self)(self.positive[few], self.negative[few], columns, offset).maximum(here)
        at = self.terms(here)
        damping = 1e-6
        for _ in range(200):
            free = ~((here <= low) & (at.gradient < 0) | (here >= high) & (at.gradient > 0))
            information = -at.hessian[np.ix_(free, free)]
            # The 1e-3 keeps a direction without information, like s when no item is examined twice, where it is.
            damped = information + damping * np.diag(np.abs(np.diag(information)) + 1e-3)
            if free.any() and np.linalg.eigvalsh(damped)[0] <= 0:
                damping = max(10 * damping, 1e-3)
                continue
            step = np.zeros_like(here)
            step[free] = np.linalg.solve(damped, at.gradient[free])
            if np.sum(step * at.gradient) < 1e-8:  # twice what is left to gain
                break
            there = np.clip(here + step / max(1.0, float(np.abs(step).max()) / 2), low, high)
            new = self.terms(there)
            if new.value > at.value:
                here, at, damping = there, new, max(damping / 100, 1e-9)
            else:
                damping = max(10 * damping, 1e-3)
        return here, at


def clip_logit(eta: FloatArray | float) -> FloatArray:
    """η within limits where neither μ nor 1 − μ rounds to 0."""
    return np.clip(eta, -30, 30)


def rise(a: FloatArray | float, n: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log Γ(a + n)/Γ(a) with its first two derivatives by a, in these rows; 0 in the others, where n = 0.

    One a stands for that of every row, and costs half as much.
    """
    value, first, second = np.zeros((3, n.size))
    low = a[rows] if isinstance(a, np.ndarray) else np.array([a])
    high = low + n[rows]
    alike = None if isinstance(a, np.ndarray) else _log_gamma(low)
    for start in range(0, rows.size, _CHUNK):
        some = slice(start, start + _CHUNK)
        below = _log_gamma(low[some]) if alike is None else alike
        value[rows[some]], first[rows[some]], second[rows[some]] = _log_gamma(high[some]) - below
    return value, first, second


_CHUNK = 8_192  # rows at a time: arrays of 64 kB stay in the cache
_SHIFT = 7


def _log_gamma(x: FloatArray) -> FloatArray:
    """Log Γ, ψ and ψ′ to 13 digits, by recurrence and Stirling's series: a sixth of the cost of three of scipy's."""
    product, inverse, square = np.ones_like(x), np.zeros_like(x), np.zeros_like(x)
    for _ in range(_SHIFT):
        over = 1 / x
        product *= x
        inverse += over
        square += over * over
        x = x + 1
    y, log = 1 / x, np.log(x)
    z = y * y
    value = y * (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z * (1 / 1188 - z * 691 / 360360)))))
    first = z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z * (1 / 132 - z * 691 / 32760)))))
    second = y * z * (1 / 6 - z * (1 / 30 - z * (1 / 42 - z * (1 / 30 - z * (5 / 66 - z * 691 / 2730)))))
    return np.array(
        [
            (x - 0.5) * log - x + np.log(2 * np.pi) / 2 + value - np.log(product),
            log - y / 2 - first - inverse,
            y + z / 2 + second + square,
        ]
    )


def combine(slopes: Sequence[float] | FloatArray, columns: Sequence[FloatArray]) -> FloatArray | float:
    """b·z."""
    return sum((slope * column for slope, column in zip(slopes, columns, strict=True)), start=0.0)


def fit_beta(positive: FloatArray, negative: FloatArray) -> tuple[float, float]:
    """(α, β) of the one Beta prior under which these clicks and skips are most likely.

    >>> alpha, beta = fit_beta(np.array([1.0, 0, 2, 1]), np.array([9.0, 10, 8, 9]))
    >>> bool(0.05 < alpha / (alpha + beta) < 0.2)
    True
    """
    seen = positive + negative > 0  # the others have a likelihood of 1 under every prior
    rate = (positive.sum() + 0.5) / (positive.sum() + negative.sum() + 1)
    likelihood = BetaBinomial(positive[seen], negative[seen])
    (intercept, log_strength), _ = likelihood.maximum(np.array([logit(rate), 2.0]))
    strength = float(np.exp(log_strength))
    mean = float(expit(intercept))
    return mean * strength, (1 - mean) * strength
