"""The estimators once more, as plain loops over lists."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import product
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np

from tests.reference import Name

Items = tuple[Name, ...]


class Logged(NamedTuple):
    """A list as it was shown: with the propensity of each item given those above it."""

    context: Name
    items: Items
    clicks: tuple[int, ...]
    steps: tuple[float, ...]


Policy = Mapping[Any, tuple[Any, ...]]


class Estimate(NamedTuple):
    """What an estimator says: value and logged reward per list, support, effective lists, largest weight."""

    value: float
    logged: float
    support: float
    effective: float | None = None
    largest: float | None = None


def cut(lists: Sequence[Logged], policy: Policy) -> tuple[list[Logged], dict[Name, Items]]:
    """In each context, both over the positions that both have; contexts without a policy stay as they are."""
    actual, short = [], {}
    for context, items in policy.items():
        longest = max((len(one.items) for one in lists if one.context == context), default=0)
        short[context] = items[: min(longest, len(items))]
    for one in lists:
        upto = len(short.get(one.context, one.items))
        actual.append(Logged(one.context, one.items[:upto], one.clicks[:upto], one.steps[:upto]))
    return actual, short


def earned(clicks: Sequence[int], reward: str) -> int:
    return sum(clicks) if reward == "clicks" else int(any(clicks))


def earned_at(clicks: Sequence[int], k: int, reward: str) -> int:
    """Position k, from 0."""
    if k >= len(clicks):
        return 0
    return clicks[k] if reward == "clicks" else int(clicks[k] == 1 and not any(clicks[:k]))


def agrees(one: Logged, target: Items, k: int) -> bool:
    """Down to position k, from 0."""
    return k < len(target) and one.items[: k + 1] == target[: k + 1]


def effective(weights: Sequence[float]) -> tuple[float, float]:
    squares = sum(w * w for w in weights)
    return (sum(weights) ** 2 / squares if squares else 0.0), max(map(abs, weights))


def position_weights(
    lists: Sequence[Logged],
    policy: Policy,
    k: int,
    same: Callable[[Logged, Items, int], bool],
    known: bool,
    clip: float,
) -> list[float]:
    """Of every list, at one position."""
    weights = []
    for one in lists:
        target = policy[one.context]
        if not same(one, target, k):
            weights.append(0.0)
            continue
        mine = [other for other in lists if other.context == one.context]
        share = sum(same(other, target, k) for other in mine) / len(mine)
        weights.append(min(clip, 1 / (prod(one.steps[: k + 1]) if known else share)))
    return weights


def split(lists: Sequence[Logged], policy: Policy) -> tuple[list[Logged], list[Logged]]:
    """Lists of the policy's contexts, and of those that keep what they have."""
    return [one for one in lists if one.context in policy], [one for one in lists if one.context not in policy]


def share_supported(mine: Sequence[Logged], policy: Policy, supported: Collection[Name]) -> float:
    """Of lists that differ from the policy's, those in contexts with support."""
    changed = [one for one in mine if one.items != policy[one.context]]
    return sum(one.context in supported for one in changed) / len(changed) if changed else 1.0


def weighted(
    lists: Sequence[Logged],
    policy: Policy,
    reward: str,
    positions: Callable[[Items], Sequence[int]],
    same: Callable[[Logged, Items, int], bool],
    gain: Callable[[Logged, int], float],
    known: bool,
    clip: float,
    normalize: bool = False,
) -> Estimate | None:
    """Σₖ w·r over the positions that `positions` names; the lists that count are those of contexts with support."""
    lists, policy = cut(lists, policy)
    mine, kept = split(lists, policy)
    supported = {
        context
        for context in {one.context for one in mine}
        if all(
            any(same(one, policy[context], k) for one in mine if one.context == context)
            for k in positions(policy[context])
        )
    }
    if not supported:
        return None
    counted = mine if known else [one for one in mine if one.context in supported]
    depth = max(len(items) for items in policy.values())
    by_position = [position_weights(counted, policy, k, same, known, clip) for k in range(depth)]
    gains, weights = [], []
    for number, one in enumerate(counted):
        asked = positions(policy[one.context])
        gains.append(sum(by_position[k][number] * gain(one, k) for k in asked))
        weights.append(sum(by_position[k][number] for k in asked) / len(asked))
    own = [float(earned(one.clicks, reward)) for one in kept]
    total = sum(weights) + len(kept) if normalize else len(counted) + len(kept)
    inside = [one for one in mine if one.context in supported]
    beside = inside if normalize else counted  # what has no weight has no part in a mean of weighted rewards
    logged = [earned(one.clicks, reward) for one in [*beside, *kept]]
    return Estimate(
        (sum(gains) + sum(own)) / total,
        sum(logged) / len(logged),
        share_supported(mine, policy, supported),
        *effective(weights),
    )


