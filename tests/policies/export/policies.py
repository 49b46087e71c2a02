"""Policies to export, made by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import prudent
from prudent.policies.files import COLUMNS

Name = str | int
Lists = Mapping[Name, Sequence[Name]]

HOSTILE: Lists = {
    "running shoes": ["i1", "i2", "i3"],
    'it\'s "quoted" `so`': ["'; drop table prudent_lists; --", '"', "''", "\\", "\\'", "\\n", "E'x'", "$$", "%s", "?"],
    "tab\there, newline\nhere, return\rhere, both\r\nhere": [
        "a\tb",
        "a\nb",
        "a\rb",
        "a\r\nb",
        "\\.",
        "\n\\q\n",
        ":x",
        ":'x'",
    ],
    "=cmd|' /C calc'!A0": ["+1", "-1", "@x", ",", ";", "a,b"],
    "": ["", " ", "  two  "],
    "{}[]*$5\r\n": ["*3", "$3\r\nSET", "{{x}}", "{0}"],
    "ünïcødé 🥾 \u202e\u0301\ufeff": ["日本", "𝕏", "\u2028", "\x7f", "\x1b[31m", "\x01"],
    "NULL": ["null", "NaN", "007", "7", "1e5", "true"],
    "</script><b>": ["&amp;", "<i>"],
    "x" * 2000: ["y" * 500],
}
"""Names that end something in some language, or mean something."""

NUMBERED: Lists = {7: [1, 2, 3], -5: [2**63 - 1, -(2**63)], 0: [0], 2**53 + 1: [2**53 + 1]}


def any_lists(names: SearchStrategy[Any]) -> SearchStrategy[Lists]:
    return st.dictionaries(names, st.lists(names, min_size=1, max_size=4, unique=True), min_size=1, max_size=5)


few = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
"""Examples, where each of them is loaded by a program."""


def write(path: Path, lists: Lists) -> Path:
    """A policy whose bounds are numbers that are hard to write, minus infinity among them."""
    bounds = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, float("-inf"), 0.0, 1e-7, 123456789.125]
    rows = [
        (
            context,
            rank,
            item,
            bounds[(rank - 1) % len(bounds)],
            1 / rank,
            2 / rank,
            3 / rank,
            float(rank),
            rank / 7,
            9,
        )
        for context, items in lists.items()
        for rank, item in enumerate(items, start=1)
    ]
    kinds = {
        name: pa.int64() if isinstance(next(iter(lists), ""), int) else pa.string() for name in ("context", "item")
    }
    types = [kinds["context"], pa.int32(), kinds["item"], *[pa.float64()] * 6, pa.int64()]
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[]] * len(COLUMNS)
    table = pa.table({name: pa.array(column, kind) for name, column, kind in zip(COLUMNS, columns, types, strict=True)})
    with duckdb.connect() as connection:
        connection.register("rows", table)
        connection.execute("copy (from rows order by hash(context, rank)) to ? (format parquet)", [str(path)])
    return path


def policy_of(folder: Path, lists: Lists) -> prudent.Policy:
    return prudent.Policy.read(write(folder / "policy.parquet", lists))


def exported(policy: prudent.Policy, to: str, folder: Path) -> bytes:
    prudent.export(policy, folder / "exported", format=to)
    return (folder / "exported").read_bytes()
