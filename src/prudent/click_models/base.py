"""What every click model offers, and the evidence it draws from the counts."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import PrudentWarning, UsageError
from prudent.base.spec import Registry
from prudent.counts.cells import Cells, Counted


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
    impressions: FloatArray  # shown, examined or not; whole numbers, unless old days weigh less
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

    def learn(self, cells: Cells, positions: int) -> "Fitted":
        """Learn the parameter of every position of the longest list, here from the cells of some contexts."""
        ...

    def trials(self, cells: Cells, parameter: FloatArray) -> tuple[FloatArray, FloatArray]:
        """n₊ and n₋ of every pair, given the parameter of every position; each context by itself."""
        ...

    def weight(self, parameter: FloatArray) -> FloatArray:
        """Weight of every position in the value of a list."""
        ...

    def value(self, attraction: FloatArray, weight: FloatArray) -> FloatArray:
        """Value of lists: positions run along the last axis, `weight` has one entry for each."""
        ...

    def evidence(self, counts: Counted) -> Evidence:
        """Positives and negatives of every pair under this model."""
        return self.learn(counts.cells, counts.cells.positions).evidence(counts.cells)


@dataclass(frozen=True)
class Fitted:
    """A click model and its parameter at every logged position: all that contexts have in common."""

    model: ClickModel  # `auto` leaves the one it chose
    parameter: FloatArray  # continuation λ, examination p, or nothing but ones
    learned: str = ""  # what the parameter is called, where it was not given
    by_weight: bool = True  # see `Evidence`

    @property
    def parameters(self) -> dict[str, list[float]]:
        """The parameter by its name, where it was not given; fits JSON."""
        return {self.learned: self.parameter.tolist()} if self.learned else {}

    def evidence(self, cells: Cells) -> Evidence:
        """What these cells say about their pairs: to the last bit the same whichever other contexts are with them."""
        positive, negative = self.model.trials(cells, self.parameter)
        return Evidence(
            context=cells.context,
            item=number_items(cells.context),
            positive=positive,
            negative=negative,
            impressions=cells.per_pair(),
            weight=self.model.weight(self.parameter),
            model=self.model,
            by_weight=self.by_weight,
            fitted=self.parameters,
        )


click_models: Registry[ClickModel] = Registry("click model", "prudent.click_models", "unit")


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


def check_positions(name: str, given: tuple[float, ...], positions: int) -> None:
    """Given position parameters cover every logged position."""
    if 0 < len(given) < positions:
        raise UsageError(f"{name} has {len(given)} values, but the log shows lists of up to {positions} positions.")


def fixed_point(
    step: Callable[[FloatArray], FloatArray], start: FloatArray, tolerance: float, groups: IntArray, rounds: int
) -> tuple[FloatArray, BoolArray]:
    """The fixed points of a slowly converging `step` on probabilities, by squared extrapolation (SQUAREM).

    `groups` says where the parameters of each group start, which have nothing to do with those of the others; each
    comes to rest by itself, and it is told which of them have. Two steps give a direction r and its change v; the next
    start is x + 2sr + s²v with s = |r|/|v|, which follows the slowest direction many steps at once. A guess outside
    [0, 1] is clipped, and one that moves away is taken back, so that it costs a round and never the answer. A group is
    at rest when a plain step moves none of its parameters by more than `tolerance`.
    """
    size = np.diff(groups, append=len(start))
    of = np.repeat(np.arange(len(groups)), size)

    def length(vector: FloatArray) -> FloatArray:
        # Not by `norm`, which goes to as many threads as there are: their number would show in the last digits.
        return np.asarray(np.sqrt(np.bincount(of, vector * vector, minlength=len(groups))))

    x, fallback = start, start
    before, longest, rest = np.full(len(groups), np.inf), np.full(len(groups), 4.0), np.zeros(len(groups), bool)
    for _ in range(rounds):
        first = step(x)
        r = first - x
        moved = length(r)
        astray = ~(moved <= 2 * before) & ~rest  # the extrapolation went too far: go on from the plain steps before it
        settles = ~astray & ~rest & (np.maximum.reduceat(np.abs(r), groups) < tolerance)
        x = np.where(settles[of], first, x)
        rest = rest | settles
        if rest.all():
            break
        second = step(first)
        v = second - first - r
        bend = length(v)
        stride = np.clip(np.divide(moved, bend, out=np.ones(len(groups)), where=bend > 0), 1.0, longest)
        longest = np.where(stride == longest, longest * 4, longest)  # good enough for the limit: earns a longer one
        s = stride[of]
        guess = step(np.clip(x + 2 * s * r + s * s * v, 0.0, 1.0))
        x = np.where(rest[of], x, np.where(astray[of], fallback, guess))
        fallback = np.where((rest | astray)[of], x, second)
        before, longest = np.where(astray, np.inf, moved), np.where(astray, 4.0, longest)
    return x, rest


def warn_unsettled() -> None:
    """Say that an iteration was cut off."""
    warnings.warn(
        "The fit of the click model did not settle: some parameters still move, as they do where a log hardly "
        "determines them. Look at the fitted values before you trust them.",
        PrudentWarning,
        stacklevel=2,
    )
