"""What features of a pair say about its clicks: one more signal of the prior, beside those of groups.

1. A model learns what features add to the logit of the clicks that a prior without signals expects: it explains what
   exposure does not. Of n examinations of one pair, (s + 1) / (s + n) each count, as in `prudent.bounds.groups`.
2. Contexts are in folds by their names, and each fold has a model that was fitted to the others: no pair sees what a
   model made of the clicks of its own context. For contexts that the log does not have, one is fitted to all.
3. The prediction is a signal like that of a group: the prior is fitted with a slope for it, which is kept as far as the
   data support it, and with a strength that pays for what features do not know.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logit

from prudent.base.arrays import FloatArray, IntArray
from prudent.bounds.base import Prior
from prudent.bounds.feature_models.base import FeatureModel, FittedFeatureModel, Target
from prudent.click_models.evidence import Evidence
from prudent.counts.feature_columns import Features, take

SIGNAL = "features"
"""The name of the signal."""
ALL = -1
"""The fold of a context that no model saw."""
_FEWEST = 100  # pairs, and the tenth of it clicks, to fit a model to
_CERTAIN = 1e-6
_IMPRESSIONS = ((2, 2), (3, 3), (4, 7))
_SURE, _CLEARLY = 4.0, 0.05  # standard errors, and the share of the variance, below which clicks are known


@dataclass(frozen=True, eq=False)
class Learned:
    """A fitted model, whose mean prediction is taken away."""

    model: FittedFeatureModel
    level: float

    def predict(self, features: Features) -> FloatArray:
        """Log odds; 0 says nothing."""
        return np.nan_to_num(self.model.predict(features) - self.level, nan=0.0, posinf=0.0, neginf=0.0)


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """A model for each fold, fitted to the others, and one fitted to all."""

    folds: tuple[Learned, ...]
    whole: Learned

    def signal(self, features: Features, fold: IntArray) -> FloatArray:
        """What features say of pairs in these folds."""
        found = np.zeros(len(fold))
        for number, model in ((ALL, self.whole), *enumerate(self.folds)):
            rows = np.flatnonzero(fold == number)
            if rows.size:
                found[rows] = model.predict(take(features, rows))
        return found

    def to_json(self) -> dict[str, Any]:
        """What features add, for the manifest of a policy."""
        return {"shares": dict(self.whole.model.shares)}


def target_of(evidence: Evidence, prior: Prior, fold: IntArray) -> Target:
    """What models explain: the clicks of examined pairs beside those that the prior expects."""
    strength = np.asarray(prior.alpha + prior.beta)
    mean = np.clip(prior.alpha / strength, _CERTAIN, 1 - _CERTAIN)
    weight = (strength + 1) / (strength + np.maximum(evidence.examined, 1))
    every = np.broadcast_to(logit(mean), evidence.context.shape)
    return Target(weight * evidence.positive, weight * evidence.examined, np.asarray(every), fold)


def cross_fit(model: FeatureModel, features: Features, target: Target, folds: int) -> CrossFitted | None:
    """One model for each fold and one for all; None where there is too little to learn from."""
    rows = np.flatnonzero(target.examined > 0)
    some, seen = take(features, rows), target.only(rows)

    def learn(kept: IntArray) -> Learned | None:
        own, part = take(some, kept), seen.only(kept)
        if len(kept) < _FEWEST or part.clicks.sum() < _FEWEST / 10:
            return None
        fitted = model.fit(own, part)
        return Learned(fitted, float(np.mean(fitted.predict(own))))

    each = [learn(np.flatnonzero(seen.fold != number)) for number in range(folds)]
    whole = learn(np.arange(len(rows)))
    learned = tuple(one for one in each if one is not None)
    return CrossFitted(learned, whole) if whole is not None and len(learned) == folds else None


def knows_clicks(evidence: Evidence, mean: FloatArray) -> bool:
    """Whether the expected rates were made from these very clicks, as "clicked last week" may be.

    Given what was known before, the clicks on different impressions of a pair agree at least as often as by chance,
    since nothing is known completely: Σ over two impressions of (c − xμ)(c′ − x′μ) is not below 0. Where μ knows how
    many of them there are, one more here is one less elsewhere, and it is. Pairs that were examined once cannot tell.
    """
    shown = evidence.impressions
    if np.any(shown != np.rint(shown)):  # old days weigh less: impressions are no longer apart
        return False
    expected, squares = evidence.expected, evidence.squares
    each = np.divide(squares, expected, out=np.zeros_like(expected), where=expected > 0)
    own = evidence.positive - 2 * mean * evidence.positive * each + mean**2 * squares
    across = (evidence.positive - expected * mean) ** 2 - own
    possible = (expected**2 - squares) * mean * (1 - mean)
    # Pairs of a few impressions each, apart: one rate for all of them is less exact the more they differ in these.
    for few, many in _IMPRESSIONS:
        rows = np.flatnonzero((shown >= few) & (shown <= many) & (expected > 0))
        total, by_context = float(np.sum(across[rows])), np.bincount(evidence.context[rows], across[rows])
        error = float(np.sqrt(np.sum(by_context**2)))
        if total < -_SURE * error and total < -_CLEARLY * float(np.sum(possible[rows])):
            return True
    return False


def restored(model: FeatureModel, saved: Mapping[str, Any], level: float) -> Learned:
    """The model that was fitted to all, from what it saved."""
    return Learned(model.restored(saved), level)
