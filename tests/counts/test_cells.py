"""Sums by code are those of the arrays that codes stand for."""

import numpy as np
import pytest

from prudent.counts import cells as module
from prudent.counts.cells import Cells


@pytest.mark.parametrize("longest", [500, 2])
def test_weights_by_code_are_weights_of_cells(longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a table of all codes that are possible, and of those that occur, where there would be too many."""
    monkeypatch.setattr(module, "_LONGEST_TABLE", longest)
    rng = np.random.default_rng(1)
    position = rng.integers(1, 9, 300)
    prev = rng.integers(0, position)
    click, more = rng.random((2, 300)) < 0.4
    pair, context = np.sort(rng.integers(1, 60, 300)), np.sort(rng.integers(0, 7, 61))
    n = np.asarray(rng.integers(1, 5, 300), float) / 8
    cells = Cells.of_columns(context, pair, position, prev, click, more, n)
    for name, values in (("pair", pair), ("position", position), ("prev", prev), ("click", click), ("more", more)):
        assert np.array_equal(getattr(cells, name), values), name
    codes = cells.codes
    assert np.all((codes.position >= 1) & (codes.prev < codes.position))
    weight = np.sqrt(codes.position) + codes.prev / 7 + codes.click + 3 * codes.more
    of_cells = np.sqrt(position) + prev / 7 + click + 3 * more
    clicked, weighed = cells.fold(codes.click, weight)
    assert np.array_equal(clicked, np.bincount(pair, n * click, minlength=61))
    assert np.array_equal(weighed, np.bincount(pair, n * of_cells, minlength=61))
    assert np.array_equal(cells.per_context(weight)[0].size, cells.contexts)
    np.testing.assert_allclose(cells.per_context(weight)[0], np.bincount(context[pair], n * of_cells, minlength=7))
    some = np.array([0, 7, 299])
    assert np.array_equal(cells.by_code(weight, some), of_cells[some])


@pytest.mark.parametrize("pairs", [1, 7, 1_000])
def test_parts_are_the_cells_of_consecutive_contexts(pairs: int) -> None:
    rng = np.random.default_rng(2)
    context = np.repeat(np.arange(12), rng.integers(1, 6, 12))
    pair = np.sort(rng.integers(0, len(context), 200))
    position, click = np.ones(200, np.int64), rng.random(200) < 0.5
    cells = Cells.of_columns(context, pair, position, position * 0, click, ~click, rng.random(200))
    parts = list(cells.parts(pairs))
    assert len(parts) == {1: 12, 1_000: 1}.get(pairs, len(parts))
    first = np.cumsum([0, *(part.contexts for part in parts)])
    for column in ("size", "code", "n"):
        assert np.array_equal(np.concatenate([getattr(part, column) for part in parts]), getattr(cells, column))
    renumbered = [part.context + start for part, start in zip(parts, first[:-1], strict=True)]
    assert np.array_equal(np.concatenate(renumbered), context)
    empty = cells.only(np.zeros(12, bool))
    assert [part.pairs for part in empty.parts(pairs)] == [0]
