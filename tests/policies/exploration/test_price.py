"""What exploration costs and what trying items gains, against plain loops, integrals and draws."""

import numpy as np
import pytest
from scipy.stats import beta, norm

import prudent
from prudent.policies.exploration.items import (
    MOST_EXPLORED,
    MOST_ITEMS,
    PROBABILITIES,
    Steps,
    beta_excess,
    gains_and_price,
    steps_of,
    variants_of,
)
from prudent.policies.exploration.price import _SHARED, Variants, expected_excess, price
from prudent.policies.exploration.situation import Situation, posterior_strength, read_situation, spare
from tests.policies.exploration.worlds import production, small_world


@pytest.fixture(scope="module", params=["pbm", "dcm(continuation=[0.6, 0.7, 0.8])"])
def situation(request: pytest.FixtureRequest) -> Situation:
    log = production(small_world(3, request.param), 3000, 3)
    policy = prudent.rank(log, request.param.partition("(")[0])
    assert policy.counts is not None
    return read_situation(policy, policy.counts)


def every_step(situation: Situation, swapped: float = 0.0) -> Steps:
    return steps_of(situation, situation.lists, np.full(situation.contexts, swapped))


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
    steps = every_step(situation)
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
    steps = every_step(situation)
    variants = variants_of(situation, steps, len(steps.pair))
    covariance = np.diag([0.0, 0.04, 0.04])
    wide, narrow = price(situation, variants, 0.95, covariance), price(situation, variants, 0.95)
    assert wide.expected == narrow.expected
    assert wide.at_most > narrow.at_most
    assert price(situation, Variants.none(3), 0.95) == (0.0, 0.0)


def test_beta_excess_by_integration() -> None:
    x = (np.arange(400_000) + 0.5) / 400_000
    for mean, strength, least in ((0.1, 5.0, 0.3), (0.4, 20.0, 0.2), (0.02, 60.0, 0.0), (0.5, 4.0, 1.0)):
        density = beta(mean * strength, (1 - mean) * strength).pdf(x)
        expected = np.mean(np.maximum(x - least, 0) * density)
        found = beta_excess(np.array([mean]), np.array([strength]), np.array([least]))
        assert found == pytest.approx([expected], abs=1e-5)


def test_gain_by_draws_of_what_is_learned() -> None:
    """The value of the best list where an item is known, over 200,000 draws of its attraction, and its part."""
    policy = prudent.rank(production(small_world(5), 6000, 5), "pbm(examination=[1, 0.7, 0.5])")
    assert policy.counts is not None
    situation = read_situation(policy, policy.counts)
    pair = np.flatnonzero(spare(situation))
    gains, prices = gains_and_price(situation, pair, np.full(situation.contexts, 2000.0))
    random = np.random.default_rng(0)
    weights = np.array([1, 0.7, 0.5])
    checked = 0
    for row, one in enumerate(pair):
        listed = situation.mean[situation.table[situation.context[one]]]
        mean, strength = situation.mean[one], situation.strength[one]
        theta = random.beta(mean * strength, (1 - mean) * strength, 200_000)
        every = -np.sort(-np.column_stack([np.tile(listed, (200_000, 1)), theta]), axis=1)[:, :3]
        now = -np.sort(-np.append(listed, mean))[:3] @ weights
        gain = float((every @ weights).mean() - now)
        place = int(np.argmin(listed))
        examined = 2000 * weights[place] * np.array(PROBABILITIES)
        if gain > 0.002:
            checked += 1
            assert gains[row] == pytest.approx(gain * examined / (examined + strength), rel=0.03)
        assert prices[row] >= weights[place] * max(0.0, listed[place] - mean)
    assert checked >= 3


def test_strength_says_which_part_an_examination_resolves() -> None:
    """n / (n + s) is the share of a Beta posterior's variance that n examinations are expected to resolve."""
    mean, strength, examined = 0.2, 10.0, 15
    a, b = mean * strength, (1 - mean) * strength
    random = np.random.default_rng(1)
    clicks = random.binomial(examined, random.beta(a, b, 400_000))
    resolved = np.var((a + clicks) / (strength + examined)) / beta(a, b).var()
    assert resolved == pytest.approx(examined / (examined + strength), rel=0.01)


def test_items_replace_the_worst_one_and_leave_room_for_swaps(situation: Situation) -> None:
    steps = every_step(situation)
    variants = variants_of(situation, steps, len(steps.pair))
    assert max(variants.probability) == max(PROBABILITIES)
    listed = situation.mean[situation.table[variants.context]]
    changed = variants.lists != situation.table[variants.context]
    assert np.array_equal(np.argmax(changed, axis=1), np.argmin(listed, axis=1))
    beside = variants_of(situation, every_step(situation, 0.5), 10**6)
    assert beside.shares(situation.contexts).max() <= MOST_EXPLORED - 0.5 + 1e-9
    assert set(beside.context) == set(variants.context)
    assert not len(every_step(situation, MOST_EXPLORED).pair)


def test_items_take_few_variants(situation: Situation) -> None:
    steps = every_step(situation)
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
