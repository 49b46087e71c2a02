"""The dependent-click model against plain loops.

``tail=em`` is a fixed point: the package stops when a step moves no parameter by more than 1e-7, the loop at 1e-11.
At the contraction rates that logs have, the two are then within 1e-4 of each other, which is what is asserted.
"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from prudent.base.errors import UsageError
from prudent.click_models import DependentClick
from prudent.click_models.base import Evidence
from prudent.click_models.simulate import draw, make_world
from prudent.counts import lists as shown
from tests import reference
from tests.fitted import position_parameter
from tests.reference import LoggedList
from tests.strategies import by_name, logs, quick_counts

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


def test_rare_pairs_do_not_hide_that_users_read_on() -> None:
    """Ten lists per context, 25 to 30 items: most pairs are shown three times and hardly one is clicked.

    With one imagined click and one imagined skip per pair λ came out .14 too low on such logs; the error of a mean over
    eight positions is about .01 here, and what the fold of lists into counts forgets adds some .03.
    """
    world = make_world("dcm", contexts=1_500, items=(25, 30), zipf=0.0, exploration=3.0, seed=4)
    drawn = next(draw(world, lists=15_000, seed=4, chunk=15_000))
    context = np.repeat(np.arange(1_500), np.diff(world.offsets))
    lists = shown.ListBatch(context, drawn.items, drawn.clicks > 0, np.ones(len(drawn.items), np.int64))
    fitted = DependentClick().fit(lists.cells, 10)
    assert abs(np.mean(fitted.continuation[:8] - position_parameter(world.users)[:8])) < 0.05


# --- λ and the order of lists -------------------------------------------------------------------------------------


@pytest.mark.parametrize("tail", ["em", "truncate"])
def test_the_last_position_borrows_from_the_one_above(tail: str) -> None:
    """Nobody can be seen to go on from there; λ̂ = 0 would make it the most satisfying position."""
    model = DependentClick(tail=tail)  # type: ignore[arg-type]
    lists: list[LoggedList] = [*[("q", ("a", "b", "c"), (1, 1, 1))] * 9, ("q", ("a", "b", "c"), (1, 1, 0))]
    continuation = model.evidence(quick_counts(lists)).fitted.parameters["continuation"]
    assert continuation[2] == continuation[1] > 0.5
    lists = [*[("q", ("a", "b"), (1, 1))] * 8, *[("q", ("a", "b"), (1, 0))] * 2]
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
