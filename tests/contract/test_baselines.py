"""What every baseline must satisfy; a new one is covered the day it registers."""

import random
from dataclasses import fields
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prudent.base.errors import UsageError
from prudent.counts.lists import ListBatch
from prudent.policies.baselines import Choice, baselines, clip_for, fold
from tests.contract.test_spelling import values
from tests.reference import LoggedList
from tests.strategies import as_batch, logs

every_baseline = pytest.mark.parametrize("name", list(baselines))
clipped = [name for name in baselines if any(field.name == "clip" for field in fields(baselines[name]))]  # type: ignore[arg-type]
every_clipped_baseline = pytest.mark.parametrize("name", clipped)


def same(first: Choice, second: Choice) -> bool:
    arrays = [[*choice.lists, choice.adds, choice.best, choice.incumbent] for choice in (first, second)]
    return all(a.tobytes() == b.tobytes() for a, b in zip(*arrays, strict=True))


# --- spelling -----------------------------------------------------------------------------------------------------


@every_clipped_baseline
def test_infinity_can_be_written(name: str) -> None:
    assert baselines.parse(f"{name}(clip=inf)") == baselines.parse(name)
    assert str(baselines.parse(f"{name}(clip=50.0)")) == f"{name}(clip=50)"


@every_clipped_baseline
@pytest.mark.parametrize("clip", ["0", "-1", "nan", "-inf", "much", "[1, 2]"])
def test_refuses_a_clip_that_caps_nothing(name: str, clip: str) -> None:
    with pytest.raises(UsageError, match=r"clip is .*; it must be a number above 0, or inf for none"):
        baselines.parse(f"{name}(clip={clip})")


# --- lists --------------------------------------------------------------------------------------------------------


@every_baseline
@given(data=st.data())
def test_lists_are_lists(name: str, data: st.DataObject) -> None:
    shown = as_batch(data.draw(logs()))
    choice = data.draw(values(baselines, name)).choose(fold(shown))
    row, context, rank = choice.lists
    assert len(set(row.tolist())) == len(row), "no item twice"
    assert context.tolist() == shown.context[row].tolist()
    assert sorted(zip(context, rank, strict=True)) == list(zip(context, rank, strict=True))
    assert set(context.tolist()) == set(shown.context.tolist()), "each context has a list"
    for number in set(context.tolist()):
        ranks = rank[context == number].tolist()
        assert ranks == list(range(1, len(ranks) + 1))
        assert len(ranks) <= shown.length
    assert choice.adds.shape == row.shape
    assert choice.best.shape == shown.context.shape
    assert choice.incumbent.shape == (len(set(context.tolist())),)
    assert np.isfinite([*choice.adds, *choice.best, *choice.incumbent]).all()
    assert (choice.adds <= choice.best[row] + 1e-9).all(), "nowhere more than at the best place"


@every_baseline
@given(data=st.data())
def test_lists_alone_are_the_same_lists(name: str, data: st.DataObject) -> None:
    baseline, totals = data.draw(values(baselines, name)), fold(as_batch(data.draw(logs())))
    for actual, expected in zip(baseline.lists(totals), baseline.choose(totals).lists, strict=True):
        assert actual.tolist() == expected.tolist()


@every_baseline
@given(data=st.data())
def test_neither_order_nor_rows_matter(name: str, data: st.DataObject) -> None:
    """Shuffled, and with equal lists in one row or in several: the same to the last bit."""
    baseline, lists = data.draw(values(baselines, name)), data.draw(logs())
    expected = baseline.choose(fold(as_batch(lists)))
    assert same(baseline.choose(fold(as_batch(random.Random(0).sample(lists, len(lists))))), expected)
    shown = as_batch(lists)
    rows, which = np.unique(np.hstack([shown.items, shown.clicks]), axis=0, return_inverse=True)
    items, clicks = np.hsplit(rows, 2)
    together = ListBatch(shown.context, items, clicks > 0, np.bincount(which.ravel()))
    assert same(baseline.choose(fold(together)), expected)


@every_baseline
@given(data=st.data())
def test_a_log_shown_twice_says_the_same(name: str, data: st.DataObject) -> None:
    baseline, shown = data.draw(values(baselines, name)), as_batch(data.draw(logs()))
    once = baseline.choose(fold(shown))
    twice = baseline.choose(fold(ListBatch(shown.context, shown.items, shown.clicks, 2 * shown.n)))
    assert twice.lists.row.tolist() == once.lists.row.tolist()
    np.testing.assert_allclose(twice.adds, once.adds, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(twice.best, once.best, rtol=1e-9, atol=1e-9)


@every_baseline
def test_without_clicks_nothing_is_worth_anything(name: str) -> None:
    lists: list[LoggedList] = [("x", ("a", "b"), (0, 0)), ("x", ("b", "a"), (0, 0)), ("x", ("b", "a"), (0, 0))]
    choice = baselines[name]().choose(fold(as_batch(lists)))
    assert choice.lists.row.tolist() == [1, 0], "what was shown most"
    assert not np.any([*choice.adds, *choice.best, *choice.incumbent])


@every_baseline
def test_a_hundred_positions_are_not_too_many(name: str) -> None:
    """More lists than one 64-bit number can tell apart."""
    rng = np.random.default_rng(0)
    items = np.array([rng.permutation(120)[:100] for _ in range(30)])
    shown = ListBatch(np.zeros(120, np.int64), items, rng.random(items.shape) < 0.1, np.ones(30, np.int64))
    totals = fold(shown)
    assert sorted(map(tuple, totals.items.tolist())) == sorted(map(tuple, items.tolist()))
    assert len(baselines[name]().lists(totals).row) == 100


# --- clips --------------------------------------------------------------------------------------------------------

PRINTED = {
    0.05: 1, 0.1: 5, 0.15: 10, 0.2: 50, 0.25: 100, 0.35: 300, 0.45: 500, 0.5: 600,
    0.55: 700, 0.65: 900, 0.75: 1100, 0.8: 1200, 0.85: 1300, 0.9: 1400, 0.95: 1500, 1: inf,
}  # fmt: skip


@pytest.mark.parametrize(("delta", "clip"), PRINTED.items())
def test_clips_are_those_that_are_printed(delta: float, clip: float) -> None:
    assert clip_for(delta) == clip


@pytest.mark.parametrize(("delta", "clip"), [(0.3, 200), (0.4, 400), (0.6, 800), (0.7, 1000)])
def test_clips_that_are_left_out_follow_the_rule_of_their_neighbours(delta: float, clip: float) -> None:
    assert clip_for(delta) == clip


def test_a_sweep_finds_its_clips() -> None:
    assert [clip_for(delta) for delta in np.linspace(0.05, 1, 20)][:4] == [1, 5, 10, 50]


@pytest.mark.parametrize("delta", [0, -0.5, 0.12, 0.22, 1.01, float("nan"), "0.5"])
def test_no_clip_is_made_up(delta: Any) -> None:
    with pytest.raises(UsageError, match="No clip belongs to delta="):
        clip_for(delta)
