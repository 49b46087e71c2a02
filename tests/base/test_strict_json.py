"""JSON of strangers: what parsers read in different ways is refused, and values have the types that are meant."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from prudent.base.errors import UsageError
from prudent.base.spec import as_number, check_share
from prudent.base.strict_json import parse_json, typed


@dataclass(frozen=True)
class Term:
    slope: float
    wald: float | None = None


@dataclass(frozen=True)
class Curve:
    name: str
    slopes: tuple[float, ...]
    size: int = 0
    terms: Mapping[str, Term] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' is there twice"),
        ("[1, NaN]", "no number NaN"),
        ("-Infinity", "no number -Infinity"),
        ("[" * 100_000, "nested too deep"),
        (r'["\udc00\ud800"]', "half a character"),
        ("", "Expecting value"),
    ],
)
def test_what_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_json(text)


def test_whole_pairs_of_surrogates_are_characters() -> None:
    assert parse_json(r'"\ud83d\ude00"') == "\U0001f600"


def test_types() -> None:
    content = {"name": "x", "slopes": [1, 2.5], "terms": {"item": {"slope": 1}}}
    assert typed(content, Curve) == Curve("x", (1.0, 2.5), 0, {"item": Term(1.0)})


@pytest.mark.parametrize(
    "change",
    [
        {"name": 1},
        {"slopes": 1.0},
        {"slopes": ["1"]},
        {"slopes": [1e999]},
        {"slopes": [10**400]},
        {"slopes": [True]},
        {"size": 1.0},
        {"size": True},
        {"size": 1 << 63},
        {"terms": []},
        {"terms": {"item": 1}},
        {"terms": {"item": {}}},
        {"terms": {"item": {"slope": 1, "wald": "x"}}},
        {"other": 1},
    ],
)
def test_other_types_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"is no|has other entries"):
        typed({"name": "x", "slopes": [1.0], **change}, Curve)


def test_an_integer_of_hundreds_of_digits_is_a_number_and_out_of_range() -> None:
    assert as_number(-(10**400)) == float("-inf")
    with pytest.raises(UsageError, match="must be a number"):
        check_share("tolerance", 10**400)
