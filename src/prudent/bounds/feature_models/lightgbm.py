"""Boosted trees, grown by LightGBM: the extra ``features``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray
from prudent.base.errors import UsageError, did_you_mean
from prudent.base.spec import as_number, check_number, whole_number
from prudent.base.strict_json import typed
from prudent.bounds.feature_models.base import FeatureModel, FittedFeatureModel, Target, feature_models
from prudent.bounds.feature_models.trees import Forest, grown
from prudent.counts.feature_columns import MISSING, Categorical, Features, Numeric

_PATIENCE = 10  # trees that may come without a better prediction
_DEEPEST = 4
_FEWEST = 10  # pairs held out, for their likelihood to end a fit


@feature_models.register("lightgbm")
@dataclass(frozen=True)
class LightGBM(FeatureModel):
    """Gradient boosting of small trees, on the binomial likelihood of clicks beside the offset; not in the paper.

    Each tree has at most `leaves` leaves and a depth of 4, so that features interact. One fold of the contexts is held
    out, and trees end where its likelihood does, at most with `trees`. ``increasing`` and ``decreasing`` name numeric
    features that may only raise, or only lower, the attraction: ``lightgbm(decreasing=[price])``.

    LightGBM (``pip install 'prudent[features]'``) grows the trees, with a fixed seed and one thread, so that the same
    pairs give the same trees. They are kept as JSON and read without it, wherever lists are ranked.
    """

    trees: int = 60
    leaves: int = 8
    rate: float = 0.1  # what a tree is multiplied by
    increasing: tuple[str, ...] = ()
    decreasing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, most in (("trees", 200), ("leaves", 16)):
            number = as_number(getattr(self, name))
            value = int(number) if number == np.floor(number) else number
            object.__setattr__(self, name, whole_number(name, value, 2, most))
        check_number("rate", self.rate, above=0, most=1, example="0.1")
        for name in ("increasing", "decreasing"):
            words = getattr(self, name)
            words = (words,) if isinstance(words, str) else words
            if not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words):
                raise UsageError(f"{name} is {words!r}: name features, such as {name}=[price].")
            object.__setattr__(self, name, tuple(words))
        if both := set(self.increasing) & set(self.decreasing):
            raise UsageError(f"{min(both)!r} cannot be increasing and decreasing.")

    def check(self, features: Features) -> None:
        """Whether there is LightGBM, and numbers to be monotone in."""
        _package()
        numeric = {feature.name: isinstance(feature, Numeric) for feature in features}
        for name in (*self.increasing, *self.decreasing):
            if name not in numeric:
                near = did_you_mean(name, numeric)
                raise UsageError(f"There is no feature {name!r}.{near} There are: {', '.join(numeric)}.")
            if not numeric[name]:
                raise UsageError(f"The feature {name!r} has levels, which have no order: it cannot be monotone.")

    def fit(self, features: Features, target: Target) -> "Forest":
        """Trees until the likelihood of the fold that is held out no longer rises."""
        lightgbm = _package()
        held_out = target.fold == target.fold.min()
        if held_out.sum() < _FEWEST or (~held_out).sum() < _FEWEST:
            return Forest.none(features)
        direction = [(one.name in self.increasing) - (one.name in self.decreasing) for one in features]
        constraints = {"monotone_constraints": direction} if any(direction) else {}
        settings = {
            "objective": "cross_entropy",
            "num_leaves": self.leaves,
            "max_depth": _DEEPEST,
            "learning_rate": self.rate,
            "min_data_in_leaf": 50,
            "min_sum_hessian_in_leaf": 1.0,
            "lambda_l2": 5.0,
            "max_bin": 63,
            "min_data_per_group": 50,
            "seed": 1,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbosity": -1,
            **constraints,
        }
        matrix = np.column_stack([_column(one) for one in features])
        levels = [at for at, one in enumerate(features) if isinstance(one, Categorical)]

        def some(rows: BoolArray) -> dict[str, Any]:
            rate = np.clip(target.clicks[rows] / target.examined[rows], 0, 1)
            return {"label": rate, "weight": target.examined[rows], "init_score": target.offset[rows]}

        grow = lightgbm.Dataset(
            matrix[~held_out], **some(~held_out), categorical_feature=levels, params={"verbosity": -1}
        )
        end = grow.create_valid(matrix[held_out], **some(held_out))
        booster = lightgbm.train(
            settings,
            grow,
            self.trees,
            valid_sets=[end],
            callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False)],
        )
        best = booster.best_iteration
        return grown(features, booster.dump_model(num_iteration=best if best > 0 else None))

    def restored(self, saved: Mapping[str, Any]) -> FittedFeatureModel:
        """Checked node by node; LightGBM never reads it."""
        fitted: Forest = typed(dict(saved), Forest)
        return fitted


def _column(feature: Numeric | Categorical) -> FloatArray:
    """As LightGBM wants it: NaN where there is nothing, or a level that is too rare to have a name."""
    if isinstance(feature, Numeric):
        return feature.values
    unknown = (feature.codes == MISSING) | (feature.codes == len(feature.levels))
    return np.where(unknown, np.nan, feature.codes)


def _package() -> Any:
    try:
        import lightgbm
    except (ImportError, OSError) as error:  # the latter without its libgomp
        raise UsageError(
            f"The feature model lightgbm needs LightGBM ({error}): pip install 'prudent[features]', or take ridge."
        ) from None
    return lightgbm
