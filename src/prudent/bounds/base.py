"""The bound contract."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import UsageError
from prudent.base.spec import Registry, as_number
from prudent.click_models.evidence import Evidence

OfRows = Callable[[IntArray], FloatArray]
"""A number for each of some rows; quantiles cost more than all else, and few rows need more than one."""


class Once:
    """The same numbers, each computed when its row is first asked for."""

    def __init__(self, compute: OfRows, rows: int) -> None:
        self._compute, self._known = compute, np.full(rows, np.nan)

    def __call__(self, rows: IntArray) -> FloatArray:
        """The numbers of some rows."""
        new = rows[np.isnan(self._known[rows])]
        if new.size:
            self._known[new] = self._compute(new)
        return self._known[rows]


class Prior(NamedTuple):
    """Beta(α, β), one for all pairs or one for each."""

    alpha: FloatArray | float
    beta: FloatArray | float
    fitted: Mapping[str, Any] = MappingProxyType({})  # fitted parameters; fits JSON


class PriorRule(Protocol):
    """The prior of a pair, before its own clicks; it does not depend on which other contexts are scored."""

    def of(self, evidence: Evidence) -> Prior:
        """The prior of every pair."""
        ...


class Anchor(NamedTuple):
    """How an item of the incumbent list keeps its place: one that leads passes it if its lower bound exceeds `stay`."""

    stay: OfRows
    leads: BoolArray  # whether an item may pass others at all
    preference: FloatArray | None = None  # as in `Bound`
    level: float = 0.5  # P(θ ≤ stay)


@dataclass(frozen=True)
class Scores:
    """Lower bound and estimate of every pair."""

    lower: FloatArray
    mean: FloatArray  # the estimate: n₊/n, or the mean of the posterior, which a high quantile can exceed
    fitted: Mapping[str, Any] = field(default_factory=dict)  # fitted parameters, e.g. of the prior; fits JSON
    upper: OfRows | None = None  # the end of the interval that starts at the bound; None for an estimate alone
    anchor: Anchor | None = None  # None where lists are sorted by lower bound alone (Algorithm 1)
    # P(a list is worth less than its lower bound), at most; None for a bound that says nothing about lists.
    list_level: float | None = None
    # Lower bounds that hold for all items of a context at once, at that level; None where the scores are those of
    # posteriors, which are independent given the prior: `prudent.policies.list_bound` combines them.
    joint: OfRows | None = None
    deviation: OfRows | None = None  # standard deviation of the posterior; None for a bound without one
    # By how much the logit of the mean moves with one standard error of the fitted prior, a column for each independent
    # direction of that error, which all pairs share; None where the prior is taken as known.
    shared: OfRows | None = None


class Bound(Protocol):
    """A lower confidence bound on attraction; its settings are its fields."""

    posterior: ClassVar[bool] = False  # whether scores are those of a posterior, with its deviation

    @property
    def promise(self) -> str:
        """What it guarantees and under which assumptions, in a sentence or two, for a report."""
        return f"The guarantee of {self} is in its documentation."

    @property
    def ungrouped(self) -> PriorRule | None:
        """The fitted prior without groups, of a learned bound whose prior can follow them; None for any other."""
        return None

    @property
    def saved(self) -> Mapping[str, Any] | None:
        """All that it learned, as JSON, for a bound that scores pairs without evidence by it; None for any other."""
        return None

    def restored(self, saved: Mapping[str, Any]) -> "Bound":
        """The learned bound, from what it saved; called on the bound that it was learned from."""
        raise UsageError(f"{self} saves nothing that it learned.")

    def score(self, evidence: Evidence) -> Scores:
        """Lower bound and mean of every pair."""
        ...

    def score_lists(self, evidence: Evidence, incumbent: BoolArray) -> Scores:
        """The same, with NaN for pairs that no list takes, as far as a bound knows; `incumbent` marks those in a list.

        Most pairs of a long tail are shown once, below others, and without a click.
        """
        return self.score(evidence)

    def learn(self, evidence: Evidence, pairs: int) -> "Bound":
        """The bound with all that contexts share fitted, here to a sample of them.

        It scores each context by itself: bit for bit the same whichever others are scored with it, as long as `pairs`,
        the number of all pairs to score, stays the same.
        """
        return self

    def preference(self, evidence: Evidence) -> FloatArray | None:
        """Which items that were never shown come first, the highest first: production's order does not know them.

        In the order of their lower bounds; None where these are the same.
        """
        return None

    def fitted(self, evidence: Evidence) -> Mapping[str, Any]:
        """The fitted parameters alone: `Scores.fitted`."""
        return self.score(evidence).fitted

    def lower(self, evidence: Evidence) -> FloatArray:
        """The lower bounds alone."""
        return self.score(evidence).lower


bounds: Registry[Bound] = Registry("bound", "prudent.bounds", "score", "prudent.bounds")


def candidates_examined(evidence: Evidence) -> FloatArray:
    """The number of examined items in the context of every pair: what a bound for all of them divides δ by."""
    examined = np.bincount(evidence.context, evidence.examined > 0)
    return np.maximum(examined, 1.0)[evidence.context]


def check_delta(delta: object) -> None:
    """δ is a probability above 0."""
    if not 0 < as_number(delta) <= 1:
        raise UsageError(f"delta is {delta}; it must be a number above 0 and not above 1.")
    if as_number(delta) < 1e-12:
        raise UsageError(f"delta is {delta}; below 1e-12 the quantiles drown in rounding.")


def check_positive(name: str, value: object) -> None:
    """The parameters of a Beta distribution are positive numbers."""
    if not 0 < as_number(value) <= 1e12:
        raise UsageError(f"{name} is {value}; it must be a number above 0, and at most 1e12.")
