"""A prior that depends on how often the logging policy showed an item."""

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.special import expit, gammaln, logit, psi

from prudent.base.arrays import FloatArray, IntArray
from prudent.bounds.base import Scores, bounds, check_delta
from prudent.bounds.bayes import PosteriorBound, Prior, PriorRule
from prudent.click_models.base import Evidence
from prudent.counts.sampling import MOST
from prudent.storage.sketch import FEWEST


@bounds.register("exposure")
@dataclass(frozen=True)
class Exposure(PosteriorBound):
    """Posterior quantile under a Beta prior whose mean follows exposure; not in the paper.

    A logging policy shows good items more often, or, opposed, less often: how often an item was shown says
    something about θ, and the data can tell how much.

    1. ``x = log(1 + impressions)`` minus its mean over the context's candidates, unseen ones included;
       ``z = (x, x²/4)``. With fewer than 5 contexts z = x, with fewer than 3 there is no z.
    2. ``n₊ ~ BetaBinomial(n; μs, (1−μ)s)``, ``μ = logistic(b₀ + b·z)``: pooled maximum likelihood with
       log s in [−2, 7].
    3. ``b ← b · max(0, 1 − 4q/W)``, where q is the dimension of b and W the smaller of its model-based and its
       context-clustered Wald statistic: the curve is kept as far as the data support it, and do so consistently
       across contexts. Then b₀ and s are fitted again.
    4. ``P(θ ≤ L(a)) = δ/2`` where ``θ ~ Beta(μs + n₊, (1−μ)s + n₋)``.

    The fit is `ExposurePrior`, on a fixed sample of whole contexts where there are many. The promise is that of
    ``bayes``, and only as good as the fitted prior: right on average over items *of the same exposure*, if the
    curve is right. Under uniform logging there is nothing to gain over ``eb``. A click model whose bias follows
    the position, such as ``dcm(tail=truncate)``, bends the curve the wrong way.
    """

    delta: float = 0.5

    def __post_init__(self) -> None:
        check_delta(self.delta)

    def learn_prior(self, evidence: Evidence) -> PriorRule:
        """The prior that follows exposure, as far as the counts support it."""
        return fit_prior(evidence, centred_exposure(evidence))

    def strength(self, scores: Scores, positive: FloatArray, negative: FloatArray) -> FloatArray:
        """The s that was fitted, the same for all."""
        return np.full_like(scores.mean, scores.fitted["strength"])


@dataclass(frozen=True)
class ExposurePrior(PriorRule):
    """Beta(μs, (1−μ)s) with ``μ = logistic(b₀ + b₁x + b₂x²/4)``; what `Exposure` leaves in ``Scores.fitted``.

    >>> ExposurePrior(intercept=0.0, slopes=(1.0,), strength=10.0).mean([-1.0, 0.0, 1.0]).round(3)
    array([0.269, 0.5  , 0.731])
    """

    intercept: float  # b₀
    slopes: Sequence[float]  # b after shrinkage; empty where there was no z to fit
    strength: float  # s: the prior weighs as much as s examinations
    wald: float | None = None  # W, the support for the slopes; None where it cannot be told
    shrinkage: float = 0.0  # what the slopes were multiplied by: 1 is full trust, 0 a flat curve
    dimension: int = 0  # q
    contexts: int = 0  # that the fit saw
    pairs: int = 0

    def mean(self, exposure: FloatArray | Sequence[float]) -> FloatArray:
        """μ at a centred log exposure x: 0 for an item shown as often as its context's (geometric) average."""
        x = np.asarray(exposure, dtype=float)
        eta = np.full_like(x, self.intercept) + combine(self.slopes, _columns(x, len(self.slopes)))
        return np.asarray(expit(clip_logit(eta)))

    def of(self, evidence: Evidence) -> Prior:
        """The prior of every pair."""
        mean = self.mean(centred_exposure(evidence))
        return Prior(mean * self.strength, (1 - mean) * self.strength, asdict(self))


def centred_exposure(evidence: Evidence) -> FloatArray:
    """x: log(1 + impressions) minus its mean over the candidates of the context."""
    shown = np.log1p(evidence.impressions)
    size = np.bincount(evidence.context)
    mean = np.bincount(evidence.context, weights=shown) / np.maximum(size, 1)
    return np.asarray(shown - mean[evidence.context])


_SEED = 20_230_711  # of the sample; any fixed number does


