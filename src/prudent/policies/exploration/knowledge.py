"""What a log says about the examination probabilities, and what the lists of a policy and its variants will say.

Predictions are for the coming lists alone. Lists of a policy were chosen by the clicks of its own training log: in a
log of both, items that were lucky low in production's lists stand high in the policy's, and p of low positions is
estimated too high. Within the coming lists, chance alone decides which variant is shown.
"""

from dataclasses import dataclass

import numpy as np

from prudent.base.arrays import BoolArray, FloatArray, IntArray
from prudent.click_models.base import click_models
from prudent.click_models.examination import per_position, position_groups, position_links
from prudent.click_models.position_information import (
    by_position,
    covariance,
    information,
    linked_positions,
    overall_error,
    standard_errors,
)
from prudent.counts.counts import Counts
from prudent.counts.sampling import samples
from prudent.policies.exploration.positions import MOST_NUMBERS, STEPS, Positions
from prudent.policies.exploration.price import Variants, expected_excess
from prudent.policies.exploration.situation import Situation, known_contexts

_MOST_CONTEXTS = 300  # whose lists are searched for swaps
_TYPICAL = "pbm"  # whose p stands for one that no log has determined


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Examination probabilities, and how well the log determines them."""

    examination: FloatArray
    groups: list[list[int]]  # of positions that the log can compare
    covariance: FloatArray | None  # of log p, by the log; None where it does not determine it
    fitted: BoolArray  # contexts that p is fitted to

    @property
    def reference(self) -> int:
        """The position that p is relative to, from 0."""
        return int(np.argmax(self.examination))

    @property
    def error(self) -> float | None:
        """The overall standard error of p, by the log."""
        return None if self.covariance is None else float(overall_error(self.covariance, self.examination))

    def after(self, situation: Situation, variants: Variants, coming: FloatArray) -> FloatArray | None:
        """The covariance of log p, by so many lists of each context alone; None where they do not determine it."""
        coming = np.where(self.fitted, coming, 0.0)
        lists = np.vstack([situation.table, variants.lists])
        n = np.append(
            coming * (1 - variants.shares(situation.contexts)), coming[variants.context] * variants.probability
        )
        inside = lists >= 0
        pair, row = np.unique(lists[inside], return_inverse=True)
        shown = by_position(
            row, np.nonzero(inside)[1] + 1, np.broadcast_to(n[:, None], lists.shape)[inside], len(pair), lists.shape[1]
        )
        return self._determined(information(shown, situation.mean[pair], self.examination))

    def errors(self, covariance: FloatArray | None) -> list[float] | None:
        """The standard error of each p."""
        return None if covariance is None else standard_errors(covariance, self.examination).tolist()

    def _determined(self, found: FloatArray) -> FloatArray | None:
        return covariance(found, self.reference) if len(linked_positions(found)) == 1 else None


def read_knowledge(situation: Situation, counts: Counts, learned: bool) -> Knowledge:
    """The knowledge in the counts that p is fitted to; p is that of the policy if `learned`, or else a typical one."""
    part, _ = samples(counts.index)
    length = situation.length
    users = situation.fitted if learned else click_models.parse(_TYPICAL).typical(length)
    examination = users.predict(np.ones((1, length)))[0]
    pair, position, shown, clicked = per_position(part.cells)
    inside = position <= length
    pair, position, shown, clicked = pair[inside], position[inside], shown[inside], clicked[inside]
    logged = by_position(pair, position, shown, part.cells.pairs, length)
    clicks = np.bincount(pair, clicked, minlength=part.cells.pairs)
    attraction = np.clip((clicks + 0.2) / (logged @ examination + 1), 0.0, 1.0)
    groups = position_groups(position_links(pair, position, shown, length), length)
    knowledge = Knowledge(examination, groups, None, known_contexts(situation, part.contexts))
    found = knowledge._determined(information(logged, attraction, examination)) if len(groups) == 1 else None
    return Knowledge(examination, groups, found, knowledge.fitted)


def search_space(situation: Situation, knowledge: Knowledge, coming: FloatArray) -> tuple[Positions, IntArray]:
    """The swaps of the contexts with most lists, and these contexts."""
    length = situation.length
    swaps = length * (length - 1) // 2
    most = max(1, min(_MOST_CONTEXTS, MOST_NUMBERS // max(1, swaps * len(STEPS) * length)))
    expected = np.where(knowledge.fitted, coming, 0.0)
    order = np.argsort(-expected, kind="stable")[:most]
    order = order[expected[order] > 0]
    table = situation.table[order]
    shown = np.where((table >= 0)[..., None], coming[order][:, None, None] * np.eye(length), 0.0)
    attraction, costs = situation.attraction(table), _costs(situation, order)
    return Positions(knowledge.examination, knowledge.reference, attraction, shown, coming[order], costs), order


def _costs(situation: Situation, contexts: IntArray) -> FloatArray:
    """The share of the policy's value that the swap of two positions loses if a context always has it."""
    table = situation.table[contexts]
    weight = situation.lists / situation.lists.sum()
    share = weight[contexts] / float(weight @ situation.value)
    length = table.shape[1]
    costs = np.zeros((len(contexts), length, length))
    deviation = np.append(situation.deviation, 0.0)[table]
    for first in range(length):
        for second in range(first + 1, length):
            other = np.arange(length)
            other[[first, second]] = second, first
            lists = table[:, other]
            loss = situation.value[contexts] - situation.fitted.value(situation.attraction(lists))
            # Slopes of the swapped list stand at its places; `other` puts them at those of the items.
            change = situation.slopes[contexts] - situation.slopes_of(lists)[:, other]
            doubt = np.sqrt(np.sum((change * deviation) ** 2, axis=1))
            costs[:, first, second] = costs[:, second, first] = share * expected_excess(loss, doubt)
    return costs
