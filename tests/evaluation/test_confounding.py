"""Tests for what users do and production knows: hidden confounding, and trust bias."""

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

import prudent
from prudent.base.arrays import FloatArray
from prudent.click_models.world import draw, make_world, pairs_of
from prudent.counts.lists import ListBatch
from prudent.evaluation import confounding
from prudent.evaluation.confounding import (
    detect_confounding,
    find_neighbours,
    without_clicks_above,
)
from prudent.evaluation.direct import direct
from prudent.evaluation.estimators import parse
from prudent.evaluation.gate import decide, gate_settings
from prudent.evaluation.gate_contexts import better_lists
from prudent.evaluation.holdout import make_holdout
from prudent.evaluation.trust_bias import fit_product, rates_without_clicks_above, scores, trust_bias
from tests import strategies

EXAMINATION = np.array([1.0, 0.6, 0.4])
CONTEXTS, ITEMS = 10, 5


def simulate(
    seed: int, lists: int, taste: float = 0.0, trust: float = 0.0, users: str = "pbm", known: bool = False
) -> ListBatch:
    """Three kinds of users, whom production knows; `trust` is the click rate of what does not attract, at the top.

    `known` keeps the propensity of each item given those above and the user.
    """
    random = np.random.default_rng(seed)
    logits = random.normal(-1, 1, (CONTEXTS, ITEMS))
    tastes = taste * random.normal(size=(3, CONTEXTS, ITEMS))
    context, user = random.integers(0, CONTEXTS, lists), random.integers(0, 3, lists)
    own = logits[context] + tastes[user, context]
    order = np.argsort(-(own + random.gumbel(0, 0.7, own.shape)), axis=1)[:, :3]
    theta = 1 / (1 + np.exp(-np.take_along_axis(own, order, axis=1)))
    theta = theta + (1 - theta) * trust * np.array([1.0, 0.4, 0.15])
    clicks, reads = np.zeros((lists, 3), bool), np.ones(lists, bool)
    for k in range(3):
        examined = EXAMINATION[k] if users == "pbm" else reads
        clicks[:, k] = random.random(lists) < theta[:, k] * examined
        reads = reads & (~clicks[:, k] | (random.random(lists) < 0.5))
    pairs = np.repeat(np.arange(CONTEXTS), ITEMS)
    weight = np.exp(own / 0.7)  # a Gumbel draw of scale .7 beside a score: drawn by weight, without replacement
    taken = np.take_along_axis(weight, order, axis=1)
    left = weight.sum(axis=1, keepdims=True) - np.cumsum(taken, axis=1) + taken
    propensity = taken / left if known else None
    return ListBatch(pairs, context[:, None] * ITEMS + order, clicks, np.ones(lists, np.int64), propensity)


# --- confounding ------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(strategies.logs(max_items=4))
def test_the_statistic_is_a_sum_over_pairs_of_items(log: Any) -> None:
    """List by list; the scale is Σv / nΣv², where v sums squares of heights that are centred in each cell."""
    longest = max(len(items) for _, items, _ in log)
    cells: dict[Any, list[tuple[tuple[Any, ...], int]]] = defaultdict(list)
    for context, items, clicks in log:
        for k, item in enumerate(items):
            if not any(clicks[:k]):
                cells[context, item, k].append((items, clicks[k]))
    products: dict[Any, float] = defaultdict(float)
    squares: dict[Any, float] = defaultdict(float)
    impressions = 0
    for (context, item, k), shown in cells.items():
        hits = sum(click for _, click in shown)
        if not 0 < hits < len(shown):
            continue
        impressions += len(shown)
        for other in {one for items, _ in shown for one in items} - {item}:
            heights = [
                1 - 0.5 * items.index(other) / (longest - 1) if other in items and items.index(other) != k else 0.0
                for items, _ in shown
            ]
            mean = sum(heights) / len(heights)
            for height, (_, click) in zip(heights, shown, strict=True):
                products[context, item, other] += height * (click - hits / len(shown))
                squares[context, item, other] += (height - mean) ** 2
    lists = strategies.as_batch(log)
    actual = without_clicks_above(lists, np.random.default_rng(0))
    assert len(actual.cell) == impressions
    if impressions:
        neighbours = find_neighbours(lists, actual)
        expected = sum(value**2 for value in products.values())
        assert neighbours.sum_of_squares(actual.residual) == pytest.approx(expected, abs=1e-9)
        v = list(squares.values())
        scale = sum(v) / (impressions * sum(one**2 for one in v)) if sum(v) > 1e-9 else 0.0
        assert neighbours.scale(actual.cell) == pytest.approx(scale)
        shuffled = actual.permuted(np.random.default_rng(1))
        assert np.bincount(actual.cell, shuffled) == pytest.approx(np.zeros(actual.cell.max() + 1), abs=1e-9)


