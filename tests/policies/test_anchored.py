"""The incumbent's order, from which items rise on evidence alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.errors import UsageError
from prudent.bounds import Scores, bounds
from prudent.bounds.base import Anchor
from prudent.click_models import click_models
from prudent.policies.best_lists import anchored_lists
from tests import reference
from tests.bounds.small import evidence
from tests.reference import LoggedList, Name
from tests.strategies import count, logs

LEVELS = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])


@settings(max_examples=200, deadline=None)
@given(data=st.data(), sizes=st.lists(st.integers(1, 8), min_size=1, max_size=4), length=st.integers(1, 6))
def test_merge_equals_a_plain_loop(data: st.DataObject, sizes: list[int], length: int) -> None:
    pairs = sum(sizes)

    def numbers(values: st.SearchStrategy[float]) -> np.ndarray:
        return np.array(data.draw(st.lists(values, min_size=pairs, max_size=pairs)))

    context = np.repeat(np.arange(len(sizes)), sizes)
    shown = numbers(st.sampled_from([0.0, 1.0, 2.0, 5.0]))
    lower, stay = numbers(LEVELS), numbers(LEVELS) + 0.05
    stay = np.maximum(stay, lower)  # a higher quantile of the same posterior
    leads = numbers(st.booleans()).astype(bool)
    eligible = numbers(st.booleans()).astype(bool)
    preference = np.where(shown > 0, 0.0, numbers(LEVELS))  # of items that were never shown
    max_moves = data.draw(st.none() | st.integers(0, 4))
    some = evidence(np.zeros(pairs), np.zeros(pairs), context, shown)
    scores = Scores(lower, lower)
    low: dict[Name, float] = dict(enumerate(lower.tolist()))
    high: dict[Name, float] = dict(enumerate(stay.tolist()))
    merged = anchored_lists(
        some, scores, Anchor(lambda rows: stay[rows], leads, preference), length, eligible, max_moves
    )
    expected: list[tuple[int, int, int]] = []
    for c in range(len(sizes)):
        rows = [row for row in np.flatnonzero(context == c).tolist() if eligible[row]]
        order = sorted(rows, key=lambda row: (-shown[row], -preference[row], row))
        leaders = sorted((row for row in rows if leads[row]), key=lambda row: (-lower[row], -shown[row], row))
        chosen = reference.anchored_list(order, low, high, leaders, length, max_moves)
        expected += [(int(row), c, rank) for rank, row in enumerate(chosen, 1)]
    assert list(zip(*(column.tolist() for column in merged), strict=True)) == expected


def order_of(policy: prudent.Policy) -> dict[Name, list[Name]]:
    return {context: list(items) for context, items in policy.items()}


@pytest.mark.parametrize("model", ["cm", "dcm", "pbm(examination=[1, 0.6, 0.4, 0.3, 0.2])"])
@pytest.mark.filterwarnings("ignore:The log contradicts")
@settings(max_examples=20, deadline=None)
@given(lists=logs())
def test_a_context_without_clicks_keeps_its_incumbent_list(model: str, lists: list[LoggedList]) -> None:
    """And an item without a click passes none, unless logging is opposed."""
    if not any(any(clicks) for _, _, clicks in lists):
        lists = [*lists, ("clicked", ("a", "b"), (1, 0))]
    longest = reference.longest(lists)
    policy = prudent.rank(count(lists), model, bound="anchored")
    opposed = policy.manifest.results["fitted"]["prior"]["opposed"]
    clicked = {(c, item) for c, items, clicks in lists for item, click in zip(items, clicks, strict=True) if click}
    for context, items in order_of(policy).items():
        order = reference.production_order(lists, context)
        if not any(c == context for c, _ in clicked):
            assert items == order[:longest]
        elif not opposed:
            for place, item in enumerate(items):
                # In cm, clicks below the first are no evidence.
                if (context, item) not in clicked:
                    assert set(order[: order.index(item)]) <= set(items[:place]), "it passed one"


def test_lists_of_the_log_need_no_manifest_to_be_compared() -> None:
    """`differ` counts lists that moved on evidence, and no others."""
    lists: list[LoggedList] = [("seen once", ("b", "a", "c"), (0, 0, 0))]
    lists += [("often", ("x", "y", "z"), (0, 0, click)) for click in [1] * 40 + [0] * 20]
    policy = prudent.rank(count(lists), "dcm", bound="anchored")
    assert order_of(policy) == {"seen once": ["b", "a", "c"], "often": ["z", "x", "y"]}
    summary = policy.manifest.results["summary"]
    assert (summary["differ"], summary["unclicked"]) == (1, 0)
    free = prudent.rank(count(lists), "dcm", bound="mle").manifest.results["summary"]
    assert (free["differ"], free["unclicked"]) == (1, 1), "sorted by name, without a click"


def test_a_cap_on_moves() -> None:
    lists: list[LoggedList] = [("often", tuple("abcdef"), (0, 0, 0, 0, 0, click)) for click in [1] * 60 + [0] * 20]
    lists += [("other", tuple("abcdef"), (1, 0, 0, 0, 0, 0))] * 20
    free = prudent.rank(count(lists), "cm", bound="anchored")
    assert free["often"] == list("fabcde")
    capped = prudent.rank(count(lists), "cm", bound="anchored", max_moves=2)
    assert capped["often"] == list("abcfde")
    assert prudent.rank(count(lists), "cm", bound="anchored", max_moves=0)["often"] == list("abcdef")
    with pytest.raises(UsageError, match="max_moves needs bound=anchored"):
        prudent.rank(count(lists), "cm", bound="eb", max_moves=2)


def test_opposed_logging_lets_any_item_rise() -> None:
    """Production shows the worst items most, in many contexts: there its order is evidence against its first items."""
    rng = np.random.default_rng(3)
    lists: list[LoggedList] = []
    theta = np.array([0.05, 0.1, 0.3, 0.6])
    for context in range(40):
        for _ in range(60):
            items = tuple(rng.choice(4, 2, replace=False, p=[0.5, 0.3, 0.15, 0.05]).tolist())
            lists.append((context, items, tuple(int(rng.random() < theta[i]) for i in items)))
    scored = prudent.rank(count(lists), "pbm(examination=[1, 1])", bound="anchored")
    assert scored.manifest.results["fitted"]["prior"]["opposed"]
    best = np.mean([items[0] == 3 for _, items in scored.items()])
    assert best > 0.7


def test_the_prior_has_no_level_and_follows_the_hazard() -> None:
    """Its parameters maximise the likelihood that `hierarchical` has without levels, at the hazard as exposure."""
    rng = np.random.default_rng(5)
    lists: list[LoggedList] = []
    for context in range(30):
        weight = np.exp(rng.normal(0, 1, 6))
        theta = 1 / (1 + np.exp(2 - 0.8 * np.log(weight)))
        for _ in range(40):
            items = tuple(np.argsort(-np.log(weight) - rng.gumbel(size=6))[:4].tolist())
            lists.append((context, items, tuple(int(rng.random() < theta[i]) for i in items)))
    counted = click_models.parse("pbm(examination=[1, 1, 1, 1])").evidence(count(lists))
    fitted = bounds.parse("anchored").score(counted).fitted
    assert fitted["spread"] == 0
    assert not fitted["opposed"]
    assert fitted["slopes"][0] > 0.3
