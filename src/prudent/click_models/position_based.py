"""The position-based model."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import LogError, NotIdentifiedError, UsageError, did_you_mean
from prudent.base.numerics.squarem import fixed_point
from prudent.base.numerics.thinned import Skips
from prudent.base.spec import as_number
from prudent.click_models.base import ClickModel, Evidence, FittedModel, click_models, make_evidence, warn_unsettled
from prudent.click_models.positions import (
    by_position,
    check_length,
    check_positions,
    heaviest_first,
    read_probabilities,
)
from prudent.click_models.rewards import Reward
from prudent.counts.cells import Cells
from prudent.counts.sampling import MOST_PAIRS

LINK = 20
"""Impressions that an item needs at each of two positions before it links them.

With fewer, the ratio of the two examination probabilities would depend on a click or two.
"""
MIN_IMPRESSIONS = 10
"""Impressions that an item needs at all positions together to take part in fitting p."""
_SEED = 20_240_611  # of the sample; any fixed number does
_TINY = 1e-300  # keeps 0/0, of a pair without clicks, at 0
_IGNORED = 0.02  # share of the variance of an attraction that may be left out


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
    Positions that share no item cannot be compared; then fitting is refused.
    """

    counts: Literal["examined", "weighted"] = "examined"
    solver: Literal["em", "als"] = "em"
    smooth: float = 0.01
    examination: tuple[float, ...] = ()

    unit: ClassVar[str] = "expected clicks"
    reward: ClassVar[Reward] = "clicks"
    precedence: ClassVar[int] = 1

    def __post_init__(self) -> None:
        for setting, known in (("counts", ("examined", "weighted")), ("solver", ("em", "als"))):
            word = getattr(self, setting)
            if word not in known:
                raise UsageError(
                    f"pbm has no {setting}={word}.{did_you_mean(str(word), known)} Known: {', '.join(known)}."
                )
        object.__setattr__(self, "examination", read_probabilities("examination", self.examination))
        if not 1e-9 <= as_number(self.smooth) < float("inf"):
            raise UsageError(f"smooth is {self.smooth}; it must be a number above 0, and at least 1e-9.")
        if self.counts == "weighted" and 0 in self.examination:
            raise UsageError("counts=weighted divides by the examination of each position; none may be 0.")

    def fit(self, cells: Cells, positions: int) -> "FittedPositionBased":
        """Examination p of every position, as set or fitted to the items that link them."""
        check_positions("examination", self.examination, positions)
        if self.examination:
            return FittedPositionBased(self, positions, np.array(self.examination[:positions]))
        pair, position, shown, clicked = per_position(cells.heaviest())
        apart = separate_positions(pair, position, shown, positions)
        if len(apart) > 1:
            raise NotIdentifiedError(
                f"pbm is not identified: {not_compared(apart)}. Set examination=[...], use dcm, or swap a "
                "few neighbouring items in production now and then.",
                parameter="examination",
            )
        table = pair, position, shown, clicked, positions
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
        return FittedPositionBased(self, positions, examination, covariance=covariance, learned=True)

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
        examination = self.examination[cells.position - 1]
        clicks = cells.per_pair(cells.click)
        expected = np.bincount(cells.pair, cells.n * examination, minlength=cells.pairs).astype(float, copy=False)
        squares = np.bincount(cells.pair, cells.n * examination**2, minlength=cells.pairs).astype(float, copy=False)
        seen = {"expected": expected, "squares": squares, "tries": cells.per_pair()}
        if getattr(self.model, "counts", "examined") == "weighted":
            shares = cells.n / examination
            positive, negative = (
                np.bincount(cells.pair[which], shares[which], minlength=cells.pairs).astype(float, copy=False)
                for which in (cells.click, ~cells.click)
            )
            # Σ(Y/p) / Σ(1/p) has a width of √Σ(1/p²) / Σ(1/p).
            widest = np.bincount(cells.pair, shares / examination, minlength=cells.pairs)
            seen["tries"] = widest * np.divide(expected, positive + negative, out=0 * widest, where=widest > 0) ** 2
            return make_evidence(self, cells, positive, negative, **seen)
        skip = np.flatnonzero(~cells.click)
        skips = Skips(cells.pair[skip], examination[skip], cells.n[skip])
        spread = self._spread(cells, clicks, expected)
        return make_evidence(
            self, cells, clicks, np.maximum(0.0, expected - clicks), **seen, skips=skips, spread=spread
        )

    def _spread(self, cells: Cells, clicks: FloatArray, expected: FloatArray) -> FloatArray | None:
        """Variance of log Σp, of pairs with so many clicks that it matters beside 1/clicks, the variance of log θ."""
        if self.covariance is None:
            return None
        spread = np.zeros(cells.pairs)
        rows = np.flatnonzero(clicks * self.covariance.diagonal().max() > _IGNORED)
        if not rows.size:
            return spread
        number = np.full(cells.pairs, -1)
        number[rows] = np.arange(rows.size)
        there = np.flatnonzero(number[cells.pair] >= 0)
        at = number[cells.pair[there]] * self.positions + cells.position[there] - 1
        looked = cells.n[there] * self.examination[cells.position[there] - 1]
        spent = np.bincount(at, looked, minlength=rows.size * self.positions)
        share = spent.reshape(rows.size, -1) / expected[rows, None]
        values, vectors = np.linalg.eigh(self.covariance)
        for value, vector in zip(values, vectors.T, strict=True):
            spread[rows] += max(0.0, value) * np.sum(share * vector, axis=1) ** 2
        return spread

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
            return np.tile(np.arange(scores.shape[1]), (len(scores), 1))
        return heaviest_first(self._examination(scores), len(scores))

    def _examination(self, attraction: FloatArray) -> FloatArray:
        return by_position(self.examination, attraction.shape[-1], beyond=0.0)


