"""Which users are bots: nobody honest, and everybody who clicks on everything or is faster than a person."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import betabinom

from prudent.base.arrays import FloatArray, IntArray
from prudent.logs.bots import EXPECTED, LEVEL, MOST, Clicking, clicking_bots, fit_people, log_tails

USERS = 5_000
LISTS_OF_TEN = 10


def users_of(shown: IntArray, clicked: IntArray) -> Clicking:
    pairs, number = np.unique(np.stack([shown, clicked], axis=1), axis=0, return_counts=True)
    return Clicking(pairs[:, 0], pairs[:, 1], number)


def people(world: str, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Impressions and clicks of users who differ, as a beta distribution says and as none does."""
    shown = LISTS_OF_TEN * (1 + rng.geometric(1 / 12, USERS))
    draw: dict[str, Callable[[], FloatArray]] = {
        "beta": lambda: rng.beta(1, 9, USERS),
        "alike": lambda: np.full(USERS, 0.1),
        "two kinds": lambda: np.where(rng.random(USERS) < 0.3, rng.beta(8, 12, USERS), rng.beta(2, 40, USERS)),
        "eager": lambda: rng.beta(2, 2, USERS),
        "heavy": lambda: np.minimum(0.02 / (1 - rng.random(USERS)) ** 0.8, 0.5),
    }
    return shown, rng.binomial(shown, draw[world]())


@pytest.mark.parametrize("world", ["beta", "alike", "two kinds", "eager", "heavy"])
def test_no_person_is_taken_for_a_bot(world: str) -> None:
    """20 logs of 5,000 people each; at most `EXPECTED` per log are expected where people are as the model says."""
    rng = np.random.default_rng(7)
    found = [clicking_bots(users_of(*people(world, rng))) for _ in range(20)]
    assert found == [[]] * 20


@pytest.mark.parametrize("share", [0.001, 0.01, 0.04])
@pytest.mark.parametrize(("least", "power"), [(1.0, 1.0), (0.9, 0.9)])
def test_bots_are_found(share: float, least: float, power: float) -> None:
    """Bots with four lists of ten or more that click on everything, or on a share between .9 and all, among people."""
    rng = np.random.default_rng(11)
    hits = []
    for _ in range(5):
        shown, clicked = people("beta", rng)
        bots = rng.random(USERS) < share
        shown = np.where(bots, np.maximum(shown, 4 * LISTS_OF_TEN), shown)
        clicked = np.where(bots, rng.binomial(shown, rng.uniform(least, 1, USERS)), clicked)
        caught = set(clicking_bots(users_of(shown, clicked)))
        called = np.array([pair in caught for pair in zip(shown.tolist(), clicked.tolist(), strict=True)])
        assert not np.any(called & ~bots)
        hits += called[bots].tolist()
    assert np.mean(hits) >= power


def test_bots_do_not_widen_what_people_are_taken_for() -> None:
    rng = np.random.default_rng(3)
    shown, clicked = people("beta", rng)
    alone = fit_people(users_of(shown, clicked))
    bots = rng.random(USERS) < 0.04
    among = fit_people(users_of(shown, np.where(bots, shown, clicked)))
    assert among == pytest.approx(alone, rel=0.05)
    assert alone == pytest.approx((1, 9), rel=0.1)  # by which people were drawn: four standard errors


def test_where_many_users_click_on_most_nobody_is_a_bot() -> None:
    rng = np.random.default_rng(5)
    shown, clicked = people("beta", rng)
    many = rng.random(USERS) < 2 * MOST
    assert clicking_bots(users_of(shown, np.where(many, shown, clicked))) == []


def test_tails_are_those_of_scipy() -> None:
    shown, clicked = np.array([10, 40, 300]), np.array([7, 40, 200])
    for alpha, beta in ((1.0, 9.0), (0.2, 0.7), (30.0, 300.0)):
        for tail, m, k in zip(log_tails(shown, clicked, alpha, beta), shown, clicked, strict=True):
            assert np.exp(tail) == pytest.approx(betabinom.pmf(np.arange(k, m + 1), m, alpha, beta).sum(), rel=1e-9)


def test_limits_are_as_stated() -> None:
    """Six users with every click on 20 items: below both limits in a small log, above that of all in a huge one."""
    few = Clicking(np.array([20, 20]), np.array([2, 20]), np.array([994, 6]))
    many = few._replace(users=np.array([10**9, 6]))
    assert clicking_bots(few) == [(20, 20)]
    alpha, beta = fit_people(many)
    (tail,) = log_tails(np.array([20]), np.array([20]), alpha, beta)
    assert (tail < np.log(min(LEVEL, EXPECTED / (10**9 + 6)))) == (clicking_bots(many) == [(20, 20)])


def test_nothing_is_found_in_nothing() -> None:
    nobody = np.zeros(0, np.int64)
    assert clicking_bots(Clicking(nobody, nobody, nobody)) == []
    assert clicking_bots(Clicking(np.array([0, 30]), np.array([0, 0]), np.array([9, 9]))) == []
