"""Comparing click models: against plain loops over every list of clicks there could be, and on logs of known origin."""

import json
import os
import random
import sys
from collections.abc import Sequence
from itertools import product
from math import isclose, log, log2, prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.chart import render_chart
from prudent.base.errors import LogError, PrudentWarning, UsageError
from prudent.base.numerics.beta_binomial import fit_beta
from prudent.click_models import ClickModel, selection
from prudent.click_models.compare import compare
from prudent.click_models.comparison import Comparison, Score
from prudent.click_models.likelihood import split_lists
from prudent.click_models.selection import Choice, choose, compare_lists, read_models
from prudent.click_models.simulate import write_log
from prudent.click_models.world import World, draw, make_world
from prudent.counts.lists import ListBatch as Arrays
from prudent.counts.lists import read_lists
from prudent.logs.readers import read_yandex
from prudent.storage.sketch import FEWEST_CONTEXTS
from tests import strategies
from tests.command import run
from tests.fitted import position_parameter
from tests.reference import LoggedList, browsing_likelihood, last_click

MODELS = selection.names()
LOOPED = ["cm", "dcm", "pbm", "ubm"]
"""Models with a plain loop here; those of the others are in `test_reading_models`."""
NAMED = [word for name in LOOPED for word in ("--model", name)]

# --- plain loops --------------------------------------------------------------------------------------------------


def dcm_chance(theta: Sequence[float], clicks: Sequence[int], continuation: Sequence[float]) -> float:
    """P(all these clicks and no others): reading goes from the top to the last click, and then stops or goes on."""
    end = last_click(clicks)
    chance = 1.0
    for position, (attraction, click) in enumerate(zip(theta, clicks, strict=True), start=1):
        if position <= end or end == 0:
            chance *= attraction if click else 1 - attraction
        if click and position < end:
            chance *= continuation[position - 1]
    if end:
        stops, unclicked = 1 - continuation[end - 1], prod(1 - attraction for attraction in theta[end:])
        chance *= stops + continuation[end - 1] * unclicked
    return chance


def pbm_chance(theta: Sequence[float], clicks: Sequence[int], examination: Sequence[float]) -> float:
    return prod(
        p * attraction if click else 1 - p * attraction
        for attraction, click, p in zip(theta, clicks, examination, strict=True)
    )


def likelihood(name: str, theta: Sequence[float], clicks: Sequence[int], parameter: Sequence[float]) -> float:
    parameter = parameter[: len(theta)]
    if name == "pbm":
        return pbm_chance(theta, clicks, parameter)
    if name == "ubm":
        return browsing_likelihood(theta, clicks, parameter)  # type: ignore[arg-type]
    return dcm_chance(theta, clicks, [0.0] * len(theta) if name == "cm" else parameter)


def plain_score(name: str, lists: list[tuple[list[float], list[int]]], parameter: Sequence[float]) -> dict[str, object]:
    """Every probability as a sum over all lists of clicks that begin, or at one position are, as they should be."""
    positions = max(len(theta) for theta, _ in lists)
    alone: list[list[float]] = [[] for _ in range(positions)]
    given_above: list[list[float]] = [[] for _ in range(positions)]
    foreseen: list[list[float]] = [[] for _ in range(positions)]
    total = 0.0
    for theta, clicks in lists:
        joint = {v: likelihood(name, theta, v, parameter) for v in product((0, 1), repeat=len(theta))}
        assert isclose(sum(joint.values()), 1)
        total += log(joint[tuple(clicks)])
        for k, click in enumerate(clicks):
            alone[k].append(sum(p for v, p in joint.items() if v[k] == click))
            above = [(v, p) for v, p in joint.items() if list(v[:k]) == clicks[:k]]
            given_above[k].append(sum(p for v, p in above if v[k] == click) / sum(p for _, p in above))
            foreseen[k].append(sum(p for v, p in joint.items() if v[k]))

    def perplexity(chances: list[list[float]]) -> list[float]:
        return [2 ** -(sum(map(log2, of)) / len(of)) for of in chances]

    return {
        "log_likelihood": total / len(lists),
        "perplexity": sum(perplexity(alone)) / positions,
        "conditional_perplexity": sum(perplexity(given_above)) / positions,
        "by_position": perplexity(alone),
        "predicted_ctr": [sum(of) / len(of) for of in foreseen],
    }


