"""From contributions of lists to estimates: value, logged reward and lift, each with its interval.

The bootstrap resamples lists: each logged list gets a Poisson number of copies, as in drawing with replacement, but
independently of the others, so that lists can be processed in blocks. Each block has its own random numbers and sums
are exact: neither the size of memory nor the number of threads changes a digit.

The empirical Bernstein bound (Maurer and Pontil 2009) holds for any number of lists: the mean of n independent numbers
within a range of width b and with sample variance v is off by more than ``√(2v ln(2/δ)/n) + 7b ln(2/δ)/(3(n − 1))`` to
one side with probability at most δ.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import pdtr, stdtrit

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.errors import UsageError
from prudent.base.spec import check_number, check_word, whole_number
from prudent.click_models.rewards import COLUMN, OBSERVED_REWARDS, EarnedReward
from prudent.evaluation.estimators import Contributions, Estimator
from prudent.evaluation.estimators.base import highest_reward
from prudent.evaluation.holdout import CannotTellError, Holdout
from prudent.evaluation.sensitivity import margin, sensitivity, unchanged_places

IntervalName = Literal["bootstrap", "bernstein"]
INTERVALS: tuple[IntervalName, ...] = ("bootstrap", "bernstein")


@dataclass(frozen=True)
class Settings:
    """What to estimate and how; `confidence` is two-sided."""

    reward: EarnedReward = "clicks"
    confidence: float = 0.95
    interval: IntervalName = "bootstrap"
    replicates: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        if self.reward != COLUMN:
            check_word("reward", self.reward, OBSERVED_REWARDS)
        check_word("interval", self.interval, INTERVALS)
        if self.reward == COLUMN and self.interval == "bernstein":
            raise UsageError(
                "Bernstein intervals hold for rewards of which the largest possible one is known, as it is for clicks. "
                "For others use interval=bootstrap (--interval bootstrap)."
            )
        check_number("confidence", self.confidence, above=0, below=1, example="0.95")
        whole_number("replicates", self.replicates, 20, 100_000)
        whole_number("seed", self.seed, 0)


@dataclass(frozen=True)
class Estimate:
    """One estimator's estimate; None where it cannot tell.

    ``value``, ``logged`` and ``lift`` cover the lists of contexts with support; ``support`` is their share of the lists
    that the policy changes. ``lift`` is relative: 0.03 is 3% more.
    """

    estimator: str
    reward: str
    lists: int  # in the holdout
    logged: float | None = None  # logged reward per list
    logged_low: float | None = None
    logged_high: float | None = None
    value: float | None = None  # expected reward per list of the policy
    low: float | None = None
    high: float | None = None
    lift: float | None = None  # value / logged − 1
    lift_low: float | None = None
    lift_high: float | None = None
    effective_sample_size: float | None = None  # (Σw)²/Σw²; None for estimators without weights
    support: float = 0.0
    largest_weight: float | None = None
    why: str = ""  # why it cannot tell, or a remark on the numbers
    doubt: str = ""  # why the click model behind the numbers is not to be trusted: a gate cannot tell then
    unchanged: float | None = None  # share of the lists with support that the policy leaves as they are
    lift_changed: float | None = None  # on the other lists
    sensitivity: float | None = None  # Γ of hidden confounding that undoes the lift's limit; 1: nothing to undo
    margin: float | None = None  # by which share clicks at changed places may be overstated until the limit is undone
    shrinkage: float | None = (
        None  # by which share shrinking θ may change the reward at such places, where it is shrunk
    )

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return self.value is not None


def estimate(
    held: Holdout,
    estimators: Sequence[Estimator],
    settings: Settings,
    *,
    min_lift: float = 0.0,
    any_seed: bool = False,
) -> tuple[Estimate, ...]:
    """The estimate of each estimator on the same holdout, from the same bootstrap replicates.

    `min_lift` is the lift to beat, which the sensitivity is about. With `any_seed`, the variance of a lift is at least
    what the bootstrap tends to with ever more replicates, to first order: no seed makes its interval narrower.
    """
    measured = measure(held, estimators, settings)
    return tuple(conclude(held, one, settings, min_lift=min_lift, any_seed=any_seed) for one in measured)


class Measured(NamedTuple):
    """What lists contribute to an estimator, before any confidence level or lift to beat."""

    estimator: Estimator
    part: Contributions | str  # or why there are none
    totals: FloatArray | None  # in each bootstrap replicate: of gain, share, logged reward and counted lists


def measure(held: Holdout, estimators: Sequence[Estimator], settings: Settings) -> list[Measured]:
    """The contributions to each estimator, and their totals in the same bootstrap replicates."""
    parts = [_contributions(held, estimator, settings) for estimator in estimators]
    earned = held.reward(settings.reward)
    columns: list[FloatArray | BoolArray] = []
    for part in parts:
        if isinstance(part, Contributions):
            columns += [part.gain, part.share, earned * part.counted, part.counted]
    resample = settings.interval == "bootstrap" and columns
    totals = replicate(columns, held.n, settings.replicates, settings.seed) if resample else None
    measured, at = [], 0
    for estimator, part in zip(estimators, parts, strict=True):
        if totals is None or isinstance(part, str):
            measured.append(Measured(estimator, part, None))
            continue
        measured.append(Measured(estimator, part, totals[:, at : at + 4]))
        at += 4
    return measured


def conclude(
    held: Holdout, measured: Measured, settings: Settings, *, min_lift: float = 0.0, any_seed: bool = False
) -> Estimate:
    """The estimate of one estimator; see `estimate`."""
    estimator, part, totals = measured
    if isinstance(part, str):
        return Estimate(str(estimator), settings.reward, int(held.n.sum()), why=part)
    earned = held.reward(settings.reward)
    if totals is None:
        intervals = _bernstein_intervals(held, part, earned, settings)
    else:
        least = _limit_of_variance(held, part, earned) if any_seed else 0.0
        intervals = _bootstrap_intervals(held, part, earned, totals, settings.confidence, least)
    return _estimate(str(estimator), held, part, intervals, settings.reward, min_lift)


def _contributions(held: Holdout, estimator: Estimator, settings: Settings) -> Contributions | str:
    """The contributions of lists, or why there are none."""
    try:
        part = estimator.contributions(held, settings.reward)
    except CannotTellError as error:
        return str(error)
    if settings.interval == "bernstein" and part.max_gain is None:
        return "Bernstein intervals need logged propensities and clipped weights, as in ips(clip=50)."
    return part


def _estimate(
    name: str,
    held: Holdout,
    part: Contributions,
    intervals: "_Intervals",
    reward: EarnedReward,
    min_lift: float,
) -> Estimate:
    logged, of_logged, of_value, of_lift = intervals
    value, lift = part.value, None if of_lift is None else part.value / logged - 1
    lists = float(held.n[part.counted].sum())
    stay = part.counted & held.stays
    unchanged = float(held.n[stay].sum() / lists)
    kept = float(np.sum((held.n * held.reward(reward))[stay]) / lists)
    gamma = room = None
    if of_lift is not None:
        low, high, goal = ((1 + level) * logged for level in (*of_lift, min_lift))
        same, places = unchanged_places(held, part.counted, reward)
        gamma = None if reward == COLUMN else sensitivity(low, high, goal, same, places)
        room = margin(low, goal, same)
    earned = "earned a reward" if reward == COLUMN else "was clicked"
    no_lift = "" if logged else f"No logged list {earned}: the lift is not defined."
    return Estimate(
        estimator=name,
        reward=reward,
        lists=int(held.n.sum()),
        logged=_rounded(logged),
        logged_low=_rounded(max(0.0, of_logged.low)),
        logged_high=_rounded(of_logged.high),
        value=_rounded(value),
        low=_rounded(max(min(0.0, value), of_value.low)),  # no list earns less than nothing
        high=_rounded(of_value.high),
        lift=_rounded(lift),
        lift_low=None if of_lift is None or lift is None else _rounded(max(min(-1.0, lift), of_lift.low)),
        lift_high=None if of_lift is None else _rounded(of_lift.high),
        effective_sample_size=_rounded(part.effective_sample_size),
        support=_rounded(part.support) or 0.0,
        largest_weight=_rounded(part.largest_weight),
        unchanged=_rounded(unchanged),
        lift_changed=_rounded((value - kept) / (logged - kept) - 1 if logged > kept else None),
        sensitivity=_rounded(gamma),
        margin=_rounded(room),
        shrinkage=_rounded(part.shrinkage),
        why=" ".join(filter(None, [part.note, no_lift])),
        doubt=part.doubt,
    )


def _rounded(number: float | None) -> float | None:
    """Twelve digits, which are the same on every machine; None for what JSON cannot express."""
    return float(f"{number:.12g}") if number is not None and isfinite(number) else None


class Interval(NamedTuple):
    """The limits of an estimate."""

    low: float
    high: float


class _Intervals(NamedTuple):
    """The logged reward, and the intervals of logged reward, value and lift."""

    logged: float
    of_logged: Interval
    of_value: Interval
    of_lift: Interval | None


# --- bootstrap --------------------------------------------------------------------------------------------------------

_BLOCK = 8_192  # lists with random numbers of their own: another size makes other replicates


def _bootstrap_intervals(
    held: Holdout, part: Contributions, earned: FloatArray, totals: FloatArray, confidence: float, least: float
) -> _Intervals:
    lists = float(held.n[part.counted].sum())
    logged = float(np.sum(held.n * earned * part.counted) / lists)
    gain, share, reward, counted = totals.T
    usable = (share > 0) & (counted > 0) & ((reward > 0) | (logged == 0))
    values, means = gain[usable] / share[usable], reward[usable] / counted[usable]
    if len(values) < 2:
        return _Intervals(logged, Interval(0.0, inf), Interval(0.0, inf), None)
    # The spread itself is estimated from this many replicates.
    effective = min(part.effective_sample_size or lists, float(len(values)))
    of_value = student_interval(part.value, values.var(ddof=1) + part.extra_variance, effective, confidence)
    of_logged = student_interval(logged, means.var(ddof=1), min(lists, float(len(values))), confidence)
    if logged == 0:
        return _Intervals(logged, of_logged, of_value, None)
    spread = max(least, (values / means - 1).var(ddof=1)) + part.extra_variance / logged**2
    return _Intervals(
        logged, of_logged, of_value, student_interval(part.value / logged - 1, spread, effective, confidence)
    )


def _limit_of_variance(held: Holdout, part: Contributions, earned: FloatArray) -> float:
    """The variance of a replicate's lift, from the derivative of the lift by how often each list is in it."""
    lists, shares = float(np.sum(held.n * part.counted)), float(np.sum(held.n * part.share))
    logged = float(np.sum(held.n * earned * part.counted)) / lists
    if not logged or not shares:
        return 0.0
    value = (part.gain - part.value * part.share) / shares
    mean = (earned - logged) * part.counted / lists
    return float(np.sum(held.n * (value / logged - part.value * mean / logged**2) ** 2))


