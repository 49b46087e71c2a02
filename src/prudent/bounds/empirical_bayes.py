"""A Beta prior learned from the log, on a grid."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import UsageError, did_you_mean
from prudent.bounds.base import Prior, PriorRule, bounds, check_delta, check_positive
from prudent.bounds.bayes import GivenPrior, PosteriorBound
from prudent.click_models.evidence import Evidence

_POOLS = ("all", "context")
_EQUAL = 1e-9  # relative; nearer likelihoods differ by rounding only, as where every item was examined once


@bounds.register("eb")
@dataclass(frozen=True)
class EmpiricalBayes(PosteriorBound):
    """``bayes`` with the (α, β) of the grid that maximise the likelihood of the counts, Eq. (8).

    ``log 𝓛(α, β) = Σ_a log Γ(α+n₊)/Γ(α) + log Γ(β+n₋)/Γ(β) − log Γ(α+β+n)/Γ(α+β)``.

    The grid is {1, 2, 4, …, 512}²: the appendix's {2, …, 1024} cannot contain the Beta(1, 8) that it reports.
    ``pool=all`` learns one prior from all contexts, ``pool=context`` one from each. A prior at the edge of the
    grid says that the grid is too small. The promise is that of ``bayes``, and only as good as the fitted prior:
    its own uncertainty, large for a context with a handful of items, is ignored.
    """

    delta: float = 0.2
    pool: str = "all"
    grid: tuple[float, ...] = tuple(2.0**i for i in range(10))

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if self.pool not in _POOLS:
            hint = did_you_mean(str(self.pool), _POOLS)
            raise UsageError(f"eb has no pool {self.pool}.{hint} Known: {', '.join(_POOLS)}.")
        object.__setattr__(self, "grid", tuple(self.grid) if isinstance(self.grid, Sequence) else self.grid)
        if not isinstance(self.grid, tuple) or not self.grid:
            raise UsageError(f"grid is {self.grid}; write the values to try as a list, like grid=[1, 2, 4].")
        for value in self.grid:
            check_positive("grid", value)

    def learn_prior(self, evidence: Evidence) -> PriorRule:
        """The prior of the grid under which the counts are most likely."""
        if self.pool == "context":
            return _PriorPerContext(self.grid)
        seen = evidence.examined > 0  # the others have a likelihood of 1 under every prior
        likelihood = grid_likelihood(evidence.positive[seen], evidence.negative[seen], self.grid)
        best = np.argmax(likelihood >= likelihood.max() - _EQUAL * abs(likelihood.max()))  # the first of equals
        alpha, beta = (float(self.grid[int(i)]) for i in np.unravel_index(best, (len(self.grid), len(self.grid))))
        return GivenPrior(alpha, beta, {"alpha": alpha, "beta": beta, "pairs": int(seen.sum())})


@dataclass(frozen=True)
class _PriorPerContext(PriorRule):
    grid: tuple[float, ...]

    def of(self, evidence: Evidence) -> Prior:
        """The best prior of each context, and how many contexts have which."""
        seen = evidence.examined > 0
        contexts = int(evidence.context.max(initial=-1)) + 1
        counted = evidence.context[seen], evidence.positive[seen], evidence.negative[seen]
        row, column = _best_per_context(*counted, self.grid, contexts)
        present = np.bincount(evidence.context, minlength=contexts) > 0
        values = np.array(self.grid, dtype=float)
        alphas, betas = values[row], values[column]
        kinds, sizes = np.unique(np.column_stack([alphas, betas])[present], axis=0, return_counts=True)
        fitted_priors = [
            {"alpha": float(alpha), "beta": float(beta), "contexts": int(size)}
            for (alpha, beta), size in zip(kinds, sizes, strict=True)
        ]
        return Prior(alphas[evidence.context], betas[evidence.context], {"priors": fitted_priors})


def grid_likelihood(positive: FloatArray, negative: FloatArray, grid: tuple[float, ...]) -> FloatArray:
    """Log 𝓛(α, β) over grid × grid: a sum of terms in n₊, n₋ and n alone, so their three histograms are enough."""

    def total(histogram: tuple[FloatArray, FloatArray], shift: float) -> float:
        values, sizes = histogram
        return float(np.sum(sizes * (gammaln(shift + values) - gammaln(shift))))

    clicks, skips, examined = (_histogram(n, grid) for n in (positive, negative, positive + negative))
    of_alpha = np.array([total(clicks, alpha) for alpha in grid])
    of_beta = np.array([total(skips, beta) for beta in grid])
    of_sum = {both: total(examined, both) for both in {alpha + beta for alpha in grid for beta in grid}}
    of_both = np.array([[of_sum[alpha + beta] for beta in grid] for alpha in grid])
    return np.asarray(of_alpha[:, None] + of_beta - of_both)


_DISTINCT = 30_000  # values that are cheaper looked at one by one
_STEP = 1e-3  # between nodes, in log(1 + n)


def _histogram(n: FloatArray, grid: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
    """Values and how often each occurs.

    A click model that estimates examinations makes millions of distinct values. Each is then shared out among
    the four nearest nodes of a fine scale with the weights of cubic interpolation: sums of functions as smooth
    as log Γ(c + n), c ≥ 0.05, keep ten digits.
    """
    values, sizes = np.unique(n, return_counts=True)
    if values.size <= _DISTINCT or min(grid) < 0.05:
        return values, sizes.astype(float)
    at = np.log1p(values) / _STEP
    node = np.maximum(at.astype(np.int64), 1)
    t = at - node  # Lagrange weights on −1, 0, 1, 2
    weights = (
        -t * (t - 1) * (t - 2) / 6,
        (t + 1) * (t - 1) * (t - 2) / 2,
        -(t + 1) * t * (t - 2) / 2,
        (t + 1) * t * (t - 1) / 6,
    )
    last = int(node[-1]) + 3
    shares = sum(np.bincount(node + k - 1, weights=w * sizes, minlength=last) for k, w in enumerate(weights))
    return np.expm1(np.arange(last) * _STEP), np.asarray(shares)


def _best_per_context(
    context: IntArray, positive: FloatArray, negative: FloatArray, grid: tuple[float, ...], contexts: int
) -> tuple[IntArray, IntArray]:
    """Row and column in the grid of each context's prior; the first of equals, in grid order."""

    def totals(n: FloatArray, shifts: list[float]) -> dict[float, FloatArray]:
        # A histogram per context: few distinct (context, n) are left of many pairs, and log Γ of few distinct n.
        values, which = np.unique(n, return_inverse=True)
        keys, sizes = np.unique(context * np.int64(max(values.size, 1)) + which, return_counts=True)
        of_context, which = np.divmod(keys, max(values.size, 1))

        def total(shift: float) -> FloatArray:
            terms: FloatArray = gammaln(shift + values) - gammaln(shift)
            return np.bincount(of_context, weights=sizes * terms[which], minlength=contexts).astype(float, copy=False)

        return {shift: total(shift) for shift in shifts}

    of_alpha, of_beta = totals(positive, list(grid)), totals(negative, list(grid))
    of_sum = totals(positive + negative, sorted({alpha + beta for alpha in grid for beta in grid}))
    best = np.full(contexts, -np.finfo(float).max)
    row, column = np.zeros(contexts, dtype=np.int64), np.zeros(contexts, dtype=np.int64)
    for i, alpha in enumerate(grid):
        for j, beta in enumerate(grid):
            likelihood = of_alpha[alpha] + of_beta[beta] - of_sum[alpha + beta]
            better = likelihood > best + _EQUAL * np.abs(best)
            best[better], row[better], column[better] = likelihood[better], i, j
    return row, column
