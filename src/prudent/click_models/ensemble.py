"""Ensembles: a click model fitted to bootstrapped logs, too, so that errors of its parameters widen the bounds."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import NotIdentifiedError, PrudentWarning, UsageError
from prudent.base.spec import whole_number
from prudent.click_models.base import ClickModel, Evidence, FittedModel, click_models
from prudent.click_models.position_based import PositionBased
from prudent.click_models.rewards import Reward
from prudent.counts.cells import Cells
from prudent.counts.lists import ListBatch

MOST_REPLICATES = 1_000
_SEED = 20_261_118  # of the bootstrapped logs; any fixed number does


@click_models.register("ensemble")
@dataclass(frozen=True)
class Ensemble(ClickModel):
    """Another click model, with the uncertainty of its fitted parameters in every bound: ``ensemble(model=dcm)``.

    The model is fitted to the log, and to each of ``replicates`` bootstrapped logs, in which every count is drawn anew
    from a Poisson distribution with itself as the mean. The members of the ensemble read the evidence of a pair with
    their own parameters, and V is the variance among them of log θ̂, with ``θ̂ = (n₊ + ½) / (Σx + 1)``. The evidence of
    the full fit has a variance of 1/I of its own, with ``I = (n₊ + ½) / (1 − r)`` at a click rate of r. All of it, n₊
    and n₋ alike, is multiplied by ``1 / (1 + IV)``, so that its variance becomes 1/I + V: bounds then fall as if there
    were that much less evidence, and estimates move to the prior. Any bound and any click model will do, also one whose
    authors gave no standard errors; errors that `pbm` and `ubm` compute from their own information are not added.

    The value of a list, predictions and the order of items are those of the full fit. Without fitted parameters, as in
    ``cm`` or where all are settings, an ensemble is the model itself.
    """

    model: ClickModel = field(default_factory=PositionBased)
    replicates: int = 20

    unit: ClassVar[str] = "that of the model"
    reward: ClassVar[Reward] = "clicks"
    whole_lists: ClassVar[bool] = False
    compared: ClassVar[bool] = False  # it predicts what its model predicts

    def __post_init__(self) -> None:
        model = click_models.resolve(self.model)
        if not getattr(model, "compared", True):
            raise UsageError(f"ensemble takes a click model that is fitted to a log, and not {model}.")
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "replicates", _read_replicates(self.replicates))
        # The model decides, not the class, what the value of a list counts and what it is fitted to.
        object.__setattr__(self, "unit", model.unit)
        object.__setattr__(self, "reward", model.reward)
        object.__setattr__(self, "whole_lists", model.whole_lists)

    def fit(self, cells: Cells, positions: int, lists: ListBatch | None = None) -> "FittedEnsemble":
        """The model, fitted to these cells and to bootstrapped ones."""
        fitted = self.model.fit(cells, positions, lists)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)  # those of the full fit were heard
            random = np.random.default_rng(_SEED)
            members = tuple(fitted.bootstrap(cells, lists, self.replicates, random)) if fitted.parameters else ()
        if len(members) == 1:
            raise NotIdentifiedError(
                f"{self.model} is only just identified: of {self.replicates} bootstrapped logs, one identifies it."
            )
        return FittedEnsemble(
            self, positions, fitted=fitted, members=members, learned=fitted.learned, doubt=fitted.doubt
        )

    def typical(self, positions: int) -> FittedModel:
        """The users of the model."""
        return self.model.typical(positions)

    def curves(self, fitted: Mapping[str, Any]) -> dict[str, list[float | None]]:
        """Those of the model."""
        return self.model.curves(fitted)


@dataclass(frozen=True, eq=False)
class FittedEnsemble(FittedModel):
    """The full fit, which speaks for the ensemble, and the fits to bootstrapped logs."""

    fitted: FittedModel = field(kw_only=True)
    members: tuple[FittedModel, ...] = field(kw_only=True)

    @property
    def parameters(self) -> Mapping[str, FloatArray]:
        """Those of the full fit."""
        return self.fitted.parameters

    @property
    def pinned(self) -> ClickModel:
        """The model with the parameters of the full fit as settings."""
        return self.fitted.pinned

    @property
    def as_truth(self) -> FittedModel:
        """The full fit, taken as known."""
        return self.fitted.as_truth

    def evidence(self, cells: Cells) -> Evidence:
        """That of the full fit, as far as the members agree on it."""
        own = self.fitted.evidence(cells)
        if not self.members:
            return replace(own, fitted=self)
        mean, squares = np.zeros(cells.pairs), np.zeros(cells.pairs)
        for number, member in enumerate(self.members, start=1):  # Welford's, which holds one member at a time
            estimate = np.log(member.estimate(cells))
            step = estimate - mean
            mean += step / number
            squares += step * (estimate - mean)
        variance = squares / (len(self.members) - 1)
        ranked = own.ranked
        trials = ranked.examined if ranked.tries is None else ranked.tries
        rate = np.minimum((ranked.positive + 0.5) / (trials + 1), 1 - 0.5 / (trials + 1))
        weighed = own.weighed(1 / (1 + (ranked.positive + 0.5) / (1 - rate) * variance))
        return replace(weighed, spread=None, fitted=self)

    def predict(self, attraction: FloatArray, clicks: BoolArray | None = None) -> FloatArray:
        """That of the full fit; so is the rest."""
        return self.fitted.predict(attraction, clicks)

    def examined(self, attraction: FloatArray, clicks: BoolArray) -> FloatArray:
        """P(k is examined | the clicks of the list)."""
        return self.fitted.examined(attraction, clicks)

    def sample(self, attraction: FloatArray, rng: np.random.Generator) -> BoolArray:
        """Clicks on lists."""
        return self.fitted.sample(attraction, rng)

    def satisfied_by(self, satisfaction: FloatArray) -> FittedModel:
        """The full fit for lists whose items satisfy with these probabilities."""
        return self.fitted.satisfied_by(satisfaction)

    def value(self, attraction: FloatArray, reward: Reward | None = None) -> FloatArray:
        """The expected reward of lists."""
        return self.fitted.value(attraction, reward)

    def rewards(self, attraction: FloatArray, reward: Reward) -> FloatArray:
        """The expected reward of every position."""
        return self.fitted.rewards(attraction, reward)

    def cautious(self, level: float) -> FittedModel:
        """The full fit with its parameters at their cautious ends."""
        return self.fitted.cautious(level)

    def place(self, scores: FloatArray) -> IntArray:
        """The order of the highest value."""
        return self.fitted.place(scores)


def _read_replicates(replicates: Any) -> int:
    """A spelled number is a float."""
    whole = int(replicates) if isinstance(replicates, float) and replicates.is_integer() else replicates
    return whole_number("replicates", whole, 2, MOST_REPLICATES)
