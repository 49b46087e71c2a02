"""What clicks in other contexts say about the groups of a pair: its item, its host, its brand, its normalized query.

1. For each group, the clicks on its pairs are compared with those that a prior without groups expects of them: a group
   is not good for having been shown at good places, or in contexts of which a log shows only the best.
2. Of n examinations of one pair, (s + 1) / (s + n) each count, s the strength of the prior: an item that was examined
   a thousand times in one context is still one member of its brand, and says little about the others.
3. Totals are sums over all contexts. What a context adds itself is subtracted before its pairs are scored, so that no
   pair sees the clicks of its own lists; within a list, clicks compete.
4. The rate of a group is ``Beta(ep, e(1 − p))``, p the expected one: e, the strength of the grouping, is fitted to its
   groups. The signal is the logit of the mean given the clicks minus that of p.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import expit, logit

from prudent.base.arrays import FloatArray, IntArray
from prudent.base.numerics.beta_binomial import LOG_STRENGTH, BetaBinomial
from prudent.bounds.base import Prior, PriorRule
from prudent.click_models.evidence import Evidence
from prudent.counts.groups import NO_GROUP, NO_PLACE, Keys, Place, Signals
from prudent.engines.kernel import add_by_key, add_within, find

UNIT = 1 << 20
"""Sums are whole numbers in units of 2⁻²⁰, the same in any order and in any engine."""
FITTED_GROUPS = 20_000
"""From so many groups the strength of a grouping is fitted."""
KEPT_GROUPS = 50_000
"""So many groups of a grouping, those with most examinations, are kept in a policy."""
_FEWEST_GROUPS = 20  # examined, for a grouping to be worth a fit
_AT_ONCE = 50_000  # groups that are added up
_CERTAIN = 1e-6  # expected rates stay away from 0 and 1


class Sums(NamedTuple):
    """Of pairs or groups, in units of 2⁻²⁰."""

    clicks: IntArray
    examined: IntArray
    expected: IntArray  # clicks, under the prior without groups

    def minus(self, other: "Sums") -> "Sums":
        """The rest."""
        return Sums(*(all_of_it - some for all_of_it, some in zip(self, other, strict=True)))


def sums_of(evidence: Evidence, prior: Prior) -> Sums:
    """What each pair adds to the sums of its groups."""
    strength = np.asarray(prior.alpha + prior.beta)
    weight = UNIT * (strength + 1) / (strength + np.maximum(evidence.examined, 1))
    mean = prior.alpha / strength
    columns = evidence.positive, evidence.examined, mean * evidence.examined
    return Sums(*(np.rint(weight * column).astype(np.int64) for column in columns))


@dataclass(frozen=True, eq=False)
class Totals:
    """The sums of every group of one grouping."""

    keys: IntArray  # ascending
    sums: Sums

    @classmethod
    def of(cls, keys: IntArray, sums: Sums) -> "Totals":
        """Added up by key."""
        distinct, added = add_by_key(np.where(sums.examined > 0, keys, NO_GROUP), sums)
        return cls(distinct, Sums(*added))

    def slice(self, first: int, last: int) -> "Totals":
        """Some of the groups, in the order of their keys."""
        return Totals(self.keys[first:last], Sums(*(column[first:last] for column in self.sums)))

    @staticmethod
    def added(parts: "Sequence[Totals]") -> "Totals":
        """The sum of several, in ranges of keys: few keys at a time are in the cache."""
        ranges = max(1, sum(len(part.keys) for part in parts) // _AT_ONCE)
        limits = np.linspace(-(2.0**63), 2.0**63, ranges + 1)[1:-1].astype(np.int64)
        places = [[0, *np.searchsorted(part.keys, limits).tolist(), len(part.keys)] for part in parts]
        added = []
        for at in range(ranges):
            some = [part.slice(place[at], place[at + 1]) for part, place in zip(parts, places, strict=True)]
            every = Totals.concatenated(some)
            added.append(Totals.of(every.keys, every.sums))
        return Totals.concatenated(added)

    @staticmethod
    def concatenated(parts: "Sequence[Totals]") -> "Totals":
        """One after the other."""
        sums = Sums(*map(np.concatenate, zip(*(part.sums for part in parts), strict=True)))
        return Totals(np.concatenate([part.keys for part in parts]), sums)

    @property
    def groups(self) -> int:
        """How many there are."""
        return len(self.keys)

    def smallest(self, most: int) -> "Totals":
        """The groups with the smallest keys. Keys are hashes: these are a random sample."""
        return self.slice(0, most)

    def most_examined(self, most: int) -> "Totals":
        """The groups with most examinations; of equal ones, those with smaller keys."""
        examined = self.sums.examined
        if self.groups <= most or not most:
            return self.slice(0, most)
        least = np.partition(examined, -most)[-most]
        kept = examined > least
        kept[np.flatnonzero(examined == least)[: most - int(kept.sum())]] = True
        return Totals(self.keys[kept], Sums(*(column[kept] for column in self.sums)))

    def find(self, keys: IntArray, place: Place = NO_PLACE) -> Sums:
        """The sums of these groups; 0 for one that has none."""
        if not len(self.keys):
            return Sums(*np.zeros((3, len(keys)), np.int64))
        at = find(self.keys, keys)
        return Sums(*(np.where(at < 0, 0, column[at]) for column in self.sums))


class AnyTotals(Protocol):
    """`Totals`, in memory or in files."""

    @property
    def groups(self) -> int:
        """How many there are."""

    def smallest(self, most: int) -> Totals:
        """The groups with the smallest keys."""

    def most_examined(self, most: int) -> Totals:
        """The groups with most examinations."""

    def find(self, keys: IntArray, place: Place) -> Sums:
        """The sums of the groups of some contexts."""


@dataclass(frozen=True)
class Grouping:
    """How much the groups of one grouping differ."""

    name: str
    level: float  # logit of the rate of all groups, minus the expected one
    strength: float | None  # e, in examinations; None where the groups do not differ

    def signal(self, sums: Sums) -> FloatArray:
        """The log odds of a group with these sums, beside the expected ones."""
        if self.strength is None:
            return np.zeros(len(sums.clicks))
        clicks, examined, expected = (column / UNIT for column in sums)
        usual = _usual(examined, expected, self.level)
        signal = logit((clicks + self.strength * usual) / (examined + self.strength)) - logit(usual)
        return np.where(examined > 0, signal, 0.0)


def _usual(examined: FloatArray, expected: FloatArray, level: float = 0.0) -> FloatArray:
    """The expected rate."""
    rate = np.divide(expected, examined, out=np.full(len(examined), 0.5), where=examined > 0)
    return np.asarray(expit(logit(np.clip(rate, _CERTAIN, 1 - _CERTAIN)) + level))


def fit_grouping(name: str, totals: AnyTotals) -> Grouping:
    """How much the rates of groups differ, by maximum likelihood."""
    clicks, examined, expected = (column / UNIT for column in totals.smallest(FITTED_GROUPS).sums)
    if len(clicks) < _FEWEST_GROUPS or not clicks.any():
        return Grouping(name, 0.0, None)
    likelihood = BetaBinomial(clicks, np.maximum(examined - clicks, 0.0), offset=logit(_usual(examined, expected)))
    (level, log_strength), _ = likelihood.maximum(np.array([0.0, 2.0]))
    differ = log_strength < LOG_STRENGTH[1]
    return Grouping(name, float(level), float(np.exp(log_strength)) if differ else None)


@dataclass(frozen=True, eq=False)
class Effects:
    """The groupings and the totals of their groups: turns the keys of pairs into signals."""

    groupings: tuple[Grouping, ...]
    totals: "tuple[AnyTotals, ...]"
    prior: PriorRule  # without groups

    @property
    def names(self) -> tuple[str, ...]:
        """Of the groupings."""
        return tuple(grouping.name for grouping in self.groupings)

    def to_json(self) -> dict[str, dict[str, float | None]]:
        """Of each grouping: how many groups were examined, and how much their rates differ."""
        return {
            grouping.name: {"groups": totals.groups, "level": grouping.level, "strength": grouping.strength}
            for grouping, totals in zip(self.groupings, self.totals, strict=True)
        }

    def of(self, evidence: Evidence, keys: Keys) -> Signals:
        """The signals of pairs, without what their own contexts add."""
        own = sums_of(evidence, self.prior.of(evidence))

        def elsewhere(number: int, known: Sums) -> Sums:
            key = keys.values[:, number]
            return known.minus(own if keys.alone[number] else _in_context(evidence.context, key, own))

        return signals_of(self.groupings, self.totals, keys, elsewhere)


def signals_of(
    groupings: Sequence[Grouping],
    totals: "Sequence[AnyTotals]",
    keys: Keys,
    elsewhere: Callable[[int, Sums], Sums] = lambda _, known: known,
) -> Signals:
    """The signals of pairs; `elsewhere` is what is left of the sums of a grouping without the context of each pair."""
    signals = np.zeros(keys.values.shape)
    for number, (grouping, total) in enumerate(zip(groupings, totals, strict=True)):
        key = keys.values[:, number]
        if grouping.strength is not None and key.any():
            signal = grouping.signal(elsewhere(number, total.find(key, keys.place)))
            signals[:, number] = np.where(key == NO_GROUP, 0.0, signal)
    return Signals(keys.names, signals)


def _in_context(context: IntArray, keys: IntArray, sums: Sums) -> Sums:
    """The sums of all pairs of the same group and context."""
    starts = np.flatnonzero(np.diff(context, prepend=-1, append=-1))
    return Sums(*add_within(starts, keys, sums))


def totals_of(prior: PriorRule, evidence: Evidence, keys: Keys) -> list[Totals]:
    """The totals of each grouping over some contexts."""
    sums = sums_of(evidence, prior.of(evidence))
    return [Totals.of(key, sums) for key in keys.values.T]


def effects_of(names: Sequence[str], totals: "Sequence[AnyTotals]", prior: PriorRule) -> Effects:
    """How much the groups of each grouping differ, from their totals over all contexts."""
    groupings = tuple(fit_grouping(name, total) for name, total in zip(names, totals, strict=True))
    return Effects(groupings, tuple(totals), prior)