def per_position(cells: Cells) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Impressions and clicks of each (pair, position) that occurs."""
    starts = np.flatnonzero(np.diff(cells.pair, prepend=-1) | np.diff(cells.position, prepend=-1))
    shown = np.add.reduceat(cells.n, starts)
    clicked = np.add.reduceat(cells.n * cells.click, starts)
    return cells.pair[starts], cells.position[starts], shown, clicked


def separate_positions(pair: IntArray, position: IntArray, shown: FloatArray, positions: int) -> list[list[int]]:
    """Groups of positions linked by an item with enough impressions at both; one group means identified."""
    return position_groups(position_links(pair, position, shown, positions), positions)


def position_links(pair: IntArray, position: IntArray, shown: FloatArray, positions: int) -> IntArray:
    """Pairs of positions, a·(positions + 1) + b each, that some item links."""
    often = shown >= LINK
    pair, position = pair[often], position[often]
    # Positions of one pair stand in a row, so linking neighbours links them all.
    same = pair[1:] == pair[:-1]
    return np.flatnonzero(np.bincount(position[:-1][same] * (positions + 1) + position[1:][same], minlength=1))


def position_groups(links: IntArray, positions: int) -> list[list[int]]:
    """The positions that hang together by these links."""
    group = np.arange(positions + 1)
    for a, b in zip(*np.divmod(links, positions + 1), strict=True):
        group[group == group[b]] = group[a]
    return [(np.flatnonzero(group[1:] == g) + 1).tolist() for g in dict.fromkeys(group[1:].tolist())]


def not_compared(groups: Sequence[Sequence[int]]) -> str:
    """Why positions in different groups cannot be compared.

    >>> not_compared([[1], [2]])
    'no two positions can be compared: no item has 20 impressions at each of two'
    >>> not_compared([[1, 2], [3]])
    'positions {1, 2} and {3} cannot be compared: no item has 20 impressions at a position of each'
    """
    if all(len(group) == 1 for group in groups):
        return f"no two positions can be compared: no item has {LINK} impressions at each of two"
    return f"positions {name_groups(groups)} cannot be compared: no item has {LINK} impressions at a position of each"


def name_groups(groups: Sequence[Sequence[int]]) -> str:
    """Groups of positions as text: {1, 2} and {3}."""
    return " and ".join("{" + ", ".join(map(str, group)) + "}" for group in groups)


def fit_em(
    pair: IntArray, position: IntArray, shown: FloatArray, clicked: FloatArray, positions: int, smooth: float
) -> tuple[FloatArray, FloatArray]:
    """The p that maximises the likelihood Σ clicks·log(pₖθ) + (impressions − clicks)·log(1 − pₖθ).

    Every θ and every p also has `smooth` pseudo-observations of either kind, so that the maximum exists and is one.
    Expectation-maximisation goes there in thousands of rounds; in log θ and log p the likelihood is concave, and
    Newton's method needs a dozen steps, each with θ eliminated so that only one equation per position is solved.
    The second result is the covariance of log p relative to the largest, from the observed information.
    """
    from scipy.sparse import csr_array

    pair, position, shown, clicked, pairs = _telling(pair, position, shown, clicked)
    if not pairs:
        return np.ones(positions), np.zeros((positions, positions))
    place = position - 1
    missed = shown - clicked

    def terms(log_x: FloatArray, hits: FloatArray | float, misses: FloatArray | float) -> tuple[FloatArray, ...]:
        """hits·log x + misses·log(1 − x), its slope in log x, and minus its curvature there."""
        x = np.exp(log_x)
        rest = -np.expm1(log_x)
        return hits * log_x + misses * np.log(rest), hits - misses * x / rest, misses * x / rest**2

    def likelihood(log_theta: FloatArray, log_p: FloatArray) -> float:
        seen = terms(log_theta[pair] + log_p[place], clicked, missed)[0].sum()
        return float(seen + terms(log_theta, smooth, smooth)[0].sum() + terms(log_p, smooth, smooth)[0].sum())

    # A start that is roughly right saves half of the steps: p from the click rates, θ from p.
    rate = (np.bincount(place, clicked, minlength=positions) + 1) / (np.bincount(place, shown, minlength=positions) + 2)
    log_p = np.log(0.8 * rate / rate.max())
    looked = np.bincount(pair, shown * np.exp(log_p)[place], minlength=pairs)
    log_theta = np.log((np.bincount(pair, clicked, minlength=pairs) + 0.2) / (looked + 1)).clip(-6.0, -0.2)
    reached = likelihood(log_theta, log_p)
    for _ in range(200):
        _, slope, bend = terms(log_theta[pair] + log_p[place], clicked, missed)
        _, slope_theta, bend_theta = terms(log_theta, smooth, smooth)
        _, slope_p, bend_p = terms(log_p, smooth, smooth)
        slope_theta = slope_theta + np.bincount(pair, slope, minlength=pairs)
        bend_theta = bend_theta + np.bincount(pair, bend, minlength=pairs)
        slope_p = slope_p + np.bincount(place, slope, minlength=positions)
        bend_p = bend_p + np.bincount(place, bend, minlength=positions)
        shared = csr_array((bend, (pair, place)), shape=(pairs, positions))
        share = csr_array((bend / bend_theta[pair], (pair, place)), shape=(pairs, positions))
        left = np.diag(bend_p) - (shared.T @ share).toarray()
        move_p = np.linalg.solve(left, slope_p - share.T @ slope_theta)
        move_theta = (slope_theta - shared @ move_p) / bend_theta
        # Stay below log 1 = 0, and halve the step until it climbs, as far as rounding lets that be seen.
        step = min(1.0, 0.95 / max(1e-12, float(np.max(-move_theta / log_theta)), float(np.max(-move_p / log_p))))
        while (higher := likelihood(log_theta + step * move_theta, log_p + step * move_p)) < reached - 1e-12 * abs(
            reached
        ):
            step /= 2
        log_theta, log_p, reached = log_theta + step * move_theta, log_p + step * move_p, higher
        if np.sum(slope_theta * move_theta) + np.sum(slope_p * move_p) < 1e-9:  # twice what a full step can still gain
            break
    # Further digits depend on how many threads solve the equations.
    contrast = np.eye(positions)
    contrast[:, int(np.argmax(log_p))] -= 1
    covariance = contrast @ np.linalg.solve(left, contrast.T)
    return np.round(np.exp(log_p - log_p.max()), 9), np.round(covariance, 9)


def fit_als(pair: IntArray, position: IntArray, shown: FloatArray, clicked: FloatArray, positions: int) -> FloatArray:
    """The p that minimises Σ (pₖθ − Y)², by alternating least squares (App. A)."""
    pair, position, shown, clicked, pairs = _telling(pair, position, shown, clicked)
    if not clicked.any():
        return np.ones(positions)

    def step(p: FloatArray) -> FloatArray:
        of = p[position - 1]
        below = np.bincount(pair, of * of * shown, minlength=pairs)
        theta = np.bincount(pair, of * clicked, minlength=pairs) / np.maximum(below, _TINY)
        of = theta[pair]
        below = np.bincount(position - 1, of * of * shown, minlength=positions)
        new = np.bincount(position - 1, of * clicked, minlength=positions) / np.maximum(below, _TINY)
        return np.asarray(new / new.max())

    examination, rest = fixed_point(step, np.ones(positions), 1e-8, groups=np.zeros(1, np.int64), rounds=2_000)
    if not rest.all():
        warn_unsettled()
    return examination


def _telling(
    pair: IntArray, position: IntArray, shown: FloatArray, clicked: FloatArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, int]:
    """The pairs with enough impressions to say something about p, renumbered; a fixed sample where there are many.

    An item shown once and clicked once has θ = 1 at the maximum and pulls p towards 1: on a simulated log with a
    long tail p was off by .04 with such pairs and by .005 without.
    """
    impressions = np.bincount(pair, shown)
    telling = np.flatnonzero(impressions >= MIN_IMPRESSIONS)
    if len(telling) > MOST_PAIRS:
        telling = np.random.default_rng(_SEED).choice(telling, MOST_PAIRS, replace=False)
    chosen = np.zeros(len(impressions), bool)
    chosen[telling] = True
    kept = chosen[pair]
    numbers, pair = np.unique(pair[kept], return_inverse=True)
    return pair, position[kept], shown[kept], clicked[kept], len(numbers)
