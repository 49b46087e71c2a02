"""What every click model offers, and the evidence it draws from the counts."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import ClassVar, Protocol

import numpy as np

from prudent.arrays import FloatArray, IntArray
from prudent.counts import Counted
from prudent.errors import PrudentWarning, UsageError
from prudent.registry import Registry


@dataclass(frozen=True)
class Evidence:
    """What the log says about every (context, item) pair, one entry per pair, sorted by context, then item.

    ``context`` numbers the contexts in the order of their names, and ``item`` the items of one context in
    the order of theirs; the names themselves stay in `Counts.pairs`, row for row.
    """

    context: IntArray
    item: IntArray
    positive: FloatArray  # n₊: examined and clicked
    negative: FloatArray  # n₋: examined and not clicked
    impressions: IntArray  # shown, examined or not
    weight: FloatArray  # of each logged position in the value of a list
    model: "ClickModel"  # that counted; `auto` leaves the one it chose
    by_weight: bool = True  # the best item goes to the heaviest position; otherwise simply to the first
    fitted: Mapping[str, Sequence[float]] = field(default_factory=dict)  # position parameters learned on the way

    @property
    def examined(self) -> FloatArray:
        """N = n₊ + n₋."""
        return self.positive + self.negative


class ClickModel(Protocol):
    """How clicks come about; its settings are its fields."""

    unit: ClassVar[str]  # what the value of a list counts

    def evidence(self, counts: Counted) -> Evidence:
        """Positives and negatives of every pair under this model."""
        ...

    def value(self, attraction: FloatArray, weight: FloatArray) -> FloatArray:
        """Value of lists: positions run along the last axis, `weight` has one entry for each."""
        ...


click_models: Registry[ClickModel] = Registry("click model")


def number_items(context: IntArray) -> IntArray:
    """0, 1, 2, ... within each run of equal contexts."""
    starts = np.flatnonzero(np.diff(context, prepend=-1))
    return np.arange(len(context)) - np.repeat(starts, np.diff(starts, append=len(context)))


def any_success(attraction: FloatArray, weight: FloatArray) -> FloatArray:
    """1 − ∏ₖ (1 − wₖ θₖ): the probability of at least one success, Eqs. (3) and (4)."""
    return np.asarray(1 - np.prod(1 - weight * attraction, axis=-1))


def expected_successes(attraction: FloatArray, weight: FloatArray) -> FloatArray:
    """Σₖ wₖ θₖ: the expected number of successes, Eq. (5)."""
    return np.asarray(np.sum(weight * attraction, axis=-1))


def read_probabilities(name: str, given: object) -> tuple[float, ...]:
    """Position parameters as a user gave them: a list of probabilities, or empty to have them fitted."""
    try:
        numbers = tuple(map(float, given))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise UsageError(f"{name} is {given}; write a list of probabilities, such as [1, 0.7, 0.5].") from None
    if not all(0 <= p <= 1 for p in numbers):
        raise UsageError(f"{name} must be probabilities between 0 and 1; it is {list(numbers)}.")
    return numbers


def as_number(value: object) -> float:
    """A setting as a number; NaN, which no comparison accepts, where it is a word or a list."""
    return float(value) if isinstance(value, int | float | np.number) else nan


def check_positions(name: str, given: tuple[float, ...], positions: int) -> None:
    """Given position parameters cover every logged position."""
    if 0 < len(given) < positions:
        raise UsageError(f"{name} has {len(given)} values, but the log shows lists of up to {positions} positions.")


def fixed_point(step: Callable[[FloatArray], FloatArray], start: FloatArray, tolerance: float) -> FloatArray:
    """The fixed point of a slowly converging `step` on probabilities, by squared extrapolation (SQUAREM).

    Two steps give a direction r and its change v; the next start is x + 2sr + s²v with s = |r|/|v|, which
    follows the slowest direction many steps at once. A guess outside [0, 1] is clipped, and one that moves away is
    taken back, so that it costs a round and never the answer. Stops when a plain step moves no parameter by more
    than `tolerance`.
    """
    x, fallback, before, longest = start, start, np.inf, 4.0
    for _ in range(2_000):
        first = step(x)
        r = first - x
        moved = _length(r)
        if not moved <= 2 * before:  # the extrapolation went astray: go on from the plain steps before it
            x, before, longest = fallback, np.inf, 4.0
            continue
        if np.max(np.abs(r), initial=0.0) < tolerance:
            return first
        second = step(first)
        v = second - first - r
        bend = _length(v)
        stride = float(np.clip(moved / bend if bend > 0 else 1.0, 1.0, longest))
        longest = longest * 4 if stride == longest else longest  # good enough for the limit: earns a longer one
        x = step(np.clip(x + 2 * stride * r + stride * stride * v, 0.0, 1.0))
        fallback, before = second, moved
    warnings.warn(
        "The fit of the click model did not settle: some parameters still move, as they do where a log hardly "
        "determines them. Look at the fitted values before you trust them.",
        PrudentWarning,
        stacklevel=2,
    )
    return fallback


def _length(vector: FloatArray) -> float:
    """|x|, by NumPy's own sum: a norm goes to as many threads as there are, whose number shows in the last digits."""
    return float(np.sqrt(np.sum(vector * vector)))
