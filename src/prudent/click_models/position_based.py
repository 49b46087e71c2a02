"""The position-based model."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import LogError, NotIdentifiedError, UsageError, did_you_mean
from prudent.base.spec import as_number
from prudent.click_models.base import Bootstrap, ClickModel, FittedModel, click_models
from prudent.click_models.evidence import Evidence, Trials, make_evidence
from prudent.click_models.examination import (
    bootstrap_em,
    fit_als,
    fit_em,
    name_groups,
    not_compared,
    per_position,
    separate_positions,
)
from prudent.click_models.positions import (
    by_position,
    check_length,
    check_positions,
    heaviest_first,
    read_probabilities,
    top_down,
)
from prudent.click_models.rewards import Reward
from prudent.click_models.thinned_evidence import estimate, thinned_evidence
from prudent.counts.cells import Cells
from prudent.counts.lists import ListBatch


@click_models.register("pbm")
@dataclass(frozen=True)
class PositionBased(ClickModel):
    """An item is clicked when its position is examined, with probability pₖ, and it attracts (Sec. 5.3).

    ``counts=examined`` takes pₖ of every impression as a trial: n₊ = ΣY, n₋ = max(0, Σpₖ − ΣY).
    ``counts=weighted`` is what the paper prints, n₊ = ΣY/pₖ and n₋ = Σ(1 − Y)/pₖ; there θ̂ tends to θ times a
    harmonic mean of p, and n exceeds the number of impressions, so that bounds are too narrow. The value of a list is
    the expected number of clicks, ``V = Σ pₖ θ``, Eq. (5).

    ``examination`` sets p; otherwise it is fitted to all contexts together and scaled to a maximum of 1 (only
    the product pₖθ is ever seen): ``solver=em`` maximises the likelihood, ``solver=als`` is the paper's alternating
    least squares. ``smooth`` adds that many clicked and as many unclicked pseudo-observations to every item while
    p is fitted: 1 steepens p, because rarely clicked items stand low in lists and a pseudo-click there counts most.
    Positions that share no item cannot be compared; then fitting is refused. Of single impressions, a position without
    any has the p of the next one below.

    Where it loses: hardly, at most 0.1 points of value to the true model in simulated logs (docs/wrong-models.md).
    A log whose items hardly change places does not identify p.
    """

    counts: Literal["examined", "weighted"] = "examined"
    solver: Literal["em", "als"] = "em"
    smooth: float = 0.01
    examination: tuple[float, ...] = ()

    unit: ClassVar[str] = "expected clicks"
    reward: ClassVar[Reward] = "clicks"
    precedence: ClassVar[int] = 1
    single_impressions: ClassVar[bool] = True
    compares_positions: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for setting, known in (("counts", ("examined", "weighted")), ("solver", ("em", "als"))):
            word = getattr(self, setting)
            if word not in known:
                raise UsageError(
                    f"pbm has no {setting}={word}.{did_you_mean(str(word), known)} Known: {', '.join(known)}."
                )
        object.__setattr__(self, "examination", read_probabilities("examination", self.examination))
        if not 1e-9 <= as_number(self.smooth) <= 1e9:
            raise UsageError(f"smooth is {self.smooth}; it must be a number above 0, from 1e-9 to 1e9.")
        if self.counts == "weighted" and 0 in self.examination:
            raise UsageError("counts=weighted divides by the examination of each position; none may be 0.")

    def fit(self, cells: Cells, positions: int, lists: ListBatch | None = None) -> "FittedPositionBased":
        """Examination p of every position, as set or fitted to the items that link them."""
        check_positions("examination", self.examination, positions)
        if self.examination:
            return FittedPositionBased(self, positions, np.array(self.examination[:positions]))
        pair, position, shown, clicked = per_position(cells.heaviest())
        used = np.arange(1, positions + 1)
        if cells.single:  # there may be gaps
            used = np.union1d(position, [positions])
            position = np.searchsorted(used, position) + 1
        apart = [used[np.array(group) - 1].tolist() for group in separate_positions(pair, position, shown, len(used))]
        if len(apart) > 1:
            raise NotIdentifiedError(
                f"pbm is not identified: {not_compared(apart)}. Set examination=[...], or swap a few neighbouring "
                "items in production now and then. Before you name another click model, see how it predicts held-out "
                "clicks: prudent compare.",
                parameter="examination",
            )
        table = pair, position, shown, clicked, len(used)
        covariance = None
        if self.solver == "em":
            examination, covariance = fit_em(*table, self.smooth)
        else:
            examination = fit_als(*table)
        if self.counts == "weighted" and not examination.all():
            dark = (np.flatnonzero(examination == 0) + 1).tolist()
            raise LogError(
                f"counts=weighted divides by the examination of each position, which solver={self.solver} puts at 0 "
                f"for {name_groups([dark])}: no often shown item was clicked there. Use counts=examined."
            )
        place = np.searchsorted(used, np.arange(1, positions + 1))  # a gap takes the next position below
        covariance = None if covariance is None else covariance[np.ix_(place, place)]
        return FittedPositionBased(self, positions, examination[place], covariance=covariance, learned=True)

    def typical(self, positions: int) -> "FittedPositionBased":
        """pₖ = k^−0.7, unless it is set."""
        check_length(self, self.examination, positions)
        # Rounded, so that the model stays readable where it is spelled out.
        typical = (np.arange(1, positions + 1) ** -0.7).round(3)
        return FittedPositionBased(self, positions, np.array(self.examination[:positions] or typical))


@dataclass(frozen=True, eq=False)
class FittedPositionBased(FittedModel):
    """p of every position."""

    examination: FloatArray
    covariance: FloatArray | None = field(default=None, kw_only=True)  # of log p; None where p is taken as known

    settings: ClassVar[tuple[str, ...]] = ("examination",)

    def evidence(self, cells: Cells) -> Evidence:
        """Clicks against expected examinations without a click."""
        state = cells.codes.position - 1
        if getattr(self.model, "counts", "examined") != "weighted":
            return thinned_evidence(self, cells, state, self.examination, self.covariance)
        expected, squares = cells.fold(self.examination[state], self.examination[state] ** 2)
        examination = self.examination[cells.position - 1]
        shares = cells.n / examination
        positive, negative = (
            np.bincount(cells.pair[which], shares[which], minlength=cells.pairs).astype(float, copy=False)
            for which in (cells.click, ~cells.click)
        )
        # Σ(Y/p) / Σ(1/p) has a width of √Σ(1/p²) / Σ(1/p).
        widest = np.bincount(cells.pair, shares / examination, minlength=cells.pairs)
        tries = widest * np.divide(expected, positive + negative, out=0 * widest, where=widest > 0) ** 2
        return make_evidence(self, cells, positive, negative, expected=expected, squares=squares, tries=tries)

    def bootstrap(
        self, cells: Cells, lists: ListBatch | None, replicates: int, random: np.random.Generator
    ) -> Bootstrap:
        """Steps from this p where it is that of greatest likelihood."""
        if not isinstance(self.model, PositionBased) or self.model.solver != "em":
            return super().bootstrap(cells, lists, replicates, random)
        table = per_position(cells.heaviest())
        steps = bootstrap_em(*table, self.model.smooth, self.examination, replicates, random)
        return Bootstrap(1.0, [FittedPositionBased(self.model, self.positions, one, learned=True) for one in steps])

    def estimate(self, cells: Cells) -> FloatArray:
        """Clicks per expected examination."""
        return estimate(cells, self.examination[cells.position - 1])

    def trials(self, cells: Cells) -> Trials:
        """Clicks, Σp and Σp²."""
        if getattr(self.model, "counts", "examined") == "weighted":
            return super().trials(cells)
        chance = self.examination[cells.codes.position - 1]
        return Trials(*cells.fold(cells.codes.click, chance, chance**2))

    def predict(self, attraction: FloatArray, clicks: BoolArray | None = None) -> FloatArray:
        """pₖθ, whatever else is clicked."""
        return np.asarray(self._examination(attraction) * attraction)

    def examined(self, attraction: FloatArray, clicks: BoolArray) -> FloatArray:
        """pₖ."""
        return np.broadcast_to(self._examination(attraction), attraction.shape)

    def sample(self, attraction: FloatArray, rng: np.random.Generator) -> BoolArray:
        """Independent clicks."""
        return np.asarray(rng.random(attraction.shape) < self.predict(attraction))

    @property
    def as_truth(self) -> "FittedPositionBased":
        """With p that is as good as set, so that the best lists are placed by it."""
        return replace(self, learned=False)

    def place(self, scores: FloatArray) -> IntArray:
        """From the top down where p was fitted, since its steps upwards are mostly noise.

        Where it was set: the k-th best item at the k-th most examined position, by the rearrangement inequality.
        """
        if self.learned:
            return top_down(scores)
        return heaviest_first(self._examination(scores), len(scores))

    def _examination(self, attraction: FloatArray) -> FloatArray:
        return by_position(self.examination, attraction.shape[-1], beyond=0.0)
