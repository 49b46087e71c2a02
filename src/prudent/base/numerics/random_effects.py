"""Several estimates of similar quantities, shrunken to their mean as far as errors explain that they differ."""

import numpy as np

from prudent.base.arrays import FloatArray


def shrink_to_mean(estimates: FloatArray, variance: FloatArray, otherwise: float) -> FloatArray:
    """Posterior means of quantities ~ N(m, τ²), of which each estimate has a sampling variance.

    m is their weighted mean and τ² the moment estimate of DerSimonian and Laird. An estimate of infinite variance
    becomes m; where all are, `otherwise`.

    >>> shrink_to_mean(np.array([0.0, 1.0]), np.array([1e-6, 1e-6]), 0.5).round(3)
    array([0., 1.])
    >>> shrink_to_mean(np.array([0.4, 0.6]), np.array([1.0, 1.0]), 0.5)
    array([0.5, 0.5])
    """
    weight = 1 / variance
    total = weight.sum()
    if not total:
        return np.full_like(estimates, otherwise)
    mean = np.sum(weight * estimates) / total
    free = total - np.sum(weight**2) / total  # 0 where a single estimate has all the weight
    excess = np.sum(weight * (estimates - mean) ** 2) - (np.count_nonzero(weight) - 1)
    spread = max(0.0, excess / free) if free > 1e-9 * total else 0.0
    weight = 1 / (variance + spread)
    mean = np.sum(weight * estimates) / weight.sum()
    kept = np.divide(spread, spread + variance, out=np.zeros_like(variance), where=np.isfinite(variance))
    return np.asarray(mean + kept * (estimates - mean))
