"""What every registered class must satisfy: a spelling that reads back, defaults, and a docstring.

Click models, bounds, baselines, estimators, export formats and feature models are covered the day they register.
"""

import inspect
from dataclasses import fields
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from prudent.base.errors import UsageError
from prudent.base.spec import Registry
from prudent.bounds import bounds
from prudent.bounds.feature_models import feature_models
from prudent.click_models import click_models
from prudent.evaluation.estimators import estimators
from prudent.policies.baselines import baselines
from prudent.policies.export import formats

REGISTRIES: tuple[Registry[Any], ...] = (click_models, bounds, baselines, estimators, formats, feature_models)
every_class = pytest.mark.parametrize(
    ("registry", "name"),
    [pytest.param(registry, name, id=f"{registry.kind} {name}") for registry in REGISTRIES for name in registry],
)

positive_numbers = st.floats(1e-3, 1e6)
probabilities = st.lists(st.floats(0.01, 1), max_size=5).map(tuple)
rows = st.lists(st.lists(st.floats(0.01, 1), min_size=4, max_size=4).map(tuple), max_size=4).map(tuple)
words = st.text("abcxyz", min_size=1, max_size=5)
SETTINGS: dict[str, SearchStrategy[Any]] = {
    "alpha": positive_numbers,
    "ccm alpha": st.just(()) | st.lists(st.floats(0, 1), min_size=3, max_size=3).map(tuple),
    "beta": positive_numbers,
    "clip": st.floats(0, inf, exclude_min=True) | st.integers(1, 2**53),
    "contexts": st.sampled_from(["named", "numbered"]),
    "continuation": probabilities,
    "counts": st.sampled_from(["examined", "weighted"]),
    "decreasing": st.lists(words.map(str.upper), max_size=2).map(tuple),
    "delta": st.floats(1e-12, 1),
    "examination": probabilities,
    "ubm examination": rows,
    "grid": st.lists(positive_numbers, min_size=1, max_size=5).map(tuple),
    "increasing": st.lists(words, max_size=2).map(tuple),
    "key": words,
    "leaves": st.integers(2, 16),
    "metadata": words,
    "model": st.sampled_from(["cm", "dcm(tail=truncate)", "pbm(examination=[1, 0.5])"]).map(click_models.parse),
    "name": words,
    "perseverance": st.none() | st.floats(0, 1),
    "pool": st.sampled_from(["all", "context"]),
    "rate": st.floats(1e-3, 1),
    "replicates": st.integers(2, 1000),
    "rules": st.integers(1, 1000),
    "satisfaction": st.lists(st.floats(0, 0.99), max_size=2).map(tuple),
    "smooth": st.floats(1e-9, 1e6),
    "solver": st.sampled_from(["em", "als"]),
    "table": words,
    "tag": words,
    "trees": st.integers(2, 200),
    "tail": st.sampled_from(["em", "truncate"]),
}


def values(registry: Registry[Any], name: str) -> SearchStrategy[Any]:
    """Values with any settings; a setting not listed above keeps its default."""
    cls = registry[name]
    known = {one.name: SETTINGS.get(f"{name} {one.name}", SETTINGS.get(one.name)) for one in fields(cls)}
    return st.builds(cls, **{setting: drawn for setting, drawn in known.items() if drawn is not None})


@every_class
@settings(max_examples=50)
@given(data=st.data())
def test_text_round_trips(registry: Registry[Any], name: str, data: st.DataObject) -> None:
    value = data.draw(values(registry, name))
    assert registry.parse(str(value)) == value
    assert str(registry.parse(str(value))) == str(value)


@every_class
def test_its_plain_name_has_the_default_settings(registry: Registry[Any], name: str) -> None:
    plain = registry.parse(name)
    assert plain == registry[name]()
    shown = ["delta"] if any(one.name == "delta" for one in fields(registry[name])) else []  # a level is always told
    assert str(plain) == name + "".join(f"({setting}={getattr(plain, setting):g})" for setting in shown)


@every_class
def test_an_unknown_setting_is_refused_with_those_it_has(registry: Registry[Any], name: str) -> None:
    has = ", ".join(one.name for one in fields(registry[name])) or "none"
    with pytest.raises(UsageError, match=rf"{name} has no setting 'nothing'\..* It has:? {has}\."):
        registry.parse(f"{name}(nothing=1)")


@every_class
def test_it_is_explained(registry: Registry[Any], name: str) -> None:
    """The reference and the help texts are made from its docstring."""
    assert len((inspect.getdoc(registry[name]) or "").partition("\n")[0]) > 20


@pytest.mark.parametrize(("text", "near"), [("PBM", "pbm"), ("Dcm(tail=truncate)", "dcm"), ("position_based", None)])
def test_another_case_is_another_name_and_gets_a_hint(text: str, near: str | None) -> None:
    with pytest.raises(UsageError, match=rf"No click model is called '{text.partition('(')[0]}'") as refused:
        click_models.parse(text)
    assert (f"Did you mean '{near}'?" in str(refused.value)) == (near is not None)
