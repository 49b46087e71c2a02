"""Per context: the list of its own clicks, or that of its groups, or the incumbent's, by relative lower bounds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import beta

from prudent.bounds import parse
from prudent.bounds.anchored import LearnedAnchored
from prudent.counts.groups import Signals
from prudent.policies.best_lists import best_lists
from tests.bounds.small import evidence
from tests.bounds.test_groups import NAMES, learned, logged


@pytest.fixture(scope="module")
def bound() -> LearnedAnchored:
    """Fitted to a log whose groups tell."""
    some, keys = logged(0.5)
    _, effects = learned(some, keys)
    known = replace(some, signals=effects.of(some, keys))
    found = parse("anchored").learn(known, 0)
    assert isinstance(found, LearnedAnchored)
    assert not found.prior.opposed
    return found


def listed(
    bound: LearnedAnchored, clicks: list[int], skips: list[int], shown: list[int], signals: list[list[float]] | None
) -> list[int]:
    """The list of one context."""
    few = evidence(clicks, skips, [0] * len(clicks), shown)
    if signals is not None:
        few = replace(few, signals=Signals(NAMES, np.array(signals)))
    return [int(row) for row in best_lists(few, bound.score(few), len(clicks)).row]


def plain(
    bound: LearnedAnchored, clicks: list[int], skips: list[int], shown: list[int], signals: list[list[float]]
) -> list[int]:
    """The same by the formulas, item by item."""
    curve = bound.prior.curve
    logs = [np.log1p(one) for one in shown]
    weight = [1.0] * len(shown)
    slopes = [curve.by_group[name].slope for name in NAMES]
    shift = [sum(b * g for b, g in zip(slopes, own, strict=True)) for own in signals]
    lower, stay, mean = [], [], []
    for item, (n, m) in enumerate(zip(clicks, skips, strict=True)):
        x = logs[item] - np.average(logs, weights=weight)
        bends = (x, max(0.0, x - curve.knot) ** 2 / 4)
        eta = curve.intercept + curve.by_size * np.log1p(sum(shown)) + shift[item]
        mu = expit(eta + sum(b * z for b, z in zip(curve.slopes, bends, strict=False)))
        s = curve.strength / np.sqrt(mu)
        posterior = beta(mu * s + n, (1 - mu) * s + m)
        lower.append(posterior.ppf(bound.delta / 2))
        stay.append(posterior.ppf(0.8 * bound.delta))
        mean.append(posterior.mean())
    left = sorted(range(len(shown)), key=lambda item: -shown[item])
    found = []
    while left:
        leaders = [item for item in left if clicks[item] or shift[item] > min(shift)]
        best = max(leaders, key=lambda item: (lower[item], mean[item], shown[item], -item), default=left[0])
        found.append(best if lower[best] > stay[left[0]] else left[0])
        left.remove(found[-1])
    return found


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_an_item_rises_where_its_lower_bound_beats_what_it_passes(bound: LearnedAnchored, data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 5))

    def numbers(*of: int) -> list[int]:
        return data.draw(st.lists(st.sampled_from(of), min_size=size, max_size=size))

    clicks, skips, more = numbers(0, 0, 1, 3, 100), numbers(0, 1, 5, 400), numbers(0, 1, 7)
    shown = [n + m + rest for n, m, rest in zip(clicks, skips, more, strict=True)]
    # No two items are alike.
    shown = [10 * views + item + 1 for item, views in enumerate(shown)]
    signal = st.floats(-2, 2).map(lambda value: round(value, 3))
    signals = data.draw(st.lists(st.lists(signal, min_size=2, max_size=2), min_size=size, max_size=size))
    assert listed(bound, clicks, skips, shown, signals) == plain(bound, clicks, skips, shown, signals)


def test_clicks_of_its_own_take_over_as_they_come(bound: LearnedAnchored) -> None:
    """Item 2 is the best elsewhere, item 1 here: no number of lists is set from which on the context is left alone."""
    elsewhere = [[0.0, 0.0], [0.0, 0.0], [1.5, 1.5]]
    alone = [[0.0, 0.0]] * 3
    lists = []
    for times in (0, 1, 4, 16, 64, 256, 1024):
        clicks, views = [times, 4 * times, times], [10 * times + 3, 10 * times + 2, 10 * times + 1]
        skips = [10 * times - n for n in clicks]
        lists.append(listed(bound, clicks, skips, views, elsewhere))
        assert listed(bound, [0] * 3, [0] * 3, views, None) == [0, 1, 2], "neither knows anything"
        if times >= 256:
            assert lists[-1] == listed(bound, clicks, skips, views, alone), "its own clicks decide"
    assert lists[0][0] == 2, "without a click here, that of the groups"
    assert lists[-1][0] == 1
    first = [one[0] for one in lists]
    assert first == sorted(first, reverse=True), "once its own clicks decide, they go on to"


def test_an_item_that_clicks_elsewhere_reject_loses_its_place(bound: LearnedAnchored) -> None:
    """Nothing is known of the item below it, which is then better by its groups."""
    assert listed(bound, [0, 0, 0], [0, 0, 0], [3, 2, 1], [[-1.5, -1.5], [0.0, 0.0], [0.0, 0.0]]) == [1, 2, 0]
    assert listed(bound, [0, 0, 0], [0, 0, 0], [3, 2, 1], [[-1.5, -1.5]] * 3) == [0, 1, 2]
