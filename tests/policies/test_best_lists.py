"""Best lists against brute force, the tie rule against sorting, and incumbent lists against a plain loop."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prudent.base.arrays import FloatArray
from prudent.bounds.base import Scores
from prudent.click_models import Cascade, DependentClick, Evidence, PositionBased
from prudent.click_models.base import FittedModel
from prudent.click_models.dependent_click import FittedDependentClick
from prudent.policies.best_lists import best_lists, list_values
from prudent.policies.incumbent import incumbent_lists
from prudent.policies.list_arrays import Lists
from tests import reference
from tests.reference import LoggedList
from tests.strategies import logs, quick_counts

WORLDS = 250  # of 10 contexts each: 2,500 cases per model
CONTEXTS = 10

MODELS: dict[str, Callable[[FloatArray], FittedModel]] = {
    "cm": lambda weight: Cascade().typical(len(weight)),
    "dcm": lambda weight: DependentClick(continuation=tuple(1 - weight)).typical(len(weight)),
    "pbm": lambda weight: PositionBased(examination=tuple(weight)).typical(len(weight)),
}


def make_evidence(sizes: list[int], fitted: FittedModel, impressions: list[int] | None = None) -> Evidence:
    """Contexts of these sizes; what was counted does not matter to ranking, except in ties."""
    pairs = sum(sizes)
    return Evidence(
        context=np.repeat(np.arange(len(sizes)), sizes),
        item=np.concatenate([np.arange(size) for size in sizes]),
        positive=np.zeros(pairs),
        negative=np.zeros(pairs),
        impressions=np.ones(pairs) if impressions is None else np.array(impressions, float),
        fitted=fitted,
        expected=np.zeros(pairs),
        squares=np.zeros(pairs),
        discounted=np.zeros(pairs),
        hazard=np.zeros(pairs),
    )


def placed(lists: Lists, contexts: int) -> list[dict[int, int]]:
    """For each context: rank -> pair."""
    found: list[dict[int, int]] = [{} for _ in range(contexts)]
    for row, context, rank in zip(*(column.tolist() for column in lists), strict=True):
        assert rank not in found[context], "one item per rank"
        found[context][rank] = row
    return found


# --- brute force --------------------------------------------------------------------------------------------------


def random_scores(rng: np.random.Generator, size: int) -> FloatArray:
    """Like those of a posterior; like Hoeffding's, which fall far below 0; or with many ties."""
    kind = rng.integers(3)
    if kind == 0:
        return rng.random(size)
    if kind == 1:
        return rng.random(size) - 3 * rng.random(size)
    return np.asarray(rng.choice([-0.5, 0.0, 0.2, 0.2, 1.0], size))


def random_weight(rng: np.random.Generator, kind: str, length: int) -> FloatArray:
    if kind == "cm":
        return np.ones(length)
    if rng.random() < 0.3:
        return np.asarray(rng.choice([0.0, 0.5, 1.0], length))
    return rng.random(length)  # in no order: the heaviest position may be any


@pytest.mark.parametrize("kind", MODELS)
def test_no_list_has_a_higher_value(kind: str) -> None:
    """Every permutation of every subset is tried, in 2,500 contexts of 1 to 5 items, for lists of 1 to 3 positions."""
    rng = np.random.default_rng(sorted(MODELS).index(kind))
    not_in_order = 0
    for _ in range(WORLDS):
        length = int(rng.integers(1, 4))
        weight = random_weight(rng, kind, length)
        sizes = rng.integers(1, 6, CONTEXTS).tolist()
        scores = random_scores(rng, sum(sizes))
        evidence = make_evidence(sizes, MODELS[kind](weight))
        lists = placed(best_lists(evidence, Scores(scores, scores), length), CONTEXTS)
        for context, chosen in enumerate(lists):
            size = min(sizes[context], length)
            assert sorted(chosen) == list(range(1, size + 1)), "a full list, or all there is"
            assert len(set(chosen.values())) == size, "no item twice"
            own = scores[evidence.context == context].tolist()
            found = reference.VALUE[kind]([scores[chosen[rank + 1]] for rank in range(size)], weight[:size].tolist())
            assert found == pytest.approx(reference.best_value(kind, own, weight.tolist()), abs=1e-12)
            not_in_order += any(scores[chosen[k]] < scores[chosen[k + 1]] for k in range(1, size))
    assert (not_in_order > 100) == (kind != "cm"), "weights out of order were among the cases"


