"""Numbers, names and tables as text."""

import unicodedata
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prudent.base.text import (
    LONGEST,
    Column,
    as_cell,
    html_table,
    number,
    percent,
    plain,
    rich_table,
    text_table,
    visible,
)


def test_numbers_that_are_no_numbers() -> None:
    assert [number(x) for x in (None, float("nan"), float("inf"), float("-inf"))] == ["–", "–", "∞", "−∞"]
    assert [percent(x) for x in (None, float("nan"))] == ["–", "–"]


@given(value=st.floats(-1e9, 1e9), digits=st.integers(0, 6), signed=st.booleans())
def test_a_number_reads_back(value: float, digits: int, signed: bool) -> None:
    shown = number(value, digits, signed=signed)
    assert float(shown.replace("−", "-").replace(",", "")) == float(f"{value:.{digits}f}")
    assert "-" not in shown
    assert shown[0] not in "+−" or float(f"{value:.{digits}f}") != 0


@given(name=st.text() | st.integers())
def test_a_visible_name_is_one_line_that_reorders_nothing(name: str | int) -> None:
    shown = visible(name)
    assert not set(shown) & set(
        "\n\r\t\0\x1b\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f"
    )
    shown.encode()  # no half of a surrogate pair
    assert shown.strip()
    letters = [c for c in str(name) if unicodedata.category(c)[0] != "M"]
    if str(name).isprintable() and len(letters) == len(str(name)) <= LONGEST and str(name).strip():
        assert shown == str(name)


@pytest.mark.parametrize("piece", ["\0", "\u0301", "\u202e"])
def test_escapes_do_not_get_long(piece: str) -> None:
    assert len(visible("e" + piece * 5000 + "end")) <= LONGEST


def test_a_pile_of_marks_does_not_cover_other_lines() -> None:
    assert visible("e" + "\u0301" * 6) == "e" + "\u0301" * 4 + "\\u0301" * 2
    assert visible("tiếng Việt") == "tiếng Việt"


def test_emoji_and_scripts_stay_as_they_are() -> None:
    for name in ("👩‍👩‍👧", "می‌خواهم", "שלום", "走る"):
        assert visible(name) == name


def test_a_long_name_keeps_its_ends() -> None:
    shown = visible("start" + "x" * 5000 + "end")
    assert len(shown) <= LONGEST
    assert shown.startswith("start")
    assert shown.endswith("end")


def test_control_characters_are_escaped() -> None:
    assert plain("a\x1b[31m\n\t\x9b\u202e é 😀") == "a\\x1b[31m\\n\\t\\x9b\\u202e é 😀"


def test_cells_by_type() -> None:
    assert [as_cell(x) for x in (None, True, 1234, 0.5, "a\n", -7)] == ["–", "yes", "1,234", "0.500", "a\\n", "−7"]


def test_tables_align_by_type() -> None:
    columns = [Column("item", object), Column("lower", float), Column("note", str, align="right")]
    assert text_table(columns, [["a", 0.5, "x"], [1000, None, "yy"]]).splitlines() == [
        "item  lower  note",
        "a     0.500     x",
        "1000      –    yy",
    ]
    assert text_table(["a"], []) == "a"


def test_html_escapes_names_and_sets_no_colour() -> None:
    page = html_table(["<item>"], [["<b>x</b>"]], "a<b", ["c&d"])
    for unsafe in ("<item>", "<b>", "a<b", "c&d"):
        assert unsafe not in page
    assert "color" not in page
    assert "background" not in page


def test_a_rich_table_takes_no_markup_from_names() -> None:
    from rich.console import Console

    console = Console(width=60, record=True, file=StringIO())
    console.print(rich_table(["item", "n"], [["[red]x[/red]", 1234]], title="[bold]t"))
    shown = console.export_text()
    assert "[red]x[/red]" in shown
    assert "[bold]t" in shown
    assert "1,234" in shown