def fit_prior(evidence: Evidence, exposure: FloatArray) -> ExposurePrior:
    """Steps 2 and 3 of `Exposure`, from the examined pairs: the others have a likelihood of 1 under every prior."""
    rows = sample_pairs(evidence)
    context, positive, negative = evidence.context[rows], evidence.positive[rows], evidence.negative[rows]
    contexts = int(np.count_nonzero(np.bincount(context)))
    dimension = dimension_for(contexts)
    columns = _columns(exposure[rows], dimension)
    slopes, wald, shrinkage = np.zeros(dimension), None, 0.0
    rate = (positive.sum() + 0.5) / (positive.sum() + negative.sum() + 1)
    start = np.array([logit(rate), *slopes, 2.0])
    if dimension and identified(columns, positive, negative):
        best, terms = BetaBinomial(positive, negative, columns).maximum(start)
        wald = wald_statistic(best, terms, columns, context)
        shrinkage = kept_share(wald, dimension)
        slopes = shrinkage * best[1:-1] + 0.0  # no −0
        start = best if shrinkage else start
    flat = BetaBinomial(positive, negative, offset=combine(slopes, columns))
    (intercept, log_strength), _ = flat.maximum(start[[0, -1]])
    return ExposurePrior(
        intercept=float(intercept),
        slopes=tuple(map(float, slopes)),
        strength=float(np.exp(log_strength)),
        wald=wald,
        shrinkage=shrinkage,
        dimension=dimension,
        contexts=contexts,
        pairs=int(rows.size),
    )


def dimension_for(contexts: int) -> int:
    """q, the dimension of z: among few contexts, one that was logged the other way round would decide the curve."""
    return 2 if contexts >= 5 else 1 if contexts >= 3 else 0


def kept_share(wald: float | None, dimension: int) -> float:
    """1 − 4q/W, or 0: how much of the slopes is kept.

    W is about q where there is no curve at all. So, nothing is kept of slopes that are less than twice as far from 0,
    in standard errors, as chance takes them.
    """
    return max(0.0, 1 - 4 * dimension / wald) if wald else 0.0


# Sums below are numpy's, not products of matrices: those go to as many threads as there are, whose number then
# shows in the last digits, and burn twice the time on arrays this narrow.


def _columns(exposure: FloatArray, dimension: int) -> list[FloatArray]:
    """z: x and x²/4, as far as the curve has them."""
    return [exposure, exposure**2 / 4][:dimension]


def combine(slopes: Sequence[float] | FloatArray, columns: Sequence[FloatArray]) -> FloatArray | float:
    """b·z."""
    return sum((slope * column for slope, column in zip(slopes, columns, strict=True)), start=0.0)


def sample_pairs(evidence: Evidence) -> IntArray:
    """Rows of the examined pairs, of at most about 200k of them: whole contexts in a fixed random order."""
    rows = np.flatnonzero(evidence.examined > 0)
    if rows.size <= MOST:
        return rows
    size = np.bincount(evidence.context[rows])
    order = np.random.default_rng(_SEED).permutation(np.flatnonzero(size))
    keep = np.cumsum(size[order]) <= MOST
    keep[:FEWEST] = True  # or a few giant contexts would forbid the curve
    chosen = np.zeros(size.size, dtype=bool)
    chosen[order[keep]] = True
    return rows[chosen[evidence.context[rows]]]


def identified(columns: Sequence[FloatArray], positive: FloatArray, negative: FloatArray) -> bool:
    """Whether there is a curve to fit: clicks and no-clicks, and exposures that differ."""
    spread = np.linalg.eigvalsh(np.atleast_2d(np.cov(columns, bias=True)))[0]
    return bool(spread > 1e-10 and positive.any() and negative.any())


def wald_statistic(
    parameters: FloatArray, terms: "Terms", columns: Sequence[FloatArray], context: IntArray
) -> float | None:
    """The smaller of two Wald statistics of the slopes, or None where the information is degenerate.

    Model-based: the variance of b is its block of the inverse observed information. Clustered: that inverse
    around the sum of squared scores per context, which also knows how contexts disagree.
    """
    scores = [terms.by_eta, *(terms.by_eta * column for column in columns), terms.by_log_strength]
    per_context = np.array([np.bincount(context, weights=score) for score in scores])
    # A strength at its limit, or that the data are silent about (no item examined twice), is taken as given.
    given = not _LOG_STRENGTH[0] < parameters[-1] < _LOG_STRENGTH[1] or -terms.hessian[-1, -1] < 1e-6
    free, slopes = slice(len(parameters) - given), slice(1, len(parameters) - 1)
    information = -terms.hessian[free, free]
    if np.linalg.eigvalsh(information)[0] <= 1e-9:
        return None
    inverse = np.linalg.inv(information).astype(float)
    squares = np.array([[np.sum(one * other) for other in per_context[free]] for one in per_context[free]])
    clustered = inverse @ squares @ inverse
    return min(_quadratic_form(c[slopes, slopes], parameters[slopes]) for c in (inverse, clustered))