def ips(
    lists: Sequence[Logged], policy: Policy, reward: str, known: bool, clip: float = inf, normalize: bool = False
) -> Estimate | None:
    _, short = cut(lists, policy)
    return weighted(
        lists,
        policy,
        reward,
        lambda target: [len(target) - 1],
        agrees,
        lambda one, k: earned(one.clicks[: len(short[one.context])], reward),
        known,
        clip,
        normalize,
    )


def prefix_ips(lists: Sequence[Logged], policy: Policy, reward: str, known: bool, clip: float = inf) -> Estimate | None:
    return weighted(
        lists,
        policy,
        reward,
        lambda target: range(len(target)),
        agrees,
        lambda one, k: earned_at(one.clicks, k, reward),
        known,
        clip,
    )


def item_position_ips(lists: Sequence[Logged], policy: Policy, clip: float = inf) -> Estimate | None:
    def same(one: Logged, target: Items, k: int) -> bool:
        return k < min(len(target), len(one.items)) and one.items[k] == target[k]

    def click(one: Logged, k: int) -> float:
        return earned_at(one.clicks, k, "clicks")

    return weighted(lists, policy, "clicks", lambda target: range(len(target)), same, click, False, clip)


def click_ips(
    lists: Sequence[Logged], policy: Policy, examination: Sequence[float], clip: float = inf
) -> Estimate | None:
    """Under pbm: each click of an item of the policy counts as often as its new position is examined more."""
    short, policy = cut(lists, policy)
    mine, kept = split(short, policy)
    whole = split(lists, policy)[0]
    total, inside, logged = 0.0, 0, 0.0
    supported: set[Name] = set()
    for context in sorted({one.context for one in mine}):
        own = [one for one in whole if one.context == context]
        value = 0.0
        for k, item in enumerate(policy[context]):
            shown = [one for one in own if item in one.items]
            if not shown:
                break
            for one in shown:
                j = one.items.index(item)
                value += one.clicks[j] * min(clip, examination[k] / examination[j]) / len(shown)
        else:
            total += len(own) * value
            inside += len(own)
            supported.add(context)
            logged += sum(sum(one.clicks) for one in mine if one.context == context)
    if not inside:
        return None
    earned_by_kept = sum(sum(one.clicks) for one in kept)
    every = inside + len(kept)
    support = share_supported(mine, policy, supported)
    return Estimate((total + earned_by_kept) / every, (logged + earned_by_kept) / every, support)


def pseudo_inverse(lists: Sequence[Logged], policy: Policy, reward: str) -> Estimate | None:
    """From the full matrix of each context, entry by entry."""
    lists, policy = cut(lists, policy)
    mine, kept = split(lists, policy)
    total, inside, logged = 0.0, 0, 0
    supported: set[Name] = set()
    weights: list[float] = []
    for context in sorted({one.context for one in mine}):
        own = [one for one in mine if one.context == context]
        places = sorted({(item, k) for one in own for k, item in enumerate(one.items)})
        target = [(item, k) for k, item in enumerate(policy[context])]
        if not set(target) <= set(places):
            continue
        gram, right = np.zeros((len(places), len(places))), np.zeros(len(places))
        marks = [[places.index((item, k)) for k, item in enumerate(one.items)] for one in own]
        for one, mark in zip(own, marks, strict=True):
            for i in mark:
                right[i] += earned(one.clicks, reward) / len(own)
                for j in mark:
                    gram[i, j] += 1 / len(own)
        wanted = np.zeros(len(places))
        wanted[[places.index(place) for place in target]] = 1
        inverse = np.linalg.pinv(gram, rcond=1e-10, hermitian=True)
        if np.abs(gram @ inverse @ wanted - wanted).max() > 1e-6:
            continue
        total += len(own) * float(wanted @ inverse @ right)
        weights += [float((wanted @ inverse)[mark].sum()) for mark in marks]
        inside += len(own)
        supported.add(context)
        logged += sum(earned(one.clicks, reward) for one in own)
    if not inside:
        return None
    extra = sum(earned(one.clicks, reward) for one in kept)
    count = inside + len(kept)
    support = share_supported(mine, policy, supported)
    return Estimate((total + extra) / count, (logged + extra) / count, support, *effective(weights))


