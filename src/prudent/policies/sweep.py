"""The best lists by one bound at many δ at once: for tuning and experiments."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.bounds import Bound, Scores
from prudent.bounds.base import Anchor, Prior
from prudent.bounds.bayes import PosteriorBound, posterior_scores
from prudent.click_models.evidence import Evidence
from prudent.policies.best_lists import best_lists
from prudent.policies.list_arrays import Lists

_T = TypeVar("_T")


def sweep(bound: Bound, evidence: Evidence, deltas: tuple[float | None, ...], length: int) -> Iterator[Lists]:
    """The best lists by one bound at each δ."""
    if not isinstance(bound, PosteriorBound):
        scores = [(bound if delta is None else with_settings(bound, delta=delta)).score(evidence) for delta in deltas]
        yield from best_lists_of_each(evidence, scores, length)
        return
    prior = bound.prior(evidence)
    alpha, beta = (np.broadcast_to(of, evidence.context.shape) for of in prior[:2])
    rows = np.arange(len(evidence.context))
    if evidence.skips is None:  # or else two posteriors can cross
        rows = np.flatnonzero(_may_be_chosen(evidence, alpha + evidence.positive, beta + evidence.negative, length))
    few = evidence.select(rows)
    own = Prior(alpha[rows], beta[rows])
    scores = [posterior_scores(few, own, bound.delta if delta is None else delta) for delta in deltas]
    for lists in best_lists_of_each(few, scores, length):
        yield lists._replace(row=rows[lists.row])


def best_lists_of_each(evidence: Evidence, scores: Sequence[Scores], length: int) -> Iterator[Lists]:
    """The best lists by each of several scores, found in one go: another δ is as good as another context."""
    times, pairs = len(scores), len(evidence.context)
    contexts = int(evidence.context[-1]) + 1
    number = np.repeat(np.arange(times), pairs)
    tiled: dict[str, Any] = {name: np.tile(getattr(evidence, name), times) for name in evidence.per_pair}
    stacked = replace(evidence, **{**tiled, "context": tiled["context"] + number * contexts}, skips=None, signals=None)
    lower, mean = (np.concatenate([getattr(score, name) for score in scores]) for name in ("lower", "mean"))
    anchors = [score.anchor for score in scores if score.anchor is not None]
    anchor = _stacked(anchors, pairs) if anchors else None
    found = best_lists(stacked, Scores(lower, mean, anchor=anchor), length)
    ends = np.searchsorted(found.context, np.arange(1, times) * contexts)
    for k, (row, context, rank) in enumerate(zip(*(np.split(column, ends) for column in found), strict=True)):
        yield Lists(row - k * pairs, context - k * contexts, rank)


def _stacked(anchors: Sequence[Anchor], pairs: int) -> Anchor:
    """One anchor for the rows of several, one after the other."""

    def stay(rows: IntArray) -> FloatArray:
        thresholds = np.empty(len(rows))
        for k, anchor in enumerate(anchors):
            here = rows // pairs == k
            thresholds[here] = anchor.stay(rows[here] - k * pairs)
        return thresholds

    return Anchor(stay, np.concatenate([anchor.leads for anchor in anchors]))


def _may_be_chosen(evidence: Evidence, alpha: FloatArray, beta: FloatArray, length: int) -> BoolArray:
    """Leave out the pairs that at least K others of their context beat at every δ; quantiles cost more than all else.

    Beta(α, β) has larger quantiles, and a larger mean, the larger α and the smaller β. Where both are equal,
    impressions and then the number decide, as in ranking.
    """
    # Most documents of a query were never seen. All have the same posterior, and the first K of them are taken.
    unseen = evidence.impressions == 0
    before = np.cumsum(unseen) - unseen
    first = np.searchsorted(evidence.context, evidence.context)  # where its context starts
    keep = np.asarray(~unseen | (before - before[first] < length))
    row = np.flatnonzero(keep)
    row = row[np.lexsort((-evidence.impressions[row], evidence.context[row]))]  # stable: then by number
    size = np.bincount(evidence.context[row])
    start = np.cumsum(size) - size
    width = 1 << np.ceil(np.log2(np.maximum(size, 1))).astype(int)  # of the tables that similar contexts share
    for w in np.unique(width[size > length]).tolist():
        crowded = np.flatnonzero((width == w) & (size > length))
        for some in np.array_split(crowded, -(-len(crowded) * w * w // _AT_ONCE)):
            inside = np.arange(w) < size[some, None]
            of = row[np.minimum(start[some, None] + np.arange(w), len(row) - 1)]
            a, b = np.where(inside, alpha[of], -np.inf), np.where(inside, beta[of], np.inf)
            # [context, i, j]: whether i is as good as j. Of two that are so to each other, the one that comes first is.
            good = (a[:, :, None] >= a[:, None, :]) & (b[:, :, None] <= b[:, None, :])
            beats = good & ~(good.swapaxes(1, 2) & np.tri(w, dtype=bool))
            keep[of[inside]] = (np.count_nonzero(beats, axis=1) < length)[inside]
    return keep


_AT_ONCE = 4_000_000  # comparisons of pairs held at a time: 4 MB


def with_settings(method: _T, **settings: Any) -> _T:
    """The same method with other settings; every registered one is a frozen dataclass, which protocols cannot say."""
    return replace(method, **settings)  # type: ignore[type-var]
