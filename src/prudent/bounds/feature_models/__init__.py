"""Models of what features add to logit attraction; a module registers one, and `feature_models` finds it by name.

>>> list(feature_models)
['lightgbm', 'ridge']
"""

from prudent.bounds.feature_models.base import FeatureModel, FittedFeatureModel, Target, feature_models

DEFAULT_FEATURE_MODEL = "ridge"

__all__ = ["DEFAULT_FEATURE_MODEL", "FeatureModel", "FittedFeatureModel", "Target", "feature_models"]
