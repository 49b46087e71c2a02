"""Parameters with one value for each position: in the settings of click models, and over lists of any length."""

from collections.abc import Sequence

import numpy as np

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import UsageError
from prudent.click_models.base import ClickModel


def by_position(parameter: FloatArray, length: int, beyond: float) -> FloatArray:
    """A position parameter for lists of this length, with `beyond` where no logged list had an item."""
    return np.pad(parameter, (0, max(0, length - len(parameter))), constant_values=beyond)[:length]


def heaviest_first(weight: FloatArray, lists: int) -> IntArray:
    """The positions of sorted items where the k-th best item belongs to the k-th heaviest position."""
    return np.tile(np.argsort(-weight, kind="stable"), (lists, 1))


def top_down(scores: FloatArray) -> IntArray:
    """The positions of sorted items that stay where they are."""
    return np.tile(np.arange(scores.shape[1]), (len(scores), 1))


def read_probabilities(name: str, values: object) -> tuple[float, ...]:
    """Position parameters as a user wrote them: a list of probabilities, or empty to have them fitted."""
    try:
        numbers = tuple(map(float, values))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise UsageError(f"{name} is {values}; write a list of probabilities, such as [1, 0.7, 0.5].") from None
    if not all(0 <= p <= 1 for p in numbers):
        raise UsageError(f"{name} must be probabilities between 0 and 1; it is {list(numbers)}.")
    return numbers


def check_positions(name: str, values: Sequence[object], positions: int) -> None:
    """Position parameters in the settings cover every logged position."""
    if 0 < len(values) < positions:
        raise UsageError(f"{name} has {len(values)} values, but the log shows lists of up to {positions} positions.")


def check_length(model: ClickModel, values: Sequence[object], positions: int) -> None:
    """Position parameters in the settings are as many as simulated lists have positions."""
    if values and len(values) != positions:
        raise UsageError(
            f"{model} has {len(values)} positions but the lists have {positions}. Set length={len(values)}."
        )
