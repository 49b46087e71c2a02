"""Bounds on simulated logs: ground truths drawn from a posterior, and the regret of every setting there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from prudent.base.arrays import FloatArray
from prudent.bounds import Bound
from prudent.bounds.anchored import fit_anchored_prior
from prudent.bounds.bayes import Posterior, posterior
from prudent.click_models.base import FittedModel
from prudent.click_models.evidence import Evidence
from prudent.click_models.world import World, best_lists, clicked, nameless_world, value
from prudent.counts.lists import ListBatch
from prudent.evaluation.tuning import Confirmation
from prudent.policies.list_arrays import Lists, as_table
from prudent.policies.sweep import sweep, with_settings

_DRAWS = 200  # from the posterior of holdout clicks: enough for their spread to 5 %


class Arm(NamedTuple):
    """A bound, at each δ to try."""

    bound: Bound
    deltas: tuple[float | None, ...]  # None: as the bound is

    @property
    def names(self) -> list[str]:
        """The spelling of every setting."""
        return [str(self.bound if delta is None else with_settings(self.bound, delta=delta)) for delta in self.deltas]

    def lists(self, evidence: Evidence, length: int) -> Iterator[Lists]:
        """The lists of every setting."""
        return sweep(self.bound, evidence, self.deltas, length)


@dataclass(frozen=True, eq=False)
class Past:
    """Training lists, and the posterior of attraction given their clicks."""

    lists: ListBatch
    fitted: FittedModel
    attraction: Posterior  # of every pair

    @classmethod
    def of(cls, lists: ListBatch, fitted: FittedModel) -> "Past":
        """The posterior under the prior of the bound `anchored`."""
        expanded = ListBatch(
            lists.context,
            np.repeat(lists.items, lists.n, axis=0),
            np.repeat(lists.clicks, lists.n, axis=0),
            np.ones(int(lists.n.sum()), np.int64),
        )
        return cls(expanded, fitted, _posterior(fitted.evidence(lists.cells)))

    @property
    def share(self) -> FloatArray:
        """Of the lists, per context."""
        return np.bincount(self.lists.list_context) / len(self.lists.n)

    def truth(self, random: np.random.Generator) -> World:
        """A ground truth drawn from the posterior."""
        return self.world(self.attraction.sample(random))

    def world(self, theta: FloatArray) -> World:
        """The ground truth in which items have this attraction."""
        # A posterior that is all but certain may round to 0 or 1, which no click model allows.
        theta = theta.clip(1e-12, 1 - 1e-12)
        return nameless_world(np.bincount(self.lists.context), theta, np.zeros(theta.size), self.fitted)

    def regrets(self, arms: Sequence[Arm], random: np.random.Generator) -> FloatArray:
        """The regret V(A*) − V(Â) of every setting on one simulated log, and last of the logged lists."""
        world = self.truth(random)
        log = clicked(world, self.lists.items, random)
        evidence = self.fitted.model.evidence(log).ranked
        best = value(world, best_lists(world))
        lost = [
            best - value(world, as_table(lists, len(best), world.length))
            for arm in arms
            for lists in arm.lists(evidence, world.length)
        ]
        logged = best[log.list_context] - value(world, log.items)
        return np.append((np.array(lost) * self.share).sum(axis=1), logged.mean())


def _posterior(evidence: Evidence) -> Posterior:
    """That of the bound `anchored`, for every pair."""
    return posterior(evidence, fit_anchored_prior(evidence).of(evidence))


def confirm(past: Past, evidence: Evidence, later: FloatArray, bound: str, both: Sequence[Bound]) -> Confirmation:
    """Compare the lists of two bounds, ranked from training clicks, on the holdout.

    evidence
        Of the holdout, for the training pairs.
    later
        Holdout lists of each context.
    """
    mine = past.fitted.evidence(past.lists.cells).ranked
    length = past.lists.length
    tables = [as_table(next(sweep(bound, mine, (None,), length)), len(later), length) for bound in both]
    attraction = _posterior(evidence)
    share = later / later.sum()
    random = np.random.default_rng(0)
    drawn = np.array(
        [
            [(share * value(world, table)).sum() for table in tables]
            for world in (past.world(attraction.sample(random)) for _ in range(_DRAWS))
        ]
    )
    difference = drawn[:, 0] - drawn[:, 1]
    return Confirmation(
        bound=bound,
        value=float(drawn[:, 0].mean()),
        default_value=float(drawn[:, 1].mean()),
        difference=float(difference.mean()),
        difference_se=float(difference.std(ddof=1)),
        lists=int(later.sum()),
    )
