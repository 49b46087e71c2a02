"""The dynamic Bayesian network model."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import NotIdentifiedError, UsageError
from prudent.base.spec import as_number
from prudent.base.text import number
from prudent.click_models.base import ClickModel, FittedModel, click_models, product_above
from prudent.click_models.dynamic_fit import fit_dynamic
from prudent.click_models.evidence import Evidence, make_evidence
from prudent.click_models.positions import by_position, top_down
from prudent.click_models.reading import FittedReader, Onward
from prudent.click_models.rewards import Reward
from prudent.click_models.satisfaction import LastClicks, combined_trials, estimate_satisfaction
from prudent.click_models.tails import last_clicks, settle, skips_of
from prudent.click_models.whole_lists import WholeLists
from prudent.counts.cells import Cells
from prudent.counts.lists import ListBatch
from prudent.engines.kernel import Users

UNIT = "probability of a satisfied user"


@click_models.register("dbn")
@dataclass(frozen=True)
class DynamicBayesian(ClickModel):
    """The user reads from the top, clicks what attracts, and leaves when a clicked item satisfies, or out of fatigue.

    An examined item is clicked with probability a, its attraction, and a click satisfies with probability s, both of
    the item; a user who is not satisfied goes on with probability γ, the perseverance (Chapelle and Zhang 2009). Below
    the last click, and in a list without one, the position where the user stopped is hidden; all of them are summed
    over. The value of a list is the probability that the user is satisfied, ``V = Σₖ aₖsₖ ∏_{j<k} γ(1 − aⱼsⱼ)``. It
    depends on the product as alone, and lists are ranked by a lower bound on that.

    ``perseverance`` sets γ; ``satisfaction`` sets one s for all items, or the mean μ of s over items and their
    correlation ρ: the variance of s is ρμ(1 − μ). Otherwise they are fitted to whole lists: those that counts keep. In
    the evidence, other items below a last click contribute their mean over the lists of the context, as in ``dcm``.

    Where it loses: where users go on by relevance, as in ``ccm``; up to 0.8 points of value to the true model in
    simulated logs (docs/wrong-models.md).
    """

    perseverance: float | None = None
    satisfaction: tuple[float, ...] = ()

    unit: ClassVar[str] = UNIT
    reward: ClassVar[Reward] = "satisfied"
    precedence: ClassVar[int] = 7
    whole_lists: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.perseverance is not None and not 0 <= as_number(self.perseverance) <= 1:
            raise UsageError(f"perseverance is {self.perseverance}; it is a probability.")
        object.__setattr__(self, "satisfaction", read_satisfaction(self.satisfaction))

    def curves(self, fitted: Mapping[str, Any]) -> dict[str, list[float | None]]:
        """None: no parameter depends on the position."""
        return {}

    def fit(self, cells: Cells, positions: int, lists: ListBatch | None = None) -> "FittedDynamicBayesian":
        """γ and the distribution of s, as set or from whole lists."""
        return fit_or_take(self, positions, lists, self.perseverance, self.satisfaction)

    def typical(self, positions: int) -> "FittedDynamicBayesian":
        """γ = .9, and half of the clicks satisfy."""
        gamma = 0.9 if self.perseverance is None else self.perseverance
        return FittedDynamicBayesian.of(self, positions, gamma, self.satisfaction or (0.5,))


def read_satisfaction(values: object) -> tuple[float, ...]:
    """One probability, the mean and correlation of several, or nothing to have them fitted."""
    listed = values if isinstance(values, tuple | list) else (values,)
    numbers = tuple(map(as_number, listed))
    if len(numbers) > 2 or not all(0 <= one <= 1 for one in numbers) or (len(numbers) == 2 and numbers[1] == 1):
        raise UsageError(
            f"satisfaction is {values}; write one probability for all items, such as 0.5, or their mean and their "
            "correlation, below 1, such as [0.5, 0.2]."
        )
    return numbers


def fit_or_take(
    model: ClickModel,
    positions: int,
    lists: ListBatch | None,
    perseverance: float | None,
    satisfaction: tuple[float, ...],
) -> "FittedDynamicBayesian":
    """The model with these parameters; what is missing is fitted."""
    if perseverance is not None and satisfaction:
        return FittedDynamicBayesian.of(model, positions, perseverance, satisfaction)
    name = str(model)
    if lists is None:
        raise NotIdentifiedError(f"{name} is not identified: it is fitted to whole lists, and there are only cells.")
    whole = WholeLists(lists)
    whole.check(name)
    found = fit_dynamic(whole, perseverance)
    if found.error > UNCERTAIN:
        raise NotIdentifiedError(
            f"{name} is not identified: the standard error of perseverance is {number(found.error, 2)}. Set "
            "perseverance=, or use sdbn, in which it is 1."
        )
    satisfaction = satisfaction or found.satisfaction
    fitted = FittedDynamicBayesian.of(model, positions, found.perseverance, satisfaction)
    doubt = ""
    if satisfaction[0] < RARELY:
        doubt = (
            f"By {name}, clicks hardly ever satisfy: users go on after one as readily as without one. Values of lists "
            "are close to 0, and their order is that of attraction."
        )
    return replace(fitted, error=found.error, learned=True, doubt=doubt)


UNCERTAIN = 0.2
"""Standard error of γ above which it is refused: the value of a list would not even be known roughly."""
RARELY = 0.02
"""Mean satisfaction below which there is no sign of any."""
ALIKE = 1e-4
"""Correlation of s that stands for none, where the product of attraction and satisfaction is asked for."""
TOLERANCE = 1e-4  # of attraction and satisfaction of items


@dataclass(frozen=True, eq=False)
class FittedDynamicBayesian(FittedReader):
    """γ, and s of every item: its mean, or one for each place of the lists to predict."""

    perseverance: float
    satisfaction: FloatArray  # s
    prior: tuple[float, float] | None = None  # α and β of s over items; None where it is the same for all
    error: float = field(default=0.0, kw_only=True)  # standard error of γ

    fitted_to_cells: ClassVar[bool] = False

    @classmethod
    def of(
        cls, model: ClickModel, positions: int, perseverance: float, satisfaction: tuple[float, ...]
    ) -> "FittedDynamicBayesian":
        """With one s, or the mean of a distribution of s."""
        mean = np.array(satisfaction[0])
        if len(satisfaction) == 1 or not satisfaction[1]:
            return cls(model, positions, perseverance, mean)
        strength = 1 / satisfaction[1] - 1
        return cls(model, positions, perseverance, mean, (satisfaction[0] * strength, (1 - satisfaction[0]) * strength))

    @property
    def parameters(self) -> Mapping[str, FloatArray]:
        """γ, and the mean and correlation of s."""
        if not self.learned:
            return {}
        fitted = {} if getattr(self.model, "perseverance", 1.0) is not None else {"perseverance": self.perseverance}
        return {name: np.array(value) for name, value in {**fitted, "satisfaction": self._distribution}.items()}

    @property
    def pinned(self) -> ClickModel:
        """With γ, where the model has it as a setting, and the distribution of s."""
        settings: dict[str, Any] = {"satisfaction": self._distribution}
        if hasattr(self.model, "perseverance"):
            settings["perseverance"] = self.perseverance
        return self.model.pinned(settings)

    @property
    def _distribution(self) -> tuple[float, float]:
        return float(self.satisfaction), 0.0 if self.prior is None else 1 / (1 + sum(self.prior))

    @property
    def of_scores(self) -> "FittedDynamicBayesian":
        """Where items differ in s, those whose every click satisfies: lists are ranked by such clicks."""
        if self.prior is None:
            return self
        users = self.model, self.positions, self.perseverance, np.array(1.0)
        return _FittedSatisfying(*users, error=self.error, learned=self.learned, doubt=self.doubt)

    @property
    def as_truth(self) -> "FittedDynamicBayesian":
        """With the mean of s for every item."""
        return replace(self, learned=False, prior=None)

    def satisfied_by(self, satisfaction: FloatArray) -> "FittedDynamicBayesian":
        """With s of every place."""
        return replace(self, satisfaction=satisfaction, prior=None)

    def ranking_like(self, fitted: FittedModel) -> "FittedDynamicBayesian":
        """By attraction where `fitted` ranks by that; else by the product, also where items hardly differ in s."""
        differ = getattr(fitted, "prior", None) is not None
        if differ == (self.prior is not None):
            return self
        like = self.of(self.model, self.positions, self.perseverance, (float(self.satisfaction), ALIKE * differ))
        return replace(like, error=self.error, learned=self.learned, doubt=self.doubt)

    def evidence(self, cells: Cells) -> Evidence:
        """Clicks against examinations without a click, and satisfying clicks against examinations without one."""
        settled = settle(cells, self._users(cells.positions))
        clicks, examined, shown = settled.clicks, settled.examined, cells.per_pair()
        skips = skips_of(cells, settled, self.perseverance)
        evidence = make_evidence(self, cells, clicks, settled.negative, tries=shown, skips=skips)
        if self.prior is None:
            return evidence
        last = last_clicks(cells)
        ended = LastClicks(cells.pair[last], cells.n[last], self.perseverance * settled.unread)
        (followed,) = cells.fold(cells.codes.click & cells.codes.more)
        satisfaction, spread = estimate_satisfaction(followed, ended, *self.prior)
        trials = combined_trials(settled.parameters[:, 0], examined, satisfaction, spread)
        positive = trials * satisfaction * np.divide(clicks, examined, out=np.zeros(cells.pairs), where=examined > 0)
        satisfying = make_evidence(self.of_scores, cells, positive, trials - positive, tries=shown)
        return replace(evidence, satisfaction=satisfaction, satisfying=satisfying)

    def estimate(self, cells: Cells) -> FloatArray:
        """Clicks per examination, without the rest of the evidence where they say all; else satisfying ones."""
        return settle(cells, self._users(cells.positions)).estimate if self.prior is None else super().estimate(cells)

    def _users(self, positions: int) -> Users:
        """Users whose clicks are on items that satisfy alike, or each as often as its t = 1 − s says."""
        gamma, t = self.perseverance, 1 - float(self.satisfaction)
        if self.prior is None:
            return Users(TOLERANCE, gamma, "position", np.full(positions, gamma * t))
        return Users(TOLERANCE, gamma, "item", np.array([gamma]), t, self.prior)

    def value(self, attraction: FloatArray, reward: Reward | None = None) -> FloatArray:
        """Σₖ aₖsₖ ∏_{j<k} γ(1 − aⱼsⱼ), unless another reward is asked for."""
        if (reward or self.model.reward) != "satisfied":
            return super().value(attraction, reward)
        satisfied = attraction * self.satisfaction
        onward = self.onward(attraction).unclicked * (1 - satisfied)
        return np.asarray((satisfied * product_above(onward)).sum(axis=-1))

    def cautious(self, level: float) -> "FittedDynamicBayesian":
        """Fitted γ at its lower limit."""
        return replace(self, perseverance=max(0.0, self.perseverance + float(ndtri(level)) * self.error))

    def place(self, scores: FloatArray) -> IntArray:
        """From the top down: what satisfies most is best seen first, as some users tire."""
        return top_down(scores)

    def onward(self, attraction: FloatArray) -> Onward:
        """The same after every item, but for what a click does; the last position ends the list."""
        known = np.full(max(0, self.positions - 1), self.perseverance)
        gamma = by_position(known, attraction.shape[-1], beyond=0.0)
        return Onward(gamma, gamma * (1 - self.satisfaction))


class _FittedSatisfying(FittedDynamicBayesian):
    """Users whose attraction is that to a click that satisfies; other clicks are not in it."""

    def rewards(self, attraction: FloatArray, reward: Reward) -> FloatArray:
        """None: lists say how often they satisfy, which no click shows."""
        raise UsageError(f"Under {self.model}, lists are ranked by clicks that satisfy, and those are not known here.")
