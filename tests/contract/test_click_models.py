"""What every click model must satisfy; a new one is covered the day it registers."""

import json
import random
from dataclasses import fields
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import prudent
from prudent.base.errors import NotIdentifiedError, UsageError
from prudent.click_models import Evidence, FittedModel, click_models
from tests.reference import LoggedList
from tests.strategies import count, linked_logs, quick_counts

every_model = pytest.mark.parametrize("name", list(click_models))

# Each item of context q stands at each position at least 20 times, so that pbm is identified.
LINKED: list[LoggedList] = [
    *[("q", ("a", "b", "c"), (1, 0, 0))] * 30,
    *[("q", ("b", "c", "a"), (0, 1, 1))] * 25,
    *[("q", ("c", "a", "b"), (0, 0, 1))] * 20,
    *[("q", ("c", "b"), (0, 0))] * 10,
    *[("r", ("a", "d"), (1, 1))] * 3,
]


def names_of(name: str) -> list[str]:
    return [field.name for field in fields(click_models[name])]  # type: ignore[arg-type]


# --- spelling -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in click_models if {"continuation", "examination"} & {*names_of(name)}])
@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("[0.5, 1.5]", r"must be probabilities between 0 and 1; it is \[0.5, 1.5\]"),
        ("[-0.1]", "must be probabilities between 0 and 1"),
        ("[nan]", "must be probabilities between 0 and 1"),
        ("[high, low]", "write a list of probabilities"),
        ("0.5", "write a list of probabilities"),
        ("high", "write a list of probabilities"),
    ],
)
def test_refuses_position_parameters_that_are_no_probabilities(name: str, written: str, complaint: str) -> None:
    (setting,) = {"continuation", "examination"} & {*names_of(name)}
    with pytest.raises(UsageError, match=f"{setting} .*{complaint}"):
        click_models.parse(f"{name}({setting}={written})")


@pytest.mark.parametrize(
    ("spelling", "complaint"),
    [
        ("dcm(tail=trunc)", "dcm has no tail=trunc. Did you mean 'truncate'"),
        ("dcm(tail=0.5)", "dcm has no tail=0.5. Known: em, truncate"),
        ("pbm(counts=weigthed)", "pbm has no counts=weigthed. Did you mean 'weighted'"),
        ("pbm(solver=em2)", "pbm has no solver=em2"),
        ("pbm(solver=[1])", "pbm has no solver="),
        ("pbm(smooth=0)", "smooth is 0.0; it must be a number above 0"),
        ("pbm(smooth=nan)", "smooth is nan"),
        ("pbm(smooth=inf)", "smooth is inf"),
        ("pbm(smooth=1e308)", "smooth is 1e+308; it must be a number above 0, from 1e-9 to 1e9"),
        ("pbm(smooth=much)", "smooth is much"),
        ("pbm(counts=weighted, examination=[1, 0])", "none may be 0"),
    ],
)
def test_refuses_settings_out_of_range(spelling: str, complaint: str) -> None:
    with pytest.raises(UsageError) as refusal:
        click_models.parse(spelling)
    assert complaint in str(refusal.value)


# --- evidence -----------------------------------------------------------------------------------------------------


def evidence_of(name: str, counts: prudent.Counts) -> Evidence:
    """With typical parameters, where few lists have several clicks."""
    model = click_models[name]()
    try:
        return model.evidence(counts)
    except NotIdentifiedError:
        assert model.whole_lists
        return model.typical(counts.cells.positions).pinned.evidence(counts)


@every_model
@settings(max_examples=40, deadline=None)
@given(lists=linked_logs())
def test_evidence_makes_sense(name: str, lists: list[LoggedList]) -> None:
    counts = quick_counts(lists)
    cells = counts.cells
    evidence = evidence_of(name, counts)
    assert evidence.context.tolist() == cells.context.tolist()
    for context in np.unique(cells.context):
        assert evidence.item[cells.context == context].tolist() == list(range(np.sum(cells.context == context)))
    assert evidence.impressions.tolist() == cells.per_pair().tolist()
    clicks = cells.per_pair(cells.click)
    assert (evidence.positive >= 0).all()
    assert (evidence.positive <= clicks).all()
    assert (evidence.negative >= 0).all()
    assert (evidence.examined <= evidence.impressions + 1e-9).all(), "no more examinations than impressions"
    assert (evidence.squares <= evidence.expected + 1e-9).all(), "the squares of probabilities"
    assert (evidence.expected <= evidence.impressions + 1e-9).all()
    assert evidence.fitted.positions == cells.positions
    for parameter in evidence.fitted.parameters.values():
        assert ((parameter >= 0) & (parameter <= 1)).all()
    json.dumps({key: value.tolist() for key, value in evidence.fitted.parameters.items()}, allow_nan=False)