@pytest.mark.parametrize("kind", MODELS)
def test_list_values_are_those_of_the_formula(kind: str) -> None:
    """Where a bound is negative or −∞, θ ≥ 0 is the better one."""
    rng = np.random.default_rng(9)
    sizes = [5, 2, 1, 3]
    for _ in range(50):
        weight = random_weight(rng, kind, 3)
        scores = random_scores(rng, sum(sizes))
        scores[[0, 7]] = -np.inf
        evidence = make_evidence(sizes, MODELS[kind](weight))
        lists = best_lists(evidence, Scores(scores, scores), 3)
        values = list_values(evidence, lists, scores, 3, len(sizes))
        for context, chosen in enumerate(placed(lists, len(sizes))):
            attraction = [max(0.0, scores[chosen[rank]]) if rank in chosen else 0.0 for rank in (1, 2, 3)]
            assert values[context] == pytest.approx(reference.VALUE[kind](attraction, weight.tolist()), abs=1e-12)


def test_fitted_continuation_does_not_move_items() -> None:
    """λ_K is not identified, so `dcm` without given λ goes from the top down, whatever the weights."""
    learned = FittedDependentClick(DependentClick(), 3, np.array([0.9, 0.1, 0.5]), learned=True)
    evidence = make_evidence([4], learned)
    scores = np.array([0.2, 0.8, 0.1, 0.5])
    assert placed(best_lists(evidence, Scores(scores, scores), 3), 1) == [{1: 1, 2: 3, 3: 0}]
    given = make_evidence([4], DependentClick(continuation=(0.9, 0.1, 0.5)).typical(3))
    assert placed(best_lists(given, Scores(scores, scores), 3), 1) == [{2: 1, 3: 3, 1: 0}]


# --- ties ---------------------------------------------------------------------------------------------------------

few = st.sampled_from([-np.inf, -0.5, 0.0, 0.25, 0.5])


@settings(max_examples=300, deadline=None)
@given(data=st.data(), length=st.integers(1, 6))
def test_ties_go_to_mean_then_impressions_then_name(data: st.DataObject, length: int) -> None:
    """Lower bounds of −∞ included, which Hoeffding gives to what was never shown."""
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    pairs = sum(sizes)
    lower, mean = (np.array(data.draw(st.lists(few, min_size=pairs, max_size=pairs))) for _ in range(2))
    impressions = data.draw(st.lists(st.integers(0, 2), min_size=pairs, max_size=pairs))
    evidence = make_evidence(sizes, Cascade().typical(length), impressions)
    lists = best_lists(evidence, Scores(lower, mean), length)
    expected = []
    for context in range(len(sizes)):
        rows = np.flatnonzero(evidence.context == context).tolist()
        rows.sort(key=lambda row: (-lower[row], -mean[row], -impressions[row], row))
        expected.append(dict(enumerate(rows[:length], start=1)))
    assert placed(lists, len(sizes)) == expected
    keys = list(zip(lists.context.tolist(), lists.rank.tolist(), strict=True))
    assert all(a < b for a, b in pairwise(keys)), "sorted by context and rank"


def test_equal_weights_are_filled_from_the_top() -> None:
    evidence = make_evidence([4], PositionBased(examination=(0.5, 0.9, 0.5, 0.9)).typical(4))
    scores = np.array([0.4, 0.3, 0.2, 0.1])
    assert placed(best_lists(evidence, Scores(scores, scores), 4), 1) == [{2: 0, 4: 1, 1: 2, 3: 3}]