def _quadratic_form(covariance: FloatArray, slopes: FloatArray) -> float:
    """bᵀ C⁻¹ b; huge in a direction in which C sees no variation, as among contexts that agree completely."""
    variance, direction = np.linalg.eigh(covariance)
    floor = 1e-15 * variance[-1] + 1e-300
    return float(np.sum((slopes @ direction) ** 2 / np.maximum(variance, floor)))


_LOG_STRENGTH = (-2.0, 7.0)
_FEW = 20_000  # rows on which a fit costs next to nothing
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
        self.positive, self.negative, self.columns = positive, negative, columns
        self.offset = np.broadcast_to(offset, positive.shape)
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
        """With a = μs and c = (1−μ)s: chain rule from derivatives by a, c and s to those by η and log s."""
        eta = clip_logit(parameters[0] + combine(parameters[1:-1], self.columns) + self.offset)
        strength = float(np.exp(parameters[-1]))
        mu = expit(eta)
        a, c = mu * strength, expit(-eta) * strength
        value_a, a1, a2 = rise(a, self.positive, self.clicked)
        value_c, c1, c2 = rise(c, self.negative, self.skipped)
        everywhere = np.arange(self.sizes.size)
        value_s, s1, s2 = rise(np.full(self.sizes.size, strength), self.sizes, everywhere)
        slope = a * (1 - mu)  # da/dη = −dc/dη
        by_eta = slope * (a1 - c1)
        by_log_strength = a * a1 + c * c1 - strength * s1[self.size_of]
        eta_eta = slope**2 * (a2 + c2) + (1 - 2 * mu) * by_eta
        eta_log = by_eta + slope * (a * a2 - c * c2)
        log_log = by_log_strength + a**2 * a2 + c**2 * c2 - strength**2 * s2[self.size_of]
        value = float(np.sum(value_a + value_c - value_s[self.size_of]))
        return Rows(value, by_eta, by_log_strength, eta_eta, eta_log, log_log)

    def maximum(self, start: FloatArray) -> tuple[FloatArray, Terms]:
        """The parameters of greatest likelihood within the limits, and the terms there, by damped Newton steps.

        The likelihood is not concave everywhere: a step is damped (Levenberg-Marquardt) until the likelihood
        rises. A handful of passes replace the dozens of a quasi-Newton method.
        """
        high = np.array([_COEFFICIENT] * (start.size - 1) + [_LOG_STRENGTH[1]])
        low = np.array([-_COEFFICIENT] * (start.size - 1) + [_LOG_STRENGTH[0]])
        here = np.clip(start, low, high)
        at = self.terms(here)
        if self.positive.size > _FEW:  # the first steps need not be exact: take them on every tenth row
            few = slice(None, None, 10)
            columns = [column[few] for column in self.columns]
            there, _ = type(self)(self.positive[few], self.negative[few], columns, self.offset[few]).maximum(here)
            new = self.terms(there)
            here, at = (there, new) if new.value > at.value else (here, at)
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


def clip_logit(eta: FloatArray) -> FloatArray:
    """η within limits where neither μ nor 1 − μ rounds to 0."""
    return np.clip(eta, -30, 30)


def rise(a: FloatArray, n: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log Γ(a + n)/Γ(a) with its first two derivatives by a, in the given rows; 0 in the others, where n = 0."""
    value, first, second = np.zeros((3, a.size))
    low = a[rows]
    high = low + n[rows]
    value[rows] = gammaln(high) - gammaln(low)
    first[rows] = psi(high) - psi(low)
    second[rows] = _trigamma(high) - _trigamma(low)
    return value, first, second


def _trigamma(x: FloatArray) -> FloatArray:
    """ψ′ to 12 digits by recurrence and Stirling's series; a tenth of the cost of scipy's general polygamma."""
    total = np.zeros_like(x)
    for shift in range(10):
        total += 1 / (x + shift) ** 2
    y = 1 / (x + 10)
    square = y * y
    series = 1 / 6 - square * (1 / 30 - square * (1 / 42 - square * (1 / 30 - square * 5 / 66)))
    return np.asarray(total + y + square / 2 + y * square * series)
