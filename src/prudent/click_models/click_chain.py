"""The click chain model."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.errors import NotIdentifiedError, UsageError
from prudent.base.text import number
from prudent.click_models.base import ClickModel, click_models, product_above
from prudent.click_models.chain_fit import after_click, fit_chain
from prudent.click_models.evidence import Evidence, make_evidence
from prudent.click_models.positions import by_position, read_probabilities, top_down
from prudent.click_models.reading import FittedReader, Onward
from prudent.click_models.rewards import Reward
from prudent.click_models.tails import settle, skips_of
from prudent.click_models.whole_lists import WholeLists
from prudent.counts.cells import Cells
from prudent.counts.lists import ListBatch
from prudent.engines.kernel import Settled, Users


@click_models.register("ccm")
@dataclass(frozen=True)
class ClickChain(ClickModel):
    """The user reads from the top, and goes on with a probability that depends on what the last item turned out to be.

    An examined item is clicked with probability a, its attraction. The user goes on with probability α₁ after an item
    that is not clicked, and after a click with α₃ if the item is relevant, which it is with probability a again, and
    with α₂ if it is not (Guo et al. 2009): ``c = α₂(1 − a) + α₃a``. Where users stopped below the last click, and in a
    list without one, is hidden; all positions are summed over. The value of a list is the probability of a click after
    which the user leaves, as for ``dcm``: ``V = Σₖ aₖ(1 − cₖ) ∏_{j<k} (α₁(1 − aⱼ) + aⱼcⱼ)``.

    ``alpha`` sets α₁, α₂ and α₃; otherwise they are fitted to whole lists: those that counts keep. In the evidence,
    other items below a last click contribute their mean over the lists of the context, as in ``dcm``.

    Where it loses: where users look at positions, as in ``pbm``; at most 0.2 points of value to the true model in
    simulated logs (docs/wrong-models.md).
    """

    alpha: tuple[float, ...] = ()

    unit: ClassVar[str] = "probability of a satisfied click"
    reward: ClassVar[Reward] = "satisfied"
    precedence: ClassVar[int] = 5
    whole_lists: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", read_probabilities("alpha", self.alpha))
        if len(self.alpha) not in (0, 3):
            raise UsageError(f"alpha of ccm has {len(self.alpha)} values; it takes three, such as [0.8, 0.9, 0.5].")

    def curves(self, fitted: Mapping[str, Any]) -> dict[str, list[float | None]]:
        """None: no parameter depends on the position."""
        return {}

    def fit(self, cells: Cells, positions: int, lists: ListBatch | None = None) -> "FittedClickChain":
        """α, as set or from whole lists."""
        if self.alpha:
            return FittedClickChain(self, positions, np.array(self.alpha))
        if lists is None:
            raise NotIdentifiedError("ccm is not identified: it is fitted to whole lists, and there are only cells.")
        whole = WholeLists(lists)
        whole.check("ccm")
        alpha, error = fit_chain(whole)
        if error[0] > UNCERTAIN:
            raise NotIdentifiedError(
                f"ccm is not identified: the standard error of α₁ is {number(float(error[0]), 2)}. Set alpha=[...], or "
                "use another click model."
            )
        return FittedClickChain(self, positions, alpha, error=error, learned=True)

    def typical(self, positions: int) -> "FittedClickChain":
        """.9 after an item that is not clicked, .9 after an irrelevant one, and .5 after a relevant one."""
        return FittedClickChain(self, positions, np.array(self.alpha or (0.9, 0.9, 0.5)))


UNCERTAIN = 0.2
"""Standard error of α₁ above which it is refused: the value of a list would not even be known roughly."""
TOLERANCE = 1e-4  # of attraction


@dataclass(frozen=True, eq=False)
class FittedClickChain(FittedReader):
    """α₁, α₂ and α₃."""

    alpha: FloatArray
    error: FloatArray | None = field(default=None, kw_only=True)  # standard errors; None where α was set

    settings: ClassVar[tuple[str, ...]] = ("alpha",)
    fitted_to_cells: ClassVar[bool] = False

    @property
    def as_truth(self) -> "FittedClickChain":
        """With α that is as good as set."""
        return replace(self, learned=False)

    def evidence(self, cells: Cells) -> Evidence:
        """Clicks against examinations without a click.

        What users did after a click is left out: that it depends on the same attraction is the weakest assumption of
        the model.
        """
        settled = self._settled(cells)
        skips = skips_of(cells, settled, float(self.alpha[0]))
        return make_evidence(self, cells, settled.clicks, settled.negative, tries=cells.per_pair(), skips=skips)

    def estimate(self, cells: Cells) -> FloatArray:
        """Clicks per examination, without the rest of the evidence."""
        return self._settled(cells).estimate

    def _settled(self, cells: Cells) -> Settled:
        return settle(cells, Users(TOLERANCE, float(self.alpha[0]), "attraction", self.alpha[1:]))

    def value(self, attraction: FloatArray, reward: Reward | None = None) -> FloatArray:
        """Σₖ aₖ(1 − cₖ) ∏_{j<k} (α₁(1 − aⱼ) + aⱼcⱼ), unless another reward is asked for."""
        if (reward or self.model.reward) != "satisfied":
            return super().value(attraction, reward)
        unclicked, clicked = self.onward(attraction)
        onward = unclicked * (1 - attraction) + attraction * clicked
        leaves = attraction * (1 - after_click(attraction, self.alpha))
        return np.asarray((leaves * product_above(onward)).sum(axis=-1))

    def cautious(self, level: float) -> "FittedClickChain":
        """Fitted α₁ at its lower limit, α₂ and α₃ at their upper ones."""
        if self.error is None:
            return self
        return replace(self, alpha=np.clip(self.alpha + float(ndtri(level)) * self.error * [1, -1, -1], 0.0, 1.0))

    def place(self, scores: FloatArray) -> IntArray:
        """From the top down, which is best where relevant items end a search more often than others."""
        return top_down(scores) if self.learned or self.alpha[2] <= self.alpha[1] else super().place(scores)

    def onward(self, attraction: FloatArray) -> Onward:
        """The same after every item, but for what a click does; the last position ends the list."""
        known = by_position(np.ones(max(0, self.positions - 1)), attraction.shape[-1], beyond=0.0)
        return Onward(known * self.alpha[0], known * after_click(attraction, self.alpha))