@pytest.mark.parametrize("length", [1, 3, 7, 40])
def test_only_the_best_are_sorted_whatever_the_sizes(length: int) -> None:
    """Contexts of 1 to 200 items, of which those that cannot be listed are left out before sorting."""
    rng = np.random.default_rng(length)
    sizes = rng.integers(1, 200, 60).tolist()
    scores = rng.choice(np.linspace(-1, 1, 50), sum(sizes))
    scores[rng.random(len(scores)) < 0.2] = -np.inf
    evidence = make_evidence(sizes, Cascade().typical(length))
    lists = placed(best_lists(evidence, Scores(scores, scores), length), len(sizes))
    for context, chosen in enumerate(lists):
        rows = np.flatnonzero(evidence.context == context)
        best = rows[np.argsort(-scores[rows], kind="stable")][:length]
        assert [chosen[rank] for rank in sorted(chosen)] == best.tolist()


def test_no_context_has_no_list() -> None:
    none, nothing = np.zeros(0, np.int64), np.zeros(0)
    empty = Evidence(none, none, nothing, nothing, nothing, Cascade().typical(2), *[nothing] * 4)
    assert [len(column) for column in best_lists(empty, Scores(nothing, nothing), 2)] == [0, 0, 0]


# --- lengths ------------------------------------------------------------------------------------------------------


def test_positions_that_no_log_has_shown_weigh_nothing() -> None:
    evidence = make_evidence([4], PositionBased(examination=(1, 0.5)).typical(2))
    scores = np.array([0.4, 0.3, 0.2, 0.1])
    lists = best_lists(evidence, Scores(scores, scores), 4)
    assert placed(lists, 1) == [{1: 0, 2: 1, 3: 2, 4: 3}]
    assert list_values(evidence, lists, scores, 4, 1).tolist() == pytest.approx([0.4 + 0.5 * 0.3])


def test_a_short_list_fills_the_first_positions() -> None:
    """Two items, and the heaviest position is the third: a list has no gaps."""
    evidence = make_evidence([2], PositionBased(examination=(0.2, 0.5, 1.0)).typical(3))
    scores = np.array([0.9, 0.1])
    assert placed(best_lists(evidence, Scores(scores, scores), 3), 1) == [{2: 0, 1: 1}]


# --- incumbent lists --------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(lists=logs(), length=st.integers(1, 6))
def test_incumbent_lists_equal_a_plain_loop(lists: list[LoggedList], length: int) -> None:
    pairs = sorted(reference.impressions(lists))
    contexts = sorted({context for context, _ in pairs})
    found = placed(incumbent_lists(quick_counts(lists).cells, length), len(contexts))
    for context, chosen in zip(contexts, found, strict=True):
        expected = reference.incumbent_list(lists, context, length)
        assert {rank: pairs[row] for rank, row in chosen.items()} == {k: (context, i) for k, i in expected.items()}


@settings(max_examples=150, deadline=None)
@given(data=st.data(), size=st.integers(1, 12), length=st.integers(1, 5))
def test_only_what_is_offered_is_listed(data: st.DataObject, size: int, length: int) -> None:
    lower = np.array(data.draw(st.lists(st.sampled_from([-np.inf, -0.5, 0.0, 0.2, 0.7]), min_size=size, max_size=size)))
    eligible = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    zeros = np.zeros(size)
    evidence = Evidence(zeros.astype(int), np.arange(size), zeros, zeros, zeros, Cascade().typical(3), *[zeros] * 4)
    listed = best_lists(evidence, Scores(lower, zeros), length, eligible).row.tolist()
    assert listed == sorted(np.flatnonzero(eligible).tolist(), key=lambda row: (-lower[row], row))[:length]