@settings(max_examples=60)
@given(strategies.logs(max_items=4), st.integers(1, 12))
def test_of_many_impressions_those_of_some_contexts_are_tested(log: Any, most: int) -> None:
    """The first of all impressions, by contexts in random order."""
    lists = strategies.as_batch(log)
    every = [
        (row, k)
        for row, clicks in enumerate(lists.clicks)
        for k in range(lists.length)
        if lists.items[row, k] >= 0 and not clicks[:k].any()
        for _ in range(lists.n[row])
    ]
    if len(every) > most:
        priority = np.random.default_rng(0).permutation(lists.context[-1] + 1)
        every = sorted(sorted(every, key=lambda one: priority[lists.list_context[one[0]]])[:most])
    cells = defaultdict(list)
    for row, k in every:
        cells[lists.items[row, k], k].append((row, bool(lists.clicks[row, k])))
    mixed = [key for key in sorted(cells) if len({click for _, click in cells[key]}) > 1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confounding, "MOST_IMPRESSIONS", most)
        actual = without_clicks_above(lists, np.random.default_rng(0))
    assert actual.row.tolist() == [row for key in mixed for row, _ in cells[key]]
    assert actual.position.tolist() == [key[1] for key in mixed for _ in cells[key]]
    clicks = np.array([click for key in mixed for _, click in cells[key]], float)
    rates = np.array([np.mean([click for _, click in cells[key]]) for key in mixed for _ in cells[key]])
    assert actual.residual == pytest.approx(clicks - rates)


@pytest.mark.parametrize("users", ["pbm", "dcm"])
def test_lists_chosen_without_regard_to_the_user_are_rarely_suspected(users: str) -> None:
    """Of 30 logs, 1.5 on average at p ≤ .05; six or more would be an event of 1 in 300."""
    tests = [detect_confounding(simulate(seed, 1_500, users=users), permutations=99) for seed in range(30)]
    assert sum(test is not None and test.found for test in tests) < 6


def test_lists_chosen_by_taste_are_found() -> None:
    test = detect_confounding(simulate(0, 6_000, taste=1.2))
    assert test is not None
    assert test.p_value == 1 / 200, "no permutation is as extreme"
    assert test.statistic > 3
    assert 0.1 < test.bias < test.bias_high < 0.5


def test_what_a_log_may_hide_shrinks_with_its_size() -> None:
    """The variance that it may hide has the standard error of a sum over clicks: 1/n. Ten times the lists, √10."""
    small, large = ([detect_confounding(simulate(seed, n)) for seed in range(4)] for n in (1_000, 10_000))
    hidden = [np.mean([test.hidden**2 for test in tests if test is not None]) for tests in (small, large)]
    assert hidden[1] < hidden[0] / 3
    assert all(test is not None and test.bias <= test.hidden < test.bias_high for test in small)


def test_a_log_in_which_lists_differ_less_than_by_chance_hides_less() -> None:
    """The upper limit is that of the variance as it is estimated, also below 0, with a one-sided confidence of 80 %."""
    tests = [test for seed in range(12) if (test := detect_confounding(simulate(seed, 1_000), permutations=49))]
    below = [test for test in tests if test.statistic < 0]
    assert {test.bias for test in below} == {0.0}
    assert len({test.hidden for test in below}) > 2
    for test in below:  # T and the variance are proportional, so that both are as many standard deviations off
        width = test.bias_high**2 / 1.645
        assert test.hidden**2 == pytest.approx(max(0.0, (test.statistic + 0.8416) * width), rel=1e-6)


def test_without_two_lists_of_an_item_there_is_nothing_to_find() -> None:
    log = [("q", ("a", "b"), (i % 2, 0)) for i in range(40)]
    alone = detect_confounding(strategies.as_batch(log))
    assert alone is not None
    assert (alone.p_value, alone.statistic) == (1.0, 0.0)
    assert detect_confounding(strategies.as_batch([("q", ("a", "b"), (0, 0))] * 9)) is None


# --- trust bias -------------------------------------------------------------------------------------------------------


def tables(seed: int) -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(seed)
    shown = random.integers(0, 40, (12, 3)).astype(np.float64) + 1
    return shown, random.binomial(shown.astype(int), 0.3).astype(np.float64)


def test_products_fit_the_clicks_of_items_and_of_positions() -> None:
    shown, clicked = tables(0)
    theta, examined = fit_product(shown, clicked)
    fitted = shown * theta[:, None] * examined
    assert examined[0] == 1
    assert fitted.sum(axis=0) == pytest.approx(clicked.sum(axis=0))
    assert fitted.sum(axis=1) == pytest.approx(clicked.sum(axis=1))


