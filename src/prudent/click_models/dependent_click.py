"""The dependent-click model."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
from scipy.special import ndtri

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import UsageError, did_you_mean
from prudent.click_models.base import Bootstrap, ClickModel, click_models
from prudent.click_models.continuation import (
    Rates,
    bootstrap_rates,
    find_doubt,
    find_terms,
    fit_continuation,
    sum_rates,
)
from prudent.click_models.evidence import Evidence, make_evidence
from prudent.click_models.positions import (
    by_position,
    check_length,
    check_positions,
    heaviest_first,
    read_probabilities,
    top_down,
)
from prudent.click_models.reading import FittedReader, Onward, last_click
from prudent.click_models.rewards import Reward
from prudent.click_models.tails import settle
from prudent.counts.cells import Cells
from prudent.counts.lists import ListBatch
from prudent.engines.kernel import Users


@click_models.register("dcm")
@dataclass(frozen=True)
class DependentClick(ClickModel):
    """The user reads from the top and, after a click at k, goes on with probability λₖ (Sec. 5.2).

    Everything down to the last click was examined, and everything when there is no click. Below the last click
    the user may have gone on and clicked nothing: ``tail=em`` counts those impressions with the probability of
    that; ``tail=truncate`` leaves them out as the paper does, and so overestimates θ, because it drops
    unclicked impressions only. The value of a list is the probability of a click after which the user leaves,
    ``V = 1 − ∏ (1 − (1 − λₖ) θ)``, Eq. (4).

    ``continuation`` sets λ; otherwise it is fitted. Impressions without a click above were examined for certain, and
    right below a click at k an item is clicked λₖ times as often: with ``tail=em``, λ is the ratio of the two rates,
    item by item, which stays unbiased however rarely items were shown; with ``tail=truncate``, the share of clicks that
    are not the last. A ratio significantly above 1 contradicts the model, and `FittedModel.doubt` says so. No log of K
    positions identifies λ at position K, where nobody can be seen to go on: it takes the value of position K − 1, and
    lists are ordered from the top down by lower bound rather than by fitted λ.

    Where it loses: where users look at positions rather than stop, as in ``pbm`` and ``ubm``; up to 1.0 points of
    value to the true model in simulated logs (docs/wrong-models.md).
    """

    tail: Literal["em", "truncate"] = "em"
    continuation: tuple[float, ...] = ()

    unit: ClassVar[str] = "probability of a satisfied click"
    reward: ClassVar[Reward] = "satisfied"
    precedence: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.tail not in ("em", "truncate"):
            raise UsageError(
                f"dcm has no tail={self.tail}.{did_you_mean(str(self.tail), ('em', 'truncate'))} Known: em, truncate."
            )
        object.__setattr__(self, "continuation", read_probabilities("continuation", self.continuation))

    def fit(self, cells: Cells, positions: int, lists: ListBatch | None = None) -> "FittedDependentClick":
        """λ of every position, as set or from the clicks that were followed by others."""
        check_positions("continuation", self.continuation, positions)
        if self.continuation:
            return FittedDependentClick(self, positions, np.array(self.continuation[:positions]))
        if self.tail == "truncate":
            return FittedDependentClick(self, positions, _last_click_rates(cells, positions), learned=True)
        rates = sum_rates(find_terms(cells.heaviest(), positions), positions)
        continuation, error = _continuation_of(rates)
        return FittedDependentClick(self, positions, continuation, error=error, learned=True, doubt=find_doubt(rates))

    def typical(self, positions: int) -> "FittedDependentClick":
        """λ rises evenly from .65 to .90, unless it is set."""
        check_length(self, self.continuation, positions)
        # Rounded, so that the model stays readable where it is spelled out.
        continuation = np.array(self.continuation[:positions] or np.linspace(0.65, 0.9, positions).round(3))
        return FittedDependentClick(self, positions, continuation)


@dataclass(frozen=True, eq=False)
class FittedDependentClick(FittedReader):
    """λ of every position."""

    continuation: FloatArray
    error: FloatArray | None = field(default=None, kw_only=True)  # standard errors of λ, but for the last

    settings: ClassVar[tuple[str, ...]] = ("continuation",)

    @property
    def as_truth(self) -> "FittedDependentClick":
        """With λ that is as good as set, so that the best lists are placed by it."""
        return replace(self, learned=False)

    def evidence(self, cells: Cells) -> Evidence:
        """Clicks against examinations without a click."""
        clicks, examined = self._examined(cells)
        # A user who may have read on made every impression below a click a try.
        tries = {} if self._truncated else {"tries": cells.per_pair()}
        return make_evidence(self, cells, clicks, examined - clicks, **tries)

    def _examined(self, cells: Cells) -> tuple[FloatArray, FloatArray]:
        """Clicks and examinations of every pair."""
        if self._truncated:
            clicks, examined = cells.fold(
                cells.codes.click, cells.codes.click | cells.codes.more | (cells.codes.prev == 0)
            )
            return clicks, examined
        settled = settle(cells, Users(TOLERANCE, 1.0, "position", self.continuation))
        return settled.clicks, settled.examined

    def estimate(self, cells: Cells) -> FloatArray:
        """Clicks per examination, without the rest of the evidence."""
        clicks, examined = self._examined(cells)
        return (clicks + 0.5) / (examined + 1)

    def bootstrap(
        self, cells: Cells, lists: ListBatch | None, replicates: int, random: np.random.Generator
    ) -> Bootstrap:
        """λ from bootstrapped sums."""
        if not isinstance(self.model, DependentClick) or self._truncated:
            return super().bootstrap(cells, lists, replicates, random)
        terms = find_terms(cells.heaviest(), self.positions)
        drawn = bootstrap_rates(terms, sum_rates(terms, self.positions), replicates, random)
        members = [_continuation_of(rates)[0] for rates in drawn]
        return Bootstrap(1.0, [FittedDependentClick(self.model, self.positions, one, learned=True) for one in members])

    def examined(self, attraction: FloatArray, clicks: BoolArray) -> FloatArray:
        """1 down to the last click, or anywhere in a list without one; below it, P(the user went on | no click)."""
        if not self._truncated:
            return super().examined(attraction, clicks)
        last = last_click(clicks)[..., None]
        return np.asarray((last < 0) | (np.arange(clicks.shape[-1]) <= last), np.float64)

    def value(self, attraction: FloatArray, reward: Reward | None = None) -> FloatArray:
        """1 − ∏ (1 − (1 − λₖ) θ), Eq. (4), unless another reward is asked for."""
        if (reward or self.model.reward) != "satisfied":
            return super().value(attraction, reward)
        return np.asarray(1 - np.prod(1 - (1 - self._onward(attraction)) * attraction, axis=-1))

    def cautious(self, level: float) -> "FittedDependentClick":
        """Fitted λ at its upper limit, and 1 at the last position, which no log identifies."""
        if not self.learned:
            return self
        error = np.zeros(self.positions - 1) if self.error is None else self.error
        return replace(
            self, continuation=np.append(np.minimum(1.0, self.continuation[:-1] - ndtri(level) * error), 1.0)
        )

    def place(self, scores: FloatArray) -> IntArray:
        """From the top down where λ was fitted; where it was set, the best item has the smallest λ."""
        if self.learned:
            return top_down(scores)
        return heaviest_first(1 - self._onward(scores), len(scores))

    @property
    def _truncated(self) -> bool:
        return getattr(self.model, "tail", "em") == "truncate"

    def onward(self, attraction: FloatArray) -> Onward:
        """Always after an item that is not clicked, and with λ after a click."""
        return Onward(np.ones(attraction.shape[-1]), self._onward(attraction))

    def _onward(self, attraction: FloatArray) -> FloatArray:
        return by_position(self.continuation, attraction.shape[-1], beyond=1.0)  # no click there satisfies


def _last_click_rates(cells: Cells, positions: int) -> FloatArray:
    """λ̂ₖ = clicks at k with another below / clicks at k; where there is no click at k, 1/2."""
    # App. A defines λ by "the click is the last", which is 1 − P(continue): the complement is meant.
    size = positions + 1
    clicked = np.bincount(cells.position[cells.click], cells.n[cells.click], minlength=size)[1:]
    went_on = cells.click & cells.more
    onward = np.bincount(cells.position[went_on], cells.n[went_on], minlength=size)[1:]
    return _borrow_last(np.divide(onward, clicked, out=np.full(size - 1, 0.5), where=clicked > 0))


def _continuation_of(rates: Rates) -> tuple[FloatArray, FloatArray]:
    """λ of every position, and standard errors of all but the last."""
    continuation, error = fit_continuation(rates)
    return _borrow_last(np.append(continuation, 0.5)), error


def _borrow_last(continuation: FloatArray) -> FloatArray:
    """At the last position nobody can be seen to go on; take the value of the one above, 1/2 where there is none."""
    continuation[-1:] = continuation[-2] if len(continuation) > 1 else 0.5
    return continuation


TOLERANCE = 1e-7  # of attraction