@pytest.mark.parametrize("name", [name for name in click_models if name != "ensemble"])  # twice the log, other draws
def test_a_log_shown_twice_is_the_same_evidence_twice(name: str) -> None:
    """Of models whose parameters are fitted only nearly so: pseudo-observations are not doubled."""
    once, twice = (click_models[name]().evidence(quick_counts(LINKED * times)) for times in (20, 40))
    np.testing.assert_allclose(twice.positive, 2 * once.positive)
    np.testing.assert_allclose(twice.negative, 2 * once.negative, rtol=0.02)


@every_model
def test_shuffled_lists_give_the_same_bits(name: str) -> None:
    shuffled = random.Random(0).sample(LINKED * 2, 2 * len(LINKED))
    first, second = (click_models[name]().evidence(count(lists)) for lists in (LINKED * 2, shuffled))
    for column in ("context", "item", "positive", "negative", "impressions", "expected", "squares"):
        assert getattr(first, column).tobytes() == getattr(second, column).tobytes(), column
    for parameter, values in first.fitted.parameters.items():
        assert values.tobytes() == second.fitted.parameters[parameter].tobytes(), parameter


@every_model
def test_the_model_of_the_evidence_can_be_named_again(name: str) -> None:
    evidence = click_models[name]().evidence(quick_counts(LINKED * 2))
    model, pinned = evidence.fitted.model, evidence.fitted.pinned
    assert click_models.parse(str(model)) == model
    assert model == click_models[name]() or name in ("auto", "robust")
    assert click_models.parse(str(pinned)) == pinned


# --- value --------------------------------------------------------------------------------------------------------


@cache
def fitted(name: str) -> FittedModel:
    """The model, or the one that it chooses, fitted to lists of three positions."""
    return click_models[name]().evidence(quick_counts(LINKED * 2)).fitted


unit = st.floats(0, 1)
three = st.lists(unit, min_size=3, max_size=3)


@every_model
@given(data=st.data())
def test_value_never_falls_when_an_item_gets_better(name: str, data: st.DataObject) -> None:
    theta = np.array(data.draw(three))
    better = np.maximum(theta, data.draw(three))
    # Both are rounded: of values closer than 1e-12 either may come out above.
    assert fitted(name).value(better) >= fitted(name).value(theta) - 1e-12


@pytest.mark.parametrize(("name", "setting"), [("dcm", "continuation"), ("pbm", "examination")])
@given(data=st.data())
def test_value_never_falls_when_a_position_gets_better(name: str, setting: str, data: st.DataObject) -> None:
    """Higher examination of pbm; lower continuation of dcm, after which more clicks satisfy."""
    theta, low = np.array(data.draw(three)), np.array(data.draw(three))
    high = np.maximum(low, data.draw(three))
    worse, better = (high, low) if name == "dcm" else (low, high)
    values = [click_models[name](**{setting: tuple(of)}).typical(3).value(theta) for of in (worse, better)]
    assert values[1] >= values[0] - 1e-12


@every_model
def test_value_runs_along_the_last_axis(name: str) -> None:
    theta = np.random.default_rng(0).random((4, 5, 3))
    whole = fitted(name).value(theta)
    assert whole.shape == (4, 5)
    assert whole[2, 3] == pytest.approx(float(fitted(name).value(theta[2, 3])))
    assert fitted(name).value(np.zeros(3)) == 0


@pytest.mark.parametrize("spelling", ["dcm(continuation=[0.5, 1])", "pbm(examination=[0.5, 0])"])
def test_an_item_at_a_position_without_weight_is_worth_nothing(spelling: str) -> None:
    assert click_models.parse(spelling).typical(2).value(np.array([0.3, 0.9])) == pytest.approx(0.15)


@every_model
def test_positions_that_no_list_has_are_worth_nothing(name: str) -> None:
    theta = np.array([0.3, 0.9, 0.2, 0.8])
    assert fitted(name).value(theta) == pytest.approx(float(fitted(name).value(theta[:3])))
