"""The study of the exact likelihood of `dcm` maximises what it says."""

import runpy
from pathlib import Path

import numpy as np
from scipy.special import xlog1py, xlogy

from prudent.base.arrays import FloatArray
from prudent.click_models.reading import Onward

STUDY = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "exact_continuation.py"))


def test_its_fit_is_a_maximum_of_the_exact_likelihood() -> None:
    """With θ under its prior and half a click of either kind at each λ: no step of 1 % of any λ or θ is uphill."""
    _, log = STUDY["simulate"]("dcm", 2_000, 0, contexts=5, items=(12, 15))
    exact = STUDY["Exact"](log)
    theta, continuation, (alpha, beta) = exact.solve()
    lists = exact.lists

    def objective(theta: FloatArray, continuation: FloatArray) -> float:
        likelihood = lists.log_likelihood(lists.places(theta), Onward(np.ones(10), continuation))
        pseudo = xlogy(alpha, theta) + xlog1py(beta, -theta)
        half = 0.5 * np.log(continuation * (1 - continuation))
        return float(np.sum(lists.n * likelihood) + pseudo.sum() + half[:-1].sum())

    best = objective(theta, continuation)
    for k in range(9):
        for step in (-0.01, 0.01):
            moved = continuation.copy()
            moved[k] += step * min(moved[k], 1 - moved[k])
            assert objective(theta, moved) < best
    for pair in range(0, lists.pairs, 7):
        for step in (-0.01, 0.01):
            moved = theta.copy()
            moved[pair] *= 1 + step
            assert objective(moved, continuation) < best
