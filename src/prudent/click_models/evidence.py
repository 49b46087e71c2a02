"""Evidence: what a fitted click model says of every pair, and all that bounds are given."""

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.base.numerics.numbering import number_within
from prudent.base.numerics.thinned import Skips
from prudent.counts.cells import Cells
from prudent.counts.groups import Signals
from prudent.counts.production import discounted_impressions, hazard
from prudent.logs.log import MOST_REWARD

if TYPE_CHECKING:
    from prudent.click_models.base import FittedModel


@dataclass(frozen=True)
class Evidence:
    """Clicks and skips of every (context, item) pair under a fitted click model, sorted by context, then item.

    ``context`` numbers the contexts in the order of their names, and ``item`` the items of one context in the order of
    theirs; the names are in `Counts.pairs`, row for row.
    """

    context: IntArray
    item: IntArray
    positive: FloatArray  # n₊: examined and clicked
    negative: FloatArray  # n₋: examined and not clicked
    impressions: FloatArray  # whole numbers, unless old days weigh less
    fitted: "FittedModel"  # that counted
    expected: FloatArray  # Σx, with x the probability that an impression was examined
    squares: FloatArray  # Σx²; equal to Σx where every examination is certain
    discounted: FloatArray  # D: production's order, as in `prudent.counts.production`
    hazard: FloatArray  # impressions per opportunity to be shown, as there
    # Impressions that Σx examinations are expected of; None where each of these is certain.
    tries: FloatArray | None = field(default=None, kw_only=True)
    # Impressions without a click, with the x of each, where x does not depend on the clicks of the list.
    skips: Skips | None = field(default=None, kw_only=True)
    # Variance of log Σx, as far as fitted parameters are uncertain.
    spread: FloatArray | None = field(default=None, kw_only=True)
    # Of each pair: clicks, Σ of their rewards, and Σ of the squares; None where the log has no rewards.
    rewards: FloatArray | None = field(default=None, kw_only=True)
    # What other contexts say about the groups of each pair; None where pairs have no groups.
    signals: Signals | None = field(default=None, kw_only=True)
    # Where items differ in how often their clicks satisfy: estimates of that, and the same evidence with satisfying
    # clicks in place of clicks.
    satisfaction: FloatArray | None = field(default=None, kw_only=True)
    satisfying: "Evidence | None" = field(default=None, kw_only=True)

    @property
    def most(self) -> float:
        """The largest value of an examination: that of a click, or of the largest reward."""
        return 1.0 if self.rewards is None else float(MOST_REWARD)

    @property
    def ranked(self) -> "Evidence":
        """The evidence that lists are ranked by: that of satisfying clicks, where items differ in them."""
        return self if self.satisfying is None else self.satisfying

    @property
    def examined(self) -> FloatArray:
        """N = n₊ + n₋."""
        return self.positive + self.negative

    @property
    def estimate(self) -> FloatArray:
        """Clicks per examination, with half a click more."""
        return np.asarray((self.positive + 0.5) / (self.expected + 1))

    @property
    def trials(self) -> FloatArray:
        """Examinations that a width which holds at every θ may count on: (Σx)² / N of N impressions.

        A click has a mean of xθ and is 0 or 1 all the same: dividing N of them by Σx divides their range as well.
        """
        if self.tries is None:
            return self.examined
        return np.divide(self.expected**2, self.tries, out=np.zeros_like(self.expected), where=self.tries > 0)

    def select(self, rows: IntArray | BoolArray) -> "Evidence":
        """The evidence of some pairs; contexts and items keep their numbers."""
        some: dict[str, Any] = {name: getattr(self, name)[rows] for name in self.per_pair}
        if self.skips is not None:
            some["skips"] = self.skips.only(np.arange(len(self.context))[rows], len(self.context))
        if self.signals is not None:
            some["signals"] = self.signals.only(rows)
        if self.satisfying is not None:
            some["satisfying"] = self.satisfying.select(rows)
        return replace(self, **some)

    def weighed(self, weight: FloatArray) -> "Evidence":
        """The evidence with every impression of a pair counting as this share of one; impressions stay as they were."""
        counted = ("positive", "negative", "expected", "squares", *(() if self.tries is None else ("tries",)))
        some: dict[str, Any] = {name: getattr(self, name) * weight for name in counted}
        if self.skips is not None:
            some["skips"] = self.skips._replace(n=self.skips.n * weight[self.skips.pair])
        if self.satisfying is not None:
            some["satisfying"] = self.satisfying.weighed(weight)
        return replace(self, **some)

    @property
    def per_pair(self) -> tuple[str, ...]:
        """The names of the arrays."""
        return tuple(field.name for field in fields(self) if isinstance(getattr(self, field.name), np.ndarray))


class Trials(NamedTuple):
    """A part of `Evidence`: one entry per pair."""

    clicks: FloatArray
    expected: FloatArray  # Σx
    squares: FloatArray  # Σx²


def make_evidence(
    fitted: "FittedModel",
    cells: Cells,
    positive: FloatArray,
    negative: FloatArray,
    *,
    expected: FloatArray | None = None,
    squares: FloatArray | None = None,
    **uncertain: Any,
) -> Evidence:
    """The evidence of the pairs of `cells`; the rest where examinations are not certain."""
    expected = positive + negative if expected is None else expected
    if cells.rewards is not None:
        uncertain["rewards"] = np.column_stack([cells.fold(cells.codes.click)[0], cells.rewards])
    return Evidence(
        context=cells.context,
        item=number_within(cells.context),
        positive=positive,
        negative=negative,
        impressions=cells.fold(np.ones(len(cells.codes.position)))[0],
        fitted=fitted,
        expected=expected,
        squares=expected if squares is None else squares,
        discounted=discounted_impressions(cells),
        hazard=hazard(cells),
        **uncertain,
    )
