"""Estimates: the value of a policy, the reward that was logged, and the lift, each with its interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.evaluation.bernstein import bernstein, bernstein_lift
from prudent.evaluation.bootstrap import Interval, interval, replicate
from prudent.evaluation.estimators import Columns, Estimator
from prudent.evaluation.estimators.base import highest_reward
from prudent.evaluation.holdout import CannotTellError, HeldOut, Reward

IntervalName = Literal["bootstrap", "bernstein"]
INTERVALS: tuple[IntervalName, ...] = ("bootstrap", "bernstein")


@dataclass(frozen=True)
class Estimate:
    """What one estimator says; None where it cannot tell.

    ``value``, ``logged`` and ``lift`` are about the lists of the contexts where the estimator can tell; ``support`` is
    their share of all lists. ``lift`` is relative: .03 is 3 % more.
    """

    estimator: str
    reward: str
    lists: int  # held-out lists, all of them
    logged: float | None = None  # reward per list as it was logged
    logged_low: float | None = None
    logged_high: float | None = None
    value: float | None = None  # reward per list to expect of the policy
    low: float | None = None
    high: float | None = None
    lift: float | None = None  # value / logged − 1
    lift_low: float | None = None
    lift_high: float | None = None
    effective_lists: float | None = None  # so many lists of equal weight would say as much; None where none are weighed
    support: float = 0.0
    largest_weight: float | None = None
    why: str = ""  # why it cannot tell, or what to know about the numbers
    assumed: bool = False  # the numbers rest on a click model that these lists could not choose

    @property
    def tells(self) -> bool:
        """Whether there is a number."""
        return self.value is not None


@dataclass(frozen=True)
class Asked:
    """How estimates are to be made."""

    reward: Reward = "clicks"
    confidence: float = 0.95
    interval: IntervalName = "bootstrap"
    replicates: int = 200
    seed: int = 0


def judge(held: HeldOut, estimators: Sequence[Estimator], asked: Asked) -> tuple[Estimate, ...]:
    """What each estimator says about the same held-out lists; the replicates of all are the same."""
    found = [_columns(held, estimator, asked) for estimator in estimators]
    earned = held.reward(asked.reward)
    tables = [
        (columns.gain, columns.share, earned * columns.counted, columns.counted)
        for columns in found
        if isinstance(columns, Columns)
    ]
    bootstrap = tables and asked.interval == "bootstrap"
    totals = replicate([c for t in tables for c in t], held.n, asked.replicates, asked.seed) if bootstrap else None
    estimates, at = [], 0
    for estimator, columns in zip(estimators, found, strict=True):
        name, lists = str(estimator), int(held.n.sum())
        if isinstance(columns, str):
            estimates.append(Estimate(name, asked.reward, lists, why=columns))
            continue
        if totals is None:
            estimates.append(_bounded(name, held, columns, earned, asked))
        else:
            estimates.append(_replicated(name, held, columns, earned, totals[:, at : at + 4], asked))
        at += 4
    return tuple(estimates)


def _columns(held: HeldOut, estimator: Estimator, asked: Asked) -> Columns | str:
    try:
        columns = estimator.columns(held, asked.reward)
    except CannotTellError as error:
        return str(error)
    if asked.interval == "bernstein" and columns.most is None:
        return (
            "A guarantee by Bernstein's inequality needs propensities that were logged and weights that are clipped, "
            "as in ips(clip=50)."
        )
    return columns


def _replicated(
    name: str, held: HeldOut, columns: Columns, earned: FloatArray, totals: FloatArray, asked: Asked
) -> Estimate:
    """Intervals from the spread of replicates."""
    lists = float(held.n[columns.counted].sum())
    logged = float(np.sum(held.n * earned * columns.counted) / lists)
    gain, share, reward, counted = totals.T
    usable = (share > 0) & (counted > 0) & ((reward > 0) | (logged == 0))
    values, means = gain[usable] / share[usable], reward[usable] / counted[usable]
    if len(values) < 2:
        return _said(name, asked, held, columns, logged, Interval(0.0, np.inf), Interval(0.0, np.inf), None)
    # The spread is itself estimated, from so many replicates.
    effective = min(columns.effective_lists or lists, float(len(values)))
    of_value = interval(columns.value, values.var(ddof=1) + columns.extra, effective, asked.confidence)
    of_logged = interval(logged, means.var(ddof=1), min(lists, float(len(values))), asked.confidence)
    if logged == 0:
        return _said(name, asked, held, columns, logged, of_logged, of_value, None)
    lifts = values / means - 1
    spread = lifts.var(ddof=1) + columns.extra / logged**2
    of_lift = interval(columns.value / logged - 1, spread, effective, asked.confidence)
    return _said(name, asked, held, columns, logged, of_logged, of_value, of_lift)


def _bounded(name: str, held: HeldOut, columns: Columns, earned: FloatArray, asked: Asked) -> Estimate:
    """Intervals from the largest gain there can be."""
    most, highest = columns.most or 0.0, highest_reward(held, asked.reward)
    most = max(most, highest)  # of contexts that keep their lists
    logged = float(np.sum(held.n * earned) / held.n.sum())
    of_value = bernstein(columns.gain, held.n, most, asked.confidence)
    of_logged = bernstein(earned, held.n, highest, asked.confidence)
    of_lift = bernstein_lift(columns.gain, earned, held.n, most, asked.confidence, highest) if logged else None
    return _said(name, asked, held, columns, logged, of_logged, of_value, of_lift)


def _said(
    name: str,
    asked: Asked,
    held: HeldOut,
    columns: Columns,
    logged: float,
    of_logged: Interval,
    of_value: Interval,
    of_lift: Interval | None,
) -> Estimate:
    value = columns.value
    return Estimate(
        estimator=name,
        reward=asked.reward,
        lists=int(held.n.sum()),
        logged=_plain(logged),
        logged_low=_plain(max(0.0, of_logged.low)),
        logged_high=_plain(of_logged.high),
        value=_plain(value),
        low=_plain(max(min(0.0, value), of_value.low)),  # no list earns less than nothing
        high=_plain(of_value.high),
        lift=None if of_lift is None else _plain(value / logged - 1),
        lift_low=None if of_lift is None else _plain(max(min(-1.0, value / logged - 1), of_lift.low)),
        lift_high=None if of_lift is None else _plain(of_lift.high),
        effective_lists=_plain(columns.effective_lists),
        support=_plain(columns.support) or 0.0,
        largest_weight=_plain(columns.largest_weight),
        why=" ".join(filter(None, [columns.note, "" if logged else "No logged list was clicked: there is no lift."])),
        assumed=columns.assumed,
    )


def _plain(number: float | None) -> float | None:
    """Twelve digits, which are the same on every machine; None for what no JSON can say."""
    return float(f"{number:.12g}") if number is not None and isfinite(number) else None
