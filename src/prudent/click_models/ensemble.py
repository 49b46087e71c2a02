"""Ensembles: a click model fitted to bootstrapped logs, too, so that errors of its parameters widen the bounds."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import NotIdentifiedError, PrudentWarning, UsageError
from prudent.base.spec import whole_number
from prudent.click_models.base import Bootstrap, ClickModel, FittedModel, click_models
from prudent.click_models.evidence import Evidence
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

    Of a large log, bootstrapped ones have a quarter of the size, and V is divided by four. Where parameters are few,
    evidence is read along the principal axes of the members instead of by each of them.

    The value of a list, predictions and the order of items are those of the full fit. Without fitted parameters, as in
    ``cm`` or where all are settings, an ensemble is the model itself.
    """

    model: ClickModel = field(default_factory=PositionBased)
    replicates: int = 20

    unit: ClassVar[str] = "that of the model"
    reward: ClassVar[Reward] = "clicks"
    whole_lists: ClassVar[bool] = False
    single_impressions: ClassVar[bool] = False
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
        object.__setattr__(self, "single_impressions", model.single_impressions)

    def fit(self, cells: Cells, positions: int, lists: ListBatch | None = None) -> "FittedEnsemble":
        """The model, fitted to these cells and to bootstrapped ones."""
        fitted = self.model.fit(cells, positions, lists)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrudentWarning)  # those of the full fit were heard
            random = np.random.default_rng(_SEED)
            drawn = fitted.bootstrap(cells, lists, self.replicates, random) if fitted.parameters else Bootstrap(1.0, [])
            drawn = drawn._replace(members=[member.ranking_like(fitted) for member in drawn.members])
            if len(drawn.members) == 1:
                raise NotIdentifiedError(
                    f"{self.model} is only just identified: of {self.replicates} bootstrapped logs, one identifies it."
                )
            moved = tuple(_along_axes(fitted, drawn, cells))
        return FittedEnsemble(
            self,
            positions,
            fitted=fitted,
            members=tuple(drawn.members),
            size=drawn.size,
            moved=moved,
            learned=fitted.learned,
            doubt=fitted.doubt,
        )

    def typical(self, positions: int) -> FittedModel:
        """The users of the model."""
        return self.model.typical(positions)

    def curves(self, fitted: Mapping[str, Any]) -> dict[str, list[float | None]]:
        """Those of the model."""
        return self.model.curves(fitted)

    def pinned(self, fitted: Mapping[str, Any]) -> ClickModel:
        """The model with its parameters: they vary no more."""
        return self.model.pinned(fitted)


@dataclass(frozen=True, eq=False)
class FittedEnsemble(FittedModel):
    """The full fit, which speaks for the ensemble, and the fits to bootstrapped logs."""

    fitted: FittedModel = field(kw_only=True)
    members: tuple[FittedModel, ...] = field(kw_only=True)
    size: float = field(kw_only=True)  # of the bootstrapped logs
    moved: tuple[FittedModel, ...] = field(kw_only=True)  # by one standard deviation of members along each axis

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
        ranked = own.ranked
        variance = self.variance(cells, ranked.estimate)
        trials = ranked.examined if ranked.tries is None else ranked.tries
        rate = np.minimum((ranked.positive + 0.5) / (trials + 1), 1 - 0.5 / (trials + 1))
        weighed = own.weighed(1 / (1 + (ranked.positive + 0.5) / (1 - rate) * variance))
        return replace(weighed, spread=None, fitted=self)

    def variance(self, cells: Cells, estimate: FloatArray) -> FloatArray:
        """V of every pair: of log θ̂ among members, around this one of the full fit."""
        if self.moved:
            start = np.log(estimate)
            squares = np.zeros(cells.pairs)
            for one in self.moved:
                squares += (np.log(one.estimate(cells)) - start) ** 2
            return squares
        mean, squares = np.zeros(cells.pairs), np.zeros(cells.pairs)
        for number, member in enumerate(self.members, start=1):  # Welford's, which holds one member at a time
            log = np.log(member.estimate(cells))
            step = log - mean
            mean += step / number
            squares += step * (log - mean)
        return np.asarray(squares * self.size / (len(self.members) - 1))

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


MOST_AXES = 6
"""Axes of the members' parameters that evidence is read along, in place of every member."""


def _along_axes(fitted: FittedModel, drawn: Bootstrap, cells: Cells) -> Iterator[FittedModel]:
    """The model with its parameters one standard deviation away from the fit, along each principal axis of the members.

    To first order the squared changes of anything add up to its variance among members, with fewer readings of the
    evidence, which take long where it is found by iteration. Where there are more axes than `MOST_AXES`, the others are
    counted by lengthening these. Nothing where members would be as few, or their parameters are not its settings.
    """
    names = list(fitted.parameters)
    model = fitted.model
    settings: set[str] = {one.name for one in fields(model)} if is_dataclass(model) else set()
    if not drawn.members or not set(names) <= settings:
        return
    start, *every = (
        np.concatenate([np.ravel(one.parameters[name]) for name in names]) for one in (fitted, *drawn.members)
    )
    if start.size >= len(every):
        return
    apart = (np.array(every) - np.mean(every, axis=0)) * (drawn.size / (len(every) - 1)) ** 0.5
    _, lengths, axes = np.linalg.svd(apart, full_matrices=False)
    kept = lengths[:MOST_AXES] > 1e-9 * max(float(lengths[0]), 1e-300)
    longer = (np.sum(lengths**2) / max(float(np.sum(lengths[:MOST_AXES][kept] ** 2)), 1e-300)) ** 0.5
    for length, axis in zip(lengths[:MOST_AXES][kept] * longer, axes[:MOST_AXES][kept], strict=True):
        away = length * axis * np.sign(axis[np.argmax(np.abs(axis))])  # an axis has no sign of its own
        ends = [np.clip(start + step, 0.0, 1.0) for step in (away, -away)]
        end = max(ends, key=lambda one: float(np.abs(one - start).sum()))  # the one that no edge cuts
        # Further digits depend on how many threads decompose.
        yield _with(fitted, names, np.round(end, 9), cells)


def _with(fitted: FittedModel, names: Sequence[str], values: FloatArray, cells: Cells) -> FittedModel:
    """The model with these values of its parameters."""
    settings: dict[str, Any] = {}
    for name in names:
        shape = np.shape(fitted.parameters[name])
        size = int(np.prod(shape))
        own, values = values[:size].reshape(shape), values[size:]
        settings[name] = own.tolist()
    return fitted.model.pinned(settings).fit(cells, fitted.positions).ranking_like(fitted)


def _read_replicates(replicates: Any) -> int:
    """A spelled number is a float."""
    whole = int(replicates) if isinstance(replicates, float) and replicates.is_integer() else replicates
    return whole_number("replicates", whole, 2, MOST_REPLICATES)