def replicate(columns: Sequence[FloatArray | BoolArray], n: IntArray, replicates: int, seed: int) -> FloatArray:
    """Totals of columns, which have one entry per list: one row per replicate.

    >>> replicate([np.ones(4)], np.full(4, 250), replicates=3, seed=0).shape
    (3, 1)
    """
    units = [_unit(column, n) for column in columns]
    totals = np.zeros((replicates, len(columns)))
    for number, first in enumerate(range(0, len(n), _BLOCK)):
        block = slice(first, first + _BLOCK)
        times = _times(n[block], replicates, np.random.default_rng([seed, number]))
        entries = [np.round(column[block] / unit) * unit for column, unit in zip(columns, units, strict=True)]
        totals += times.T @ np.column_stack(entries)
    return totals


# Poisson(1) from 16 random bits, to within 2⁻¹⁷ of its probabilities: most lists were shown once, and there are many.
_ONCE = np.searchsorted(np.round(65_536 * pdtr(np.arange(12), 1.0)), np.arange(65_536), side="right").astype(np.float64)


def _times(n: IntArray, replicates: int, random: np.random.Generator) -> FloatArray:
    """How often each list is in each replicate."""
    times = _ONCE[random.integers(0, 65_536, (len(n), replicates), dtype=np.uint16)]
    often = np.flatnonzero(n > 1)
    times[often] = random.poisson(n[often, None], (len(often), replicates))
    return times


