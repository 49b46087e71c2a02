"""No pessimism: the maximum likelihood estimate."""

from dataclasses import dataclass

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.bounds.base import Bound, Scores, bounds
from prudent.click_models.evidence import Evidence


@bounds.register("mle")
@dataclass(frozen=True)
class Mle(Bound):
    """Clicks per examination, ``L(a) = n₊ / n``: the plug-in of Eq. (2), and no bound at all.

    It promises nothing: for items that were seen often, about half of the estimates lie above the truth, and that of
    the best-looking of many items nearly always does. It is here to be compared with. Items without evidence get 0,
    which is not in the paper; 0.5 or 1 would put every unseen item on top, for two to six times the error where most
    items are unseen.
    """

    @property
    def promise(self) -> str:
        """None."""
        return "mle guarantees nothing: it is an estimate, not a bound. It overestimates about half of the items."

    def score(self, evidence: Evidence) -> Scores:
        """The estimate itself, as bound and as mean."""
        estimate = click_rate(evidence)
        return Scores(estimate, estimate)


def click_rate(evidence: Evidence) -> FloatArray:
    """n₊/n, and 0 without evidence."""
    examined = evidence.examined
    return np.divide(evidence.positive, examined, out=np.zeros_like(examined), where=examined > 0)
