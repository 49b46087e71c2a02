"""A bound that holds for every attraction, whatever the prior."""

from dataclasses import dataclass

import numpy as np

from prudent.base.text import percent
from prudent.bounds.base import Bound, Scores, bounds, candidates_examined, check_delta
from prudent.bounds.mle import click_rate
from prudent.click_models.evidence import Evidence


@bounds.register("hoeffding")
@dataclass(frozen=True)
class Hoeffding(Bound):
    """Hoeffding's inequality, Eq. (7): ``L(a) = n₊/n − √(log(1/δ) / 2n)``.

    For one item and n examinations, both fixed in advance, ``P(θ < L(a)) ≤ δ`` at *every* θ. It does
    not hold for all items at once (`prudent.research.theory` has the widths that do).

    Where N impressions were examined with probabilities x, as under ``pbm`` and in the tails of ``dcm``, clicks are
    still 0 or 1 with a mean of xθ. Then n = Σx divides their range as well, and ``(Σx)²/N`` takes the place of n in the
    width. With Σx there, at δ = .05 it was above the truth for 9.6 % (θ = .9, x = .1).
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
        trials = evidence.trials
        width = np.full_like(trials, np.inf)
        with np.errstate(over="ignore"):  # 1e-310 of an examination is none: −∞
            np.divide(-np.log(self.delta), 2 * trials, out=width, where=trials > 0)
        # Not clipped at 0: that would tie all rarely seen items and leave their order to chance.
        lower = mean - np.sqrt(width)
        more = np.log(candidates_examined(evidence) / self.delta) / -np.log(self.delta)
        return Scores(
            lower,
            mean,
            upper=lambda rows: 2 * mean[rows] - lower[rows],
            list_level=self.delta,
            joint=lambda rows: mean[rows] - np.sqrt(width[rows] * more[rows]),
        )
