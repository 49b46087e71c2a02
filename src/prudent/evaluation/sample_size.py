"""`prudent.plan`: how many lists and days a test of a policy takes, from the variance that a log shows."""

from dataclasses import asdict, dataclass
from math import ceil, inf
from typing import Any

import numpy as np
from scipy.special import ndtri

from prudent.base.errors import LogError, UsageError
from prudent.base.results import Result
from prudent.base.spec import check_number
from prudent.base.text import Column, Columns, Rows, number, percent
from prudent.click_models.rewards import ObservedReward
from prudent.counts.max_rejected import MAX_REJECTED
from prudent.engines.duckdb.engine import DuckDB
from prudent.evaluation.anytime_test import lists_to_find
from prudent.evaluation.estimators import Estimator, estimators
from prudent.evaluation.evaluate import DECIDES
from prudent.evaluation.holdout import Holdout
from prudent.evaluation.holdout_log import HoldoutLog, PolicyLike, open_holdout
from prudent.evaluation.interleaving import preference
from prudent.evaluation.intervals import Settings, estimate
from prudent.evaluation.promise import promise_of

_MOST = float(1 << 53)
"""No test takes as many lists."""
AB, INTERLEAVING, NIGHTLY = "A/B test", "interleaving", "verify"
"""The tests of a plan."""


@dataclass(frozen=True)
class Test:
    """One way to test a policy: how many lists it takes and, where the days of the log are known, how many days."""

    test: str
    lists: int | None  # of all traffic; None where no number of lists is enough
    days: int | None
    why: str = ""  # what the number rests on, or why there is none


