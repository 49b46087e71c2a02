"""What results have in common."""

import sys
from dataclasses import dataclass

import duckdb
import polars
import pyarrow
import pytest

from prudent.base.errors import UsageError
from prudent.base.results import Result
from prudent.base.text import Column, Rows


@dataclass(frozen=True, repr=False)
class Scores(Result):
    values: Rows

    @property
    def columns(self) -> tuple[Column, ...]:
        return (
            Column("item", object),
            Column("lower", float),
            Column("views", int),
            Column("listed", bool),
            Column('a"b', str),
        )

    @property
    def title(self) -> str:
        return "Scores"

    @property
    def notes(self) -> tuple[str, ...]:
        return ("made up",)

    def rows(self) -> Rows:
        return self.values


ROWS = [("x", 0.5, 1200, True, "why"), ("y", None, None, False, None)]


def test_frames_have_the_types_of_the_columns() -> None:
    frame = Scores(ROWS).to_frame()
    assert list(frame.columns) == ["item", "lower", "views", "listed", 'a"b']
    assert frame["lower"].dtype == "float64"
    assert frame["listed"].tolist() == [True, False]
    assert Scores([]).to_frame().shape == (0, 5)


def test_arrow_reaches_every_reader() -> None:
    result = Scores(ROWS)
    assert [tuple(row.values()) for row in pyarrow.table(result).to_pylist()] == ROWS
    assert polars.DataFrame(result).rows() == ROWS
    assert duckdb.execute("from result").fetchall() == ROWS


def test_names_are_text_or_integers() -> None:
    kinds = [Scores([(name, None, None, None, None)]).relation().types[0] for name in ("7", 7, 2**64 - 1)]
    assert list(map(str, kinds)) == ["VARCHAR", "BIGINT", "UBIGINT"]


def test_without_pandas_a_frame_is_of_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"polars"}
    monkeypatch.setattr("prudent.base.results.find_spec", lambda name: name in installed or None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert Scores(ROWS).to_frame().rows() == ROWS
    installed.clear()
    with pytest.raises(UsageError, match="pandas or Polars"):
        Scores(ROWS).to_frame()


def test_it_prints_as_a_table_that_ends() -> None:
    lines = repr(Scores(ROWS * 20)).splitlines()
    assert lines[:3] == ["Scores", 'item  lower  views  listed  a"b', "x     0.500  1,200  yes     why"]
    assert lines[-2:] == ["... and 20 more rows", "made up"]
    assert len(lines) == 24


def test_it_shows_as_html() -> None:
    page = Scores(ROWS)._repr_html_()
    assert page.startswith('<table><caption style="text-align:left">Scores</caption>')
    assert page.endswith("</table><p>made up</p>")