def in_two(shown: Arrays, first: int) -> tuple[Arrays, Arrays]:
    """The first rows, and the others; a test list never has more positions than there are."""
    parts = [
        Arrays(shown.context, shown.items[rows], shown.clicks[rows], shown.n[rows])
        for rows in (slice(None, first), slice(first, None))
    ]
    longest = int((parts[1].items >= 0).sum(axis=1).max())
    return parts[0], Arrays(shown.context, parts[1].items[:, :longest], parts[1].clicks[:, :longest], parts[1].n)


def lists_to_score(
    model: ClickModel, train: Arrays, test: Arrays
) -> tuple[list[tuple[list[float], list[int]]], list[float]]:
    """Attraction and clicks of every list to score, and the position parameters; attraction under the fitted prior."""
    fitted = model.fit(train.cells, max(train.length, test.length))
    evidence = fitted.evidence(train.cells)
    alpha, beta = fit_beta(evidence.positive, evidence.negative)
    theta = [(p + alpha) / (p + n + alpha + beta) for p, n in zip(evidence.positive, evidence.negative, strict=True)]
    lists = []
    for items, clicks in zip(test.items.tolist(), test.clicks.tolist(), strict=True):
        size = sum(pair >= 0 for pair in items)
        lists.append(([theta[pair] for pair in items[:size]], [int(click) for click in clicks[:size]]))
    return lists, position_parameter(fitted).tolist()


def agrees(score: Score, expected: dict[str, object]) -> None:
    for name, value in expected.items():
        np.testing.assert_allclose(
            np.array(getattr(score, name), float), np.array(value), rtol=1e-9, atol=1e-12, err_msg=name
        )


