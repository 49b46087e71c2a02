"""The contract of feature models."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.spec import Registry
from prudent.counts.feature_columns import Features


class Target(NamedTuple):
    """What a model explains: the clicks of pairs, beside those that the prior without features expects."""

    clicks: FloatArray  # weighed: of many examinations of one pair, each counts less
    examined: FloatArray  # above 0, weighed in the same way
    offset: FloatArray  # logit of the expected rate
    fold: IntArray  # of the context: a model that holds out some pairs holds out whole folds

    def only(self, rows: IntArray | BoolArray) -> "Target":
        """That of some pairs."""
        return Target(self.clicks[rows], self.examined[rows], self.offset[rows], self.fold[rows])


class FittedFeatureModel(Protocol):
    """What features add to logit μ."""

    @property
    def shares(self) -> Mapping[str, float]:
        """The share of each feature in what they add; 0 for one that is not used."""
        ...

    @property
    def saved(self) -> Mapping[str, Any]:
        """All that `predict` needs, as JSON."""
        ...

    def predict(self, features: Features) -> FloatArray:
        """What is added to the offset of each pair, up to a constant.

        A level is known by its name, and those that the model does not know, as any number, are allowed.
        """
        ...


class FeatureModel(Protocol):
    """What learns from features; its settings are its fields. The same input gives the same bytes."""

    def check(self, features: Features) -> None:
        """Raise where settings do not fit to these features, or a package is missing."""

    def fit(self, features: Features, target: Target) -> FittedFeatureModel:
        """Fit to pairs of some contexts; no column is sure to differ among them."""
        ...

    def restored(self, saved: Mapping[str, Any]) -> FittedFeatureModel:
        """The fitted model from what it saved; a ValueError where that is damaged: it may come from a stranger."""
        ...


feature_models: Registry[FeatureModel] = Registry(
    "feature model", "prudent.feature_models", "restored", "prudent.bounds.feature_models"
)
