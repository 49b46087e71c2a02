import numpy as np

from prudent.bounds import Mle
from tests.bounds.small import evidence


def test_is_the_click_rate_and_0_without_evidence() -> None:
    scores = Mle().score(evidence(positive=[1, 0, 0, 3], negative=[1, 2, 0, 0.6]))
    np.testing.assert_array_equal(scores.lower, [1 / 2, 0, 0, 3 / 3.6])
    np.testing.assert_array_equal(scores.mean, scores.lower)