def direct(
    lists: Sequence[Logged], policy: Policy, reward: str, expected: Mapping[Name, Sequence[float]]
) -> Estimate | None:
    """`expected` has the model's expected reward of every position of the policy's lists."""
    shown = {(one.context, item) for one in lists for item in one.items}  # wherever it stood
    lists, policy = cut(lists, policy)
    mine, kept = split(lists, policy)
    counted = [one for one in mine if all((one.context, item) in shown for item in policy[one.context])]
    if not counted:
        return None
    gains = [sum(expected[one.context]) for one in counted] + [earned(one.clicks, reward) for one in kept]
    logged = [earned(one.clicks, reward) for one in [*counted, *kept]]
    support = share_supported(mine, policy, {one.context for one in counted})
    return Estimate(sum(gains) / len(gains), sum(logged) / len(logged), support)


def doubly_robust(
    lists: Sequence[Logged],
    policy: Policy,
    reward: str,
    expected: Mapping[Name, Sequence[float]],
    known: bool,
    clip: float = inf,
) -> Estimate | None:
    """Σₖ w₁:ₖ (rₖ − Qₖ) + w₁:ₖ₋₁ Qₖ, list by list."""
    shown = {(one.context, item) for one in lists for item in one.items}  # wherever it stood
    lists, policy = cut(lists, policy)
    mine, kept = split(lists, policy)

    def deepest(context: Name) -> int:
        own = [one for one in mine if one.context == context]
        return max(
            k for k in range(len(policy[context]) + 1) if k == 0 or any(agrees(o, policy[context], k - 1) for o in own)
        )

    counted = [
        one for one in mine if all((one.context, item) in shown for item in policy[one.context][deepest(one.context) :])
    ]
    if not counted:
        return None
    depth = max(len(items) for items in policy.values())
    by_position = [position_weights(counted, policy, k, agrees, known, clip) for k in range(depth)]
    gains = []
    for number, one in enumerate(counted):
        before, total = 1.0, 0.0
        for k in range(len(policy[one.context])):
            here, togo = by_position[k][number], sum(expected[one.context][k:])
            total += here * (earned_at(one.clicks, k, reward) - togo) + before * togo
            before = here
        gains.append(total)
    gains += [float(earned(one.clicks, reward)) for one in kept]
    logged = [earned(one.clicks, reward) for one in [*counted, *kept]]
    support = share_supported(mine, policy, {one.context for one in counted})
    return Estimate(sum(gains) / len(gains), sum(logged) / len(logged), support)


def expected_rewards(kind: str, theta: Sequence[float], position: Sequence[float], reward: str) -> list[float]:
    """The expected reward of every position, over all ways to click on the list."""
    actual = [0.0] * len(theta)
    for clicks in product((0, 1), repeat=len(theta)):
        chance = probability(kind, clicks, theta, position)
        for k in range(len(theta)):
            actual[k] += chance * earned_at(clicks, k, reward)
    return actual


def probability(kind: str, clicks: Sequence[int], theta: Sequence[float], position: Sequence[float]) -> float:
    """Of these clicks: walking down the list, with the chance that somebody is still reading."""
    if kind == "pbm":
        return prod(p * t if c else 1 - p * t for c, t, p in zip(clicks, theta, position, strict=True))
    reading, gone = 1.0, 0.0
    for c, t, go_on in zip(clicks, theta, position, strict=True):
        if c:
            reading, gone = reading * t * go_on, reading * t * (1 - go_on)
        else:
            reading, gone = reading * (1 - t), gone
    return reading + gone
