"""A prior that depends on how often the logging policy showed an item."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.special import expit, logit

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.numerics.beta_binomial import LOG_STRENGTH, BetaBinomial, Terms, clip_logit, combine
from prudent.bounds.base import Prior, PriorRule, bounds, check_delta
from prudent.bounds.bayes import PosteriorBound
from prudent.click_models.evidence import Evidence
from prudent.counts.sampling import MOST_PAIRS
from prudent.storage.sketch import FEWEST_CONTEXTS


@bounds.register("exposure")
@dataclass(frozen=True)
class Exposure(PosteriorBound):
    """Posterior quantile under a Beta prior whose mean follows exposure; not in the paper.

    A logging policy shows good items more often, or, opposed, less often: how often an item was shown is evidence
    about θ, and the data determine how much.

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


@dataclass(frozen=True)
class ExposurePrior(PriorRule):
    """Beta(μs, (1−μ)s) with ``μ = logistic(b₀ + b₁x + b₂x²/4)``; what `Exposure` leaves in ``Scores.fitted``.

    >>> ExposurePrior(intercept=0.0, slopes=(1.0,), strength=10.0).mean([-1.0, 0.0, 1.0]).round(3)
    array([0.269, 0.5  , 0.731])
    """

    intercept: float  # b₀
    slopes: Sequence[float]  # b after shrinkage; empty where there was no z to fit
    strength: float  # s: the prior weighs as much as s examinations
    wald: float | None = None  # W, the support for the slopes; None where it is not identified
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
    return centred_log(evidence.impressions, evidence.context)


def centred_log(exposure: FloatArray, context: IntArray) -> FloatArray:
    """log(1 + exposure) minus its mean over the candidates of the context."""
    logs = np.log1p(exposure)
    mean = np.bincount(context, weights=logs) / np.maximum(np.bincount(context), 1)
    return np.asarray(logs - mean[context])


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


def _columns(exposure: FloatArray, dimension: int) -> list[FloatArray]:
    """z: x and x²/4, as far as the curve has them."""
    return [exposure, exposure**2 / 4][:dimension]


def sample_pairs(evidence: Evidence) -> IntArray:
    """Rows of the examined pairs, of at most about 200k of them: whole contexts in a fixed random order."""
    rows = np.flatnonzero(evidence.examined > 0)
    if rows.size <= MOST_PAIRS:
        return rows
    size = np.bincount(evidence.context[rows])
    order = np.random.default_rng(_SEED).permutation(np.flatnonzero(size))
    keep = np.cumsum(size[order]) <= MOST_PAIRS
    keep[:FEWEST_CONTEXTS] = True  # or a few giant contexts would forbid the curve
    chosen = np.zeros(size.size, dtype=bool)
    chosen[order[keep]] = True
    return rows[chosen[evidence.context[rows]]]


def identified(columns: Sequence[FloatArray], positive: FloatArray, negative: FloatArray) -> bool:
    """Whether there is a curve to fit: clicks and no-clicks, and exposures that differ."""
    spread = np.linalg.eigvalsh(np.atleast_2d(np.cov(columns, bias=True)))[0]
    return bool(spread > 1e-10 and positive.any() and negative.any())


def wald_statistic(
    parameters: FloatArray, terms: Terms, columns: Sequence[FloatArray], context: IntArray
) -> float | None:
    """The smaller of two Wald statistics of the slopes, or None where the information is degenerate."""
    covariances = covariances_of(parameters, terms, columns, context)
    return None if covariances is None else wald_of(slice(1, len(parameters) - 1), parameters, covariances)


def covariances_of(
    parameters: FloatArray, terms: Terms, columns: Sequence[FloatArray], context: IntArray
) -> tuple[FloatArray, FloatArray] | None:
    """Two covariances of b₀ and b, or None where the information is degenerate.

    Model-based: the variance of b is its block of the inverse observed information. Clustered: that inverse
    around the sum of squared scores per context, which also knows how contexts disagree.
    """
    scores = [terms.by_eta, *(terms.by_eta * column for column in columns), terms.by_log_strength]
    per_context = np.array([np.bincount(context, weights=score) for score in scores])
    # A strength at its limit, or one that is not identified (no item examined twice), is taken as known.
    known = not LOG_STRENGTH[0] < parameters[-1] < LOG_STRENGTH[1] or -terms.hessian[-1, -1] < 1e-6
    free = slice(len(parameters) - known)
    information = -terms.hessian[free, free]
    if np.linalg.eigvalsh(information)[0] <= 1e-9:
        return None
    inverse = np.linalg.inv(information).astype(float)
    squares = np.array([[np.sum(one * other) for other in per_context[free]] for one in per_context[free]])
    return inverse, inverse @ squares @ inverse


def wald_of(which: slice, parameters: FloatArray, covariances: tuple[FloatArray, FloatArray]) -> float:
    """The smaller Wald statistic of some of the parameters."""
    return min(_quadratic_form(c[which, which], parameters[which]) for c in covariances)


def _quadratic_form(covariance: FloatArray, slopes: FloatArray) -> float:
    """bᵀ C⁻¹ b; huge in a direction in which C sees no variation, as among contexts that agree completely."""
    variance, direction = np.linalg.eigh(covariance)
    floor = 1e-15 * variance[-1] + 1e-300
    return float(np.sum((slopes @ direction) ** 2 / np.maximum(variance, floor)))
