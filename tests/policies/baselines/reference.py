"""The baselines once more, as plain loops over lists and exact fractions."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from math import inf

import numpy as np

from tests.reference import LoggedList, Name

Items = tuple[Name, ...]
Place = tuple[Name, int]  # item, position from 1


def lists_of(lists: Sequence[LoggedList], context: Name) -> list[tuple[Items, tuple[int, ...]]]:
    return [(items, clicks) for c, items, clicks in lists if c == context]


def items_of(lists: Sequence[LoggedList], context: Name) -> list[Name]:
    return sorted({item for items, _ in lists_of(lists, context) for item in items})


def clipped(clicks: int, n: int, total: int, clip: float) -> Fraction:
    """(1/N) · min(M, N/n) · clicks."""
    weight = Fraction(total, n) if clip == inf else min(Fraction(clip), Fraction(total, n))
    return weight * clicks / total


def ips(lists: Sequence[LoggedList], context: Name, clip: float) -> dict[Items, Fraction]:
    """The value of every logged list."""
    logged = lists_of(lists, context)
    n, clicks = Counter[Items](), Counter[Items]()
    for items, clicked in logged:
        n[items] += 1
        clicks[items] += sum(clicked)
    return {items: clipped(clicks[items], n[items], len(logged), clip) for items in n}


def best_ips(lists: Sequence[LoggedList], context: Name, clip: float) -> Items:
    value = ips(lists, context, clip)
    n = Counter(items for items, _ in lists_of(lists, context))
    return min(value, key=lambda items: (-value[items], -n[items], items))


def places(lists: Sequence[LoggedList], context: Name) -> tuple[Counter[Place], Counter[Place]]:
    """How often each item was shown, and clicked, at each position."""
    n, clicks = Counter[Place](), Counter[Place]()
    for items, clicked in lists_of(lists, context):
        for position, (item, click) in enumerate(zip(items, clicked, strict=True), start=1):
            n[item, position] += 1
            clicks[item, position] += click
    return n, clicks


def item_position_ips(lists: Sequence[LoggedList], context: Name, clip: float) -> dict[Place, Fraction]:
    n, clicks = places(lists, context)
    total = len(lists_of(lists, context))
    return {place: clipped(clicks[place], n[place], total, clip) for place in n}


def best_assignment(value: dict[Place, Fraction], items: Sequence[Name], length: int) -> Fraction:
    """The largest sum over all lists without repeats; fewer items than positions fill the first of them."""
    return max(
        sum((value.get((item, k), Fraction(0)) for k, item in enumerate(order, start=1)), Fraction(0))
        for order in permutations(items, min(length, len(items)))
    )


def pseudo_inverse(lists: Sequence[LoggedList], context: Name, length: int) -> dict[Place, float]:
    """φ̂ from the full K|E| × K|E| matrix, entry by entry."""
    items = items_of(lists, context)
    places = [(item, k) for item in items for k in range(1, length + 1)]
    gram, right = np.zeros((len(places), len(places))), np.zeros(len(places))
    logged = lists_of(lists, context)
    for shown, clicks in logged:
        inside = [places.index((item, k)) for k, item in enumerate(shown, start=1)]
        for i in inside:
            right[i] += sum(clicks) / len(logged)
            for j in inside:
                gram[i, j] += 1 / len(logged)
    phi = np.linalg.pinv(gram, rcond=1e-12, hermitian=True) @ right
    return dict(zip(places, phi.tolist(), strict=True))


def greedy(lists: Sequence[LoggedList], context: Name, phi: dict[Place, float], length: int) -> Items:
    """From the top down, the largest φ of the items that are left; of equals the most shown there, then anywhere."""
    n, _ = places(lists, context)
    anywhere = Counter(item for items, _ in lists_of(lists, context) for item in items)
    chosen: list[Name] = []
    for k in range(1, length + 1):
        left = [item for item in items_of(lists, context) if item not in chosen]
        order = [(-round(phi[item, k], 7), -n[item, k], -anywhere[item], item) for item in left]
        chosen += [item for *_, item in sorted(order)[:1]]
    return tuple(chosen)
