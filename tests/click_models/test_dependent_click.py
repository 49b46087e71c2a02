"""The dependent-click model against plain loops.

``tail=em`` is a fixed point: the package stops when a step moves no parameter by more than 1e-7, the loop at 1e-11.
At the contraction rates that logs have, the two are then within 1e-4 of each other, which is what is asserted.
"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.errors import UsageError
from prudent.click_models import DependentClick
from prudent.click_models.continuation import find_terms, sum_rates
from prudent.click_models.evidence import Evidence
from prudent.click_models.likelihood import posterior_mean
from prudent.click_models.world import World, draw, make_world, pairs_of
from prudent.counts.lists import ListBatch
from tests import reference
from tests.fitted import position_parameter
from tests.reference import LoggedList
from tests.strategies import by_name, count, logs, quick_counts, table

probabilities = st.sampled_from([0.0, 0.3, 0.65, 1.0]) | st.floats(0, 1)
ONE_ITEM: list[LoggedList] = [("q", ("a",), (1,))] * 3
NO_CLICK: list[LoggedList] = [("q", ("a", "b"), (0, 0))] * 30
LONG_TAILS: list[LoggedList] = [("q", tuple("abcdefgh"), (1, 0, 0, 0, 0, 0, 0, 0))] * 500 + [("q", ("b", "a"), (1, 1))]
SHORT_AND_LONG: list[LoggedList] = [
    *[("q", ("a", "b", "c"), (1, 0, 0))] * 40,
    *[("q", ("a", "c"), (1, 0))] * 60,
    *[("q", ("a",), (1,))] * 80,
    *[("q", ("c", "a", "b"), (0, 1, 1))] * 20,
]


def assert_same_tail(lists: list[LoggedList], evidence: Evidence, given: list[float] | None = None) -> None:
    expected, continuation = reference.tail_em(lists, given)
    found = by_name(lists, evidence.positive, evidence.negative)
    shown = reference.impressions(lists)
    for pair, (positive, negative) in expected.items():
        assert found[pair][0] == positive
        assert abs(found[pair][1] - negative) <= 1e-4 * shown[pair], "expected examinations, per impression"
        theta, other = ((positive + 1) / (positive + n + 2) for n in (negative, found[pair][1]))
        assert abs(theta - other) <= 1e-4
    found_continuation = position_parameter(evidence.fitted)
    np.testing.assert_allclose(found_continuation, continuation[: reference.longest(lists)], atol=1e-4)


# --- tail=truncate ------------------------------------------------------------------------------------------------


def test_truncated_by_hand() -> None:
    lists: list[LoggedList] = [
        ("q", ("a", "b", "c"), (1, 0, 0)),
        ("q", ("b", "a", "c"), (1, 0, 1)),
        ("q", ("c",), (0,)),
    ]
    evidence = DependentClick(tail="truncate").evidence(quick_counts(lists))
    assert evidence.positive.tolist() == [1, 1, 1]
    assert evidence.negative.tolist() == [1, 0, 1]  # a below b's click and above c's; b and c below a's: not read
    # Of two clicks at position 1 one was followed by another; no click at 2; position 3 takes the value of 2.
    assert evidence.fitted.parameters["continuation"].tolist() == [0.5, 0.5, 0.5]


@settings(max_examples=150, deadline=None)
@given(lists=logs())
def test_truncated_equals_a_plain_loop(lists: list[LoggedList]) -> None:
    evidence = DependentClick(tail="truncate").evidence(quick_counts(lists))
    assert by_name(lists, evidence.positive, evidence.negative) == reference.truncated(lists)
    continuation = evidence.fitted.parameters["continuation"]
    np.testing.assert_allclose(continuation, reference.truncated_continuation(lists), atol=1e-9)


# --- tail=em ------------------------------------------------------------------------------------------------------


def test_one_tail_by_hand() -> None:
    """One list, a click and one item below it, λ known: θ and w solve two equations.

    w = λ(1 − θ) / (1 − λ + λ(1 − θ)), for λ = ½ (1 − θ) / (2 − θ); θ = 2r / (w + 2) with r = (1 + 1) / (1 + w + 2), of
    one click in 1 + w examinations. Hence (1 − 2w)(3 + w)(2 + w) = 4(1 − w), that is 2w³ + 9w² + 3w − 2 = 0.
    """
    evidence = DependentClick(continuation=(0.5, 0.5)).evidence(quick_counts([("q", ("a", "b"), (1, 0))]))
    (read,) = (root.real for root in np.roots([2, 9, 3, -2]) if root.real > 0)
    assert evidence.positive.tolist() == [1, 0]
    assert evidence.negative[0] == 0
    assert evidence.negative[1] == pytest.approx(read, abs=1e-6)


@settings(max_examples=150, deadline=None)
@example(ONE_ITEM)
@example(NO_CLICK)
@example(LONG_TAILS)
@example(SHORT_AND_LONG)
@given(lists=logs())
def test_tail_equals_a_plain_loop(lists: list[LoggedList]) -> None:
    evidence = DependentClick().evidence(quick_counts(lists))
    assert_same_tail(lists, evidence)
    assert [*evidence.fitted.parameters] == ["continuation"]


@settings(max_examples=150, deadline=None)
@given(lists=logs(), continuation=st.lists(probabilities, min_size=5, max_size=6))
def test_tail_equals_a_plain_loop_when_continuation_is_given(
    lists: list[LoggedList], continuation: list[float]
) -> None:
    evidence = DependentClick(continuation=tuple(continuation)).evidence(quick_counts(lists))
    assert_same_tail(lists, evidence, continuation)
    assert evidence.fitted.parameters == {}


def test_a_longer_log_with_many_tails() -> None:
    """Where EM is slow: most lists end in a long tail, so that clicks tell little about reading on."""
    rng = np.random.default_rng(11)
    theta, continuation = rng.beta(1, 8, 12), (0.9, 0.8, 0.7, 0.9, 0.95, 0.9)
    lists: list[LoggedList] = []
    for _ in range(3_000):
        items = rng.permutation(12)[: rng.integers(2, 7)]
        clicks, reads = [], True
        for item, goes_on in zip(items, continuation, strict=False):
            clicks.append(int(reads and rng.random() < theta[item]))
            reads = reads and not (clicks[-1] and rng.random() > goes_on)
        lists.append((int(items[0] % 2), tuple(items.tolist()), tuple(clicks)))
    assert_same_tail(lists, DependentClick().evidence(quick_counts(lists)))


def test_given_continuation_decides_how_much_of_a_tail_was_read() -> None:
    """λ = 0: nothing, as `truncate` has it. λ = 1: everything. Between: more the higher it is."""
    lists = SHORT_AND_LONG
    counts = quick_counts(lists)
    negative = [DependentClick(continuation=(c,) * 3).evidence(counts).negative for c in (0, 0.2, 0.5, 0.8, 1)]
    np.testing.assert_allclose(negative[0], DependentClick(tail="truncate").evidence(counts).negative)
    all_read = counts.cells.per_pair() - counts.cells.per_pair(counts.cells.click)
    np.testing.assert_allclose(negative[-1], all_read)
    for less, more in pairwise(negative):
        assert (less <= more).all()
        assert less.sum() < more.sum()


# --- λ as a ratio of click rates ----------------------------------------------------------------------------------


def simulated(world: World, lists: int) -> ListBatch:
    drawn = next(draw(world, lists=lists, seed=4, chunk=lists))
    return ListBatch(pairs_of(world), drawn.items, drawn.clicks > 0, np.ones(lists, np.int64))


def test_ratio_by_hand() -> None:
    """Right below a click, b was clicked in 2 of 4 lists and a in 0 of 6; without one above in 6 of 8 and 4 of 6.

    λ has one pseudo-click that was followed as often as on average over positions, of which there is one here.
    """
    lists: list[LoggedList] = [
        *[("q", ("a", "b"), (1, 1))] * 2,
        *[("q", ("a", "b"), (1, 0))] * 2,
        *[("q", ("b", "a"), (1, 0))] * 6,
        *[("q", ("b", "a"), (0, 0))] * 2,
    ]
    cells = quick_counts(lists).cells
    rates = sum_rates(find_terms(cells, 2), 2)
    assert rates.clicks.tolist() == pytest.approx([2 * 8 / 12 + 0 * 6 / 12])
    assert rates.certain.tolist() == pytest.approx([6 * 4 / 12 + 4 * 6 / 12])
    fitted = DependentClick().fit(cells, 2)
    mean = (4 / 3 + 0.5) / (4 + 1)
    np.testing.assert_allclose(fitted.continuation, (4 / 3 + mean) / (4 + 1))
    assert not fitted.doubt


@pytest.mark.parametrize("exploration", [1.0, 1_000.0], ids=["production", "uniform"])
@pytest.mark.parametrize("truth", [0.9, 0.95])
def test_continuation_and_value_on_a_large_log(truth: float, exploration: float) -> None:
    """400,000 lists: a ratio has a standard error of .005 to .007, shrunken to their mean .0025 to .0035.

    Four of those at every position, and 2.5 for the mean, of which the value of a list is about (1 − λ)-proportional.
    The former estimate was off by .02 to .06 here, and the value of a list by a half.
    """
    model = f"dcm(continuation=[{', '.join([str(truth)] * 10)}])"
    world = make_world(model, contexts=300, items=(20, 30), exploration=exploration, seed=1)
    lists = simulated(world, 400_000)
    fitted = DependentClick().fit(lists.cells, 10)
    np.testing.assert_allclose(fitted.continuation, truth, atol=0.014)
    assert abs(fitted.continuation.mean() - truth) < 0.005
    assert not fitted.doubt
    evidence = fitted.evidence(lists.cells)
    theta = posterior_mean(evidence.positive, evidence.negative)
    some = lists.items[:5_000]
    found, expected = fitted.value(theta[some]).mean(), world.users.value(world.attraction[some]).mean()
    assert found == pytest.approx(expected, rel=0.005 / (1 - truth))


def test_continuation_is_unbiased_where_pairs_are_rare() -> None:
    """Two lists per context: an estimate that shrinks the click rate of each item is .07 too low.

    The mean of nine positions has a standard error of about .008 here.
    """
    model = f"dcm(continuation=[{', '.join(['0.9'] * 10)}])"
    world = make_world(model, contexts=20_000, items=(20, 30), seed=1)
    fitted = DependentClick().fit(simulated(world, 40_000).cells, 10)
    assert abs(fitted.continuation.mean() - 0.9) < 0.02


def test_continuation_that_differs_by_position_is_found() -> None:
    """λ rises from .65 to .90. The standard error of a ratio is .005; the mean would be off by .12 at both ends."""
    world = make_world("dcm", contexts=300, items=(20, 30), seed=1)
    fitted = DependentClick().fit(simulated(world, 400_000).cells, 10)
    np.testing.assert_allclose(fitted.continuation[:9], position_parameter(world.users)[:9], atol=0.02)


def test_a_log_of_other_users_contradicts_the_model() -> None:
    """Users who click either nearly everything or nearly nothing: a click above says that more will follow."""
    rng = np.random.default_rng(5)
    eager = rng.random(3_000) < 0.3
    clicks = rng.random((3_000, 4)) < np.where(eager, 0.6, 0.05)[:, None]
    lists: list[LoggedList] = [
        (int(i % 40), tuple("abcd"[j] for j in rng.permutation(4)), tuple(row))
        for i, row in enumerate(clicks.astype(int).tolist())
    ]
    fitted = DependentClick().fit(quick_counts(lists).cells, 4)
    *_, ratios = reference.continuation_ratios(lists)
    assert max(ratios) > 5
    assert fitted.doubt.startswith("The log contradicts dcm: right below a click at position ")
    assert "3 of 3 positions" in fitted.doubt
    assert fitted.continuation.max() < 1
    comparison = prudent.compare(prudent.Log(table(lists)), model=["dcm", "pbm"])
    assert comparison["dcm"].doubt.startswith("The log contradicts dcm")
    assert any(note.startswith("dcm: The log contradicts") for note in comparison.notes)
    assert any(verdict.startswith("The log contradicts dcm") for verdict in prudent.check(count(lists)).verdicts())
    with pytest.warns(prudent.PrudentWarning, match="contradicts dcm"):
        policy = prudent.rank(count(lists), "dcm")
    assert policy.manifest.results["doubt"].startswith("The log contradicts dcm")


@settings(max_examples=100, deadline=None)
@given(lists=logs())
def test_doubt_equals_a_plain_loop(lists: list[LoggedList]) -> None:
    doubt = DependentClick().fit(quick_counts(lists).cells, reference.longest(lists)).doubt
    if doubt:
        assert max(reference.continuation_ratios(lists)[1]) > 2


def test_false_doubts_are_rare() -> None:
    """At λ = 1, where ratios are on the border: about 2.5 % of logs; of 60, six or more have a probability of .5 %."""
    model = f"dcm(continuation=[{', '.join(['1'] * 5)}])"
    doubts = 0
    for seed in range(60):
        world = make_world(model, contexts=50, items=(6, 9), length=5, seed=seed)
        doubts += bool(DependentClick().fit(simulated(world, 3_000).cells, 5).doubt)
    assert doubts < 6


# --- λ and the order of lists -------------------------------------------------------------------------------------


@pytest.mark.parametrize("tail", ["em", "truncate"])
def test_the_last_position_borrows_from_the_one_above(tail: str) -> None:
    """Nobody can be seen to go on from there; λ̂ = 0 would make it the most satisfying position."""
    model = DependentClick(tail=tail)  # type: ignore[arg-type]
    lists: list[LoggedList] = [
        *[("q", ("a", "b", "c"), (1, 1, 1))] * 9,
        *[("q", ("c", "b", "a"), (1, 1, 1))] * 9,
        *[("q", ("b", "c", "a"), (1, 1, 0))] * 2,
    ]
    continuation = model.evidence(quick_counts(lists)).fitted.parameters["continuation"]
    assert continuation[2] == continuation[1] > 0.5
    lists = [*[("q", ("a", "b"), (1, 1))] * 8, *[("q", ("b", "a"), (1, 1))] * 8, *[("q", ("b", "a"), (1, 0))] * 2]
    continuation = model.evidence(quick_counts(lists)).fitted.parameters["continuation"]
    assert continuation[1] == continuation[0] > 0.5


@pytest.mark.parametrize("tail", ["em", "truncate"])
@pytest.mark.parametrize("lists", [ONE_ITEM, NO_CLICK], ids=["one position", "no click"])
def test_nothing_known_of_continuation_is_one_half(tail: str, lists: list[LoggedList]) -> None:
    evidence = DependentClick(tail=tail).evidence(quick_counts(lists))  # type: ignore[arg-type]
    assert set(evidence.fitted.parameters["continuation"].tolist()) == {0.5}


def test_only_a_set_continuation_places_items() -> None:
    cells, scores = quick_counts(SHORT_AND_LONG).cells, np.array([[0.5, 0.4, 0.3]])
    assert DependentClick().fit(cells, 3).place(scores).tolist() == [[0, 1, 2]]
    assert DependentClick(tail="truncate").fit(cells, 3).place(scores).tolist() == [[0, 1, 2]]
    fitted = DependentClick(continuation=(0.9, 0.2, 0.5, 0.1)).fit(cells, 3)
    assert fitted.continuation.tolist() == [0.9, 0.2, 0.5]
    assert fitted.place(scores).tolist() == [[1, 2, 0]], "the best item where most clicks are the last"


# --- settings -----------------------------------------------------------------------------------------------------


def test_too_few_continuation_probabilities() -> None:
    with pytest.raises(UsageError, match="continuation has 2 values, but the log shows lists of up to 3 positions"):
        DependentClick(continuation=(0.5, 0.5)).evidence(quick_counts(SHORT_AND_LONG))


@pytest.mark.parametrize(
    "model", [DependentClick(), DependentClick(continuation=(1, 1, 1)), DependentClick(continuation=(0, 0, 0))]
)
def test_items_that_are_always_clicked_do_not_end_in_nan(model: DependentClick) -> None:
    """An extrapolation may reach θ = 1, where a tail of such items has probability 0."""
    lists: list[LoggedList] = [("q", ("a", "b", "c"), (1, 1, 0))] * 199 + [("q", ("d", "b"), (1, 0))]
    evidence = model.evidence(quick_counts(lists))
    assert np.isfinite(evidence.negative).all()
    assert (evidence.negative >= 0).all()
    assert np.isfinite(position_parameter(evidence.fitted)).all()
