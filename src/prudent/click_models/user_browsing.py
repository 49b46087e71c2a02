"""The user browsing model."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import NotIdentifiedError, UsageError
from prudent.click_models.base import Bootstrap, ClickModel, FittedModel, click_models
from prudent.click_models.browsing_fit import bootstrap_browsing, fit_browsing
from prudent.click_models.evidence import Evidence, Trials
from prudent.click_models.examination import not_compared, per_position, separate_positions
from prudent.click_models.positions import check_length, check_positions, read_probabilities, top_down
from prudent.click_models.rewards import Reward
from prudent.click_models.thinned_evidence import estimate, thinned_evidence
from prudent.counts.cells import Cells
from prudent.counts.lists import ListBatch

Rows = tuple[tuple[float, ...], ...]


@click_models.register("ubm")
@dataclass(frozen=True)
class UserBrowsing(ClickModel):
    """An item is examined with a probability that depends on its position and on where the last click above was.

    ``P(Yₖ = 1 | last click above at j) = γₖⱼ θ``, with j = 0 where nothing above was clicked (Dupret and Piwowarski
    2008). `pbm` is the case in which γₖⱼ is the same for all j. Given γ, each impression is a trial of its own:
    n₊ = ΣY, n₋ = max(0, Σγ − ΣY), and posteriors are exact. The value of a list is the expected number of clicks,
    ``V = Σₖ θₖ Σⱼ qₖⱼ γₖⱼ``, with qₖⱼ the probability that the last click above k is at j.

    ``examination`` sets γ, a row for each position from the top down, with the values for no click above and for the
    last click at 1, 2, …: ``[[1], [0.6, 0.9], [0.4, 0.5, 0.8]]``. Otherwise it is fitted by maximum likelihood to all
    contexts together and scaled to a maximum of 1. Pairs of positions that are rare in the log share one γ with others
    at about the same distance; where clicks above are too rare for that, γ depends on the position alone.
    Positions that share no item cannot be compared; then fitting is refused. Lists are placed by a γ that was set, and
    from the top down where it was fitted.

    Where it loses: least of all in simulated logs, at most 0.03 points of value to the true model
    (docs/wrong-models.md).
    """

    examination: Rows = ()

    unit: ClassVar[str] = "expected clicks"
    reward: ClassVar[Reward] = "clicks"
    precedence: ClassVar[int] = 4

    def __post_init__(self) -> None:
        object.__setattr__(self, "examination", _read_rows(self.examination))

    def curves(self, fitted: Mapping[str, Any]) -> dict[str, list[float | None]]:
        """γ without a click above, and below a click at one of the three positions right above."""
        rows = _read_rows(fitted.get("examination", ()))
        curves: dict[str, list[float | None]] = {"γ, no click above": [row[0] for row in rows]}
        for distance in range(1, min(4, len(rows))):
            curves[f"γ, click {distance} above"] = [
                row[k - distance + 1] if k >= distance else None for k, row in enumerate(rows)
            ]
        return curves

    def fit(self, cells: Cells, positions: int, lists: ListBatch | None = None) -> "FittedUserBrowsing":
        """γ of every position and last click above, as set or fitted to the items that link them."""
        check_positions("examination", self.examination, positions)
        if self.examination:
            return FittedUserBrowsing(self, positions, _as_matrix(self.examination[:positions]))
        _check_size(positions)
        heavy = cells.heaviest()
        pair, position, shown, _ = per_position(heavy)
        apart = separate_positions(pair, position, shown, positions)
        if len(apart) > 1:
            raise NotIdentifiedError(
                f"ubm is not identified: {not_compared(apart)}. Set examination=[...], or swap a few neighbouring "
                "items in production now and then.",
                parameter="examination",
            )
        group, examination, covariance = fit_browsing(heavy, positions)
        return FittedUserBrowsing(
            self, positions, np.tril(examination[group]), group=group, covariance=covariance, learned=True
        )

    def typical(self, positions: int) -> "FittedUserBrowsing":
        """γ falls with the position before the first click and with the distance after one, unless it is set."""
        check_length(self, self.examination, positions)
        _check_size(positions)
        if self.examination:
            return FittedUserBrowsing(self, positions, _as_matrix(self.examination))
        k, j = np.arange(1, positions + 1)[:, None], np.arange(positions)
        after = 0.9 / np.maximum(1, k - j)
        # Rounded, so that the model stays readable where it is spelled out.
        return FittedUserBrowsing(self, positions, np.tril(np.where(j == 0, k**-0.7, after).round(3)))


@dataclass(frozen=True, eq=False)
class FittedUserBrowsing(FittedModel):
    """γ: a row for each position, a column for each last click above, of which the first is none."""

    examination: FloatArray
    # The number of the γ that each row and column has, and the covariance of their logarithms; None where γ was set.
    group: IntArray | None = field(default=None, kw_only=True)
    covariance: FloatArray | None = field(default=None, kw_only=True)

    settings: ClassVar[tuple[str, ...]] = ("examination",)

    @property
    def pinned(self) -> ClickModel:
        """With γ as a setting."""
        rows = tuple(tuple(row[: k + 1]) for k, row in enumerate(self.examination.tolist()))
        return replace(self.model, examination=rows)  # type: ignore[type-var]

    @property
    def as_truth(self) -> "FittedUserBrowsing":
        """With γ that is as good as set, so that the best lists are placed by it."""
        return replace(self, learned=False)

    def place(self, scores: FloatArray) -> IntArray:
        """From the top down where γ was fitted; where it was set, in the order of the most expected clicks.

        Placing by a fitted γ gained 4 % of the value where the second position is examined more than the first, and
        cost 10 % where clicks come from dcm, whose users are satisfied by the best item the sooner they see it.
        """
        return top_down(scores) if self.learned else super().place(scores)

    def evidence(self, cells: Cells) -> Evidence:
        """Clicks against expected examinations without a click."""
        codes = cells.codes
        if self.group is None:
            state, examination = (codes.position - 1) * self.positions + codes.prev, self.examination.ravel()
            return thinned_evidence(self, cells, state, examination, None)
        below = np.tri(self.positions, dtype=bool)
        examination = np.zeros(self.group.max() + 1)
        examination[self.group[below]] = self.examination[below]
        return thinned_evidence(self, cells, self.group[codes.position - 1, codes.prev], examination, self.covariance)

    def bootstrap(
        self, cells: Cells, lists: ListBatch | None, replicates: int, random: np.random.Generator
    ) -> Bootstrap:
        """γ of bootstrapped logs, from this γ on, with the same groups."""
        if self.group is None:
            return super().bootstrap(cells, lists, replicates, random)
        steps = bootstrap_browsing(cells.heaviest(), self.group, self.examination, replicates, random)
        return Bootstrap(1.0, [replace(self, examination=one, covariance=None) for one in steps])

    def estimate(self, cells: Cells) -> FloatArray:
        """Clicks per expected examination."""
        return estimate(cells, self.examination[cells.position - 1, cells.prev])

    def trials(self, cells: Cells) -> Trials:
        """Clicks, Σγ and Σγ²."""
        codes = cells.codes
        chance = self.examination[codes.position - 1, codes.prev]
        return Trials(*cells.fold(codes.click, chance, chance**2))

    def predict(self, attraction: FloatArray, clicks: BoolArray | None = None) -> FloatArray:
        """γₖⱼθ, with j where the last click above is, or with its distribution, carried from the top down."""
        if clicks is not None:
            return np.asarray(attraction * self.examined(attraction, clicks))
        length = attraction.shape[-1]
        gamma = self._examination(length)
        predicted = np.zeros(attraction.shape)
        last = np.zeros((*attraction.shape[:-1], length + 1))
        last[..., 0] = 1
        for k in range(length):
            clicked = last[..., : k + 1] * gamma[k, : k + 1] * attraction[..., k, None]
            predicted[..., k] = clicked.sum(axis=-1)
            last[..., : k + 1] -= clicked
            last[..., k + 1] = predicted[..., k]
        return predicted

    def examined(self, attraction: FloatArray, clicks: BoolArray) -> FloatArray:
        """γₖⱼ."""
        length = attraction.shape[-1]
        last = np.maximum.accumulate(np.where(clicks, np.arange(1, length + 1), 0), axis=-1)
        above = np.concatenate([np.zeros_like(last[..., :1]), last[..., :-1]], axis=-1)
        return np.asarray(self._examination(length)[np.arange(length), above])

    def sample(self, attraction: FloatArray, rng: np.random.Generator) -> BoolArray:
        """Clicks from the top down."""
        uniform = rng.random(attraction.shape)
        gamma = self._examination(attraction.shape[-1])
        clicks, last = np.zeros(attraction.shape, bool), np.zeros(attraction.shape[:-1], np.int64)
        for k in range(attraction.shape[-1]):
            clicks[..., k] = uniform[..., k] < attraction[..., k] * gamma[k, last]
            last = np.where(clicks[..., k], k + 1, last)
        return clicks

    def _examination(self, length: int) -> FloatArray:
        """γ of lists of this length; 0 where no logged list had an item."""
        gamma = np.zeros((length, length))
        known = min(length, self.positions)
        gamma[:known, :known] = self.examination[:known, :known]
        return gamma


MOST_POSITIONS = 1_000
"""Positions of the longest list: γ has a value for every two of them."""


def _check_size(positions: int) -> None:
    if positions > MOST_POSITIONS:
        raise UsageError(
            f"ubm takes lists of up to {MOST_POSITIONS:,} positions, and these have {positions:,}. Set length."
        )


def _read_rows(rows: object) -> Rows:
    """γ as a user wrote it, or the square that a manifest keeps; empty to have it fitted."""
    listed = isinstance(rows, tuple | list) and rows and all(isinstance(row, tuple | list) for row in rows)
    if not listed:
        read_probabilities("examination", rows)  # what is no list of probabilities has a message of its own
    if not rows:
        return ()
    read = tuple(read_probabilities("examination", row) for row in rows) if listed else ((),)  # type: ignore[attr-defined]
    short = next((k for k, row in enumerate(read, start=1) if len(row) < k), None)
    if short is not None:
        raise UsageError(
            f"examination of ubm has a row for each position, and row {short} at least {short} values, for no click "
            "above and for the last one at each position above, such as [[1], [0.6, 0.9]]."
        )
    return tuple(row[:k] for k, row in enumerate(read, start=1))


def _as_matrix(rows: Rows) -> FloatArray:
    gamma = np.zeros((len(rows), len(rows)))
    for k, row in enumerate(rows):
        gamma[k, : k + 1] = row
    return gamma
