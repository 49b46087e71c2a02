"""The click-model contract: everything downstream speaks to a click model only through these two classes.

A new model is one file: a frozen dataclass with its settings, `unit` and `reward`, registered under a name, whose
`fit` returns a `FittedModel` with `evidence` and `predict`; parameters that it fits are named in `settings`. Rank,
compare, auto, tune, the estimators dm and dr, gate, report, explain and diff then work with it; simulations also need
`typical`. Third-party models register through the entry point group ``prudent.click_models``;
``tests/plugins/toy_model.py`` is one.

A model sees a log as `Cells`: how often an item was shown at a position, with the last click above at ``prev``, itself
clicked or not, with ``more`` clicks below or not. A model with `whole_lists` is also given whole lists of some contexts
to fit to. P(clicks) has to be linear in the θ of each item, as it is where an item stands once in a list, or at most
quadratic: derivatives in `prudent.evaluation.direct` rely on it.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, Protocol, cast

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import NotIdentifiedError, PrudentWarning, UsageError
from prudent.base.spec import Registry
from prudent.click_models.evidence import Evidence, Trials
from prudent.click_models.placement import best_order
from prudent.click_models.rewards import Reward
from prudent.counts.cells import Cells
from prudent.counts.lists import Counted, ListBatch


class ClickModel(Protocol):
    """How clicks come about; its settings are its fields."""

    unit: ClassVar[str]  # what the value of a list counts, in words
    reward: ClassVar[Reward]  # the same as a reward
    precedence: ClassVar[int] = 100  # where held-out clicks cannot tell two models apart, auto takes the lower
    whole_lists: ClassVar[bool] = False  # whether `fit` reads `lists`
    # Whether examination does not depend on other items and clicks: then cells will do of which `Cells.single` is true,
    # and a list earns the sum of the rewards of its items.
    single_impressions: ClassVar[bool] = False
    compares_positions: ClassVar[bool] = False  # whether it is fitted to items that are shown at several positions
    compared: ClassVar[bool] = True  # whether auto and compare try it: it predicts clicks in a way of its own

    def fit(self, cells: Cells, positions: int, lists: ListBatch | None = None) -> "FittedModel":
        """Fit the parameters that contexts share to the cells of some of them; lists have up to `positions` items.

        ``lists`` are whole lists, in general of other contexts; their pairs have numbers of their own. Raises
        `NotIdentifiedError`, with the reason, where the log does not determine a parameter.
        """
        ...

    def typical(self, positions: int) -> "FittedModel":
        """The model with the parameters in its settings or, without any, typical ones: for simulations."""
        raise UsageError(f"{self} cannot be simulated: it has no typical parameters.")

    def curves(self, fitted: Mapping[str, Any]) -> "dict[str, list[float | None]]":
        """The fitted parameters of a manifest by position, for charts; None where a position has no such value.

        Here those that are lists of numbers, or several such lists side by side. Raises `UsageError` where it cannot
        read them: a manifest may be made elsewhere.
        """
        return lists_by_position(fitted)

    def pinned(self, fitted: Mapping[str, Any]) -> "ClickModel":
        """The model with fitted parameters, such as those of a manifest, among its settings: they are not fitted again.

        Raises `UsageError` where they cannot be: a manifest may be made elsewhere.
        """
        if missing := fitted.keys() - {one.name for one in fields(cast(Any, self))}:
            raise UsageError(f"{self} has no setting {min(missing)!r} for a parameter that was fitted.")
        pinned: ClickModel = replace(cast(Any, self), **{name: _as_tuple(values) for name, values in fitted.items()})
        return pinned

    def evidence(self, counts: Counted) -> Evidence:
        """Fit and count in one step."""
        lists = counts.sample() if self.whole_lists else None
        check_cells(self, counts.cells)
        return self.fit(counts.cells, counts.cells.positions, lists).evidence(counts.cells)


def check_cells(model: ClickModel, cells: Cells) -> None:
    """Raise where a click model needs to know what was clicked above an item, and these cells do not have it."""
    if cells.single and not model.single_impressions:
        raise NotIdentifiedError(
            f"{model} needs whole lists: it reads what was clicked above and below an item. The log has single "
            "impressions, of which it is not known which items were shown together. Use pbm.",
        )


@dataclass(frozen=True, eq=False)
class FittedModel(ABC):
    """A click model with all that contexts share; arrays have lists along their first axis, positions along the last.

    `parameters`, `evidence` and `predict` define it. The rest follows from them; a model overrides what it can do
    faster or better.
    """

    model: ClickModel
    positions: int  # of the longest logged list; further down nothing is known, and nothing counts
    learned: bool = field(default=False, kw_only=True)  # the parameters were fitted, and not set
    doubt: str = field(default="", kw_only=True)  # why the log that it was fitted to contradicts the model, if it does

    settings: ClassVar[tuple[str, ...]] = ()  # fields that are parameters, and settings of the click model
    fitted_to_cells: ClassVar[bool] = True  # False where parameters come from whole lists alone

    @property
    def parameters(self) -> Mapping[str, FloatArray]:
        """The fitted parameters by name, with positions along the first axis; empty where nothing was fitted."""
        return {name: getattr(self, name) for name in self.settings} if self.learned else {}

    @property
    def pinned(self) -> ClickModel:
        """The click model with these parameters among its settings."""
        return self.model.pinned({name: getattr(self, name).tolist() for name in self.settings})

    @property
    def of_scores(self) -> "FittedModel":
        """The same users, with the scores of a policy for attraction; here lists are ranked by attraction."""
        return self

    @property
    def as_truth(self) -> "FittedModel":
        """The same with its parameters taken as known: the users of a simulation."""
        return self

    @abstractmethod
    def evidence(self, cells: Cells) -> Evidence:
        """Clicks and skips of every pair: bit for bit the same whichever other contexts are among the cells."""

    def bootstrap(
        self, cells: Cells, lists: ListBatch | None, replicates: int, random: np.random.Generator
    ) -> "Bootstrap":
        """The model fitted to bootstrapped logs, as many of them as identify it; here each from scratch.

        Of a large log these have a quarter of the size, so that twenty cost as much as five full fits; and of whole
        lists, a quarter of those that a fit takes.
        """
        members: list[FittedModel] = []
        taken = 1.0 if lists is None else min(1.0, MOST_PLACES / max(1, int(lists.n.sum()) * lists.length))
        for size in (1.0,) if cells.n.sum() <= SMALL else (QUARTER, 1.0):
            members = []
            for _ in range(replicates):
                drawn = None if lists is None else lists.bootstrapped(random, size * taken)
                counted = cells.bootstrapped(random, size) if self.fitted_to_cells else cells
                with suppress(NotIdentifiedError):
                    members.append(self.model.fit(counted, self.positions, drawn))
            if len(members) > replicates / 2:
                return Bootstrap(size, members)
        return Bootstrap(1.0, members)

    def estimate(self, cells: Cells) -> FloatArray:
        """Clicks per examination of every pair, with half a click more: what the members of an ensemble compare."""
        return self.evidence(cells).ranked.estimate

    def ranking_like(self, fitted: "FittedModel") -> "FittedModel":
        """The same users with evidence for what `fitted` ranks by, so that `estimate` of both can be compared.

        Here there is only one thing to rank by.
        """
        return self

    def trials(self, cells: Cells) -> "Trials":
        """Clicks and examinations of every pair alone, as `evidence` has them; here from there."""
        evidence = self.evidence(cells)
        return Trials(evidence.positive, evidence.expected, evidence.squares)

    @abstractmethod
    def predict(self, attraction: FloatArray, clicks: BoolArray | None = None) -> FloatArray:
        """P(click at k) of lists whose items have this attraction, or P(click at k | clicks above k).

        Attraction is 0 below the end of a list, and lists may be longer than `positions`.
        """

    def examined(self, attraction: FloatArray, clicks: BoolArray) -> FloatArray:
        """P(k is examined | the clicks of the list); here given those above k alone."""
        predicted = self.predict(attraction, clicks)
        return np.divide(predicted, attraction, out=np.zeros_like(predicted), where=attraction > 0)

    def sample(self, attraction: FloatArray, rng: np.random.Generator) -> BoolArray:
        """Clicks on lists, from one uniform number for each position."""
        uniform = rng.random(attraction.shape)
        clicks = np.zeros(attraction.shape, bool)
        for k in range(attraction.shape[-1]):
            clicks[..., k] = uniform[..., k] < self.predict(attraction, clicks)[..., k]
        return clicks

    def satisfied_by(self, satisfaction: FloatArray) -> "FittedModel":
        """The model for lists whose items satisfy by a click with these probabilities, one for each place."""
        raise UsageError(f"Under {self.model}, items do not differ in how often their clicks satisfy.")

    def value(self, attraction: FloatArray, reward: Reward | None = None) -> FloatArray:
        """The expected reward of lists; without one, that of the model."""
        return np.asarray(self.rewards(attraction, reward or self.model.reward).sum(axis=-1))

    def rewards(self, attraction: FloatArray, reward: Reward) -> FloatArray:
        """The expected reward of every position: a click, or the first click of the list."""
        if reward == "clicks":
            return self.predict(attraction)
        if reward == "any-click":
            # Given that nothing above was clicked.
            first = self.predict(attraction, np.zeros(attraction.shape, bool))
            return np.asarray(first * product_above(1 - first))
        raise UsageError(f"{self.model} has no reward {reward!r}: it does not say whether a click satisfies the user.")

    def cautious(self, level: float) -> "FittedModel":
        """For lower bounds on values: each fitted parameter where lists are worth less, wrong with probability `level`.

        A parameter that no log identifies stands where lists are worth least. Here all are taken as known.
        """
        return self

    def place(self, scores: FloatArray) -> IntArray:
        """The order of the highest value: the position, from 0, of each item of a list with these scores.

        Items are sorted by score, best first. Longer lists than 6 items get the order that no swap of two improves.
        """
        return best_order(scores, self.value)


class Bootstrap(NamedTuple):
    """A model fitted to bootstrapped logs."""

    size: float  # of these logs relative to the log: parameters vary as if there were only that much of it
    members: Sequence[FittedModel]


QUARTER, SMALL = 0.25, 100_000
"""The size of bootstrapped logs where there are more than this number of impressions."""
MOST_PLACES = 100_000
"""Places in whole lists to fit to: the standard error of γ of `dbn` is then below .01."""
click_models: Registry[ClickModel] = Registry("click model", "prudent.click_models", "fit", "prudent.click_models")


def lists_by_position(fitted: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """The parameters that are lists of numbers by position, or several such lists side by side."""
    curves: dict[str, list[float | None]] = {}
    for name, numbers in fitted.items():
        if not isinstance(numbers, list | tuple) or not numbers:
            continue
        if all(isinstance(number, list | tuple) for number in numbers):
            columns = zip(*numbers, strict=False)
            curves |= {f"{name} {i}": list(column) for i, column in enumerate(columns, start=1)}
        elif all(isinstance(number, int | float) for number in numbers):
            curves[name] = list(numbers)
    return curves


def _as_tuple(values: Any) -> Any:
    return tuple(map(_as_tuple, values)) if isinstance(values, list | tuple) else values


def product_above(factors: FloatArray) -> FloatArray:
    """∏_{j<k} of the factors, for every position k."""
    product = np.cumprod(factors, axis=-1)
    return np.concatenate([np.ones((*product.shape[:-1], 1)), product[..., :-1]], axis=-1)


def warn_unsettled() -> None:
    """Warn that an iteration was cut off."""
    warnings.warn(
        "The fit of the click model did not converge: the log hardly determines some parameters. Check the fitted "
        "values before you trust them.",
        PrudentWarning,
        stacklevel=2,
    )