def test_scores_are_those_of_a_regression_on_levels() -> None:
    """x̃ by weighted least squares on dummies of items and positions."""
    shown, clicked = tables(1)
    theta, examined = fit_product(shown, clicked)
    x = np.log(theta)[:, None] * np.arange(3.0)
    weight = (shown * theta[:, None] * examined).ravel()
    rows, columns = np.indices(shown.shape)
    dummies = np.hstack([np.eye(12)[rows.ravel()], np.eye(3)[columns.ravel()]])
    root = np.sqrt(weight)[:, None]
    explained = dummies @ np.linalg.lstsq(dummies * root, x.ravel() * root[:, 0], rcond=None)[0]
    left = x.ravel() - explained
    expected = ((clicked.ravel() - weight) * left).reshape(shown.shape).sum(axis=1)
    assert scores(shown, clicked, theta, examined, x) == pytest.approx(expected)


def test_rates_are_of_impressions_without_a_click_above() -> None:
    shown, clicked = rates_without_clicks_above(
        strategies.as_batch([("q", ("a", "b"), (1, 1)), ("q", ("a", "b"), (0, 1)), ("q", ("b", "a"), (0, 0))]), 0
    )
    assert shown.tolist() == [[2, 1], [1, 1]]
    assert clicked.tolist() == [[1, 0], [0, 1]]


@settings(max_examples=60)
@given(strategies.logs(max_items=4), st.integers(0, 4))
def test_rates_are_of_items_with_enough_clicks(log: Any, fewest: int) -> None:
    """List by list."""
    longest = max(len(items) for _, items, _ in log)
    tables: dict[Any, FloatArray] = defaultdict(lambda: np.zeros((2, longest)))
    for context, items, clicks in log:
        for k, item in enumerate(items):
            if not any(clicks[:k]):
                tables[context, item][:, k] += 1, clicks[k]
            tables[context, item] += 0  # an item that only stood below a click is there too
    kept = [tables[key] for key in sorted(tables) if tables[key][1].sum() >= fewest]
    actual = rates_without_clicks_above(strategies.as_batch(log), fewest)
    for table, expected in zip(actual, zip(*kept, strict=True) if kept else ([], []), strict=True):
        assert table.tolist() == [row.tolist() for row in expected]


def test_trust_bias_is_found_where_it_is() -> None:
    """Of 20 logs without it, .2 on average at p ≤ .01; three or more would be an event of 1 in 1,000."""
    assert sum(trust_bias(simulate(seed, 3_000)) <= 0.01 for seed in range(20)) < 3
    assert sum(trust_bias(simulate(seed, 12_000, trust=0.5)) <= 0.01 for seed in range(10)) >= 9


def test_trust_bias_is_not_found_in_a_long_tail() -> None:
    """Where pairs have few impressions, lucky ones seem attractive; the mean of 8 z has a deviation of .35."""
    z = []
    for seed in range(8):
        world = make_world("pbm", contexts=2_000, items=(20, 30), zipf=0.5, exploration=1.0, seed=seed)
        (drawn,) = draw(world, 20_000, seed)
        lists = ListBatch(pairs_of(world), drawn.items, drawn.clicks.astype(bool), np.ones(20_000, np.int64))
        z.append(-ndtri(trust_bias(lists)))
    assert abs(np.mean(z)) < 1.2


# --- the gate ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("taste", [0.0, 1.2])
def test_evaluate_says_what_the_test_finds(taste: float) -> None:
    lists = simulate(0, 6_000, taste=taste)
    log = pa.table({"context": lists.list_context, "items": lists.items.tolist(), "clicks": lists.clicks.tolist()})
    ours = [[context * ITEMS + item for item in (2, 1, 0)] for context in range(CONTEXTS)]
    policy = prudent.Policy.from_table(pa.table({"context": list(range(CONTEXTS)), "items": ours}), items="items")
    evaluation = prudent.evaluate(policy, log, estimator="ip-ips")
    assert (evaluation.manifest.results["confounding"]["p_value"] <= 0.05) == (taste > 0)
    assert any(note.startswith("Hidden confounding: click rates") for note in evaluation.notes) == (taste > 0)
    dm = prudent.evaluate(policy, log, estimator="dm")
    assert dm.verdict.endswith("Hidden confounding may have made this up.") == (taste > 0)