@dataclass(frozen=True, repr=False)
class TestPlan(Result):
    """How large tests of a policy have to be: an A/B test, team-draft interleaving, and `prudent.verify`."""

    lift: float  # to be found by the A/B test and by interleaving
    drop: float  # to be found by `verify`
    confidence: float
    power: float
    changed: float  # share of the traffic in contexts whose list changes
    deviation: float  # standard deviation of the reward of a list, where lists change
    lists_per_day: float | None
    tests: tuple[Test, ...]

    def __getitem__(self, test: str) -> Test:
        return next(one for one in self.tests if one.test == test)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The fields of `Test`."""
        return Column("test", str), Column("lists", int), Column("days", int), Column("why", str)

    def rows(self) -> Rows:
        """One row per test."""
        return [(one.test, one.lists, one.days, one.why) for one in self.tests]

    @property
    def title(self) -> str:
        """What the tests are to find."""
        return (
            f"To find a lift of {percent(self.lift, signed=True)}, or after the launch a drop of {percent(self.drop)}, "
            f"with confidence {percent(self.confidence, 0)} and power {percent(self.power, 0)}; the policy changes "
            f"{percent(self.changed)} of the traffic"
        )

    def table(self) -> tuple[Columns, Rows]:
        """The tests and what they take."""
        columns = [Column("test", str), Column("lists", int, show=_whole), Column("days", int, show=_whole)]
        return columns, [(one.test, one.lists, one.days) for one in self.tests]

    @property
    def notes(self) -> list[str]:
        """What the numbers rest on."""
        return [f"{one.test}: {one.why}" for one in self.tests if one.why]

    def to_json(self) -> dict[str, Any]:
        """The fields; fits JSON."""
        return asdict(self)


def _whole(value: Any) -> str:
    return number(value, 0)


def plan(
    policy: PolicyLike,
    log: Any,
    *,
    lift: float | None = None,
    drop: float = 0.05,
    share: float = 0.5,
    days: float | None = None,
    estimator: str | Estimator = DECIDES,
    reward: ObservedReward = "clicks",
    confidence: float = 0.95,
    power: float = 0.8,
    seed: int = 0,
    engine: DuckDB | None = None,
    max_rejected: float = MAX_REJECTED,
    **columns: Any,
) -> TestPlan:
    """Say how many lists and days it takes to test a policy: by an A/B test, by interleaving, and by `verify`.

    The A/B test compares the mean reward of two arms, where the policy changes lists, with the variance of the log.
    Team-draft interleaving shows both lists in one and counts to whose items the clicks go; how clearly that prefers
    the policy is simulated under the click model. `prudent.verify` finds a drop of what was promised night by night.

    policy, log
        Objects or paths; `columns` are arguments of `as_log`, such as the names of the log's columns. The log is a
        holdout, of production before the launch.
    lift
        The relative lift to find; by default the estimate of `prudent.evaluate`.
    drop
        The relative drop below the promise that `verify` is to find.
    share
        Share of the traffic in the arm of the policy.
    days
        How many days the log covers: without it, there are numbers of lists and none of days.

    >>> import prudent, pyarrow as pa
    >>> lists = [{"context": "shoes", "items": ["i1", "i2"], "clicks": [0, k % 2]} for k in range(90)]
    >>> log = pa.Table.from_pylist(lists)
    >>> prudent.plan(prudent.rank(log, "cm"), log, lift=0.05, reward="any-click")["A/B test"].lists
    12559
    """
    Settings(reward, confidence, seed=seed)
    limits: dict[str, Any] = {"above": 0, "below": 1}
    for name, value in (("drop", drop), ("share", share), ("power", power)):
        check_number(name, value, **limits)
    if days is not None:
        check_number("days", days, above=0, example="7")
    if lift is not None:
        check_number("lift", lift, above=0, example="0.01 for 1% more")
    before = open_holdout(policy, log, engine, max_rejected, **columns)
    chosen = lift if lift is not None else _lift(before.lists, estimators.resolve(estimator), reward)
    return _plan(before, chosen, drop, share, days, reward, confidence, power, seed)


def _lift(held: Holdout, estimator: Estimator, reward: ObservedReward) -> float:
    """The estimate of the lift, which has to be above 0."""
    (one,) = estimate(held, [estimator], Settings(reward, replicates=20))
    if one.lift is None or one.lift <= 0:
        found = one.why or "the lift is not defined" if one.lift is None else f"the lift is {percent(one.lift)}"
        raise UsageError(f"{estimator} estimates no lift to look for: {found}. Name one: lift=0.01 (--lift 1%).")
    return one.lift


def _plan(
    before: HoldoutLog,
    lift: float,
    drop: float,
    share: float,
    days: float | None,
    reward: ObservedReward,
    confidence: float,
    power: float,
    seed: int,
) -> TestPlan:
    held = before.lists
    earned, n = held.reward(reward), held.n
    changed = held.known & (held.per_context(n * ~held.stays) > 0)
    there = changed[held.context]
    traffic, total = float(n.sum()), float(n @ earned)
    if not there.any():
        raise LogError("The policy changes no list of this log: there is nothing to test.")
    if not total:
        raise LogError("No list of this log was clicked: its variance says nothing about a test.")
    part = float(n[there].sum()) / traffic
    deviation = _deviation(earned[there], n[there])
    per_day = None if days is None else traffic / days
    z = float(ndtri((1 + confidence) / 2) + ndtri(power))
    # All of the lift is where lists change: there it is larger, and the rest of the traffic adds noise alone.
    difference = lift * total / traffic / part
    apart = difference**2 * part  # 0 where the lift is smaller than numbers are
    needed = z**2 * deviation**2 * (1 / share + 1 / (1 - share)) / apart if apart else inf
    ab = _test(AB, needed, per_day, "counts lists of the contexts that change; two-sided")
    return TestPlan(
        *(lift, drop, confidence, power, part, deviation, per_day),
        tests=(
            ab,
            _interleaving(before, changed, part, z, per_day, seed),
            _verify(before, drop, reward, confidence, power, per_day),
        ),
    )


def _deviation(values: Any, n: Any) -> float:
    mean = float(np.average(values, weights=n))
    return float(np.sqrt(np.average((values - mean) ** 2, weights=n)))


def _test(name: str, lists: float, per_day: float | None, why: str) -> Test:
    days = inf if per_day is None else lists / per_day if per_day else inf
    whole, on_days = (ceil(number) if number < _MOST else None for number in (lists, days))
    return Test(name, whole, on_days, why)


def _interleaving(before: HoldoutLog, changed: Any, part: float, z: float, per_day: float | None, seed: int) -> Test:
    name = INTERLEAVING
    mean, deviation = preference(before.lists, changed, seed)
    if mean <= 0:
        return Test(name, None, None, "the click model does not prefer the lists of the policy to the incumbent ones")
    return _test(name, (z * deviation / mean) ** 2 / part, per_day, "team draft, simulated under the click model")


def _verify(
    before: HoldoutLog, drop: float, reward: ObservedReward, confidence: float, power: float, per_day: float | None
) -> Test:
    """As many lists as `verify` needs, if the policy's lists are shown in all of its contexts."""
    name, held = NIGHTLY, before.lists
    promise = promise_of(before, reward)
    share = held.logged * promise.known
    total = float(share @ promise.value)
    alpha = (1 - confidence) / 2
    uncertain = float(np.sqrt(share**2 @ promise.deviation**2)) / total if total else 1.0
    margin = float(ndtri(1 - alpha)) * uncertain
    value = total / share.sum()
    known = held.known[held.context]
    # Lists of the policy vary about as much as logged ones, around what their contexts earn.
    means = held.per_context(held.n * held.reward(reward)) / np.maximum(held.logged, 1)
    left = held.reward(reward)[known] - means[held.context[known]]
    deviation = float(np.sqrt(np.average(left**2, weights=held.n[known])))
    lists = lists_to_find((drop - margin) * value, deviation, alpha, power, uncertain * value)
    mine = float(share.sum() / held.n.sum())
    about = f"the promise is uncertain by {percent(margin)}, which lists may earn less without an alert"
    return _test(name, lists / mine, per_day, about)
