"""Tables have the columns that were promised, and the numbers of the errors behind them."""

import csv
import math
from pathlib import Path

import duckdb
import numpy as np
import pytest

from prudent.base.numerics.paired import standard_error
from prudent.bounds import bounds
from prudent.click_models import click_models
from prudent.research.protocol import Protocol
from prudent.research.sources import YandexLike
from prudent.research.table import Results, Row, paired_ratio, write_repetitions, write_rows

COLUMNS = ["data", "logging", "model", "method", "delta", "n", "error", "se", "repetitions"]
ERRORS = np.array([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2], [0.2, 0.0, 0.7], [0.2, 0.1, 0.4]])


def results(errors: np.ndarray = ERRORS, **more: object) -> Results:
    learners = {"mle": bounds.parse("mle"), "eb": bounds.parse("eb")}
    how: dict[str, object] = {"deltas": (0.2, 0.5), "n": 70, **more}
    source, model = YandexLike("dcm"), click_models.parse("dcm(tail=truncate)")
    return Results(Protocol("Ünknown, 10", "pro,duction", source, model, learners, **how), errors)  # type: ignore[arg-type]


def rows_of(path: Path) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(f"from read_parquet('{path}')").fetchall()


def test_columns_and_their_types(tmp_path: Path) -> None:
    write_rows(results().rows(), tmp_path / "table.parquet")
    with duckdb.connect() as connection:
        actual = connection.execute(f"describe from read_parquet('{tmp_path / 'table.parquet'}')").fetchall()
    assert [name for name, *_ in actual] == COLUMNS
    numbers = ["DOUBLE", "BIGINT", "DOUBLE", "DOUBLE", "BIGINT"]
    assert [kind for _, kind, *_ in actual] == ["VARCHAR"] * 4 + numbers


def test_rows_are_means_and_standard_errors(tmp_path: Path) -> None:
    """By hand: the mean, and the root of Σ(x − mean)² / (4 · 3)."""
    write_rows(results().rows(), tmp_path / "table.parquet")
    actual = rows_of(tmp_path / "table.parquet")
    named = ("Ünknown, 10", "pro,duction", "dcm(tail=truncate)")
    assert [row[:6] for row in actual] == [(*named, *arm, 70) for arm in (("mle", None), ("eb", 0.2), ("eb", 0.5))]
    np.testing.assert_allclose([float(str(row[6])) for row in actual], [0.2, 0.1, 0.4])
    expected = [np.sqrt(0.02 / 12), np.sqrt(0.02 / 12), np.sqrt(0.14 / 12)]
    np.testing.assert_allclose([float(str(row[7])) for row in actual], expected)
    assert [row[8] for row in actual] == [4, 4, 4]


def test_csv_says_the_same(tmp_path: Path) -> None:
    write_rows(results().rows(), tmp_path / "table.parquet")
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    assert header == COLUMNS
    for line, row in zip(lines, rows_of(tmp_path / "table.parquet"), strict=True):
        assert line[:4] == list(row[:4])
        assert [float(word) if word else None for word in line[4:]] == list(row[4:])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["table.csv", "table.parquet"]


def test_what_is_not_there_is_null(tmp_path: Path) -> None:
    """δ of a method without one, and the standard error of a single repetition."""
    write_rows(results(ERRORS[:1]).rows(), tmp_path / "table.parquet")
    assert [(row[4], row[7]) for row in rows_of(tmp_path / "table.parquet")] == [(None, None), (0.2, None), (0.5, None)]
    assert np.isnan(standard_error(np.array([0.3])))


def test_a_table_of_nothing_but_mle(tmp_path: Path) -> None:
    write_rows(Results(mle_only(), ERRORS[:, :1]).rows(), tmp_path / "table.parquet")
    (row,) = rows_of(tmp_path / "table.parquet")
    assert row[3:6] == ("mle", None, 70)


def mle_only() -> Protocol:
    model = click_models.parse("cm")
    return Protocol("d", "l", YandexLike("cm"), model, {"mle": bounds.parse("mle")}, n=70, label="as told")


def test_a_label_stands_for_the_model() -> None:
    assert Results(mle_only(), ERRORS[:, :1]).row(0).model == "as told"


def test_differences_are_paired() -> None:
    """The standard error is that of the differences: smaller than either, where both go up and down together."""
    noise = np.array([0.0, 1.0, 5.0, 2.0])
    errors = np.stack([noise + 0.3, noise + np.array([0.1, 0.2, 0.1, 0.2]), noise], axis=1)
    row = results(errors).difference("mle", "eb", 0.2)
    assert row.error == pytest.approx(0.15)
    assert row.se == pytest.approx(np.sqrt(0.01 / 12))
    assert (row.method, row.delta, row.repetitions) == ("eb", 0.2, 4)
    np.testing.assert_array_equal(results(errors).of("eb", 0.5), noise)


def test_blocks_are_not_repetitions() -> None:
    """Two blocks in each of two repetitions: four observations of the error, two repetitions."""
    row = results(blocks=2).row(0)
    assert row.repetitions == 2
    assert row.se == pytest.approx(np.sqrt(0.02 / 12))


def test_every_repetition_is_kept(tmp_path: Path) -> None:
    write_repetitions([results(), Results(mle_only(), ERRORS[:2, :1])], tmp_path / "table.repetitions.parquet")
    path = tmp_path / "table.repetitions.parquet"
    with duckdb.connect() as connection:
        names = [name for name, *_ in connection.execute(f"describe from read_parquet('{path}')").fetchall()]
    assert names == ["data", "logging", "model", "method", "delta", "n", "repetition", "error"]
    actual = rows_of(path)
    assert len(actual) == 3 * 4 + 2
    expected = [
        (*arm, 70, r + 1, error) for arm, column in zip(ARMS, ERRORS.T, strict=True) for r, error in enumerate(column)
    ]
    assert [row[3:] for row in actual[:12]] == expected
    assert [row[2:] for row in actual[12:]] == [
        ("as told", "mle", None, 70, 1, 0.1),
        ("as told", "mle", None, 70, 2, 0.3),
    ]


ARMS = (("mle", None), ("eb", 0.2), ("eb", 0.5))


def test_the_same_rows_make_the_same_bytes(tmp_path: Path) -> None:
    rows = [Row("d", "l", "cm", f"m{i}", None if i % 3 else 0.1, i, i / 7, i / 9, 5) for i in range(5_000)]
    for name in ("one", "two"):
        write_rows(rows, tmp_path / f"{name}.parquet")
    for end in ("parquet", "csv"):
        assert (tmp_path / f"one.{end}").read_bytes() == (tmp_path / f"two.{end}").read_bytes()


def test_ratio_is_paired() -> None:
    ours = np.array([1.0, 2.0, 3.0])
    assert paired_ratio(2 * ours, ours) == (2.0, 0.0)
    # x − r·y with r = 7/6 is (−1/6, 2/3, −1/2), around 0; its standard error is divided by the mean of y.
    ratio, se = paired_ratio(np.array([1.0, 3.0, 3.0]), ours)
    assert ratio == pytest.approx(7 / 6)
    assert se == pytest.approx(math.sqrt((1 / 36 + 4 / 9 + 1 / 4) / 2 / 3) / 2)
    assert all(map(math.isnan, paired_ratio(ours, 0 * ours)))
