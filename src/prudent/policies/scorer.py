"""What scores pairs under one click model: the bound, whose prior follows groups and features where there are any."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from prudent.base.errors import UsageError
from prudent.bounds import Bound
from prudent.bounds.base import PriorRule
from prudent.bounds.features import SIGNAL, knows_clicks
from prudent.bounds.groups import Effects
from prudent.bounds.rewards import RewardBound, fit_mean_reward
from prudent.click_models import Evidence
from prudent.click_models.base import FittedModel
from prudent.counts.groupings import NO_GROUPINGS, Groupings
from prudent.counts.index import Part
from prudent.policies.feature_signals import LEAK, LEARNED, NOTHING, FeatureSignals, joined
from prudent.policies.robust_lists import View


class Groups(NamedTuple):
    """What groups pairs, and what adds up the totals of groups over all contexts."""

    groupings: Groupings
    add_up: Callable[[FittedModel, PriorRule], Effects]


class Scorer(NamedTuple):
    """What scores pairs under one click model."""

    fitted: FittedModel
    bound: Bound
    groupings: Groupings = NO_GROUPINGS
    effects: Effects | None = None  # of groups
    features: FeatureSignals | None = None

    def evidence(self, part: Part) -> Evidence:
        """The evidence of every pair."""
        evidence = self.fitted.evidence(part.cells).ranked
        of_groups = None if self.effects is None else self.effects.of(evidence, self.groupings.keys(part))
        of_features = None if self.features is None else self.features.of(part)
        return replace(evidence, signals=joined(of_groups, of_features))

    def score(self, part: Part) -> View:
        """The evidence of every pair, and its scores."""
        evidence = self.evidence(part)
        return View(evidence, self.bound.score(evidence))


def check_names(groups: Groups | None, features: FeatureSignals | None) -> None:
    """Raise where a request could not tell a grouping from a feature."""
    for name in () if groups is None else groups.groupings.names:
        if name == SIGNAL or (features is not None and name in features.names):
            raise UsageError(f"{name!r} names a grouping and features: rename the column of one of them.")


def fit_scorer(
    asked: Bound,
    fitted: FittedModel,
    fair: Part,
    pairs: int,
    groups: Groups | None,
    features: FeatureSignals | None,
) -> tuple[Scorer, Evidence]:
    """What scores pairs under a click model, and the evidence that it was fitted to."""
    evidence = fitted.evidence(fair.cells).ranked
    bound = asked.learn(evidence, pairs)
    if groups is None and features is None:
        return Scorer(fitted, _rewarding(asked, bound, evidence)), evidence
    prior = bound.ungrouped
    if prior is None:
        what = "features" if groups is None else "groups"
        raise UsageError(f"{asked} has no prior that follows {what}: use bound=anchored.")
    of_groups, effects = None, None
    if groups is not None:
        effects = groups.add_up(fitted, prior)
        of_groups = effects.of(evidence, groups.groupings.keys(fair))
    grouped = replace(evidence, signals=of_groups)
    if features is not None:
        features = features.learn(fair, evidence, prior)
        evidence = replace(evidence, signals=joined(of_groups, features.of(fair)))
        bound = asked.learn(evidence, pairs)
        after = None if bound.ungrouped is None else bound.ungrouped.of(evidence)
        if after is not None and knows_clicks(evidence, np.asarray(after.alpha / (after.alpha + after.beta))):
            features = replace(features, outcome=LEAK)
        elif features.outcome == LEARNED and not _slopes(bound, evidence).get(SIGNAL):
            features = replace(features, outcome=NOTHING)
    if features is None or features.outcome != LEARNED:
        evidence = grouped
        bound = asked.learn(evidence, pairs)
    scorer = Scorer(fitted, _rewarding(asked, bound, evidence), features=features)
    if groups is not None:
        used = frozenset(name for name, slope in _slopes(bound, evidence).items() if slope)
        scorer = scorer._replace(groupings=replace(groups.groupings, used=used), effects=effects)
    return scorer, evidence


def _rewarding(asked: Bound, bound: Bound, evidence: Evidence) -> Bound:
    """The bound on attraction or, where the log has rewards, on what an examination earns."""
    if evidence.rewards is None:
        return bound
    return RewardBound(bound, fit_mean_reward(evidence.rewards), str(asked))


def _slopes(bound: Bound, evidence: Evidence) -> dict[str, float]:
    """By which the prior follows each signal."""
    terms = bound.fitted(evidence).get("by_group", {})
    return {name: term["slope"] for name, term in terms.items()}
