"""The prior of `exposure`, and a level of its own for every context."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.numerics.beta_binomial import BetaBinomial, Rows, Terms, clip_logit, combine, rise
from prudent.bounds.base import Prior, PriorRule, bounds, check_delta
from prudent.bounds.bayes import PosteriorBound
from prudent.bounds.exposure import (
    centred_exposure,
    covariances_of,
    dimension_for,
    identified,
    kept_share,
    sample_pairs,
    wald_of,
)
from prudent.click_models.evidence import Evidence
from prudent.counts.groups import Signals


@bounds.register("hierarchical")
@dataclass(frozen=True)
class Hierarchical(PosteriorBound):
    """Posterior quantile under a Beta prior that follows exposure and context; not in the paper.

    `exposure`, with three changes:

    1. Contexts have levels: ``logit μ = b₀ + u + b·z``, ``u ~ N(0, τ²)`` for each context. Where all of a
       context's seen items are poor, its unseen ones are not taken to be as good as those of others.
    2. The better, the wider: ``s = s₀/√μ``. Logging policies err by factors, so that among items of the same
       exposure the spread of θ grows with its mean, which a constant s does not allow for.
    3. The curve bends only where there is evidence for it: ``z = (x, max(0, x − x₀)²/4)``, and below x₀, the lower
       quartile of x weighted by n/(n + 10), it goes on straight. A parabola fitted to the often shown items turns
       back among the rarely shown.

    The slopes b are shrunk as in `exposure`, and b₀, s₀, u and τ are fitted again. The promise is that of ``bayes``:
    right on average over items of the same exposure and context level, if the curve is right.
    """

    delta: float = 0.6

    def __post_init__(self) -> None:
        check_delta(self.delta)

    def learn_prior(self, evidence: Evidence) -> PriorRule:
        """The prior that follows exposure and context, as far as the counts support it."""
        return fit_prior(evidence, centred_exposure(evidence))


@dataclass(frozen=True)
class GroupTerm:
    """How much the prior of a pair follows the signal of one grouping."""

    slope: float  # after shrinkage: 1 takes the signal for the attraction itself
    wald: float | None = None  # the support for it; None where it was not fitted
    shrinkage: float = 0.0  # what the slope was multiplied by


@dataclass(frozen=True)
class HierarchicalPrior(PriorRule):
    """What `Hierarchical` leaves in ``Scores.fitted``: Beta(μs, (1−μ)s) before the level of the context.

    >>> HierarchicalPrior(intercept=0.0, slopes=(1.0, 1.0), knot=0.0, strength=10.0).curve([-1.0, 0.0, 2.0])
    array([-1.,  0.,  3.])
    """

    intercept: float  # b₀
    slopes: Sequence[float]  # b after shrinkage; empty where there was no z to fit
    knot: float  # x₀
    strength: float  # s₀
    spread: float = 0.0  # τ, of the levels of contexts; 0 where there are too few contexts
    wald: float | None = None  # W, the support for the slopes; None where it is not identified
    shrinkage: float = 0.0  # what the slopes were multiplied by
    dimension: int = 0  # q
    contexts: int = 0  # that the fit saw
    pairs: int = 0
    by_size: float = 0.0  # of a context, where `anchored` fits it
    by_group: Mapping[str, GroupTerm] = field(default_factory=dict)  # where `anchored` has groups
    # Independent directions of the error of b₀, b, the slope of size and log s₀, by one standard error each; none of
    # slopes that are shrunk, whose error is unknown.
    errors: Sequence[Sequence[float]] = ()

    def moved(self, by: Sequence[float]) -> "HierarchicalPrior":
        """The prior with b₀, b, the slope of size and log s₀ moved by as much."""
        curve = len(self.slopes)
        return replace(
            self,
            intercept=self.intercept + by[0],
            slopes=tuple(slope + move for slope, move in zip(self.slopes, by[1 : 1 + curve], strict=True)),
            by_size=self.by_size + sum(by[1 + curve : -1]),
            strength=self.strength * float(np.exp(by[-1])),
        )

    def curve(self, exposure: FloatArray | Sequence[float], size: FloatArray | float = 0.0) -> FloatArray:
        """b₀ + b·z at a centred log exposure x, in a context of this size; groups come on top."""
        x = np.asarray(exposure, dtype=float)
        shift = self.intercept + self.by_size * np.asarray(size)
        return np.asarray(np.zeros_like(x) + shift + combine(self.slopes, _columns(x, self.knot, len(self.slopes))))

    def shift(self, signals: Signals | None) -> FloatArray | float:
        """What groups add to logit μ."""
        if signals is None or not self.by_group:
            return 0.0
        slopes = [self.by_group[name].slope for name in signals.names]
        return combine(slopes, list(signals.values.T))

    def mean(self, exposure: FloatArray | Sequence[float]) -> FloatArray:
        """μ at a centred log exposure x, in a context of the usual level."""
        return np.asarray(expit(clip_logit(self.curve(exposure))))

    def of(self, evidence: Evidence) -> Prior:
        """The prior of every pair, with the level of its context."""
        curve = self.curve(centred_exposure(evidence))
        level = np.zeros(int(evidence.context.max(initial=-1)) + 1)
        if self.spread:
            seen = np.flatnonzero(evidence.examined > 0)
            likelihood = _Widening(evidence.positive[seen], evidence.negative[seen], offset=curve[seen])
            fixed = np.array([0.0, np.log(self.strength)])
            level, _ = _levels(likelihood, fixed, evidence.context[seen], level, self.spread, steps=6)
        return self.at(curve + level[evidence.context])

    def at(self, curve: FloatArray) -> Prior:
        """The prior where logit μ is this."""
        mean = expit(clip_logit(curve))
        strength = self.strength * mean**-_WIDENING
        return Prior(mean * strength, (1 - mean) * strength, self.fitted)

    def __post_init__(self) -> None:
        if not self.strength > 0 or len(self.slopes) > 2:
            raise ValueError("no prior has such a strength or as many slopes")

    @property
    def fitted(self) -> Mapping[str, Any]:
        """Its parameters; plain JSON."""
        fitted = asdict(self)
        del fitted["errors"]
        if not self.by_group:
            del fitted["by_group"]
        return fitted


_ROUNDS = 8  # at most, of fitting levels and the rest in turns
_SETTLED = 0.003  # a level that moves by less moves no order
_WIDENING = 0.5  # log s falls by as much for every unit of log μ
_NEARLY_ALL = 0.9  # share of the slopes that is kept, above which the rest is fitted again from where it was
_SIZED, _ALIKE = 20, 0.1  # contexts, and the standard deviation of their size, from which on it is a covariate
_OWN = 0.05  # standard deviation of what a signal has and the columns before it have not, for it to be a covariate
LITTLE = 10.0  # examinations: an item with as many has half a say in where the curve may bend


def fit_prior(
    evidence: Evidence,
    exposure: FloatArray,
    *,
    levels: bool = True,
    size: FloatArray | None = None,
    shrunk: bool = True,
) -> HierarchicalPrior:
    """From the examined pairs: the others have a likelihood of 1 under every prior; contexts have levels or not.

    size
        Of the context of every pair, a third covariate where contexts are many and differ in it.
    shrunk
        Whether the slopes are, or are kept as fitted, with their errors. Those of groups always are.
    """
    rows = sample_pairs(evidence)
    positive, negative, x = evidence.positive[rows], evidence.negative[rows], exposure[rows]
    numbers, context = np.unique(evidence.context[rows], return_inverse=True)
    contexts = numbers.size
    dimension = dimension_for(contexts)
    knot = _knot(x, positive + negative)
    columns = _columns(x, knot, dimension)
    if size is not None and contexts >= _SIZED and np.std(size[rows]) > _ALIKE:
        columns = [*columns, size[rows]]
    shared = len(columns)
    names: list[str] = []
    if evidence.signals is not None and contexts >= _SIZED:
        for name, signal in zip(evidence.signals.names, evidence.signals.values[rows].T, strict=True):
            if _adds(signal, columns):
                columns, names = [*columns, signal], [*names, name]
    rate = (positive.sum() + 0.5) / (positive.sum() + negative.sum() + 1)
    start = np.array([logit(rate), 2.0])
    level, spread = np.zeros(contexts), 0.3 if levels and contexts >= 3 else 0.0
    slopes, wald, shrinkage = np.zeros(len(columns)), None, 0.0
    terms_of = {name: GroupTerm(0.0) for name in (evidence.signals.names if evidence.signals else ())}
    if dimension and identified(columns, positive, negative):
        likelihood = _Widening(positive, negative, columns)
        best, level, spread, terms = _in_turns(likelihood, np.insert(start, 1, slopes), context, level, spread)
        covariances = covariances_of(best, terms, columns, context)
        if covariances is not None:
            wald = wald_of(slice(1, 1 + shared), best, covariances)
            shrinkage = kept_share(wald, shared) if shrunk else 1.0
            for at, name in enumerate(names, start=1 + shared):
                own = wald_of(slice(at, at + 1), best, covariances)
                # Groups whose other members are better do not make a pair worse: a slope below 0 is noise.
                kept = kept_share(own, 1) if best[at] > 0 else 0.0
                terms_of[name] = GroupTerm(float(kept * best[at]), own, kept)
        by_group = [terms_of[name].slope for name in names]
        slopes = np.append(shrinkage * best[1 : 1 + shared], by_group) + 0.0  # no −0
        start = best[[0, -1]] if slopes.any() else start
    flat = _Widening(positive, negative, offset=combine(slopes, columns))
    near = shrinkage > _NEARLY_ALL and all(term.shrinkage > _NEARLY_ALL for term in terms_of.values())
    (intercept, log_strength), _, spread, _ = _in_turns(flat, start, context, level, spread, near=near)
    errors: FloatArray = np.zeros((0, 0))
    if not shrunk:
        likelihood = _Widening(positive, negative, columns[:shared], combine(slopes[shared:], columns[shared:]))
        errors = _errors(likelihood, np.array([intercept, *slopes[:shared], log_strength]), context)
    return HierarchicalPrior(
        intercept=float(intercept),
        slopes=tuple(map(float, slopes[:dimension])),
        knot=knot,
        strength=float(np.exp(log_strength)),
        spread=spread,
        wald=wald,
        shrinkage=shrinkage,
        dimension=shared,
        contexts=contexts,
        pairs=int(rows.size),
        by_size=float(slopes[dimension:shared].sum()),
        by_group=terms_of,
        errors=tuple(map(tuple, errors.tolist())),
    )


def _errors(likelihood: "_Widening", parameters: FloatArray, context: IntArray) -> FloatArray:
    """Rows whose squares add up to the covariance of the parameters; none where it is not identified."""
    covariances = covariances_of(parameters, likelihood.terms(parameters), likelihood.columns, context)
    if covariances is None:
        return np.zeros((0, 0))
    root = np.linalg.cholesky(covariances[0]).T
    return np.pad(root, ((0, 0), (0, len(parameters) - len(root))))  # a strength that is taken as known has no error


def _adds(signal: FloatArray, columns: Sequence[FloatArray]) -> bool:
    """Whether a signal differs among pairs that are alike in these columns."""
    if np.std(signal) < _OWN:
        return False
    design = np.column_stack([np.ones(len(signal)), *columns])
    # By its own normal equations, summed by NumPy: products of matrices go to as many threads as there are.
    gram = np.array([[np.sum(one * other) for other in design.T] for one in design.T])
    slopes = np.linalg.solve(gram, np.array([np.sum(column * signal) for column in design.T]))
    return bool(np.std(signal - combine(slopes, list(design.T))) > _OWN)


def _columns(exposure: FloatArray, knot: float, dimension: int) -> list[FloatArray]:
    """z, as far as the curve has it."""
    return [exposure, np.maximum(0.0, exposure - knot) ** 2 / 4][:dimension]


def _knot(exposure: FloatArray, examined: FloatArray) -> float:
    """x₀: a quarter of the evidence lies below."""
    if not exposure.size:
        return 0.0
    order = np.argsort(exposure, kind="stable")
    upto = np.cumsum((examined / (examined + LITTLE))[order])
    return float(exposure[order][np.searchsorted(upto, upto[-1] / 4)])


def _in_turns(
    likelihood: "_Widening", start: FloatArray, context: IntArray, level: FloatArray, spread: float, near: bool = False
) -> tuple[FloatArray, FloatArray, float, Terms]:
    """Parameters, levels and τ, each fitted given the others: maximum likelihood, Laplace's approximation, EM."""
    if not spread:
        best, terms = likelihood.maximum(start, near=near)
        return best, level, spread, terms
    best = start
    for _ in range(_ROUNDS):
        best, terms = likelihood.shifted(level[context]).maximum(best)
        before = level
        level, variance = _levels(likelihood, best, context, level, spread, steps=2)
        spread = max(0.01, float(np.sqrt(np.mean(level**2 + variance))))
        if np.max(np.abs(level - before)) < _SETTLED:
            break
    return best, level, spread, terms


