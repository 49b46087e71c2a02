"""The click-model contract of `prudent.click_models.base`: every registered model joins by existing."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from prudent.base.arrays import FloatArray, IntArray
from prudent.bounds import Bayes
from prudent.click_models.base import FittedModel, click_models
from prudent.click_models.rewards import REWARDS
from prudent.click_models.selection import names
from prudent.click_models.world import World, clicked, draw, make_world
from tests.plugins.toy_model import Distracted

LENGTH = 4
PATTERNS = np.array(list(product([False, True], repeat=LENGTH)))


def typical(name: str) -> FittedModel:
    model = Distracted() if name == "distracted" else click_models[name]()
    return model.typical(LENGTH)


every_model = pytest.mark.parametrize("name", [*names(), "distracted"])


def attractions(lists: int, seed: int = 0, length: int = LENGTH) -> FloatArray:
    return np.random.default_rng(seed).beta(1.2, 3.0, (lists, length)).clip(0.01, 0.99)


def likelihood(users: FittedModel, theta: FloatArray) -> FloatArray:
    """P(clicks) of every pattern, for one list: the product of P(click at k | clicks above)."""
    given = users.predict(np.tile(theta, (len(PATTERNS), 1)), PATTERNS)
    return np.asarray(np.where(PATTERNS, given, 1 - given).prod(axis=1))


@every_model
def test_probabilities_of_all_click_patterns_sum_to_one(name: str) -> None:
    for theta in attractions(20):
        probability = likelihood(typical(name), theta)
        assert (probability >= 0).all()
        assert probability.sum() == pytest.approx(1, abs=1e-12)


@every_model
def test_predictions_are_the_margins_of_the_likelihood(name: str) -> None:
    users = typical(name)
    for theta in attractions(20):
        expected = (likelihood(users, theta)[:, None] * PATTERNS).sum(axis=0)
        np.testing.assert_allclose(users.predict(theta[None])[0], expected, atol=1e-12)


@every_model
def test_a_prediction_does_not_depend_on_clicks_below(name: str) -> None:
    users, theta = typical(name), attractions(1)[0]
    given = users.predict(np.tile(theta, (len(PATTERNS), 1)), PATTERNS)
    for k in range(LENGTH):
        for above in product([False, True], repeat=k):
            same = (PATTERNS[:, :k] == above).all(axis=1)
            assert np.ptp(given[same, k]) == 0


@every_model
def test_examination_is_a_probability_and_certain_at_a_click(name: str) -> None:
    users, theta = typical(name), attractions(1)[0]
    examined = users.examined(np.tile(theta, (len(PATTERNS), 1)), PATTERNS)
    assert ((examined >= 0) & (examined <= 1 + 1e-12)).all()


@every_model
def test_sampled_clicks_follow_the_likelihood(name: str) -> None:
    """A million draws: the frequency of every pattern within five standard errors, of 16 patterns of 3 lists."""
    users = typical(name)
    for seed, theta in enumerate(attractions(3, seed=5)):
        draws = 330_000
        clicks = users.sample(np.tile(theta, (draws, 1)), np.random.default_rng(seed))
        number = clicks @ (1 << np.arange(LENGTH)[::-1])
        frequency = np.bincount(number, minlength=len(PATTERNS)) / draws
        expected = likelihood(users, theta)
        assert (np.abs(frequency - expected) <= 5 * np.sqrt(expected / draws) + 1e-9).all()


@every_model
def test_value_is_the_expected_reward_of_the_likelihood(name: str) -> None:
    users = typical(name)
    rewards = {"clicks": PATTERNS.sum(axis=1), "any-click": PATTERNS.any(axis=1)}
    for theta in attractions(10):
        probability = likelihood(users, theta)
        for reward in REWARDS:
            if reward in rewards:
                expected = float((probability * rewards[reward]).sum())
                assert users.value(theta[None], reward)[0] == pytest.approx(expected, abs=1e-12)
                assert users.rewards(theta[None], reward).sum() == pytest.approx(expected, abs=1e-12)


@every_model
def test_value_never_falls_when_an_item_gets_better(name: str) -> None:
    users = typical(name)
    theta, better = attractions(500, seed=1), attractions(500, seed=2)
    assert (users.value(np.maximum(theta, better)) >= users.value(theta) - 1e-12).all()


@every_model
def test_positions_beyond_the_log_are_worth_nothing(name: str) -> None:
    users, theta = typical(name), attractions(50, length=LENGTH + 3)
    np.testing.assert_allclose(users.value(theta), users.value(theta[:, :LENGTH]), atol=1e-12)


@every_model
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_placement_equals_brute_force(name: str, size: int) -> None:
    """2,000 lists of up to 4 items: no order of the same items has a higher value."""
    users = typical(name)
    scores = -np.sort(-attractions(2_000, seed=size, length=size), axis=1)
    place = users.place(scores)
    assert (np.sort(place, axis=1) == np.arange(size)).all()
    placed = np.zeros_like(scores)
    np.put_along_axis(placed, place, scores, axis=1)
    best = np.max([users.value(scores[:, order]) for order in permutations(range(size))], axis=0)
    np.testing.assert_allclose(users.value(placed), best, atol=1e-10)


def world_and_lists(name: str) -> tuple[World, IntArray]:
    world = make_world("pbm", contexts=8, items=(8, 12), length=LENGTH, attraction=(2, 6), seed=3)
    world = replace(world, users=typical(name))
    drawn = list(draw(world, 30_000, seed=4))
    return world, np.concatenate([chunk.items for chunk in drawn])


@every_model
def test_trials_are_those_of_the_evidence(name: str) -> None:
    """To the bit, with parameters that are set and with fitted ones."""
    world, items = world_and_lists(name)
    lists, users = clicked(world, items[:5_000], np.random.default_rng(6)), world.users
    for fitted in (users, users.model.fit(lists.cells, LENGTH, lists)):
        trials, evidence = fitted.trials(lists.cells), fitted.evidence(lists.cells)
        np.testing.assert_array_equal(trials.clicks, evidence.positive)
        np.testing.assert_array_equal(trials.expected, evidence.expected)
        np.testing.assert_array_equal(trials.squares, evidence.squares)


@every_model
def test_evidence_recovers_attraction_with_coverage(name: str) -> None:
    """The 5 % posterior quantile is above the truth for at most 12 % of the pairs; RMSE of the mean below .03.

    30,000 lists, about 80 pairs: at 5 % the share has a standard error of 2.4 %, and 12 % is three of them. Only pairs
    with 300 impressions: the prior Beta(1, 1) is not the one that drew θ.
    """
    world, items = world_and_lists(name)
    lists = clicked(world, items, np.random.default_rng(6))
    fitted = world.users.model.fit(lists.cells, LENGTH, lists)
    evidence = fitted.evidence(lists.cells)
    often = evidence.impressions >= 300
    scores = Bayes(delta=0.1).score(evidence)
    assert np.mean(scores.lower[often] > world.attraction[often]) <= 0.12
    assert np.sqrt(np.mean((scores.mean - world.attraction)[often] ** 2)) < 0.03


@every_model
def test_fitted_parameters_fit_json(name: str) -> None:
    world, items = world_and_lists(name)
    lists = clicked(world, items[:5_000], np.random.default_rng(6))
    for values in world.users.model.fit(lists.cells, LENGTH, lists).parameters.values():
        assert np.isfinite(values).all()
