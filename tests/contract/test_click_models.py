"""What every click model must satisfy; a new one is covered the day it registers."""

import json
import random
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from prudent.base.errors import UsageError
from prudent.click_models import ClickModel, click_models
from tests.reference import LoggedList
from tests.strategies import count, linked_logs, quick_counts

every_model = pytest.mark.parametrize("name", list(click_models))

probabilities = st.lists(st.floats(0.01, 1), max_size=5).map(tuple)
SETTINGS: dict[str, SearchStrategy[Any]] = {
    "tail": st.sampled_from(["em", "truncate"]),
    "continuation": probabilities,
    "counts": st.sampled_from(["examined", "weighted"]),
    "fit": st.sampled_from(["em", "als"]),
    "smooth": st.floats(1e-9, 1e6),
    "examination": probabilities,
}
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


def values(name: str) -> SearchStrategy[ClickModel]:
    """Models with any settings; a setting not listed above keeps its default."""
    known = {setting: SETTINGS[setting] for setting in names_of(name) if setting in SETTINGS}
    return st.builds(click_models[name], **known)


# --- spelling -----------------------------------------------------------------------------------------------------


@every_model
@given(data=st.data())
def test_text_round_trips(name: str, data: st.DataObject) -> None:
    model = data.draw(values(name))
    assert click_models.parse(str(model)) == model
    assert str(click_models.parse(str(model))) == str(model)


@every_model
def test_its_plain_name_has_the_default_settings(name: str) -> None:
    assert click_models.parse(name) == click_models[name]()
    assert str(click_models[name]()) == name


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
        ("dcm(tail=trunc)", "dcm knows no tail=trunc. Did you mean 'truncate'"),
        ("dcm(tail=0.5)", "dcm knows no tail=0.5. Known: em, truncate"),
        ("pbm(counts=weigthed)", "pbm knows no counts=weigthed. Did you mean 'weighted'"),
        ("pbm(fit=em2)", "pbm knows no fit=em2"),
        ("pbm(fit=[1])", "pbm knows no fit="),
        ("pbm(smooth=0)", "smooth is 0.0; it must be a number above 0"),
        ("pbm(smooth=nan)", "smooth is nan"),
        ("pbm(smooth=inf)", "smooth is inf"),
        ("pbm(smooth=much)", "smooth is much"),
        ("pbm(counts=weighted, examination=[1, 0])", "none may be 0"),
    ],
)
def test_refuses_settings_out_of_range(spelling: str, complaint: str) -> None:
    with pytest.raises(UsageError) as refusal:
        click_models.parse(spelling)
    assert complaint in str(refusal.value)


# --- evidence -----------------------------------------------------------------------------------------------------


@every_model
@settings(max_examples=40, deadline=None)
@given(lists=linked_logs())
def test_evidence_makes_sense(name: str, lists: list[LoggedList]) -> None:
    counts = quick_counts(lists)
    cells = counts.cells
    evidence = click_models[name]().evidence(counts)
    assert evidence.context.tolist() == cells.context.tolist()
    for context in np.unique(cells.context):
        assert evidence.item[cells.context == context].tolist() == list(range(np.sum(cells.context == context)))
    assert evidence.impressions.tolist() == cells.per_pair().tolist()
    clicks = cells.per_pair(cells.click)
    assert (evidence.positive >= 0).all()
    assert (evidence.positive <= clicks).all()
    assert (evidence.negative >= 0).all()
    assert (evidence.examined <= evidence.impressions + 1e-9).all(), "no more examinations than impressions"
    assert evidence.weight.shape == (cells.positions,)
    assert ((evidence.weight >= 0) & (evidence.weight <= 1)).all()
    json.dumps({key: list(value) for key, value in evidence.fitted.items()}, allow_nan=False)


@every_model
def test_a_log_shown_twice_is_the_same_evidence_twice(name: str) -> None:
    """Of models whose parameters are fitted only nearly so: pseudo-observations are not doubled."""
    once, twice = (click_models[name]().evidence(quick_counts(LINKED * times)) for times in (20, 40))
    np.testing.assert_allclose(twice.positive, 2 * once.positive)
    np.testing.assert_allclose(twice.negative, 2 * once.negative, rtol=0.02)


@every_model
def test_shuffled_lists_give_the_same_bits(name: str) -> None:
    shuffled = random.Random(0).sample(LINKED, len(LINKED))
    first, second = (click_models[name]().evidence(count(lists)) for lists in (LINKED, shuffled))
    for column in ("context", "item", "positive", "negative", "impressions", "weight"):
        assert getattr(first, column).tobytes() == getattr(second, column).tobytes(), column


@every_model
def test_the_model_of_the_evidence_can_be_named_again(name: str) -> None:
    evidence = click_models[name]().evidence(quick_counts(LINKED))
    assert click_models.parse(str(evidence.model)) == evidence.model
    assert evidence.model == click_models[name]() or name == "auto"


# --- value --------------------------------------------------------------------------------------------------------


@cache
def chosen(name: str) -> ClickModel:
    """The model itself, or the one that it leaves in its place."""
    return click_models[name]().evidence(quick_counts(LINKED)).model


@every_model
@given(data=st.data())
def test_value_never_falls_when_an_item_or_a_position_gets_better(name: str, data: st.DataObject) -> None:
    model = chosen(name)
    unit = st.floats(0, 1)
    theta, weight = (np.array(data.draw(st.lists(unit, min_size=3, max_size=3))) for _ in range(2))
    better_theta = np.maximum(theta, data.draw(st.lists(unit, min_size=3, max_size=3)))
    better_weight = np.maximum(weight, data.draw(st.lists(unit, min_size=3, max_size=3)))
    # Both are rounded: of values closer than 1e-12 either may come out above.
    assert model.value(better_theta, weight) >= model.value(theta, weight) - 1e-12
    assert model.value(theta, better_weight) >= model.value(theta, weight) - 1e-12


@every_model
def test_value_runs_along_the_last_axis(name: str) -> None:
    model = chosen(name)
    theta, weight = np.random.default_rng(0).random((4, 5, 3)), np.array([1, 0.5, 0.3])
    whole = model.value(theta, weight)
    assert whole.shape == (4, 5)
    assert whole[2, 3] == pytest.approx(float(model.value(theta[2, 3], weight)))
    assert model.value(np.zeros(3), weight) == 0


@every_model
def test_an_item_at_a_position_without_weight_is_worth_nothing(name: str) -> None:
    model = chosen(name)
    assert model.value(np.array([0.3, 0.9]), np.array([0.5, 0])) == pytest.approx(0.15)