def _levels(
    likelihood: "_Widening", parameters: FloatArray, context: IntArray, level: FloatArray, spread: float, steps: int
) -> tuple[FloatArray, FloatArray]:
    """The most likely u of every context, and its variance: Newton steps in all contexts at once."""
    precision = 1 / spread**2
    for _ in range(steps):
        rows = likelihood.shifted(level[context]).rows(parameters)
        gradient = np.bincount(context, rows.by_eta, minlength=level.size) - precision * level
        information = np.maximum(0.0, -np.bincount(context, rows.eta_eta, minlength=level.size)) + precision
        level = level + np.clip(gradient / information, -1, 1)
    return level, 1 / information


class _Widening(BetaBinomial):
    """As `BetaBinomial`, with s = s₀ μ^−½; the last parameter is log s₀."""

    def rows(self, parameters: FloatArray) -> Rows:
        """Chain rule on top of that for a given s: log s falls by (1 − μ)/2 for every unit of η."""
        eta = clip_logit(parameters[0] + combine(parameters[1:-1], self.columns) + self.offset)
        mu, rest = expit(eta), expit(-eta)
        s = np.exp(parameters[-1]) * mu**-_WIDENING
        a, c = mu * s, rest * s
        n = self.positive + self.negative
        value_a, a1, a2 = rise(a, self.positive, self.clicked)
        value_c, c1, c2 = rise(c, self.negative, self.skipped)
        value_s, s1, s2 = rise(s, n, np.flatnonzero(n > 0))
        slope = a * rest  # da/dη = −dc/dη at a given s
        by_eta = slope * (a1 - c1)
        by_log = a * a1 + c * c1 - s * s1
        eta_eta = slope**2 * (a2 + c2) + (1 - 2 * mu) * by_eta
        eta_log = by_eta + slope * (a * a2 - c * c2)
        log_log = by_log + a**2 * a2 + c**2 * c2 - s**2 * s2
        turn = -_WIDENING * rest  # d log s/dη
        return Rows(
            float(np.sum(value_a + value_c - value_s)),
            by_eta + turn * by_log,
            by_log,
            eta_eta + 2 * turn * eta_log + turn**2 * log_log - turn * mu * by_log,
            eta_log + turn * log_log,
            log_log,
        )
