"""A test for trust bias: whether position acts on often clicked items as on rarely clicked ones.

Under pbm, cm, dcm and ubm the click rate of an item at position k, where nothing above was clicked, is a product θ·eₖ.
Where users trust the top of a list, they also click what does not attract them there: rates are θ·aₖ + bₖ, and rarely
clicked items lose more by going down than often clicked ones. The test is of the score of a coefficient of
``x = k · log θ`` in a log-linear model of clicks with a level for every item and for every position,

    S = Σᵢ Sᵢ,   Sᵢ = Σₖ (Yᵢₖ − μᵢₖ)x̃ᵢₖ,   μ = nθeₖ,

with x̃ the part of x that levels do not explain. θ in x comes from one half of an item's impressions and the residuals
from the other: an item that was lucky in all of them was so at every position it was shown at, and at the top, where
rates are high, there is less room for luck, which looks like trust bias. In a long-tailed log of pbm, z was 3 on
average where halves were not apart. Sᵢ is the mean over several halvings, and z Student's t of the Sᵢ, which are
independent.
"""

import numpy as np
from scipy.special import stdtr

from prudent.base.arrays import FloatArray, IntArray
from prudent.counts.lists import ListBatch

LEVEL = 0.01
"""The p-value up to which there is evidence of trust bias."""
CLICKS = 3
"""Clicks of an item, in the half that θ comes from, below which they say nothing."""
MOST_PAIRS = 50_000
"""Pairs that are compared: those that were shown most."""
HALVINGS = 5
_ROUNDS = 500


def trust_bias(lists: ListBatch) -> float:
    """The one-sided p-value of the test; 1 where there is nothing to compare."""
    shown, clicked = rates_without_clicks_above(lists, CLICKS)
    kept = np.flatnonzero((shown > 0).sum(axis=1) > 1)
    if len(kept) > MOST_PAIRS:
        kept = kept[np.argsort(-shown[kept].sum(axis=1), kind="stable")[:MOST_PAIRS]]
    shown, clicked = shown[kept], clicked[kept]
    if not len(shown):
        return 1.0
    _, examined = fit_product(shown, clicked)
    clicks, skips = clicked.astype(np.int64), (shown - clicked).astype(np.int64)
    random, total = np.random.default_rng(0), np.zeros(len(shown))
    for _ in range(HALVINGS):
        one = random.binomial(clicks, 0.5), random.binomial(skips, 0.5)
        other = clicks - one[0], skips - one[1]
        total += scores_by_half(*one, *other, examined) + scores_by_half(*other, *one, examined)
    total = total[total != 0]
    if len(total) < 2 or not (spread := total.std(ddof=1)):
        return 1.0
    return float(stdtr(len(total) - 1, -total.mean() * len(total) ** 0.5 / spread))


def scores_by_half(
    clicks: IntArray, skips: IntArray, other_clicks: IntArray, other_skips: IntArray, examined: FloatArray
) -> FloatArray:
    """Scores of items by the residuals of the other half of their impressions, with θ in x from this one."""
    enough = clicks.sum(axis=1) >= CLICKS
    log_theta = np.log(np.where(enough, _attraction(clicks, clicks + skips, examined), 1.0))
    shown, clicked = np.where(enough[:, None], (other_clicks + other_skips, other_clicks), 0.0)
    theta = _attraction(clicked, shown, examined)
    return scores(shown, clicked, theta, examined, log_theta[:, None] * np.arange(shown.shape[1]))


def _attraction(clicked: FloatArray | IntArray, shown: FloatArray | IntArray, examined: FloatArray) -> FloatArray:
    """θ of items where nothing but θ is to be fitted; 0 where they were not shown."""
    examinations = (shown * examined).sum(axis=1)
    clicks = clicked.sum(axis=1).astype(np.float64)
    return np.asarray(np.divide(clicks, examinations, out=np.zeros(len(shown)), where=examinations > 0))


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


def scores(
    shown: FloatArray, clicked: FloatArray, theta: FloatArray, examined: FloatArray, x: FloatArray
) -> FloatArray:
    """Of a covariate x, for every item."""
    expected = shown * theta[:, None] * examined
    x = np.where(expected > 0, x, 0.0)
    for _ in range(_ROUNDS):  # what levels of items and of positions explain, in turn
        for axis in (1, 0):
            total = np.maximum(expected.sum(axis=axis, keepdims=True), 1e-12)
            level = (expected * x).sum(axis=axis, keepdims=True) / total
            x = np.where(expected > 0, x - level, 0.0)
        if np.abs(level).max() < 1e-10:
            break
    return np.asarray(np.sum((clicked - expected) * x, axis=1))
