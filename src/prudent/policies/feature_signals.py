"""Features of the pairs of a log, and the models that turn them into a signal."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from prudent.base.errors import UsageError
from prudent.bounds.base import PriorRule
from prudent.bounds.feature_models import DEFAULT_FEATURE_MODEL, FeatureModel, feature_models
from prudent.bounds.features import ALL, SIGNAL, CrossFitted, cross_fit, target_of
from prudent.click_models.evidence import Evidence
from prudent.counts.feature_tables import FOLDS, FeatureTables, folds, read_features
from prudent.counts.groups import Signals
from prudent.counts.index import Part
from prudent.engines.duckdb.engine import DuckDB

LEARNED, TOO_FEW, NOTHING, LEAK = "learned", "too few clicks", "nothing", "leak"
"""What came of features: the prior follows them; or there is too little to learn from, they say nothing about clicks in
other contexts, or they know these very clicks."""


class FeatureRequest(NamedTuple):
    """Tables of features, what learns from them, and the columns that name a context in them."""

    sources: Any = None
    model: FeatureModel | str | None = None
    context: Sequence[str] = ("context",)

    @property
    def nothing(self) -> bool:
        """Whether there are no features."""
        return self.sources is None

    def check(self) -> "FeatureRequest":
        """The same with the model that was named."""
        if self.nothing and self.model is not None:
            raise UsageError("feature_model (--feature-model) learns from features (--features): name them too.")
        return self if self.model is None else self._replace(model=feature_models.resolve(self.model))

    def open(self, engine: DuckDB, named: tuple[str, str]) -> "FeatureSignals":
        """Read the tables; ``named`` are DuckDB's types of the log's contexts and items."""
        model = feature_models.resolve(DEFAULT_FEATURE_MODEL if self.model is None else self.model)
        tables = read_features(self.sources, self.context, engine, named)
        model.check(tables.columns)
        return FeatureSignals(tables, model)


NO_FEATURES = FeatureRequest()


@dataclass(frozen=True, eq=False)
class FeatureSignals:
    """Features and, once they are learned from, the models: turns pairs into a signal."""

    tables: FeatureTables
    model: FeatureModel
    fitted: CrossFitted | None = None  # None where there is too little to learn from
    outcome: str = TOO_FEW

    @property
    def names(self) -> list[str]:
        """Of the features."""
        return [feature.name for feature in self.tables.columns]

    @property
    def settings(self) -> dict[str, Any]:
        """For the manifest."""
        return {"features": list(self.tables.sources), "feature_model": str(self.model)}

    def learn(self, part: Part, evidence: Evidence, prior: PriorRule) -> "FeatureSignals":
        """With models for the pairs of a sample of contexts."""
        target = target_of(evidence, prior.of(evidence), folds(part.contexts)[part.cells.context])
        fitted = cross_fit(self.model, self.tables.of(self.tables.rows(part)), target, FOLDS)
        return replace(self, fitted=fitted, outcome=TOO_FEW if fitted is None else LEARNED)

    def of(self, part: Part) -> Signals | None:
        """The signal of every pair, by a model that did not see its context."""
        if self.fitted is None or self.outcome != LEARNED:
            return None
        logged = part.cells.lists_per_context() > 0
        fold = np.where(logged, folds(part.contexts), ALL)[part.cells.context]
        rows = self.tables.rows(part)
        signal = np.zeros(len(fold))
        for number in np.unique(fold).tolist():
            some = np.flatnonzero(fold == number)
            signal[some] = self.fitted.signal(self.tables.of([row[some] for row in rows]), fold[some])
        return Signals((SIGNAL,), signal[:, None])

    def to_json(self) -> dict[str, Any]:
        """What was learned, for the manifest."""
        shares = dict.fromkeys(self.names, 0.0) if self.fitted is None else self.fitted.whole.model.shares
        return {"enough": self.outcome != TOO_FEW, "leak": self.outcome == LEAK, "shares": dict(shares)}


def joined(*signals: Signals | None) -> Signals | None:
    """All of the signals."""
    some = [one for one in signals if one is not None]
    if len(some) < 2:
        return some[0] if some else None
    return Signals(tuple(name for one in some for name in one.names), np.column_stack([one.values for one in some]))
