"""Features of pairs as arrays: a number or a level of a category for each, or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prudent.base.arrays import FloatArray, IntArray

MISSING = -1
"""The code of no level."""
MOST_LEVELS = 1_000
"""Levels of a category that are distinguished; the others, which are rarer, are one."""


_LARGEST = 9e18  # larger numbers are as large: what fitted models keep of them fits 64 bits


@dataclass(frozen=True, eq=False)
class Numeric:
    """Numbers; NaN where there is none."""

    name: str
    values: FloatArray

    def take(self, rows: IntArray) -> "Numeric":
        """Those of some pairs; row −1 is the last."""
        return Numeric(self.name, self.values[rows])


@dataclass(frozen=True, eq=False)
class Categorical:
    """Levels by their numbers; the number of levels stands for all others, −1 for none."""

    name: str
    codes: IntArray
    levels: tuple[str, ...]

    def take(self, rows: IntArray) -> "Categorical":
        """Those of some pairs; row −1 is the last."""
        return Categorical(self.name, self.codes[rows], self.levels)


Feature = Numeric | Categorical
Features = Sequence[Feature]
"""All features of the same pairs, in a fixed order."""


def take(features: Features, rows: IntArray) -> list[Feature]:
    """The features of some pairs."""
    return [feature.take(rows) for feature in features]


def size_of(features: Features) -> int:
    """How many pairs there are."""
    first = features[0]
    return len(first.values if isinstance(first, Numeric) else first.codes)


def in_range(name: str, values: FloatArray) -> Numeric:
    """Numbers, of which the largest are as large as one another, in tables and in requests alike."""
    return Numeric(name, np.clip(values, -_LARGEST, _LARGEST))


def in_codes(name: str, texts: Sequence[str | None], levels: tuple[str, ...]) -> Categorical:
    """The codes of a few levels by their names; None and empty text are none."""
    number = {level: code for code, level in enumerate(levels)}
    codes = [number.get(text, len(levels)) if text else MISSING for text in texts]
    return Categorical(name, np.array(codes, np.int64), levels)
