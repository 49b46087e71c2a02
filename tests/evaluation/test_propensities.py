"""Propensities of other lists than those logged are found, and those of the logged lists are left alone."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from prudent.evaluation.estimators import parse
from prudent.evaluation.gate import decide, gate_settings
from prudent.evaluation.propensities import MOST_ERRORS, check_propensities, logged_weights
from tests.evaluation.reference import Logged
from tests.evaluation.small import arrays, cases

CONTEXTS = ("q1", "q2", "q3")


def logged(seed: int, lists: int = 200, length: int = 3) -> list[Logged]:
    """Lists drawn item by item, without replacement, in proportion to weights; clicks do not matter here."""
    rng, drawn = np.random.default_rng(seed), []
    for context in CONTEXTS:
        weights = dict(zip("abcde", rng.dirichlet(np.full(5, 0.5)) + 0.01, strict=True))
        for _ in range(lists):
            left, items, steps = dict(weights), [], []
            for _ in range(length):
                total = sum(left.values())
                items.append(str(rng.choice(list(left), p=np.array(list(left.values())) / total)))
                steps.append(left.pop(items[-1]) / total)
            drawn.append(Logged(context, tuple(items), (int(rng.random() < 0.3), 0, 0), tuple(steps)))
    return drawn


def changed(lists: list[Logged], how: Any) -> list[Logged]:
    return [one._replace(steps=tuple(how(one.steps))) for one in lists]


POLICY = dict.fromkeys(CONTEXTS, ("a", "b", "c"))
WRONG = {
    "scaled": lambda steps: [step / 100 for step in steps],
    "scaled a little": lambda steps: [steps[0] / 1.3, *steps[1:]],
    "of the list, at every position": lambda steps: [math.prod(steps)] * len(steps),
    "constant": lambda steps: [0.5] * len(steps),
    "1": lambda steps: [1.0] * len(steps),
    "too large": lambda steps: [min(1.0, 3 * step) for step in steps],
}


@pytest.mark.parametrize("how", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("whole", [False, True])
def test_wrong_propensities_are_found(how: Any, whole: bool) -> None:
    lists = logged(0)
    assert not check_propensities(arrays(lists, POLICY, known=True, whole=whole))
    found = check_propensities(arrays(changed(lists, how), POLICY, known=True, whole=whole))
    assert "these are not propensities of the logged lists" in found


def test_permuted_propensities_are_found() -> None:
    lists = logged(1)
    other = np.random.default_rng(0).permutation(len(lists))
    mixed = [one._replace(steps=lists[i].steps) for one, i in zip(lists, other, strict=True)]
    assert check_propensities(arrays(mixed, POLICY, known=True))


def test_right_propensities_are_rarely_suspected() -> None:
    """4 standard errors of a dozen means: less than one log in a thousand; the largest of 60 logs is near 3."""
    most = 0.0
    for seed in range(60):
        held = arrays(logged(seed, lists=(3, 10, 40)[seed % 3]), POLICY, known=True, whole=seed % 2 == 1)
        most = max(most, *(abs(one.errors) for one in logged_weights(held, np.asarray(held.propensity))))
    assert most < MOST_ERRORS


@pytest.mark.parametrize("spelling", ["ips", "ips(clip=50)", "snips", "dr(model=cm)"])
def test_scaled_propensities_do_not_pass_the_gate(spelling: str) -> None:
    """The policy's list earns a third less than the logged ones; weighted a hundredfold, it seemed to earn more."""
    rng = np.random.default_rng(3)
    lists = []
    for i in range(1_200):
        good = bool(i % 3)
        items, rate = (("a", "b"), 0.6) if good else (("b", "a"), 0.35)
        lists.append(Logged("q", items, (int(rng.random() < rate), 0), ((2 / 3 if good else 1 / 3) / 100, 1.0)))
    held, asked = arrays(lists, {"q": ("b", "a")}, known=True), gate_settings(0.0, 0.95, "clicks")
    verdict = decide(held, parse(spelling), asked, 0.0)
    assert verdict.verdict == "unknown"
    assert verdict.why.startswith("cannot tell: these are not propensities of the logged lists: the mean importance")
    right = [one._replace(steps=(100 * one.steps[0], 1.0)) for one in lists]
    assert decide(arrays(right, {"q": ("b", "a")}, known=True), parse(spelling), asked, 0.0).verdict == "fail"


@given(cases())
def test_mean_weights_equal_plain_loops(case: Any) -> None:
    """Of lists that are long enough, by pairs, each of which counts once for either list."""
    lists, policy = case
    lists = [one for one in lists if len(one.items) == len(lists[0].items)]
    plain = [
        mean
        for k in range(len(lists[0].items))
        for power in (0.0, 0.5, 1.0)
        if (mean := plain_mean(lists, k, power)) is not None
    ]
    held = arrays(lists, policy, known=True)
    actual = [(one.mean, one.standard_error) for one in logged_weights(held, np.asarray(held.propensity))]
    assert actual == [pytest.approx(one, rel=1e-6, abs=1e-9) for one in plain]


def plain_mean(lists: list[Logged], k: int, power: float) -> tuple[float, float] | None:
    by_context: dict[Any, list[tuple[Any, float]]] = {}
    for one in lists:
        by_context.setdefault(one.context, []).append((one.items[: k + 1], math.prod(one.steps[: k + 1])))
    total, squares, expected, factors = 0.0, 0.0, 0.0, 0.0
    for entries in by_context.values():
        others = len(entries) - 1
        if not others:
            continue
        mean = sum(p**power for _, p in entries) / len(entries)

        def pair(i: int, j: int, entries: Any = entries, others: int = others) -> float:
            return float(entries[i][1] ** power * ((entries[i][0] == entries[j][0]) / entries[j][1] - 1) / others)

        for i, (_, p) in enumerate(entries):
            rest = [j for j in range(len(entries)) if j != i]
            total += sum(pair(i, j) for j in rest)
            squares += sum(pair(i, j) + pair(j, i) for j in rest) ** 2
            expected += 2 * p ** (2 * power) * (1 / p - 1) / others + (p**power - mean) ** 2
            factors += p**power
    return (1 + total / factors, math.sqrt(max(squares, expected)) / factors) if factors else None