def test_the_gate_does_not_judge_what_production_knew() -> None:
    target = np.arange(CONTEXTS)[:, None] * ITEMS + np.array([2, 1, 0])
    asked, dm = gate_settings(-0.95, 0.95, "clicks"), parse("dm(model=pbm)")
    blind, knowing = (make_holdout(simulate(0, 6_000, taste=taste), target) for taste in (0.0, 1.2))
    plain = decide(blind, dm, asked, -0.95)
    assert plain.passed
    assert plain.confounding is not None
    assert not plain.confounding.found
    found = decide(knowing, dm, asked, -0.95)
    assert found.verdict == "unknown"
    assert "differ between lists" in found.why
    accepted = decide(knowing, dm, asked, -0.95, acknowledge="confounding")
    assert accepted.passed
    assert accepted.acknowledged[0].startswith("confounding: click rates of an item at a position differ")
    declared = decide(blind, dm, asked, -0.95, personalised=True)
    assert declared.verdict == "unknown"
    assert "production is personalised and the log has no propensities" in declared.why
    remedies = ((found, "--segment"), (declared, "--propensity"))
    assert all(word in verdict.why.rpartition("; ")[2] for verdict, word in remedies), (
        "what would resolve it comes last"
    )
    trusting = decide(make_holdout(simulate(0, 6_000, trust=0.5), target), dm, asked, -0.95)
    assert trusting.verdict == "unknown"
    assert "as under trust bias" in trusting.why
    assert "such as -e ip-ips" in trusting.why


def test_the_gate_does_not_pass_a_lift_that_the_log_could_have_made_up() -> None:
    """At a lift that is barely beaten, and at one that is clearly beaten."""
    target = np.arange(CONTEXTS)[:, None] * ITEMS + np.array([2, 1, 0])
    held, dm = make_holdout(simulate(0, 6_000), target), parse("dm(model=pbm)")
    low = decide(held, dm, gate_settings(0.0, 0.95, "clicks"), -0.95).estimate.lift_low
    assert low is not None
    near, far = (decide(held, dm, gate_settings(low - by, 0.95, "clicks"), low - by) for by in (0.001, 0.2))
    assert near.verdict == "unknown"
    assert "could hide a personalisation of production that undoes this lift" in near.why
    assert far.passed
    assert near.estimate.margin is not None
    assert far.estimate.margin is not None
    assert near.confounding is not None
    assert 0 < near.estimate.margin < near.confounding.hidden < far.estimate.margin
    assert decide(held, dm, gate_settings(low - 0.001, 0.95, "clicks"), low - 0.001, acknowledge="confounding").passed


def as_table(lists: ListBatch) -> pa.Table:
    columns = {"context": lists.list_context, "items": lists.items.tolist(), "clicks": lists.clicks.tolist()}
    return pa.table(columns | ({} if lists.propensity is None else {"p": lists.propensity.tolist()}))


def ranked(*items: int) -> prudent.Policy:
    ours = [[context * ITEMS + item for item in items] for context in range(CONTEXTS)]
    return prudent.Policy.from_table(pa.table({"context": list(range(CONTEXTS)), "items": ours}), items="items")


def test_in_each_context_the_hidden_bias_has_to_be_survived() -> None:
    held = make_holdout(simulate(0, 6_000), np.arange(CONTEXTS)[:, None] * ITEMS + np.array([2, 1, 0]))
    fit = direct(held, "pbm", "clicks")
    incumbent = np.arange(CONTEXTS)[:, None] * ITEMS + np.array([0, 1, 2])
    goal = fit.fitted.rewards(fit.posterior.theta[:, ::-1], "clicks").sum(axis=1)
    changing = goal - fit.expected[:, 1]  # the item in the middle stays
    gain = fit.expected.sum(axis=1) - goal
    for hidden in (0.0, 0.05, 0.2, 1.0):
        # At a confidence of a half there is no reach; the priors of both lists together differ a little from one's.
        better, _ = better_lists(fit, incumbent, 0.5, 0.0, hidden)
        sure = np.abs(gain - hidden * changing) > 0.01
        assert sure.sum() > 5
        assert (better == (gain > hidden * changing))[sure].all()
    log, policy = as_table(simulate(0, 6_000)), ranked(2, 1, 0)
    asked: dict[str, Any] = {"min_lift": -0.2, "estimator": "dm(model=pbm)"}
    cautious, trusting = (
        prudent.gate_contexts(policy, log, acknowledge=["provenance", *more], **asked) for more in ([], ["confounding"])
    )
    assert 0 < cautious.better < trusting.better


def test_context_by_context_propensities_excuse_no_click_model() -> None:
    """The gate is right with propensities that condition on the user; a click model does not look at them."""
    log, policy = as_table(simulate(0, 6_000, taste=1.2, known=True)), ranked(2, 1, 0)
    asked: dict[str, Any] = {"min_lift": -0.95, "propensity": "p"}
    assert prudent.gate(policy, log, acknowledge=["provenance"], **asked).passed
    refused = prudent.gate_contexts(policy, log, acknowledge=["provenance"], **asked)
    assert refused.verdict == "unknown"
    assert "differ between lists" in refused.why
    declared = prudent.gate_contexts(policy, log, acknowledge=["provenance"], personalised=True, **asked)
    assert "production is personalised" in declared.why
    assert prudent.gate_contexts(policy, log, acknowledge=["provenance", "confounding"], **asked).passed