# --- the formulas -------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(strategies.linked_logs(), st.data())
def test_scores_equal_plain_loops(lists: list[LoggedList], data: st.DataObject) -> None:
    lists = data.draw(st.permutations(lists))
    train, test = in_two(strategies.as_batch(lists), len(lists) * 3 // 4)
    assume(train.clicks.any())
    found = compare_lists(
        train, test, read_models([*LOOPED, "dcm(tail=truncate)", "dcm(continuation=[.5, .4, .3, .2])"])
    )
    for score in found.scores:
        if score.reference or not score.predicted_ctr:
            continue
        to_score, parameter = lists_to_score(prudent.click_models.parse(score.model), train, test)
        name = score.model.partition("(")[0]
        if any(likelihood(name, theta, clicks, parameter) == 0 for theta, clicks in to_score):
            assert score.log_likelihood is score.conditional_perplexity is score.behind is None
            assert f"have clicks that {score.model} excludes" in score.why
        else:
            agrees(score, plain_score(name, to_score, parameter))
            assert score.why == ""


@settings(max_examples=40, deadline=None)
@given(strategies.logs(), st.data())
def test_references_equal_plain_loops(lists: list[LoggedList], data: st.DataObject) -> None:
    """Click rates of items, under the fitted prior, and of positions, with one click and one skip added."""
    lists = data.draw(st.permutations(lists))
    assume(len(lists) > 1)
    shown = strategies.as_batch(lists)
    train, test = in_two(shown, len(lists) // 2)
    assume(train.clicks.any())
    found = compare_lists(train, test, read_models(["dcm"]))
    rows = [
        (context, item, position, click)
        for context, items, clicks in lists[: len(lists) // 2]
        for position, (item, click) in enumerate(zip(items, clicks, strict=True))
    ]

    of_items: dict[tuple[object, ...], list[int]] = {}
    for context, item, _, click in rows:
        of_items.setdefault((context, item), []).append(click)
    clicked, skipped = (np.array([of.count(click) for of in of_items.values()], float) for click in (1, 0))

    def rate(of: list[int], alpha: float, beta: float) -> float:
        return (sum(of) + alpha) / (len(of) + alpha + beta)

    for name, keys, prior in (("CTR by item", (0, 1), fit_beta(clicked, skipped)), ("CTR by position", (2,), (1, 1))):
        to_score = []
        for context, items, clicks in lists[len(lists) // 2 :]:
            wanted = [(context, item, position) for position, item in enumerate(items)]
            theta = [rate([r[3] for r in rows if all(r[k] == one[k] for k in keys)], *prior) for one in wanted]
            to_score.append((theta, list(clicks)))
        agrees(found[name], plain_score("pbm", to_score, [1.0] * shown.length))
        assert found[name].reference


@settings(max_examples=40, deadline=None)
@given(strategies.linked_logs(), st.data())
def test_distance_to_the_winner_is_the_mean_difference_on_the_same_lists(
    lists: list[LoggedList], data: st.DataObject
) -> None:
    lists = data.draw(st.permutations(lists))
    train, test = in_two(strategies.as_batch(lists), len(lists) * 3 // 4)
    assume(train.clicks.any())
    found = compare_lists(train, test, read_models(["dcm", "pbm"]))
    of_each = {}
    for name in ("dcm", "pbm"):
        if found[name].log_likelihood is not None:
            to_score, parameter = lists_to_score(prudent.click_models.parse(name), train, test)
            of_each[name] = [log(likelihood(name, theta, clicks, parameter)) for theta, clicks in to_score]
    assert found.winner == max(of_each, key=lambda name: sum(of_each[name]))
    for name, of in of_each.items():
        difference = [a - b for a, b in zip(of_each[found.winner], of, strict=True)]
        mean = sum(difference) / len(of)
        spread = sqrt(sum((d - mean) ** 2 for d in difference) / (len(of) - 1) / len(of)) if len(of) > 1 else None
        assert found[name].behind == pytest.approx(mean, abs=1e-9)
        assert found[name].behind_se == (None if spread is None else pytest.approx(spread, abs=1e-9))


def test_a_worked_example() -> None:
    """One context, one position. Trained on 2 clicks of 4: θ = 3/6. Scored on a click, a skip and an unseen item."""
    train: list[LoggedList] = [("q", ("a",), (1,)), ("q", ("a",), (1,)), ("q", ("a",), (0,)), ("q", ("a",), (0,))]
    test: list[LoggedList] = [("q", ("a",), (1,)), ("q", ("a",), (0,)), ("q", ("b",), (1,))]
    found = compare_lists(*in_two(strategies.as_batch(train + test), 4), read_models(LOOPED))
    for name in LOOPED:
        assert found[name].log_likelihood == pytest.approx(log(1 / 2))
        assert found[name].perplexity == found[name].conditional_perplexity == pytest.approx(2)
        assert found[name].predicted_ctr == pytest.approx([1 / 2])
    assert found.observed_ctr == pytest.approx([2 / 3])
    assert found.unseen == pytest.approx(1 / 3)
    assert (found.train_lists, found.test_lists) == (4, 3)


# --- two parts of a log -------------------------------------------------------------------------------------------


def world_lists(world: World, lists: int, seed: int) -> Arrays:
    drawn = list(draw(world, lists, seed))
    items, clicks = (np.concatenate([getattr(chunk, name) for chunk in drawn]) for name in ("items", "clicks"))
    context = np.repeat(np.arange(len(world.contexts)), np.diff(world.offsets))
    return Arrays(context, items, clicks.astype(bool), np.ones(len(items), np.int64))


def test_split_leaves_every_list_on_one_side_and_knows_no_order() -> None:
    shown = world_lists(make_world("pbm", contexts=3, items=(3, 4), length=3), 2_000, seed=1)
    distinct, first, times = np.unique(
        np.hstack([shown.items, shown.clicks]), axis=0, return_index=True, return_counts=True
    )
    merged = Arrays(shown.context, shown.items[first], shown.clicks[first], times)
    train, test = split_lists(merged, 0.25, seed=7)
    assert train.n.sum() + test.n.sum() == 2_000
    assert abs(test.n.sum() - 500) < 4 * sqrt(2_000 * 0.25 * 0.75)  # four standard deviations of a fair split

    def as_set(*parts: Arrays) -> list[tuple[object, ...]]:
        whole = np.vstack([np.hstack([part.items, part.clicks, part.n[:, None]]) for part in parts])
        return sorted(map(tuple, whole.tolist()))

    summed: dict[tuple[object, ...], int] = {}
    for *row, n in as_set(train, test):
        summed[tuple(row)] = summed.get(tuple(row), 0) + int(str(n))
    assert summed == {tuple(row): n for row, n in zip(distinct.tolist(), times.tolist(), strict=True)}
    order = np.random.default_rng(3).permutation(len(merged.n))
    again = split_lists(Arrays(merged.context, merged.items[order], merged.clicks[order], times[order]), 0.25, seed=7)
    for one, other in zip((train, test), again, strict=True):
        np.testing.assert_array_equal(one.items, other.items)
        np.testing.assert_array_equal(one.n, other.n)
    assert as_set(split_lists(merged, 0.25, seed=8)[1]) != as_set(test)


def test_order_of_rows_and_threads_do_not_matter(tmp_path: Path) -> None:
    lists = strategies.table(
        [(f"q{i % 7}", ("a", "b", "c")[i % 2 :], (i % 3 % 2, i % 5 % 2, 0)[i % 2 :]) for i in range(900)]
    )
    shuffled = lists.take(random.Random(1).sample(range(900), 900))
    found = [
        compare(prudent.Log(table), engine=prudent.DuckDB(threads=threads)).to_json()
        for table, threads in ((lists, 1), (shuffled, 2))
    ]
    for one in found:
        for score in one["scores"]:
            del score["seconds"]
    assert json.dumps(found[0]) == json.dumps(found[1])


def test_large_logs_are_compared_on_whole_contexts() -> None:
    lists: list[LoggedList] = [(f"q{i % 50}", ("a", "b"), (i % 2, 0)) for i in range(5_000)]
    log = prudent.Log(strategies.table(lists))
    (shown,), (tally,) = read_lists([log], prudent.DuckDB(), max_rejected=0.0, most=1_234)
    assert tally.lists == 5_000
    assert shown.n.sum() == 1_200  # 12 contexts of 100 lists
    assert set(np.bincount(shown.list_context, shown.n)) == {100}
    (few,), _ = read_lists([log], prudent.DuckDB(), max_rejected=0.0, most=1)
    assert few.n.sum() == 100 * FEWEST_CONTEXTS


SWAPPED: list[LoggedList] = [("q", ("a", "b"), (1, 0)), ("q", ("b", "a"), (0, 1))] * 30


def still(lists: int) -> list[LoggedList]:
    """Nothing ever moves: pbm is not identified."""
    return [("q", ("a", "b"), (i % 2, i % 3 % 2)) for i in range(lists)]


# --- who wins -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", MODELS)
def test_the_model_that_made_the_clicks_wins(kind: str, seed: int) -> None:
    """100,000 lists. A world of cm is one of dcm with λ = 0: there dcm comes as near as its pseudo-counts let it.

    And worlds of pbm and cm are nearly ones of ubm, which may be ahead of them by chance.
    """
    shown = world_lists(make_world(kind, seed=seed), 100_000, seed=seed + 100)
    parts = split_lists(shown, 0.2, 0)
    if kind != "ubm":
        nested = compare_lists(*parts, read_models([kind, "ubm"]))
        assert kind in nested.plausible
        assert nested["ubm"].log_likelihood == pytest.approx(nested[kind].log_likelihood, abs=0.02)
    found = compare_lists(*parts, read_models([name for name in MODELS if name in (kind, "cm", "dcm", "pbm")]))
    if kind == "sdbn":  # its clicks are all as likely to satisfy: that is dcm with the same λ at every position
        assert kind in found.plausible
    else:
        assert found.winner == kind
        assert found.clear
        assert found.scores[0].model == kind  # and before the references
    np.testing.assert_allclose(found[kind].predicted_ctr, found.observed_ctr, atol=0.02)


def test_a_second_click_rules_cm_out() -> None:
    shown = world_lists(make_world("dcm", seed=2), 5_000, seed=3)
    found = compare_lists(*split_lists(shown, 0.2, 0), read_models(["cm", "dcm"]))
    assert found["cm"].log_likelihood is found["cm"].conditional_perplexity is None
    assert found["cm"].perplexity > found["dcm"].perplexity  # type: ignore[operator]
    assert "have clicks that cm excludes" in found["cm"].why
    assert found.winner == "dcm"
    assert "no other click model" in found.verdict
    assert compare_lists(*split_lists(shown, 0.2, 0), read_models(["cm"])).winner is None


def test_pbm_that_is_not_identified_cannot_win() -> None:
    lists = still(300)
    found = compare_lists(*in_two(strategies.as_batch(lists), 200), read_models(MODELS))
    assert found["pbm"].log_likelihood is None
    assert "not identified" in found["pbm"].why
    assert found["pbm"].by_position == found["pbm"].predicted_ctr == ()
    assert found.winner == "dcm"


def test_lists_without_a_click_can_be_scored_on() -> None:
    found = compare_lists(*in_two(strategies.as_batch([*SWAPPED, ("q", ("a",), (0,))]), 60), read_models(MODELS))
    assert found.observed_ctr == (0.0,)
    assert all(score.behind_se is None for score in found.scores)  # a single list tells nothing of the spread
    assert not found.clear
    assert found.verdict.startswith("No clear winner")


@pytest.mark.parametrize(
    ("behind", "said"),
    [
        ({"pbm": 0.01}, "No clear winner: pbm is within two standard errors of dcm."),
        ({"pbm": 0.01, "cm": 0.015}, "No clear winner: pbm and cm are within two standard errors of dcm."),
        ({"pbm": 0.01, "cm": 0.5}, "No clear winner: pbm is within two standard errors of dcm."),
    ],
)
def test_the_near_are_near_the_winner_and_nothing_is_said_of_each_other(behind: dict[str, float], said: str) -> None:
    scores = [
        Score(model, -1.0 - by, 1.2, 1.2, (1.2,), (0.1,), 0.0, behind=by, behind_se=0.01 if by else 0.0)
        for model, by in {"dcm": 0.0, **behind}.items()
    ]
    assert Comparison(tuple(scores), "dcm", (0.1,), 1, 1).verdict == said


def test_lists_longer_than_any_fitted_to() -> None:
    found = compare_lists(
        *in_two(strategies.as_batch([*SWAPPED, ("q", ("a", "b", "c"), (0, 1, 1))]), 60), read_models(["dcm", "pbm"])
    )
    assert len(found.observed_ctr) == 3
    # λ₂ was never seen: its pseudo-counts make it ½, and so is θ of c.
    assert found["dcm"].log_likelihood is not None
    assert "{3}" in found["pbm"].why


def test_too_little_to_compare() -> None:
    one: list[LoggedList] = [("q", ("a",), (1,))]
    with pytest.raises(LogError, match="no list to score models on"):
        compare(prudent.Log(strategies.table(one)), holdout=0.01)
    with pytest.raises(LogError, match=r"None of the .* training lists has a click"):
        compare(prudent.Log(strategies.table([("q", ("a",), (0,))] * 50)))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"model": ["auto"]}, "cannot be compared|can be compared"),
        ({"model": []}, "Name a model to compare"),
        ({"model": ["pbn"]}, "Did you mean 'pbm'"),
        ({"holdout": 0.0}, "holdout is 0"),
        ({"holdout": 1.0}, "holdout is 1"),
        ({"seed": -1}, "seed is -1"),
        ({"by": "day"}, "Cannot split by 'day'"),
        ({"by": "time"}, "Name the column of the time"),
        ({"time": "when"}, "Name the column of the time"),
        ({"length": 0}, "length is 0"),
        ({"max_rejected": 2}, "max_rejected is 2"),
    ],
)
def test_wrong_settings(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        compare(prudent.Log("nowhere.parquet"), **wrong)  # type: ignore[arg-type]


def test_counts_have_forgotten_whole_lists() -> None:
    counts = strategies.count([("q", ("a",), (1,))])
    with pytest.raises(UsageError, match="do not keep whole lists"):
        compare(counts)


def test_logs_that_name_things_differently() -> None:
    text, integers = (prudent.Log(strategies.table([("q", (item,), (1,))] * 9)) for item in ("a", 1))
    with pytest.raises(LogError, match="text and integers"):
        compare(text, integers)


def test_scored_on_another_log(tmp_path: Path) -> None:
    """Pairs go by their names: an item that only one of the logs has does not shift the others."""
    train: list[LoggedList] = [("q", ("b", "c"), (1, 0)), ("q", ("c", "b"), (0, 1))] * 40
    test: list[LoggedList] = [("p", ("a", "z"), (0, 0)), ("q", ("a", "c"), (0, 0)), ("q", ("b", "c"), (1, 0))]
    found = compare(prudent.Log(strategies.table(train)), prudent.Log(strategies.table(test)))
    expected = compare_lists(*in_two(strategies.as_batch(train + test), 80), read_models(MODELS))
    for other in expected.scores:  # models without a distinction here differ in the last digit, and so in their order
        likelihood = other.log_likelihood
        assert found[other.model].log_likelihood == (
            None if likelihood is None else pytest.approx(likelihood, rel=1e-12)
        )
    assert found.unseen == pytest.approx(3 / 6)
    assert found.manifest.settings["split"] == {"by": "log"}


@pytest.mark.parametrize("layout", ["lists", "rows"])
def test_scored_on_the_latest_lists(layout: str, tmp_path: Path) -> None:
    lists: list[LoggedList] = [
        (f"q{i % 3}", ("a", "b") if i % 2 else ("b", "a"), (i % 5 % 2, i % 7 % 2)) for i in range(300)
    ]
    earlier, later = lists[:240], lists[240:]
    table = strategies.table(lists) if layout == "lists" else strategies.rows(lists)
    number = list(range(300)) if layout == "lists" else table["impression"].to_pylist()
    timed = table.append_column("when", pa.array(number, pa.int64()))
    shuffled = timed.take(random.Random(2).sample(range(len(timed)), len(timed)))
    log = prudent.Log(shuffled, layout=layout)  # type: ignore[arg-type]
    found = compare(log, by="time", time="when")
    expected = compare(prudent.Log(strategies.table(earlier)), prudent.Log(strategies.table(later)))
    assert (found.train_lists, found.test_lists) == (240, 60)
    for one, other in zip(found.scores, expected.scores, strict=True):
        assert (one.model, one.log_likelihood) == (other.model, other.log_likelihood)
    assert found.manifest.settings["split"] == {"by": "time", "holdout": 0.2, "time": "when"}


def test_a_reference_that_foresees_more_is_named() -> None:
    """Every context is new: what is known of items is worth nothing, and click rates by position are all there is."""
    generator = random.Random(5)
    lists: list[LoggedList] = [(f"q{i}", (f"a{i}", f"b{i}"), (int(generator.random() < 0.1), 0)) for i in range(400)]
    found = compare_lists(*in_two(strategies.as_batch(lists), 300), read_models(["dcm"]))
    assert found.winner == "dcm"
    assert found.scores[0].model == "CTR by position"
    assert "plain CTR by position predicts better than any of them: 100% of the impressions" in found.verdict


# --- how it looks -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compared() -> Comparison:
    shown = world_lists(make_world("dcm", seed=2), 5_000, seed=3)
    return compare_lists(*split_lists(shown, 0.2, 0), read_models([*LOOPED, "dcm(tail=truncate)"]))


def test_table_as_text_and_html(compared: Comparison) -> None:
    assert str(compared).splitlines()[2].startswith("dcm ")
    assert compared.verdict in str(compared)
    page = compared._repr_html_()
    assert page.count("<tr>") == 1 + len(compared.scores)
    hostile = Comparison((Score("<script>", None, None, None, (), (), 0.0),), None, (), 1, 1)
    assert "&lt;script&gt;" in hostile._repr_html_()
    assert "<script>" not in hostile._repr_html_()


def test_chart_shows_every_model(compared: Comparison) -> None:
    picture = render_chart(compared.chart(), "chart.svg").decode()
    for score in compared.scores:
        assert f">{score.model}<" in picture
    assert ">observed<" in picture


def test_chart_without_the_extra(compared: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(UsageError, match="pip install 'prudent\\[report\\]'"):
        compared.chart()


def test_unknown_model_of_a_comparison(compared: Comparison) -> None:
    with pytest.raises(UsageError, match="Compared: dcm"):
        compared["pbm(smooth=1)"]


# --- the command --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    for kind in MODELS:
        write_log(make_world(kind, contexts=20, items=(6, 9), length=4, seed=3), 6_000, folder / f"{kind}.parquet")
    return folder


def test_command(logs: Path, tmp_path: Path) -> None:
    ran = run("compare", logs / "ubm.parquet", *NAMED, "-o", tmp_path / "chart.svg")
    assert (ran.code, ran.err) == (0, "")
    assert "ubm wins" in ran.text
    assert "click-through rate by position" in ran.text
    assert "cm: " in ran.text
    assert (tmp_path / "chart.svg").read_text(encoding="utf-8").startswith("<svg")


def test_what_comes_next(logs: Path) -> None:
    """A clear winner is named; without one, ranking is left to choose."""
    ran = run("compare", logs / "ubm.parquet", *NAMED)
    assert ran.out.splitlines()[-1] == f"Next: prudent rank {logs / 'ubm.parquet'} -o policy.parquet --model ubm"
    ran = run("compare", logs / "dcm.parquet", "--model", "dcm")
    assert ran.out.splitlines()[-1] == f"Next: prudent rank {logs / 'dcm.parquet'} -o policy.parquet"


def test_tables_in_memory_may_be_the_same_too(logs: Path) -> None:
    table = pq.read_table(logs / "pbm.parquet")
    with pytest.warns(PrudentWarning, match="the Table is both fitted and scored"):
        prudent.compare(prudent.Log(table), prudent.Log(table), model="pbm")


@pytest.mark.parametrize("share", ["a", None, float("nan")])
def test_a_share_that_is_no_number(logs: Path, share: Any) -> None:
    with pytest.raises(UsageError, match="it is a share, above 0 and below 1"):
        prudent.compare(prudent.Log(logs / "pbm.parquet"), holdout=share)


def test_command_for_machines(logs: Path) -> None:
    ran = run("compare", logs / "pbm.parquet", "--model", "pbm", "--model", "dcm(tail=truncate)", "--json")
    found = json.loads(ran.out)
    assert found["winner"] == "pbm"
    assert found["clear"] is True
    assert [score["model"] for score in found["scores"]][:1] == ["pbm"]
    assert set(found) == {
        "winner", "clear", "verdict", "train_lists", "test_lists", "unseen", "observed_ctr", "scores", "manifest",
    }  # fmt: skip
    assert set(found["scores"][0]) == {
        "model", "log_likelihood", "perplexity", "conditional_perplexity", "by_position", "predicted_ctr", "seconds",
        "why", "behind", "behind_se", "reference", "doubt", "excluded",
    }  # fmt: skip
    assert found["train_lists"] + found["test_lists"] == 6_000


def test_command_on_later_lists(logs: Path) -> None:
    ran = run("compare", logs / "pbm.parquet", "--test", logs / "pbm.parquet", "--length", 2, "--json")
    found = json.loads(ran.out)
    assert "pbm.parquet is both fitted and scored: its scores are too good." in ran.text
    assert found["train_lists"] == found["test_lists"] == 6_000
    assert found["manifest"]["settings"]["split"] == {"by": "log"}
    assert run("compare", logs / "pbm.parquet", "--test", logs / "dcm.parquet", "--json").err == ""
    assert len(found["observed_ctr"]) == 2


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--model", "pbn"], 2, "Did you mean 'pbm'"),
        (["--holdout", "1"], 2, "holdout is 1"),
        (["-o", "chart.pdf"], 2, ".svg or .png"),
        (["-o", "nowhere/chart.svg"], 4, "no folder"),
        (["--test", "nowhere.parquet"], 3, "There is no file"),
        (["--context", "query"], 3, "no column 'query'"),
        (["--by", "time", "--time", "when"], 3, "no column 'when'"),
        (["--by", "time"], 2, "--time COLUMN"),
    ],
)
def test_command_says_what_is_wrong(logs: Path, options: list[str], code: int, said: str) -> None:
    ran = run("compare", logs / "cm.parquet", *options)
    assert ran.code == code
    assert said in ran.text


def test_command_wants_the_log_itself(logs: Path, tmp_path: Path) -> None:
    assert run("count", logs / "cm.parquet", "-o", tmp_path / "counts.parquet").code == 0
    ran = run("compare", tmp_path / "counts.parquet")
    assert ran.code == 3
    assert "whole lists" in ran.text


# --- what auto makes of it ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
def test_auto_takes_the_winner(kind: str) -> None:
    lists = world_lists(make_world(kind, contexts=20, items=(6, 9), length=4, seed=3), 6_000, seed=0)
    choice = choose(lists)
    assert choice.comparison is not None
    assert kind in choice.comparison.plausible
    # 6,000 lists do not tell ccm, dbn and sdbn from simpler models.
    assert str(choice.model) == next(
        str(one) for one in selection.candidates() if str(one) in choice.comparison.plausible
    )
    assert str(choice.model) == kind or kind in ("ccm", "dbn", "sdbn")
    assert not choice.assumed
    assert choice.note == ""
    kept = choice.to_json()
    assert kept is not None
    assert kept["lists"] == 6_000
    assert kept["winner"] == choice.comparison.winner
    assert {score["model"] for score in kept["scores"]} == set(MODELS)
    order = np.random.default_rng(0).permutation(len(lists.n))
    shuffled = Arrays(lists.context, lists.items[order], lists.clicks[order], lists.n[order])
    assert json.dumps(choose(shuffled).to_json()) == json.dumps(kept), "no times among them, and no order"


@pytest.mark.parametrize("kind", MODELS)
def test_rank_takes_the_same_winner_from_a_log_and_from_its_counts(kind: str, logs: Path, tmp_path: Path) -> None:
    log, counts, policy = logs / f"{kind}.parquet", tmp_path / "counts.parquet", tmp_path / "policy.parquet"
    assert run("count", log, "-o", counts).code == 0
    manifests, first = [], set[str]()
    for source in (log, counts, log):
        ran = run("rank", source, "-o", policy)
        assert ran.code == 0
        manifests.append(json.loads(Path(f"{policy}.manifest.json").read_text(encoding="utf-8")))
        first.add(ran.text.partition("auto: ")[2].partition(".")[0])
    (chosen,) = first
    assert chosen == kind or kind not in LOOPED  # 6,000 lists do not tell ccm, dbn and sdbn from simpler models
    for manifest in manifests:
        assert (manifest["settings"]["asked_model"], manifest["settings"]["model"]) == ("auto", chosen)
        assert manifest["results"] == manifests[0]["results"]
    assert manifests[2] == manifests[0], "the same log gives the same manifest"


def test_auto_takes_the_simpler_model_in_a_near_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    """dcm is ahead of pbm by .01 ± .006: not by two standard errors."""
    lists = strategies.as_batch(SWAPPED * 20)

    def near(behind: float) -> Comparison:
        scores = (
            Score("dcm", -1.0, 1.2, 1.2, (1.2,), (0.1,), 0.0, behind=0.0, behind_se=0.0),
            Score("pbm", -1.0 - behind, 1.2, 1.2, (1.2,), (0.1,), 0.0, behind=behind, behind_se=0.006),
        )
        return Comparison(scores, "dcm", (0.1,), 80, 20)

    monkeypatch.setattr(selection, "compare_lists", lambda *_: near(0.01))
    choice = choose(lists)
    assert str(choice.model) == "pbm"
    assert choice.comparison is not None
    assert choice.comparison.winner == "dcm"
    monkeypatch.setattr(selection, "compare_lists", lambda *_: near(0.013))
    assert str(choose(lists).model) == "dcm"


def test_auto_compares_on_the_sample_that_counts_keep(logs: Path) -> None:
    """Whole contexts, chosen by their names alone, and their lists as often as the log has them."""
    counts = prudent.count(prudent.Log(str(logs / "dcm.parquet")))
    comparison = choose(counts.sample()).comparison
    assert comparison is not None
    assert comparison.train_lists + comparison.test_lists == counts.sample().n.sum()


def test_auto_says_where_the_simplest_model_is_not_identified() -> None:
    choice = choose(strategies.as_batch(still(1_200)))
    assert str(choice.model) == "dcm"
    assert choice.assumed
    assert "pbm is not identified" in choice.note


@pytest.mark.parametrize("lists", [SWAPPED * 8, [("q", ("a",), (0,))] * 1_000], ids=["few lists", "no clicks"])
def test_auto_does_not_compare_what_cannot_be_told_apart(lists: list[LoggedList]) -> None:
    assert choose(strategies.as_batch(lists)) == Choice(prudent.click_models.parse("pbm"))


def test_a_model_that_is_named_is_taken_as_it_is() -> None:
    model = prudent.click_models.parse("dcm(tail=truncate)")
    assert selection.resolve(model, lambda: pytest.fail("no list is read")) == Choice(model)


# --- real clicks --------------------------------------------------------------------------------------------------


@pytest.mark.data
def test_real_clicks() -> None:
    """Fitted to the first days and scored on later ones, as the page on comparing models shows."""
    folder = Path(os.environ["PRUDENT_DATA"]) / "yandex"
    train, test = (read_yandex(folder / f"{part}.tsv.gz") for part in ("train", "test"))
    found = compare(train, test, model=["dcm", "dcm(tail=truncate)", "pbm", "cm", "ubm"])
    expected = {
        "CTR by position": (-3.855, 1.488, 1.488),
        "CTR by item": (-3.575, 1.442, 1.442),
        "dcm(tail=truncate)": (-3.750, 1.441, 1.467),
        "dcm": (-3.576, 1.442, 1.442),
        "pbm": (-3.524, 1.4335, 1.4335),
        "ubm": (-3.241, 1.434, 1.396),
    }
    for name, figures in expected.items():
        score = found[name]
        scores = (score.log_likelihood, score.perplexity, score.conditional_perplexity)
        assert scores == pytest.approx(figures, abs=0.004)
    assert found.winner == "ubm"
    assert found.clear
    assert "contradicts dcm" in found["dcm"].doubt, "items are clicked more often right below a click"
