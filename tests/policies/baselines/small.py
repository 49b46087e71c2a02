"""How the tests ask a rival."""

from collections.abc import Sequence

from prudent.policies.baselines import Baseline, Choice, fold
from tests.reference import LoggedList, Name, Pair
from tests.strategies import as_batch


def pairs_of(lists: Sequence[LoggedList]) -> list[Pair]:
    return sorted({(context, item) for context, items, _ in lists for item in items})


def choose(rival: Baseline, lists: Sequence[LoggedList]) -> Choice:
    return rival.choose(fold(as_batch(lists)))


def chosen(rival: Baseline, lists: Sequence[LoggedList]) -> dict[Name, tuple[Name, ...]]:
    """The list of every context, by names."""
    pairs = pairs_of(lists)
    actual: dict[Name, tuple[Name, ...]] = {}
    for row, rank in zip(*(column.tolist() for column in choose(rival, lists).lists[::2]), strict=True):
        context, item = pairs[row]
        actual[context] = (*actual.get(context, ()), item)
        assert len(actual[context]) == rank
    return actual


def added(rival: Baseline, lists: Sequence[LoggedList]) -> dict[Name, list[float]]:
    """What the items of the list of every context add, from the top down."""
    pairs = pairs_of(lists)
    actual: dict[Name, list[float]] = {}
    choice = choose(rival, lists)
    for row, adds in zip(choice.lists.row.tolist(), choice.adds.tolist(), strict=True):
        actual.setdefault(pairs[row][0], []).append(adds)
    return actual


def best(rival: Baseline, lists: Sequence[LoggedList]) -> dict[Pair, float]:
    """The best estimate of every pair."""
    return dict(zip(pairs_of(lists), choose(rival, lists).best.tolist(), strict=True))
