"""A bound that holds for every attraction, whatever the prior."""

from dataclasses import dataclass

import numpy as np

from prudent.base.text import percent
from prudent.bounds.base import Bound, Scores, bounds, check_delta
from prudent.bounds.mle import click_rate
from prudent.click_models.base import Evidence


@bounds.register("hoeffding")
@dataclass(frozen=True)
class Hoeffding(Bound):
    """Hoeffding's inequality, Eq. (7): ``L(a) = n₊/n − √(log(1/δ) / 2n)``.

    For one item and n examinations, both fixed in advance, ``P(θ < L(a)) ≤ δ`` at *every* θ. It does
    not hold for all items at once (`prudent.policies.theory` has the widths that do), and n of a click model that only
    estimates examinations is not a number of independent trials.
    At ``delta=1`` the width is 0 and this is ``mle``.
    """

    delta: float = 0.2

    def __post_init__(self) -> None:
        check_delta(self.delta)

    @property
    def promise(self) -> str:
        """It holds for each item, not for all at once."""
        return (
            f"The lower bound of {self} is below the attraction of an item chosen in advance with probability "
            f"{percent(1 - self.delta, 0)} or more, if its examinations are counted right. It does not hold "
            "for all items at once."
        )

    def score(self, evidence: Evidence) -> Scores:
        """Click rate minus the width; −∞ without evidence."""
        mean = click_rate(evidence)
        if self.delta == 1:
            return Scores(mean, mean, upper=lambda rows: mean[rows])
        examined = evidence.examined
        width = np.full_like(examined, np.inf)
        with np.errstate(over="ignore"):  # 1e-310 of an examination is none: −∞
            np.divide(-np.log(self.delta), 2 * examined, out=width, where=examined > 0)
        # Not clipped at 0: that would tie all rarely seen items and leave their order to chance.
        lower = mean - np.sqrt(width)
        return Scores(lower, mean, upper=lambda rows: 2 * mean[rows] - lower[rows])
