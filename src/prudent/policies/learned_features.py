"""The features of a request, and what a model that was fitted to all contexts says of them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from prudent.base.errors import UsageError
from prudent.base.strict_json import typed
from prudent.bounds.feature_models import feature_models
from prudent.bounds.features import SIGNAL, Learned, restored
from prudent.counts.feature_columns import Categorical, Feature, Features, in_codes, in_range
from prudent.counts.groups import Signals
from prudent.policies.feature_signals import LEARNED, FeatureSignals
from prudent.policies.installed import check_installed


@dataclass(frozen=True)
class Kind:
    """A feature, as it was learned from."""

    name: str
    levels: tuple[str, ...] | None = None  # None: a number


@dataclass(frozen=True, eq=False)
class LearnedFeatures:
    """What it takes to read the features of a request, and the model; None where features are not used."""

    kinds: tuple[Kind, ...]
    spelling: str = ""  # of the model
    learned: Learned | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Of the features."""
        return tuple(kind.name for kind in self.kinds)

    @classmethod
    def of(cls, features: FeatureSignals) -> "LearnedFeatures":
        """That of a plan."""
        kinds = tuple(
            Kind(one.name, one.levels if isinstance(one, Categorical) else None) for one in features.tables.columns
        )
        if features.fitted is None or features.outcome != LEARNED:
            return cls(kinds)
        return cls(kinds, str(features.model), features.fitted.whole)

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        kinds = [asdict(kind) for kind in self.kinds]
        if self.learned is None:
            return {"kinds": kinds}
        model = {"spelling": self.spelling, "level": self.learned.level, "saved": self.learned.model.saved}
        return {"kinds": kinds, "model": model}

    @classmethod
    def from_json(cls, content: Any) -> "LearnedFeatures":
        """The inverse of `to_json`; a ValueError where it is damaged."""
        kinds = typed(content["kinds"], tuple[Kind, ...])
        if len({kind.name for kind in kinds}) < len(kinds):
            raise ValueError("a feature is there twice")
        if "model" not in content:
            return cls(kinds)
        model = content["model"]
        spelling, level = typed(model["spelling"], str), typed(model["level"], float)
        check_installed(feature_models, spelling)
        return cls(kinds, spelling, restored(feature_models.parse(spelling), model["saved"], level))

    def read(self, candidates: Sequence[Any], given: Mapping[str, Any]) -> list[Feature]:
        """The features of candidates: one value for each of them, or one for all; none where they are not given."""
        return [self._read(kind, len(candidates), given.get(kind.name)) for kind in self.kinds]

    def _read(self, kind: Kind, candidates: int, given: Any) -> Feature:
        single = given is None or isinstance(given, str) or not hasattr(given, "__len__")
        values = [given] * candidates if single else list(given)
        if len(values) != candidates:
            raise UsageError(f"{kind.name} is a feature: give a value for each of the {candidates} candidates, or one.")
        if kind.levels is not None:
            return in_codes(kind.name, list(map(_text, values)), kind.levels)
        try:
            numbers = np.array([np.nan if value is None else value for value in values], float)
        except (TypeError, ValueError, OverflowError):
            raise UsageError(f"{kind.name} is a number: not all of its values are.") from None
        if np.isinf(numbers).any() or numbers.ndim != 1:
            raise UsageError(f"{kind.name} is a number: it may be missing (None), but not infinite.")
        return in_range(kind.name, numbers)

    def signal(self, features: Features) -> Signals | None:
        """What the model says of them."""
        if self.learned is None:
            return None
        return Signals((SIGNAL,), self.learned.predict(features)[:, None])


def _text(value: Any) -> str | None:
    """A level, as tables have it."""
    return None if value is None else str(value).lower() if isinstance(value, bool | np.bool_) else str(value)