def _unit(column: FloatArray | BoolArray, n: IntArray) -> float:
    """The binary place to which a column is rounded so that its sums are exact in any order."""
    largest = float(np.sum(n * np.abs(column)))
    return float(2.0 ** (np.ceil(np.log2(largest)) - 48)) if largest else 1.0  # no total exceeds 2⁴ times the sum


def student_interval(value: float, variance: float, lists: float, confidence: float) -> Interval:
    """Student's interval, with effective sample size − 1 degrees of freedom.

    Not the quantiles of the replicates: of 200, the 2.5% quantile is the fifth value from the end.
    """
    reach = stdtrit(max(1.0, lists - 1), (1 + confidence) / 2) * np.sqrt(variance)
    return Interval(float(value - reach), float(value + reach))


# --- Bernstein --------------------------------------------------------------------------------------------------------


def _bernstein_intervals(held: Holdout, part: Contributions, earned: FloatArray, settings: Settings) -> _Intervals:
    highest = highest_reward(held, settings.reward)
    most = max(part.max_gain or 0.0, highest)  # contexts without a list of the policy earn their logged reward
    logged = float(np.sum(held.n * earned) / held.n.sum())
    confidence = settings.confidence
    return _Intervals(
        logged,
        bernstein(earned, held.n, highest, confidence),
        bernstein(part.gain, held.n, most, confidence),
        bernstein_lift(part.gain, earned, held.n, most, confidence, highest) if logged else None,
    )


