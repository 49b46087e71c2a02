"""How much satisfaction differs among items, from clicks that were followed by another and last clicks."""

import numpy as np
import pytest

from prudent.base.arrays import FloatArray
from prudent.click_models.satisfaction import LastClicks, fit_satisfaction

CHANCE = 0.6  # of another click below one that does not satisfy


def fitted(satisfaction: FloatArray, clicks: int, random: np.random.Generator) -> tuple[float, float]:
    followed = random.binomial(clicks, (1 - satisfaction) * CHANCE).astype(float)
    pair = np.arange(len(satisfaction))
    return fit_satisfaction(followed, LastClicks(pair, clicks - followed, np.full(len(pair), CHANCE))).of_items


def test_items_that_are_alike_have_one_satisfaction() -> None:
    """W exceeds 4 by chance in about 2 % of logs; 5 of 50 would be five times as many."""
    random = np.random.default_rng(1)
    found = [fitted(np.full(150, 0.4), 40, random) for _ in range(50)]
    assert sum(correlation > 0 for _, correlation in found) <= 5
    assert np.mean([mean for mean, _ in found]) == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 2.0), (6.0, 3.0)])
def test_how_much_items_differ_is_recovered(alpha: float, beta: float) -> None:
    """The correlation of 600 items has a standard error of about a tenth of itself."""
    random = np.random.default_rng(2)
    mean, correlation = fitted(random.beta(alpha, beta, 600), 60, random)
    assert mean == pytest.approx(alpha / (alpha + beta), abs=0.03)
    assert correlation == pytest.approx(1 / (1 + alpha + beta), rel=0.3)
