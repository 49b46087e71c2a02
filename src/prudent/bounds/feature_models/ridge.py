"""A generalized linear model whose penalties are fitted: the default."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.numerics.beta_binomial import combine
from prudent.base.numerics.penalized import Design, fit_penalized
from prudent.base.strict_json import typed
from prudent.bounds.feature_models.base import FeatureModel, FittedFeatureModel, Target, feature_models
from prudent.counts.feature_columns import Categorical, Feature, Features, Numeric

_KNOTS = 33  # quantiles, between which ranks are interpolated
_BENT = 30  # numeric features at most, for each of them to have a bend
_FARTHEST = 4.0  # of a value from the median, in standard deviations
_FEWEST = 10  # pairs, for a level to be distinguished
_MOST_LEVELS = 200  # that are distinguished, of all features
_WORK = 6e8  # pairs times the square of columns, at most


@feature_models.register("ridge")
@dataclass(frozen=True)
class Ridge(FeatureModel):
    """``n₊ ~ Binomial(n, μ)``, ``logit μ = offset + c + Σ_f x_f · β_f``, with ``β_f ~ N(0, τ_f²)`` for each feature f.

    1. A number has the columns r, r² and v: r is its rank, from −1 to 1 between 33 quantiles, and v its distance from
       the median in standard deviations, within ±4. So nothing depends on units or on outliers, a curve may bend, and
       may be a line. Beyond 30 numeric features r is alone. A missing number is at the mean of each, and has a column
       of its own.
    2. A level of a category has one column, also "none" and "another": these are the levels of fewer than 10 pairs, and
       all but the 200 most frequent ones of all features.
    3. The τ_f are those of the greatest marginal likelihood (MacKay's fixed point, Laplace's approximation): a feature
       that says nothing about clicks is shrunk to nothing, by itself and without a grid.

    Features add up: what the price of an item says does not depend on the context. For interactions, make them a
    feature, or take ``lightgbm``.
    """

    def check(self, features: Features) -> None:
        """Any features will do."""

    def fit(self, features: Features, target: Target) -> "FittedRidge":
        """Of the greatest posterior density under the fitted τ_f."""
        numeric = [feature for feature in features if isinstance(feature, Numeric)]
        bent = len(numeric) <= _BENT
        wide = 1 + sum((3 if bent else 1) + bool(np.isnan(one.values).any()) for one in numeric)
        step = max(1, -int(-len(target.clicks) * wide**2 // _WORK))
        some = np.arange(0, len(target.clicks), step)
        features, target = [feature.take(some) for feature in features], target.only(some)
        counted = {one.name: np.bincount(one.codes + 1, minlength=len(one.levels) + 2)[1:-1]
                   for one in features if isinstance(one, Categorical)}  # fmt: skip
        every = np.sort(np.concatenate([np.zeros(1, np.int64), *counted.values()]))
        fewest = max(_FEWEST, int(every[-_MOST_LEVELS - 1]) + 1 if len(every) > _MOST_LEVELS else 0)
        terms: list[_Numbers | _Levels] = []
        for one in features:
            if isinstance(one, Numeric):
                terms.append(_Numbers.of(one, bent))
            else:
                own = (name for name, pairs in zip(one.levels, counted[one.name], strict=True) if pairs >= fewest)
                terms.append(_Levels.of(one, tuple(own)))
        blocks = [term.block(one) for term, one in zip(terms, features, strict=True)]
        slopes = fit_penalized(Design(blocks), target.clicks, target.examined, target.offset)
        made = [term.with_slopes(own, one) for term, own, one in zip(terms, slopes, features, strict=True)]
        return FittedRidge(
            tuple(term for term in made if isinstance(term, _Numbers)),
            tuple(term for term in made if isinstance(term, _Levels)),
        )

    def restored(self, saved: Mapping[str, Any]) -> FittedFeatureModel:
        """Checked entry by entry."""
        fitted: FittedRidge = typed(dict(saved), FittedRidge)
        return fitted


@dataclass(frozen=True)
class _Numbers:
    """What a number adds."""

    name: str
    knots: tuple[float, ...]  # ascending
    ranks: tuple[float, ...]  # at the knots
    centre: float
    scale: float
    means: tuple[float, ...]  # of the columns
    slopes: tuple[float, ...] = ()
    missing: float = 0.0  # what a missing one adds
    deviation: float = 0.0  # of what it adds, among the pairs of the fit

    def __post_init__(self) -> None:
        fits = len(self.knots) == len(self.ranks) and len(self.means) in (0, 1, 3)
        if not fits or not self.scale > 0 or (self.slopes and len(self.slopes) != len(self.means)):
            raise ValueError("the columns of a feature do not fit together")
        if np.any(np.diff(self.knots) <= 0) or np.any(np.abs(self.ranks) > 1):
            raise ValueError("the quantiles of a feature are out of order")

    @classmethod
    def of(cls, feature: Numeric, bent: bool) -> "_Numbers":
        """Its columns; none where all numbers are the same."""
        known = np.sort(feature.values[~np.isnan(feature.values)])
        if not known.size or known[0] == known[-1]:
            return cls(feature.name, (), (), 0.0, 1.0, ())
        knots = np.unique(np.quantile(known, np.linspace(0, 1, _KNOTS), method="nearest"))
        upto = np.searchsorted(known, knots, "left") + np.searchsorted(known, knots, "right")
        low, centre, high = (known[int(share * (known.size - 1))] for share in (0.16, 0.5, 0.84))
        scale = (high / 2 - low / 2) or (known[-1] / 2 - known[0] / 2)
        made = cls(
            feature.name,
            tuple(knots.tolist()),
            tuple((upto / known.size - 1).tolist()),
            float(centre),
            float(scale) or 1.0,
            (0.0,) * (3 if bent else 1),
        )
        means = tuple(float(np.mean(column)) for column in made._columns(known))
        return cls(**{**asdict(made), "means": means})

    def _columns(self, values: FloatArray) -> list[FloatArray]:
        """r, r² and v, or r alone, as far as there are any; 0 where a number is missing."""
        if not self.means:
            return []
        known = ~np.isnan(values)
        rank = np.interp(values, self.knots, self.ranks)
        columns = [rank]
        if len(self.means) == 3:
            with np.errstate(over="ignore", invalid="ignore"):
                far = np.clip((values - self.centre) / self.scale, -_FARTHEST, _FARTHEST)
            columns += [rank**2, far]
        return [np.where(known, column - mean, 0.0) for column, mean in zip(columns, self.means, strict=True)]

    def block(self, feature: Feature) -> list[FloatArray]:
        """Its columns, and whether a number is missing."""
        feature = _number(feature)
        missing = np.isnan(feature.values)
        return [*self._columns(feature.values), *([missing.astype(float)] if missing.any() else [])]

    def with_slopes(self, slopes: FloatArray, feature: Feature) -> "_Numbers":
        """The same, fitted."""
        own = tuple(slopes[: len(self.means)].tolist())
        missing = float(slopes[len(self.means)]) if len(slopes) > len(self.means) else 0.0
        made = _Numbers(**{**asdict(self), "slopes": own, "missing": missing})
        return _Numbers(**{**asdict(made), "deviation": float(np.std(made.adds(feature)))})

    def adds(self, feature: Feature) -> FloatArray:
        """To logit μ of each pair."""
        feature = _number(feature)
        missing = np.where(np.isnan(feature.values), self.missing, 0.0)
        return np.asarray(missing + combine(self.slopes, self._columns(feature.values)))


@dataclass(frozen=True)
class _Levels:
    """What a level adds."""

    name: str
    levels: tuple[str, ...]
    slopes: tuple[float, ...] = ()
    other: float = 0.0
    missing: float = 0.0
    deviation: float = 0.0

    def __post_init__(self) -> None:
        if self.slopes and len(self.slopes) != len(self.levels):
            raise ValueError("the levels of a feature do not fit together")

    @classmethod
    def of(cls, feature: Categorical, levels: tuple[str, ...]) -> "_Levels":
        """With these levels distinguished."""
        return cls(feature.name, levels)

    def block(self, feature: Feature) -> IntArray:
        """The column of each pair: that of its level, of another one or of none."""
        feature = _levelled(feature)
        number = {level: at for at, level in enumerate(self.levels)}
        other = len(self.levels)
        column = np.array([*(number.get(level, other) for level in feature.levels), other, other + 1])
        return column[feature.codes]

    def with_slopes(self, slopes: FloatArray, feature: Feature) -> "_Levels":
        """The same, fitted; where there is no such pair, the column of a level is not in the fit."""
        every: list[float] = [*slopes.tolist(), *[0.0] * (len(self.levels) + 2 - len(slopes))]
        *own, other, missing = every
        made = _Levels(self.name, self.levels, tuple(own), other, missing)
        return _Levels(**{**asdict(made), "deviation": float(np.std(made.adds(feature)))})

    def adds(self, feature: Feature) -> FloatArray:
        """To logit μ of each pair."""
        feature = _levelled(feature)
        slope = dict(zip(self.levels, self.slopes, strict=False))
        of_code = [*(slope.get(level, self.other) for level in feature.levels), self.other, self.missing]
        return np.array(of_code)[feature.codes]


@dataclass(frozen=True)
class FittedRidge(FittedFeatureModel):
    """Terms that add up."""

    numbers: tuple[_Numbers, ...]
    levels: tuple[_Levels, ...]

    @cached_property
    def _terms(self) -> dict[str, "_Numbers | _Levels"]:
        terms: list[_Numbers | _Levels] = [*self.numbers, *self.levels]
        return {term.name: term for term in terms}

    @property
    def shares(self) -> Mapping[str, float]:
        """Of the variance of what they add."""
        variance = {name: term.deviation**2 for name, term in self._terms.items()}
        total = sum(variance.values())
        return {name: own / total if total else 0.0 for name, own in variance.items()}

    @property
    def saved(self) -> Mapping[str, Any]:
        """Its terms."""
        return asdict(self)

    def predict(self, features: Features) -> FloatArray:
        """The sum of what features add."""
        added: Sequence[FloatArray] = [self._terms[one.name].adds(one) for one in features]
        return np.asarray(sum(added[1:], added[0]))


def _number(feature: Feature) -> Numeric:
    if not isinstance(feature, Numeric):
        raise ValueError(f"the feature {feature.name} is no number")
    return feature


def _levelled(feature: Feature) -> Categorical:
    if not isinstance(feature, Categorical):
        raise ValueError(f"the feature {feature.name} has no levels")
    return feature
