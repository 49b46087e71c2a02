"""What exploration costs and what trying items gains, against plain loops, integrals and draws."""

import numpy as np
import pytest
from scipy.stats import beta, norm

import prudent
from prudent.policies.exploration.items import MOST_ITEMS, PROBABILITIES, _hull, _points, steps_of, variants_of
from prudent.policies.exploration.price import _SHARED, Variants, expected_excess, price
from prudent.policies.exploration.situation import Situation, posterior_strength, read_situation, spare
from tests.policies.exploration.worlds import production, small_world


@pytest.fixture(scope="module", params=["pbm", "dcm(continuation=[0.6, 0.7, 0.8])"])
def situation(request: pytest.FixtureRequest) -> Situation:
    log = production(small_world(3, request.param), 3000, 3)
    policy = prudent.rank(log, request.param.partition("(")[0])
    assert policy.counts is not None
    return read_situation(policy, policy.counts)


def test_posteriors_from_mean_and_quantile() -> None:
    random = np.random.default_rng(0)
    a, b = random.uniform(0.3, 50, 200), random.uniform(50, 200, 200)
    found = posterior_strength(a / (a + b), beta(a, b).ppf(0.25), 0.25)
    assert found == pytest.approx(a + b, rel=1e-3)


def test_expected_excess_by_integration() -> None:
    for mean, deviation in ((0.1, 0.2), (-0.3, 0.2), (0.0, 1.0)):
        x = np.linspace(mean - 12 * deviation, mean + 12 * deviation, 200_001)
        expected = np.trapezoid(np.maximum(x, 0) * norm(mean, deviation).pdf(x), x)
        assert expected_excess(np.array([mean]), np.array([deviation]))[0] == pytest.approx(expected, abs=1e-9)
    assert expected_excess(np.array([0.4, -0.4]), np.zeros(2)).tolist() == [0.4, 0.0]


def test_price_by_plain_loops(situation: Situation) -> None:
    """The derivative of R by each item's attraction is a quotient of differences."""
    steps = steps_of(situation, situation.lists)
    variants = variants_of(situation, steps, len(steps.pair))
    found = price(situation, variants, 0.9)
    weight = situation.lists / situation.lists.sum()

    def ratio(theta: np.ndarray) -> float:
        def worth(items: np.ndarray) -> float:
            return float(situation.fitted.value(np.append(theta, 0.0)[items][None])[0])

        lost = sum(
            weight[c] * q * (worth(situation.table[c]) - worth(items))
            for c, items, q in zip(variants.context, variants.lists, variants.probability, strict=True)
        )
        return float(lost / sum(weight[c] * worth(items) for c, items in enumerate(situation.table)))

    assert found.expected == pytest.approx(ratio(situation.mean))
    own, together = 0.0, 0.0
    for pair in range(len(situation.mean)):
        step = np.zeros(len(situation.mean))
        step[pair] = 1e-6
        slope = (ratio(situation.mean + step) - ratio(situation.mean - step)) / 2e-6
        own += (slope * situation.deviation[pair]) ** 2
        together += abs(slope) * situation.deviation[pair]
    deviation = np.sqrt(own + (_SHARED * together) ** 2)
    assert found.at_most == pytest.approx(found.expected + norm.ppf(0.9) * deviation, rel=1e-4)


def test_uncertain_examination_widens_the_limit() -> None:
    policy = prudent.rank(production(small_world(3), 3000, 3), "pbm")
    assert policy.counts is not None
    situation = read_situation(policy, policy.counts)
    steps = steps_of(situation, situation.lists)
    variants = variants_of(situation, steps, len(steps.pair))
    covariance = np.diag([0.0, 0.04, 0.04])
    wide, narrow = price(situation, variants, 0.95, covariance), price(situation, variants, 0.95)
    assert wide.expected == narrow.expected
    assert wide.at_most > narrow.at_most
    assert price(situation, Variants.none(3), 0.95) == (0.0, 0.0)


def test_gain_by_draws_of_what_is_learned() -> None:
    """The value of the best list of new estimates, over 200,000 outcomes of n examinations of a Beta posterior.

    The gain takes the new estimate as normal, which it is not: its tail is up to 25 % off.
    """
    policy = prudent.rank(production(small_world(5), 6000, 5), "pbm(examination=[1, 0.7, 0.5])")
    assert policy.counts is not None
    situation = read_situation(policy, policy.counts)
    pair = np.flatnonzero(spare(situation))
    coming = np.full(situation.contexts, 2000.0)
    gains, costs = _points(situation, pair, coming)
    random = np.random.default_rng(0)
    checked = 0
    for row, one in enumerate(pair):
        context = situation.context[one]
        listed = situation.mean[situation.table[context]]
        point = len(PROBABILITIES) - 1  # the first position, most often
        examined = round(PROBABILITIES[-1] * 2000)
        a, b = situation.mean[one] * situation.strength[one], (1 - situation.mean[one]) * situation.strength[one]
        clicks = random.binomial(examined, random.beta(a, b, 200_000))
        estimate = (a + clicks) / (a + b + examined)
        every = -np.sort(-np.column_stack([np.tile(listed, (200_000, 1)), estimate]), axis=1)[:, :3]
        weights = np.array([1, 0.7, 0.5])
        now = -np.sort(-np.append(listed, situation.mean[one]))[:3] @ weights
        gain = float((every @ weights).mean() - now)
        if gain > 0.002:
            checked += 1
            assert gains[row, point] == pytest.approx(gain, rel=0.25)
        assert np.all(np.diff(costs[row, : len(PROBABILITIES)]) > 0)
    assert checked >= 3


@pytest.mark.parametrize("seed", range(5))
def test_hull_by_brute_force(seed: int) -> None:
    """Whatever is spent, the steps taken until then gain as much as any single point that costs no more."""
    random = np.random.default_rng(seed)
    gain, cost = random.random((6, 9)), random.uniform(0.1, 1, (6, 9))
    row, point, ratio, price_of = _hull(gain, cost)
    for one in range(6):
        mine = row == one
        assert np.all(np.diff(ratio[mine]) <= 1e-12)
        assert np.cumsum(price_of[mine]) == pytest.approx(cost[one, point[mine]])
        reached = np.concatenate([[0], gain[one, point[mine]]])
        spent = np.concatenate([[0], cost[one, point[mine]]])
        assert np.interp(cost[one], spent, reached) == pytest.approx(
            np.maximum(np.interp(cost[one], spent, reached), gain[one])
        )


def test_items_take_few_variants(situation: Situation) -> None:
    steps = steps_of(situation, situation.lists)
    assert np.all(np.diff(steps.ratio) <= 1e-12)
    for taken in (0, 3, len(steps.pair)):
        variants = variants_of(situation, steps, taken)
        assert np.bincount(variants.context, minlength=1).max() <= MOST_ITEMS
        assert set(variants.probability) <= set(PROBABILITIES)
        for context, items in zip(variants.context, variants.lists, strict=True):
            assert (items != situation.table[context]).sum() == 1
            (new,) = set(items) - set(situation.table[context])
            assert spare(situation)[new]
            assert situation.context[new] == context