def bernstein(column: FloatArray, n: IntArray, width: float, confidence: float) -> Interval:
    """A two-sided interval for the mean of a column whose entries occurred n times."""
    mean, reach = _reach(column, n, width, (1 - confidence) / 2)
    return Interval(mean - reach, mean + reach)


def bernstein_lift(
    gain: FloatArray, logged: FloatArray, n: IntArray, most: float, confidence: float, highest: float
) -> Interval:
    """An interval for the ratio of two means, less 1: every l at which gain − (1 + l)·logged does not differ from 0.

    The columns are paired, so what they share cancels; entries of `gain` lie between 0 and `most`, of `logged` between
    0 and `highest`.
    """

    def difference(lift: float) -> Interval:
        return bernstein(gain - (1 + lift) * logged, n, most + (1 + lift) * highest, confidence)

    # Both ends fall as the lift grows; a lift is at least −1, and at 1e12 no list matters.
    top = 1.0
    while difference(top).high > 0 and top < 1e12:
        top *= 2
    return Interval(_zero(lambda lift: difference(lift).low, top), _zero(lambda lift: difference(lift).high, top))


def _reach(column: FloatArray, n: IntArray, width: float, delta: float) -> tuple[float, float]:
    lists = float(n.sum())
    mean = float(np.sum(n * column) / lists)
    if lists < 2:
        return mean, inf
    variance = float(np.sum(n * (column - mean) ** 2) / (lists - 1))
    log = np.log(2 / delta)
    return mean, float(np.sqrt(2 * variance * log / lists) + 7 * width * log / (3 * (lists - 1)))


def _zero(falling: Callable[[float], float], top: float) -> float:
    """Where a falling function of the lift crosses 0; −1 where it starts below."""
    low, high = -1.0, top
    if falling(low) <= 0:
        return low
    if falling(high) > 0:
        return inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return low
