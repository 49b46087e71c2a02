"""Inverse propensity scoring of whole lists."""

from dataclasses import dataclass
from math import inf

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.base.spec import check_clip
from prudent.policies.baselines.base import Baseline, Choice, baselines, clipped_rate, first_of_best
from prudent.policies.baselines.totals import Totals
from prudent.policies.list_arrays import Lists


@baselines.register("ips")
@dataclass(frozen=True)
class Ips(Baseline):
    """The logged list with the most clicks per impression of the list, clipped (Sec. 8.2).

    ``V̂(A) = (1/N) · min(M, N/n_A) · clicks(A)``, where A was shown n_A times among the N lists of its context: the
    paper's sum divided by N, which changes no order. Without a clip it is the list's mean number of clicks. A list that
    was never shown has value 0. Ties go to the list shown more often, then to the one with the smaller item name at
    the first position where they differ.
    """

    clip: float = inf

    def __post_init__(self) -> None:
        check_clip(self.clip)

    def choose(self, totals: Totals) -> Choice:
        """The best of the logged lists, with its estimates."""
        value = self._values(totals)
        chosen = first_of_best(totals.list_context, value)
        logged = totals.logged[totals.list_context[chosen], None]
        adds = clipped_rate(totals.clicks[chosen], totals.n[chosen, None], logged, self.clip)
        best = np.zeros(totals.pairs)
        for column in totals.items.T:
            shown = column >= 0
            np.maximum.at(best, column[shown], value[shown])
        adds = adds[totals.items[chosen] >= 0]
        return Choice(totals.listing(chosen), adds, best, value[totals.incumbent])

    def lists(self, totals: Totals) -> Lists:
        """The best of the logged lists; all that a sweep over clips needs, and faster than `choose`."""
        return totals.listing(first_of_best(totals.list_context, self._values(totals)))

    def _values(self, totals: Totals) -> FloatArray:
        return clipped_rate(totals.list_clicks, totals.n, totals.logged[totals.list_context], self.clip)
