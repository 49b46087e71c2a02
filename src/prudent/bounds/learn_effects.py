"""The totals of groups over all contexts, in memory or, where they would not fit, in files.

In files, each part of the contexts has the groups of its pairs, sorted by key. Range by range of keys, the sums of all
parts are added up and written back to every part that has the group: a part then finds the totals of its groups in its
own file, and memory does not grow with the number of groups.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from prudent.base.arrays import IntArray
from prudent.bounds.base import PriorRule
from prudent.bounds.groups import (
    FITTED_GROUPS,
    KEPT_GROUPS,
    Effects,
    Sums,
    Totals,
    effects_of,
    sums_of,
)
from prudent.click_models.evidence import Evidence
from prudent.counts.groups import Keys, Place
from prudent.engines.kernel import add_by_key, find
from prudent.storage.files import TemporaryFolder, writing_temporary

_AT_ONCE = 1_000_000  # groups of all parts that are added up
_GROUP = 32  # bytes


def learn_effects(prior: PriorRule, parts: Iterable[tuple[Evidence, Keys]], room: int | None = None) -> Effects:
    """The totals of all groups, and how much groups differ; every context is in one of the parts.

    room
        Bytes that totals may take in memory; by default any.
    """
    names: tuple[str, ...] = ()
    held: list[tuple[Place, list[Totals]]] = []
    files: _Files | None = None
    groups = 0
    for evidence, keys in parts:
        names, sums = keys.names, sums_of(evidence, prior.of(evidence))
        added = [add_by_key(key, sums) for key in keys.values.T]
        held.append((keys.place, [Totals(distinct, Sums(*columns)) for distinct, columns in added]))
        groups += sum(len(distinct) for distinct, _ in added)
        if room is not None and groups * _GROUP > room:
            files = files or _Files(TemporaryFolder(), {})
            files.add(held)
            held = []
    if files is not None:
        return effects_of(names, [files.joined(number) for number in range(len(names))], prior)
    totals = zip(*(each for _, each in held), strict=True)
    return effects_of(names, [Totals.added(parts) for parts in totals], prior)


@dataclass(frozen=True, eq=False)
class _Files:
    """A file for each part and grouping: the keys of its groups, ascending, and three rows of sums."""

    folder: TemporaryFolder
    numbers: dict[Place, int]  # of the parts

    def path(self, part: int, grouping: int) -> Path:
        return self.folder.path / f"{grouping}-{part}.npy"

    def add(self, parts: Sequence[tuple[Place, Sequence[Totals]]]) -> None:
        with writing_temporary(self.folder.path):
            for place, totals in parts:
                part = self.numbers[place] = len(self.numbers)
                for grouping, total in enumerate(totals):
                    np.save(self.path(part, grouping), np.array([total.keys, *total.sums]))

    def joined(self, grouping: int) -> "StoredTotals":
        """Put the sums over all parts in place of those of each."""
        paths = [self.path(part, grouping) for part in self.numbers.values()]
        tables = [np.load(path, mmap_mode="r")[0] for path in paths]
        ranges = max(1, sum(map(len, tables)) // _AT_ONCE)
        limits = np.linspace(-(2.0**63), 2.0**63, ranges + 1)[1:-1].astype(np.int64)
        cuts = [[0, *np.searchsorted(keys, limits).tolist(), len(keys)] for keys in tables]
        del tables
        groups, smallest, most = 0, _NOTHING, _NOTHING
        with writing_temporary(self.folder.path):
            for slices in zip(*(map(slice, cut[:-1], cut[1:]) for cut in cuts), strict=True):
                some = [_read(path, rows) for path, rows in zip(paths, slices, strict=True)]
                added = Totals.added(some)
                for path, rows, part in zip(paths, slices, some, strict=True):
                    np.load(path, mmap_mode="r+")[1:, rows] = added.find(part.keys)
                groups += added.groups
                smallest = Totals.concatenated([smallest, added.smallest(FITTED_GROUPS - smallest.groups)])
                most = Totals.concatenated([most, added.most_examined(KEPT_GROUPS)]).most_examined(KEPT_GROUPS)
        return StoredTotals(self, grouping, groups, smallest, most)


@dataclass(frozen=True, eq=False)
class StoredTotals:
    """The totals of one grouping in files: every part of the contexts has those of its groups."""

    files: _Files
    grouping: int
    groups: int
    some: Totals  # those with the smallest keys
    most: Totals  # those with most examinations

    def smallest(self, most: int) -> Totals:
        """The groups with the smallest keys."""
        return self.some.smallest(most)

    def most_examined(self, most: int) -> Totals:
        """The groups with most examinations."""
        return self.most.most_examined(most)

    def find(self, keys: IntArray, place: Place) -> Sums:
        """The sums of the groups of some contexts: those of a part are in its file, of others in any."""
        numbers = self.files.numbers
        sums = np.zeros((3, len(keys)), np.int64)
        for part in [numbers[place]] if place in numbers else numbers.values():
            table = np.load(self.files.path(part, self.grouping))
            at = find(table[0], keys)
            sums[:, at >= 0] = table[1:, at[at >= 0]]
        return Sums(*sums)


_NOTHING = Totals(np.zeros(0, np.int64), Sums(*np.zeros((3, 0), np.int64)))


def _read(path: Path, rows: slice) -> Totals:
    keys, *sums = np.load(path, mmap_mode="r")[:, rows].copy()
    return Totals(keys, Sums(*sums))
