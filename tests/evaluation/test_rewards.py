"""Estimators on rewards of clicks: against the truth of simulated logs, and against the same log with clicks."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import prudent
from prudent.base.arrays import FloatArray
from prudent.base.errors import LogError, UsageError

EXAMINATION = np.array([1.0, 0.6, 0.4])
ESTIMATORS = ["ips", "snips", "prefix-ips", "ip-ips", "pi", "dm(model=pbm)", "dr(model=pbm)", "dr(model=pbm,clip=10)"]
CONTEXTS, ITEMS = 6, 4


def truth(seed: int) -> tuple[FloatArray, FloatArray]:
    """Attraction and the mean reward of a click of every item; rewards vary more between items than clicks do."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 0.5, (CONTEXTS, ITEMS)), rng.uniform(0.5, 12, (CONTEXTS, ITEMS))


def log(seed: int, lists: int) -> pa.Table:
    """Three of four items in random order, each of 24 lists as likely; a third of clicks earn something."""
    (attraction, mean), rng = truth(0), np.random.default_rng([seed, 1])
    context = rng.integers(CONTEXTS, size=lists)
    items = rng.permuted(np.tile(np.arange(ITEMS), (lists, 1)), axis=1)[:, :3]
    clicks = rng.random(items.shape) < attraction[context[:, None], items] * EXAMINATION
    earns = clicks & (rng.random(items.shape) < 1 / 3)
    earned = np.where(earns, 3 * mean[context[:, None], items] * rng.gamma(2, 0.5, items.shape), 0).round(3)
    columns = {"context": context, "items": items.tolist(), "clicks": clicks.astype(int).tolist()}
    return pa.table({**columns, "margin": earned.tolist(), "p": np.full(lists, 1 / 24)})


def policy() -> tuple[prudent.Policy, float]:
    """The three items of every context that earn most, best first, and what the list earns."""
    attraction, mean = truth(0)
    best = np.argsort(-attraction * mean, axis=1)[:, :3]
    value = np.sum(EXAMINATION * np.take_along_axis(attraction * mean, best, axis=1), axis=1)
    table = pa.table({"context": np.arange(CONTEXTS), "items": best.tolist()})
    return prudent.Policy.from_table(table, items="items"), float(value.mean())


@pytest.fixture(scope="module")
def estimates() -> tuple[dict[str, FloatArray], dict[str, FloatArray], float]:
    """Values and whether intervals hold the truth, on 60 logs of 3,000 lists; with propensities, those of ips."""
    chosen, value = policy()
    values: dict[str, list[float]] = {name: [] for name in [*ESTIMATORS, "ips, propensities"]}
    held: dict[str, list[bool]] = {name: [] for name in values}
    for seed in range(60):
        shown = log(seed, 3_000)
        found = [*prudent.evaluate(chosen, shown, reward="margin", estimator=ESTIMATORS)]
        found += [*prudent.evaluate(chosen, shown, reward="margin", estimator="ips", propensity="p")]
        for name, one in zip(values, found, strict=True):
            values[name].append(one.value or 0.0)
            held[name].append((one.low or 0) <= value <= (one.high or np.inf))
    return (
        {name: np.array(column) for name, column in values.items()},
        {name: np.array(column) for name, column in held.items()},
        value,
    )


@pytest.mark.parametrize("name", [*ESTIMATORS, "ips, propensities"])
def test_unbiased_and_covering(name: str, estimates: Any) -> None:
    """The mean over 60 logs is within three standard errors of the truth, and 2 % for what shrinks.

    Of 60 intervals with confidence 95 %, 51 or more hold the truth with a probability of .9999.
    """
    by_name, held_by_name, value = estimates
    values, held = by_name[name], held_by_name[name]
    shrinks = 0.02 * value if "model" in name else 0.0
    assert abs(values.mean() - value) < 3 * values.std(ddof=1) / np.sqrt(len(values)) + shrinks
    assert held.sum() >= 51


def test_a_reward_of_one_per_click_is_a_click() -> None:
    chosen, _ = policy()
    shown = log(1, 2_000)
    alike = shown.set_column(3, "margin", shown["clicks"])
    names = [*ESTIMATORS, "cips(model=pbm)"]
    by_reward = prudent.evaluate(chosen, alike, reward="margin", estimator=names)
    by_click = prudent.evaluate(chosen, alike, estimator=names)
    for one, other in zip(by_reward, by_click, strict=True):
        assert (one.value, one.logged) == pytest.approx((other.value, other.logged), rel=1e-6)
        assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-4)


def test_lists_are_told_apart_by_what_they_earned() -> None:
    """The logged reward is that of a loop, and the order of the log does not matter."""
    chosen, _ = policy()
    shown = log(2, 1_000)
    plain = sum(map(sum, shown["margin"].to_pylist())) / 1_000
    one, other = (
        prudent.evaluate(chosen, table, reward="margin", estimator=["ips", "dm"])
        for table in (shown, shown.take(np.random.default_rng(1).permutation(1_000)))
    )
    assert one["ips"].logged == pytest.approx(plain)
    assert one.to_json() == other.to_json()
    assert one.manifest.settings["reward"] == "margin"
    assert "margin per list" in one.title
    assert "reward than the logged lists" in one.verdict


def test_the_gate_passes_lists_that_earn_more_with_fewer_clicks() -> None:
    """By clicks the same policy would not pass."""
    chosen, _ = policy()
    shown = log(3, 6_000)
    by_reward = prudent.gate(chosen, shown, reward="margin", acknowledge="provenance", min_lift=0.2)
    assert by_reward.verdict == "pass", by_reward.sentence
    assert by_reward.estimate.sensitivity is None
    assert prudent.gate(chosen, shown, acknowledge="provenance", min_lift=0.2).verdict != "pass"


def test_what_cannot_be_told() -> None:
    chosen, _ = policy()
    shown = log(1, 500)
    with pytest.raises(UsageError, match="largest possible one"):
        prudent.evaluate(chosen, shown, reward="margin", estimator="ips(clip=50)", interval="bernstein", propensity="p")
    with pytest.raises(LogError, match="no column 'clikcs' for the reward"):
        prudent.evaluate(chosen, shown, reward="clikcs")
    nothing = shown.set_column(3, "margin", pa.array([[0.0] * 3] * 500))
    found = prudent.evaluate(chosen, nothing, reward="margin", estimator=["ips", "dm"])
    assert found["dm"].value is None
    assert "earned a reward" in found["ips"].why
    calls: list[Any] = [prudent.verify, prudent.gate_contexts, prudent.plan]
    for call in calls:
        with pytest.raises(UsageError, match="reward"):
            call(chosen, shown, reward="margin")
