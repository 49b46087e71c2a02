"""A test for trust bias: whether position acts on often clicked items as on rarely clicked ones.

Under pbm, cm, dcm and ubm the click rate of an item at position k, where nothing above was clicked, is a product θ·eₖ.
Where users trust the top of a list, they also click what does not attract them there: rates are θ·aₖ + bₖ, and rarely
clicked items lose more by going down than often clicked ones. The test is the score test of a coefficient of
``x = k · log θ`` in a log-linear model of clicks with a level for every item and for every position,

    z = Σ (Y − μ)x̃ / √(Σ μ(1 − μ/n)x̃²),   μ = nθeₖ,

with x̃ the part of x that levels do not explain. Given the clicks of an item, residuals do not depend on its θ̂.
"""

import numpy as np
from scipy.special import ndtr

from prudent.base.arrays import FloatArray
from prudent.counts.lists import ListBatch

LEVEL = 0.01
"""The p-value up to which there is evidence of trust bias."""
CLICKS = 5
"""Clicks of an item below which its θ says nothing."""
_ROUNDS = 500


def trust_bias(lists: ListBatch) -> float:
    """The one-sided p-value of the test; 1 where there is nothing to compare."""
    shown, clicked = rates_without_clicks_above(lists, CLICKS)
    kept = (shown > 0).sum(axis=1) > 1
    shown, clicked = shown[kept], clicked[kept]
    if not len(shown):
        return 1.0
    theta, examined = fit_product(shown, clicked)
    z = score(shown, clicked, theta, examined, np.log(theta)[:, None] * np.arange(shown.shape[1]))
    return float(ndtr(-z))


def rates_without_clicks_above(lists: ListBatch, fewest: int) -> tuple[FloatArray, FloatArray]:
    """Impressions and clicks at every position, where nothing above was clicked, of pairs with so many such clicks."""
    clicked_at = np.where(lists.clicks.any(axis=1), lists.clicks.argmax(axis=1), lists.length)
    rows = np.flatnonzero(clicked_at < lists.length)
    hits = np.bincount(lists.items[rows, clicked_at[rows]], lists.n[rows], minlength=len(lists.context))
    kept = hits >= fewest
    number = np.append(np.cumsum(kept) * kept - 1, -1)  # −1 of the others, and below the end of a short list
    shown, clicked = np.zeros((2, int(kept.sum()), lists.length))
    for k in range(lists.length):
        pair = number[lists.items[:, k]]
        for table, lasting in ((shown, clicked_at >= k), (clicked, clicked_at == k)):
            here = lasting & (pair >= 0)
            table[:, k] = np.bincount(pair[here], lists.n[here], minlength=len(table))
    return shown, clicked


def fit_product(shown: FloatArray, clicked: FloatArray) -> tuple[FloatArray, FloatArray]:
    """θ of items and e of positions, e₁ = 1, that fit the click rates best, in turn."""
    examined = np.ones(shown.shape[1])
    for _ in range(_ROUNDS):
        theta = clicked.sum(axis=1) / (shown * examined).sum(axis=1)
        expected = (shown * theta[:, None]).sum(axis=0)
        now = np.divide(clicked.sum(axis=0), expected, out=np.ones_like(expected), where=expected > 0)
        now = np.maximum(now / max(now[0], 1e-9), 1e-9)
        settled = np.abs(now - examined).max() < 1e-10
        examined = now
        if settled:
            break
    return clicked.sum(axis=1) / (shown * examined).sum(axis=1), examined


def score(shown: FloatArray, clicked: FloatArray, theta: FloatArray, examined: FloatArray, x: FloatArray) -> float:
    """Z of a covariate x, in standard errors."""
    expected = shown * theta[:, None] * examined
    x = np.where(expected > 0, x, 0.0)
    for _ in range(_ROUNDS):  # what levels of items and of positions explain, in turn
        for axis in (1, 0):
            total = np.maximum(expected.sum(axis=axis, keepdims=True), 1e-12)
            level = (expected * x).sum(axis=axis, keepdims=True) / total
            x = np.where(expected > 0, x - level, 0.0)
        if np.abs(level).max() < 1e-10:
            break
    rate = np.minimum(theta[:, None] * examined, 0.999)
    variance = float(np.sum(expected * (1 - rate) * x * x))
    return float(np.sum((clicked - expected) * x) / variance**0.5) if variance > 0 else 0.0
